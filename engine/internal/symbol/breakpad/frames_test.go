// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

var _ symbol.Source = (*File)(nil)

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func read(t *testing.T, text string) *File {
	t.Helper()
	f, err := Read("test.sym", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestBreakpadsOwnExpectations has what Breakpad's tests of its reader demand of
// these files.
func TestBreakpadsOwnExpectations(t *testing.T) {
	tests := []struct {
		file    string
		address uint64
		want    string
	}{
		{"module1", 0x1000, "Function1_1@file1_1.cc:44"},
		{"module1", 0x800, ""},
		{"module1", 0x1280, "Function1_3@:0"},
		{"module1", 0x1380, "Function1_4@:0"},
		{"module1", 0x2000, ""}, // a function of no bytes
		{"module1", 0x2900, "PublicSymbol@:0"},
		{"module1", 0x4000, "LargeFunction@file1_3.cc:4098359"},
		{"module2", 0x2181, "Function2_2@file2_2.cc:21"},
		{"module2", 0x216f, "Public2_1@:0"},
		{"module2", 0x219f, ""}, // behind a function: the public symbol before it ended there
		{"module2", 0x21a0, "Public2_2@:0"},
		{"linux_inline.old", 0x161b6, "func()@linux_inline.cpp:27|bar()@linux_inline.cpp:32|foo()@linux_inline.cpp:39|main@linux_inline.cpp:42"},
		{"linux_inline.new", 0x161b6, "func()@linux_inline.cpp:27|bar()@c.cpp:32|foo()@b.cpp:39|main@a.cpp:42"},
	}
	for _, tt := range tests {
		f := open(t, "testdata/"+tt.file+".sym")
		if got := textAt(t, f, tt.address); got != tt.want {
			t.Errorf("%s: %#x: %s, want %s", tt.file, tt.address, got, tt.want)
		}
	}
	f := open(t, "testdata/module1.sym")
	if fn, ok := f.Function(0x1003); !ok || !fn.Multiple || fn.Start != 0x1000 || fn.End != 0x100c {
		t.Errorf("%+v %v", fn, ok)
	}
	if fn, ok := f.Function(0x3000); !ok || fn.Multiple || fn.ParameterSize != 0x42 {
		t.Errorf("%+v %v", fn, ok)
	}
	const program = "$eip 4 + ^ = $esp $ebp 8 + = $ebp $ebp ^ ="
	if w, ok := f.Win(0x1000); !ok || w.IsFPO || w.Program != program || w.Prologue != 1 {
		t.Errorf("%+v %v", w, ok)
	}
	if _, ok := f.Win(0x1280); ok {
		t.Error("STACK WIN at 0x1280")
	}
	if want := (Module{"windows", "x86", "111111111111111111111111111111111", "module1.pdb"}); f.Module() != want {
		t.Errorf("%+v", f.Module())
	}
	if got := f.Infos(); len(got) != 1 || got[0] != "CODE_ID FFFFFFFF module1.exe" {
		t.Errorf("%q", got)
	}
}

func TestFramesOfOddFiles(t *testing.T) {
	const head = "MODULE Linux x86_64 0 x\nFILE 0 a.c\nFILE 1 b c.h\nINLINE_ORIGIN 0 f\n"
	tests := []struct {
		name, text string
		address    uint64
		want       string
	}{
		{"CRLF and blanks", "FUNC  10 10  0 name of it \r\n10 10  5 1 \r\n", 0x12, "name of it@b c.h:5"},
		{"upper case", "FUNC 1A 10 0 f\n1A 10 5 1\n", 0x1f, "f@b c.h:5"},
		{"64 bits", "FUNC ffffffff80000000 10 0 f\nffffffff80000008 8 5 1\n", 0xffffffff8000000f, "f@b c.h:5"},
		{"up to the last address but one", "FUNC fffffffffffffff0 f 0 f\n", 0xfffffffffffffffe, "f@:0"},
		{"beyond 2^64", "FUNC fffffffffffffff0 11 0 f\n", 0xfffffffffffffff8, ""},
		{"a bad line costs itself", "FUNC 10 10 0 f\n10 4 x 0\n14 4 7\n18 8 9 0\n", 0x19, "f@a.c:9"},
		{"a bad line has no lines", "FUNC 10 10 0 f\n10 4 x 0\n", 0x11, "f@:0"},
		{"a bad FUNC costs its lines", "FUNC 10 10 0 f\n10 10 5 0\nFUNC zz 1 0 g\n12 2 6 0\n", 0x12, "f@a.c:5"},
		{"a FUNC without the size of parameters hides nothing", "FUNC 10 10 0 f\nFUNC 10 4 g\n", 0x12, "f@:0"},
		{"nor does such a PUBLIC", "PUBLIC 10 xyz\nPUBLIC 10 0 p\n", 0x12, "p@:0"},
		{"lines behind other records", "FUNC 10 10 0 f\nFILE 2 late.c\nINFO x y\n10 10 5 2\n", 0x12, "f@late.c:5"},
		{"lines of a public symbol", "FUNC 10 10 0 f\nPUBLIC 30 0 p\n10 10 5 0\n", 0x12, "f@:0"},
		{"the function in the middle of another", "FUNC 10 40 0 outer\nFUNC 20 10 0 inner\n", 0x2f, "inner@:0"},
		{"the other behind it", "FUNC 20 10 0 inner\nFUNC 10 40 0 outer\n", 0x30, "outer@:0"},
		{"two of the same code", "FUNC 20 10 0 first\nFUNC 20 10 0 second\n", 0x20, "first@:0"},
		{"two that begin together", "FUNC 20 20 0 long\nFUNC 20 10 0 short\n", 0x20, "short@:0"},
		{"a call that skips a depth", "FUNC 10 10 0 f\nINLINE 1 3 0 0 10 10\n", 0x12, "f@:0"},
		{"a call before the one around it", "FUNC 10 10 0 g\nINLINE 0 3 0 0 10 4 18 4\nINLINE 0 5 0 0 14 4\nINLINE 1 4 0 0 18 2\n10 10 2 0\n", 0x18, "f@a.c:2|f@a.c:4|g@a.c:3"},
		{"a call with half a range", "FUNC 10 10 0 f\nINLINE 0 3 0 0 10\n", 0x12, "f@:0"},
		{"a call in a call elsewhere", "FUNC 10 10 0 f\nINLINE 0 3 0 0 10 4\nINLINE 1 3 0 0 14 4\n", 0x15, "f@:0"},
		{"an origin that there is not", "FUNC 10 10 0 f\nINLINE 0 3 1 9 10 10\n", 0x12, "@:0|f@b c.h:3"},
		{"without a file", "FUNC 10 10 0 f\nINLINE 0 3 -1 0 10 10\n10 10 2 0\n", 0x12, "f@a.c:2|f@:3"},
		{"publics at 0", "PUBLIC 0 0 nothing\nPUBLIC 0 0 more\n", 4, ""},
		{"publics of one address", "PUBLIC 8 0 first\nPUBLIC m 8 4 second\n", 9, "first@:0"},
		{"a public in a function is not said behind it", "FUNC 10 10 0 f\nPUBLIC 18 0 p\n", 0x21, ""},
		{"no line feed at the end", "FUNC 10 10 0 f\n10 10 5 0", 0x12, "f@a.c:5"},
		{"mangled", "FUNC 10 10 0 _ZN1a1bEv\n", 0x12, "_ZN1a1bEv@:0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := textAt(t, read(t, head+tt.text), tt.address); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	frames, err := read(t, "PUBLIC 10 0 _ZN1a1bEv\n").Frames(nil, 0x10)
	if err != nil || len(frames) != 1 || frames[0].Function != "a::b()" || !frames[0].HasStart || frames[0].Start != 0x10 {
		t.Errorf("%+v %v", frames, err)
	}
}

// TestDamageIsToldOf says where it is, and how much more of it there is.
func TestDamageIsToldOf(t *testing.T) {
	text := "MODULE Linux x86_64 0 x\n" + strings.Repeat("FUNC 1\n", 100) + "FUNC 10 10 0 f\n10 zz 1 1\n"
	f := read(t, text)
	if got := f.Counts().Damaged; got != 100 {
		t.Errorf("%d damaged", got)
	}
	_ = textAt(t, f, 0x10)
	first, more := f.Problems()
	if len(first) != maxProblems || more != 101-maxProblems {
		t.Fatalf("%d problems, and %d", len(first), more)
	}
	if got := first[1].Error(); !strings.Contains(got, "test.sym: offset 0x1f: ") || !strings.Contains(got, `"FUNC 1"`) {
		t.Error(got)
	}
}

func TestFilesThatAreNone(t *testing.T) {
	for name, text := range map[string]string{"text": "hello\nworld\n", "numbers": "1 2 3 4\n", "ELF": "\x7fELF\x02\x01\x01"} {
		path := filepath.Join(t.TempDir(), "x.sym")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err := Open(path); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v %v", name, f, err)
		}
	}
}

// TestLongLines has lines of megabytes.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("a long name ", 200_000)
	var calls strings.Builder
	for i := range 100_000 {
		calls.WriteString(" 10 1 ")
		_ = i
	}
	f := read(t, "MODULE Linux x86_64 0 "+long+"\nFILE 0 "+long+"\nINLINE_ORIGIN 0 "+long+
		"\nFUNC 10 10 0 "+long+"\nINLINE 0 1 0 0"+calls.String()+" 12 1\n10 10 4 0\n"+
		"STACK CFI INIT 10 10 .cfa: $rsp"+strings.Repeat(" 8 +", 500_000)+" .ra: .cfa 8 - ^\n")
	name := strings.TrimSpace(long)
	if got := textAt(t, f, 0x12); got != name+"@"+name+":4|"+name+"@"+name+":1" {
		t.Errorf("%.200s", got)
	}
	if f.Module().Name != name {
		t.Error("name of the module")
	}
}

// TestAFileThatIsCutIsAnError: it shrinks while it is mapped.
func TestAFileThatIsCutIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sym")
	text := "MODULE Linux x86_64 0 x\n" + strings.Repeat("FILE 1 "+strings.Repeat("x", 90)+"\n", 400) + "FUNC 10 10 0 f\n10 10 5 1\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if frames, err := f.Frames(nil, 0x12); err == nil || len(frames) > 0 {
		t.Errorf("%v %v", frames, err)
	}
}

// TestPublicsEndAtCallFrameInformation has a public symbol before a function that has call
// frame information and no name. On Windows a function has it in several parts.
func TestPublicsEndAtCallFrameInformation(t *testing.T) {
	const records = ` x86_64 0 x
PUBLIC 1000 0 named
STACK CFI INIT 1000 20 .cfa: $rsp 8 + .ra: .cfa -8 + ^
STACK CFI INIT 1040 20 .cfa: $rsp 8 + .ra: .cfa -8 + ^
`
	linux, windows := read(t, "MODULE Linux"+records), read(t, "MODULE windows"+records)
	for address, want := range map[uint64][2]string{
		0x1000: {"named@:0", "named@:0"}, 0x1030: {"named@:0", "named@:0"}, 0x1040: {"", "named@:0"}, 0x105f: {"", "named@:0"},
	} {
		if got := [2]string{textAt(t, linux, address), textAt(t, windows, address)}; got != want {
			t.Errorf("%#x: %q, expected %q", address, got, want)
		}
	}
}
