// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const crashCore = "../examples/crash/server.core"

// texts are the stacks of a target, a line for each frame.
func texts(t *Target) (lines []string) {
	for s := range t.Stacks(context.Background()) {
		lines = append(lines, fmt.Sprint(s.Thread.ID, s.Stopped))
		for i := range s.Frames {
			f := &s.Frames[i]
			lines = append(lines, fmt.Sprintf("%#x %#x %s %v", f.PC, f.CFA, f.FoundBy, f.Symbols))
		}
	}
	return lines
}

// TestTargetsOfTheSameFilesAreWalkedAtOnce opens and closes targets of the same code
// objects by 8 goroutines, with room for them and with none. It is for the race
// detector.
func TestTargetsOfTheSameFilesAreWalkedAtOnce(t *testing.T) {
	for _, bytes := range []uint64{0, 1} {
		e := newX86Engine(t, Options{CacheBytes: bytes})
		first, err := e.Open(crashCore)
		if err != nil {
			t.Fatal(err)
		}
		want := texts(first)
		if err := first.Close(); err != nil || len(want) < 10 {
			t.Fatal(err, len(want))
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 10 {
					core, err := e.Open(crashCore)
					if err != nil {
						t.Error(err)
						return
					}
					if diff := cmp.Diff(want, texts(core)); diff != "" {
						t.Error(diff)
					}
					if err := core.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestATargetSymbolizesAddresses holds names by address against those of frames,
// and that asking again allocates nothing.
func TestATargetSymbolizesAddresses(t *testing.T) {
	for _, options := range []Options{{}, {NoInlines: true}} {
		core, err := newX86Engine(t, options).Open(crashCore)
		if err != nil {
			t.Fatal(err)
		}
		var addresses []uint64
		var want []string
		for s := range core.Stacks(context.Background()) {
			for i := range s.Frames {
				f := &s.Frames[i]
				a := f.PC
				if !f.Exact {
					a--
				}
				addresses, want = append(addresses, a), append(want, fmt.Sprint(f.Symbols))
			}
		}
		addresses, want = append(addresses, 1), append(want, "[]")
		got := core.Symbolize(context.Background(), addresses)
		for i, a := range addresses {
			if fmt.Sprint(got[i]) != want[i] {
				t.Errorf("%#x: %v, expected %s", a, got[i], want[i])
			}
		}
		ctx := context.Background()
		if n := testing.AllocsPerRun(20, func() { got = core.AppendSymbols(ctx, got[:0], addresses) }); n > 0 {
			t.Errorf("%g allocations for addresses that are known", n)
		}
	}
}

// TestModulesOfAProcessChange walks a sample in a process that loads its modules one
// after the other.
func TestModulesOfAProcessChange(t *testing.T) {
	e := newX86Engine(t, Options{})
	core, err := e.Open(crashCore)
	if err != nil {
		t.Fatal(err)
	}
	th := core.Threads()[0]
	sp, _ := th.Registers.Uint64(x86_64.Description().SP, sdk.LittleEndian)
	stack := make([]byte, 16<<10)
	n, _ := core.process.State().ReadMemory(0, sp, stack)
	s := &walk.Sample{Sample: trace.Sample{Arch: "x86_64", Registers: th.Registers, StackStart: sp, Stack: stack[:n]}}
	whole := pcs(core.Walk(context.Background(), th))

	process := e.Attach(&walk.Sample{Sample: trace.Sample{Arch: "x86_64"}})
	walker := process.Process().Walker()
	last := 0
	for i := range len(core.process.Modules()) + 1 {
		process.process.SetModules(core.process.Modules()[:i])
		if got := len(process.process.Modules()); got != i {
			t.Fatalf("%d modules, expected %d", got, i)
		}
		walked := walker.Walk(context.Background(), s)
		if len(walked.Frames) < last {
			t.Errorf("%d frames with %d modules, %d before", len(walked.Frames), i, last)
		}
		last = len(walked.Frames)
	}
	if got := pcs(walker.Walk(context.Background(), s)); !slices.Equal(got, whole) {
		t.Errorf("%#x, expected %#x", got, whole)
	}
	loaded := process.process.Loaded()
	process.process.SetModules(core.process.Modules())
	if !slices.Equal(loaded, process.process.Loaded()) {
		t.Error("the same modules were loaded again")
	}
	process.process.SetModules(nil)
	if got := walker.Walk(context.Background(), s); len(got.Frames) == len(whole) {
		t.Error("a stack of modules that are gone")
	}
}

// TestModulesOfMaps loads what this process has mapped, and names its functions.
func TestModulesOfMaps(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	process := newX86Engine(t, Options{}).Attach(&walk.Sample{Sample: trace.Sample{Arch: "x86_64"}})
	problems, err := process.LoadMaps(strings.NewReader(string(maps)), "x86_64")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p, "[vdso]") && !strings.Contains(p, "build ID") {
			t.Errorf("problem %q", p)
		}
	}
	pc, _, _, _ := runtime.Caller(0)
	frames := process.Symbolize(context.Background(), []uint64{uint64(pc)})[0]
	if len(frames) == 0 || !strings.HasSuffix(frames[0].Function, "TestModulesOfMaps") || !strings.HasSuffix(frames[0].File, "shared_test.go") {
		t.Errorf("%+v", frames)
	}
	loaded := process.process.Loaded()
	if _, err := process.LoadMaps(strings.NewReader(string(maps)), "x86_64"); err != nil || !slices.Equal(loaded, process.process.Loaded()) {
		t.Errorf("the same text loaded other modules: %v", err)
	}
	for _, bad := range []string{"no line", "10-20 r-x", "20-10 r-xp 0 0:0 0 /a", "10-20 r-xp z 0:0 0 /a", "10-1z r-xp 0 0:0 0 /a"} {
		if _, err := process.LoadMaps(strings.NewReader(bad), "x86_64"); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if !slices.Equal(loaded, process.process.Loaded()) {
		t.Error("a bad text changed the modules")
	}
}

// BenchmarkTargetsOfTheSameFiles opens a target, walks its stacks with names and
// closes it, of files that others have open.
func BenchmarkTargetsOfTheSameFiles(b *testing.B) {
	b.Run("core", func(b *testing.B) {
		e := newX86Engine(b, Options{})
		benchTargets(b, func() *Target {
			t, err := e.Open(crashCore)
			if err != nil {
				b.Fatal(err)
			}
			return t
		})
	})
	b.Run("sample", func(b *testing.B) {
		e := newX86Engine(b, Options{})
		core, err := e.Open(crashCore)
		if err != nil {
			b.Fatal(err)
		}
		th := core.Threads()[0]
		sp, _ := th.Registers.Uint64(x86_64.Description().SP, sdk.LittleEndian)
		stack := make([]byte, 16<<10)
		n, _ := core.process.State().ReadMemory(0, sp, stack)
		benchTargets(b, func() *Target {
			return e.Attach(&walk.Sample{Sample: trace.Sample{Arch: "x86_64", Registers: th.Registers, StackStart: sp, Stack: stack[:n]}, Loaded: core.process.Modules()})
		})
	})
}

// benchTargets holds 200 targets open, whose memory is B/target.
func benchTargets(b *testing.B, open func() *Target) {
	b.Helper()
	walk := func() *Target {
		t := open()
		for range t.Stacks(context.Background()) {
		}
		return t
	}
	defer walk().Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var kept []*Target
	for range 200 {
		kept = append(kept, walk())
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	for _, t := range kept {
		t.Close()
	}
	start := oracle.ProcessorTime()
	b.ReportAllocs()
	for b.Loop() {
		walk().Close()
	}
	b.ReportMetric(float64(oracle.ProcessorTime()-start)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/200, "B/target")
}

// TestViewsShareCodeObjects walks a core by an engine and by views of it with other options:
// each does as its options say, code objects are read once, and what a view closes is its
// own.
func TestViewsShareCodeObjects(t *testing.T) {
	e := newX86Engine(t, Options{})
	first, err := e.Open(crashCore)
	if err != nil {
		t.Fatal(err)
	}
	want := texts(first)
	_, read := e.Library().Uses()
	view, err := e.With(Options{NoInlines: true, CacheBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	short, err := view.Open(crashCore)
	if err != nil {
		t.Fatal(err)
	}
	for s := range short.Stacks(t.Context()) {
		for i := range s.Frames {
			if len(s.Frames[i].Symbols) > 1 {
				t.Errorf("thread %s, frame %d has inlined calls", s.Thread.ID, i)
			}
		}
	}
	if _, again := e.Library().Uses(); again != read {
		t.Errorf("%d code objects were read, expected the %d of before", again, read)
	}
	if err := view.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, texts(first)); diff != "" {
		t.Errorf("after a view was closed: %s", diff)
	}
	if _, err := e.With(Options{MaxFrames: -1}); err == nil {
		t.Error("a view with -1 frames")
	}
}
