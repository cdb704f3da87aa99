// SPDX-License-Identifier: Apache-2.0

// Command mixed generates mixed.snapshot: the state of a process that waits for four waves
// of two kernels. It is run in the folder examples/mixed, and needs clang 14, clang 22
// and lld for amdgcn, gcc, llvm-objdump and gcore.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/target/snapshot"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/mixed/parts"
	"github.com/unwindd/unwindd/examples/mixed/simt"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mixed:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "mixed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	core, err := hostCore(dir)
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}}})
	if err != nil {
		return err
	}
	defer e.Close()
	t, err := e.Open(core)
	if err != nil {
		return err
	}
	s, err := t.Snapshot(context.Background(), engine.SnapshotOptions{Files: true})
	if err != nil {
		return err
	}
	keepHost(s)
	launcher := s.Contents().Threads[0]
	var waves []*simt.Wave
	for i := range dispatches {
		d := &dispatches[i]
		code := filepath.Join(dir, d.kernel+".co")
		if err := d.compile(code); err != nil {
			return err
		}
		program, executed, err := d.execute(code)
		if err != nil {
			return err
		}
		if err := d.add(s, code, program, executed, launcher.ID); err != nil {
			return err
		}
		waves = append(waves, executed...)
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		return err
	}
	made := filepath.Join(dir, "mixed.snapshot")
	if err := os.WriteFile(made, b.Bytes(), 0o600); err != nil {
		return err
	}
	if err := check(e, made, waves); err != nil {
		return err
	}
	return os.WriteFile("mixed.snapshot", b.Bytes(), 0o644)
}

// hostCore runs the process until it waits, and takes its core.
func hostCore(dir string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	exe := filepath.Join(dir, "host")
	gcc := exec.Command("gcc", "-O1", "-g", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-fno-stack-protector",
		"-ffile-prefix-map="+here+"=/example", "-Wl,--build-id", "-o", exe, filepath.Join(here, "host.c"))
	if out, err := gcc.CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc: %w\n%s", err, out)
	}
	host := exec.Command(exe)
	host.Env = []string{}
	if err := host.Start(); err != nil {
		return "", err
	}
	defer func() {
		_ = host.Process.Kill()
		_ = host.Wait() // its error is that it was killed
	}()
	time.Sleep(100 * time.Millisecond)
	pid := strconv.Itoa(host.Process.Pid)
	if out, err := exec.Command("gcore", "-o", filepath.Join(dir, "core"), pid).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcore: %w\n%s", err, out)
	}
	return filepath.Join(dir, "core."+pid), nil
}

// Addresses of code and memory. Waves of two dispatches have their own.
const (
	processor   = "gfx90a"
	lanes       = 64
	group       = 64 // work-items
	codeStart   = 0x7f4200000000
	codeEach    = 0x100000
	arguments   = 0x7f4300000000
	wearStart   = 0x7f4300001000
	partStart   = 0x7f4300002000
	private     = 0x7f4400000000
	privateSize = 0x1000 // of a wave
)

// dispatch is a launch of a kernel, with the places of its waves.
type dispatch struct {
	number    uint64 // from 1
	kernel    string
	functions []string // that it calls
	compile   func(object string) error
	objdump   string
	items     int
	stops     []stop
}

// stop is the place of a wave: it executes the kernel from its beginning until the next
// instruction is the n-th of a name. Each wave is a work-group.
type stop struct {
	name       string
	n          int
	hasCrashed bool
}

var dispatches = []dispatch{{
	number:  1,
	kernel:  "grade",
	compile: func(object string) error { return simt.Build("grade.cl", "grade", processor, lanes, object) },
	objdump: "llvm-objdump",
	items:   100, // the last wave has work for 36 lanes
	stops:   []stop{{"global_store_dword", 5, true}, {"global_store_dword", 1, false}},
}, {
	number:    2,
	kernel:    "inspect",
	functions: []string{"compare_sides", "measure"},
	compile:   func(object string) error { return simt.Compile("inspect.hip", processor, object) },
	objdump:   "llvm-objdump-22",
	items:     128,
	// In the loop, for the second side.
	stops: []stop{{"flat_load_dword", 9, false}, {"flat_load_dword", 9, false}},
}}

// keepHost leaves the executable of the process as the only module.
func keepHost(s *engine.Snapshot) {
	var host []snapshot.Module
	for _, m := range s.Contents().Modules {
		if m.Path != "" && filepath.Base(m.Path) == "host" {
			m.Path = "/example/host"
			host = append(host, m)
		}
	}
	s.Contents().Modules = host
}

// start is the address of offset 0 of the dispatch's code object.
func (d *dispatch) start() uint64 { return codeStart + (d.number-1)*codeEach }

// execute executes the waves of a dispatch up to their stops.
func (d *dispatch) execute(code string) (*simt.Program, []*simt.Wave, error) {
	program, err := simt.Disassemble(d.objdump, code, d.kernel, d.functions...)
	if err != nil {
		return nil, nil, err
	}
	program.Loaded = d.start()
	launch := simt.Dispatch{
		Program: program, Lanes: lanes, Items: d.items, Group: group,
		Arguments: arguments, Private: private + (d.number-1)*codeEach, PrivateSize: privateSize,
	}
	if err := launch.Kernel(code, d.kernel); err != nil {
		return nil, nil, err
	}
	var waves []*simt.Wave
	for i, stop := range d.stops {
		w, first := launch.Wave(i, 0)
		prepare(w, first, d.kernel)
		if err := w.RunTo(stop.name, stop.n); err != nil {
			return nil, nil, err
		}
		waves = append(waves, w)
	}
	return program, waves, nil
}

// add adds the code object and the waves of a dispatch to the snapshot of the process.
func (d *dispatch) add(s *engine.Snapshot, code string, program *simt.Program, waves []*simt.Wave, launcher string) error {
	o, err := object.Open(code)
	if err != nil {
		return err
	}
	m := &target.Module{
		Module: trace.Module{
			ID:        len(s.Contents().Modules),
			Path:      "/example/" + d.kernel + ".co",
			BuildID:   o.BuildID(),
			Arch:      "amdgpu",
			Processor: processor,
			File:      code,
		},
		Object: o,
	}
	for _, segment := range o.Segments() {
		m.Segments = append(m.Segments, trace.Segment{
			Address: segment.Address, Size: segment.MemSize, Start: d.start() + segment.Address, Executable: segment.Executable(),
		})
	}
	s.Contents().Modules = append(s.Contents().Modules, snapshot.Module{Module: m, Keep: true})
	for i, w := range waves {
		th := &trace.Thread{
			Handle: uint64(len(s.Contents().Threads)), ID: fmt.Sprintf("w%d", len(s.Contents().Threads)-1),
			Arch: "amdgpu", Processor: processor, Lanes: lanes, Registers: registers(w, program),
			Wave: &sdk.Wave{
				Agent: "1", Queue: "1", Dispatch: strconv.FormatUint(d.number, 10), Kernel: d.kernel,
				Group: [3]uint32{uint32(i), 0, 0}, HasGroup: true, HasInGroup: true,
			},
			LaunchedBy: &trace.Launch{Thread: launcher, Kind: "dispatch", Evidence: trace.LaunchWaiting},
		}
		if d.stops[i].hasCrashed {
			th.Crashed, th.Signal = true, 11
		}
		s.Contents().Threads = append(s.Contents().Threads, th)
		if b := w.Private(privateSize); len(b) > 0 {
			s.Contents().Memory = append(s.Contents().Memory, snapshot.Memory{Space: privateWave, Thread: th, Data: b})
		}
	}
	return nil
}

// privateWave is the number of the address space with a wave's private memory.
const privateWave = 6

// prepare writes the arguments of a kernel, and its data, to memory.
func prepare(w *simt.Wave, first int, kernel string) {
	address := func(address, value uint64) { w.Memory[address], w.Memory[address+4] = uint32(value), uint32(value>>32) }
	address(arguments, wearStart)
	address(arguments+8, partStart)
	for id := range lanes {
		item := first + id
		if kernel == "grade" {
			w.Memory[wearStart+4*uint64(id)] = parts.Wear(item)
			continue
		}
		w.Memory[wearStart+4*uint64(id)] = parts.Wear(id)
		for side := range 2 {
			at := partStart + 4*uint64(16*id+8*side)
			m := parts.Measured(id, side)
			w.Memory[at] = uint32(len(m))
			for i, v := range m {
				w.Memory[at+4*uint64(1+i)] = v
			}
		}
	}
}

// check walks the waves of a snapshot, and compares the stacks with the calls
// that were in progress.
func check(e *engine.Engine, file string, waves []*simt.Wave) error {
	t, err := e.Open(file)
	if err != nil {
		return err
	}
	defer t.Close()
	for i, th := range t.Threads()[1:] {
		want := []uint64{waves[i].PC}
		for _, c := range slices.Backward(waves[i].Calls) {
			want = append(want, c.Return)
		}
		var got []uint64
		for _, f := range t.Walk(context.Background(), th).Frames {
			got = append(got, f.ModuleOffset)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("the stack of %s is %#x, expected %#x", th.ID, got, want)
		}
	}
	return nil
}

// registers returns the registers that the code names.
func registers(w *simt.Wave, p *simt.Program) sdk.Registers {
	d := amdgpu.Description()
	var r sdk.Registers
	set := func(name string, value []byte) {
		for _, n := range d.Registers {
			for i := range n.Count {
				if info, ok := d.Register(n.First + i); ok && info.Name == name && (info.Lanes == 0 || info.Lanes == lanes) {
					r.Set(info.Number, value)
				}
			}
		}
	}
	word := func(v uint64, size int) []byte { return binary.LittleEndian.AppendUint64(nil, v)[:size] }
	set("PC", word(p.Loaded+w.PC, 8))
	set("EXEC", word(w.Exec, 8))
	set("VCC", word(w.VCC, 8))
	scalars, vectors := p.Registers()
	for i := range scalars {
		set(fmt.Sprintf("SGPR%d", i), word(uint64(w.SGPR[i]), 4))
	}
	for i := range vectors {
		set(fmt.Sprintf("VGPR%d", i), w.Vector(i))
	}
	return r
}
