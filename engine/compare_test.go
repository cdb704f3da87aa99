// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/enginetest"
)

const (
	crashedCore     = "../examples/crash/server.core"
	crashedMinidump = "../examples/crash/server.dmp"
	pythonSnapshot  = "../examples/python-gpu/train.snapshot"
)

// targetsInTree returns the targets that the repository has.
func targetsInTree(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if slices.Contains([]string{".snapshot", ".core", ".dmp"}, filepath.Ext(path)) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) < 30 {
		t.Fatalf("%d targets: %v", len(paths), err)
	}
	return paths
}

// part returns the bytes of a comparison of what add adds.
func part(t *testing.T, e *engine.Engine, add func(c *engine.Comparer) error) []byte {
	t.Helper()
	c := e.NewComparer(engine.CompareOptions{})
	if err := add(c); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := c.WritePart(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func compare(t *testing.T, o engine.CompareOptions, paths ...string) *trace.Comparison {
	t.Helper()
	c := enginetest.Engine(t, engine.Options{}).NewComparer(o)
	if err := c.AddPaths(t.Context(), paths, nil); err != nil {
		t.Fatal(err)
	}
	return c.Comparison()
}

// TestAReportComparesAsItsTarget compares each target with what `stack --format json` writes of it: as a file, packed
// or not, and as a stream.
func TestAReportComparesAsItsTarget(t *testing.T) {
	e := enginetest.Engine(t, engine.Options{})
	for _, path := range targetsInTree(t) {
		written, err := enginetest.Write(t, path, func(a *enginetest.Ask) { a.Stack.Format, a.Stack.Goroutines = "json", new(bool) })
		if err != nil && !errors.Is(err, trace.ErrNotWalked) {
			t.Fatal(err)
		}
		walked := part(t, e, func(c *engine.Comparer) error { return c.AddPaths(t.Context(), []string{path}, nil) })
		read := part(t, e, func(c *engine.Comparer) error { return c.AddReport(strings.NewReader(written), path) })
		if !bytes.Equal(walked, read) {
			t.Errorf("%s: its report compares in another way", path)
			a, b := e.NewComparer(engine.CompareOptions{}), e.NewComparer(engine.CompareOptions{})
			if err := errors.Join(a.AddReport(bytes.NewReader(walked), ""), b.AddReport(bytes.NewReader(read), "")); err != nil {
				t.Fatal(err)
			}
			t.Log(cmp.Diff(a.Comparison(), b.Comparison()))
		}
	}
	report := filepath.Join(t.TempDir(), "report.json")
	written := enginetest.Text(t, crashedCore, func(a *enginetest.Ask) { a.Stack.Format = "json" })
	if err := os.WriteFile(report, []byte(written), 0o600); err != nil {
		t.Fatal(err)
	}
	c := compare(t, engine.CompareOptions{}, crashedCore, report)
	if len(c.Classes) != 1 || len(c.Classes[0].Targets) != 2 || len(c.Classes[0].Variants) != 1 {
		t.Errorf("a core and its report are in %d classes: %+v", len(c.Classes), c.Classes)
	}
}

// TestStacksOfACrashAreCompared is about the roles of threads, the facts and the tree of one core among others.
func TestStacksOfACrashAreCompared(t *testing.T) {
	c := compare(t, engine.CompareOptions{}, crashedCore, crashedMinidump, pythonSnapshot)
	if len(c.Targets) != 3 {
		t.Fatalf("%d targets, expected 3", len(c.Targets))
	}
	core := &c.Classes[c.Targets[slices.IndexFunc(c.Targets, func(one trace.ComparedTarget) bool { return one.Path == crashedCore })].Class]
	var roles []string
	for i := range core.Threads {
		roles = append(roles, core.Threads[i].Role)
	}
	if want := []string{"main", "worker"}; !slices.Equal(slices.Compact(roles), want) {
		t.Errorf("the roles are %q, expected %q", roles, want)
	}
	if want := []string{"SIGSEGV / SEGV_MAPERR"}; !slices.Equal(core.Facts, want) {
		t.Errorf("the facts are %q, expected %q", core.Facts, want)
	}
	waves, python := 0, 0
	for i := range c.Functions {
		f := &c.Functions[i].Frame
		if f.IsWave {
			waves++
		}
		if f.Runtime == "cpython" {
			python++
		}
		if f.Function == "_PyEval_EvalFrameDefault" {
			t.Error("a frame of the interpreter is there, for which frames of Python stand")
		}
	}
	if waves == 0 || python == 0 {
		t.Errorf("%d frames of waves and %d of Python, expected some", waves, python)
	}
	for i := range c.Functions {
		n := &c.Functions[i]
		if n.Frame.IsWave && (n.Parent < 0 || c.Functions[n.Parent].Parent < 0) {
			t.Errorf("wave of %s: it does not continue in the thread that launched it", n.Frame.Function)
		}
	}
}

// TestCrashedThreadsOfMinidumpsAreComparedAsThoseOfCores compares only threads that crashed: of a core, of minidumps, one of
// which is of 32-bit x86, of a wave, and of a process in which none did.
func TestCrashedThreadsOfMinidumpsAreComparedAsThoseOfCores(t *testing.T) {
	const breakpad, rank = "internal/target/minidump/testdata/minidump2.dmp", "../examples/job/stacks/rank0.snapshot"
	c := compare(t, engine.CompareOptions{CrashedOnly: true}, crashedCore, crashedMinidump, breakpad, pythonSnapshot, rank)
	stacks, none := map[string]trace.ClassThread{}, 0
	for i := range c.Targets {
		class, path := &c.Classes[c.Targets[i].Class], c.Targets[i].Path
		switch {
		case class.Unread != "":
			t.Errorf("%s: %s", path, class.Unread)
		case len(class.Threads) == 0 && path == rank && slices.Equal(class.Facts, []string{"none of its threads is known to have crashed"}):
			none++
		case len(class.Threads) != 1 || c.Targets[i].Threads != 1 || !class.Threads[0].Crashed:
			t.Errorf("%s has the threads %+v, expected the one that crashed", path, class.Threads)
		default:
			stacks[path] = class.Threads[0]
		}
	}
	core, dump := stacks[crashedCore], stacks[crashedMinidump]
	if none != 1 || len(stacks) != 4 || core.Node != dump.Node || core.Role != dump.Role || core.Node < 0 {
		t.Errorf("%d targets without a crash, and the stacks %+v", none, stacks)
	}
	if wave := stacks[pythonSnapshot]; wave.Role != "wave of grade" {
		t.Errorf("%s has the role %q, expected its wave that stopped", pythonSnapshot, wave.Role)
	}
}

// TestWhatCannotBeReadIsSaid gives files that are no targets, or damaged ones, beside a good one.
func TestWhatCannotBeReadIsSaid(t *testing.T) {
	dir := t.TempDir()
	core, err := os.ReadFile(crashedCore)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"empty": "", "text": "no target", "cut.core": string(core[:64]), "other.json": `{"a": 1}`, "cut.json": `{"version": 1, "target": {`,
		"old.json": `{"version": 7, "target": {"kind": "elf-core"}, "threads": []}`, "part": "UNWCMPR\x01garbage", "zip.snapshot": "PK\x03\x04 garbage",
	}
	paths := []string{crashedCore, filepath.Join(dir, "missing"), dir, "999999999"}
	for name, text := range files {
		paths = append(paths, filepath.Join(dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := compare(t, engine.CompareOptions{}, paths...)
	if len(c.Targets) != len(paths) {
		t.Fatalf("%d targets, expected %d", len(c.Targets), len(paths))
	}
	for i := range c.Targets {
		unread := c.Classes[c.Targets[i].Class].Unread
		if isGood := c.Targets[i].Path == crashedCore; isGood != (unread == "") {
			t.Errorf("%s: unread %q", c.Targets[i].Path, unread)
		}
		if strings.Contains(unread, dir) {
			t.Errorf("the reason names one file: %q", unread)
		}
	}
}

// TestTheOrderOfTargetsDoesNotMatter adds the same targets in other orders, by other numbers of goroutines, and by parts.
func TestTheOrderOfTargetsDoesNotMatter(t *testing.T) {
	paths := []string{crashedCore, crashedMinidump, pythonSnapshot, "../examples/rocm-core/crash.core", "../examples/gen/gen.snapshot", "../README.md"}
	want := compare(t, engine.CompareOptions{Jobs: 1}, paths...)
	e := enginetest.Engine(t, engine.Options{})
	for first := range paths {
		turned := slices.Concat(paths[first:], paths[:first])
		if diff := cmp.Diff(want, compare(t, engine.CompareOptions{Jobs: 1 + first}, turned...)); diff != "" {
			t.Error(diff)
		}
		joined := e.NewComparer(engine.CompareOptions{})
		for _, group := range [][]string{turned[:2], turned[2:3], turned[3:]} {
			b := part(t, e, func(c *engine.Comparer) error { return c.AddPaths(t.Context(), group, nil) })
			if err := joined.AddReport(bytes.NewReader(b), "part"); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, joined.Comparison()); diff != "" {
			t.Error(diff)
		}
	}
}

// TestACancelledComparisonHasNoHalfTargets cancels before and while targets are walked.
func TestACancelledComparisonHasNoHalfTargets(t *testing.T) {
	c := enginetest.Engine(t, engine.Options{}).NewComparer(engine.CompareOptions{Jobs: 1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := 0
	err := c.AddPaths(ctx, []string{crashedCore, crashedMinidump, pythonSnapshot}, func() {
		if done++; done == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || done != 2 {
		t.Errorf("%v after %d targets, expected that it was cancelled after 2", err, done)
	}
	if n := len(c.Comparison().Targets); n != 2 {
		t.Errorf("%d targets, expected 2", n)
	}
}

// TestEveryPathIsDone counts the calls for paths of every kind.
func TestEveryPathIsDone(t *testing.T) {
	c := enginetest.Engine(t, engine.Options{}).NewComparer(engine.CompareOptions{})
	done := 0
	if err := c.AddPaths(t.Context(), []string{crashedCore, "missing", crashedMinidump, "../README.md"}, func() { done++ }); err != nil || done != 4 {
		t.Errorf("%d calls, expected 4: %v", done, err)
	}
}

// TestThreadsAreComparedWithEachOther compares the threads of one core.
func TestThreadsAreComparedWithEachOther(t *testing.T) {
	for _, o := range []engine.CompareOptions{{ByThread: true}, {}} {
		c := compare(t, o, crashedCore)
		if !c.ByThread || len(c.Targets) != 4 {
			t.Errorf("%+v: %d targets, expected the 4 threads", o, len(c.Targets))
		}
	}
}

// TestAnOpenTargetIsAdded adds a target that the caller opened, with a label of a rule.
func TestAnOpenTargetIsAdded(t *testing.T) {
	rule, err := engine.ParseLabelRule(`kind=\.(\w+)$`)
	if err != nil {
		t.Fatal(err)
	}
	e := enginetest.Engine(t, engine.Options{})
	c := e.NewComparer(engine.CompareOptions{Labels: []engine.LabelRule{rule}})
	for _, path := range []string{crashedCore, crashedMinidump} {
		target, err := e.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		c.Add(t.Context(), target)
		if err := target.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for _, one := range c.Comparison().Targets {
		got[one.Path] = one.Labels["kind"]
	}
	if diff := cmp.Diff(map[string]string{crashedCore: "core", crashedMinidump: "dmp"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestMomentsOfALivingProcessAreOneTarget walks a process twice, which stands still.
func TestMomentsOfALivingProcessAreOneTarget(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	e := enginetest.Engine(t, engine.Options{})
	pid := strconv.Itoa(cmd.Process.Pid)
	for range 1000 { // it begins by finding its libraries; not every kernel tells where it waits
		if at, _ := os.ReadFile("/proc/" + pid + "/wchan"); strings.Contains(string(at), "nanosleep") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if probe, err := e.OpenProcess(cmd.Process.Pid); err != nil {
		t.Skipf("processes cannot be traced here: %v", err)
	} else if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	c := e.NewComparer(engine.CompareOptions{})
	for range 2 {
		if err := c.AddPaths(t.Context(), []string{pid}, nil); err != nil {
			t.Fatal(err)
		}
	}
	got := c.Comparison()
	if len(got.Targets) == 0 || got.Targets[0].Count != 2 || got.Targets[0].PID != int64(cmd.Process.Pid) {
		t.Fatalf("%+v, expected one target at two moments", got.Targets)
	}
	for i := range got.Classes {
		for _, th := range got.Classes[i].Threads {
			if !th.Still || th.Role != "main" {
				t.Errorf("%+v, expected the main thread, which stands still", th)
			}
		}
	}
}
