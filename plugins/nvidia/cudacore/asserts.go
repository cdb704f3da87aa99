// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/unwindd/unwindd/sdk"
)

// The registers in which the ABI has the arguments of __assertfail, the function that a failed
// assertion calls: pairs with the addresses of three strings, and a line.
const (
	assertMessage  = 4
	assertFile     = 6
	assertLine     = 8
	assertFunction = 10
	assertEnd      = 12

	maxString = 512
)

// sayAssert tells which assertion of a thread failed, where its registers still have the
// arguments of __assertfail: all three strings are there and are texts.
func (r *reader) sayAssert(ctx context.Context, t *sdk.TargetThread) {
	for _, s := range t.Saved {
		if s.First != r.machine.General.First || s.Count < assertEnd {
			continue
		}
		var b [assertEnd * 4]byte
		if r.file.read(ctx, s.Address, b[:]) != nil {
			return
		}
		var texts [3]string
		for i, register := range []int{assertMessage, assertFile, assertFunction} {
			text, ok := r.stringAt(ctx, binary.LittleEndian.Uint64(b[register*4:]))
			if !ok {
				return
			}
			texts[i] = text
		}
		line := binary.LittleEndian.Uint32(b[assertLine*4:])
		t.Stop.Details = append(t.Stop.Details, cut(fmt.Sprintf("%s:%d: %s: %s (by its argument registers)", texts[1], line, texts[2], texts[0]), sdk.MaxName))
		return
	}
}

// stringAt reads a string of global memory, or of the data of a module. It is false where none
// is there that is a text.
func (r *reader) stringAt(ctx context.Context, address uint64) (string, bool) {
	for _, m := range r.answer.Memory {
		if address-m.Start < m.Size {
			return r.textIn(ctx, part{m.Address, m.Size}, address-m.Start)
		}
	}
	for _, d := range r.data {
		if address-d.start < d.size {
			return r.textIn(ctx, d.part, address-d.start)
		}
	}
	return "", false
}

// textIn reads a string at an offset of a part of the file.
func (r *reader) textIn(ctx context.Context, p part, offset uint64) (string, bool) {
	b := make([]byte, min(maxString, p.size-offset))
	if r.file.read(ctx, p.offset+offset, b) != nil {
		return "", false
	}
	end := bytes.IndexByte(b, 0)
	if end <= 0 || !utf8.Valid(b[:end]) || slices.ContainsFunc([]rune(string(b[:end])), func(c rune) bool { return !unicode.IsPrint(c) }) {
		return "", false
	}
	return string(b[:end]), true
}
