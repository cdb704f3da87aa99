// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/cuda-core/corefile"
	"github.com/unwindd/unwindd/plugins/nvidia"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// This file is about a process and the core of its accelerators: which files belong together, and what
// becomes of them. The process is that of examples/cuda-core: thread 2440 has gone on, thread 2451
// waits in cudaDeviceSynchronize, and thread 2455 aborted.

// cudaHost is the core of the process.
var cudaHost = filepath.Join("..", "examples", "cuda-core", "core.2440")

// cudaCore is the core of an accelerator with one warp that a thread of the process launched, and that
// failed.
func cudaCore(thread uint32) []byte {
	warp := corefile.Warp{ID: 1, Valid: 1, Active: 1, Lanes: []corefile.Lane{{PC: 0x7f1300001230, Exception: 6, State: 1, Thread: [3]uint32{3, 0, 0}}}}
	c := corefile.Core{
		Driver: 580,
		Global: []corefile.Memory{{Address: 0x7f1200000000, Data: []byte("parts")}},
		Devices: []corefile.Device{{
			Name: "made", SM: "sm_90", Lanes: 32, Registers: 255, Predicates: 7, SMCount: 1, WarpsPerSM: 64, Major: 9, InstructionSize: 16,
			Contexts: []corefile.Context{{ID: 1, Shared: 0x7fff_f400_0000, Local: 0x7fff_f200_0000, HostThread: 2440}},
			Grids: []corefile.Grid{{
				ID: 7, Context: 1, Kind: 2, Status: 2, Registers: 24, Blocks: [3]uint32{2, 1, 1}, Block: [3]uint32{64, 1, 1}, HostThread: thread,
			}},
			SMs: []corefile.SM{{Blocks: []corefile.Block{{Grid: 7, Index: [3]uint32{1, 0, 0}, Warps: []corefile.Warp{warp}}}}},
		}},
	}
	return c.Build().Bytes()
}

// cudaEngine is an engine with the architectures of both.
func cudaEngine(t *testing.T, o engine.Options) *engine.Engine {
	t.Helper()
	o.Plugins = plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), nvidia.New()}}
	e, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// joinedStack describes the target's warp: by whom it was launched, with the functions of the launcher.
func joinedStack(t *testing.T, target *engine.Target) string {
	t.Helper()
	i := slices.IndexFunc(target.Threads(), func(th *trace.Thread) bool { return th.Wave != nil })
	if i < 0 {
		return "no warp"
	}
	s := target.Walk(t.Context(), target.Threads()[i])
	by := s.LaunchedBy()
	if by == nil {
		return "nobody"
	}
	text := by.Thread + " " + by.Evidence
	for k := range s.Launchers {
		for _, f := range s.Launchers[k].Frames {
			if len(f.Symbols) > 0 {
				text += " " + f.Symbols[len(f.Symbols)-1].Function
			}
		}
	}
	return text
}

const (
	waitsIn = "2451 waiting cudaDeviceSynchronize inspect_parts inspecting_thread thread_entry"
	goneOn  = "2440 queue"
)

// TestNamedDeviceCores has the core of the accelerators named with several kinds of targets.
func TestNamedDeviceCores(t *testing.T) {
	dir := t.TempDir()
	snapshot := filepath.Join(dir, "host.snapshot")
	e := cudaEngine(t, engine.Options{})
	host, err := e.Open(cudaHost)
	if err != nil {
		t.Fatal(err)
	}
	if got := joinedStack(t, host); got != "no warp" {
		t.Errorf("the process alone: %s", got)
	}
	writeSnapshotOf(t, host, snapshot)
	for _, c := range []struct {
		name, target string
		thread       uint32
		kind         trace.Kind
		want         string
		problem      string
	}{
		{"a core, whose thread waits", cudaHost, 2451, trace.CUDACore, waitsIn, ""},
		{"a core, whose thread has gone on", cudaHost, 2440, trace.CUDACore, goneOn, ""},
		{"a core of another process", cudaHost, 99, trace.CUDACore, "99 queue", "it may be of another one"},
		{"a snapshot", snapshot, 2451, trace.Snapshot, waitsIn, ""},
	} {
		path := put(t, filepath.Join(dir, "gpu"), cudaCore(c.thread))
		target, err := cudaEngine(t, engine.Options{DeviceCore: path}).Open(c.target)
		if err != nil {
			t.Fatal(err)
		}
		info := target.Info()
		problems := strings.Join(target.Problems(), "\n")
		if got := joinedStack(t, target); got != c.want || info.Kind != c.kind || !strings.Contains(problems, c.problem) ||
			c.problem == "" && strings.Contains(problems, path+":") {
			t.Errorf("%s: %s, a %s, problems %s; expected %s, a %s", c.name, got, info.Kind, problems, c.want, c.kind)
		}
		if info.Kind == trace.CUDACore && (info.Signal != 6 || len(info.Devices.Agents) != 1) {
			t.Errorf("%s: signal %d, %d agents", c.name, info.Signal, len(info.Devices.Agents))
		}
		if th := target.Crashed(); th == nil || th.Wave == nil {
			t.Errorf("%s: the thread that crashed is %+v, expected the warp", c.name, th)
		}
	}
}

// TestDeviceCoresBesideProcesses finds the core of the accelerators by that of the process, and the
// other way round.
func TestDeviceCoresBesideProcesses(t *testing.T) {
	host, err := os.ReadFile(cudaHost)
	if err != nil {
		t.Fatal(err)
	}
	ours, others := cudaCore(2451), cudaCore(99)
	const gpu = "core_1796000000_node7_2440.nvcudmp"
	for _, c := range []struct {
		name    string
		files   map[string][]byte
		open    string
		want    string
		problem string
	}{
		{"the driver's name", map[string][]byte{"core.2440": host, gpu: ours}, "core.2440", waitsIn, ""},
		{"its process by the driver's name", map[string][]byte{"core.2440": host, gpu: ours}, gpu, waitsIn, ""},
		{"a process that is just core", map[string][]byte{"core": host, gpu: ours}, gpu, waitsIn, ""},
		{"a name of one's own", map[string][]byte{"core": host, "dump-a.2440": ours}, "core", waitsIn, ""},
		{"the process's name with .gpu", map[string][]byte{"host.core": host, "host.core.gpu": ours}, "host.core", waitsIn, ""},
		{"the process's name with .gpu, from the other side", map[string][]byte{"host.core": host, "host.core.gpu": ours}, "host.core.gpu", waitsIn, ""},
		{"another process's", map[string][]byte{"core": host, "core_1796000000_node7_2441": ours}, "core", "no warp", ""},
		{"a process whose file names another", map[string][]byte{"core.2441": host, gpu: ours}, gpu, "2451 queue", ""},
		{"no process at all", map[string][]byte{gpu: ours}, gpu, "2451 queue", ""},
		{"an earlier process of the same ID", map[string][]byte{"core": host, gpu: others}, "core", "no warp", "it is not used; --gpu-core uses it"},
		{"an earlier process of the same ID, from the other side", map[string][]byte{"core": host, gpu: others}, gpu, "99 queue", ""},
		{"two of one ID", map[string][]byte{"core.2440.1796000005": host, gpu: ours, "core_1795000000_node7_2440.nvcudmp": others}, "core.2440.1796000005", waitsIn, ""},
		{"no core", map[string][]byte{"core": host, gpu: []byte("x")}, "core", "no warp", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range c.files {
				put(t, filepath.Join(dir, name), data)
			}
			exe, err := filepath.Abs(filepath.Join("..", "examples", "cuda-core", "host"))
			if err != nil {
				t.Fatal(err)
			}
			target, err := cudaEngine(t, engine.Options{Exe: exe}).Open(filepath.Join(dir, c.open))
			if err != nil {
				t.Fatal(err)
			}
			problems := strings.Join(target.Problems(), "\n")
			if got := joinedStack(t, target); got != c.want || !strings.Contains(problems, c.problem) {
				t.Errorf("%s, expected %s; problems %s", got, c.want, problems)
			}
			paths, _, err := engine.TargetsIn(dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(paths) != 1 && len(c.files) == 2 && c.files["core"] != nil && c.want == waitsIn {
				t.Errorf("targets %q, expected the process alone", paths)
			}
		})
	}
}

// TestDeviceCoreOfALivingProcess joins a core to a process that goes on, as one has that was asked for
// by the driver's pipe.
func TestDeviceCoreOfALivingProcess(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("living processes of x86-64 are read on Linux")
	}
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { _ = sleep.Process.Kill(); _ = sleep.Wait() }()
	pid := sleep.Process.Pid
	path := put(t, filepath.Join(t.TempDir(), "gpu"), cudaCore(uint32(pid))) //nolint:gosec // an ID
	target, err := cudaEngine(t, engine.Options{DeviceCore: path}).OpenProcess(pid)
	if err != nil {
		t.Skip(err)
	}
	if got, want := joinedStack(t, target), strconv.Itoa(pid)+" queue"; got != want || target.Info().Kind != trace.LiveProcess {
		t.Errorf("%s of a %s, expected %s", got, target.Info().Kind, want)
	}
}

// writeSnapshotOf writes a snapshot of a target, with its code.
func writeSnapshotOf(t *testing.T, target *engine.Target, path string) {
	t.Helper()
	s, err := target.Snapshot(t.Context(), engine.SnapshotOptions{Files: true})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := s.Write(f); err != nil {
		t.Fatal(err)
	}
}

// joinedStacks describes a target's stacks: the threads with their frames and the launchers' frames.
func joinedStacks(t *testing.T, target *engine.Target) (lines []string) {
	t.Helper()
	add := func(frames []trace.Frame) {
		for i := range frames {
			f := &frames[i]
			text := fmt.Sprintf("  %#x %s", f.PC, f.FoundBy)
			for k := range f.Symbols {
				text += fmt.Sprintf(" %s %s:%d", f.Symbols[k].Function, f.Symbols[k].File, f.Symbols[k].Line)
			}
			lines = append(lines, text)
		}
	}
	for s := range target.Stacks(t.Context()) {
		lines = append(lines, s.Thread.ID+" "+s.Thread.State)
		add(s.Frames)
		for i := range s.Launchers {
			lines = append(lines, " by "+s.Launchers[i].Launch.Thread)
			add(s.Launchers[i].Frames)
		}
	}
	return lines
}

// TestProcessAndCoreOfTheExample walks the two cores of examples/cuda-core, and a snapshot of both.
func TestProcessAndCoreOfTheExample(t *testing.T) {
	exe, err := filepath.Abs(filepath.Join("..", "examples", "cuda-core", "host"))
	if err != nil {
		t.Fatal(err)
	}
	o := engine.Options{Exe: exe, DeviceCore: filepath.Join("..", "examples", "cuda-core", "crash.core")}
	target, err := cudaEngine(t, o).Open(cudaHost)
	if err != nil {
		t.Fatal(err)
	}
	const fact = "a wave accessed memory that is not mapped for it (illegal address) in wear, kernel inspect, block (1,0,0) thread (54,0,0) (PC not exact)"
	if got := target.Fact(t.Context()); got != fact {
		t.Errorf("%s\nexpected\n%s", got, fact)
	}
	s := target.Walk(t.Context(), target.Crashed())
	if got := target.Signature(s, fact).Frames; !slices.Equal(got, []string{"wear", "worse", "compare_sides", "inspect"}) {
		t.Errorf("signature %q", got)
	}
	want := joinedStacks(t, target)
	if text := strings.Join(want, "\n"); !strings.Contains(text, "inspect /example/parts.cu:32\n by 2451\n  0x40114d context cudaDeviceSynchronize /example/host.c:31\n") {
		t.Errorf("stacks\n%s\nexpected the kernel to go on in the thread that waits", text)
	}
	path := filepath.Join(t.TempDir(), "both.snapshot")
	writeSnapshotOf(t, target, path)
	again, err := cudaEngine(t, engine.Options{}).Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, joinedStacks(t, again)); diff != "" {
		t.Errorf("a snapshot of both (-cores +snapshot):\n%s", diff)
	}
}
