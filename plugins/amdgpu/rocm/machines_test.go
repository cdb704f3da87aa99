// SPDX-License-Identifier: Apache-2.0

package rocm_test

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// madeCore is a core of the writer's as a plugin sees it.
func madeCore(t testing.TB, im *corefile.Image) *testMemory {
	t.Helper()
	core, gpu, err := im.Files()
	if err != nil {
		t.Fatal(err)
	}
	m := &testMemory{}
	for _, f := range []*corefile.File{core, gpu} {
		if f == nil {
			continue
		}
		b, err := f.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		part, _ := memoryOf(t, b)
		for address, bytes := range part.parts {
			m.put(address, bytes)
		}
	}
	return m
}

// detailReasons are the reasons of AMD's library by what the machine says.
var detailReasons = map[string]string{
	"INVALID": "fp_invalid_operation", "DENORM": "fp_input_denormal", "INPUT_DENORM": "fp_input_denormal",
	"DIV0": "fp_divide_by_0", "FLOAT_DIV0": "fp_divide_by_0", "OVERFLOW": "fp_overflow", "UNDERFLOW": "fp_underflow",
	"INEXACT": "fp_inexact", "INT_DIV0": "int_divide_by_0", "ADDR_WATCH": "watchpoint", "ADDR_WATCH0": "watchpoint",
	"ADDR_WATCH1": "watchpoint", "ADDR_WATCH2": "watchpoint", "ADDR_WATCH3": "watchpoint", "MEM_VIOL": "address_error",
	"MEMVIOL": "address_error", "ILLEGAL_INST": "illegal_instruction", "XNACK_ERROR": "memory_violation",
	"WAVE_BEGIN": "trap", "WAVE_START": "trap", "WAVE_END": "trap", "TRAP_AFTER_INST": "single_step",
	"s_trap 1": "breakpoint", "s_trap 2": "assert_trap", "s_trap 3": "debug_trap",
}

// reasonsOf are the reasons that AMD's library would give a wave.
func reasonsOf(w *sdk.TargetThread) []string {
	list := []string{}
	details := w.Stop.Details
	if w.Stop.Reason == "trap" && w.Stop.HasTrapID {
		details = append(slices.Clone(details), fmt.Sprintf("s_trap %d", w.Stop.TrapID))
	}
	for _, d := range details {
		name := d
		if _, after, ok := strings.Cut(d, "."); ok {
			name = after
		}
		name = strings.TrimPrefix(name, "ALU_")
		r := detailReasons[name]
		if r == "" && strings.HasPrefix(name, "s_trap") {
			r = "trap"
		}
		if r != "" {
			list = append(list, r)
		}
	}
	if slices.Contains(list, "memory_violation") {
		list = slices.DeleteFunc(list, func(s string) bool { return s == "address_error" })
	}
	slices.Sort(list)
	return slices.Compact(list)
}

var description = amdgpu.Description()

// names are the writer's names of registers by their numbers.
var names = func() map[uint32]string {
	names := map[uint32]string{}
	short := strings.NewReplacer("SGPR", "s", "VGPR", "v", "AGPR", "a", "EXEC", "exec", "VCC", "vcc", "PC", "pc", "STATUS", "status")
	for _, r := range description.Registers {
		for n := r.First; n < r.First+r.Count; n++ {
			info, _ := description.Register(n)
			names[n] = short.Replace(info.Name)
		}
	}
	return names
}()

// registersOf are the registers of a wave by the names of the writer.
func registersOf(t *testing.T, m *testMemory, w *sdk.TargetThread) map[string]string {
	t.Helper()
	found := map[string]string{}
	name := func(n uint32) string { return names[n] }
	for i, n := range w.Registers.Numbers {
		found[name(n)] = hex.EncodeToString(w.Registers.Data[w.Registers.Offsets[i]:w.Registers.Offsets[i+1]])
	}
	for _, s := range w.Saved {
		size := 4
		if s.First >= 1536 {
			size = int(w.Lanes) * 4
		}
		for i := range s.Count {
			b := make([]byte, size)
			if _, err := m.ReadMemory(t.Context(), sdk.MemoryRange{Address: s.Address + uint64(i)*uint64(size)}, b); err != nil {
				t.Errorf("%s: %s: %v", w.Name, name(s.First+i), err)
			}
			if _, ok := found[name(s.First+i)]; ok {
				t.Errorf("%s: %s is there twice", w.Name, name(s.First+i))
			}
			found[name(s.First+i)] = hex.EncodeToString(b)
		}
	}
	return found
}

// A waveCheck holds a wave against what was put into the core.
type waveCheck struct {
	*testing.T
	m      *testMemory
	answer *sdk.OpenTargetAnswer
	wave   *sdk.TargetThread
	want   *corefile.WaveState
}

func (c *waveCheck) equal(what string, got, want any) {
	c.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.Errorf("%s, queue %d, wave %d: %s is %v, expected %v", c.wave.Name, c.want.Queue, c.want.Ordinal, what, got, want)
	}
}

// identity holds what the wave is.
func (c *waveCheck) identity() {
	w, want := c.wave, c.want
	c.equal("processor", w.Processor, want.Machine)
	c.equal("lanes", w.Lanes, want.Lanes)
	c.equal("has group", w.Wave.HasGroup, want.Group != nil)
	if want.Group != nil {
		c.equal("group", w.Wave.Group, *want.Group)
		c.equal("wave in group", w.Wave.InGroup, *want.Position)
	}
	c.equal("has dispatch", w.Wave.Dispatch != "", want.Dispatch != nil)
	if want.Dispatch != nil && w.Wave.Dispatch != "" {
		i := slices.IndexFunc(c.answer.Dispatches, func(d sdk.TargetDispatch) bool { return d.ID == w.Wave.Dispatch })
		d := c.answer.Dispatches[i]
		c.equal("grid", d.Grid, want.Dispatch.Grid)
		c.equal("group size", d.Group, want.Dispatch.Group)
		c.equal("signal", fmt.Sprintf("%#x", d.Signal), want.Dispatch.Completion)
	}
}

// stop holds whether it stopped, where and why.
func (c *waveCheck) stop(version uint32) {
	w, want := c.wave, c.want
	c.equal("running", w.IsRunning, !want.IsStop)
	c.equal("halted", slices.Contains(w.Stop.Details, "HALT"), want.IsHalted)
	pc, _ := strconv.ParseUint(want.PC, 0, 64)
	if want.IsStop {
		c.equal("reasons", reasonsOf(w), want.Reasons)
		trap := corefile.MachineNamed(want.Machine).TrapID
		b, _ := hex.DecodeString(want.Registers[fmt.Sprintf("ttmp%d", trap.Reg-corefile.TTMP0)])
		if le.Uint32(b)>>trap.Low&(1<<trap.Width-1) != 0 && version < 12 {
			pc -= 4 // the PC of the trap instruction
		}
	}
	got, _ := w.Registers.Uint64(16, sdk.LittleEndian)
	c.equal("PC", fmt.Sprintf("%#x", got), fmt.Sprintf("%#x", pc))
}

// registers holds each register that has a number: neither the vector registers that
// halves of a wave share, nor those that it gave back.
func (c *waveCheck) registers() {
	w, want := c.wave, c.want
	registers := registersOf(c.T, c.m, w)
	for name, value := range want.Registers {
		isVector := name[0] == 'v' && name != "vcc" || name[0] == 'a'
		number, err := strconv.Atoi(name[1:])
		isGiven := name == "exec" || name == "vcc" || err == nil && (name[0] == 's' || isVector)
		switch {
		case !isGiven, isVector && len(value) != want.Lanes*8, isVector && number >= 256 && want.Lanes == 64,
			isVector && registers[name] == "" && len(w.Saved) == 2:
		default:
			c.equal(name, registers[name], value)
			delete(registers, name)
		}
	}
	b, _ := hex.DecodeString(want.Registers["status"])
	status := le.Uint32(b) &^ (1<<5 | 1<<13 | 1<<18)
	if want.IsHalted {
		status |= 1 << 13
	}
	if strings.HasPrefix(want.Machine, "gfx12") {
		status = le.Uint32(b) &^ (1 << 5)
	}
	c.equal("STATUS", registers["status"], hex.EncodeToString(le.AppendUint32(nil, status)))
	delete(registers, "pc")
	delete(registers, "status")
	if len(registers) > 0 {
		c.Errorf("%s: registers that it does not have: %v", w.Name, registers)
	}
}

// memory holds the bytes of local and private memory.
func (c *waveCheck) memory() {
	local, private := "", ""
	for _, s := range c.wave.Memory {
		b := make([]byte, s.Size)
		if _, err := c.m.ReadMemory(c.Context(), sdk.MemoryRange{Address: s.Address}, b); err != nil {
			c.Errorf("%s: space %d: %v", c.wave.Name, s.Space, err)
		}
		switch s.Space {
		case 3:
			local = hex.EncodeToString(b)
		case 6:
			private = hex.EncodeToString(b)
			c.equal("private memory's address", fmt.Sprintf("%#x", s.Address), c.want.ScratchAddress)
		}
	}
	c.equal("local memory", local, c.want.LDS)
	c.equal("private memory", private, c.want.Scratch)
}

// holdCore reads a core and holds each wave against what was put into it.
func holdCore(t *testing.T, what string, core *corefile.Core) (waves int) {
	t.Helper()
	im, err := core.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := madeCore(t, im)
	a := readCore(t, m, im.Note())
	if len(a.Problems) > 0 {
		t.Errorf("%s: %q", what, a.Problems)
	}
	if err := im.Waves(func(want *corefile.WaveState) error {
		if waves < len(a.Threads) {
			c := &waveCheck{t, m, a, &a.Threads[waves], want}
			c.identity()
			c.stop(core.RuntimeVersion)
			c.registers()
			c.memory()
		}
		waves++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if waves != len(a.Threads) {
		t.Errorf("%s: %d waves, expected %d", what, len(a.Threads), waves)
	}
	for i, o := range im.CodeObjects() {
		if i >= len(a.Objects) || a.Objects[i].URI != o.URI || fmt.Sprintf("%#x", a.Objects[i].Bias) != o.Load {
			t.Errorf("%s: code object %d is not %+v", what, i, o)
		}
	}
	return waves
}

// TestEveryMachine reads what the writer made of random states, for every
// processor, version of the runtime and layout, and finds what was put in.
func TestEveryMachine(t *testing.T) {
	waves := 0
	for _, machine := range corefile.Machines() {
		t.Run(machine.Name, func(t *testing.T) {
			for version := uint32(8); version <= 12; version++ {
				for i, layout := range []corefile.Layout{corefile.Unified, corefile.Split, corefile.Merged} {
					core := corefile.Random(rand.New(rand.NewPCG(uint64(version), uint64(i))), layout, version, machine)
					waves += holdCore(t, fmt.Sprintf("version %d, layout %d", version, layout), core)
				}
			}
		})
	}
	t.Logf("%d waves", waves)
}

// TestRareStates reads what random states do not have.
func TestRareStates(t *testing.T) {
	groups := func(processor string, change func(i int, q *corefile.Queue, g *corefile.Group)) *corefile.Core {
		core := corefile.Random(rand.New(rand.NewPCG(3, 1)), corefile.Unified, 12, corefile.MachineNamed(processor))
		for i := range core.Agents {
			for j := range core.Agents[i].Queues {
				q := &core.Agents[i].Queues[j]
				for k := range q.Groups {
					change(k, q, &q.Groups[k])
				}
			}
		}
		return core
	}
	for what, core := range map[string]*corefile.Core{
		"a group has all local memory": groups("gfx1200", func(i int, _ *corefile.Queue, g *corefile.Group) { g.WholeLDS = i%2 == 0 }),
		"groups are in clusters":       groups("gfx1250", func(_ int, _ *corefile.Queue, g *corefile.Group) { g.Cluster = [3]uint32{4, 2, 1} }),
		"every packet of the ring is in use": groups("gfx1030", func(i int, q *corefile.Queue, _ *corefile.Group) {
			if i > 0 {
				return
			}
			q.ReadID |= 3
			q.WriteID = q.ReadID + uint64(q.Packets)
			for k := range q.Dispatches {
				q.Dispatches[k].ID = q.ReadID + uint64(k)
			}
		}),
	} {
		if holdCore(t, what, core) == 0 {
			t.Errorf("%s: no waves", what)
		}
	}
}

// TestKernel finds what kernel a wave is of, by the symbols of the code object where
// it is loaded, or else by those of its file in memory; and where the trap is that
// stopped it, by its code.
func TestKernel(t *testing.T) {
	file, err := os.ReadFile("../testdata/amd_k.gfx1100.co")
	if err != nil {
		t.Fatal(err)
	}
	e, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := e.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	const load = 0x7e00_0000_0000
	kernels := 0
	for _, s := range symbols {
		name, isDescriptor := strings.CutSuffix(s.Name, ".kd")
		if !isDescriptor {
			continue
		}
		kernels++
		entry := symbols[slices.IndexFunc(symbols, func(o elf.Symbol) bool { return o.Name == name })].Value + load
		for _, isUnloaded := range []bool{false, true} {
			core := &corefile.Core{PID: 1, RuntimeVersion: 12, CodeObjects: []corefile.CodeObject{{Image: file, Load: load, Unloaded: isUnloaded}}}
			if !isUnloaded {
				core.CodeObjects[0].URI = "file:///no/such/file"
			}
			core.Agents = []corefile.Agent{{Machine: corefile.MachineNamed("gfx1100"), GPUID: 1, XCCs: 1, ShaderEngines: 1, Queues: []corefile.Queue{{
				Packets: 4, WriteID: 1, Dispatches: []corefile.Dispatch{{KernelObject: s.Value + load, Grid: [3]uint32{64, 1, 1}}},
				Groups: []corefile.Group{{Lanes: 32, Waves: []corefile.Wave{{PC: entry, Stopped: true, TrapID: 2}}}},
			}}}}
			im, err := core.Build()
			if err != nil {
				t.Fatal(err)
			}
			a := readCore(t, madeCore(t, im), im.Note())
			if len(a.Threads) != 1 || a.Threads[0].Wave.Kernel != name || len(a.Problems) > 0 {
				t.Errorf("%s, unloaded %v: %+v, problems %q", name, isUnloaded, a.Threads, a.Problems)
			}
			if d := a.Dispatches[0]; !isUnloaded && d.Entry != entry {
				t.Errorf("%s: entry %#x, expected %#x", name, d.Entry, entry)
			}
			if !isUnloaded {
				damageObject(t, im, load, name)
			}
		}
	}
	if kernels == 0 {
		t.Error("the code object has no kernels")
	}
}

// damageObject changes each word of what leads to the symbols of a code object: the
// kernel's name is found or not, and the wave is there.
func damageObject(t *testing.T, im *corefile.Image, load uint64, name string) {
	t.Helper()
	m := madeCore(t, im)
	part := m.parts[load]
	if len(part) < 0x400 {
		t.Fatalf("%d bytes of the code object are loaded", len(part))
	}
	for at := 0; at+8 <= min(len(part), 0x400); at += 8 {
		before := le.Uint64(part[at:])
		for _, lie := range []uint64{0, 1, before + 1, 1 << 32, 1<<64 - 1, 1<<63 - 1} {
			le.PutUint64(part[at:], lie)
			reads := m.reads.Load()
			a := readCore(t, m, im.Note())
			if w := a.Threads; len(w) != 1 || w[0].Wave.Kernel != name && w[0].Wave.Kernel != "" || m.reads.Load()-reads > 10_000 {
				t.Errorf("%#x at offset %#x for %#x: %+v, %d reads", lie, at, before, w, m.reads.Load()-reads)
			}
		}
		le.PutUint64(part[at:], before)
	}
}

// TestTrapPC finds the trap instruction that stopped a wave: where the runtime's
// version says that the PC is, unless the code there says otherwise.
func TestTrapPC(t *testing.T) {
	const nop, trap2, pc = 0xbf80_0000, 0xbf90_0002, 0x7e00_0000_1000
	for _, c := range []struct {
		version       uint32
		before, saved uint32 // the instructions
		want          uint64
		trap          uint8
	}{
		{11, trap2, nop, pc - 4, 2}, {11, trap2, trap2, pc - 4, 2}, {11, nop, trap2, pc, 2}, {11, nop, nop, pc - 4, 2},
		{12, nop, trap2, pc, 2}, {12, trap2, trap2, pc, 2}, {12, trap2, nop, pc - 4, 2}, {12, nop, nop, pc, 2},
		{12, trap2 + 1, nop, pc, 2}, {11, 0, 0, pc - 4, 2}, {12, 0, 0, pc, 2},
		{12, trap2 + 13, nop, pc - 4, 15}, {12, trap2 + 90, nop, pc - 4, 15}, {12, trap2 + 12, nop, pc, 15}, {11, nop, trap2 + 90, pc, 15},
	} {
		wave := corefile.Wave{PC: pc, Stopped: true, TrapID: c.trap}
		if c.version < 12 {
			wave.PC -= 4 // the writer adds it
		}
		core := &corefile.Core{PID: 1, RuntimeVersion: c.version}
		core.Agents = []corefile.Agent{{Machine: corefile.MachineNamed("gfx1100"), GPUID: 1, XCCs: 1, ShaderEngines: 1, Queues: []corefile.Queue{{
			Packets: 4, WriteID: 1, Dispatches: []corefile.Dispatch{{Grid: [3]uint32{64, 1, 1}}},
			Groups: []corefile.Group{{Lanes: 32, Waves: []corefile.Wave{wave}}},
		}}}}
		if c.before != 0 {
			core.Memory = []corefile.Memory{{Address: pc&^0xfff - 0x1000, Data: append(make([]byte, 0x1000-4), le.AppendUint32(le.AppendUint32(nil, c.before), c.saved)...)}}
		}
		im, err := core.Build()
		if err != nil {
			t.Fatal(err)
		}
		a := readCore(t, madeCore(t, im), im.Note())
		w := &a.Threads[0]
		if got, _ := w.Registers.Uint64(16, sdk.LittleEndian); got != c.want || !w.HasCrashed || w.Stop.HasTrapID != (c.trap < 15) || w.Stop.Reason != "trap" || !w.Stop.IsPCExact {
			t.Errorf("%+v: PC %#x, stop %+v", c, got, w.Stop)
		}
	}
}
