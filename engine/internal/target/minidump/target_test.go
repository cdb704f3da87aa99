// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// describe has x86-64 alone.
func describe(arch string) (*sdk.Description, error) {
	if arch != ArchAMD64 {
		return nil, target.ErrNoArchitecture
	}
	return x86_64.Description(), nil
}

// openTarget opens a dump as a target, in a folder of its own.
func openTarget(t *testing.T, b *minidumptest.Builder) *Target {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.dmp")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	state, err := OpenTarget(path, Options{Finder: object.Finder{Sysroot: t.TempDir()}, Describe: describe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Close() })
	return state
}

func register(t *testing.T, th *trace.Thread, name string) uint64 {
	t.Helper()
	info, ok := x86_64.Description().RegisterByName(name)
	if !ok {
		t.Fatalf("no register %s", name)
	}
	v, _ := th.Registers.Uint64(info.Number, sdk.LittleEndian)
	return v
}

// threadList is a list of threads, each with an ID and a context.
func threadList(b *minidumptest.Builder, contexts map[uint32][]byte, ids ...uint32) {
	list := b.Pack(uint32(len(ids)))
	for _, id := range ids {
		list = append(list, b.Pack(id, uint32(0), uint32(0), uint32(0), uint64(0), uint64(0x1000), uint64(0), contexts[id])...)
	}
	b.Stream(uint32(StreamThreadList), list)
}

func TestTheCrashedThreadHasTheRegistersOfTheException(t *testing.T) {
	b := minidumptest.New(binary.LittleEndian)
	b.System(9, 0x8201)
	context := func(rip uint64) []byte {
		c := b.AMD64Context(0x10000b) // control, integer, floating
		copy(c[248:], b.Pack(rip))
		return b.Part(c)
	}
	threadList(b, map[uint32][]byte{7: context(0x1111), 8: context(0x2222)}, 8, 7)
	b.Stream(uint32(StreamException), uint32(7), uint32(0), uint32(11), uint32(1), uint64(0), uint64(0x45), uint32(0), uint32(0), make([]byte, 120), context(0x3333))
	state := openTarget(t, b)
	threads := state.Threads()
	if len(threads) != 2 || threads[0].ID != "8" || threads[1].ID != "7" {
		t.Fatalf("threads %+v", threads)
	}
	if th := threads[0]; th.Crashed || register(t, th, "rip") != 0x2222 || register(t, th, "rbx") != 144<<32|144 {
		t.Errorf("thread 8: %+v", th)
	}
	th := threads[1]
	if !th.Crashed || th.Signal != 11 || register(t, th, "rip") != 0x3333 {
		t.Errorf("thread 7: %+v", th)
	}
	want := &trace.Stop{Reason: sdk.StopMemoryFault, Address: 0x45, HasAddress: true}
	if d := cmp.Diff(want, th.Stop); d != "" {
		t.Error(d)
	}
	// The flags do not say that segment registers were written.
	ds, _ := x86_64.Description().RegisterByName("ds")
	if _, ok := th.Registers.Get(ds.Number); ok {
		t.Error("ds is there, which the flags do not say")
	}
	info := state.Info()
	if info.Kind != trace.Minidump || info.Signal != 11 || info.FaultAddress != 0x45 || !info.HasFaultAddress || info.Machine != 62 || len(info.Problems) > 0 {
		t.Errorf("%+v", info)
	}
}

// Breakpad's dumps of macOS have contexts whose flags say the processor alone.
func TestAContextThatDoesNotSayWhatItHasHasGeneralRegisters(t *testing.T) {
	b := minidumptest.New(binary.LittleEndian)
	b.System(9, 0x8101)
	threadList(b, map[uint32][]byte{7: b.Part(b.AMD64Context(0x100000))}, 7)
	th := openTarget(t, b).Threads()[0]
	if th.Problem != "" || register(t, th, "rip") != 248<<32|248 || register(t, th, "r15") != 240<<32|240 {
		t.Errorf("%+v", th)
	}
	info, _ := x86_64.Description().RegisterByName("xmm0")
	if _, ok := th.Registers.Get(info.Number); ok {
		t.Error("xmm0 is there, which Breakpad does not write")
	}
}

func TestABlockOfDataGivesItsRegister(t *testing.T) {
	for platform, name := range map[uint32]string{2: "gs.base", 0x8201: "fs.base"} {
		b := minidumptest.New(binary.LittleEndian)
		b.System(9, platform)
		b.Stream(uint32(StreamThreadList), uint32(1), uint32(7), uint32(0), uint32(0), uint32(0), uint64(0x7ffd000), uint64(0x1000), uint64(0),
			b.Part(b.AMD64Context(0x10000b)))
		if v := register(t, openTarget(t, b).Threads()[0], name); v != 0x7ffd000 {
			t.Errorf("%s is %#x", name, v)
		}
	}
}

func TestADumpThatSomebodyAskedForHasNoCrashedThread(t *testing.T) {
	for _, asked := range []struct{ code, flags uint32 }{{breakpadRequest, 0}, {19, lldbFlags}} {
		b := minidumptest.New(binary.LittleEndian)
		b.System(9, 0x8201)
		threadList(b, map[uint32][]byte{7: b.Part(b.AMD64Context(0x10000b))}, 7)
		b.Exception(asked.code, asked.flags, 0)
		state := openTarget(t, b)
		if th := state.Threads()[0]; th.Crashed || th.Signal != 0 || state.Info().Signal != 0 {
			t.Errorf("%+v: %+v, %+v", asked, th, state.Info())
		}
	}
}

func TestThreadsThatNobodyWalksHaveTheirPC(t *testing.T) {
	b := minidumptest.New(binary.LittleEndian)
	b.System(0, 2)
	c := make([]byte, 716)
	copy(c, b.Pack(uint32(0x1003f)))
	copy(c[184:], b.Pack(uint32(0x40429e)))
	threadList(b, map[uint32][]byte{7: b.Part(c), 8: b.Pack(uint64(0)), 9: b.Part("no context")}, 7, 8, 9)
	state := openTarget(t, b)
	threads := state.Threads()
	if th := threads[0]; th.Arch != "i386" || !th.HasPC || th.PC != 0x40429e || !strings.Contains(th.Unread, "unwindd-arch-i386") {
		t.Errorf("%+v", th)
	}
	if threads[1].Problem != "the dump has no registers of the thread" || !strings.Contains(threads[2].Problem, "is of no form that is known") {
		t.Errorf("%q, %q", threads[1].Problem, threads[2].Problem)
	}
	if p := state.Info().Problems; len(p) != 2 || !strings.Contains(p[1], "threads of i386 are not walked") {
		t.Errorf("problems %q", p)
	}
}

func TestModulesAreNamedAsStoresKnowThem(t *testing.T) {
	b := everything(binary.LittleEndian)
	state := openTarget(t, b)
	type seen struct {
		path    string
		id      string
		symbols trace.SymbolID
	}
	var got []seen
	for _, m := range state.Modules() {
		got = append(got, seen{m.Path, string(m.BuildID), m.Symbols})
	}
	want := []seen{
		{`c:\app.exe`, "\x5a\x98\x32\xe5\x28\x72\x41\xc1\x83\x8e\xd9\x89\x14\xe9\xb7\xff\x00\x00\x00\x01",
			trace.SymbolID{DebugFile: "app.pdb", DebugID: "5A9832E5287241C1838ED98914E9B7FF1", CodeID: "45D35F6C2000"}},
		{"old.dll", "\x45\xd3\x5f\x6c\x00\x00\x20\x00", trace.SymbolID{DebugFile: "old.pdb", DebugID: "3C4D5E6F2", CodeID: "45D35F6C2000"}},
		{"libx.so", "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14",
			trace.SymbolID{DebugFile: "libx.so", DebugID: "0403020106050807090A0B0C0D0E0F100", CodeID: "45D35F6C2000"}},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); d != "" {
		t.Error(d)
	}
}

// A module without a file has the parts that the dump says to be mapped, and its addresses
// count from its base.
func TestModulesWithoutFilesAreWhereTheDumpSays(t *testing.T) {
	state := openTarget(t, everything(binary.LittleEndian))
	list := state.Modules()
	want := [][]trace.Segment{
		{{Address: 0, Size: 0x1000, Start: 0x400000, Executable: true}}, // as the region
		{{Address: 0, Size: 0x2000, Start: 0x500000, Executable: true}}, // as nothing is said
		{{Address: 0, Size: 0x2000, Start: 0x600000, Executable: true}},
	}
	for i, m := range list {
		if d := cmp.Diff(want[i], m.Segments); d != "" || m.ID != i {
			t.Errorf("%s: %s", m.Path, d)
		}
	}
	for _, tt := range []struct {
		address            uint64
		mapped, executable bool
	}{{0x400fff, true, true}, {0x401000, false, false}, {0x501000, true, true}, {0x2000, true, false}, {0x2006, false, false}, {^uint64(0), false, false}} {
		if m, x := state.Mapped(tt.address); m != tt.mapped || x != tt.executable {
			t.Errorf("%#x: mapped %v, executable %v", tt.address, m, x)
		}
	}
	buf := make([]byte, 8)
	n, err := state.ReadMemory(locexpr.DefaultSpace, 0x2000, buf)
	if n != 6 || string(buf[:n]) != "listed" || !errors.Is(err, target.ErrNoMemory) {
		t.Errorf("%d bytes, %q, %v", n, buf, err)
	}
}

// LLDB says of a library that it is as large as its first segment. The list of mappings has
// where its code is, between others.
func TestAModuleIsAsLargeAsWhatIsMappedOfItsFile(t *testing.T) {
	b := minidumptest.New(binary.LittleEndian)
	b.System(9, 0x8201)
	module := func(base uint64, size uint32, name string) []byte {
		return b.Pack(base, size, uint32(0), uint32(0), b.Text(name), make([]byte, 52), uint64(0), uint64(0), uint64(0), uint64(0))
	}
	b.Stream(uint32(StreamModuleList), uint32(4), b.Pack(
		module(0x10000, 0xf88, "libc.so.6"), module(0x20000, 0x1800, "whole.so"), module(0x22000, 0x800, "twice.so"), module(0x24000, 0x800, "twice.so")))
	b.Stream(uint32(StreamLinuxMaps), `00010000-00011000 r--p 00000000 08:01 1 /usr/lib/libc.so.6
00011000-00014000 r-xp 00001000 08:01 1 /usr/lib/libc.so.6
00014000-00015000 r--p 00004000 08:01 1 /usr/lib/libc.so.6
00015000-00016000 rw-p 00000000 00:00 0
00020000-00021000 r--p 00000000 08:01 1 /usr/lib/whole.so
00021000-00022000 r-xp 00001000 08:01 1 /usr/lib/whole.so
00022000-00023000 r--p 00000000 08:01 1 /usr/lib/twice.so
00023000-00024000 r-xp 00001000 08:01 1 /usr/lib/twice.so
00024000-00025000 r--p 00002000 08:01 1 /usr/lib/twice.so
00025000-00026000 r-xp 00000000 08:01 1 /usr/lib/twice.so
`)
	want := [][]trace.Segment{
		{{Size: 0x1000, Start: 0x10000}, {Address: 0x1000, Size: 0x3000, Start: 0x11000, Executable: true}, {Address: 0x4000, Size: 0x1000, Start: 0x14000}},
		{{Size: 0x1000, Start: 0x20000}, {Address: 0x1000, Size: 0x800, Start: 0x21000, Executable: true}},
		{{Size: 0x1000, Start: 0x22000}, {Address: 0x1000, Size: 0x1000, Start: 0x23000, Executable: true}}, // up to the next module
		{{Size: 0x1000, Start: 0x24000}}, // what follows is another beginning of the file
	}
	for i, m := range openTarget(t, b).Modules() {
		if d := cmp.Diff(want[i], m.Segments); d != "" {
			t.Errorf("%s: %s", m.Path, d)
		}
	}
}

// The processor is said by a stream of the end of the file, which is cut off first.
func TestThreadsOfNoProcessor(t *testing.T) {
	data, err := os.ReadFile("../../../../examples/crash/server.dmp")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.dmp")
	if err := os.WriteFile(path, data[:24278], 0o600); err != nil {
		t.Fatal(err)
	}
	state, err := OpenTarget(path, Options{Finder: object.Finder{Sysroot: t.TempDir()}, Describe: describe})
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	problems := strings.Join(state.Info().Problems, "\n")
	if want := "threads are not walked: nothing says of what processor they are"; !strings.Contains(problems, want) || strings.Contains(problems, "threads of ") {
		t.Errorf("problems:\n%s\nexpected %q", problems, want)
	}
}
