// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/recorded"
)

// The fields of samples and the markers of chains that the made recordings here have
// (include/uapi/linux/perf_event.h).
const (
	sampleBasics   = 1 | 2 | 4 // IP, TID, TIME
	sampleChain    = 1 << 5
	sampleBranches = 1 << 11
	sampleRegs     = 1 << 12

	chainKernel      = ^uint64(128) + 1
	chainUser        = ^uint64(512) + 1
	chainGuestKernel = ^uint64(2176) + 1

	inKernel, inUser, inGuestKernel, inGuestUser = 1, 2, 4, 5
)

// newShape begins a recording of a machine whose samples have some fields.
func newShape(machine string, fields, branches, registers uint64) *perfStream {
	b := &perfStream{}
	b.put([]byte("PERFILE2"), uint64(16))
	const idAll, mmap2, commExec = 1 << 18, 1 << 23, 1 << 24
	b.record(64, 0, uint32(1), uint32(112), uint64(0), uint64(1), fields, uint64(0), uint64(idAll|mmap2|commExec),
		uint64(0), uint64(0), uint64(0), branches, registers, uint32(0), uint32(0), uint64(0), uint64(0), uint64(0))
	b.record(80, 0, uint64(6), uint32(len(machine)/8*8+8), machine, uint32(0))
	return b
}

func (b *perfStream) sample(mode uint16, pid uint32, time, ip uint64, lists ...[]uint64) {
	values := []any{ip, pid, pid, time}
	for _, l := range lists {
		values = append(values, l)
	}
	b.record(9, mode, values...)
}

func (b *perfStream) fork(pid, parent uint32, time uint64) {
	b.record(7, 0, pid, parent, pid, parent, time, pid, pid, time)
}

// counted is a list with its length before it.
func counted(words ...uint64) []uint64 { return append([]uint64{uint64(len(words))}, words...) }

func (b *perfStream) write(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perf.data")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shapeStacks are the stacks of a profile, a line each, with why they end.
func shapeStacks(p *trace.Profile) (lines []string) {
	for i := range p.Samples {
		s := &p.Samples[i]
		var words []string
		for _, at := range p.StackFrames(nil, s.Stack) {
			f := &p.Frames[at]
			word := fmt.Sprintf("%#x", f.PC)
			if f.Module >= 0 {
				word += " " + p.Modules[f.Module].Path
			}
			if len(f.Symbols) > 0 {
				word += " " + f.Symbols[0].Function
			}
			words = append(words, word)
		}
		lines = append(lines, strings.Join(words, "; ")+": "+string(p.Stops[s.Stop].Reason))
	}
	return lines
}

// lbrRecording is as perf record --call-graph lbr writes it, of a program without
// frame pointers: its call chain is wrong from the second frame on.
func lbrRecording(t testing.TB) string {
	t.Helper()
	const user, callStack, noFlags, noCycles, hwIndex = 1, 1 << 11, 1 << 14, 1 << 15, 1 << 17
	b := newShape("x86_64", sampleBasics|sampleChain|sampleBranches, user|callStack|noFlags|noCycles|hwIndex, 0)
	b.comm(7, 100, 0, "program")
	b.mmap(7, 100, 0x401000, 0x1000, 0x1000, "/x/program")
	b.mmap(7, 200, 0x501000, 0x1000, 0x1000, "/x/library")
	// The index of the top, then where each call was made, where it went to, and its flags.
	calls := []uint64{0, 0x401204, 0x4014f0, 0, 0x401104, 0x4011f0, 0, 0x501004, 0x4010f0, 0}
	b.sample(inUser, 7, 1000, 0x401500, counted(chainUser, 0x401500, 0x401777), append([]uint64{3}, calls...))
	b.sample(inKernel, 7, 2000, 0xffffffff81000010, counted(chainKernel, 0xffffffff81000010, 0xffffffff81000020, chainUser, 0x401502, 0x401777), append([]uint64{3}, calls...))
	b.sample(inUser, 7, 3000, 0x401504, counted(chainUser, 0x401504, 0x401606), []uint64{0, 0}) // it recorded none
	b.sample(inKernel, 7, 4000, 0xffffffff81000010, counted(chainKernel, 0xffffffff81000010), append([]uint64{3}, calls...))
	return b.write(t)
}

// mappedCode is the offset of a file's executable page, and where its functions are
// when that page is at an address.
func mappedCode(t testing.TB, path string, start uint64) (offset uint64, addresses map[string]uint64) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	addresses = map[string]uint64{}
	for _, s := range f.Progs {
		if s.Type != elf.PT_LOAD || s.Flags&elf.PF_X == 0 {
			continue
		}
		offset = s.Off &^ 0xfff
		for _, symbol := range symbols {
			if elf.ST_TYPE(symbol.Info) == elf.STT_FUNC && symbol.Value >= s.Vaddr {
				addresses[symbol.Name] = start + symbol.Value - s.Vaddr + s.Off - offset
			}
		}
	}
	return offset, addresses
}

// The calls that a CPU recorded stand for the kernel's chain of the user's frames.
func TestCallsThatTheCPURecordedAreTheCallers(t *testing.T) {
	path := lbrRecording(t)
	p := profiled(t, path)
	callers := "; 0x401204 /x/program; 0x401104 /x/program; 0x501004 /x/library: end-of-stack"
	kernel := "0xffffffff81000010; 0xffffffff81000020; "
	if d := cmp.Diff([]string{
		"0x401500 /x/program" + callers,
		kernel + "0x401502 /x/program" + callers,
		"0x401504 /x/program; 0x401606 /x/program: end-of-stack",
		"0xffffffff81000010: outermost",
	}, shapeStacks(p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for i := range p.Frames {
		if f := &p.Frames[i]; f.PC&0xff == 4 && (!f.Exact || f.FoundBy != trace.ByCallChain) && f.PC != 0x401504 {
			t.Errorf("frame %+v: it is at a call, which the CPU recorded", f)
		}
	}
}

// perf script has the same frames but for the innermost of the user: it puts the
// function that was called last there, and not where the thread was. Where the CPU
// recorded no call it reads the word after the branch stack, which is of the next record.
func TestCallsThatTheCPURecordedAreAsPerfHasThem(t *testing.T) {
	path := lbrRecording(t)
	theirs, p, keys := perfStacks(t, path), profiled(t, path), sampleKeys{}
	for i := range p.Samples {
		s := &p.Samples[i]
		ours, stack := perfPCs(p, s), theirs[keys.next(7, s.Time)]
		for j := range stack {
			if stack[j].address >= 1<<63 {
				stack[j].path = kernelPath
			}
		}
		innermost := slices.IndexFunc(ours, func(pc perfPC) bool { return pc.path != kernelPath })
		switch s.Time {
		case 1000, 2000:
			stack[innermost].address += ours[innermost].address - 0x14f0
			fallthrough
		case 4000:
			if !slices.Equal(ours, stack) {
				t.Errorf("sample at %d: ours are %v, perf's %v", s.Time, ours, stack)
			}
		}
	}
	if len(theirs) != len(p.Samples) {
		t.Errorf("%d samples, perf has %d", len(p.Samples), len(theirs))
	}
}

// Addresses of a virtual machine are not looked up in the process that runs it, also
// where that has something there.
func TestGuestsAreNotTheirHost(t *testing.T) {
	b := newShape("x86_64", sampleBasics|sampleChain, 0, 0)
	b.comm(7, 100, 0, "qemu")
	b.mmap(7, 100, 0x401000, 0x1000, 0x1000, "/x/program")
	b.sample(inGuestUser, 7, 1000, 0x401010, counted())
	b.sample(inGuestKernel, 7, 2000, 0xffffffff81000010, counted(chainKernel, chainUser))
	b.sample(inGuestKernel, 7, 3000, 0x401020, counted(chainGuestKernel, 0x401020, 0x401040))
	b.sample(inUser, 7, 4000, 0x401010, counted(chainUser, 0x401010))
	p := profiled(t, b.write(t))
	if d := cmp.Diff([]string{
		"0x401010 [guest.user]: end-of-stack",
		"0xffffffff81000010 [guest.kernel.kallsyms]: end-of-stack",
		"0x401020 [guest.kernel.kallsyms]; 0x401040 [guest.kernel.kallsyms]: end-of-stack",
		"0x401010 /x/program: end-of-stack",
	}, shapeStacks(p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if stop := p.Stops[p.Samples[0].Stop]; !strings.Contains(stop.Detail, "guest") {
		t.Errorf("stopped: %+v", stop)
	}
}

// Beside a guest's address stand the registers of the thread that runs it, if any.
func TestRegistersBesideAGuestAreItsHosts(t *testing.T) {
	b := newShape("x86_64", sampleBasics|sampleRegs, 0, 1<<8) // the instruction pointer
	b.comm(7, 100, 0, "qemu")
	b.mmap(7, 100, 0x401000, 0x1000, 0x1000, "/x/program")
	b.sample(inGuestUser, 7, 1000, 0x401010, []uint64{1, 0x401020}) // of a 32-bit process
	b.sample(inGuestUser, 7, 2000, 0x401010, []uint64{2, 0x401020})
	p := profiled(t, b.write(t))
	if d := cmp.Diff([]string{"0x401010 [guest.user]: plugin-failed", "0x401010 [guest.user]; 0x401020 /x/program: no-row"}, shapeStacks(p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A sample without a chain of an event that has none is of a thread whose callers
// nobody asked for, and not of one of the kernel.
func TestSamplesWithoutChainsAreNotOutermost(t *testing.T) {
	b := newShape("x86_64", sampleBasics, 0, 0)
	b.sample(inKernel, 7, 1000, 0xffffffff81000010)
	p := profiled(t, b.write(t))
	if d := cmp.Diff([]string{"0xffffffff81000010: end-of-stack"}, shapeStacks(p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Beside the chain perf records the link register of AArch64, which is not enough to
// walk a stack from. The chain is named without an architecture to walk by; files of
// this machine are not taken for those of the other.
func TestChainsOfAArch64AreNamed(t *testing.T) {
	oracle.Tools(t, "clang", "ld.lld", "gcc")
	root := t.TempDir()
	source := filepath.Join(root, "a.c")
	if err := os.WriteFile(source, []byte("int leaf(int x) { return x * 3; }\nint caller(int x) { return leaf(x) + 1; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "clang", "--target=aarch64-linux-gnu", "-O0", "-g", "-nostdlib", "-shared", "-fuse-ld=lld", "-Wl,-z,separate-code", "-o", filepath.Join(root, "a.so"), source)
	oracle.Run(t, "gcc", "-O0", "-g", "-shared", "-fPIC", "-o", filepath.Join(root, "x86.so"), source)
	const start = 0x7f0000000000
	offset, at := mappedCode(t, filepath.Join(root, "a.so"), start)
	const linkRegister = 1 << 30
	b := newShape("aarch64", sampleBasics|sampleChain|sampleRegs, 0, linkRegister)
	b.comm(7, 100, 0, "program")
	b.mmap(7, 100, start, 0x1000, offset, "/a.so")
	b.mmap(7, 100, 0x7f8000000000, 0x100000, 0, "/x86.so")
	leaf, caller := at["leaf"]+4, at["caller"]+8
	b.sample(inUser, 7, 1000, leaf, counted(chainUser, leaf, caller), []uint64{2, caller})
	b.sample(inUser, 7, 2000, 0x7f8000001200, counted(chainUser, 0x7f8000001200), []uint64{2, 0})
	p := profileOf(t, Options{Sysroot: root}, b.write(t))
	want := []string{
		fmt.Sprintf("%#x /a.so leaf; %#x /a.so caller: end-of-stack", leaf, caller),
		"0x7f8000001200 /x86.so: end-of-stack",
	}
	if d := cmp.Diff(want, shapeStacks(p)); d != "" {
		t.Errorf("(-want +got):\n%s\n%q", d, p.Problems)
	}
	for i := range p.Modules {
		if m := &p.Modules[i]; strings.Contains(m.Problem, "was not used: it is for") != (m.Path == "/x86.so") {
			t.Errorf("%s: problem %q", m.Path, m.Problem)
		}
	}
}

// Files of one path and build ID under several roots are several files: those of a
// process, and of what it forked, are under its own, and no link leads out of it.
func TestRootsOfProcesses(t *testing.T) {
	oracle.Tools(t, "gcc")
	dir := t.TempDir()
	build := func(root, function string) string {
		t.Helper()
		path := filepath.Join(dir, root, "lib", "thing.so")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		source := filepath.Join(dir, "source.c")
		if err := os.WriteFile(source, fmt.Appendf(nil, "int %s(int x) { return x * 3; }\n", function), 0o600); err != nil {
			t.Fatal(err)
		}
		oracle.Run(t, "gcc", "-O0", "-g", "-shared", "-fPIC", "-Wl,--build-id=0x12345678,-z,separate-code", "-o", path, source)
		return path
	}
	const start = 0x7f0000000000
	offset, at := mappedCode(t, build("host", "on_the_host"), start)
	build("a", "inside_a")
	build("b", "inside_b")
	outside := build("outside", "out_of_it")
	for _, name := range []string{"escape/lib", "escape/tmp", "a/tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "escape/lib/thing.so")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a/tmp/perf-7.map"), []byte("601000 100 made_in_a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "a/tmp/perf-7.map"), filepath.Join(dir, "escape/tmp/perf-12.map")); err != nil {
		t.Fatal(err)
	}

	b := newShape("x86_64", sampleBasics, 0, 0)
	process := func(pid, parent uint32, time uint64) {
		if parent > 0 {
			b.fork(pid, parent, time)
		}
		b.comm(pid, time, 1<<13, "program")
		b.mmap(pid, time, start, 0x1000, offset, "/lib/thing.so")
		b.mmap(pid, time, 0x601000, 0x1000, 0, "//anon")
	}
	process(9, 8, 0) // is told before those that it descends from
	process(7, 1, 0)
	process(8, 7, 0)
	process(10, 1, 0)
	process(11, 9, 100)
	process(12, 1, 100)
	process(13, 7, 100)
	process(14, 7, 100)
	process(15, 14, 110)
	process(14, 1, 200) // the number is used again
	pc := at["on_the_host"] + 4
	time := uint64(1000)
	for _, pid := range []uint32{7, 8, 9, 10, 11, 12, 13, 14, 15} {
		time++
		b.sample(inUser, pid, time, pc)
	}
	b.sample(inUser, 7, 2000, 0x601010)
	b.sample(inUser, 12, 2001, 0x601010)
	root := func(name string) string { return filepath.Join(dir, name) }
	roots := map[int]string{7: root("a"), 12: root("escape"), 13: root("b"), 99: root("outside")}
	e, path := gpuEngine(t, Options{Sysroot: root("host")}), b.write(t)
	p, err := e.Profile(t.Context(), path, trace.ProfileOptions{Roots: roots})
	if err != nil {
		t.Fatal(err)
	}
	checkParts(t, e, path, trace.ProfileOptions{Roots: roots}, p)
	var got []string
	for i := range p.Samples {
		f := &p.Frames[p.Stacks[p.Samples[i].Stack].Frame]
		name := "?"
		if len(f.Symbols) > 0 {
			name = f.Symbols[0].Function
		}
		got = append(got, fmt.Sprintf("%d %s", p.Threads[p.Samples[i].Thread].PID, name))
	}
	want := []string{"7 inside_a", "8 inside_a", "9 inside_a", "10 on_the_host", "11 inside_a", "12 ?", "13 inside_b", "14 on_the_host", "15 inside_a", "7 made_in_a", "12 ?"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	unused := func(s string) bool { return strings.Contains(s, "nothing was looked up under "+root("outside")) }
	if !slices.ContainsFunc(p.Problems, unused) || slices.ContainsFunc(p.Problems, func(s string) bool { return strings.Contains(s, "looked up under") && !unused(s) }) {
		t.Errorf("problems %q", p.Problems)
	}
	for _, bad := range []string{root("none"), outside} {
		if _, err := gpuEngine(t, Options{}).Profile(t.Context(), b.write(t), trace.ProfileOptions{Roots: map[int]string{7: bad}}); err == nil || !strings.Contains(err.Error(), "process 7") {
			t.Errorf("the root %s: %v", bad, err)
		}
	}
}

// A process that has not changed its root yet has the host's files. They are taken where
// the recording has their build ID, and not for their names.
func TestFilesOfTheHostBeforeARoot(t *testing.T) {
	oracle.Tools(t, "gcc")
	dir := t.TempDir()
	for _, name := range []string{"host", "empty"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	source, path := filepath.Join(dir, "source.c"), filepath.Join(dir, "host", "thing.so")
	if err := os.WriteFile(source, []byte("int of_the_host(int x) { return x * 3; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "gcc", "-O0", "-g", "-shared", "-fPIC", "-Wl,--build-id=0x12345678,-z,separate-code", "-o", path, source)
	const start = 0x7f0000000000
	offset, at := mappedCode(t, path, start)
	const hasBuildID = 1 << 14
	b := newShape("x86_64", sampleBasics, 0, 0)
	b.record(10, inUser|hasBuildID, uint32(7), uint32(7), uint64(start), uint64(0x1000), offset,
		[]byte{4, 0, 0, 0, 0x12, 0x34, 0x56, 0x78}, make([]byte, 16), uint32(5), uint32(2), "/thing.so", uint32(7), uint32(7), uint64(100))
	b.mmap(8, 100, start, 0x1000, offset, "/thing.so")
	pc := at["of_the_host"] + 4
	b.sample(inUser, 7, 1000, pc)
	b.sample(inUser, 8, 1001, pc)
	roots := map[int]string{7: filepath.Join(dir, "empty"), 8: filepath.Join(dir, "empty")}
	p, err := gpuEngine(t, Options{Sysroot: filepath.Join(dir, "host")}).Profile(t.Context(), b.write(t), trace.ProfileOptions{Roots: roots})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{fmt.Sprintf("%#x /thing.so of_the_host: end-of-stack", pc), fmt.Sprintf("%#x /thing.so: end-of-stack", pc)}
	if d := cmp.Diff(want, shapeStacks(p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A directory of perf record --kcore has the kernel's names.
func TestKernelNamesOfADirectory(t *testing.T) {
	b := newShape("x86_64", sampleBasics, 0, 0)
	b.sample(inKernel, 7, 1000, 0xffffffff81000010)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "kcore_dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"data":               b.Bytes(),
		"kcore_dir/kallsyms": []byte("ffffffff81000000 T first\nffffffff81000020 T second\nffffffff81000040 T third\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := profileOf(t, Options{}, dir)
	if d := cmp.Diff([]string{"0xffffffff81000010 first: end-of-stack"}, shapeStacks(p)); d != "" {
		t.Errorf("(-want +got):\n%s\n%q", d, p.Problems)
	}
}

// A directory of perf record --threads is one recording.
func TestRecordingsOfSeveralFilesEqualPerf(t *testing.T) {
	if testing.Short() {
		t.Skip("records programs")
	}
	program := recorded.Program(t, "deepcpp", 0.3)
	stacks := []string{"-F", "2000", "-e", "cpu-clock", "--call-graph", "dwarf,16384"}
	for _, c := range []struct {
		name   string
		record []string
	}{
		{"a directory", append([]string{"--threads"}, stacks...)},
		{"a compressed directory", append([]string{"--threads", "-z"}, stacks...)},
		{"chains beside registers", []string{"-F", "2000", "-e", "cpu-clock", "--call-graph", "fp", "--user-regs=ip,sp,bp"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "perf.data")
			recorded.Perf(t, path, c.record, program...)
			p := profiled(t, path)
			t.Logf("%d samples: %v; problems %q", len(p.Samples), comparePerf(t, path, p), p.Problems)
			if len(p.Samples) < 100 {
				t.Errorf("%d samples are too few to say anything", len(p.Samples))
			}
		})
	}
}

// The files of perf record --switch-output are recordings, and together they are one, in
// which every process is known.
func TestFilesThatPerfSwitchedAreOneRecording(t *testing.T) {
	if testing.Short() {
		t.Skip("records programs")
	}
	program, _ := profileCase(t)
	path := filepath.Join(t.TempDir(), "perf.data")
	recorded.Perf(t, path, []string{"--switch-output=300K", "-F", "2000", "-e", "cpu-clock", "--call-graph", "dwarf,16384"}, program, "children")
	files, err := filepath.Glob(path + ".*")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	comparePerf(t, files[0], profiled(t, files[0])) // later ones lack what perf needs
	apart, unknown := 0, 0
	count := func(p *trace.Profile) {
		for i := range p.Samples {
			if p.Stops[p.Samples[i].Stop].Reason == trace.StopNoModule {
				unknown++
			}
		}
	}
	for _, file := range files {
		p := profiled(t, file)
		apart += len(p.Samples)
		count(p)
	}
	t.Logf("%d files, %d samples, %d of them in nothing that is known", len(files), apart, unknown)
	if unknown == 0 {
		t.Error("the files by themselves say all: nothing is shown")
	}
	unknown = 0
	p := profiled(t, path)
	for i := range p.Samples { // once in some hundred runs there is one, of which this tells more
		if stop := p.Stops[p.Samples[i].Stop]; stop.Reason == trace.StopNoModule {
			t.Logf("in nothing that is known: %+v of %+v: %+v", p.Samples[i], p.Threads[p.Samples[i].Thread], stop)
		}
	}
	if count(p); len(p.Samples) != apart || unknown > 0 || len(withoutUnchecked(p.Problems)) > 0 {
		t.Errorf("together %d samples, %d of them in nothing that is known, problems %q", len(p.Samples), unknown, p.Problems)
	}
}

// withoutUnchecked leaves out the problem that build IDs are not in a recording.
func withoutUnchecked(problems []string) []string {
	return slices.DeleteFunc(slices.Clone(problems), func(p string) bool { return strings.Contains(p, "the build ID could not be checked") })
}
