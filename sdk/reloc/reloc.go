// SPDX-License-Identifier: Apache-2.0

// Package reloc describes the relocation types of machines, as far as sections
// of call frame information and debugging information have them. The packages that
// write such descriptions (package sdk, the engine's code objects) and apply them share
// it.
package reloc

// Kind is the computation of a relocation.
type Kind uint8

// The kinds: S is the symbol's value, A the addend, P the place, and V the value at the
// place. Machines whose linkers shorten code have the distance of two places as two
// relocations of one field, one that sets or adds and one that subtracts. So only the
// last result must fit: these kinds write the low bits.
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

// Field is the format of the field that a relocation writes.
type Field uint8

// The formats of fields.
const (
	Bytes   Field = iota // whole bytes
	Low6                 // the low six bits of a byte: an advance of DW_CFA_advance_loc; the others do not change
	ULEB128              // an unsigned LEB128 number, whose length does not change
)

// Entry describes one relocation type of a machine.
type Entry struct {
	Type  uint32 // its number in the machine's System V supplement
	Size  uint8  // bytes written: 1, 2, 4 or 8; 0 where the field is a LEB128 number, which has its own
	Kind  Kind
	Field Field
}
