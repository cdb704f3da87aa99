// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/mixed/parts"
	"github.com/unwindd/unwindd/internal/oracle"
)

// TestRegistersAreThoseOfTheExecutor holds the registers of each wave's top frame
// against those of the executed wave.
func TestRegistersAreThoseOfTheExecutor(t *testing.T) {
	oracle.Tools(t, "llvm-objdump", "llvm-objdump-22")
	target := open(t, filepath.Join(committed, "crash.core"), engine.Options{Registers: true})
	launches, _ := executed(t, target, global())
	threads := target.Threads()[2:]
	for _, l := range launches {
		for _, w := range l.waves {
			th := threads[0]
			threads = threads[1:]
			scalars := 0
			for _, r := range target.Walk(t.Context(), th).Frames[0].Registers() {
				want := map[string]uint64{"PC": l.start() + w.PC, "EXEC": w.Exec, "VCC": w.VCC}
				if n, err := strconv.Atoi(strings.TrimPrefix(r.Name, "SGPR")); err == nil {
					want[r.Name] = uint64(w.SGPR[n])
					scalars++
				}
				if v, ok := want[r.Name]; !ok || v != r.Value {
					t.Errorf("%s: %s is %#x, expected %#x", th.ID, r.Name, r.Value, v)
				}
			}
			if named, _ := l.program.Registers(); scalars < named {
				t.Errorf("%s: %d scalar registers, expected the %d that the code names", th.ID, scalars, named)
			}
		}
	}
}

// TestVariablesAreThoseOfTheParts holds the variables of the lanes of the wave that
// accessed memory that is not there against what its work-items were given.
func TestVariablesAreThoseOfTheParts(t *testing.T) {
	target := open(t, filepath.Join(committed, "crash.core"), engine.Options{Locals: &trace.ValueLimits{}})
	stack := target.Walk(t.Context(), target.Threads()[4])
	known := map[string]int{}
	for lane := range stack.Lanes {
		one, ok := stack.Lane(lane)
		if !ok {
			continue
		}
		item := int(lane)
		want := map[string]string{
			"part":  fmt.Sprintf("%#x", sideStart+4*partWords*item),
			"front": fmt.Sprint(slices.Max(parts.Measured(item, 0))),
		}
		for i := range one.Frames {
			for _, list := range one.Frames[i].Locals() {
				for _, v := range list {
					if want[v.Name] == "" || v.Status == trace.ValueOptimizedOut {
						continue
					}
					known[v.Name]++
					if v.Text != want[v.Name] {
						t.Errorf("lane %d: %s = %s (%s), expected %s", lane, v.Name, v.Text, v.Problem, want[v.Name])
					}
				}
			}
		}
	}
	if known["part"] != 32 || known["front"] != 32 {
		t.Errorf("values of lanes that are known: %v, expected 32 of part and of front", known)
	}
}
