// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/trace"
)

func TestFactsAreInBothByteOrders(t *testing.T) {
	for _, order := range orders {
		f := read(t, everything(order)).Facts()
		same(t, "process", f.Process, trace.Process{ID: 4242, Main: 0x400000, Created: time.Unix(1600000000, 0).UTC(), Kept: time.Unix(1700000000, 0).UTC()})
		same(t, "system", f.System, trace.System{
			OS: Windows, Version: "10.0.19045", Build: "Service Pack 9", Arch: ArchAMD64, Platform: 2, CPU: "family 6 model 58 stepping 9", Processors: 8,
		})
		same(t, "crash", f.Crash, &trace.Crash{
			Name: "EXCEPTION_ACCESS_VIOLATION_WRITE", Address: 0x45, HasAddress: true, Thread: "7", Assertion: "p != NULL, main, main.c:12",
			Access: trace.AccessWrite, Parameters: []uint64{1, 0x45},
		})
		same(t, "unloaded", f.Unloaded, []trace.UnloadedModule{{Name: "gone.dll", Base: 0x700000, Size: 0x3000, CodeID: "000000053000"}})
		same(t, "handles", f.Handles, []trace.Handle{{Number: 0x44, Type: "File", Name: `\Device\Null`}})
		same(t, "annotations", f.Annotations, []trace.Annotation{
			{Name: "prod", Value: "Thing"}, {Module: "old.dll", Value: "said"}, {Module: "old.dll", Name: "prod", Value: "Thing"},
			{Module: "old.dll", Name: "why", Value: "because"},
		})
		l := read(t, linux(order)).Facts()
		same(t, "Linux", []any{l.Process.Command, l.Crash.Name, l.Mappings, *l.Distribution, l.LastErrors == nil},
			[]any{"crash -v", "SIGSEGV / SEGV_MAPERR", 2, trace.Distribution{ID: "x"}, true})
	}
}

// TestCrashesAreNamedAsReportsNameThem has the names of minidump-stackwalk.
func TestCrashesAreNamedAsReportsNameThem(t *testing.T) {
	const win, mac, lin = 2, 0x8101, 0x8201
	for _, tt := range []struct {
		platform    uint32
		code, flags uint32
		parameters  []uint64
		want        string
	}{
		{win, 0xc0000005, 0, []uint64{0, 1}, "EXCEPTION_ACCESS_VIOLATION_READ"},
		{win, 0xc0000005, 0, []uint64{8, 1}, "EXCEPTION_ACCESS_VIOLATION_EXEC"},
		{win, 0xc0000005, 0, nil, "EXCEPTION_ACCESS_VIOLATION"},
		{win, 0xc0000006, 0, []uint64{1, 2, 0xc000009c}, "EXCEPTION_IN_PAGE_ERROR_WRITE / STATUS_DEVICE_DATA_ERROR"},
		{win, 0xc0000409, 0, []uint64{5}, "EXCEPTION_STACK_BUFFER_OVERRUN / FAST_FAIL_INVALID_ARG"},
		{win, 0xc0000409, 0, []uint64{0xffff}, "EXCEPTION_STACK_BUFFER_OVERRUN / 0x0000ffff"},
		{win, 0xc0000409, 0, nil, "STATUS_STACK_BUFFER_OVERRUN"},
		{win, 0x80000003, 0, nil, "EXCEPTION_BREAKPOINT"},
		{win, 0xe06d7363, 0, nil, "Unhandled C++ Exception"},
		{win, 0xe0000008, 0, nil, "Out of Memory"},
		{win, 0x0517a7ed, 0, nil, "Simulated Exception"},
		{win, 0xc000000d, 0, nil, "STATUS_INVALID_PARAMETER"},
		{win, 2, 0, nil, "ERROR_FILE_NOT_FOUND"},
		{win, 0xdeadbeef, 0, nil, "unknown 0xdeadbeef"},
		{lin, 11, 0, nil, "SIGSEGV"},
		{lin, 11, 2, nil, "SIGSEGV / SEGV_ACCERR"},
		{lin, 11, 0x80, nil, "SIGSEGV / SI_KERNEL"},
		{lin, 6, 0xfffffffa, nil, "SIGABRT / SI_TKILL"},
		{lin, 6, 77, nil, "SIGABRT / 0x0000004d"},
		{lin, 0xffffffff, 0, nil, "DUMP_REQUESTED"},
		{lin, 0x1000, 3, nil, "unknown 0x00001000 / 0x00000003"},
		{mac, 1, 1, nil, "EXC_BAD_ACCESS / KERN_INVALID_ADDRESS"},
		{mac, 1, 13, nil, "EXC_BAD_ACCESS / EXC_I386_GPFLT"},
		{mac, 6, 2, nil, "EXC_BREAKPOINT / EXC_I386_BPT"},
		{mac, 5, 0x10002, nil, "EXC_SOFTWARE / EXC_UNIX_ABORT"},
		{mac, 10, 0x0b100000, nil, "EXC_CRASH / 0x0b100000"},
		{mac, 0x43507378, 0, nil, "Simulated Exception"},
		{mac, 0, 0, nil, "unknown 0x00000000 / 0x00000000"},
		{0x7777, 3, 4, nil, "unknown 0x00000003 / 0x00000004"},
	} {
		b := minidumptest.New(binary.LittleEndian)
		b.System(9, tt.platform)
		b.Exception(tt.code, tt.flags, 0x45, tt.parameters...)
		d := read(t, b)
		if got := d.CrashName(&d.Exceptions[0]); got != tt.want {
			t.Errorf("platform %#x, code %#x, flags %#x, %v: %q, expected %q", tt.platform, tt.code, tt.flags, tt.parameters, got, tt.want)
		}
	}
}

// The release of Linux is in the words of uname, where the numbers say nothing.
func TestTheReleaseOfLinuxIsWhatUnameSays(t *testing.T) {
	for _, tt := range []struct{ text, release, version string }{
		{"Linux 4.9.60-aufs #1 SMP Mon Nov 6 2017 x86_64", "4.9.60-aufs", "#1 SMP Mon Nov 6 2017"},
		{"Linux 4.9.60 #1 SMP x86_64 Linux/GNU", "4.9.60", "#1 SMP"},
		{"Linux 4.9.60", "4.9.60", ""},
		{"Linux", "0.0.0", "Linux"},
		{"", "0.0.0", ""},
	} {
		if release, version := splitUname(tt.text); release != tt.release || version != tt.version {
			t.Errorf("%q: %q, %q, expected %q, %q", tt.text, release, version, tt.release, tt.version)
		}
	}
}

func TestProcessorsOfARMAreDescribed(t *testing.T) {
	s := System{Architecture: 5, Level: 7, CPUVersion: 0x510006f0 | 0x00100002, CPUFeatures: 1<<12 | 1<<1}
	if got := s.describeCPU(); got != "ARMv7 Qualcomm Krait features: half,neon" {
		t.Error(got)
	}
	s = System{Architecture: 5, Level: 8, CPUVersion: 0x48001230}
	if got := s.describeCPU(); got != "ARMv8 vendor(0x48) part(0x48001230)" {
		t.Error(got)
	}
}

// TestWhatLibrariesOfMacOSLeftIsRead has records of all three versions, and one that the
// file does not have.
func TestWhatLibrariesOfMacOSLeftIsRead(t *testing.T) {
	for _, order := range orders {
		b := minidumptest.New(order)
		b.System(9, 0x8101)
		head := b.Pack(uint32(StreamMozMacCrashInfo), uint32(4), uint32(40))
		texts := "/usr/lib/libc\x00abort() called\x00sig\x00back\x00again\x00"
		head = append(head, b.Part(uint64(StreamMozMacCrashInfo), uint64(5), uint64(0x11), uint64(0x22), uint64(0x33), texts)...)
		head = append(head, b.Part(uint64(StreamMozMacCrashInfo), uint64(4), uint64(0x44), uint64(0x55), uint64(0), "/usr/lib/x\x00cut")...)
		head = append(head, b.Part(uint64(StreamMozMacCrashInfo), uint64(1), uint64(0), uint64(0), uint64(0))...)
		head = append(head, b.Pack(uint32(64), uint32(0x7fffffff))...)
		b.Stream(uint32(StreamMozMacCrashInfo), head, make([]byte, 16*8))
		b.Stream(uint32(StreamMozMacBootArgs), uint32(StreamMozMacBootArgs), uint64(b.Text("-v debug=1")))
		f := read(t, b).Facts()
		same(t, "messages", f.Messages, []trace.Message{
			{Thread: 0x11, DialogMode: 0x22, AbortCause: 0x33, HasThread: true, HasAbortCause: true,
				Module: "/usr/lib/libc", Text: "abort() called", Signature: "sig", Backtrace: "back", TextAgain: "again"},
			{Thread: 0x44, DialogMode: 0x55, HasThread: true, Module: "/usr/lib/x", Text: "cut"},
			{},
		})
		same(t, "boot arguments", f.BootArguments, "-v debug=1")
	}
}

// TestCrashpadsDumpsOfMacOS has the streams as Crashpad writes them on macOS: the UUID of an image as a record of PDB 7.0 of
// age 0, exceptions of Mach with all their codes as parameters, MINIDUMP_MISC_INFO_5, and the messages that libraries
// left for reports as annotations of their modules.
func TestCrashpadsDumpsOfMacOS(t *testing.T) {
	const darwin, address = 0x8101, 0x1234
	for _, order := range orders {
		b := minidumptest.New(order)
		b.System(12, darwin)
		b.Exception(1, 0x101, address, 1, 0x7_0000_0101, address)
		uuid := b.Pack(uint32(0x0f1e2d3c), uint16(0x4b5a), uint16(0x6978), []byte{0x87, 0x96, 0xa5, 0xb4, 0xc3, 0xd2, 0xe1, 0xf0})
		module := func(base uint64, name string) []byte {
			record := b.Part(uint32(0x53445352), uuid, uint32(0), name+"\x00")
			return b.Pack(base, uint32(0x4000), uint32(0), uint32(0x60000000), b.Text("/usr/lib/"+name), make([]byte, 52), record, uint64(0), uint64(0), uint64(0))
		}
		b.Stream(uint32(StreamModuleList), uint32(2), module(0x100000000, "app"), module(0x180000000, "libsystem_c.dylib"))
		misc := append(b.Pack(uint32(misc5Size), uint32(0x1f7), uint32(4242), uint32(1600000000)), make([]byte, misc5Size-16)...)
		copy(misc[misc4:], b.Wide("macOS 12.5 (21G72)"))
		b.Stream(uint32(StreamMiscInfo), misc)
		none := uint64(0)
		info := b.Part(uint32(1), b.Part(uint32(2), b.Narrow("abort() called"), b.Narrow("dyld: in dlopen()")), none, none)
		simple := b.Part(uint32(1), b.Narrow("ver"), b.Narrow("1.2"))
		b.Stream(uint32(StreamCrashpadInfo), uint32(1), uuid, uuid, simple, b.Part(uint32(1), uint32(1), info), uint32(0), uint64(0))
		d := read(t, b)
		f := d.Facts()
		same(t, "crash", []any{f.Crash.Name, f.Crash.Address, f.Crash.HasAddress}, []any{"EXC_BAD_ACCESS / EXC_ARM_DA_ALIGN", uint64(address), true})
		same(t, "process", []any{f.Process.ID, f.Process.Created.Unix(), d.Misc.BuildString}, []any{int64(4242), int64(1600000000), "macOS 12.5 (21G72)"})
		same(t, "annotations", f.Annotations, []trace.Annotation{
			{Name: "ver", Value: "1.2"}, {Module: "/usr/lib/libsystem_c.dylib", Value: "abort() called"}, {Module: "/usr/lib/libsystem_c.dylib", Value: "dyld: in dlopen()"},
		})
		const id = "0F1E2D3C4B5A69788796A5B4C3D2E1F0"
		same(t, "identity", []any{d.CodeID(&d.Modules[0]), d.Modules[1].Identity.DebugID(), d.Modules[1].Identity.File}, []any{id, id + "0", "libsystem_c.dylib"})
	}
}

// What is no JSON is not handed on as such.
func TestSoftErrorsAreJSON(t *testing.T) {
	for text, want := range map[string]string{"": "", "[1]\x00": "[1]", "{": "", "oops": ""} {
		if got := string(softErrors([]byte(text))); got != want {
			t.Errorf("%q: %q, expected %q", text, got, want)
		}
	}
}

// The whole table of errors is found, and nothing beside it.
func TestErrorsOfWindowsAreNamed(t *testing.T) {
	for code, want := range map[uint32]string{
		0: "ERROR_SUCCESS", 1: "ERROR_INVALID_FUNCTION", 5: "ERROR_ACCESS_DENIED", 10054: "WSAECONNRESET", 12345678: "unknown 0x00bc614e",
		0xc0000034: "STATUS_OBJECT_NAME_NOT_FOUND", 0xffffffff: "unknown 0xffffffff",
	} {
		if got := errorName(code); got != want {
			t.Errorf("%d: %s, expected %s", code, got, want)
		}
	}
}

// TestSendersOfSignals has signals that processes sent, of which the sender lies where the
// address of a fault would. Crashpad always writes si_code, so that its 0 is SI_USER.
func TestSendersOfSignals(t *testing.T) {
	const amd64, x86, pid, user = 9, 0, 4711, 1000 << 32
	for _, tt := range []struct {
		machine     uint16
		code, flags uint32
		isCrashpad  bool
		want        *trace.Sender
		reason      string
	}{
		{amd64, 11, 0, true, &trace.Sender{ID: pid, User: 1000}, "SIGSEGV: SI_USER"},
		{amd64, 5, 0, true, &trace.Sender{ID: pid, User: 1000}, "SIGTRAP: SI_USER"},
		{x86, 11, 0, true, &trace.Sender{ID: pid, NoUser: true}, "SIGSEGV: SI_USER"},
		{amd64, 7, 0xfffffffa, false, &trace.Sender{ID: pid, User: 1000}, "SIGBUS: SI_TKILL"},
		{amd64, 4, 0xffffffff, false, &trace.Sender{ID: pid, User: 1000}, "SIGILL: SI_QUEUE"},
		{amd64, 11, 0, false, nil, "SIGSEGV: SI_USER, or si_code is not in the dump, at 0x3e800001267"},
		{amd64, 11, 1, true, nil, "SIGSEGV: SEGV_MAPERR, at 0x3e800001267"},
		{amd64, 11, 0xfffffffe, true, nil, "SIGSEGV: SI_TIMER"},
	} {
		b := minidumptest.New(binary.LittleEndian)
		b.System(tt.machine, 0x8201)
		b.Exception(tt.code, tt.flags, user|pid)
		if tt.isCrashpad {
			b.Stream(uint32(StreamCrashpadInfo), make([]byte, 52))
		}
		d := read(t, b)
		got := d.Facts().Crash
		same(t, tt.reason, []any{got.Sender, got.HasAddress, d.Reason(&d.Exceptions[0]).String()}, []any{tt.want, tt.want == nil && tt.flags != 0xfffffffe, tt.reason})
	}
}
