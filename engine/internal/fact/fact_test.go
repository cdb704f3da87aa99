// SPDX-License-Identifier: Apache-2.0

package fact_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/internal/oracle"
)

// programs are those of testdata, with the commands that make them.
var programs = map[string][]string{
	"crash.c": {"gcc", "-g", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fstack-protector-all",
		"-D_FORTIFY_SOURCE=2", "-w", "-pthread"},
	"handled.c":  {"gcc", "-g", "-O1", "-fno-optimize-sibling-calls", "-w"},
	"stripped.c": {"gcc", "-O1", "-s", "-w"},
	"asan.c":     {"gcc", "-g", "-O1", "-w", "-fsanitize=address"},
	"crash.cc":   {"g++", "-g", "-O0", "-w"},
	"crash.rs":   {"rustc", "--edition", "2021", "-g", "-C", "panic=abort", "-A", "warnings"},
	"crash.go":   {"go", "build"},
}

// crashes are what each kind of crash must say. ADDRESS stands for a number of six digits
// or more that is not always the same, PROCESS and USER for IDs.
var crashes = []struct{ program, kind, want string }{
	{"crash.c", "null_read", "null pointer: reads 4 bytes at 0x18 through rdi (it->value) in member"},
	{"crash.c", "null_write", "null pointer: writes 4 bytes at 0x18 through rdi (it->value) in set_member"},
	{"crash.c", "null_update", "null pointer: reads and writes 4 bytes at 0x18 through rdi (it->value) in add_member"},
	{"crash.c", "null_deep", "null pointer: reads 1 byte at 0x35 through rdi (o->items[1].head[5]) in deep_member"},
	{"crash.c", "null_index", "null pointer: reads 4 bytes at 0x14 through rdi (list) and rsi = 0x5 in element"},
	{"crash.c", "null_string", "null pointer: reads SIZE at 0x0 through rdi in strlen, called from null_string"},
	{"crash.c", "null_copy", "null pointer: writes 8 bytes at 0x0 through rax (__dest) in memcpy, called from null_copy"},
	{"crash.c", "freed", "memory that is not mapped: reads 4 bytes at ADDRESS through rdi (p) in through"},
	{"crash.c", "behind", "memory that is not mapped (8 bytes behind the end of a mapping): writes 1 byte at ADDRESS through rdi (p) in set"},
	{"crash.c", "guard", "memory without any rights, as of a guard page: writes 1 byte at ADDRESS through rdi (p) in set"},
	{"crash.c", "constant", "memory that may only be read, of program: writes 1 byte at ADDRESS through rdi (p) in set"},
	{"crash.c", "code_write", "memory that may only be read, of program: writes 1 byte at ADDRESS through rdi (p) in set"},
	{"crash.c", "not_canonical", "address that is not canonical: reads 4 bytes at 0xdead00000000beef through rdi (p) in through"},
	{"crash.c", "flipped", "address that is not canonical: reads 4 bytes at ADDRESS through rdi (p) in through (a guess: bit 58 is flipped of ADDRESS, which is mapped)"},
	{"crash.c", "flipped_low", "memory that is not mapped: reads 4 bytes at ADDRESS through rdi (p) in through (a guess: bit 40 is flipped of ADDRESS, which is mapped)"},
	{"crash.c", "text", `address that is not canonical: reads 4 bytes at 0x4242424241414141 through rdi (p) in through (a guess: the address was overwritten by the text "AAAABBBB")`},
	{"crash.c", "pattern", "address that is not canonical: reads 4 bytes at 0x5a5a5a5a5a5a5a5a through rdi (p) in through (a guess: 0x5a5a5a5a5a5a5a5a is the pattern of memory that jemalloc freed)"},
	{"crash.c", "overflow", "stack overflow: deep calls itself at least 4096 times; writes SIZE at ADDRESS through REGISTER in deep"},
	{"crash.c", "overflow_thread", "stack overflow: even, odd call each other at least N times; writes SIZE at ADDRESS through REGISTER in FUNCTION"},
	{"crash.c", "overflow_array", "stack overflow: writes 1 byte at ADDRESS through rbp in overflow_array"},
	{"crash.c", "call_null", "jump to null: the pointer to a function is null, called from call_null"},
	{"crash.c", "call_data", "jump to ADDRESS, which is data, of program, called from call_data"},
	{"crash.c", "call_wild", "jump to 0x123456789000, where nothing is mapped, called from call_wild"},
	{"crash.c", "call_not_canonical", `jump to 0x4141414141414141, which is not canonical, through rax in call_not_canonical (a guess: the address was overwritten by the text "AAAAAAAA")`},
	{"crash.c", "smashed", `return to 0x4242424242424242, which is not canonical: the return address was overwritten in smashed (a guess: the address was overwritten by the text "BBBBBBBB")`},
	{"crash.c", "divide", "integer division by zero: idiv %ecx in divide"},
	{"crash.c", "quotient", "the quotient of an integer division is too large: idiv %ecx in quotient"},
	{"crash.c", "undefined", "trap that the compiler wrote: ud2 in undefined"},
	{"crash.c", "privileged", "privileged instruction: hlt in privileged"},
	{"crash.c", "breakpoint", "breakpoint: int3 in breakpoint"},
	{"crash.c", "bad_opcode", "illegal instruction: 0f 04 48 8b in bad_opcode"},
	{"crash.c", "misaligned", "address that is not a multiple of 16: writes 16 bytes at ADDRESS through rax in misaligned"},
	{"crash.c", "aborted", "abort() was called in main"},
	{"crash.c", "assertion", "assertion failed: program: crash.c:116: assertion: Assertion `one == 2 && \"numbers\"' failed."},
	{"crash.c", "double_free", "heap corruption: free(): double free detected in tcache 2 in double_free"},
	{"crash.c", "heap", "heap corruption: malloc(): corrupted top size in heap"},
	{"crash.c", "bad_free", "heap corruption: free(): invalid pointer in bad_free"},
	{"crash.c", "smash", "stack smashing: *** stack smashing detected ***: terminated in smash"},
	{"crash.c", "fortified", "buffer overflow: *** buffer overflow detected ***: terminated in fortified"},
	{"crash.c", "cut", "the file DIR/cut.X is shorter than its mapping, offset 0x2010 is behind its end: reads 4 bytes at ADDRESS through rdi (p) in through"},
	{"crash.c", "killed", "the process sent SIGSEGV to itself in killed"},
	{"crash.c", "raised", "the process sent SIGFPE to itself in main"},
	{"crash.c", "by_other", "SIGBUS was sent by process PROCESS of user USER"},
	{"crash.c", "refused", "system call 41 is refused by a seccomp filter in socket, called from refused"},
	{"crash.c", "cpu_time", "the limit of CPU time is used up in cpu_time"},
	{"crash.c", "file_size", "a file grew beyond the limit of its size in file_size"},

	{"handled.c", "null/requeue", "null pointer: reads 4 bytes at 0x18 through rdi (it->value) in member, handled in handler"},
	{"handled.c", "null/raise", "null pointer: reads 4 bytes at 0x18 through rdi (it->value) in member, handled in handler"},
	{"handled.c", "null/kill", "null pointer: reads 4 bytes at 0x18 through rdi (it->value) in member, handled in handler"},
	{"handled.c", "null/abort", "null pointer: reads 4 bytes at 0x18 through rdi (it->value) in member, handled in handler"},
	{"handled.c", "null/-abort", "null pointer: reads 4 bytes at 0x18 through rdi (it->value) in member, handled in plain"},
	{"handled.c", "null/return", "null pointer: reads 4 bytes at 0x18 through rdi (it->value) in member, raised again by the process"},
	{"handled.c", "null/-return", "null pointer: reads 4 bytes at 0x18 through rdi (it->value) in member, raised again by the process"},
	{"handled.c", "null/fail", "null pointer: reads 4 bytes at 0x18 through rdi (it->value) in member, handled in handler; the handler failed itself: null pointer: writes 4 bytes at 0x18 in finish"},
	{"handled.c", "null/nested", "null pointer: reads 4 bytes at 0x18 through rdi (it->value) in member, handled in handler"},
	{"handled.c", "divide/abort", "integer division by zero: idiv %esi in divide, handled in handler"},
	{"handled.c", "divide/-abort", "integer division by zero: idiv %esi in divide, handled in plain"},
	{"handled.c", "undefined/abort", "trap that the compiler wrote: ud2 in undefined, handled in handler"},
	{"handled.c", "undefined/-raise", "trap that the compiler wrote: ud2 in undefined, handled in plain"},
	{"handled.c", "wild/kill", "address that is not canonical: reads 4 bytes at 0xdead00000000beef in wild, handled in handler"},
	{"handled.c", "wild/-kill", "address that is not canonical: reads 4 bytes at 0xdead00000000beef in wild, handled in plain"},
	{"handled.c", "deep/abort", "stack overflow: deep calls itself at least N times; writes SIZE at ADDRESS through rsp in deep, handled in handler"},
	{"handled.c", "call_null/abort", "jump to null: the pointer to a function is null, called from call_null, handled in handler"},
	{"handled.c", "call_null/return", "jump to null: the pointer to a function is null, called from call_null, raised again by the process"},
	{"handled.c", "cut/abort", "the file /tmp/cut.X (deleted) is shorter than its mapping, offset 0x2000 is behind its end: reads 1 byte at ADDRESS through rax (p) in cut, handled in handler"},
	{"handled.c", "cut/return", "the file /tmp/cut.X (deleted) is shorter than its mapping, offset 0x2000 is behind its end: reads 1 byte at ADDRESS through rax (p) in cut, raised again by the process"},
	{"handled.c", "abort/raise", "abort() was called in main, handled in handler"},
	{"handled.c", "abort/-raise", "abort() was called in main, handled in plain"},
	{"handled.c", "sent/abort", "the process sent SIGSEGV to itself in main, handled in handler"},

	{"stripped.c", "read", "null pointer: reads 4 bytes at 0x0 in program+OFFSET, called from qsort_r"},
	{"stripped.c", "abort", "abort() was called in program+OFFSET"},
	{"asan.c", "freed", "AddressSanitizer: heap-use-after-free on address ADDRESS (READ of size 1) in use"},
	{"asan.c", "null", "null pointer: reads 4 bytes at 0x0 through rdi (p) in reader, handled in __asan::AsanOnDeadlySignal"},

	{"crash.cc", "thrown", "C++ exception that nobody caught: std::runtime_error: no such file in thrown"},
	{"crash.cc", "thrown_own", "C++ exception that nobody caught: app::error in thrown_own"},
	{"crash.cc", "thrown_derived", "C++ exception that nobody caught: app::derived: of my own in thrown_derived"},
	{"crash.cc", "thrown_int", "C++ exception that nobody caught: int in thrown_int"},
	{"crash.cc", "out_of_range", "C++ exception that nobody caught: std::out_of_range: vector::_M_range_check: __n (which is 7) >= this->size() (which is 3) in out_of_range"},
	{"crash.cc", "no_except", "C++ exception that nobody caught: std::logic_error: from a noexcept function in no_except"},
	{"crash.cc", "rethrown", "C++ exception that nobody caught: std::invalid_argument: again in rethrown"},
	{"crash.cc", "terminated", "std::terminate was called in terminated"},
	{"crash.cc", "pure", "call of a pure virtual function in base::indirect"},
	{"crash.cc", "null_virtual", "null pointer: reads 8 bytes at 0x0 through rax in null_virtual"},

	{"crash.cc", "thrown_below", "C++ exception that nobody caught: app::below: further below in thrown_below"},
	{"crash.cc", "thrown_system", "C++ exception that nobody caught: std::system_error: cannot open: No such file or directory in thrown_system"},
	{"crash.rs", "index", "Rust panic: index out of bounds: the len is 2 but the index is 7 in crash::index at crash.rs:4"},
	{"crash.rs", "unwrap", "Rust panic: called `Option::unwrap()` on a `None` value in crash::unwrap at crash.rs:5"},
	{"crash.rs", "own", "Rust panic: the number is 3 in crash::own at crash.rs:6"},
	{"crash.rs", "fixed", "Rust panic: a fixed text in crash::fixed at crash.rs:7"},
	{"crash.rs", "equal", "Rust panic: assertion `left == right` failed: not equal; left: 1; right: 3 in crash::equal at crash.rs:10"},
	{"crash.rs", "deep", "stack overflow: crash::deep calls itself at least N times; writes 8 bytes at ADDRESS through rsp in crash::deep, handled in std::sys::pal::unix::stack_overflow::imp::signal_handler"},
	{"crash.rs", "null", "null pointer: reads 4 bytes at 0x8 through rax in crash::null"},

	{"crash.go", "text", "Go panic: a text of my own in main.main.func1"},
	{"crash.go", "error", "Go panic: an error of my own in main.main.func2"},
	{"crash.go", "number", "Go panic: 42 in main.main.func3"},
	{"crash.go", "formatted", "Go panic: number 7 is bad: an error of my own in main.main.func4"},
	{"crash.go", "index", "Go panic: runtime error: index out of range [7] with length 2 in main.index"},
	{"crash.go", "divide", "Go panic: runtime error: integer divide by zero in main.divide"},
	{"crash.go", "nil", "Go panic: runtime error: invalid memory address or nil pointer dereference in main.member"},
	{"crash.go", "map", "Go panic: assignment to entry in nil map in main.main.func8"},
	{"crash.go", "deadlock", "Go fatal error: all goroutines are asleep - deadlock!"},
}

// TestCrashesSayWhatHappened makes programs fail in each way, and reads the cores that the
// kernel wrote.
func TestCrashesSayWhatHappened(t *testing.T) {
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || strings.ContainsAny(string(pattern), "|/%") {
		oracle.Missing(t, "kernel.core_pattern is %q, expected a plain name", pattern)
		return
	}
	e, snapshots := engineOf(t), engineOf(t)
	for _, c := range crashes {
		t.Run(c.program+"/"+c.kind, func(t *testing.T) {
			core := crashCore(t, c.program, c.kind)
			target, err := e.Open(core)
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			text := target.Fact(context.Background())
			if got := normalized(text, c.want, filepath.Dir(core)); got != c.want {
				t.Errorf("%s\nexpected\n%s", got, c.want)
			}
			checkSnapshot(t, snapshots, target, text)
		})
	}
}

// checkSnapshot wants a snapshot to say of what happened what its target says, found out
// again and as it was kept. The engine of snapshots has not seen the target.
func checkSnapshot(t *testing.T, snapshots *engine.Engine, target *engine.Target, want string) {
	t.Helper()
	s, err := target.Snapshot(context.Background(), engine.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Contents().Crash == nil || s.Contents().Crash.Fact != want {
		t.Errorf("the snapshot says %+v, the target %q", s.Contents().Crash, want)
		return
	}
	for _, kept := range []string{want, ""} {
		s.Contents().Crash.Fact = kept
		path := filepath.Join(t.TempDir(), "made.snapshot")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Write(f), f.Close()); err != nil {
			t.Fatal(err)
		}
		if got := factOf(t, snapshots, path); got != want {
			t.Errorf("a snapshot with the line %q says %q, the target %q", kept, got, want)
		}
	}
}

// crashCore is the core of a program that fails.
func crashCore(t *testing.T, source, kind string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", source))
	if err != nil {
		t.Fatal(err)
	}
	// The program is made of a copy, so that its messages name no other folder.
	build := append(append([]string{}, programs[source]...), "-o", "program", source)
	made := oracle.Build{Sources: []string{path}, Commands: [][]string{{"cp", path, "."}, build}}.Make(t)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", `ulimit -c unlimited -s 8192; exec "$0" "$@"`, filepath.Join(made, "program"), kind)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MALLOC_ARENA_MAX=1", "GOTRACEBACK=crash", "LC_ALL=C", "ASAN_OPTIONS=abort_on_error=1:disable_coredump=0")
	out, err := cmd.CombinedOutput()
	found, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(found) != 1 {
		t.Fatalf("%s %s: %d cores, expected one: %v\n%s", source, kind, len(found), err, out)
	}
	return found[0]
}

var placeholders = []struct {
	name string
	text *regexp.Regexp
}{
	{"ADDRESS", regexp.MustCompile(`0x[0-9a-f]{6,}`)},
	{"strlen", regexp.MustCompile(`__strlen_\w+|strlen_\w+`)},
	{"reads SIZE", regexp.MustCompile(`reads \d+ bytes?`)},
	{"writes SIZE", regexp.MustCompile(`writes \d+ bytes?`)},
	{"through REGISTER", regexp.MustCompile(`through \w+`)},
	{"in FUNCTION", regexp.MustCompile(`in (odd|even)$`)},
	{"process PROCESS", regexp.MustCompile(`process \d+`)},
	{"user USER", regexp.MustCompile(`user \d+`)},
	{"least N", regexp.MustCompile(`least \d+`)},
	{"program+OFFSET", regexp.MustCompile(`program\+0x[0-9a-f]+`)},
	{"from qsort_r", regexp.MustCompile(`from (__)?qsort(_r)?`)},
	{"cut.X", regexp.MustCompile(`cut\.\w+`)},
}

// normalized is a text with placeholders where the expected one has them.
func normalized(text, want, dir string) string {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	text = strings.ReplaceAll(text, dir, "DIR")
	text = strings.Replace(text, "in core::hint::black_box, called from ", "in ", 1) // where the stack ends is chance
	for _, p := range placeholders {
		if !strings.Contains(want, p.name) {
			continue
		}
		text = p.text.ReplaceAllStringFunc(text, func(found string) string {
			if strings.Contains(want, found) {
				return found // it is always the same
			}
			return p.name
		})
	}
	return text
}
