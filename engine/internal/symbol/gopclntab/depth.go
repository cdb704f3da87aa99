// SPDX-License-Identifier: Apache-2.0

package gopclntab

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
)

// Depth is the distance of the stack pointer below its value at a function's entry, for a
// range of instructions: the Go runtime unwinds by it (pcsp of runtime._func).
type Depth struct {
	Function   symbol.Symbol
	Start, End uint64 // ELF virtual addresses, in the function
	Bytes      int64  // negative where the function has popped its return address
	// Uncertain is set where the function also changes the stack pointer in a manner that
	// Bytes does not include.
	Uncertain bool
}

// flagSPWrite is a flag of a function (abi.FuncFlag), in the layouts of 1.18 and 1.20.
const flagSPWrite = 2

// Depth finds the depth of the stack at an ELF virtual address; ok is false where the table
// has none. An error tells which part of the table is wrong.
func (t *Table) Depth(address uint64) (d Depth, ok bool, err error) {
	err = object.Guard(func() error {
		f, found, err := t.find(address)
		if err != nil || !found {
			return err
		}
		v, found := t.valueAt(&f, f.pcsp, address)
		if !found {
			return nil
		}
		if int(v.value) < -t.ptrSize || int(v.value)%t.ptrSize != 0 {
			return fmt.Errorf("%s: .gopclntab: the stack is %d bytes deep at %#x, expected a multiple of %d, at least %d", t.name, v.value, address, t.ptrSize, -t.ptrSize)
		}
		ok = true
		d = Depth{
			Function: symbol.Symbol{Name: t.text(f.name), Start: f.start, End: f.end},
			Start:    v.start, End: min(v.end, f.end), Bytes: int64(v.value),
			Uncertain: f.flags&flagSPWrite != 0,
		}
		return nil
	})
	return d, ok, err
}

// Start is the ELF virtual address of the first function; ok is false where there are no
// functions.
func (t *Table) Start() (address uint64, ok bool) {
	err := object.Guard(func() error {
		if ok = t.nfunc > 0; ok {
			address = t.start(0)
		}
		return nil
	})
	return address, ok && err == nil
}

// Functions returns all functions of the table that can be described, by address.
func (t *Table) Functions() (list []symbol.Symbol) {
	_ = object.Guard(func() error {
		for n := range t.nfunc {
			if f, err := t.function(n); err == nil && f.start < f.end {
				list = append(list, symbol.Symbol{Name: t.text(f.name), Start: f.start, End: f.end})
			}
		}
		return nil
	})
	return list
}
