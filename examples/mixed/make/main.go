// Command make makes mixed.snapshot anew: the state of a process that waits for
// four waves. It is run in the folder examples/mixed, and needs clang and lld for
// amdgcn, gcc, llvm-objdump and gcore.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/snapshot"
	"github.com/unwindd/unwindd/examples/mixed/simt"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "mixed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	code := filepath.Join(dir, "grade.co")
	if err := simt.Build("grade.cl", "grade", processor, lanes, code); err != nil {
		return err
	}
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
	if err := addWaves(s, code); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
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
		_ = host.Wait() // which says that it was killed
	}()
	time.Sleep(100 * time.Millisecond)
	pid := strconv.Itoa(host.Process.Pid)
	if out, err := exec.Command("gcore", "-o", filepath.Join(dir, "core"), pid).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcore: %w\n%s", err, out)
	}
	return filepath.Join(dir, "core."+pid), nil
}

// The dispatch: 228 work-items in groups of 128, in waves of 64 lanes. The last
// wave has work for 36 of them.
const (
	processor = "gfx90a"
	lanes     = 64
	groupSize = 128
	items     = 228
	codeStart = 0x7f4200000000
	arguments = 0x7f4300000000
	wearStart = 0x7f4300001000
	partStart = 0x7f4300002000
)

// wear is how worn the part of a work-item is, which decides its way through the
// kernel.
func wear(item int) uint32 { return uint32(item / 8 * 9 % 31) }

// stops are where the waves are: each executes the kernel from its beginning
// until the next instruction is the n-th of a name.
var stops = []struct {
	group, wave int
	name        string
	n           int
	crashed     bool
}{
	{0, 0, "global_store_dword", 5, true}, // in the IF within the IF
	{0, 1, "global_load_dword", 1, false},
	{1, 0, "global_load_dword", 1, false},
	{1, 1, "global_store_dword", 1, false},
}

// addWaves adds the code object and the waves to what is known of the process.
func addWaves(s *engine.Snapshot, code string) error {
	o, err := object.Open(code)
	if err != nil {
		return err
	}
	program, err := simt.Disassemble("llvm-objdump", code, "grade")
	if err != nil {
		return err
	}
	var host []snapshot.Module
	for _, m := range s.Modules {
		if m.Path != "" && filepath.Base(m.Path) == "host" {
			m.Path = "/example/host"
			host = append(host, m)
		}
	}
	m := &target.Module{
		ID: len(host), Path: "/example/grade.co", BuildID: o.BuildID(), Arch: "amdgpu", Processor: processor, Object: o, File: code,
	}
	for _, segment := range o.Segments() {
		m.Segments = append(m.Segments, target.Segment{
			Address: segment.Address, Size: segment.MemSize, Start: codeStart + segment.Address, Executable: segment.Executable(),
		})
	}
	s.Modules = append(host, snapshot.Module{Module: m, Keep: true})

	launcher := s.Threads[0]
	for i, stop := range stops {
		w := newWave(program, stop.group, stop.wave)
		if err := w.RunTo(stop.name, stop.n); err != nil {
			return err
		}
		th := &target.Thread{
			Handle: uint64(len(s.Threads)), ID: fmt.Sprintf("w%d", i),
			Arch: "amdgpu", Processor: processor, Lanes: lanes, Registers: registers(w),
			Wave: &target.Wave{
				Wave: sdk.Wave{
					Agent: "1", Queue: "1", Dispatch: "1", Kernel: "grade", Group: [3]uint32{uint32(stop.group), 0, 0}, InGroup: uint32(stop.wave),
				},
				HasGroup: true, HasInGroup: true,
			},
			LaunchedBy: &target.Launch{Thread: launcher.ID, Kind: "dispatch", Evidence: target.LaunchWaiting},
		}
		if stop.crashed {
			th.Crashed, th.Signal = true, 11
		}
		s.Threads = append(s.Threads, th)
	}
	return nil
}

// newWave is a wave of the dispatch before its first instruction.
func newWave(p *simt.Program, group, wave int) *simt.Wave {
	first := wave * lanes
	count := min(items-group*groupSize-first, lanes)
	w := simt.NewWave(p, lanes, ^uint64(0)>>(64-count))
	set := func(register int, value uint64) {
		w.SGPR[register], w.SGPR[register+1] = uint32(value), uint32(value>>32)
	}
	set(4, arguments)
	store := func(at, value uint64) { w.Memory[at], w.Memory[at+4] = uint32(value), uint32(value>>32) }
	store(arguments, wearStart)
	store(arguments+8, partStart)
	for lane := range count {
		item := first + lane
		w.VGPR[0][lane] = uint32(item)
		w.Memory[wearStart+4*uint64(item)] = wear(group*groupSize + item)
	}
	return w
}

// registers are those that the kernel uses.
func registers(w *simt.Wave) sdk.Registers {
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
	set("PC", word(codeStart+w.PC, 8))
	set("EXEC", word(w.Exec, 8))
	set("VCC", word(w.VCC, 8))
	for i := range 8 {
		set(fmt.Sprintf("SGPR%d", i), word(uint64(w.SGPR[i]), 4))
	}
	for i := range 4 {
		set(fmt.Sprintf("VGPR%d", i), w.Vector(i))
	}
	return r
}
