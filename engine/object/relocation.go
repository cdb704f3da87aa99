package object

// RelocationKind says what a relocation computes.
type RelocationKind uint8

// The kinds: S is the symbol's value, A the addend, P the place.
const (
	RelocationNone     RelocationKind = iota
	RelocationAbsolute                // S + A
	RelocationRelative                // S + A - P
)

// A Relocation describes one relocation type of a machine, as far as debug
// sections use it.
type Relocation struct {
	Type uint32
	Size uint8 // bytes written: 1, 2, 4 or 8
	Kind RelocationKind
}
