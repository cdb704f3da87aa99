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
	"github.com/unwindd/unwindd/engine/target"
)

var orders = []minidumptest.ByteOrder{binary.LittleEndian, binary.BigEndian}

// read reads a dump that has nothing wrong.
func read(t *testing.T, b *minidumptest.Builder) *Dump {
	t.Helper()
	d, err := Read("made.dmp", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if p := d.Problems(); len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
	return d
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: (-expected +got)\n%s", what, diff)
	}
}

func TestEveryStreamIsReadInBothByteOrders(t *testing.T) {
	for _, order := range orders {
		d := read(t, everything(order))
		same(t, "system", []any{d.System.Arch(), d.System.OS(), d.System.Version(), d.System.ServicePack, d.System.Processors, d.System.Level},
			[]any{ArchAMD64, Windows, "10.0.19045", "Service Pack 9", uint8(8), uint16(6)})
		same(t, "reason", d.Reason(&d.Exceptions[0]).String(), "STATUS_ACCESS_VIOLATION: write at 0x45")
		same(t, "threads", []any{len(d.Threads), d.Threads[0].ID, d.Threads[0].TEB, d.Threads[1].Name, d.Threads[0].Priority},
			[]any{2, uint32(7), uint64(0x7ffd000), "wörker \U0001f980", uint32(5)})
		same(t, "thread info", d.Threads[0].Info, &ThreadInfo{ID: 7, DumpFlags: 1, ExitStatus: 259, CreateTime: 11, ExitTime: 12, KernelTime: 13, UserTime: 14, StartAddress: 15, Affinity: 16})
		pc, ok := d.Threads[0].Context.PC()
		same(t, "pc", []any{pc, ok}, []any{uint64(248<<32 | 248), true})
		var ids []string
		for i := range d.Modules {
			ids = append(ids, d.Modules[i].Name, d.Modules[i].Identity.DebugID(), d.Modules[i].Identity.File, d.Modules[i].Version.String())
		}
		elf := "0403020106050807090A0B0C0D0E0F100" // the first three numbers are in the dump's byte order
		if order == binary.BigEndian {
			elf = "0102030405060708090A0B0C0D0E0F100"
		}
		same(t, "modules", ids, []string{
			`c:\app.exe`, "5A9832E5287241C1838ED98914E9B7FF1", "app.pdb", "5.1.2600.2180",
			"old.dll", "3C4D5E6F2", "old.pdb", "5.1.2600.2180",
			"libx.so", elf, "", "5.1.2600.2180",
		})
		same(t, "code ID", d.CodeID(&d.Modules[0]), "45D35F6C2000")
		same(t, "unloaded", d.UnloadedModules, []UnloadedModule{{0x700000, 0x3000, 4, 5, "gone.dll"}})
		same(t, "memory info", d.MemoryInfo, []MemoryInfo{{0x400000, 0x400000, 0x80, 0x20, 0x1000, MemCommit, 0x1000000}})
		same(t, "executable", d.MemoryInfo[0].IsExecutable(), true)
		same(t, "handles", d.Handles, []Handle{{0x44, "File", `\Device\Null`, 1, 2, 3, 4, []HandleInfo{{2, []byte("info")}}}})
		same(t, "misc", []uint32{d.Misc.ProcessID, d.Misc.CreateTime, d.Misc.UserTime, d.Misc.KernelTime}, []uint32{4242, 1600000000, 2, 1})
		same(t, "breakpad", d.Breakpad, &Breakpad{8, 7, true, true})
		same(t, "assertion", d.Assertion, &Assertion{"p != NULL", "main", "main.c", 12, AssertInvalidParameter})
		same(t, "comments", d.CommentA+", "+d.CommentW, "a comment, a wide comment")
		same(t, "crashpad", []any{d.UUID(d.Crashpad.ReportID), d.Crashpad.Annotations, d.Crashpad.AddressMask},
			[]any{"5a9832e5-2872-41c1-838e-d98914e9b7ff", []Annotation{{Name: "prod", Type: 1, Text: "Thing"}}, uint64(0xffffff)})
		same(t, "annotations", d.Modules[1].Crashpad, &ModuleAnnotations{1, []string{"said"}, []Annotation{{Name: "prod", Type: 1, Text: "Thing"}},
			[]Annotation{{Name: "why", Type: 1, Text: "because"}, {Name: "count", Type: 0x8001, Value: []byte{5, 6}}}})
		buf := make([]byte, 6)
		_, err := d.ReadMemory(0x2000, buf)
		same(t, "memory", []any{string(buf), err}, []any{"listed", nil})
		_, err = d.ReadMemory(0x1004, buf)
		same(t, "stack", []any{string(buf), err}, []any{"bytes ", nil})
	}
}

func TestStreamsOfLinux(t *testing.T) {
	for _, order := range orders {
		d := read(t, linux(order))
		same(t, "reason", d.Reason(&d.Exceptions[0]).String(), "SIGSEGV: SEGV_MAPERR, at 0x45")
		same(t, "texts", []string{string(d.Linux.CPUInfo), string(d.Linux.Status), string(d.Linux.LSBRelease)}, []string{"processor : 0\n", "Name:\tcrash\n", "DISTRIB_ID=x\n"})
		same(t, "command line", d.Linux.CommandLine, []string{"crash", "-v"})
		same(t, "environ", d.Linux.Environ, []string{"A=1", "B=2"})
		same(t, "auxv", d.Auxv(), []AuxEntry{{6, 4096}, {33, 0x7fff0000}})
		same(t, "maps", d.Linux.Maps, []Mapping{
			{0x400000, 0x41a000, "r-xp", 0x1000, "08:01", 86123, "/a b"}, {0x7fff0000, 0x7fff2000, "rw-p", 0, "00:00", 0, ""},
		})
		g := d.Linux.DSODebug
		same(t, "libraries", g.Libraries, []LinkMap{{0x10000, "libm.so.6", 0x20000}, {0, "ld.so", 0x30000}})
		same(t, "dynamic linker", []any{g.Break, g.LinkerBase, g.Dynamic, string(g.DynamicSection)}, []any{uint64(1), uint64(2), uint64(3), "dynamic"})
	}
}

func TestLibrariesOfOlderBreakpads(t *testing.T) {
	b := minidumptest.New(binary.LittleEndian)
	b.System(9, 0x8201)
	list := b.Put(uint64(0x7f0000010000), b.Text("libm.so.6"), uint32(0x7f), uint64(0x20000), uint64(0x7f0000020000), b.Text("ld.so"), uint32(0x7f), uint64(0x30000))
	b.Stream(uint32(StreamLinuxDSODebug), uint32(1), list, uint32(2), uint32(0xffff), []uint64{1, 2, 3}, "dynamic")
	g := read(t, b).Linux.DSODebug
	same(t, "libraries", g.Libraries, []LinkMap{{0x7f0000010000, "libm.so.6", 0x20000}, {0x7f0000020000, "ld.so", 0x30000}})
	same(t, "dynamic linker", []any{g.Break, g.LinkerBase, g.Dynamic, string(g.DynamicSection)}, []any{uint64(1), uint64(2), uint64(3), "dynamic"})
}

func TestReasons(t *testing.T) {
	const linux, mac, windows = 0x8201, 0x8101, 2
	for _, c := range []struct {
		arch        uint16
		platform    uint32
		code, flags uint32
		address     uint64
		parameters  []uint64
		want        string
	}{
		{9, windows, 0xc0000005, 0, 1, []uint64{0, 0x10}, "STATUS_ACCESS_VIOLATION: read at 0x10"},
		{9, windows, 0xc0000005, 0, 1, []uint64{8, 0x10}, "STATUS_ACCESS_VIOLATION: execute at 0x10"},
		{9, windows, 0xc0000005, 0, 1, []uint64{0, ^uint64(0)}, "STATUS_ACCESS_VIOLATION: read at an address that is not known"},
		{0, windows, 0xc0000005, 0, 1, []uint64{1, 0xffffffff80000000}, "STATUS_ACCESS_VIOLATION: write at 0x80000000"},
		{9, windows, 0xc0000005, 0, 1, nil, "STATUS_ACCESS_VIOLATION"},
		{9, windows, 0xc0000006, 0, 1, []uint64{0, 0x10, 0xc000009c}, "STATUS_IN_PAGE_ERROR: STATUS_DEVICE_DATA_ERROR, read at 0x10"},
		{9, windows, 0xc0000409, 0, 1, []uint64{7}, "STATUS_STACK_BUFFER_OVERRUN: FAST_FAIL_FATAL_APP_EXIT"},
		{9, windows, 0xc0000409, 0, 1, []uint64{16}, "STATUS_STACK_BUFFER_OVERRUN: fast fail 0x10"},
		{9, windows, 0xc0000094, 0, 0x77, nil, "STATUS_INTEGER_DIVIDE_BY_ZERO: at 0x77"},
		{9, windows, 0xe06d7363, 1, 1, []uint64{1, 2, 3}, "C++ exception"},
		{9, windows, 0, 0, 1, nil, "STATUS_SUCCESS"},
		{9, windows, 0xc000027b, 0, 1, nil, "STATUS_STOWED_EXCEPTION"},
		{9, windows, 0xdeadbeef, 0, 1, nil, "0xdeadbeef"},
		{9, linux, 11, 2, 0x45, nil, "SIGSEGV: SEGV_ACCERR, at 0x45"},
		{9, linux, 11, 0x80, 0, nil, "SIGSEGV: SI_KERNEL"},
		{9, linux, 11, 0, 0x45, nil, "SIGSEGV: SI_USER, or si_code is not in the dump, at 0x45"},
		{9, linux, 6, 0xfffffffa, 0x518, nil, "SIGABRT: SI_TKILL"},
		{9, linux, 8, 1, 0x400, nil, "SIGFPE: FPE_INTDIV, at 0x400"},
		{1, linux, 10, 1, 0x401, nil, "SIGBUS: BUS_ADRALN, at 0x401"}, // of MIPS
		{9, linux, 0xffffffff, 0, 0, nil, "DUMP_REQUESTED"},
		{9, linux, 99999, 0, 0, nil, "signal 99999: SI_USER, or si_code is not in the dump"},
		{12, mac, 1, 2, 0x45, nil, "EXC_BAD_ACCESS: KERN_PROTECTION_FAILURE, at 0x45"},
		{12, mac, 1, 0x101, 0x45, nil, "EXC_BAD_ACCESS: EXC_ARM_DA_ALIGN, at 0x45"},
		{9, mac, 1, 13, 0, nil, "EXC_BAD_ACCESS: EXC_I386_GPFLT"},
		{9, mac, 3, 1, 0x45, nil, "EXC_ARITHMETIC: EXC_I386_DIV"},
		{9, mac, 5, 0x10002, 0, nil, "EXC_SOFTWARE: EXC_UNIX_ABORT"},
		{9, mac, 10, 0x0b100001, 0, nil, "EXC_CRASH: SIGSEGV, of EXC_BAD_ACCESS"},
		{9, mac, 6, 9, 0, nil, "EXC_BREAKPOINT: code 0x9"},
		{9, 0x7777, 6, 9, 0, nil, "0x6"},
	} {
		b := minidumptest.New(binary.LittleEndian)
		b.System(c.arch, c.platform)
		b.Exception(c.code, c.flags, c.address, c.parameters...)
		d := read(t, b)
		if got := d.Reason(&d.Exceptions[0]).String(); got != c.want {
			t.Errorf("code %#x, flags %#x, parameters %#x: %s, expected %s", c.code, c.flags, c.parameters, got, c.want)
		}
	}
}

func TestOverlappingMemoryIsThatOfTheFirst(t *testing.T) {
	b := minidumptest.New(binary.LittleEndian)
	b.Stream(uint32(StreamMemoryList), uint32(3),
		uint64(0x1004), b.Part("abcd"),
		uint64(0x1000), b.Part("0123456789"),
		uint64(0x100a), b.Part("rest"))
	at := b.Put("LONGER THAN ALL")
	b.Stream(uint32(StreamMemory64List), uint64(1), uint64(at), uint64(0x1000), uint64(15))
	d, err := Read("made.dmp", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 20)
	n, err := d.ReadMemory(0x1000, buf)
	if got := string(buf[:n]); got != "0123abcd89restL" || !errors.Is(err, target.ErrNoMemory) || !strings.Contains(err.Error(), "0x100f") {
		t.Errorf("%q, %v", got, err)
	}
	if p := strings.Join(d.Problems(), "\n"); strings.Count(p, "overlap") != 3 || !strings.Contains(p, "4 bytes at 0x1004") {
		t.Errorf("problems: %s", p)
	}
}

func TestWhatIsNoDump(t *testing.T) {
	for _, text := range []string{"", "MDM", "\x7fELF and more bytes than a header has, for all that matters"} {
		path := filepath.Join(t.TempDir(), "x.dmp")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, ErrNotMinidump) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Read("cut.dmp", []byte("MDMP")); err == nil || !strings.Contains(err.Error(), "32 bytes") {
		t.Errorf("a cut header: %v", err)
	}
	b := minidumptest.New(binary.LittleEndian)
	b.System(9, 2)
	data := b.Bytes()
	binary.LittleEndian.PutUint32(data[12:], 0xffffffff)
	if _, err := Read("far.dmp", data); err == nil || !strings.Contains(err.Error(), "0xffffffff") {
		t.Errorf("a far directory: %v", err)
	}
}
