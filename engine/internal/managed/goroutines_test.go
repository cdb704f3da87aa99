// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// withGoroutines asks for goroutines too.
func withGoroutines(a *enginetest.Ask) { a.Stack.Goroutines = new(true) }

// goToolchains are versions of Go whose runtimes keep goroutines in different ways:
// without and with atomic types, without and with the goroutine's parent, the frame
// pointer of a system call, DWARF 4 and 5. The last one is the test's own.
var goToolchains = []string{"go1.19.13", "go1.21.13", "go1.23.4", "local"}

// A printedGoroutine is a goroutine as a traceback of Go's runtime or Delve prints it.
type printedGoroutine struct {
	ID        uint64
	State     string
	Frames    []printedFrame
	Elided    bool // frames behind these are left out
	CreatedBy string
	Thread    string
}

// A printedFrame is a frame, or a call that was inlined, which has neither PC nor FP.
type printedFrame struct {
	Function, Position string
	PC, FP             uint64
}

var (
	goroutineHead = regexp.MustCompile(`^goroutine (\d+)(?: gp=\S+ m=\S+(?: mp=\S+)?)? \[(.*)\]:$`)
	goroutineAt   = regexp.MustCompile(`^\t(\S+:\d+)(?: \+0x[0-9a-f]+)?(?: fp=(0x[0-9a-f]+) sp=0x[0-9a-f]+ pc=(0x[0-9a-f]+))?$`)
)

// readTraceback reads what Go's runtime prints when a program crashes.
func readTraceback(t *testing.T, said string) map[uint64]*printedGoroutine {
	t.Helper()
	all := map[uint64]*printedGoroutine{}
	var g *printedGoroutine
	function, isCreator := "", false
	for line := range strings.Lines(said) {
		line = strings.TrimSuffix(line, "\n")
		if m := goroutineHead.FindStringSubmatch(line); m != nil {
			id, _ := strconv.ParseUint(m[1], 10, 64)
			g = &printedGoroutine{ID: id, State: m[2]}
			// Goroutine 0 is the stack of a thread that schedules goroutines.
			if id > 0 && (all[id] == nil || len(all[id].Frames) == 0) {
				all[id] = g // of one that executes in another thread the stack follows, if at all
			}
			continue
		}
		switch m := goroutineAt.FindStringSubmatch(line); {
		case g == nil || strings.Contains(line, "stack unavailable"):
		case line == "" || strings.HasPrefix(line, "-----"):
			g = nil
		case strings.Contains(line, "frames elided"):
			g.Elided = true
		case m != nil && isCreator:
			g.CreatedBy = function + " " + m[1]
		case m != nil && !g.Elided:
			pc, _ := strconv.ParseUint(m[3], 0, 64)
			fp, _ := strconv.ParseUint(m[2], 0, 64)
			g.Frames = append(g.Frames, printedFrame{function, m[1], pc, fp})
		default:
			function, isCreator = strings.CutPrefix(line, "created by ")
			if isCreator {
				function, _, _ = strings.Cut(function, " in goroutine")
			} else if strings.HasPrefix(function, "panic(") {
				function = "runtime.gopanic" // as the runtime shortens it
			} else if i := strings.LastIndexByte(function, '('); i > 0 {
				function = function[:i]
			}
		}
	}
	return all
}

// printedFrames are the frames of a thread in the same form. Go's linker adds the ABI
// to names, and DWARF a folder to what was generated.
func printedFrames(th *report.Thread) (list []printedFrame) {
	for i := range th.Frames {
		f := &th.Frames[i]
		p := printedFrame{Function: strings.TrimSuffix(f.Function, ".abi0"), Position: fmt.Sprintf("%s:%d", strings.TrimPrefix(f.File, "./"), f.Line)}
		if !f.Inlined {
			p.PC, _ = strconv.ParseUint(f.PC, 0, 64)
			p.FP, _ = strconv.ParseUint(f.CFA, 0, 64)
		}
		list = append(list, p)
	}
	return list
}

// TestGoroutinesEqualTheCrashsTraceback compares every goroutine that a program prints
// as it dies, and all of its frames, with those of the core.
func TestGoroutinesEqualTheCrashsTraceback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		subject string
		args    []string
		least   int
	}{
		{"goroutines", []string{"panic", "10"}, 40}, {"cgoroutines", []string{"fault"}, 6}, {"cgoroutines", []string{"go"}, 6},
	} {
		for _, toolchain := range goToolchains {
			t.Run(c.subject+"-"+c.args[0]+"-"+toolchain, func(t *testing.T) {
				t.Parallel()
				core, said := subject.Crash(t, subject.BuildGoroutines(t, c.subject, toolchain), c.args...)
				compareTraceback(t, enginetest.Report(t, core, withGoroutines), readTraceback(t, said), c.least, toolchain == "go1.19.13")
			})
		}
	}
}

// TestGoroutinesOfStrippedProgramsEqualTheCrashsTraceback is the same for programs without
// DWARF and symbols.
func TestGoroutinesOfStrippedProgramsEqualTheCrashsTraceback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		subject string
		args    []string
		least   int
	}{
		{"goroutines", []string{"panic", "10"}, 40}, {"cgoroutines", []string{"fault"}, 6},
	} {
		for _, toolchain := range slices.Concat(goToolchains, []string{"go1.27.3"}) {
			if c.subject == "cgoroutines" && toolchain == "go1.19.13" {
				continue // nothing tells that the first instruction of its systemstack_switch is returned to
			}
			t.Run(c.subject+"-"+toolchain, func(t *testing.T) {
				t.Parallel()
				core, said := subject.Crash(t, subject.BuildGoroutines(t, c.subject, toolchain, "-ldflags=-s -w"), c.args...)
				compareTraceback(t, enginetest.Report(t, core, withGoroutines), readTraceback(t, said), c.least, toolchain == "go1.19.13")
			})
		}
	}
}

func compareTraceback(t *testing.T, r *report.Report, want map[uint64]*printedGoroutine, least int, isOld bool) {
	t.Helper()
	if len(r.Target.Problems) > 0 {
		t.Errorf("problems: %q", r.Target.Problems)
	}
	found := 0
	executed := map[string]*report.Thread{} // by the goroutine's ID
	for i := range r.Threads {
		if id := r.Threads[i].Executes; id != "" {
			executed[id] = &r.Threads[i]
		}
	}
	for i := range r.Threads {
		th := &r.Threads[i]
		if th.Goroutine == nil {
			continue
		}
		if by := executed[th.ID]; (by == nil) != (th.Goroutine.Thread == "") || by != nil && (by.ID != th.Goroutine.Thread || !cmp.Equal(printedFrames(by), printedFrames(th))) {
			t.Errorf("%s is executed by %+v, and by what it says itself by %q", th.ID, by, th.Goroutine.Thread)
		}
		w := want[th.Goroutine.ID]
		if w == nil {
			t.Errorf("%s is not in the traceback: %+v", th.ID, th.Goroutine)
			continue
		}
		found++
		compareGoroutine(t, th, w, isOld)
	}
	if found != len(want) || found < least {
		t.Errorf("%d goroutines, the traceback has %d, expected %d or more", found, len(want), least)
	}
}

func compareGoroutine(t *testing.T, th *report.Thread, w *printedGoroutine, isOld bool) {
	t.Helper()
	g := th.Goroutine
	state := g.State
	if g.WaitReason != "" {
		state = g.WaitReason
	}
	if g.Scanned {
		state += " (scan)"
	}
	if g.Locked {
		state += ", locked to thread"
	}
	if state != w.State {
		t.Errorf("%s: %q, the traceback says %q", th.ID, state, w.State)
	}
	creator := ""
	if c := g.CreatedBy; c != nil {
		creator = fmt.Sprintf("%s %s:%d", c.Function, c.File, c.Line)
	}
	if creator != w.CreatedBy {
		t.Errorf("%s: created by %q, the traceback says %q", th.ID, creator, w.CreatedBy)
	}
	got := printedFrames(th)
	if g.Thread != "" {
		// The thread went on from where the goroutine said that it leaves.
		if len(got) < len(w.Frames) {
			t.Errorf("%s: %d frames, the traceback has %d", th.ID, len(got), len(w.Frames))
			return
		}
		if len(w.Frames) == 0 {
			return // it "runs on another thread", and that said nothing
		}
		got = got[len(got)-len(w.Frames):]
		got[0].PC, got[0].Position, got[0].Function = w.Frames[0].PC, w.Frames[0].Position, w.Frames[0].Function
	} else if w.Elided {
		got = got[:min(len(got), len(w.Frames))]
	}
	for i := 1; i < min(len(got), len(w.Frames)); i++ {
		// Before Go 1.21 the runtime takes the PC that it interrupted for a return
		// address, and prints the line of the instruction before it.
		if w.Frames[i-1].Function == "runtime.asyncPreempt" && isOld {
			got[i].Position = w.Frames[i].Position
		}
	}
	if diff := cmp.Diff(w.Frames, got); diff != "" {
		t.Errorf("%s [%s], stopped %v (-runtime +unwindd):\n%s", th.ID, state, th.Stopped, diff)
	}
}

var (
	delveHead  = regexp.MustCompile(`^[* ] Goroutine (\d+) - User: .*?(?: \(thread (\d+)\))?(?: \[(.*?)(?: \d+)?\])?$`)
	delveFrame = regexp.MustCompile(`^\t *\d+  (0x[0-9a-f]+) in (.*)$`)
	delveAt    = regexp.MustCompile(`^\t +at (\S+:\d+)$`)
	colors     = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

// readDelve reads what Delve says of the goroutines of a core. A frame's PC is that of
// the frame that it was inlined into.
func readDelve(t *testing.T, delve, exe, core string) map[uint64]*printedGoroutine {
	t.Helper()
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("goroutines -t 1100\nexit\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Delve makes room for so many frames of each, and shortens paths of the folder that it runs in.
	out := oracle.With{Dir: filepath.Dir(script)}.Run(t, delve, "core", exe, core, "--init", script, "--allow-non-terminal-interactive=true")
	all := map[uint64]*printedGoroutine{}
	var g *printedGoroutine
	for line := range strings.Lines(colors.ReplaceAllString(out, "")) {
		line = strings.TrimSuffix(line, "\n")
		if m := delveHead.FindStringSubmatch(line); m != nil {
			id, _ := strconv.ParseUint(m[1], 10, 64)
			g = &printedGoroutine{ID: id, State: m[3], Thread: m[2]}
			all[id] = g
		} else if m := delveFrame.FindStringSubmatch(line); m != nil && g != nil {
			pc, _ := strconv.ParseUint(m[1], 0, 64)
			g.Frames = append(g.Frames, printedFrame{Function: m[2], PC: pc})
		} else if m := delveAt.FindStringSubmatch(line); m != nil && g != nil && len(g.Frames) > 0 {
			g.Frames[len(g.Frames)-1].Position = m[1]
		}
	}
	return all
}

// TestGoroutinesEqualDelves compares all goroutines of a core, and all of their
// frames, with Delve's.
func TestGoroutinesEqualDelves(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long: run without -short")
	}
	exe := subject.BuildGoroutines(t, "goroutines", "local")
	delve := oracle.Delve(t)
	core := subject.Core(t, exe, "abort", "3000")
	compareDelve(t, enginetest.Report(t, core, withGoroutines), readDelve(t, delve, exe, core), 3_030)
}

// delveClasses count where Delve is known to be wrong.
type delveClasses struct {
	// Delve takes the PC of a goroutine that waits for the instruction that it
	// executes next, and prints its line. It is a return address, as the runtime's
	// own traceback knows.
	callTop int
	// Delve takes the PC at which a signal interrupted a goroutine for a return address.
	interrupted int
	// Delve does not know the state _Gdeadextra of Go 1.26: such a goroutine waits to
	// be used by a thread of C.
	dead int
}

// sortOut takes what Delve is known to have wrong from what differs.
func (c *delveClasses) sortOut(w *printedGoroutine, got []printedFrame) {
	for i := range min(len(got), len(w.Frames)) {
		if got[i].Position == w.Frames[i].Position {
			continue
		}
		switch {
		case i == 0 && w.Thread == "":
			c.callTop++
		case i > 0 && w.Frames[i-1].Function == "runtime.asyncPreempt":
			c.interrupted++
		default:
			continue
		}
		got[i].Position = w.Frames[i].Position
	}
}

func compareDelve(t *testing.T, r *report.Report, want map[uint64]*printedGoroutine, least int) {
	t.Helper()
	found, frames, differ := 0, 0, 0
	var classes delveClasses
	for i := range r.Threads {
		th := &r.Threads[i]
		if th.Goroutine == nil {
			continue
		}
		w := want[th.Goroutine.ID]
		if w == nil {
			t.Errorf("Delve does not list %s", th.ID)
			continue
		}
		found++
		delete(want, th.Goroutine.ID)
		got := pcsOfCallers(printedFrames(th))
		frames += len(got)
		classes.sortOut(w, got)
		if th.Goroutine.WaitReason != w.State || th.Goroutine.Thread != w.Thread {
			t.Errorf("%s: [%s] in thread %q, Delve says [%s] in thread %q", th.ID, th.Goroutine.WaitReason, th.Goroutine.Thread, w.State, w.Thread)
		}
		if diff := cmp.Diff(w.Frames, got); diff != "" {
			if differ++; differ < 20 {
				t.Errorf("%s (-Delve +unwindd):\n%s", th.ID, diff)
			}
		}
	}
	for id, w := range want {
		if len(w.Frames) == 1 && w.Frames[0].Function == "runtime.goexit" {
			classes.dead++
			continue
		}
		t.Errorf("goroutine %d is Delve's alone: %+v", id, w)
	}
	t.Logf("%d goroutines with %d frames, %d goroutines differ; where Delve is wrong: %+v", found, frames, differ, classes)
	if found < least {
		t.Errorf("%d goroutines, expected %d or more", found, least)
	}
}

// pcsOfCallers gives calls that were inlined the PC of their physical frame, as Delve
// does, which does not print FPs.
func pcsOfCallers(list []printedFrame) []printedFrame {
	pc := uint64(0)
	for i := len(list) - 1; i >= 0; i-- {
		list[i].FP = 0
		if list[i].PC == 0 {
			list[i].PC = pc
		}
		pc = list[i].PC
	}
	return list
}

// TestOneGoroutineByItsID has a goroutine and the thread that executes one by their IDs.
func TestOneGoroutineByItsID(t *testing.T) {
	t.Parallel()
	core := subject.Core(t, subject.BuildGoroutines(t, "goroutines", "local"), "abort", "10")
	for _, th := range enginetest.Report(t, core, withGoroutines).Threads {
		if th.Goroutine == nil && th.Executes == "" {
			continue
		}
		r := enginetest.Report(t, core, withGoroutines, func(a *enginetest.Ask) { a.Stack.Thread = th.ID })
		if diff := cmp.Diff([]report.Thread{th}, r.Threads); diff != "" {
			t.Errorf("--thread %q (-among all +alone):\n%s", th.ID, diff)
		}
	}
	_, err := enginetest.Write(t, core, func(a *enginetest.Ask) { a.Stack.Thread, a.Stack.Goroutines = "goroutine 1", new(false) })
	if err == nil || !strings.Contains(err.Error(), "there is no thread goroutine 1: goroutines are among the threads with --goroutines") {
		t.Errorf("without goroutines: %v", err)
	}
}

// TestGoroutinesOfSeveralRuntimes has a program of C with two libraries, each of which
// brings a runtime of Go with goroutines that count from 1.
func TestGoroutinesOfSeveralRuntimes(t *testing.T) {
	t.Parallel()
	oracle.Tools(t, "go", "gcc")
	sources := subject.Source(t, "goshared")
	dir := oracle.Build{Sources: []string{sources}, Commands: [][]string{
		{"go", "build", "-buildmode=c-shared", "-o", "libone.so", filepath.Join(sources, "lib.go")},
		{"go", "build", "-buildmode=c-shared", "-o", "libtwo.so", filepath.Join(sources, "lib.go")},
		{"gcc", "-g", filepath.Join(sources, "main.c"), "-ldl", "-o", "goshared"},
	}}.Make(t)
	core := subject.Core(t, filepath.Join(dir, "goshared"), filepath.Join(dir, "libone.so"), filepath.Join(dir, "libtwo.so"))
	waiting, ids := map[string]int{}, map[string]bool{}
	for _, th := range enginetest.Report(t, core, withGoroutines).Threads {
		if ids[th.ID] {
			t.Errorf("two threads are %q", th.ID)
		}
		ids[th.ID] = true
		if _, library, _ := strings.Cut(th.ID, " of "); th.Goroutine != nil && th.Name == "main.Begin.func1" {
			waiting[library]++
		}
	}
	if diff := cmp.Diff(map[string]int{"libone.so": 3, "libtwo.so": 3}, waiting); diff != "" {
		t.Errorf("goroutines that wait (-want +got):\n%s", diff)
	}
}
