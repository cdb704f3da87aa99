// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/examples/mixed/simt"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// The numbers of AMDGPU's registers that the tests set.
const (
	regPC, regExec32, regExec64, regSGPR0 = 16, 1, 17, 32
)

// divergent is a kernel that clang compiled, with the lane attributes that no
// compiler writes added by simt.Annotate.
type divergent struct {
	lanes   int
	program *simt.Program
	module  *target.Module
	engine  *engine.Engine
	symbols map[uint64][]string // functions by PC
}

const loadedAt = 0x7f0000000000

func newDivergent(t *testing.T, processor string, lanes int) *divergent {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles a kernel")
	}
	oracle.Tools(t, "clang", "ld.lld", "llvm-objdump")
	source := filepath.Join("..", "examples", "mixed", "grade.cl")
	file := filepath.Join(t.TempDir(), "grade.co")
	if err := simt.Build(source, "grade", processor, lanes, file); err != nil {
		t.Fatal(err)
	}
	d := openLanes(t, file, lanes)
	var err error
	if d.program, err = simt.Disassemble("llvm-objdump", file, "grade"); err != nil {
		t.Fatal(err)
	}
	return d
}

// openLanes opens a code object whose waves are walked with their lanes.
func openLanes(t *testing.T, file string, lanes int) *divergent {
	t.Helper()
	o, err := object.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	e, err := engine.New(engine.Options{
		Plugins: plugin.Options{InProcess: []sdk.Architecture{amdgpu.New()}}, Lanes: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	m := &target.Module{Module: trace.Module{Path: file, Arch: "amdgpu", File: file}, Object: o}
	for _, s := range o.Segments() {
		m.Segments = append(m.Segments, trace.Segment{
			Address: s.Address, Size: s.MemSize, Start: loadedAt + s.Address, Executable: s.Executable(),
		})
	}
	return &divergent{lanes, nil, m, e, map[uint64][]string{}}
}

// wave is a wave at the beginning of the kernel: active are the lanes that have a
// work-item, values what they work on.
func (d *divergent) wave(active uint64, value func(lane int) uint32) *simt.Wave {
	const arguments, in, out = 0x1000, 0x20000, 0x30000
	w := simt.NewWave(d.program, d.lanes, active)
	w.SGPR[4] = arguments
	w.Memory[arguments], w.Memory[arguments+8] = in, out
	for lane := range d.lanes {
		w.VGPR[0][lane] = uint32(lane)
		w.Memory[in+4*uint64(lane)] = value(lane)
	}
	return w
}

// registers are the registers of a wave as a debugger would see them.
func (d *divergent) registers(w *simt.Wave) sdk.Registers {
	var r sdk.Registers
	word := func(v uint64, size int) []byte { return binary.LittleEndian.AppendUint64(nil, v)[:size] }
	if d.lanes == 32 {
		r.Set(regExec32, word(w.Exec, 4))
	} else {
		r.Set(regExec64, word(w.Exec, 8))
	}
	r.Set(regPC, word(loadedAt+w.PC, 8))
	for i := range 16 {
		r.Set(uint32(regSGPR0+i), word(uint64(w.SGPR[i]), 4))
	}
	return r
}

// walk walks the stack of a wave with the registers.
func (d *divergent) walk(r sdk.Registers) (*engine.Target, *trace.Stack) {
	t := d.engine.Attach(&walk.Sample{Sample: trace.Sample{Arch: "amdgpu", ThreadID: "w", Registers: r}, Loaded: []*target.Module{d.module}})
	return t, t.Walk(context.Background(), t.Threads()[0])
}

// TestLanesOfDivergentCodeAreWhereTheyLeftIt executes the kernel instruction by
// instruction, for lanes that take every way through it, and compares where each
// lane is said to be with where it left the others.
func TestLanesOfDivergentCodeAreWhereTheyLeftIt(t *testing.T) {
	for _, c := range []struct {
		processor string
		lanes     int
	}{{"gfx90a", 64}, {"gfx1030", 32}} {
		t.Run(fmt.Sprintf("wave%d", c.lanes), func(t *testing.T) {
			d := newDivergent(t, c.processor, c.lanes)
			random := rand.New(rand.NewSource(1))
			all := ^uint64(0) >> (64 - c.lanes)
			same := func(v uint32) func(int) uint32 { return func(int) uint32 { return v } }
			var waves []*simt.Wave
			for _, value := range []uint32{3, 12, 25} { // each branch by all lanes: EXEC is zero in others
				waves = append(waves, d.wave(all, same(value)))
			}
			for range 5 {
				waves = append(waves, d.wave(random.Uint64()&all, func(int) uint32 { return uint32(random.Intn(30)) }))
			}
			states, empty, inlined := map[trace.LaneState]int{}, 0, 0
			for _, w := range waves {
				for done := false; !done; {
					tg, s := d.walk(d.registers(w))
					if len(s.Frames) != 1 || s.Stopped.Reason != trace.StopOutermost {
						t.Fatalf("at %#x: %d frames, %v", w.PC, len(s.Frames), s.Stopped)
					}
					if problems := tg.ModuleInfo(&d.module.Module).Problems; len(problems) > 0 {
						t.Fatalf("at %#x: %v", w.PC, problems)
					}
					f := &s.Frames[0]
					if w.Exec == 0 {
						empty++
					}
					for lane := range c.lanes {
						got := laneOf(t, f, uint32(lane))
						states[got.State]++
						pc, began := w.Place(lane)
						want := trace.LaneGroup{State: trace.LaneNotOnEntry}
						if began {
							want = trace.LaneGroup{State: trace.LaneInactive, PC: loadedAt + pc, HasPC: true}
							if w.Exec>>lane&1 != 0 {
								want.State = trace.LaneActive
							}
						}
						if got.State != want.State || got.HasPC != want.HasPC || got.PC != want.PC {
							t.Fatalf("at %#x, EXEC %#x, lane %d: %s %v %#x, expected %s %v %#x", w.PC, w.Exec, lane,
								got.State, got.HasPC, got.PC, want.State, want.HasPC, want.PC)
						}
						if !got.HasPC {
							continue
						}
						if !slices.Equal(names(got.Symbols), d.symbolsAt(got.PC)) {
							t.Fatalf("at %#x, lane %d at %#x: %v", w.PC, lane, got.PC, names(got.Symbols))
						}
						if len(got.Symbols) > 1 && got.State == trace.LaneInactive {
							inlined++
						}
					}
					tg.Close()
					var err error
					if done, err = w.Step(); err != nil {
						t.Fatal(err)
					}
				}
			}
			t.Logf("lanes: %v; %d that wait in an inlined call; %d places with EXEC 0", states, inlined, empty)
			if states[trace.LaneActive] == 0 || states[trace.LaneInactive] == 0 || states[trace.LaneNotOnEntry] == 0 ||
				states[trace.LaneUnknown] > 0 || empty == 0 || inlined == 0 {
				t.Error("expected lanes that are active, inactive and not active on entry, some that wait in inlined calls, and EXEC 0")
			}
		})
	}
}

func laneOf(t *testing.T, f *trace.Frame, lane uint32) trace.LaneGroup {
	t.Helper()
	var found []trace.LaneGroup
	for _, g := range f.Lanes() {
		if g.Lanes.Has(lane) {
			found = append(found, g)
		}
	}
	if len(found) != 1 {
		t.Fatalf("lane %d is in %d groups", lane, len(found))
	}
	return found[0]
}

// symbolsAt are the functions at a PC, by the walk of a wave that executes there.
func (d *divergent) symbolsAt(pc uint64) []string {
	if d.symbols[pc] == nil {
		w := d.wave(1, func(int) uint32 { return 0 })
		w.PC = pc - loadedAt
		tg, s := d.walk(d.registers(w))
		defer tg.Close()
		d.symbols[pc] = names(s.Frames[0].Symbols)
	}
	return d.symbols[pc]
}

// names are functions with their lines.
func names(frames []trace.Symbol) []string {
	list := []string{}
	for _, f := range frames {
		list = append(list, fmt.Sprintf("%s:%d", f.Function, f.Line))
	}
	return list
}
