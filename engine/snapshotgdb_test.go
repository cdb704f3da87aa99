// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"archive/zip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// gdbSnapshot has gdb, with arguments that say what of, write a snapshot, and
// returns it with the PCs of gdb's own stacks by thread.
func gdbSnapshot(t *testing.T, gdb string, args ...string) (path string, pcs map[string][]string) {
	t.Helper()
	oracle.Tools(t, gdb)
	path = filepath.Join(t.TempDir(), "gdb.snapshot")
	args = append([]string{"-nx", "-batch", "-iex", "set debuginfod enabled off"}, args...)
	args = append(args, "-ex", "source "+filepath.Join("..", "examples", "snapshot-gdb", "unwindd_snapshot.py"),
		"-ex", "unwindd-snapshot "+path, "-ex", "source "+subject.Source(t, "gdb_pcs.py"))
	out, err := exec.Command(gdb, args...).CombinedOutput()
	if _, missing := os.Stat(path); err != nil || missing != nil || strings.Contains(string(out), "Python Exception") {
		t.Fatalf("%s %q: %v\n%s", gdb, args, err, out)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if strings.HasPrefix(line, "unwindd-snapshot:") {
			t.Errorf("%s", line)
		}
	}
	return path, subject.PrintedPCs(string(out))
}

func TestStacksOfGDBsSnapshotsAreGDBs(t *testing.T) {
	t.Parallel()
	long(t)
	for _, c := range []struct {
		subject, args string
		live          bool // of the process, else of its core
		signal        int
	}{
		{"mtcore", "wait 8", true, 0},
		{"mtcore", "sigh 8", false, 6},
		{"frames", "crash", false, 6},
		{"gosubject", "wait", true, 0},
	} {
		t.Run(fmt.Sprintf("%s-%s-%v", c.subject, c.args, c.live), func(t *testing.T) {
			t.Parallel()
			exe := subject.Build(t, c.subject)
			var path string
			var want map[string][]string
			if c.live {
				path, want = gdbSnapshot(t, "gdb", "-p", subject.Start(t, exe, strings.Fields(c.args)...))
			} else {
				path, want = gdbSnapshot(t, "gdb", exe, subject.Core(t, exe, strings.Fields(c.args)...))
			}
			got := enginetest.Report(t, path)
			if len(got.Threads) != len(want) || len(want) == 0 {
				t.Errorf("%d threads, gdb has %d", len(got.Threads), len(want))
			}
			if got.Target.Signal != c.signal || len(got.Target.Problems) > 0 {
				t.Errorf("signal %d, problems %q", got.Target.Signal, got.Target.Problems)
			}
			frames := 0
			for i := range got.Threads {
				th := &got.Threads[i]
				pcs := physicalPCs(th)
				frames += len(pcs)
				gdb := want[th.ID]
				if c.subject == "gosubject" {
					gdb, pcs = goStack(th, gdb, pcs)
				}
				if d := cmp.Diff(gdb, pcs); d != "" {
					t.Errorf("thread %s (-gdb +unwindd), stopped %s: %s\n%s", th.ID, th.Stopped.Reason, th.Stopped.Detail, d)
				}
			}
			for _, m := range got.Modules {
				if m.BuildID == "" || m.Problem != "" {
					t.Errorf("%s: build ID %q, problem %q", m.Path, m.BuildID, m.Problem)
				}
			}
			info, _ := os.Stat(path)
			t.Logf("%d threads, %d frames, %d bytes", len(got.Threads), frames, info.Size())
		})
	}
}

// document reads the JSON of a snapshot, and a member.
// TestGDBsSnapshotOfAnArchitectureThatItsScriptDoesNotKnow takes what the script knows away:
// the name that is given stands in the snapshot for threads and modules, else gdb's name and
// the number of the machine.
func TestGDBsSnapshotOfAnArchitectureThatItsScriptDoesNotKnow(t *testing.T) {
	t.Parallel()
	long(t)
	oracle.Tools(t, "gdb")
	crash := filepath.Join("..", "examples", "crash")
	for _, c := range []struct{ given, thread, module string }{
		{"mychip", "mychip", "mychip"},
		{"", "i386:x86-64", "elf-62"},
	} {
		path := filepath.Join(t.TempDir(), "gdb.snapshot")
		out, err := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off",
			filepath.Join(crash, "server"), filepath.Join(crash, "server.core"),
			"-ex", "source "+filepath.Join("..", "examples", "snapshot-gdb", "unwindd_snapshot.py"),
			"-ex", "python MACHINES.pop(62); ARCHITECTURES.pop('i386:x86-64')",
			"-ex", "unwindd-snapshot "+path+" "+c.given).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var got struct{ Threads, Modules []struct{ Arch string } }
		document(t, path, &got)
		if len(got.Threads) == 0 || len(got.Modules) == 0 {
			t.Fatalf("%d threads, %d modules\n%s", len(got.Threads), len(got.Modules), out)
		}
		for _, th := range got.Threads {
			if th.Arch != c.thread {
				t.Errorf("given %q: a thread of %q, expected %q", c.given, th.Arch, c.thread)
			}
		}
		for _, m := range got.Modules {
			if m.Arch != c.module {
				t.Errorf("given %q: a module of %q, expected %q", c.given, m.Arch, c.module)
			}
		}
	}
}

func document(t *testing.T, path string, into any) (member func(name string) []byte) {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.Close() })
	member = func(name string) []byte {
		f, err := z.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if err := json.Unmarshal(member("snapshot.json"), into); err != nil {
		t.Fatal(err)
	}
	return member
}

// A process of another machine, run by qemu-user.
func TestSnapshotsOfOtherMachinesAreComplete(t *testing.T) {
	t.Parallel()
	oracle.Tools(t, "clang", "ld.lld", "qemu-aarch64", "gdb-multiarch")
	dir := t.TempDir()
	exe, socket := filepath.Join(dir, "aarch64"), filepath.Join(dir, "gdb")
	oracle.Run(t, "clang", "--target=aarch64-linux-gnu", "-O1", "-g", "-ffreestanding", "-nostdlib", "-static",
		"-fuse-ld=lld", "-Wl,--build-id=sha1", "-o", exe, subject.Source(t, "aarch64.c"))
	qemu := exec.Command("qemu-aarch64", "-g", socket, exe)
	if err := qemu.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { qemu.Process.Kill(); qemu.Wait() }()
	for range 600 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	path, want := gdbSnapshot(t, "gdb-multiarch", "-ex", "set architecture aarch64", "-ex", "file "+exe,
		"-ex", "target remote "+socket, "-ex", "continue")

	var d struct {
		Threads []struct {
			ID, Arch  string
			Registers map[string]string
		}
		Modules []struct {
			Path, Arch string
			BuildID    string `json:"build_id"`
			Segments   []struct{ Address, Size, Start string }
		}
		Memory []struct{ File, Address string }
	}
	member := document(t, path, &d)
	if len(d.Threads) != 1 || len(d.Modules) != 1 || len(want) != 1 {
		t.Fatalf("%d threads, %d modules; gdb has %d stacks", len(d.Threads), len(d.Modules), len(want))
	}
	var pcs []string
	for _, pcs = range want {
	}
	th, m := d.Threads[0], d.Modules[0]
	if th.Arch != "aarch64" || th.Registers["pc"] != pcs[0] || th.Registers["x19"] != "0x1234567890abcdef" ||
		!strings.HasPrefix(th.Registers["v3"]+th.Registers["z3"], strings.Repeat("5a", 16)) {
		t.Errorf("thread %s of %s: pc %s, x19 %s, v3 %s, z3 %s; gdb's PC is %s",
			th.ID, th.Arch, th.Registers["pc"], th.Registers["x19"], th.Registers["v3"], th.Registers["z3"], pcs[0])
	}
	if m.Path != exe || m.Arch != "aarch64" || len(m.BuildID) != 40 || len(m.Segments) < 2 || m.Segments[0].Address != m.Segments[0].Start {
		t.Errorf("module %+v", m)
	}
	// The frame records of the functions are a list: its return addresses are
	// those that gdb finds.
	word := func(address uint64) uint64 {
		for _, p := range d.Memory {
			var start uint64
			fmt.Sscan(p.Address, &start)
			if b := member(p.File); address >= start && address+8 <= start+uint64(len(b)) {
				return binary.LittleEndian.Uint64(b[address-start:])
			}
		}
		return 0
	}
	var fp uint64
	fmt.Sscan(th.Registers["x29"], &fp)
	var chain []string
	for ; fp != 0 && len(chain) < 10; fp = word(fp) {
		chain = append(chain, fmt.Sprintf("%#x", word(fp+8)))
	}
	if len(chain) < 4 || len(pcs) < 5 {
		t.Fatalf("return addresses %q, gdb's PCs %q", chain, pcs)
	}
	for _, pc := range pcs[2 : len(pcs)-1] {
		if !strings.Contains(strings.Join(chain, " "), pc) {
			t.Errorf("return address %s is not in the memory of the snapshot: %q", pc, chain)
		}
	}

	got := enginetest.Report(t, path)
	var frames []string
	for _, frame := range got.Threads[0].Frames {
		frames = append(frames, frame.PC)
	}
	if diff := cmp.Diff(pcs, frames); diff != "" {
		t.Errorf("frames (-gdb +ours): %s\n%+v", diff, got.Threads[0].Stopped)
	}
}

// rocgdbSnapshot has what stands in for rocgdb write a snapshot, and returns what it
// says. The environment is what the stand-in knows besides.
func rocgdbSnapshot(t *testing.T, env ...string) (path, out string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "waves.snapshot")
	program := "import sys, runpy; runpy.run_path(sys.argv[1]); import gdb; gdb.commands['unwindd-snapshot'].invoke(sys.argv[2], False)"
	cmd := exec.Command("python3", "-B", "-c", program, filepath.Join("..", "examples", "snapshot-gdb", "unwindd_snapshot.py"), path)
	cmd.Env = append(append(os.Environ(), "PYTHONPATH="+filepath.Join("testdata", "rocgdb")), env...)
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return path, string(b)
}

// What rocgdb adds is tested without it: a module of Python stands in for it.
func TestWavesOfROCgdbComeIntoSnapshots(t *testing.T) {
	t.Parallel()
	oracle.Tools(t, "python3")
	path, out := rocgdbSnapshot(t)
	if !strings.Contains(out, "wave-2: its private memory cannot be read") || strings.Contains(out, "wave-1:") {
		t.Errorf("it says\n%s", out)
	}
	got := enginetest.Report(t, path)
	if p := got.Target.Problems; len(p) > 0 {
		t.Errorf("problems %q", p)
	}
	group := func(x, y, z uint32) *[3]uint32 { return &[3]uint32{x, y, z} }
	number := func(n uint32) *uint32 { return &n }
	launch := &report.Launch{Thread: "100", Kind: "dispatch", Evidence: "queue"}
	for i, want := range []report.Thread{
		{ID: "100", Name: "saxpy", Arch: "x86_64"},
		{ID: "wave-1", Name: "saxpy", Arch: "amdgpu", Processor: "gfx90a", LaunchedBy: launch,
			Wave: &report.Wave{Agent: "1", Queue: "2", Dispatch: "1", Kernel: "kern(int, float*)", Group: group(0, 0, 0), InGroup: number(0)}},
		{ID: "wave-2", Name: "saxpy", Arch: "amdgpu", Processor: "gfx90a", LaunchedBy: launch,
			Wave: &report.Wave{Agent: "1", Queue: "2", Dispatch: "1", Kernel: "kern(int, float*)", Group: group(0, 3, 0), InGroup: number(1)}},
	} {
		th := got.Threads[i]
		th.Frames, th.Stopped = nil, report.Stopped{}
		if d := cmp.Diff(want, th); d != "" {
			t.Errorf("thread %d (-want +got):\n%s", i, d)
		}
	}
	for _, c := range []struct {
		expr string
		read uint32
		want string
	}{
		{"DW_OP_regx v0", 2048, laneNumbers(0, 64)},
		{"DW_OP_regx SGPR4", 32, "f0ffffff"},
		{"DW_OP_lit16; DW_OP_lit6; DW_OP_LLVM_form_aspace_address", 64, "1000000014000000"},
	} {
		found := evaluated(t, path, c.expr, func(e *job.Evaluate) { e.Thread, e.Read = "wave-1", c.read })
		if found.Read != c.want {
			t.Errorf("%s: %s, expected %s", c.expr, found.Read, c.want)
		}
	}
}

// laneNumbers is a vector register whose lanes count from first.
func laneNumbers(first, n uint32) string {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, first+i)
	}
	return fmt.Sprintf("%x", b)
}

func TestWhyAWaveStoppedInROCgdbComesIntoSnapshots(t *testing.T) {
	t.Parallel()
	long(t)
	oracle.Tools(t, "python3")
	const wave = "Last stopped for thread 7 (AMDGPU Wave 1:2:1:1 (0,0,0)/0).\n\tUsing the running image of child AMDGPU Wave 1:2:1:1 (0,0,0)/0.\nProgram stopped at 0x7ffff608e3bc.\n"
	signal := func(name string) string {
		return "STOPPED=" + wave + "It stopped with signal " + name + ", as the debugger calls it.\n"
	}
	yes, no := true, false
	two := uint32(2)
	for _, c := range []struct {
		name   string
		env    []string
		signal int
		stop   *report.Stop // of the first wave; the other threads did not stop by themselves
	}{
		{"a debugger that does not say which thread stopped", []string{"STOPPED=\tUsing the running image of child AMDGPU Wave 1:2:1:1 (0,0,0)/0.\nProgram stopped at 0x10.\nIt stopped with signal SIGSEGV, Segmentation fault.\n"}, 0, nil},
		{"another inferior", []string{strings.Replace(signal("SIGSEGV"), "thread 7", "thread 2.7", 1)}, 0, nil},
		{"a wave that runs again", []string{"STOPPED=" + wave + "Thread is now running.\n"}, 0, nil},
		{"a signal that the user sent", []string{signal("SIGINT")}, 0, nil},
		{"a fault", []string{signal("SIGSEGV")}, 11, &report.Stop{Reason: "memory-fault"}},
		{"a fault at an instruction before", []string{signal("SIGSEGV"), "PRECISE-MEMORY=off (currently disabled)"}, 11, &report.Stop{Reason: "memory-fault", PCExact: &no}},
		{"precise memory that was asked for in vain", []string{signal("SIGSEGV"), "PRECISE-MEMORY=on (currently disabled)"}, 11, &report.Stop{Reason: "memory-fault", PCExact: &no}},
		{"a fault at the PC", []string{signal("SIGBUS"), "PRECISE-MEMORY=on (currently enabled)"}, 7, &report.Stop{Reason: "address-error", PCExact: &yes}},
		{"a setting that says nothing", []string{signal("SIGBUS"), "PRECISE-MEMORY=on"}, 7, &report.Stop{Reason: "address-error"}},
		{"arithmetic", []string{signal("SIGFPE"), "PRECISE-MEMORY=on (currently enabled)"}, 8, &report.Stop{Reason: "math-error"}},
		{"arithmetic that is not exact", []string{signal("SIGFPE"), "PRECISE-ALU-EXCEPTIONS=off (currently disabled)"}, 8, &report.Stop{Reason: "math-error", PCExact: &no}},
		{"an instruction", []string{signal("SIGILL"), "PRECISE-MEMORY=on (currently enabled)"}, 4, &report.Stop{Reason: "illegal-instruction"}},
		{"llvm.trap", []string{signal("SIGABRT")}, 6, &report.Stop{Reason: "trap", TrapID: &two}},
		{"a trap", []string{signal("SIGTRAP")}, 0, &report.Stop{Reason: "trap"}},
		{"a breakpoint", []string{"STOPPED=" + wave + "It stopped at breakpoint 1.\n"}, 0, &report.Stop{Reason: "breakpoint", PCExact: &yes}},
		{"a breakpoint that is gone", []string{"STOPPED=" + wave + "It stopped at a breakpoint that has since been deleted.\n"}, 0, &report.Stop{Reason: "breakpoint", PCExact: &yes}},
		{"a watchpoint and a breakpoint", []string{"STOPPED=" + wave + "It stopped at breakpoint 1.\nIt stopped at breakpoint 2.\n"}, 0, &report.Stop{Reason: "watchpoint"}},
		{"a step", []string{"STOPPED=" + wave + "It stopped after being stepped.\n"}, 0, &report.Stop{Reason: "single-step", PCExact: &yes}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path, _ := rocgdbSnapshot(t, c.env...)
			var got struct {
				Threads []struct {
					ID      string
					Crashed bool
					Signal  int
					Stop    *report.Stop
				}
			}
			document(t, path, &got)
			for i, th := range got.Threads {
				want, signal := c.stop, c.signal
				if th.ID != "wave-1" {
					want, signal = nil, 0
				}
				if d := cmp.Diff(want, th.Stop); d != "" || th.Crashed != (signal != 0) || th.Signal != signal {
					t.Errorf("thread %d (-want +got), crashed: %v, signal %d\n%s", i, th.Crashed, th.Signal, d)
				}
			}
			if len(got.Threads) != 3 {
				t.Errorf("%d threads", len(got.Threads))
			}
			if c.stop == nil || c.stop.PCExact == nil || *c.stop.PCExact {
				return
			}
			stacks := enginetest.Report(t, path)
			if p := stacks.Target.Problems; len(p) > 0 || stacks.Target.Signal != c.signal {
				t.Errorf("problems %q, signal %d, expected %d", p, stacks.Target.Signal, c.signal)
			}
			th := stacks.Threads[1]
			if d := cmp.Diff(c.stop, th.Stop); d != "" || th.Frames[0].PCExact == nil || *th.Frames[0].PCExact {
				t.Errorf("(-want +got), top frame %+v\n%s", th.Frames[0], d)
			}
		})
	}
}

// Why a thread of a CPU stopped, by gdb itself.
func TestWhyAThreadStoppedInGDBComesIntoSnapshots(t *testing.T) {
	t.Parallel()
	long(t)
	exe := subject.Build(t, "mtcore")
	for _, c := range []struct {
		args string
		want *report.Stop // of the crashed thread
	}{
		{"segv 2", &report.Stop{Reason: "memory-fault", Address: "0x0"}},
		{"abort 2", nil},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			path, _ := gdbSnapshot(t, "gdb", exe, subject.Core(t, exe, strings.Fields(c.args)...))
			got, crashed := enginetest.Report(t, path), 0
			for _, th := range got.Threads {
				want := c.want
				if !th.Crashed {
					want = nil
				} else {
					crashed++
				}
				if d := cmp.Diff(want, th.Stop); d != "" {
					t.Errorf("thread %s (-want +got):\n%s", th.ID, d)
				}
			}
			if crashed != 1 || len(got.Threads) < 3 {
				t.Errorf("%d of %d threads crashed", crashed, len(got.Threads))
			}
		})
	}
}
