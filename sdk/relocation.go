package sdk

import "github.com/unwindd/unwindd/engine/object"

// A Relocation describes one relocation type of a machine, as far as debug
// sections use it.
type Relocation = object.Relocation

// What a relocation computes: S is the symbol's value, A the addend, P the
// place, and V what the place holds already. See object.RelocationKind.
const (
	RelocationNone        = object.RelocationNone
	RelocationAbsolute    = object.RelocationAbsolute    // S + A
	RelocationRelative    = object.RelocationRelative    // S + A - P
	RelocationSet         = object.RelocationSet         // S + A, low bits
	RelocationAdd         = object.RelocationAdd         // V + S + A, low bits
	RelocationSubtract    = object.RelocationSubtract    // V - S - A, low bits
	RelocationAddRelative = object.RelocationAddRelative // V + S + A - P, low bits
	RelocationRelativePA  = object.RelocationRelativePA  // S + A - P - 8
)

// The forms of the field that a relocation writes.
const (
	FieldBytes   = object.FieldBytes   // whole bytes
	FieldLow6    = object.FieldLow6    // the low six bits of a byte, whose others stay
	FieldULEB128 = object.FieldULEB128 // an unsigned LEB128 number, whose length stays; its Size is 0
)
