// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/examples/cuda-core/corefile"
	"github.com/unwindd/unwindd/sdk"
)

// fileEngine is an engine of the bytes of a file.
type fileEngine struct {
	sdk.Engine
	data  []byte
	reads int
}

func (e *fileEngine) ReadMemory(_ context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	e.reads++
	if m.Space != sdk.FileSpace || m.Address > uint64(len(e.data)) {
		return 0, fmt.Errorf("nothing at %#x of space %d", m.Address, m.Space)
	}
	n := copy(buf, e.data[m.Address:])
	if n < len(buf) {
		return n, fmt.Errorf("%d of %d bytes at %#x", n, len(buf), m.Address)
	}
	return n, nil
}

// testMachine has the numbers of the tests.
var testMachine = Machine{
	PC: 1, ErrorPC: 2, CC: 3, RPC: 4, Lanes: 6, General: RegisterRange{0x100, 255}, Predicates: RegisterRange{0x200, 7},
	Uniform: RegisterRange{0x300, 63}, UniformPredicates: RegisterRange{0x400, 7}, Barriers: RegisterRange{0x500, 16},
	Local: 6, Shared: 8, Const: 4, Parameters: 7, IsKnown: func(string) bool { return true },
}

// headerOf reads the ELF header of a core, as the engine does.
func headerOf(data []byte) *sdk.TargetFile {
	le := binary.LittleEndian
	h := &sdk.TargetFile{
		Machine: le.Uint16(data[18:]), OSABI: data[7], Size: uint64(len(data)), SectionsOffset: le.Uint64(data[40:]),
		SectionSize: uint32(le.Uint16(data[58:])), Sections: uint64(le.Uint16(data[60:])), SectionNames: uint32(le.Uint16(data[62:])),
	}
	first := data[min(h.SectionsOffset, uint64(len(data))):]
	if h.Sections == 0 && len(first) >= 64 {
		h.Sections = le.Uint64(first[32:])
	}
	if h.SectionNames == 0xffff && len(first) >= 64 {
		h.SectionNames = le.Uint32(first[40:])
	}
	return h
}

// readCore reads a core of bytes.
func readCore(t testing.TB, data []byte) *sdk.OpenTargetAnswer {
	t.Helper()
	a, err := Read(t.Context(), &fileEngine{data: data}, headerOf(data), &testMachine)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// checker compares an answer with the description of a core.
type checker struct {
	*testing.T
	core    *corefile.Core
	data    []byte
	threads map[string]*sdk.TargetThread
	seen    int
	lanes   int
}

// TestMadeCores reads cores of all drivers, whose every value is random, and finds each
// register, each byte of memory and each exception as it was put in.
func TestMadeCores(t *testing.T) {
	for _, driver := range corefile.Drivers {
		t.Run(fmt.Sprint(driver), func(t *testing.T) {
			for seed := range uint64(12) {
				core := corefile.Random(seed, driver, corefile.Shape{Devices: 2, SMs: 4, Blocks: 3, Warps: 4, Registers: 40, Local: 200})
				data := core.Build().Bytes()
				a := readCore(t, data)
				c := checker{T: t, core: core, data: data, threads: map[string]*sdk.TargetThread{}}
				for i := range a.Threads {
					c.threads[a.Threads[i].ID] = &a.Threads[i]
				}
				if len(c.threads) != len(a.Threads) {
					t.Fatalf("seed %d: %d IDs of %d threads", seed, len(c.threads), len(a.Threads))
				}
				for _, p := range a.Problems {
					if !strings.Contains(p, "which is that of none of its lanes") && !strings.Contains(p, "expected a 64-bit ELF file") {
						t.Errorf("seed %d: problem %q", seed, p)
					}
				}
				c.launches(a)
				c.warps()
				if c.seen != len(a.Threads) {
					t.Errorf("seed %d: %d threads, expected %d", seed, len(a.Threads), c.seen)
				}
			}
		})
	}
}

// bytes returns the bytes of the file in which memory is.
func (c *checker) bytes(m sdk.SpaceMemory) []byte {
	if m.Into != sdk.FileSpace || m.Address > uint64(len(c.data)) || m.Size > uint64(len(c.data))-m.Address {
		c.Fatalf("memory %+v is not in the file", m)
	}
	return c.data[m.Address:][:m.Size]
}

// memory returns the bytes of a space.
func (c *checker) memory(list []sdk.SpaceMemory, space int) (start uint64, data []byte) {
	for _, m := range list {
		if int(m.Space) == space { //nolint:gosec // small
			return m.Start, c.bytes(m)
		}
	}
	return 0, nil
}

// registers compares registers in the file.
func (c *checker) registers(what string, list []sdk.SavedRegisters, r RegisterRange, want []uint32) {
	c.Helper()
	want = want[:min(len(want), int(r.Count))]
	for _, s := range list {
		if s.First != r.First {
			continue
		}
		if int(s.Count) != len(want) || s.Into != sdk.FileSpace {
			c.Errorf("%s: %d registers from %#x on, expected %d in the file", what, s.Count, s.First, len(want))
			return
		}
		for i, v := range want {
			if got := binary.LittleEndian.Uint32(c.data[s.Address+uint64(4*i):]); got != v { //nolint:gosec // small
				c.Errorf("%s: register %#x+%d is %#x, expected %#x", what, r.First, i, got, v)
			}
		}
		return
	}
	if len(want) > 0 {
		c.Errorf("%s: no registers from %#x on, expected %d", what, r.First, len(want))
	}
}

// register compares a register of a thread.
func (c *checker) register(t *sdk.TargetThread, number uint32, want uint64) {
	c.Helper()
	if got, ok := t.Registers.Uint64(number, sdk.LittleEndian); !ok || got != want {
		c.Errorf("%s: register %d is %#x, %v, expected %#x", t.ID, number, got, ok, want)
	}
}

func (c *checker) launches(a *sdk.OpenTargetAnswer) {
	for _, m := range c.core.Global {
		i := slices.IndexFunc(a.Memory, func(s sdk.SpaceMemory) bool { return s.Start == m.Address && s.Space == 0 })
		if i < 0 || !bytes.Equal(c.bytes(a.Memory[i]), m.Data) {
			c.Errorf("the memory at %#x is missing, or different", m.Address)
		}
	}
	grids, contexts, modules := 0, 0, 0
	for i := range c.core.Devices {
		d := &c.core.Devices[i]
		if got := a.Agents[i]; got.ID != fmt.Sprint(d.ID) || got.Processor != d.SM {
			c.Errorf("device %d is %+v", i, got)
		}
		contexts += len(d.Contexts)
		for j := range d.Contexts {
			for _, m := range d.Contexts[j].Modules {
				modules++
				if !slices.ContainsFunc(a.Objects, func(o sdk.TargetObject) bool {
					return o.Into == sdk.FileSpace && bytes.Equal(c.data[o.MemoryAddress:][:o.Size], m.Relocated)
				}) {
					c.Errorf("module %#x is missing", m.Handle)
				}
			}
		}
		for j := range d.Grids {
			g, got := &d.Grids[j], &a.Dispatches[grids]
			if c.core.Seed == 0 && (got.Entry != g.Entry || got.Group != g.Block || got.Grid != [3]uint32{g.Blocks[0] * g.Block[0], g.Blocks[1] * g.Block[1], g.Blocks[2] * g.Block[2]}) {
				c.Errorf("grid %d is %+v, expected %+v", j, got, g)
			}
			grids++
		}
	}
	if len(a.Queues) != contexts || len(a.Objects) != modules || len(a.Dispatches) != grids {
		c.Errorf("%d contexts, %d objects, %d grids, expected %d, %d, %d", len(a.Queues), len(a.Objects), len(a.Dispatches), contexts, modules, grids)
	}
}

// place is a PC and recorded callers, which the lanes of a group share.
type place struct {
	pc     uint64
	frames string
}

func placeOf(l *corefile.Lane) place {
	list := slices.Clone(l.Frames)
	slices.SortFunc(list, func(a, b corefile.Frame) int { return int(a.Level) - int(b.Level) })
	return place{l.PC, fmt.Sprint(list)}
}

func (c *checker) warps() {
	for i := range c.core.Devices {
		d := &c.core.Devices[i]
		for j := range d.SMs {
			m := &d.SMs[j]
			hasLanes := false
			for k := range m.Blocks {
				for l := range m.Blocks[k].Warps {
					hasLanes = c.warp(d, m, &m.Blocks[k], &m.Blocks[k].Warps[l]) || hasLanes
				}
			}
			if m.Exception != 0 && !hasLanes && c.core.Driver >= 555 {
				c.seen++
				t := c.threads[fmt.Sprintf("d%d.sm%d", d.ID, m.ID)]
				if t == nil || !t.HasCrashed || (t.Problem == "") != m.HasErrorPC {
					c.Errorf("no thread stands for the exception of SM %d: %+v", m.ID, t)
				}
			}
		}
	}
}

// warp compares the threads of a warp.
func (c *checker) warp(d *corefile.Device, m *corefile.SM, b *corefile.Block, w *corefile.Warp) (hasLanes bool) {
	groups := map[place][]*corefile.Lane{}
	for i := range w.Lanes {
		if l := &w.Lanes[i]; w.Valid>>l.Number&1 != 0 {
			groups[placeOf(l)] = append(groups[placeOf(l)], l)
		}
	}
	for _, lanes := range groups {
		id := fmt.Sprintf("d%d.sm%d.w%d", d.ID, m.ID, w.ID)
		if len(groups) > 1 {
			id = fmt.Sprintf("%s:%d", id, lanes[0].Number)
		}
		t := c.threads[id]
		if t == nil {
			c.Errorf("there is no thread %s", id)
			continue
		}
		c.seen++
		c.thread(t, d, b, w, lanes)
	}
	return len(groups) > 0
}

func (c *checker) thread(t *sdk.TargetThread, d *corefile.Device, b *corefile.Block, w *corefile.Warp, lanes []*corefile.Lane) {
	mask := uint64(0)
	lead := lanes[0]
	if i := slices.IndexFunc(lanes, func(l *corefile.Lane) bool { return l.Exception != 0 }); i >= 0 {
		lead = lanes[i]
	}
	for _, l := range lanes {
		mask |= 1 << l.Number
	}
	c.register(t, testMachine.PC, lead.PC)
	c.register(t, testMachine.Lanes, mask)
	if w.HasErrorPC {
		c.register(t, testMachine.ErrorPC, w.ErrorPC)
	}
	if t.Lanes != 32 || t.Processor != "sm_90" || t.Wave.Group != b.Index || len(t.LaneStates) != len(lanes) || len(t.Callers) != len(lead.Frames) {
		c.Errorf("%s: %d lanes of %s, group %v, %d states, %d callers", t.ID, t.Lanes, t.Processor, t.Wave.Group, len(t.LaneStates), len(t.Callers))
	}
	if lead.Exception != 0 && (t.Lead != lead.Number || !t.HasCrashed || !slices.Contains(t.Stop.Details, exceptionOf(lead.Exception).name)) {
		c.Errorf("%s: lane %d, %+v, expected exception %d of lane %d", t.ID, t.Lead, t.Stop, lead.Exception, lead.Number)
	}
	for _, f := range lead.Frames {
		if t.Callers[f.Level] != f.Address {
			c.Errorf("%s: caller %d is %#x, expected %#x", t.ID, f.Level, t.Callers[f.Level], f.Address)
		}
	}
	c.shared(t, d, b, w)
	for i, l := range lanes {
		s := &t.LaneStates[i]
		what := fmt.Sprintf("%s lane %d", t.ID, l.Number)
		if s.Lane != l.Number {
			c.Errorf("%s: it is lane %d", what, s.Lane)
		}
		c.lanes++
		c.registers(what, s.Saved, testMachine.General, l.Registers)
		c.registers(what, s.Saved, testMachine.Predicates, l.Predicates)
		c.returnPC(t, s, l)
		if start, data := c.memory(s.Memory, 6); !bytes.Equal(data, l.Local) || len(data) > 0 && start != l.LocalStart {
			c.Errorf("%s: %d bytes of local memory at %#x", what, len(data), start)
		}
		if l.Number == t.Lead {
			c.registers(t.ID, t.Saved, testMachine.General, l.Registers)
			if _, data := c.memory(t.Memory, 6); !bytes.Equal(data, l.Local) {
				c.Errorf("%s: %d bytes of local memory", t.ID, len(data))
			}
		}
	}
}

// returnPC compares the return PC of a lane, which is the thread's where all lanes have the same.
func (c *checker) returnPC(t *sdk.TargetThread, s *sdk.LaneState, l *corefile.Lane) {
	registers := &s.Registers
	if len(registers.Numbers) == 0 {
		registers = &t.Registers
	}
	for i, want := range l.RPC {
		got, ok := registers.Uint64(testMachine.RPC+uint32(i), sdk.LittleEndian) //nolint:gosec // two
		if has := c.core.Driver >= 615; ok != has || has && got != uint64(want) {
			c.Errorf("%s lane %d: half %d of the return PC is %#x, %v, expected %#x", t.ID, l.Number, i, got, ok, want)
		}
	}
}

// shared compares the state that the lanes of a warp have in common.
func (c *checker) shared(t *sdk.TargetThread, d *corefile.Device, b *corefile.Block, w *corefile.Warp) {
	if c.core.Driver >= 400 {
		c.registers(t.ID, t.Saved, testMachine.Uniform, w.Uniform)
		c.registers(t.ID, t.Saved, testMachine.UniformPredicates, w.UniformPredicates)
	}
	if c.core.Driver >= 575 {
		c.registers(t.ID, t.Saved, testMachine.Barriers, w.Barriers)
	}
	if _, data := c.memory(t.Memory, 8); !bytes.Equal(data, b.Shared) {
		c.Errorf("%s: %d bytes of shared memory, expected %d", t.ID, len(data), len(b.Shared))
	}
	g := &d.Grids[slices.IndexFunc(d.Grids, func(g corefile.Grid) bool { return g.ID == b.Grid })]
	if start, data := c.memory(t.Memory, 7); !bytes.Equal(data, g.Parameters) || start != g.ParametersAt {
		c.Errorf("%s: %d bytes of parameters at %#x", t.ID, len(data), start)
	}
	banks := 0
	for _, m := range t.Memory {
		if m.Space == testMachine.Const {
			if want := g.Banks[banks]; m.Start != want.Address || m.Address != want.Address || m.Size != uint64(want.Size) || m.Into != 0 {
				c.Errorf("%s: constant bank %+v, expected %+v", t.ID, m, want)
			}
			banks++
		}
	}
	if c.core.Driver >= 550 && banks != len(g.Banks) {
		c.Errorf("%s: %d constant banks, expected %d", t.ID, banks, len(g.Banks))
	}
	launcher := g.HostThread
	if i := slices.IndexFunc(d.Contexts, func(x corefile.Context) bool { return x.ID == g.Context }); launcher == 0 {
		launcher = d.Contexts[i].HostThread
	}
	if t.LauncherThread != fmt.Sprint(launcher) || t.LaunchEvidence != "queue" {
		c.Errorf("%s: launched by %s (%s), expected %d", t.ID, t.LauncherThread, t.LaunchEvidence, launcher)
	}
}

// TestManySections reads a core with more sections than the ELF header can count.
func TestManySections(t *testing.T) {
	const warps = 528
	data := manyWarps(warps).Build().Bytes()
	if n := binary.LittleEndian.Uint16(data[60:]); n != 0 {
		t.Fatalf("the header counts %d sections, expected 0", n)
	}
	a := readCore(t, data)
	if len(a.Threads) != warps || len(a.Problems) > 0 || len(a.Threads[warps-1].LaneStates) != lanesOfWarp {
		t.Errorf("%d threads, problems %q", len(a.Threads), a.Problems)
	}
}
