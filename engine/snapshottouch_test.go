// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/unwindd/unwindd/locexpr"
)

// A stack whose memory begins or ends within what is read at once is kept whole.
func TestMemoryThatBeginsAtTheStackPointerIsKept(t *testing.T) {
	e := newX86Engine(t, Options{})
	target := e.Attach(&Synthetic{Arch: "x86_64", Memory: []Piece{{Address: 0x1018, Bytes: make([]byte, 0x240)}}})
	view, ok := target.View(t.Context(), target.Threads()[0])
	if !ok {
		t.Fatal("no view")
	}
	if n := touch(t.Context(), view, locexpr.DefaultSpace, 0x1018-keptBeyond, 0x1018+0x240+keptBeyond); n != 0x240 {
		t.Errorf("%#x bytes were read, expected 0x240", n)
	}
}
