// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/internal/damage/managed"
	"github.com/unwindd/unwindd/sdk"
)

var update = flag.Bool("update", false, "write the frames of testdata's processes beside them")

// fixture has the requests about a process, and the memory that the plugin read (testdata/make.sh).
type fixture struct {
	sdk.RuntimeEngine
	Open     *sdk.OpenRuntimeRequest
	Sections map[string][]byte
	managed.Memory
	Frames  []*sdk.ManagedFramesRequest
	Threads *sdk.ManagedThreadsRequest
}

// load returns a fixture whose memory may be changed.
func load(t testing.TB, path string) *fixture {
	t.Helper()
	loaded.Lock()
	defer loaded.Unlock()
	f := loaded.fixtures[path]
	if f == nil {
		f = &fixture{}
		managed.Unpack(t, path, f)
		loaded.fixtures[path] = f
	}
	own, open := *f, *f.Open
	own.Open, own.Memory = &open, f.Memory.Clone()
	return &own
}

// loaded are the fixtures that were read.
var loaded = struct {
	sync.Mutex
	fixtures map[string]*fixture
}{fixtures: map[string]*fixture{}}

// ReadMemory reads the memory, and not the engine that the fixture lacks.
func (f *fixture) ReadMemory(ctx context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	return f.Memory.ReadMemory(ctx, m, buf)
}

func (f *fixture) ReadSection(_ context.Context, _ uint64, name string) ([]byte, error) {
	if b, ok := f.Sections[name]; ok {
		return b, nil
	}
	return nil, errors.New("no such section")
}

func (f *fixture) ReadRegisters(context.Context, uint64, []uint32) (sdk.Registers, error) {
	return sdk.Registers{}, errors.New("no registers")
}

func (f *fixture) FindFunctions(_ context.Context, addresses []uint64) ([]sdk.FunctionPlace, error) {
	return make([]sdk.FunctionPlace, len(addresses)), nil
}

// read makes all calls, whose answers have to be valid.
func (f *fixture) read(t testing.TB) (*sdk.OpenRuntimeAnswer, []*sdk.ManagedFramesAnswer, *sdk.ManagedThreadsAnswer) {
	t.Helper()
	p, d := New(), Description()
	opened, err := p.OpenRuntime(t.Context(), f, f.Open)
	if err == nil {
		err = opened.Validate(d, f.Open)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !opened.HasFrames {
		return opened, nil, nil
	}
	var all []*sdk.ManagedFramesAnswer
	for _, req := range f.Frames {
		a, err := p.ManagedFrames(t.Context(), f, req)
		if err == nil {
			err = a.Validate(d, req)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	threads, err := p.ManagedThreads(t.Context(), f, f.Threads)
	if err == nil {
		err = threads.Validate(d, f.Threads)
	}
	if err != nil {
		t.Fatal(err)
	}
	return opened, all, threads
}

// written writes what was read.
func (f *fixture) written(t testing.TB) string {
	opened, frames, threads := f.read(t)
	var b strings.Builder
	fmt.Fprintf(&b, "Ruby %s %q\n", opened.Version, opened.Problems)
	for i, a := range frames {
		for k := range a.Stacks {
			s := &a.Stacks[k]
			fmt.Fprintf(&b, "\nthread %d %q %q %+v %q\n", f.Frames[i].Threads[k].Thread, s.Name, s.State, s.Locks, s.Problem)
			if s.Exception != nil {
				fmt.Fprintf(&b, "  raised %+v\n", *s.Exception)
			}
			for _, run := range s.Runs {
				fmt.Fprintf(&b, "  %d native frames from %d on\n", run.Count, run.First)
				for _, m := range run.Frames {
					writeFrame(&b, &m)
				}
			}
		}
	}
	if threads == nil {
		return b.String()
	}
	for i := range threads.Threads {
		m := &threads.Threads[i]
		fmt.Fprintf(&b, "\nfiber %q %q %q %d carrier %q %v %q\n", m.Name, m.State, m.Reason, len(m.WaitsFor), m.Carrier, m.IsMounted, m.Problem)
		for k := range m.Frames {
			writeFrame(&b, &m.Frames[k])
		}
	}
	return b.String()
}

func writeFrame(b *strings.Builder, m *sdk.ManagedFrame) {
	fmt.Fprintf(b, "    %d %s %s:%d\n", m.Kind, m.Function, m.File, m.Line)
	for _, v := range m.Variables {
		fmt.Fprintf(b, "      %+v\n", v)
	}
}

func fixtures(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob("testdata/*.json.gz")
	if err != nil || len(list) == 0 {
		t.Fatalf("%d fixtures: %v", len(list), err)
	}
	return list
}

// TestFrames compares the frames of processes with those that were compared with Ruby's own traces.
func TestFrames(t *testing.T) {
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			got, golden := load(t, path).written(t), strings.TrimSuffix(path, ".json.gz")+".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nexpected:\n%s", got, want)
			}
		})
	}
}

// TestUnknownVersions has no frames, and says which versions are known.
func TestUnknownVersions(t *testing.T) {
	f := load(t, "testdata/3.1-pending.json.gz")
	at := f.Open.Symbols[symbolVersion].Address
	for i := range f.Memory {
		if p := &f.Memory[i]; at-p.Address < uint64(len(p.Bytes)) {
			copy(p.Bytes[at-p.Address:], "9.1.2\x00")
		}
	}
	opened, frames, _ := f.read(t)
	if len(frames) > 0 || opened.Version != "9.1.2" || len(opened.Problems) != 1 || !strings.Contains(opened.Problems[0], "2.7, 3.0, 3.1, 3.2, 3.3, 3.4") {
		t.Errorf("%+v", opened)
	}
}

// TestMachines has no frames for a machine whose layouts are not known.
func TestMachines(t *testing.T) {
	f := load(t, "testdata/3.1-pending.json.gz")
	f.Open.Machine = 183
	opened, frames, _ := f.read(t)
	if len(frames) > 0 || len(opened.Problems) != 1 || !strings.Contains(opened.Problems[0], "the machine is 183") {
		t.Errorf("%+v", opened)
	}
}

// TestUnknownHandles is for a plugin that was started anew.
func TestUnknownHandles(t *testing.T) {
	_, err := New().ManagedFrames(t.Context(), nil, &sdk.ManagedFramesRequest{Runtime: 1})
	_, err2 := New().ManagedThreads(t.Context(), nil, &sdk.ManagedThreadsRequest{Runtime: 1})
	if !errors.Is(err, sdk.ErrObjectNotOpen) || !errors.Is(err2, sdk.ErrObjectNotOpen) {
		t.Error(err, err2)
	}
}

// damage changes words of memory, the same ones for the same seed.
func (f *fixture) damage(seed uint64, count int) {
	random := rand.New(rand.NewPCG(seed, 1))
	for range count {
		p := &f.Memory[random.IntN(len(f.Memory))]
		if len(p.Bytes) < 8 {
			continue
		}
		word := p.Bytes[random.IntN(len(p.Bytes)/8)*8:][:8]
		switch other := &f.Memory[random.IntN(len(f.Memory))]; random.IntN(4) {
		case 0:
			clear(word)
		case 1:
			word[random.IntN(8)] ^= 1 << random.IntN(8)
		case 2:
			copy(word, other.Bytes[random.IntN(len(other.Bytes)/8+1)*8%len(other.Bytes):])
		default:
			for i := range word {
				word[i] = byte(random.Uint32())
			}
		}
	}
}

// TestDamagedMemory damages what was read of processes. Answers are valid, and a problem of a stack tells
// that it differs; of texts and numbers of any value nobody can know that.
func TestDamagedMemory(t *testing.T) {
	for _, path := range fixtures(t) {
		whole := load(t, path)
		_, want, _ := whole.read(t)
		count := 0
		for _, a := range want {
			for i := range a.Stacks {
				count += frameCount(&a.Stacks[i])
			}
		}
		for seed := range uint64(5) {
			f := load(t, path)
			f.damage(seed, 300)
			opened, frames, _ := f.read(t)
			got, isMarked := 0, len(opened.Problems) > 0
			for _, a := range frames {
				for i := range a.Stacks {
					got += frameCount(&a.Stacks[i])
					isMarked = isMarked || a.Stacks[i].Problem != ""
				}
			}
			if got < count && !isMarked {
				t.Errorf("%s, seed %d: %d of %d frames, and no problem", path, seed, got, count)
			}
		}
	}
}

func frameCount(s *sdk.ManagedStack) (n int) {
	for _, run := range s.Runs {
		n += len(run.Frames)
	}
	return n
}

func FuzzProcess(f *testing.F) {
	list := fixtures(f)
	for i := range list {
		f.Add(uint8(i), uint64(i), uint16(10*i))
	}
	f.Fuzz(func(t *testing.T, which uint8, seed uint64, count uint16) {
		x := load(t, list[int(which)%len(list)])
		x.damage(seed, int(count))
		x.read(t)
	})
}

func FuzzFunctions(f *testing.F) {
	x := load(f, "testdata/3.1-pending.json.gz")
	table := x.Sections[".eh_frame_hdr"][:200]
	f.Add(table)
	f.Add([]byte{1, 0x1b, 3, 0x3b, 0, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newReader(t.Context(), x, &process{request: x.Open, layout: &layouts[0]})
		list := &functions{r.parseFunctions(b, 0x1000)}
		if !slices.IsSorted(list.starts) {
			t.Error("functions are out of order")
		}
		list.start(0x7fff00000000)
	})
}
