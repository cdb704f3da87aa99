// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"debug/gosym"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// A goFrame is where a frame of Go's runtime is, and ends.
type goFrame struct{ PC, CFA uint64 }

// TestStackEqualsGosTraceback compares the crashed thread of a Go program with the
// traceback that the program printed as it died: PCs, and the CFAs that it calls
// fp. A stripped program has neither call frame information nor symbols. What ends a
// program, and C, execute on another stack than the goroutine's.
func TestStackEqualsGosTraceback(t *testing.T) {
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct{ subject, mode string }{
		{"gosubject", "panic"}, {"gostripped", "panic"}, {"gosubject", "fatal"}, {"gostripped", "fatal"}, {"cgosubject", ""}, {"cgostripped", ""},
	} {
		t.Run(c.subject+"-"+c.mode, func(t *testing.T) {
			core, said := subject.Crash(t, subject.Build(t, c.subject), c.mode)
			_, traceback, _ := strings.Cut(said, "\ngoroutine ")
			traceback, _, _ = strings.Cut(traceback, "\n\n")
			var want []goFrame
			for _, m := range regexp.MustCompile(`fp=(0x[0-9a-f]+) sp=0x[0-9a-f]+ pc=(0x[0-9a-f]+)`).FindAllStringSubmatch(traceback, -1) {
				want = append(want, goFrame{number(m[2]), number(m[1])})
			}
			th := &stackJSON(t, core).Threads[0]
			var got []goFrame
			for i := range th.Frames {
				if f := &th.Frames[i]; !f.Inlined {
					got = append(got, goFrame{number(f.PC), number(f.CFA)})
					if f.FoundBy != "cfi" && f.FoundBy != "context" && f.FoundBy != "rules" {
						t.Errorf("frame %d is found by %s", i, f.FoundBy)
					}
				}
			}
			if len(want) < 10 || len(got) < len(want) {
				t.Fatalf("%d frames, the runtime has %d:\n%s", len(got), len(want), traceback)
			}
			if c.mode == "" {
				// The runtime prints where the goroutine said that it was about to
				// leave for C.
				want[0].PC = got[len(got)-len(want)].PC
			}
			if diff := cmp.Diff(want, got[len(got)-len(want):]); diff != "" {
				t.Errorf("stopped %s: %s (-runtime +unwindd):\n%s", th.Stopped.Reason, th.Stopped.Detail, diff)
			}
		})
	}
}

// TestStackGoesOnWhereMcallWasCalled stops a Go program where a goroutine is about to be
// parked: the scheduler's stack goes on in it. Threads that look for work have given
// theirs away, and their stacks begin in runtime.mcall.
func TestStackGoesOnWhereMcallWasCalled(t *testing.T) {
	oracle.Tools(t, "gdb")
	for _, name := range []string{"gosubject", "gostripped"} {
		t.Run(name, func(t *testing.T) {
			parks := symbolAddress(t, subject.Build(t, "gosubject"), "runtime.park_m")
			if name == "gostripped" {
				parks = goFunction(t, subject.Build(t, name), "runtime.park_m")
			}
			// On a busy machine no thread may look for a goroutine when one is parked.
			parking, idle := 0, 0
			for try := 0; try < 10 && (parking == 0 || idle == 0); try++ {
				more, others := mcallStacks(t, coreOfParking(t, subject.Build(t, name), parks))
				parking, idle = parking+more, idle+others
			}
			if parking == 0 || idle == 0 {
				t.Errorf("%d threads park a goroutine, %d look for one", parking, idle)
			}
		})
	}
}

// coreOfParking is a core of a program in which a thread is about to park a goroutine.
// No signal of the runtime's own interrupts its threads.
func coreOfParking(t *testing.T, program string, parks uint64) (core string) {
	t.Helper()
	core = filepath.Join(t.TempDir(), "core")
	out, err := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load no",
		"-ex", "set environment GODEBUG asyncpreemptoff=1",
		"-ex", fmt.Sprintf("break *%#x", parks), "-ex", "run wait", "-ex", "ignore 1 9", "-ex", "continue",
		"-ex", "gcore "+core, "-ex", "kill", program).CombinedOutput()
	if _, missing := os.Stat(core); missing != nil {
		t.Fatalf("gdb: %v\n%s", err, out)
	}
	return core
}

// mcallStacks checks the stacks that runtime.mcall is in, and counts those of threads
// that park a goroutine, which go on in it, and of threads that look for one.
func mcallStacks(t *testing.T, core string) (parking, idle int) {
	t.Helper()
	for _, th := range stackJSON(t, core).Threads {
		names := functions(&th)
		i := slices.Index(names, "runtime.mcall")
		switch {
		case i < 0:
		case names[0] == "runtime.park_m":
			parking++
			if len(names) < i+4 || names[i+1] != "runtime.gopark" || names[len(names)-1] != "runtime.goexit" {
				t.Errorf("thread %s: %q", th.ID, names)
			}
		default:
			idle++
			if i != len(names)-1 || th.Stopped.Reason != "outermost" || th.Stopped.Detail != "a stack begins in runtime.mcall" {
				t.Errorf("thread %s: %q, stopped %v", th.ID, names, th.Stopped)
			}
		}
	}
	return parking, idle
}

// functions are the names of a thread's frames, innermost first, without the ABI that
// Go's linker adds.
func functions(th *report.Thread) (names []string) {
	for i := range th.Frames {
		if f := &th.Frames[i]; !f.Inlined {
			names = append(names, strings.TrimSuffix(f.Function, ".abi0"))
		}
	}
	return names
}

// symbolAddress is the address of a function by the symbol table.
func symbolAddress(t *testing.T, path, name string) uint64 {
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
	for _, s := range symbols {
		if s.Name == name {
			return s.Value
		}
	}
	t.Fatalf("%s has no %s", path, name)
	return 0
}

// goFunction is the address of a function by Go's own table.
func goFunction(t *testing.T, path, name string) uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := f.Section(".gopclntab").Data()
	if err != nil {
		t.Fatal(err)
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, f.Section(".text").Addr))
	if err != nil {
		t.Fatal(err)
	}
	fn := table.LookupFunc(name)
	if fn == nil {
		t.Fatalf("%s has no %s", path, name)
	}
	return fn.Entry
}
