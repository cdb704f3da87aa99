// SPDX-License-Identifier: Apache-2.0

package pdb

import "github.com/unwindd/unwindd/engine/internal/symbol"

// EachFunction calls yield with all functions that have code, by address, until it returns false.
func (f *File) EachFunction(_ func(*symbol.FunctionCode) bool) error { return nil }

// Covers reports whether a function has the code at an address, and up to where that holds.
func (f *File) Covers(_ uint64) (covered bool, end uint64) { return false, 0 }

// Lines appends the lines of code, by address.
func (f *File) Lines(dst []symbol.CodeLine, _ symbol.CodeRange) []symbol.CodeLine { return dst }

// EachLine calls yield with the rows of all line tables, by address, until it returns false.
func (f *File) EachLine(_ func(*symbol.LineRow) bool) error { return nil }

// Data calls yield with the variables that have symbols, in any order.
func (f *File) Data(_ func(name string, address, size uint64)) error { return nil }
