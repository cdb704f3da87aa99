// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// rows are stacks of each kind of failure, with the heads of the lines that are written of them,
// and the index of the program's own frame.
var rows = []struct {
	name   string
	frames string // with blanks between; + joins calls that were inlined to the function
	want   []string
	own    int
}{
	{"Rust", "__pthread_kill_implementation raise abort std::process::abort rust_panic std::panicking::panic_with_hook core::panicking::panic_fmt core::option::Option::unwrap+main::Ledger::apply main::replay main",
		[]string{"... 7 frames of the panic (frames #0 to #6)", "#7 core::option::Option::unwrap", "#8 main::Ledger::apply", "#9 main::replay", "#10 main"}, 8},
	{"Go", "runtime.raise runtime.dieFromSignal runtime.crash runtime.fatalpanic runtime.gopanic runtime.mapassign_faststr main.add main.main runtime.main runtime.goexit",
		[]string{"... 6 frames of the panic (frames #0 to #5)", "#6 main.add", "#7 main.main", "#8 runtime.main", "#9 runtime.goexit"}, 6},
	{"Go, a deferred function that panicked", "runtime.raise runtime.fatalpanic runtime.gopanic main.cleanup runtime.gopanic runtime.panicmem runtime.sigpanic main.f",
		[]string{"... 3 frames of the panic (frames #0 to #2)", "#3 main.cleanup", "... 3 frames of the panic (frames #4 to #6)", "#7 main.f"}, 3},
	{"C++", "raise abort __gnu_cxx::__verbose_terminate_handler __cxxabiv1::__terminate std::terminate __cxa_throw std::__throw_out_of_range_fmt std::vector<int>::at bank::pay main",
		[]string{"... 7 frames of the exception (frames #0 to #6)", "#7 std::vector<int>::at", "#8 bank::pay", "#9 main"}, 8},
	{"assert", "raise abort __assert_fail_base __assert_fail check main", []string{"... 4 frames of the failed assertion (frames #0 to #3)", "#4 check", "#5 main"}, 4},
	{"fortify", "raise abort __fortify_fail __chk_fail __strcpy_chk copy main", []string{"... 4 frames of the buffer's check (frames #0 to #3)", "#4 __strcpy_chk", "#5 copy", "#6 main"}, 4},
	{"heap", "raise abort __libc_message malloc_printerr _int_free free close main", []string{"... 6 frames of the heap's check (frames #0 to #5)", "#6 close", "#7 main"}, 6},
	{"Python", "py:raise py:abort py:fatal_error_exit py:fatal_error py:_Py_FatalErrorFunc py:run py:main", []string{"... 5 frames of the fatal error (frames #0 to #4)", "#5 run", "#6 main"}, 5},
	{"fatal_error of others", "raise abort fatal_error main", []string{"... 2 frames of the abort (frames #0 to #1)", "#2 fatal_error", "#3 main"}, 2},
	{"one frame alone", "abort f main", []string{"#0 abort", "#1 f", "#2 main"}, 1},
	{"nothing but the library", "raise abort", []string{"#0 raise", "#1 abort"}, -1},
	{"the allocator crashed", "_int_malloc malloc f main", []string{"#0 _int_malloc", "#1 malloc", "#2 f", "#3 main"}, 2},
	{"no failure of a library", "f g", []string{"#0 f", "#1 g"}, 0},
	{"no function of its own", "std::terminate core::f", []string{"#0 std::terminate", "#1 core::f"}, 1},
}

var program, python = &trace.Module{ID: 1, Path: "/srv/app"}, &trace.Module{ID: 2, Path: "/usr/bin/python3.11"}

// stackWith is the stack of a crashed thread.
func stackWith(functions string) *trace.Stack {
	s := &trace.Stack{Thread: &trace.Thread{ID: "7", Crashed: true}, Stopped: trace.Stopped{Reason: trace.StopOutermost}}
	for i, calls := range strings.Fields(functions) {
		f := trace.Frame{PC: 0x1000 + uint64(i), FoundBy: trace.ByCFI, Module: program}
		for name := range strings.SplitSeq(calls, "+") {
			if rest, isPython := strings.CutPrefix(name, "py:"); isPython {
				name, f.Module = rest, python
			}
			f.Symbols = append(f.Symbols, trace.Symbol{Function: name, File: "f", Line: 1 + i})
		}
		s.Frames = append(s.Frames, f)
	}
	return s
}

func TestRowsOfAFailureAreFolded(t *testing.T) {
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := reportOf(stackWith(c.frames)).WriteText(&b, TextOptions{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, frameHeads(b.String())); diff != "" {
				t.Error(diff)
			}
			b.Reset()
			if err := reportOf(stackWith(c.frames)).WriteText(&b, TextOptions{NoFold: true}); err != nil {
				t.Fatal(err)
			}
			if n, want := len(frameHeads(b.String())), len(strings.FieldsFunc(c.frames, func(r rune) bool { return r == ' ' || r == '+' })); n != want {
				t.Errorf("%d frames without folding, expected %d:\n%s", n, want, b.String())
			}
			b.Reset()
			if err := reportOf(stackWith(c.frames)).WriteJSON(&b); err != nil {
				t.Fatal(err)
			}
			var out Report
			if err := json.Unmarshal(b.Bytes(), &out); err != nil {
				t.Fatal(err)
			}
			own := -1
			if first := out.Threads[0].FirstOwnFrame; first != nil {
				own = *first
			}
			if own != c.own {
				t.Errorf("the program's own frame is %d, expected %d", own, c.own)
			}
		})
	}
}

// A handler of the failure is further in than the frame that failed.
func TestTheOwnFrameIsTheOneThatFailed(t *testing.T) {
	s := stackWith("raise abort on_crash serve main")
	r := reportOf(s).report()
	r.FirstCrash = &trace.CaughtCrash{FirstCrash: trace.FirstCrash{Thread: "7"}, Frame: 3, Inside: s.Frames[:3]}
	if own := ownIndex(s, readStack(s, r.FirstCrash)); own != 3 {
		t.Errorf("%d, expected 3", own)
	}
}

// TestTheFailingLineIsShown has the line of the program's own function, of one thread.
func TestTheFailingLineIsShown(t *testing.T) {
	other := stackWith("g main")
	other.Thread = &trace.Thread{ID: "8"}
	second := stackWith("raise abort h main")
	second.Thread = &trace.Thread{ID: "9", Crashed: true}
	for _, c := range []struct {
		name    string
		lines   trace.SourceLines
		err     error
		ownOnly bool
		want    []string
	}{
		{"the line", trace.SourceLines{First: 3, Text: []string{"\tfail();"}}, nil, true, []string{"      > 3          fail();"}},
		{"no file", trace.SourceLines{}, errors.New("no such file"), true, nil},
		{"another file", trace.SourceLines{First: 3, Text: []string{"x"}, Warning: "it is newer"}, nil, true, nil},
		{"no file, requested", trace.SourceLines{}, errors.New("no such file"), false, []string{"        no source: no such file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reportOf(stackWith("raise abort f main"), other, second).report()
			r.OwnSourceOnly = c.ownOnly
			var asked []int
			r.source = func(_ *trace.Frame, s *trace.Symbol) (trace.SourceLines, error) {
				asked = append(asked, s.Line)
				return c.lines, c.err
			}
			var b bytes.Buffer
			if err := r.WriteText(&b, TextOptions{}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(b.String()) {
				if strings.HasPrefix(line, "      ") {
					got = append(got, strings.TrimSuffix(line, "\n"))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n%s", diff, b.String())
			}
			if c.ownOnly && !slices.Equal(asked, []int{3}) {
				t.Errorf("the lines %d were read, expected 3", asked)
			}
		})
	}
}

// TestAPlaceBeginsInTheFirstLine has names of any length at a terminal of 80 columns.
func TestAPlaceBeginsInTheFirstLine(t *testing.T) {
	long := strings.Repeat("namespace_of_many_letters::", 40)
	for _, name := range []string{
		"f", long + "f<int>(int)", strings.Repeat("x", 900), "std::vector<" + long + "T>::push_back(" + long + "T)", "<" + long + "A as " + long + "B>::" + strings.Repeat("y", 90),
		"github.com/" + strings.Repeat("package/", 30) + "p.(*T[...]).M", "a\x1b[31m\n" + strings.Repeat("\x01", 200), strings.Repeat("日", 300), "operator" + strings.Repeat("<", 300),
	} {
		s := stackWith("f")
		s.Frames[0].Symbols[0] = trace.Symbol{Function: name, File: "/src/a.cc", Line: 7, HasStart: true}
		s.Frames[0].ModuleOffset = 0xfff
		var b bytes.Buffer
		if err := reportOf(s).WriteText(&b, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if before, _, ok := strings.Cut(line, "/src/a.cc:7"); ok && len([]rune(before)) > 72 {
				t.Errorf("%d columns before the place: %q", len([]rune(before)), line)
			}
		}
		if !strings.Contains(b.String(), "/src/a.cc:7") {
			t.Errorf("no place:\n%s", b.String())
		}
	}
}
