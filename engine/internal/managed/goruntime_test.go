// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/managed"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/goruntime"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// loaded is a process that has loaded a program, and the memory that it has of it.
type loaded struct {
	modules []*target.Module
	threads []*trace.Thread
	memory  []piece
}

type piece struct {
	start uint64
	bytes []byte
}

func (p *loaded) Info() trace.Target        { return trace.Target{Path: "process"} }
func (p *loaded) Modules() []*target.Module { return p.modules }
func (p *loaded) Threads() []*trace.Thread  { return p.threads }
func (p *loaded) Close() error              { return nil }
func (p *loaded) MemorySize() (n uint64) {
	for _, m := range p.memory {
		n += uint64(len(m.bytes))
	}
	return n
}

func (p *loaded) Mapped(address uint64) (mapped, executable bool) {
	_, err := p.ReadMemory(locexpr.DefaultSpace, address, make([]byte, 1))
	return err == nil, false
}

func (p *loaded) ReadMemory(_ locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	for _, m := range p.memory {
		if at := address - m.start; at < uint64(len(m.bytes)) {
			if n := copy(buf, m.bytes[at:]); n < len(buf) {
				return n, fmt.Errorf("%#x: %w", address+uint64(n), target.ErrNoMemory)
			}
			return len(buf), nil
		}
	}
	return 0, fmt.Errorf("%#x: %w", address, target.ErrNoMemory)
}

// load is a process that has loaded an object, where the object says; nil where it is
// none.
func load(file []byte) *loaded {
	o, err := object.New("runtime.elf", file)
	if err != nil {
		return nil
	}
	m := &target.Module{Module: trace.Module{Path: "/runtime.elf", Arch: "x86_64"}, Object: o}
	p := &loaded{modules: []*target.Module{m}}
	for _, s := range o.Segments() {
		if s.Offset > uint64(len(file)) || s.FileSize > uint64(len(file))-s.Offset {
			continue
		}
		m.Segments = append(m.Segments, trace.Segment{Address: s.Address, Start: s.Address, Size: s.MemSize})
		p.memory = append(p.memory, piece{s.Address, file[s.Offset : s.Offset+s.FileSize]})
	}
	return p
}

func newShared(tb testing.TB) *walk.Shared {
	tb.Helper()
	plugins, err := plugin.NewManager(plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(plugins.Close)
	library := code.NewLibrary(plugins, 0)
	tb.Cleanup(library.Close)
	return walk.NewShared(library, walk.Options{MaxFrames: 64})
}

// described is a runtime of this process.
type described struct{ sdk.Runtime }

func (described) Description() *sdk.RuntimeDescription { return goruntime.Description() }

// goRuntime lists the runtime of Go.
func goRuntime() []managed.Runtime { return []managed.Runtime{described{goruntime.New()}} }

// goroutines lists the goroutines of a process.
func goroutines(tb testing.TB, shared *walk.Shared, p *loaded) (list []*trace.Thread, problems []string) {
	own := shared.NewProcess(p, object.Finder{})
	defer own.Close()
	of := managed.New(own, goRuntime, managed.Options{}).Threads(tb.Context(), "goroutine", p)
	for i, th := range of.Threads() {
		if th.Handle != uint64(i) {
			tb.Errorf("thread %d has handle %d", i, th.Handle)
		}
		if th.Goroutine != nil {
			list = append(list, th)
		}
	}
	all := shared.NewProcess(of, object.Finder{})
	defer all.Close()
	for s := range all.Stacks(tb.Context()) {
		if s.Stopped.Reason == "" {
			tb.Errorf("the stack of %s has no end", s.Thread.ID)
		}
	}
	return list, of.Info().Problems
}

func readRuntime(tb testing.TB) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "runtime.elf"))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestGoroutinesByTheirDebugInformation(t *testing.T) {
	list, problems := goroutines(t, newShared(t), load(readRuntime(t)))
	var got []string
	d := x86_64.Description()
	for _, th := range list {
		g := th.Goroutine
		pc, _ := th.Registers.Uint64(d.PC, d.ByteOrder)
		sp, _ := th.Registers.Uint64(d.SP, d.ByteOrder)
		got = append(got, fmt.Sprintf("%s [%s %s] since %d, pc %#x sp %#x, thread %q", th.ID, g.State, g.WaitReason, g.WaitSince, pc, sp, g.Thread))
	}
	want := []string{
		`goroutine 5 [waiting chan receive] since 7, pc 0x401000 sp 0x1f000, thread ""`,
		`goroutine 6 [syscall ] since 0, pc 0x401000 sp 0x2f000, thread ""`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(problems) != 1 || problems[0] != "/runtime.elf: goroutine at 0x8: 0x8: address is not in the target" {
		t.Errorf("problems %q", problems)
	}
}

// TestRuntimesThatCannotBeRead changes a name in the debug information, which is of
// the length of another one.
func TestRuntimesThatCannotBeRead(t *testing.T) {
	shared := newShared(t)
	for _, c := range []struct{ old, changed, problem string }{
		{"runtime.allgptr", "runtime.allgxxx", "has no variable runtime.allgptr"},
		{"runtime.allglen", "runtime.allgxxx", "has no variable runtime.allglen"},
		{"\x00goid\x00", "\x00goxx\x00", "runtime.g has no member goid"},
		{"\x00atomicstatus\x00", "\x00atomicxxxxxx\x00", "runtime.g has no member atomicstatus"},
		{"\x00sched\x00", "\x00schxx\x00", "runtime.g has no member sched"},
		{"\x00procid\x00", "\x00procxx\x00", "runtime.m has no member procid"},
		{"\x00runtime\x00", "\x00runtimx\x00", "has no type runtime.g in a unit runtime"},
	} {
		file := strings.ReplaceAll(string(readRuntime(t)), c.old, c.changed)
		list, problems := goroutines(t, shared, load([]byte(file)))
		if len(list) > 0 || len(problems) != 1 || !strings.Contains(problems[0], c.problem) || !strings.HasPrefix(problems[0], "/runtime.elf: its goroutines are not listed: ") {
			t.Errorf("%q: %d goroutines, problems %q, expected %q", c.changed, len(list), problems, c.problem)
		}
	}
}

// FuzzGoroutines reads goroutines of files and memory that are anything. Both of the
// seeds begin as runtime.elf; of the second the debug information says otherwise.
func FuzzGoroutines(f *testing.F) {
	whole := readRuntime(f)
	f.Add(whole, []byte{})
	f.Add([]byte(strings.ReplaceAll(string(whole), "\x08\x08", "\x80\x10")), []byte{1, 2, 3, 4})
	f.Add(whole, make([]byte, 0x268))
	shared := newShared(f)
	f.Fuzz(func(t *testing.T, file, memory []byte) {
		p := load(file)
		if p == nil {
			return
		}
		if len(memory) > 0 {
			// Its variables are these.
			p.memory = append([]piece{{0x402020, memory}}, p.memory...)
		}
		list, _ := goroutines(t, shared, p)
		if room := p.MemorySize() / 8; uint64(len(list)) > room {
			t.Errorf("%d goroutines in %d bytes", len(list), p.MemorySize())
		}
	})
}
