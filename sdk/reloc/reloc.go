// SPDX-License-Identifier: Apache-2.0

// Package reloc describes the relocation types of machines, as far as sections
// of call frame information and debugging information have them. Those that write
// such a description (package sdk, the engine's code objects) and those that apply it
// share it.
package reloc

// A Kind says what a relocation computes.
type Kind uint8

// The kinds: S is the symbol's value, A the addend, P the place, and V what the
// place holds already. Machines whose linkers shorten code have the distance of
// two places as two relocations of one field, one that sets or adds and one that
// subtracts. So only what the last one leaves must fit: the kinds that those have
// keep the low bits.
const (
	None        Kind = iota
	Absolute         // S + A
	Relative         // S + A - P
	Set              // S + A, low bits
	Add              // V + S + A, low bits
	Subtract         // V - S - A, low bits
	AddRelative      // V + S + A - P, low bits
	RelativePA       // S + A - P - 8: PA-RISC counts from two instructions behind the place
)

// A Field is the form of the field that a relocation writes.
type Field uint8

// The forms of fields.
const (
	Bytes   Field = iota // whole bytes
	Low6                 // the low six bits of a byte, whose others stay: an advance of DW_CFA_advance_loc
	ULEB128              // an unsigned LEB128 number, whose length stays
)

// An Entry describes one relocation type of a machine.
type Entry struct {
	Type  uint32 // its number in the machine's System V supplement
	Size  uint8  // bytes written: 1, 2, 4 or 8; 0 where the field is a LEB128 number, which has its own
	Kind  Kind
	Field Field
}
