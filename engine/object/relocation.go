package object

// RelocationKind says what a relocation computes.
type RelocationKind uint8

// The kinds: S is the symbol's value, A the addend, P the place, and V what the
// place holds already. Machines whose linkers shorten code have the distance of
// two places as two relocations of one field, one that sets or adds and one that
// subtracts. So only what the last one leaves must fit: the kinds that those have
// keep the low bits.
const (
	RelocationNone        RelocationKind = iota
	RelocationAbsolute                   // S + A
	RelocationRelative                   // S + A - P
	RelocationSet                        // S + A, low bits
	RelocationAdd                        // V + S + A, low bits
	RelocationSubtract                   // V - S - A, low bits
	RelocationAddRelative                // V + S + A - P, low bits
	RelocationRelativePA                 // S + A - P - 8: PA-RISC counts from two instructions behind the place
)

// RelocationField is the form of the field that a relocation writes.
type RelocationField uint8

// The forms of fields.
const (
	FieldBytes   RelocationField = iota // whole bytes
	FieldLow6                           // the low six bits of a byte, whose others stay: an advance of DW_CFA_advance_loc
	FieldULEB128                        // an unsigned LEB128 number, whose length stays
)

// A Relocation describes one relocation type of a machine, as far as debug
// sections use it.
type Relocation struct {
	Type  uint32
	Size  uint8 // bytes written: 1, 2, 4 or 8; 0 where the field is a LEB128 number, which has its own
	Kind  RelocationKind
	Field RelocationField
}
