// SPDX-License-Identifier: Apache-2.0

package object

import "strings"

// A stringTable returns the strings of a string table without copying each: they are parts of one
// string.
//
// Offsets may all point into one long string, so the end of a string is found
// in bounded time: within its own block by looking, beyond it by a table of
// where the first NUL at or after the start of each block is.
type stringTable struct {
	all    string
	nextAt []uint64 // by block; len(all) where there is none
}

const stringBlock = 1024

func newStringTable(b []byte) stringTable {
	t := stringTable{all: string(b)}
	blocks := (len(b) + stringBlock - 1) / stringBlock
	t.nextAt = make([]uint64, blocks)
	next := uint64(len(b))
	for i := blocks - 1; i >= 0; i-- {
		start := i * stringBlock
		end := min(start+stringBlock, len(b))
		if length := strings.IndexByte(t.all[start:end], 0); length >= 0 {
			next = uint64(start + length)
		}
		t.nextAt[i] = next
	}
	return t
}

// at returns the string at offset; ok is false where there is none that ends.
func (t *stringTable) at(offset uint64) (s string, ok bool) {
	if offset >= uint64(len(t.all)) {
		return "", false
	}
	block := offset / stringBlock
	end := min((block+1)*stringBlock, uint64(len(t.all)))
	if n := strings.IndexByte(t.all[offset:end], 0); n >= 0 {
		return t.all[offset : offset+uint64(n)], true
	}
	if block+1 >= uint64(len(t.nextAt)) || t.nextAt[block+1] == uint64(len(t.all)) {
		return "", false
	}
	return t.all[offset:t.nextAt[block+1]], true
}
