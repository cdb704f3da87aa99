// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cmd/unwindd/internal/verify"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/bundled"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
)

// TestARuntimeInPython builds the plugin and the interpreter of examples/runtime-toy. The example's
// snapshot has the stacks that its README shows, and a core of the interpreter that was built
// has the same frames of the language.
func TestARuntimeInPython(t *testing.T) {
	leftOutOfShort(t)
	oracle.Tools(t, "sh", "protoc", "gcc", "gdb", "mktemp", "mkdir", "cp", "rm", "sed")
	needPython(t)
	dir := t.TempDir()
	oracle.Run(t, "sh", example("runtime-toy", "build.sh"), dir)
	snapshot := example("runtime-toy", "toy.snapshot")
	use := func(a *enginetest.Ask) { a.Engine.Plugins.Dirs, a.Engine.Plugins.Self = []string{dir}, self(t) }
	tasks := func(a *enginetest.Ask) { all := true; a.Stack.Goroutines = &all }
	locals := func(a *enginetest.Ask) { a.Stack.Locals = true }

	t.Run("readme", func(t *testing.T) {
		readme, err := os.ReadFile(example("runtime-toy", "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		_, stacks, _ := strings.Cut(enginetest.Text(t, snapshot, use, tasks), "\n")
		if stacks == "" || !strings.Contains(string(readme), "\n"+stacks+"```\n") {
			t.Errorf("the stacks are not the README's:\n%s", stacks)
		}
		text := enginetest.Text(t, snapshot, use, locals)
		_, after, _ := strings.Cut(string(readme), "beside those of C:\n\n```\n")
		if shown, _, isThere := strings.Cut(after, "```"); !isThere || shown == "" || !strings.Contains(text, shown) {
			t.Errorf("the README has other variables:\n%s", text)
		}
	})
	core := filepath.Join(dir, "toy.core")
	in := oracle.With{Dir: example("runtime-toy")}
	in.Run(t, "gdb", "-nx", "-batch", "-ex", "run paint.toy", "-ex", "generate-core-file "+core, filepath.Join(dir, "toy"))
	for _, target := range []string{snapshot, core} {
		t.Run(filepath.Base(target), func(t *testing.T) { hasToyStacks(t, enginetest.Report(t, target, use, tasks, locals)) })
	}
	t.Run("verify", func(t *testing.T) {
		state := filepath.Join(dir, "toy.snapshot")
		oracle.Run(t, "cp", snapshot, state)
		stacks, err := enginetest.Write(t, state, use, func(a *enginetest.Ask) { a.Stack.Format = "json" })
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ old, changed, want string }{{"", "", ""}, {`"function":"check"`, `"function":"other"`, "other"}} {
			expected := strings.ReplaceAll(strings.ReplaceAll(stacks, `": "`, `":"`), c.old, c.changed)
			if err := os.WriteFile(state+".expected.json", []byte(expected), 0o600); err != nil {
				t.Fatal(err)
			}
			r := examine(t, verify.Options{Path: filepath.Join(dir, "unwindd-runtime-toy"), States: []string{state}, Bundled: bundled.Architectures})
			if r.Passed != (c.want == "") || c.want == "" && len(r.Findings) > 0 || c.want != "" && (len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Detail, c.want)) {
				t.Errorf("expected %q, found %+v", c.want, r.Findings)
			}
		}
	})
}

// toyStacks are the stacks of the toy's threads and tasks while it runs paint.toy, without the
// frames of C, innermost first. Native frames that stand behind are listed as such.
var toyStacks = map[string]string{
	"crashed": "compiled thunk of peek, check:34, measure:29, area:22, draw:16, behind toy_run, compiled thunk of each, paint:12, behind toy_run",
	"1000":    "compiled thunk of sleep, rest:52, clock:48, behind toy_run",
	"1001":    "compiled thunk of sleep, rest:52, clock:48, behind toy_run",
	"task 1":  "main:7",
	"task 2":  "compiled thunk of peek, check:34, measure:29, area:22, draw:16, behind toy_run, compiled thunk of each, paint:12, behind toy_run",
	"task 3":  "settle:43, fill:39",
}

// hasToyStacks compares the stacks of a process that runs paint.toy.
func hasToyStacks(t *testing.T, r *report.Report) {
	t.Helper()
	found := map[string]string{}
	for i := range r.Threads {
		th := &r.Threads[i]
		frames := toyFrames(th)
		switch seconds := valueOf(th, "clock", "seconds"); {
		case th.ManagedThread != nil:
			found[th.ID] = frames
		case th.Crashed:
			found["crashed"] = frames
		default:
			found[seconds] = frames
		}
		if m := th.ManagedThread; m != nil && m.ID == 3 && (m.Runtime != "toy" || m.Kind != "task" || m.State != "waiting" || !slices.Equal(m.WaitsFor, []uint64{2}) || m.Parent != 1 || th.Name != "fill") {
			t.Errorf("task 3 is %+v", m)
		}
	}
	for name, want := range toyStacks {
		if found[name] != want {
			t.Errorf("%s has the frames\n%s\nexpected\n%s", name, found[name], want)
		}
	}
	if len(found) != len(toyStacks) {
		t.Errorf("found %v", found)
	}
	crashed := &r.Threads[slices.IndexFunc(r.Threads, func(th report.Thread) bool { return th.Crashed })]
	for _, v := range []struct{ function, name, want string }{
		{"measure", "at", "0"}, {"measure", "n", "unset"}, {"draw", "size", "3"}, {"paint", "title", `"sizes"`}, {"paint", "sizes", "3 items [3 4 0]"},
		{"area", "box", `3 items [2 items [0 0] "round" 3]`},
	} {
		if got := valueOf(crashed, v.function, v.name); got != v.want {
			t.Errorf("%s of %s is %s, expected %s", v.name, v.function, got, v.want)
		}
	}
}

// toyFrames lists the frames of the language, and native ones that these stand for.
func toyFrames(th *report.Thread) string {
	var list []string
	for i := range th.Frames {
		f := &th.Frames[i]
		switch {
		case f.BehindManaged && !f.Inlined:
			list = append(list, "behind "+f.Function)
		case f.Managed != nil && f.Managed.Native:
			list = append(list, f.Managed.Kind+" "+f.Function)
		case f.Managed != nil && f.Managed.Kind == "interpreted" && f.FoundBy == "runtime":
			list = append(list, fmt.Sprintf("%s:%d", f.Function, f.Line))
		}
	}
	return strings.Join(list, ", ")
}

// valueOf returns the value of a variable of the language in a stack.
func valueOf(th *report.Thread, function, name string) string {
	for i := range th.Frames {
		if f := &th.Frames[i]; f.Function == function && f.Managed != nil && f.Locals != nil {
			for _, v := range *f.Locals {
				if v.Name == name {
					return shownValue(&v)
				}
			}
		}
	}
	return "not there"
}

func shownValue(v *report.Variable) string {
	if v.Value == nil && len(v.Children) == 0 {
		return v.Status
	}
	text := ""
	if v.Value != nil {
		text = *v.Value
	}
	var parts []string
	for i := range v.Children {
		parts = append(parts, shownValue(&v.Children[i]))
	}
	if len(parts) > 0 {
		text += " [" + strings.Join(parts, " ") + "]"
	}
	return text
}
