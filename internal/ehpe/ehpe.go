// SPDX-License-Identifier: Apache-2.0

// Package ehpe names the pointer encodings DW_EH_PE_* of call frame information (Linux
// Standard Base 5.0, 10.5.1). An encoding has the format of the value, the base that
// the value counts from, and whether it is the address of the pointer.
package ehpe

// Omit is the encoding of an absent pointer.
const Omit = 0xff

// The formats, in the bits of FormatMask.
const (
	FormatMask = 0x0f
	AbsPtr     = 0x00 // unsigned, of the size of an address
	ULEB128    = 0x01
	UData2     = 0x02
	UData4     = 0x03
	UData8     = 0x04
	Signed     = 0x08 // signed, of the size of an address
	SLEB128    = 0x09
	SData2     = 0x0a
	SData4     = 0x0b
	SData8     = 0x0c
)

// The bases of values, in the bits of ApplicationMask.
const (
	ApplicationMask = 0x70
	Absolute        = 0x00
	PCRel           = 0x10 // its own address
	TextRel         = 0x20 // the beginning of the code
	DataRel         = 0x30 // the beginning of the data
	FuncRel         = 0x40 // the beginning of the function
	Aligned         = 0x50 // nothing: an absolute one, at the next address that is aligned
)

// Indirect is set where the value is the address of the pointer.
const Indirect = 0x80
