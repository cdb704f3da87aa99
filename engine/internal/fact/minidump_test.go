// SPDX-License-Identifier: Apache-2.0

package fact_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/target/minidump"
	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// publishedDumps are dumps of others, by their names in the folder that UNWINDD_MINIDUMPS
// names: those of Breakpad, rust-minidump, symbolic and symbolicator. The files' names, and
// the programs that come with them, say what their crashes were.
var publishedDumps = map[string]string{
	"breakpad/ascii_read_av.dmp":                      `memory that may not be accessed so: reads 0x41414141 in crashme.exe (a guess: the address was overwritten by the text "AAAA")`,
	"breakpad/ascii_write_av.dmp":                     `memory that may not be accessed so: writes 0x41414141 in crashme.exe (a guess: the address was overwritten by the text "AAAA")`,
	"breakpad/exec_av_on_stack.dmp":                   "jump to 0x3df944, which is data",
	"breakpad/linux_divide_by_zero.dmp":               "integer division by zero: idivl -0x4(%rbp) in driver",
	"breakpad/linux_null_dereference.dmp":             "null pointer: writes 4 bytes at 0x0 through rax in driver",
	"breakpad/linux_jmp_to_0.dmp":                     "jump to null: the pointer to a function is null, called from driver",
	"breakpad/linux_jmp_to_module_not_exe_region.dmp": "jump to 0x616500, which is data, of driver, called from driver",
	"breakpad/linux_outside_module.dmp":               "jump to 0x29cd74, where nothing is mapped, called from driver",
	"breakpad/linux_write_to_nonwritable_module.dmp":  "memory that may only be read, of driver2: writes 4 bytes at 0x410000 through rax in driver2",
	"breakpad/linux_write_to_outside_module.dmp":      "memory that is not mapped: writes 4 bytes at 0x390000 through rax in driver3",
	"breakpad/linux_write_to_under_4k.dmp":            "null pointer: writes 4 bytes at 0xf93 through rax in driver1",
	"breakpad/null_read_av.dmp":                       "null pointer: reads 0x0 in crashme.exe",
	"breakpad/null_write_av.dmp":                      "null pointer: writes 0x0 in crashme.exe",
	"breakpad/stack_exhaustion.dmp":                   "stack overflow in crashme.exe",
	"breakpad/tiny-exe-fastfail.dmp":                  "abort() was called",
	"breakpad/write_av_non_canonical.dmp":             "address that is not canonical: writes 8 bytes at 0xfefefefefefefefe through rax and rcx = 0xfefefefefefefefe in crash.exe (a guess: 0xfefefefefefefefe is the pattern of a variable that nobody wrote (-ftrivial-auto-var-init=pattern))",
	"symbolic/crash_macos.dmp":                        "null pointer: writes 4 bytes at 0x45 through rcx in crash_macos",
	"symbolicator/linux.dmp":                          "null pointer: writes 4 bytes at 0x45 in crash",
	"symbolicator/windows.dmp":                        "null pointer: writes 0x45 in crash.exe",
	"rust/invalid-parameter.dmp":                      `assertion failed: format != nullptr, common_vfprintf, minkernel\crts\ucrt\src\appcrt\stdio\output.cpp:32`,
	"../../../examples/crash/server.dmp":              "null pointer: reads 1 byte at 0x0 in content_length",
	"../target/minidump/testdata/minidump2.dmp":       "null pointer: writes 0x45 in test_app.exe+0x429e",
}

// TestDumpsOfOthersSayWhatHappened reads dumps that other projects test with.
func TestDumpsOfOthersSayWhatHappened(t *testing.T) {
	e := engineOf(t)
	for name, want := range publishedDumps {
		path := name
		if !strings.HasPrefix(name, "../") {
			if os.Getenv("UNWINDD_MINIDUMPS") == "" {
				continue // only who has them can read them
			}
			path = filepath.Join(os.Getenv("UNWINDD_MINIDUMPS"), name)
		}
		t.Run(name, func(t *testing.T) {
			got := factOf(t, e, path)
			if !strings.Contains(want, "+0x") {
				got = moduleOffset.ReplaceAllString(got, "")
			}
			if got != want {
				t.Errorf("%s\nexpected\n%s", got, want)
			}
		})
	}
}

// moduleOffset is where a place is in a module.
var moduleOffset = regexp.MustCompile(`\+0x[0-9a-f]+`)

func engineOf(t testing.TB) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func factOf(t *testing.T, e *engine.Engine, path string) string {
	t.Helper()
	target, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	return target.Fact(context.Background())
}

// Platforms of minidumps.
const (
	windows = 2
	linux   = 0x8201
	macOS   = 0x8101
)

const (
	madeCode  = 0x401000 // where the instruction is that failed
	madeData  = 0x500000 // memory that may only be read
	madeGuard = 0x600000
	madeStack = 0x7fff0000
)

// A madeCrash is a dump with one exception.
type madeCrash struct {
	platform    uint32
	code, flags uint32
	address     uint64
	parameters  []uint64
	text        string // the instruction
	rax         uint64
	want        string
}

var madeCrashes = map[string]madeCrash{
	"null": {windows, 0xc0000005, 0, madeCode, []uint64{0, 0x18}, "\x8b\x40\x18", 0, "null pointer: reads 4 bytes at 0x18 through rax in server.exe+0x1000"},
	"constant": {windows, 0xc0000005, 0, madeCode, []uint64{1, madeData + 8}, "\x89\x48\x08", madeData,
		"memory that may only be read: writes 4 bytes at 0x500008 through rax in server.exe+0x1000"},
	"guard page": {windows, 0xc0000005, 0, madeCode, []uint64{1, madeGuard}, "\x89\x08", madeGuard,
		"memory without any rights, as of a guard page: writes 4 bytes at 0x600000 through rax in server.exe+0x1000"},
	"freed": {windows, 0xc0000005, 0, madeCode, []uint64{0, 0xfeeefeeefeeefef6}, "\x8b\x40\x08", 0xfeeefeeefeeefeee,
		"memory that is not mapped: reads 4 bytes at 0xfeeefeeefeeefef6 through rax in server.exe+0x1000 (a guess: 0xfeeefeeefeeefeee is the pattern of memory that Windows' heap freed)"},
	"no address": {windows, 0xc0000005, 0, madeCode, []uint64{0, 1<<64 - 1}, "\x8b\x00", 0x4242424241414141,
		`address that is not canonical: reads 4 bytes at 0x4242424241414141 through rax in server.exe+0x1000 (a guess: the address was overwritten by the text "AAAABBBB")`},
	"execute":    {windows, 0xc0000005, 0, madeData, []uint64{8, madeCode}, "\x90", 0, "jump to 0x401000, which is data, of server.exe"},
	"divide":     {windows, 0xc0000094, 0, madeCode, nil, "\xf7\xf8", 0, "integer division by zero: idiv %eax in server.exe+0x1000"},
	"quotient":   {windows, 0xc0000095, 0, madeCode, nil, "\xf7\xf8", 1<<32 - 1, "the quotient of an integer division is too large: idiv %eax in server.exe+0x1000"},
	"floating":   {windows, 0xc000008e, 0, madeCode, nil, "\xf3\x0f\x5e\xc1", 0, "floating-point division by zero: divss %xmm1,%xmm0 in server.exe+0x1000"},
	"invalid":    {windows, 0xc0000090, 0, madeCode, nil, "\xf3\x0f\x5e\xc1", 0, "invalid floating-point operation: divss %xmm1,%xmm0 in server.exe+0x1000"},
	"illegal":    {windows, 0xc000001d, 0, madeCode, nil, "\x0f\x0b", 0, "trap that the compiler wrote: ud2 in server.exe+0x1000"},
	"privileged": {windows, 0xc0000096, 0, madeCode, nil, "\xf4", 0, "privileged instruction: hlt in server.exe+0x1000"},
	"breakpoint": {windows, 0x80000003, 0, madeCode, nil, "\xcc", 0, "breakpoint: int3 in server.exe+0x1000"},
	"overflow":   {windows, 0xc00000fd, 0, madeCode, []uint64{1, madeStack - 8}, "\x50", 0, "stack overflow: writes 8 bytes at 0x7fff0010 through rsp in server.exe+0x1000"},
	"cookie":     {windows, 0xc0000409, 0, madeCode, []uint64{2}, "\xcd\x29", 0, "stack smashing: the /GS check failed in server.exe+0x1000"},
	"fast fail":  {windows, 0xc0000409, 0, madeCode, []uint64{99}, "\xcd\x29", 0, "the program ended itself by fast fail 99 in server.exe+0x1000"},
	"heap":       {windows, 0xc0000374, 0, madeCode, nil, "\x90", 0, "heap corruption, which Windows' heap found in server.exe+0x1000"},
	"in page": {windows, 0xc0000006, 0, madeCode, []uint64{0, madeData, 0xc000009c}, "\x8b\x00", madeData,
		"the contents of mapped memory could not be read: reads 4 bytes at 0x500000 through rax in server.exe+0x1000"},
	"C++":           {windows, 0xe06d7363, 1, madeCode, []uint64{0x19930520, madeStack, madeData + 0x10, madeData}, "\x90", 0, "C++ exception that nobody caught: app::error in server.exe+0x1000"},
	"C++ elsewhere": {windows, 0xe06d7363, 1, madeCode, []uint64{0x19930520, madeStack, 0x10, 0}, "\x90", 0, "C++ exception that nobody caught in server.exe+0x1000"},

	"not mapped":         {linux, 11, 1, 0x45000, nil, "\x8b\x00", 0x45000, "memory that is not mapped: reads 4 bytes at 0x45000 through rax in server.exe+0x1000"},
	"protection":         {linux, 11, 0x80, 0, nil, "\x8b\x00", 0xdead00000000beef, "address that is not canonical: reads 4 bytes at 0xdead00000000beef through rax in server.exe+0x1000"},
	"sent":               {linux, 6, 0, 0, []uint64{4711, 1000, 0}, "\x90", 0, "SIGABRT was sent by process 4711 of user 1000"},
	"sent as if a fault": {linux, 11, 0xfffffffa, 1000<<32 | 4711, nil, "\x90", 0, "SIGSEGV was sent by process 4711 of user 1000"},
	"sent to itself":     {linux, 7, 0xffffffff, 1000<<32 | 4242, nil, "\x90", 0, "the process sent SIGBUS to itself in server.exe+0x1000"},
	"not said":           {linux, 11, 0, 4711, nil, "\x89\xdf", 0, ""},
	"reached":            {linux, 11, 0, 0x1018, nil, "\x8b\x40\x18", 0x1000, "null pointer: reads 4 bytes at 0x1018 through rax in server.exe+0x1000"},
	"by itself":          {linux, 6, 0xfffffffa, 0, []uint64{4242, 1000, 0}, "\x90", 0, "the process sent SIGABRT to itself in server.exe+0x1000"},
	"refused":            {linux, 31, 1, madeCode, []uint64{41, 0xc000003e}, "\x0f\x05", 0, "system call 41 is refused by a seccomp filter in server.exe+0x1000"},
	"bad access":         {macOS, 1, 1, 0x45000, nil, "\x8b\x00", 0x45000, "memory that is not mapped: reads 4 bytes at 0x45000 through rax in server.exe+0x1000"},
	"trap":               {macOS, 6, 2, madeCode, nil, "\xcc", 0, "breakpoint: int3 in server.exe+0x1000"},
	"asked":              {linux, 0xffffffff, 0, madeCode, nil, "\x90", 0, ""},
}

// TestExceptionsSayWhatHappened has exceptions of each system in dumps that are made.
func TestExceptionsSayWhatHappened(t *testing.T) {
	e := engineOf(t)
	for name, c := range madeCrashes {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "made.dmp")
			if err := os.WriteFile(path, c.dump(""), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := factOf(t, e, path); got != c.want {
				t.Errorf("%s\nexpected\n%s", got, c.want)
			}
		})
	}
}

// dump is a dump with the crash, of which the stack begins with a memory.
func (c *madeCrash) dump(memory string) []byte {
	b := minidumptest.New(binary.LittleEndian)
	b.System(9, c.platform)
	context := make([]byte, 1232)
	binary.LittleEndian.PutUint32(context[48:], 0x10000b)
	binary.LittleEndian.PutUint64(context[120:], c.rax)
	binary.LittleEndian.PutUint64(context[152:], madeStack+0x18) // rsp
	binary.LittleEndian.PutUint64(context[248:], madeCode)       // rip
	at := b.Part(context)
	b.Stream(uint32(minidump.StreamThreadList), uint32(1), uint32(7), uint32(0), uint32(0), uint32(0), uint64(0x7ffd000),
		uint64(madeStack), b.Part(append([]byte(memory), make([]byte, 0x1000-len(memory))...)), at)
	parameters := make([]uint64, 15)
	copy(parameters, c.parameters)
	b.Stream(uint32(minidump.StreamException), uint32(7), uint32(0), c.code, c.flags, uint64(0), c.address,
		uint32(len(c.parameters)), uint32(0), parameters, at) //nolint:gosec // few
	b.Stream(uint32(minidump.StreamMiscInfo), uint32(24), uint32(1), uint32(4242), uint32(0), uint32(0), uint32(0))
	b.Stream(uint32(minidump.StreamModuleList), uint32(1), uint64(0x400000), uint32(0x2000), uint32(0), uint32(0),
		b.Text(`C:\srv\server.exe`), make([]byte, 52), uint64(0), uint64(0), uint64(0), uint64(0))
	// What a throw of Visual C++ leads to: a ThrowInfo, a list of types, a type and its
	// descriptor, by offsets from madeData.
	throw := b.Pack(make([]byte, 0x10), uint32(0), uint32(0), uint32(0), uint32(0x30), make([]byte, 0x10),
		uint32(1), uint32(0x40), uint64(0), uint32(0), uint32(0x50), uint64(0), uint64(0), uint64(0), ".?AVerror@app@@\x00")
	code := append([]byte(c.text), make([]byte, 16)...)
	b.Stream(uint32(minidump.StreamMemoryList), uint32(2), uint64(madeCode), b.Part(code), uint64(madeData), b.Part(throw))
	b.Stream(uint32(minidump.StreamMemoryInfoList), uint32(16), uint32(48), uint64(4), []byte(nil),
		region(b, 0x400000, 0x2000, 0x20, 0x1000000), region(b, madeData, 0x1000, 0x02, 0x20000), region(b, madeGuard, 0x1000, 0x104, 0x20000),
		region(b, madeStack, 0x1000, 0x04, 0x20000))
	return b.Bytes()
}

// region is a MINIDUMP_MEMORY_INFO of committed memory.
func region(b *minidumptest.Builder, base, size uint64, protect, of uint32) []byte {
	return b.Pack(base, base, uint32(0), uint32(0), size, uint32(0x1000), protect, of, uint32(0))
}

// TestFlipsAreWeighedByRegisters has an address that is not canonical by one bit, near
// which a register points.
func TestFlipsAreWeighedByRegisters(t *testing.T) {
	c := madeCrash{platform: linux, code: 11, flags: 0x80, text: "\x8b\x40\x08", rax: madeStack ^ 1<<60}
	path := filepath.Join(t.TempDir(), "made.dmp")
	if err := os.WriteFile(path, c.dump(""), 0o600); err != nil {
		t.Fatal(err)
	}
	target, err := engineOf(t).Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	got := target.Analysis(context.Background())
	// The register is rsp: of three reasons one each holds with 0.25, 0.9 and 0.5.
	want := trace.Analysis{
		IsDecoded: true, Accesses: []trace.MemoryAccess{{Address: madeStack + 8 ^ 1<<60, Size: 4, IsRead: true}},
		BitFlips: []trace.BitFlip{{Address: madeStack + 8, WasNonCanonical: true, NearbyRegisters: 1, Confidence: 0.9625}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-expected +got)\n%s", d)
	}
}
