// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
	"github.com/unwindd/unwindd/internal/gcn"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// The files rocmcore_*_test.go hold cores of ROCm against what was put into them:
// waves that the executor stopped, as a core and as a snapshot, and random states.

// A stoppedWave is a wave of the executor at some instruction, with the calls that were in
// progress.
type stoppedWave struct {
	pc, exec uint64
	scalar   [128]uint32
	vector   []uint32
	scratch  []byte
	local    []byte
	stack    []uint64 // the PC, and the return addresses, innermost first
}

// stoppedWaves are waves of one kernel of an object, with the memory of its process.
type stoppedWaves struct {
	object *gcn.Object
	kernel *gcn.Kernel
	waves  []stoppedWave
	memory map[uint64]*[gcn.Page]byte
	items  int
}

// stopGCN executes a kernel, and keeps so many of its states: spread over what it
// executes, most of them within calls.
func stopGCN(t testing.TB, o *gcn.Object, k *gcn.Kernel, seed uint64, most int) *stoppedWaves {
	t.Helper()
	w := &stoppedWaves{object: o, kernel: k, items: o.Processor.Lanes - 9}
	steps := w.execute(t, seed, func(int) bool { return false })
	random := rand.New(rand.NewPCG(seed, 3))
	chosen := map[int]bool{}
	for range most {
		chosen[random.IntN(steps)] = true
	}
	w.execute(t, seed, func(step int) bool { return chosen[step] })
	return w
}

func (w *stoppedWaves) execute(t testing.TB, seed uint64, isChosen func(step int) bool) (steps int) {
	t.Helper()
	s, err := w.object.Launch(w.kernel, rand.New(rand.NewPCG(seed, 2)), w.items)
	if err != nil {
		t.Fatal(err)
	}
	var calls []uint64
	s.OnCall = func(back uint64) error { calls = append(calls, back); return nil }
	s.OnReturn = func(to uint64) error {
		if n := len(calls); n > 0 && to == calls[n-1] {
			calls = calls[:n-1]
		}
		return nil
	}
	for !s.Ended && s.Steps < gcn.MaxSteps {
		if isChosen(s.Steps) {
			stack := append([]uint64{s.PC}, calls...)
			slices.Reverse(stack[1:])
			w.waves = append(w.waves, stoppedWave{
				pc: s.PC, exec: s.Exec(), scalar: s.Scalar, vector: slices.Clone(s.Vector),
				scratch: bytes.Clone(s.Scratch[:(s.Deepest+0x3fff)&^0x3fff]), local: bytes.Clone(s.Local[:w.kernel.Group]), stack: stack,
			})
		}
		if err := s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	w.memory = s.Memory
	return s.Steps
}

// scratchSize is the size of the private memory of each wave.
func (w *stoppedWaves) scratchSize() (size int) {
	for i := range w.waves {
		size = max(size, len(w.waves[i].scratch))
	}
	return size
}

// vectors are how many vector and accumulation registers the waves have.
func (w *stoppedWaves) vectors() (vectors, accs int) {
	up := func(n int) int { return min((n+15)/16*16, 256) }
	vectors = up(max(w.object.VectorRegisters, 64))
	if w.object.Processor.Acc {
		accs = up(w.object.AccRegisters)
	}
	return vectors, accs
}

// A coreMaker makes cores of waves that the executor stopped.
type coreMaker struct {
	layout  corefile.Layout
	version uint32
	host    []byte
	pid     int
	signal  uint64
	// times is how often each wave is there; 0: once.
	times  int
	queues int // 0: one
	// object is an entry of the runtime's list that is changed: its file may be gone.
	object func(o *corefile.CodeObject)
}

// core describes the process of waves.
func (m *coreMaker) core(w *stoppedWaves) *corefile.Core {
	machine := corefile.MachineNamed(w.object.Processor.Name)
	c := &corefile.Core{Layout: m.layout, PID: max(m.pid, 1), RuntimeVersion: m.version, Host: m.host}
	for _, run := range runsOf(w.memory) {
		c.Memory = append(c.Memory, corefile.Memory{Place: corefile.GPU, Address: run.address, Data: run.data, Executable: run.address >= gcn.CodeBase})
	}
	image, err := os.ReadFile(w.object.Path)
	if err != nil {
		panic(err)
	}
	o := corefile.CodeObject{URI: "file://" + w.object.Path, Image: image, Load: gcn.CodeBase, Unloaded: true}
	if m.object != nil {
		m.object(&o)
	}
	c.CodeObjects = []corefile.CodeObject{o}
	agent := corefile.Agent{Machine: machine, GPUID: 77, TrapHandler: gcn.CodeBase + 0x7000_0000, ShaderEngines: 1}
	for i := range max(m.queues, 1) {
		agent.Queues = append(agent.Queues, m.queue(w, machine, uint32(i))) //nolint:gosec // small
	}
	c.Agents = []corefile.Agent{agent}
	return c
}

func (m *coreMaker) queue(w *stoppedWaves, machine *corefile.Machine, id uint32) corefile.Queue {
	items := uint16(w.items) //nolint:gosec // at most 64
	times := max(m.times, 1)
	scratch := uint64(w.scratchSize()) //nolint:gosec // positive
	slots := uint64(len(w.waves))
	q := corefile.Queue{
		ID: id, Packets: 64, ReadID: 130, WriteID: 133,
		Scratch: corefile.Scratch{Waves: slots, WaveBytes: scratch},
		Dispatches: []corefile.Dispatch{{
			ID: 130, Header: 1, Dimensions: 1, Group: [3]uint16{items, 1, 1}, Grid: [3]uint32{uint32(items), 1, 1},
			KernelObject: gcn.CodeBase + w.kernel.Descriptor, Arguments: gcn.ArgumentsAddress, Completion: m.signal,
		}},
	}
	n := 0
	for k := range times {
		for i := range w.waves {
			wave := w.waves[i].described(w, machine)
			wave.HasScratch, wave.ScratchSlot = scratch > 0, i // equal waves share it
			if k > 0 {
				wave.Scratch = nil
			}
			if (n+int(id))%3 == 0 && k == 0 {
				wave.Stopped, wave.TrapID = true, 2
			}
			n++
			q.Groups = append(q.Groups, corefile.Group{
				ID: [3]uint32{uint32(n), 0, 0}, Lanes: w.object.Processor.Lanes, LDS: w.waves[i].local, Waves: []corefile.Wave{wave}, //nolint:gosec // small
			})
		}
	}
	return q
}

// described is the content of the record of a wave.
func (s *stoppedWave) described(w *stoppedWaves, machine *corefile.Machine) corefile.Wave {
	vectors, accs := w.vectors()
	lanes := w.object.Processor.Lanes
	wave := corefile.Wave{
		PC: s.pc, Exec: s.exec, VCC: uint64(s.scalar[gcn.VCC]) | uint64(s.scalar[gcn.VCC+1])<<32,
		SGPRs: s.scalar[:machine.AliasEnd-machine.Aliases], VGPRs: s.vector[:vectors*lanes], Scratch: s.scratch,
	}
	if accs > 0 {
		wave.AGPRs = s.vector[256*lanes:][:accs*lanes]
	}
	return wave
}

type memoryRun struct {
	address uint64
	data    []byte
}

// runsOf are the pages of a process, put together.
func runsOf(pages map[uint64]*[gcn.Page]byte) (runs []memoryRun) {
	for _, number := range slices.Sorted(maps.Keys(pages)) {
		address := number * gcn.Page
		if n := len(runs); n > 0 && runs[n-1].address+uint64(len(runs[n-1].data)) == address {
			runs[n-1].data = append(runs[n-1].data, pages[number][:]...)
			continue
		}
		runs = append(runs, memoryRun{address, bytes.Clone(pages[number][:])})
	}
	return runs
}

// withHost gives a core a process of one thread, which has the memory of the devices
// mapped. The kernel writes a program header for such a mapping and nothing of its
// memory.
func withHost(t testing.TB, c *corefile.Core) *corefile.Core {
	t.Helper()
	var loads []elf.ProgHeader
	if c.Layout == corefile.Split {
		im, err := c.Build()
		if err != nil {
			t.Fatal(err)
		}
		_, gpu, err := im.Files()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := gpu.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		f, err := elf.NewFile(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD {
				loads = append(loads, elf.ProgHeader{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_W, Vaddr: p.Vaddr, Memsz: p.Memsz, Align: gcn.Page})
			}
		}
	}
	c.Host = hostBytes(c.PID, loads)
	return c
}

// hostBytes is the core of a process of one thread on x86-64 (NT_PRSTATUS and NT_AUXV) with
// program headers.
func hostBytes(pid int, loads []elf.ProgHeader) []byte {
	le := binary.LittleEndian
	note := func(typ uint32, data []byte) (b []byte) {
		b = le.AppendUint32(b, 5)
		b = le.AppendUint32(b, uint32(len(data))) //nolint:gosec // small
		b = le.AppendUint32(b, typ)
		b = append(b, "CORE\x00\x00\x00\x00"...)
		return append(b, data...)
	}
	status := make([]byte, 336)
	le.PutUint32(status[32:], uint32(pid)) //nolint:gosec // small
	le.PutUint64(status[112+16*8:], 0x40_1000)
	notes := append(note(1, status), note(6, le.AppendUint64(le.AppendUint64(nil, 6), gcn.Page))...)
	header := elf.Header64{
		Type: uint16(elf.ET_CORE), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: uint16(1 + len(loads)), //nolint:gosec // few
	}
	copy(header.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	var b bytes.Buffer
	at := uint64(64 + 56*(1+len(loads))) //nolint:gosec // few
	parts := []any{&header, &elf.Prog64{Type: uint32(elf.PT_NOTE), Off: at, Filesz: uint64(len(notes))}}
	for _, p := range loads {
		parts = append(parts, &elf.Prog64{
			Type: uint32(p.Type), Flags: uint32(p.Flags), Off: at + uint64(len(notes)), Vaddr: p.Vaddr, Filesz: p.Filesz, Memsz: p.Memsz, Align: p.Align,
		})
	}
	for _, part := range append(parts, notes) {
		if err := binary.Write(&b, le, part); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

// writeROCm writes a core, and gives the path of the one to open.
func writeROCm(t testing.TB, c *corefile.Core) (path string, im *corefile.Image) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "core")
	return path, writeROCmTo(t, path, c)
}

func writeROCmTo(t testing.TB, path string, c *corefile.Core) *corefile.Image {
	t.Helper()
	im, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	core, gpu, err := im.Files()
	if err != nil {
		t.Fatal(err)
	}
	if err := core.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	if gpu != nil {
		if err := gpu.WriteFile(path + ".gpu"); err != nil {
			t.Fatal(err)
		}
	}
	return im
}

// A heldState is a target of the same waves that no core is read for: the threads have their
// registers, and their memory is the executor's.
type heldState struct {
	*stoppedWaves
	module  *target.Module
	threads []*trace.Thread
}

// held is the target of waves, behind a thread of the process. They have the names of
// those that are given, and stopped as those did.
func (w *stoppedWaves) held(t testing.TB, like []*trace.Thread) *heldState {
	t.Helper()
	h := &heldState{stoppedWaves: w}
	file, err := object.Open(w.object.Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	h.module = &target.Module{Module: trace.Module{Path: w.object.Path, Arch: "amdgpu"}, Object: file}
	for _, s := range file.Segments() {
		h.module.Segments = append(h.module.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: gcn.CodeBase + s.Address, Executable: s.Executable()})
	}
	h.threads = append(h.threads, &trace.Thread{ID: "1", Arch: "x86_64"})
	for i := range w.waves {
		of := like[i]
		h.threads = append(h.threads, &trace.Thread{
			Handle: uint64(1 + i), ID: of.ID, Name: of.Name, Arch: "amdgpu", Processor: w.object.Processor.Name, //nolint:gosec // not negative
			Lanes: uint32(w.object.Processor.Lanes), Stop: of.Stop, IsRunning: of.IsRunning, Crashed: of.Crashed, //nolint:gosec // 32 or 64
			Registers: w.registers(&w.waves[i]),
			Spaces:    []sdk.SpaceBase{{Space: 3, Base: gcn.SharedAperture}, {Space: 5, Base: gcn.PrivateAperture}},
		})
	}
	return h
}

// registers are the registers of a wave by the numbers of "Register Identifier".
func (w *stoppedWaves) registers(s *stoppedWave) (r sdk.Registers) {
	p := w.object.Processor
	word := binary.LittleEndian.AppendUint32
	exec, vcc, vectorAt, accAt := uint32(17), uint32(768), uint32(2560), uint32(3072)
	if p.Lanes == 32 {
		exec, vcc, vectorAt, accAt = 1, 512, 1536, 2048
	}
	mask := func(first int) []byte {
		return binary.LittleEndian.AppendUint64(nil, uint64(s.scalar[first])|uint64(s.scalar[first+1])<<32)[:p.Lanes/8]
	}
	vectors, accs := w.vectors()
	machine := corefile.MachineNamed(p.Name)
	values := map[uint32][]byte{16: binary.LittleEndian.AppendUint64(nil, s.pc), exec: mask(gcn.Exec), vcc: mask(gcn.VCC), 128: make([]byte, 4)}
	for n := range uint32(machine.AliasEnd - machine.Aliases) { //nolint:gosec // positive
		number := 32 + n
		if n >= 64 {
			number = 1088 + n - 64
		}
		values[number] = word(nil, s.scalar[n])
	}
	wide := func(first uint32, from, count int) {
		for n := range count {
			var b []byte
			for _, v := range s.vector[(from+n)*p.Lanes:][:p.Lanes] {
				b = word(b, v)
			}
			values[first+uint32(n)] = b //nolint:gosec // positive
		}
	}
	wide(vectorAt, 0, vectors)
	wide(accAt, 256, accs)
	for _, number := range slices.Sorted(maps.Keys(values)) {
		r.Set(number, values[number])
	}
	return r
}

func (h *heldState) Info() trace.Target        { return trace.Target{Kind: "waves"} }
func (h *heldState) Modules() []*target.Module { return []*target.Module{h.module} }
func (h *heldState) Threads() []*trace.Thread  { return h.threads }
func (h *heldState) Close() error              { return nil }

func (h *heldState) Mapped(a uint64) (mapped, executable bool) {
	p := h.memory[a/gcn.Page]
	return p != nil, p != nil && a >= gcn.CodeBase
}

func (h *heldState) ReadMemory(_ locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	for i := range buf {
		a := address + uint64(i)
		p := h.memory[a/gcn.Page]
		if p == nil {
			return i, fmt.Errorf("%#x: %w", a, target.ErrNoMemory)
		}
		buf[i] = p[a%gcn.Page]
	}
	return len(buf), nil
}

func (h *heldState) ReadScoped(space locexpr.AddressSpace, th *trace.Thread, address uint64, buf []byte) (int, error) {
	if space == locexpr.DefaultSpace {
		return h.ReadMemory(space, address, buf)
	}
	memory := map[locexpr.AddressSpace][]byte{3: h.waves[th.Handle-1].local, 6: h.waves[th.Handle-1].scratch}[space]
	if address >= uint64(len(memory)) {
		return 0, fmt.Errorf("space %d, %#x: %w", space, address, target.ErrNoMemory)
	}
	n := copy(buf, memory[address:])
	if n < len(buf) {
		return n, fmt.Errorf("%#x: %w", address, target.ErrNoMemory)
	}
	return n, nil
}
