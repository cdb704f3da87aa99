// SPDX-License-Identifier: Apache-2.0

package fact_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/sdk"
)

const aarch64Root = "/usr/aarch64-linux-gnu"

// aarch64Crashes are what each kind of crash must say on AArch64. Their cores are qemu's,
// which say neither the address of a fault nor why it failed, nor which files were mapped.
var aarch64Crashes = []struct{ kind, want string }{
	{"null_read", "null pointer: reads 4 bytes at 0x18 through x0 (it->value) in member"},
	{"null_write", "null pointer: writes 4 bytes at 0x18 through x0 (it->value) in set_member"},
	{"null_update", "null pointer: reads 4 bytes at 0x18 through x0 (it->value) in add_member"},
	{"null_deep", "null pointer: reads 1 byte at 0x35 through x0 (o->items[1].head[5]) in deep_member"},
	{"null_index", "null pointer: reads 4 bytes at 0x14 through x0 (list) and x1 = 0x5 in element"},
	{"null_signed", "null pointer: reads 4 bytes at 0xc through x0 (list) and x1 = 0xfffffffffffffffb in signed_element"},
	{"null_copy", "null pointer: writes 16 bytes at 0x0 through x1 and x2 = 0x0 in memcpy, called from null_copy"},
	{"pair", "null pointer: reads 16 bytes at 0x10 through x0 in pair"},
	{"atomic", "null pointer: reads and writes 4 bytes at 0x18 through x1 in __aarch64_ldadd4_acq_rel"},
	{"freed", "memory that is not mapped: reads 4 bytes at ADDRESS through x0 (p) in through"},
	{"behind", "memory that is not mapped (8 bytes behind the end of a mapping): writes 1 byte at ADDRESS through x0 (p) in set"},
	{"guard", "memory without any rights, as of a guard page: writes 1 byte at ADDRESS through x0 (p) in set"},
	{"constant", "memory that may only be read: writes 1 byte at ADDRESS through x0 (p) in set"},
	{"code_write", "memory that may only be read: writes 1 byte at ADDRESS through x0 (p) in set"},
	{"not_canonical", "memory that is not mapped: reads 4 bytes at 0xdead00000000beef through x0 (p) in through"},
	{"flipped_low", "memory that is not mapped: reads 4 bytes at ADDRESS through x0 (p) in through (a guess: bit 40 is flipped of ADDRESS, which is mapped)"},
	{"tagged", "memory that is not mapped: reads 4 bytes at 0x5a00000000000008 through x0 (p) in through"},
	{"text", `memory that is not mapped: reads 4 bytes at 0x4242424241414141 through x0 (p) in through (a guess: the address was overwritten by the text "AAAABBBB")`},
	{"pattern", "memory that is not mapped: reads 4 bytes at 0x5a5a5a5a5a5a5a5a through x0 (p) in through (a guess: 0x5a5a5a5a5a5a5a5a is the pattern of memory that jemalloc freed)"},
	{"overflow", "stack overflow: deep calls itself at least 4096 times; writes SIZE at ADDRESS through sp in deep"},
	{"overflow_thread", "stack overflow: even, odd call each other at least N times; writes SIZE at ADDRESS through sp in FUNCTION"},
	{"call_null", "jump to null: the pointer to a function is null, called from call_null"},
	{"call_data", "jump to ADDRESS, which is data, called from call_data"},
	{"call_wild", "jump to 0x123456789000, where nothing is mapped, called from call_wild"},
	{"undefined", "trap that the compiler wrote: brk #0x3e8 in undefined"},
	{"bad_opcode", "trap that the compiler wrote: udf #7 in bad_opcode"},
	{"breakpoint", "breakpoint: brk #0x0 in breakpoint"},
	{"halt", "illegal instruction: hlt #0x1 in halt"},
	{"privileged", "privileged instruction: hvc #0x0 in privileged"},
	{"unallocated", "illegal instruction: .inst 0xffffffff in unallocated"},
	{"misaligned", "address that is not aligned: reads 8 bytes at ADDRESS through x1 in misaligned"},
	{"aborted", "abort() was called in main"},
	{"assertion", "assertion failed: program: crash.c:116: assertion: Assertion `one == 2 && \"numbers\"' failed."},
	{"double_free", "heap corruption: free(): double free detected in tcache 2 in double_free"},
	{"heap", "heap corruption: malloc(): corrupted top size in heap"},
	{"fortified", "buffer overflow: *** buffer overflow detected ***: terminated in fortified"},
	{"null/abort", "null pointer: reads 4 bytes at 0x18 through x0 (it->value) in member, handled in handler"},
	{"null/-abort", "null pointer: reads 4 bytes at 0x18 through x0 (it->value) in member, handled in plain"},
	{"undefined/abort", "trap that the compiler wrote: brk #0x3e8 in undefined, handled in handler"},
	{"deep/abort", "stack overflow: deep calls itself at least N times; writes SIZE at ADDRESS through sp in deep, handled in handler"},
	{"call_null/abort", "jump to null: the pointer to a function is null, called from call_null, handled in handler"},
	{"abort/raise", "abort() was called in main, handled in handler"},
	{"smash", "stack smashing: *** stack smashing detected ***: terminated in smash"},
}

// aarch64Core is the core that qemu writes of a program that fails, and its program.
func aarch64Core(t *testing.T, kind string) (core, program string) {
	t.Helper()
	source := "crash.c"
	if strings.Contains(kind, "/") {
		source = "handled.c"
	}
	path, err := filepath.Abs(filepath.Join("testdata", source))
	if err != nil {
		t.Fatal(err)
	}
	build := append([]string{"aarch64-linux-gnu-gcc"}, append(programs[source][1:], "-o", "program", source)...)
	made := oracle.Build{Sources: []string{path}, Commands: [][]string{{"cp", path, "."}, build}}.Make(t)
	program = filepath.Join(made, "program")
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", `ulimit -c unlimited; exec qemu-aarch64 -cpu max -L `+aarch64Root+` "$0" "$@"`, program, kind)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MALLOC_ARENA_MAX=1", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	found, _ := filepath.Glob(filepath.Join(dir, "qemu_*.core"))
	if len(found) != 1 {
		t.Fatalf("%s: %d cores, expected one: %v\n%s", kind, len(found), err, out)
	}
	return found[0], program
}

// aarch64Engine is one with the files of a program for AArch64.
func aarch64Engine(t *testing.T, program string) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Options{
		Plugins: plugin.Options{InProcess: []sdk.Architecture{aarch64.New()}}, Sysroot: aarch64Root, Exe: program,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// TestCrashesOfAArch64SayWhatHappened makes programs of AArch64 fail in each way under
// qemu.
func TestCrashesOfAArch64SayWhatHappened(t *testing.T) {
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "qemu-aarch64", "bash")
	for _, c := range aarch64Crashes {
		t.Run(c.kind, func(t *testing.T) {
			core, program := aarch64Core(t, c.kind)
			text := factOf(t, aarch64Engine(t, program), core)
			if got := normalized(text, c.want, filepath.Dir(core)); got != c.want {
				t.Errorf("%s\nexpected\n%s", got, c.want)
			}
		})
	}
}

// TestFaultsOfAArch64 has what Linux says of faults on AArch64, put into snapshots of the
// cores: an address comes without its upper 8 bits, which do not count, and a check of
// memory tags has a code of its own (arch/arm64/mm/fault.c).
func TestFaultsOfAArch64(t *testing.T) {
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "qemu-aarch64", "bash")
	const (
		mapError, tagCheck, tagCheckBefore, alignment = 1, 9, 8, 1
		low                                           = 1<<56 - 1
	)
	for _, c := range []struct {
		kind    string
		code    int32
		address func(registers func(number uint32) uint64) uint64
		want    string
	}{
		{"null_read", mapError, func(func(uint32) uint64) uint64 { return 0x18 },
			"null pointer: reads 4 bytes at 0x18 through x0 (it->value) in member"},
		{"tagged", mapError, func(func(uint32) uint64) uint64 { return 8 },
			"null pointer: reads 4 bytes at 0x8 through x0 (p) in through"},
		{"pattern", mapError, func(x func(uint32) uint64) uint64 { return x(0) & low },
			"memory that is not mapped: reads 4 bytes at 0x5a5a5a5a5a5a5a through x0 (p) in through (a guess: 0x5a5a5a5a5a5a5a5a is the pattern of memory that jemalloc freed)"},
		{"tagged", tagCheck, func(func(uint32) uint64) uint64 { return 8 },
			"memory tag check failed, the pointer's tag is 0xa: reads 4 bytes at 0x8 through x0 (p) in through"},
		{"freed", tagCheckBefore, func(func(uint32) uint64) uint64 { return 0 },
			"memory tag check failed, before the instruction: accesses 0x0 in through"},
		{"overflow", mapError, func(x func(uint32) uint64) uint64 { return x(31) - 96 },
			"stack overflow: deep calls itself at least 4096 times; writes SIZE at ADDRESS through sp in deep"},
		{"misaligned", alignment, func(x func(uint32) uint64) uint64 { return x(1) },
			"address that is not aligned: reads 8 bytes at ADDRESS through x1 in misaligned"},
		{"jump_odd", alignment, func(x func(uint32) uint64) uint64 { return x(32) },
			"jump to ADDRESS, which is not aligned, called from jump_odd"},
	} {
		t.Run(fmt.Sprint(c.kind, c.code), func(t *testing.T) {
			core, program := aarch64Core(t, c.kind)
			e := aarch64Engine(t, program)
			target, err := e.Open(core)
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			thread := target.Crashed()
			s, err := target.Snapshot(t.Context(), engine.SnapshotOptions{})
			if err != nil {
				t.Fatal(err)
			}
			s.Contents().Crash.Code, s.Contents().Crash.HasCode, s.Contents().Crash.Fact = c.code, true, ""
			fault := c.address(func(number uint32) uint64 {
				v, _ := thread.Registers.Uint64(number, sdk.LittleEndian)
				return v
			})
			for i := range s.Contents().Threads {
				if s.Contents().Threads[i].Crashed {
					s.Contents().Threads[i].Stop = &trace.Stop{Reason: sdk.StopMemoryFault, Address: fault, HasAddress: true}
				}
			}
			path := filepath.Join(t.TempDir(), "made.snapshot")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.Write(f), f.Close()); err != nil {
				t.Fatal(err)
			}
			if got := normalized(factOf(t, e, path), c.want, filepath.Dir(core)); got != c.want {
				t.Errorf("%s\nexpected\n%s", got, c.want)
			}
		})
	}
}
