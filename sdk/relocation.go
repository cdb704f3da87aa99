package sdk

import "github.com/unwindd/unwindd/engine/object"

// A Relocation describes one relocation type of a machine, as far as debug
// sections use it.
type Relocation = object.Relocation

// What a relocation computes: S is the symbol's value, A the addend, P the
// place.
const (
	RelocationNone     = object.RelocationNone
	RelocationAbsolute = object.RelocationAbsolute // S + A
	RelocationRelative = object.RelocationRelative // S + A - P
)
