// SPDX-License-Identifier: Apache-2.0

package bundled_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/bundled"
	"github.com/unwindd/unwindd/internal/oracle"
)

// startPython starts a program of testdata by the python3 of the machine, or by that of UNWINDD_PYTHON, and
// returns its process once it is ready.
func startPython(tb testing.TB, program string, args ...string) (pid int) {
	tb.Helper()
	python := os.Getenv("UNWINDD_PYTHON")
	if python == "" {
		python = oracle.Tool(tb, "python3")
	}
	cmd := exec.Command(python, append([]string{"testdata/" + program}, args...)...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		tb.Fatalf("%q, %v", line, err)
	}
	return cmd.Process.Pid
}

// calls has the text of a program, by which stacks are checked.
type calls struct {
	lines []string
	// starts and ends are the first and the last lines of functions.
	starts, ends map[string]int
}

// callsOf reads a program.
func callsOf(tb testing.TB, path string) *calls {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	c := &calls{lines: strings.Split(string(text), "\n"), starts: map[string]int{}, ends: map[string]int{}}
	class, function, indent := "", "", 0
	for i, line := range c.lines {
		trimmed := strings.TrimLeft(line, " ")
		depth := len(line) - len(trimmed)
		if trimmed == "" {
			continue
		}
		if depth == 0 {
			class = ""
		}
		if function != "" && depth <= indent {
			function = ""
		}
		name, _, _ := strings.Cut(trimmed, "(")
		switch {
		case strings.HasPrefix(trimmed, "class "):
			class = strings.TrimSuffix(strings.TrimPrefix(trimmed, "class "), ":") + "."
		case strings.HasPrefix(name, "def "):
			function, indent = class+strings.TrimPrefix(name, "def "), depth
			c.starts[function] = i + 1
		}
		if function != "" {
			c.ends[function] = i + 1
		}
	}
	return c
}

// check checks a frame with the function that it calls; "" where that is not of the program. It returns what is
// wrong.
func (c *calls) check(f *trace.Symbol, callee string) string {
	name := f.Function
	if c.starts[name] == 0 { // versions before 3.11 have no class in the name
		for full := range c.starts {
			if strings.HasSuffix(full, "."+name) {
				name = full
			}
		}
	}
	start, end := c.starts[name], c.ends[name]
	switch {
	case f.Function == "<module>":
		start, end = 1, len(c.lines)
	case start == 0:
		return "the program has no such function"
	}
	if f.Line < start || f.Line > end {
		return fmt.Sprintf("line %d is not from %d to %d", f.Line, start, end)
	}
	callee = callee[strings.LastIndex(callee, ".")+1:]
	if callee == "" || slices.Contains([]string{"default", "short", "forever"}, callee) { // called by others
		return ""
	}
	if text := c.lines[f.Line-1]; !strings.Contains(text, callee+"(") {
		return fmt.Sprintf("line %d, %q, does not call %s", f.Line, strings.TrimSpace(text), callee)
	}
	return ""
}

// checkSample returns what is wrong with the Python frames of a stack, innermost first.
func (c *calls) checkSample(frames []*trace.Symbol) string {
	callee := ""
	for _, f := range frames {
		if filepath.Base(f.File) != "calls.py" {
			callee = "" // json and threading call back
			continue
		}
		if wrong := c.check(f, callee); wrong != "" {
			return fmt.Sprintf("%s: %s", f.Function, wrong)
		}
		callee = f.Function
	}
	return ""
}

// A thousand moments of a program that executes, with threads that come and go, have no frame that never was.
func TestMomentsOfPython(t *testing.T) {
	oracle.Tools(t, "python3")
	pid := startPython(t, "calls.py", "3")
	e := newEngine(t)
	path := filepath.Join(t.TempDir(), "perf.data")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	done, err := e.RecordProcess(t.Context(), pid, file, trace.RecordOptions{Repeat: 1000, Every: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Profile(t.Context(), path, trace.ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	program := callsOf(t, "testdata/calls.py")
	samples, python, frames, wrong, missing := 0, 0, 0, 0, 0
	for i := range p.Samples {
		var list []*trace.Symbol
		isInterpreting, text := false, ""
		for _, k := range p.StackFrames(nil, p.Samples[i].Stack) {
			f := &p.Frames[k]
			if len(f.Symbols) > 0 {
				text += " " + f.Symbols[len(f.Symbols)-1].Function
			}
			if f.Managed != nil && len(f.Symbols) > 0 {
				list = append(list, &f.Symbols[0])
			} else if len(f.Symbols) > 0 && strings.HasPrefix(f.Symbols[len(f.Symbols)-1].Function, "_PyEval_EvalFrameDefault") {
				isInterpreting = true
			}
		}
		samples++
		frames += len(list)
		if len(list) > 0 {
			python++
		} else if isInterpreting {
			if missing++; missing <= 5 {
				t.Logf("sample %d has no frame of Python:%s", i, text)
			}
		}
		if text := program.checkSample(list); text != "" {
			if wrong++; wrong <= 10 {
				t.Errorf("sample %d: %s", i, text)
			}
		}
	}
	t.Logf("%d samples at %d moments, %d with %d Python frames, %d wrong, %d missing; stopped for %v, at most %v; %q; %q",
		samples, done.Moments, python, frames, wrong, missing, done.Stopped, done.Longest, done.Problems, p.Problems)
	if python < samples*3/4 || missing > samples/100 {
		t.Errorf("%d of %d samples have frames of Python, %d in the interpreter have none", python, samples, missing)
	}
}

// walkAll walks all stacks of a target, and returns how many frames of a language they have.
func walkAll(tb testing.TB, t *engine.Target) (managed int) {
	tb.Helper()
	for s := range t.Stacks(tb.Context()) {
		for i := range s.Frames {
			if s.Frames[i].Managed() != nil {
				managed++
			}
		}
	}
	return managed
}

// apartEngine returns an engine whose language runtimes are processes of their own, as they are by default.
func apartEngine(tb testing.TB) *engine.Engine {
	tb.Helper()
	o := architectures()
	o.Plugins.Self, o.Plugins.BundledRuntimes = filepath.Join(tb.TempDir(), "unwindd"), bundled.Runtimes
	build := exec.Command("go", "build", "-o", o.Plugins.Self, "../../cmd/unwindd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	return engineOf(tb, o)
}

// BenchmarkPythonThreads walks 100 threads of 50 frames each of Python: natively, and with the frames of Python.
func BenchmarkPythonThreads(b *testing.B) {
	if !oracle.AllRequested() {
		b.Skip("starts Python: UNWINDD_TESTS=all runs it")
	}
	pid := startPython(b, "deep.py", "100", "50")
	with := newEngine(b)
	without, apart := nativeEngine(b), apartEngine(b)
	path := filepath.Join(b.TempDir(), "deep.snapshot")
	living, err := with.OpenProcess(pid)
	if err != nil {
		b.Fatal(err)
	}
	snapshot, err := living.Snapshot(b.Context(), engine.SnapshotOptions{})
	if err != nil {
		b.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := snapshot.Write(file); err != nil {
		b.Fatal(err)
	}
	_ = file.Close()
	for _, is := range []struct {
		name string
		e    *engine.Engine
	}{{"native", without}, {"Python", with}, {"Python apart", apart}} {
		copied, err := is.e.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(is.name+"/stacks", func(b *testing.B) {
			managed := 0
			for b.Loop() {
				managed = walkAll(b, copied)
			}
			b.ReportMetric(float64(managed), "frames")
		})
		_ = copied.Close()
		for name, open := range map[string]func() (*engine.Target, error){
			"living":   func() (*engine.Target, error) { return is.e.OpenProcess(pid) },
			"snapshot": func() (*engine.Target, error) { return is.e.Open(path) },
		} {
			b.Run(is.name+"/"+name, func(b *testing.B) {
				managed := 0
				for b.Loop() {
					t, err := open()
					if err != nil {
						b.Fatal(err)
					}
					managed = walkAll(b, t)
					_ = t.Close()
				}
				b.ReportMetric(float64(managed), "frames")
			})
		}
	}
	_ = living.Close()
}
