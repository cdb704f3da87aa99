// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"compress/gzip"
	"context"
	"debug/elf"
	"encoding/gob"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// stacksFixture has the engine's requests about a process, the memory that the plugin read, and the
// frames that the process wrote down itself.
type stacksFixture struct {
	Open   sdk.OpenRuntimeRequest
	Frames sdk.ManagedFramesRequest
	Pages  map[uint64][]byte
	Want   []wantedThread
}

// wantedThread is a thread with its frames: function, file and line.
type wantedThread struct {
	Name   string
	Frames []wantedFrame
}

// wantedFrame is a frame of Python.
type wantedFrame struct {
	Function, File string
	Line           uint32
}

func (f *wantedFrame) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&f.Function, &f.File, &f.Line})
}

var (
	framesCore  = flag.String("frames.core", "", "the core that a fixture is made of")
	framesCalls = flag.String("frames.calls", "", "the folder with calls that the engine made")
	framesWant  = flag.String("frames.want", "", "the frames that the process had")
	framesInto  = flag.String("frames.into", "", "the fixture to make")
)

// TestRecordFrames makes a fixture: see testdata/frames.sh.
func TestRecordFrames(t *testing.T) {
	if *framesInto == "" {
		return // it is no test of the plugin
	}
	f := &stacksFixture{Pages: map[uint64][]byte{}}
	readCall(t, "OpenRuntime", &f.Open)
	readCall(t, "ManagedFrames", &f.Frames)
	f.Frames.Variables = false
	text, err := os.ReadFile(*framesWant)
	if err == nil {
		err = json.Unmarshal(text, &f.Want)
	}
	if err != nil {
		t.Fatal(err)
	}
	core, err := elf.Open(*framesCore)
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{pages: f.Pages, read: func(address uint64, buf []byte) (int, error) {
		for _, p := range core.Progs {
			if p.Type == elf.PT_LOAD && address >= p.Vaddr && address+uint64(len(buf)) <= p.Vaddr+p.Filesz {
				return p.ReadAt(buf, int64(address-p.Vaddr)) //nolint:gosec // in the file
			}
		}
		return 0, fmt.Errorf("%#x is not in the core", address)
	}}
	f.Open.Runtime, f.Frames.Runtime = 1, 1
	want := f.ask(t, m)
	for address, data := range f.Pages {
		if data == nil {
			delete(f.Pages, address)
		}
	}
	f.shrink(t, want)
	file, err := os.Create(*framesInto)
	if err != nil {
		t.Fatal(err)
	}
	z, _ := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err := gob.NewEncoder(z).Encode(f); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// shrink clears what makes no difference to the answers.
func (f *stacksFixture) shrink(t *testing.T, want answered) {
	const least = 512
	isSame := func() bool { return reflect.DeepEqual(f.ask(t, &memory{pages: f.Pages}), want) }
	var clearPart func(part []byte)
	clearPart = func(part []byte) {
		kept := slices.Clone(part)
		if clear(part); isSame() {
			return
		}
		copy(part, kept)
		if len(part) > least {
			clearPart(part[:len(part)/2])
			clearPart(part[len(part)/2:])
		}
	}
	for _, data := range f.Pages {
		clearPart(data)
	}
}

// readCall reads the request of a call that the engine made. Bytes are in hex there, and not needed.
func readCall(t *testing.T, name string, request any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(*framesCalls, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var call struct{ Request map[string]any }
	if err := json.Unmarshal(text, &call); err != nil {
		t.Fatal(err)
	}
	delete(call.Request, "BuildID")
	if text, err = json.Marshal(call.Request); err == nil {
		err = json.Unmarshal(text, request)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// answered has the plugin's answers about a process.
type answered struct {
	opened  *sdk.OpenRuntimeAnswer
	frames  *sdk.ManagedFramesAnswer
	threads *sdk.ManagedThreadsAnswer
}

// ask makes all calls about the process of a fixture.
func (f *stacksFixture) ask(t testing.TB, m *memory) (a answered) {
	t.Helper()
	p, ctx := New(), context.Background()
	var err error
	if a.opened, err = p.OpenRuntime(ctx, m, &f.Open); err != nil {
		t.Fatal(err)
	}
	if err := a.opened.Validate(Description(), &f.Open); err != nil {
		t.Fatal(err)
	}
	if a.frames, err = p.ManagedFrames(ctx, m, &f.Frames); err != nil {
		t.Fatal(err)
	}
	if err := a.frames.Validate(Description(), &f.Frames); err != nil {
		t.Fatal(err)
	}
	request := &sdk.ManagedThreadsRequest{Runtime: f.Open.Runtime, Frames: true}
	if a.threads, err = p.ManagedThreads(ctx, m, request); err != nil {
		t.Fatal(err)
	}
	if err := a.threads.Validate(Description(), request); err != nil {
		t.Fatal(err)
	}
	return a
}

// readStacks reads a fixture.
func readStacks(t testing.TB, path string) *stacksFixture {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	f := &stacksFixture{}
	if err := gob.NewDecoder(z).Decode(f); err != nil {
		t.Fatal(err)
	}
	return f
}

// eachStacks runs a test with each fixture.
func eachStacks(t *testing.T, test func(t *testing.T, f *stacksFixture)) {
	paths, err := filepath.Glob("testdata/frames-*.gz")
	if err != nil || len(paths) < 2 {
		t.Fatal("no fixtures", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".gz"), func(t *testing.T) { test(t, readStacks(t, path)) })
	}
}

// framesOf returns the frames of a stack.
func framesOf(s *sdk.ManagedStack) (list []wantedFrame) {
	for _, r := range s.Runs {
		for _, f := range r.Frames {
			list = append(list, wantedFrame{f.Function, f.File, f.Line})
		}
	}
	return list
}

// TestStacks compares the frames of threads with what the process itself said.
func TestStacks(t *testing.T) {
	eachStacks(t, func(t *testing.T, f *stacksFixture) {
		a := f.ask(t, &memory{pages: f.Pages})
		if len(a.opened.Problems) > 0 || !a.opened.HasFrames {
			t.Fatalf("open: %+v", a.opened)
		}
		byName := map[string]*sdk.ManagedStack{}
		for i := range a.frames.Stacks {
			if s := &a.frames.Stacks[i]; s.Problem != "" {
				t.Errorf("%s: %s", s.Name, s.Problem)
			} else {
				byName[s.Name] = s
			}
		}
		for _, w := range f.Want {
			s := byName[w.Name]
			if s == nil {
				t.Errorf("no thread %q", w.Name)
				continue
			}
			if got := framesOf(s); !reflect.DeepEqual(got, w.Frames) {
				t.Errorf("thread %s:\n got %v\nwant %v", w.Name, got, w.Frames)
			}
		}
		if len(byName) != len(f.Want) {
			t.Errorf("%d threads, expected %d", len(byName), len(f.Want))
		}
	})
}

// TestStates compares what threads hold and wait for.
func TestStates(t *testing.T) {
	eachStacks(t, func(t *testing.T, f *stacksFixture) {
		a := f.ask(t, &memory{pages: f.Pages})
		for i := range a.frames.Stacks {
			s := &a.frames.Stacks[i]
			want := "released the GIL"
			if s.Name == "MainThread" {
				want = "holds the GIL"
			}
			if s.State != want {
				t.Errorf("thread %s %s, expected %q", s.Name, s.State, want)
			}
		}
		if len(a.opened.Locks) != 1 || !a.opened.Locks[0].HasHolder || a.opened.Locks[0].Name != gilName {
			t.Errorf("locks: %+v, expected the GIL with its holder", a.opened.Locks)
		}
	})
}

// TestRuns checks that runs stand for the C functions that execute Python.
func TestRuns(t *testing.T) {
	eachStacks(t, func(t *testing.T, f *stacksFixture) {
		a := f.ask(t, &memory{pages: f.Pages})
		for i := range a.frames.Stacks {
			native := f.Frames.Threads[i].Frames
			evals, found := 0, 0
			for k := range native {
				if isEval(&native[k]) {
					evals++
				}
			}
			for _, r := range a.frames.Stacks[i].Runs {
				for k := r.First; k < r.First+r.Count; k++ {
					if isEval(&native[k]) {
						found++
					}
				}
			}
			if found != evals || evals == 0 && f.Open.Symbols[symbolEval].Size > maxTailCallSize {
				t.Errorf("thread %d: runs stand for %d of %d C functions", i, found, evals)
			}
			for _, r := range a.frames.Stacks[i].Runs {
				// Where each instruction has a function, the innermost one of these may be there, too.
				if r.Count != 1 && (evals > 0 || r.Count != 2) {
					t.Errorf("thread %d: a run stands for %d native frames", i, r.Count)
				}
			}
		}
	})
}

// TestTasks compares the tasks of asyncio with the ones that the program wrote down.
func TestTasks(t *testing.T) {
	type task struct {
		Name, State string
		Frames      []string
		WaitsFor    []uint64
	}
	want := []task{
		{"Task-1", "waiting", []string{"main"}, []uint64{3, 5}},
		{"Task-3", "waiting", []string{"numbers", "consume"}, []uint64{5}},
		{"Task-4", "running", nil, nil},
		{"the middle", "waiting", []string{"sleep", "leaf", "__aenter__", "middle"}, nil},
	}
	eachStacks(t, func(t *testing.T, f *stacksFixture) {
		a := f.ask(t, &memory{pages: f.Pages})
		if len(a.threads.Problems) > 0 {
			t.Error(a.threads.Problems)
		}
		var got []task
		for _, m := range a.threads.Threads {
			one := task{m.Name, m.State, nil, m.WaitsFor}
			for _, f := range m.Frames {
				one.Frames = append(one.Frames, f.Function[strings.LastIndexByte(f.Function, '.')+1:])
			}
			got = append(got, one)
			if (m.State == "running") != m.IsMounted || m.IsMounted && m.Carrier == "" {
				t.Errorf("%s is %s, and its carrier %q", m.Name, m.State, m.Carrier)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf(" got %v\nwant %v", got, want)
		}
	})
}

// TestUnknownVersion checks that a version without a layout is said, and has no frames.
func TestUnknownVersion(t *testing.T) {
	eachStacks(t, func(t *testing.T, f *stacksFixture) {
		place := f.Open.Symbols[symbolVersion]
		if !place.IsKnown {
			return
		}
		for _, at := range []uint64{place.Address + 2, f.Open.Symbols[symbolRuntime].Address + uint64(len(debugCookie)) + 2} {
			start := at &^ (page - 1)
			if changed := slices.Clone(f.Pages[start]); changed != nil && (at&7 == 2) {
				changed[at-start] = 99
				f.Pages[start] = changed
			}
		}
		a := f.ask(t, &memory{pages: f.Pages})
		if a.opened.HasFrames || len(a.opened.Problems) != 1 || !strings.Contains(a.opened.Problems[0], "3.99") || !strings.Contains(a.opened.Problems[0], versions) {
			t.Errorf("%+v, expected that 3.99 is not known", a.opened)
		}
	})
}
