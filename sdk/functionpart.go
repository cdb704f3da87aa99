// SPDX-License-Identifier: Apache-2.0

package sdk

import "strings"

// partMarks are the beginnings of suffixes that compilers and linkers add to the name of a
// function for a separate part of it: GCC's and LLVM's unlikely part, BOLT's parts, and the
// sections of basic blocks and of landing pads of Propeller and LLVM. GCC's NAME.part.0 is no
// part: it is called.
var partMarks = [...]string{".cold", ".warm", ".__part", ".eh"}

// PartMarks returns the suffixes of the names of parts, before a number.
func PartMarks() []string { return partMarks[:] }

// PartOf returns the name of the function that a symbol is a part of, by the name of the symbol.
// The first instruction of a part is no entry: jumps of the function enter it, in mid-frame. ok
// is false for a function.
func PartOf(name string) (function string, ok bool) {
	for _, mark := range partMarks {
		i := strings.LastIndex(name, mark)
		if i > 0 && (i+len(mark) == len(name) || name[i+len(mark)] == '.') {
			return name[:i], true
		}
	}
	return "", false
}

// Piece returns the code of the range, or of its part, that contains an address, and its start;
// nil where there is none.
func (r *CodeRange) Piece(address uint64) (start uint64, code []byte) {
	if address-r.Start < uint64(len(r.Code)) {
		return r.Start, r.Code
	}
	for i := range r.Parts {
		if p := &r.Parts[i]; address-p.Start < uint64(len(p.Code)) {
			return p.Start, p.Code
		}
	}
	return 0, nil
}
