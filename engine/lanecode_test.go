// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"math/rand"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/mixed/simt"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// TestLanesOfCallersFoundByReadingCode executes a kernel whose call frame
// information has no rule in it, instruction by instruction, and compares the
// frames with the calls that are in progress, and what lanes do in each with the
// execution mask at its calls.
func TestLanesOfCallersFoundByReadingCode(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a kernel")
	}
	oracle.Tools(t, "clang-22", "ld.lld-22", "llvm-objdump-22")
	const lanes, memory = 64, 0x10000
	file := filepath.Join(t.TempDir(), "inspect.co")
	if err := simt.Compile(filepath.Join("..", "examples", "mixed", "inspect.hip"), "gfx90a", file); err != nil {
		t.Fatal(err)
	}
	program, err := simt.Disassemble("llvm-objdump-22", file, "inspect", "compare_sides", "measure")
	if err != nil {
		t.Fatal(err)
	}
	program.Loaded = loadedAt
	launch := simt.Dispatch{Program: program, Lanes: lanes, Items: 4*lanes - 20, Group: lanes, Arguments: memory, Private: memory * 16, PrivateSize: 0x1000}
	if err := launch.Kernel(file, "inspect"); err != nil {
		t.Fatal(err)
	}
	d := openLanes(t, file, lanes)
	random := rand.New(rand.NewSource(1))
	frames, states := 0, map[trace.LaneState]int{}
	for group := range 4 {
		w, _ := launch.Wave(group, 0)
		began := w.Exec
		const wear, parts = 2 * memory, 3 * memory
		w.Memory[memory], w.Memory[memory+8] = wear, parts
		for lane := range uint64(lanes) {
			w.Memory[wear+4*lane] = uint32(5 + random.Intn(15))
			for side := range uint64(2) {
				w.Memory[parts+64*lane+32*side] = uint32(random.Intn(4))
			}
		}
		for done := false; !done; {
			tg, s := d.walk(d.wholeState(w))
			if len(s.Frames) != 1+len(w.Calls) || s.Stopped.Reason != trace.StopOutermost {
				t.Fatalf("at %#x: %d frames in %d calls, %v", w.PC, len(s.Frames), len(w.Calls), s.Stopped)
			}
			pc, executing := w.PC, w.Exec
			for i := range s.Frames {
				f := &s.Frames[i]
				entered, kernel, call := began, true, simt.Call{}
				if n := len(w.Calls) - 1 - i; n >= 0 {
					call = w.Calls[n]
					entered, kernel = call.Exec, false
				}
				if f.ModuleOffset != pc || i > 0 && f.FoundBy != trace.ByRules {
					t.Fatalf("at %#x: frame %d is at %#x by %s, expected %#x", w.PC, i, f.ModuleOffset, f.FoundBy, pc)
				}
				for lane := range uint32(lanes) {
					want := trace.LaneActive
					switch {
					case entered>>lane&1 == 0 && !kernel: // of a kernel nothing says who began it
						want = trace.LaneNotOnEntry
					case executing>>lane&1 == 0:
						want = trace.LaneInactive
					}
					got := laneOf(t, f, lane).State
					if got != want {
						t.Fatalf("at %#x, frame %d at %#x, EXEC %#x of %#x, lane %d: %s, expected %s", w.PC, i, pc, executing, entered, lane, got, want)
					}
					states[got]++
				}
				frames++
				pc, executing = call.Return, call.Exec
			}
			tg.Close()
			if done, err = w.Step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d frames, lanes: %v", frames, states)
	if frames < 1000 || states[trace.LaneNotOnEntry] == 0 || states[trace.LaneInactive] == 0 || states[trace.LaneActive] == 0 {
		t.Errorf("%d frames, lanes: %v: expected more", frames, states)
	}
}

// wholeState are the registers of a wave that functions change, too.
func (d *divergent) wholeState(w *simt.Wave) sdk.Registers {
	const vectors64 = 2560 // the number of VGPR0
	r := d.registers(w)
	for i := range 64 {
		r.Set(uint32(regSGPR0+i), binary.LittleEndian.AppendUint32(nil, w.SGPR[i]))
	}
	for i := range 32 {
		r.Set(uint32(vectors64+i), w.Vector(i))
	}
	return r
}
