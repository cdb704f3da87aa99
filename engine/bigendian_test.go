// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/trace"
)

func TestValuesOfMachinesOfBothByteOrders(t *testing.T) {
	const inMemory = "{bits = {a = 5, b = 1000, c = -100, d = 588715939448, e = GREEN}, k = GREEN, f = -0.25, ld = LD, " +
		"z = 1 + 2i, zf = 3 + 4i, zl = 5.5 + 6.25i, s = {-7, -2, 3}, t = true, uc = 200 '\\310', wide = -5}"
	for machine, m := range map[string]struct {
		longDouble string   // ppc64's libc has no other than 64 bits
		want       []string // as testdata/bigendian/make.sh has them by gdb
	}{
		"s390x":   {"-3.1", []string{"ch = 122 'z'", "ss = -2", "t = true", "x = 2.75", "k = GREEN", "q = 0x0", "cp = " + inMemory, "k = GREEN"}},
		"ppc64":   {"-3.1", []string{"ch = 122 'z'", "t = true", "f = 0.5", "x = 2.75", "k = GREEN", "q = 0x0", "cp = " + inMemory, "f = -0.25"}},
		"ppc64le": {"-3.10000000000000000000000000000002", []string{"ch = 122 'z'", "f = 0.5", "x = 2.75", "k = GREEN", "q = 0x0", "cp = " + inMemory, "f = -0.25"}},
	} {
		t.Run(machine, func(t *testing.T) {
			th := bigEndianStack(t, machine)
			var got []string
			for _, f := range th.Frames[:2] {
				for _, list := range f.Details.Locals {
					for i := range list {
						if v := &list[i]; v.Status == trace.ValueOK {
							got = append(got, v.Name+" = "+value.Line(&v.Value, v.Language))
						} else if v.Status == trace.ValueFailed {
							t.Log(v.Name, v.Problem)
						}
					}
				}
			}
			for _, want := range m.want {
				if want = strings.Replace(want, "LD", m.longDouble, 1); !slices.Contains(got, want) {
					t.Errorf("%s is not among\n%s", want, strings.Join(got, "\n"))
				}
			}
		})
	}
}

// TestReturnAddressAboveTheCFAMovesNoStackPointer walks a function that saved its return
// address in its caller's frame: the caller's stack pointer is the CFA all the same, where
// the architecture does not say that functions are entered with words pushed.
func TestReturnAddressAboveTheCFAMovesNoStackPointer(t *testing.T) {
	for _, name := range []string{"ppc64", "ppc64le"} {
		th := bigEndianStack(t, name)
		held, start := th.Frames[1], th.Frames[2]
		sp := uint64(0)
		for _, r := range start.Details.Registers {
			if r.Number == 1 {
				sp = r.Value
			}
		}
		if !held.HasCFA || sp != held.CFA {
			t.Errorf("%s: the stack pointer of _start is %#x, expected the CFA of its callee, %#x", name, sp, held.CFA)
		}
	}
}

// bigEndianStack is the stack of a snapshot of testdata/bigendian.
func bigEndianStack(t *testing.T, machine string) *trace.Stack {
	t.Helper()
	m := crossMachines[slices.IndexFunc(crossMachines, func(m crossMachine) bool { return m.machine == machine })]
	stack := m.stack(t, "testdata/bigendian/"+machine+".snapshot")
	if len(stack.Frames) < 3 {
		t.Fatalf("%d frames: %v", len(stack.Frames), stack.Stopped)
	}
	return stack
}
