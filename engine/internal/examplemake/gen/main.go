// SPDX-License-Identifier: Apache-2.0

// Command gen generates gen.snapshot: the state of a process and of three hardware
// threads that it launched. It is run in the folder examples/gen, and needs ocloc, gcc,
// gcore and unshare.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/target/snapshot"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/gen/genasm"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "gen")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	kernel, err := compileKernel(dir)
	if err != nil {
		return err
	}
	launch, now, err := hostCores(dir)
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), visa.New()}}})
	if err != nil {
		return err
	}
	defer e.Close()
	recorded, err := callers(e, launch)
	if err != nil {
		return err
	}
	t, err := e.Open(now)
	if err != nil {
		return err
	}
	s, err := t.Snapshot(context.Background(), engine.SnapshotOptions{Files: true})
	if err != nil {
		return err
	}
	if err := addThreads(s, kernel, recorded); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		return err
	}
	return os.WriteFile("gen.snapshot", b.Bytes(), 0o644)
}

// sources is the folder in which the compilers see the sources, so that no debug
// information names another one.
const sources = "/usr/src"

// compileKernel compiles the kernel, and returns the path of the files that the compiler
// dumps, without their extensions.
func compileKernel(dir string) (string, error) {
	data, err := os.ReadFile("sums.cl")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "sums.cl"), data, 0o600); err != nil {
		return "", err
	}
	ocloc := exec.Command("unshare", "-rm", "sh", "-c", `mount --bind "$0" "$1" && cd "$1" && exec ocloc compile -file sums.cl -device tgllp -options -g -out_dir out`, dir, sources)
	ocloc.Env = append(os.Environ(), "IGC_ShaderDumpEnable=1", "IGC_DumpToCustomDir="+sources+"/")
	if out, err := ocloc.CombinedOutput(); err != nil {
		return "", fmt.Errorf("ocloc: %w\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_entry_0001.elf"))
	if err != nil {
		return "", err
	}
	if len(files) != 1 {
		return "", fmt.Errorf("ocloc dumped %q", files)
	}
	return files[0][:len(files[0])-len(".elf")], nil
}

// hostCores runs the process, and takes its core at the launch and afterwards.
func hostCores(dir string) (launch, now string, err error) {
	here, err := os.Getwd()
	if err != nil {
		return "", "", err
	}
	exe := filepath.Join(dir, "host")
	gcc := exec.Command("gcc", "-O1", "-g", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-fno-stack-protector",
		"-ffile-prefix-map="+here+"="+sources, "-Wl,--build-id", "-o", exe, filepath.Join(here, "host.c"))
	if out, err := gcc.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("gcc: %w\n%s", err, out)
	}
	host := exec.Command(exe)
	host.Env = []string{}
	input, err := host.StdinPipe()
	if err != nil {
		return "", "", err
	}
	if err := host.Start(); err != nil {
		return "", "", err
	}
	defer func() {
		_ = host.Process.Kill()
		_ = host.Wait() // its error is that it was killed
	}()
	core := func(name string) string {
		time.Sleep(100 * time.Millisecond)
		pid := strconv.Itoa(host.Process.Pid)
		out, failure := exec.Command("gcore", "-o", filepath.Join(dir, name), pid).CombinedOutput()
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("gcore: %w\n%s", failure, out))
		}
		return filepath.Join(dir, name+"."+pid)
	}
	launch = core("launch")
	if _, err := io.WriteString(input, "."); err != nil {
		return "", "", err
	}
	now = core("now")
	return launch, now, err
}

// callers returns the return addresses of the only thread of a core, from the wait on.
func callers(e *engine.Engine, core string) ([]uint64, error) {
	t, err := e.Open(core)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	stack := t.Walk(context.Background(), t.Threads()[0])
	if stack.Stopped.Reason != trace.StopOutermost || len(stack.Frames) < 3 {
		return nil, fmt.Errorf("%d frames of the launcher: %v", len(stack.Frames), stack.Stopped)
	}
	var pcs []uint64
	for _, f := range stack.Frames[1:] {
		pcs = append(pcs, f.PC)
	}
	return pcs, nil
}

// Addresses of the code and of the threads' scratch memory.
const (
	codeStart    = 0x140000
	scratchStart = 0x7f5500000000
	scratchEach  = 0x40000
)

// stops has the places of the hardware threads: each executes the kernel until a number
// of calls is under way and the next instruction is the n-th of a name.
var stops = []struct {
	calls int
	op    string
	n     int
}{
	{4, "send.dc1", 2},
	{2, "call", 2},
	{1, "ret", 1},
}

// addThreads adds the code object and the threads to the snapshot of the process.
func addThreads(s *engine.Snapshot, kernel string, recorded []uint64) error {
	o, err := object.Open(kernel + ".elf")
	if err != nil {
		return err
	}
	code, err := genasm.ReadAssembly(kernel + ".asm")
	if err != nil {
		return err
	}
	var host []snapshot.Module
	for _, m := range s.Contents().Modules {
		if m.Path != "" && filepath.Base(m.Path) == "host" {
			m.Path = sources + "/host"
			host = append(host, m)
		}
	}
	text := o.Section(".text")
	m := &target.Module{
		Module: trace.Module{
			ID:        len(host),
			Path:      sources + "/sums.elf",
			Arch:      "visa",
			Processor: "tgllp",
			File:      kernel + ".elf",
			Segments:  []trace.Segment{{Section: ".text", Size: text.Size, Start: codeStart, Executable: true}},
		},
		Object: o,
	}
	stream, err := os.ReadFile(kernel + ".dbg")
	if err != nil {
		return err
	}
	s.Contents().Modules = append(host, snapshot.Module{Module: m, Keep: true, Companions: []snapshot.Companion{{Suffix: ".dbg", Data: stream}}})
	launcher := s.Contents().Threads[0]
	for i, stop := range stops {
		g := genasm.New(code, codeStart, 5, rand.New(rand.NewPCG(uint64(i), 4)))
		seen := 0
		err := g.Run(func() bool {
			if len(g.Calls) == stop.calls && g.Next().Op == stop.op {
				seen++
			}
			return seen < stop.n
		})
		if err != nil {
			return err
		}
		if seen < stop.n {
			return fmt.Errorf("the thread came by %d of %d %s", seen, stop.n, stop.op)
		}
		base := scratchStart + uint64(i)*scratchEach
		th := &trace.Thread{
			Handle: uint64(len(s.Contents().Threads)), ID: fmt.Sprintf("g%d", i),
			Arch: "visa", Processor: "tgllp", Lanes: uint32(code.Lanes), Registers: registers(g, base),
			Wave: &sdk.Wave{
				Agent: "1", Queue: "3", Dispatch: "1", Kernel: code.Kernel,
				HasGroup: true, InGroup: uint32(i), HasInGroup: true,
			},
			LaunchedBy: &trace.Launch{Thread: launcher.ID, Kind: "dispatch", Evidence: trace.LaunchRecorded, Frames: recorded},
		}
		s.Contents().Threads = append(s.Contents().Threads, th)
		sp, _ := code.StackPointer()
		used := uint64(binary.LittleEndian.Uint32(sp.Bytes(g.GRF))) * code.PointerUnit()
		s.Contents().Memory = append(s.Contents().Memory, snapshot.Memory{Address: base, Data: g.Scratch[:used]})
	}
	return nil
}

// named matches a register that an instruction names.
var named = regexp.MustCompile(`\br([0-9]+)\b`)

// registers returns the registers that the code names.
func registers(g *genasm.Thread, scratch uint64) sdk.Registers {
	var numbers []int
	for _, in := range g.Instructions {
		for _, m := range named.FindAllStringSubmatch(in.Text, -1) {
			n, _ := strconv.Atoi(m[1])
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	var r sdk.Registers
	r.Set(0, binary.LittleEndian.AppendUint32(nil, uint32(g.IP())))
	r.Set(1, binary.LittleEndian.AppendUint32(nil, g.Mask))
	r.Set(6, binary.LittleEndian.AppendUint64(nil, scratch))
	for _, n := range slices.Compact(numbers) {
		r.Set(16+uint32(n), g.GRF[n*g.RegisterSize:(n+1)*g.RegisterSize])
	}
	return r
}
