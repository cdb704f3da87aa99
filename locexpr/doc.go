// SPDX-License-Identifier: Apache-2.0

// Package locexpr evaluates DWARF expressions, in which any entry of the stack
// may be a value or a location description.
//
// It implements section A.2.5 of the DWARF extensions for heterogeneous
// debugging, which replaces DWARF 5 sections 2.5 and 2.6 and gives every
// expression of DWARF 2 to 5 the meaning that it has there. Sections are cited
// with the letter A for the extension document, and as "DWARF 5, 2.5.1.4" for
// the standard.
//
// An Evaluator evaluates expressions in a Context, which supplies registers,
// memory, the CFA and the like. The operations are rows of tables, and a
// Dialect assigns bytes to rows, because the opcodes of vendors collide. Decode reads the operations of an expression
// without evaluating it, and Format writes them as text.
//
// # Values and types
//
// A value is of the generic type or of a base type, which a Context finds by
// its offset in the compilation unit. Arithmetic is exact for its type: integers
// of any size wrap around, floating point numbers are rounded to the nearest
// one, and vectors compute element by element. Division by zero is an error for
// all of them. What DWARF leaves open is decided so: the generic type converts
// to others as an unsigned integer; DW_OP_abs, DW_OP_div and DW_OP_mod go by the
// signedness of a base type, DW_OP_shr and DW_OP_shra by their own; a floating
// point number that has no integer of a type does not convert to it.
//
// # Bits
//
// A location storage is a stream of bits (A.2.5.3). On a little-endian machine
// bit i of a stream held in bytes is bit i%8, counted from the least
// significant one, of byte i/8. On a big-endian machine it is counted from the
// most significant one. So reading a range of a storage always gives a
// substring of reading all of it. DW_OP_piece and DW_OP_bit_piece alone count from
// the least significant bit of a register or value (DWARF 5, 2.6.1.2). A size that is no multiple of 8 leaves the
// bits of the last byte that it does not use zero.
//
// # Size
//
// The package is large because it has every operation of the documents once: in the
// table that decodes it, in the evaluation, and in the text form; and because values and
// locations, which all operations make and take, keep their insides to themselves.
package locexpr
