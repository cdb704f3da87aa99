// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"bytes"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/locexpr"
)

// TestExpressionsAreAssembledByLocexpr assembles texts operation by operation, from
// several goroutines, and holds the bytes against those of the whole text.
func TestExpressionsAreAssembledByLocexpr(t *testing.T) {
	var a assembler
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range int64(200) {
				var e expression
				e.register(vgpr0w64 + uint32(n)) //nolint:gosec // small
				e.cfa()
				e.offset(n * 256)
				e.offset(-n)
				e.number(n)
				e.number(-n)
				e.op(0, lowestBit)
				e.value(4)
				e.piece(8, true)
				want, err := locexpr.Parse(string(e.text), locexpr.TextOptions{Dialect: locexpr.Canonical})
				if err != nil {
					t.Error(err)
					return
				}
				if got := a.assemble(e.text); !bytes.Equal(got, want) {
					t.Errorf("%s: %x, expected %x", e.text, got, want)
				}
			}
		})
	}
	all.Wait()
}

// TestAssemblerForgetsOperations asks for more operations than an assembler keeps, as
// an object could that has as many offsets.
func TestAssemblerForgetsOperations(t *testing.T) {
	var a assembler
	a.learn("DW_OP_dup")
	for n := len(a.operations); n < maxOperations; n++ {
		a.operations[string(rune(n))] = nil
	}
	want, err := locexpr.Parse("DW_OP_consts -77", locexpr.TextOptions{Dialect: locexpr.Canonical})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.assemble([]byte("DW_OP_consts -77; ")); !bytes.Equal(got, want) || len(a.operations) >= maxOperations {
		t.Errorf("%x, expected %x, with %d operations", got, want, len(a.operations))
	}
}
