// SPDX-License-Identifier: Apache-2.0

// Package cfi interprets DWARF call frame information: .eh_frame (LSB 5.0, 10.6) with or
// without .eh_frame_hdr, and .debug_frame (DWARF 5, 6.4, and the extension for heterogeneous
// debugging, A.6.4). It reads the rows of SFrame sections too.
//
//	section -> Table -> FDE of a PC -> Row of a PC -> Rule -> location
//
// A Table is made from the bytes of a section. It finds the FDE of a PC, or lists all of
// them; an FDE streams its rows, or fills one Row for a PC; a rule of a row is evaluated to a
// location description by package locexpr. A Compiler makes CompiledRows, a few words for the
// rows that need no evaluation.
//
// Every byte of a section is taken to be hostile: counts, lengths, depths and arithmetic are
// checked, and the time and memory an entry may cost are bounded. Bytes that cannot be read
// are an *Error that wraps one of the errors in this package and names section, offset and
// the expected contents.
package cfi
