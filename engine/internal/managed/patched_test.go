// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/target/snapshot"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/goruntime"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// A patched target has other bytes than its own at some addresses.
type patched struct {
	target.Sized
	bytes  map[uint64]byte
	hidden [][2]uint64 // from, to: not in the target
}

func (p *patched) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	for _, h := range p.hidden {
		if address < h[1] && address+uint64(len(buf)) > h[0] {
			n := max(h[0], address) - address
			if n > 0 {
				_, _ = p.Sized.ReadMemory(space, address, buf[:n])
			}
			return int(n), target.ErrNoMemory
		}
	}
	n, err := p.Sized.ReadMemory(space, address, buf)
	for i := range buf[:n] {
		if b, ok := p.bytes[address+uint64(i)]; ok {
			buf[i] = b
		}
	}
	return n, err
}

func (p *patched) Close() error { return nil }

func (p *patched) put(address, value uint64, size int) {
	for i := range size {
		p.bytes[address+uint64(i)] = byte(value >> (8 * i))
	}
}

// goMemory is where things are in a core of the goroutines subject, by the symbol
// table and the standard library's reader of DWARF.
type goMemory struct {
	state           target.Target
	list, length    uint64 // runtime.allgptr and runtime.allglen
	slice           uint64 // runtime.allgs
	first           uint64 // the element of the list
	count, size     uint64
	status, id      uint64 // offsets in runtime.g
	pc, sp, machine uint64
	since           uint64
}

func readGoMemory(t *testing.T, exe string, state target.Target) *goMemory {
	t.Helper()
	m := &goMemory{state: state, list: subject.Address(t, exe, "runtime.allgptr"), length: subject.Address(t, exe, "runtime.allglen")}
	m.slice = subject.Address(t, exe, "runtime.allgs")
	m.first, m.count = m.word(t, m.list), m.word(t, m.length)
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	offset := func(in *dwarf.StructType, name string) (int64, *dwarf.StructField) {
		for _, x := range in.Field {
			if x.Name == name {
				return x.ByteOffset, x
			}
		}
		t.Fatalf("%s has no %s", in.StructName, name)
		return 0, nil
	}
	r := d.Reader()
	for e, err := r.Next(); e != nil && err == nil; e, err = r.Next() {
		if name, _ := e.Val(dwarf.AttrName).(string); e.Tag != dwarf.TagStructType || name != "runtime.g" {
			continue
		}
		typ, err := d.Type(e.Offset)
		if err != nil {
			t.Fatal(err)
		}
		g := typ.(*dwarf.StructType)
		at := func(name string) uint64 { n, _ := offset(g, name); return uint64(n) }
		m.size, m.status, m.id, m.machine, m.since = uint64(g.ByteSize), at("atomicstatus"), at("goid"), at("m"), at("waitsince")
		_, sched := offset(g, "sched")
		gobuf := sched.Type.(*dwarf.TypedefType).Type.(*dwarf.StructType)
		pc, _ := offset(gobuf, "pc")
		sp, _ := offset(gobuf, "sp")
		m.pc, m.sp = at("sched")+uint64(pc), at("sched")+uint64(sp)
		return m
	}
	t.Fatal("no runtime.g")
	return nil
}

func (m *goMemory) word(t *testing.T, address uint64) uint64 {
	t.Helper()
	var b [8]byte
	if _, err := m.state.ReadMemory(locexpr.DefaultSpace, address, b[:]); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(b[:])
}

// goroutine is where the goroutine of an ID is.
func (m *goMemory) goroutine(t *testing.T, id uint64) uint64 {
	t.Helper()
	for i := range m.count {
		if g := m.word(t, m.first+8*i); m.word(t, g+m.id) == id {
			return g
		}
	}
	t.Fatalf("no goroutine %d", id)
	return 0
}

// openGoroutines opens a core and returns how to open it with patches.
func openGoroutines(t *testing.T) (m *goMemory, with func(*patched) *engine.Target) {
	t.Helper()
	exe := subject.BuildGoroutines(t, "goroutines", "local")
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}, InProcessRuntimes: []sdk.Runtime{goruntime.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	core, err := e.Open(subject.Core(t, exe, "abort", "10"))
	if err != nil {
		t.Fatal(err)
	}
	state := core.Process().State().(target.Sized)
	return readGoMemory(t, exe, state), func(p *patched) *engine.Target {
		p.Sized = state
		return e.Attach(p).WithGoroutines(t.Context())
	}
}

// goroutinesOf are the goroutines of a target by their IDs.
func goroutinesOf(tg *engine.Target) (list []*trace.Thread) {
	for _, th := range tg.Threads() {
		if th.Goroutine != nil {
			list = append(list, th)
		}
	}
	return list
}

func TestGoroutinesOfDamagedMemory(t *testing.T) {
	m, with := openGoroutines(t)
	whole := len(goroutinesOf(with(&patched{})))
	if whole < 40 {
		t.Fatalf("%d goroutines, expected 40 or more", whole)
	}
	g := m.word(t, m.first+8*5)
	for _, c := range []struct {
		name    string
		patch   func(*patched)
		least   int // goroutines
		most    int
		problem string // "": none
	}{
		{"as it is", func(*patched) {}, whole, whole, ""},
		{"length of 2^60", func(p *patched) { p.put(m.length, 1<<60, 8) }, whole, whole, "runtime.allglen is 1152921504606846976, expected at most"},
		{"length beyond the list", func(p *patched) { p.put(m.length, 3000, 8) }, whole, whole, "runtime.allglen is 3000, expected at most"},
		{"both lengths of 2^60", func(p *patched) { p.put(m.length, 1<<60, 8); p.put(m.slice+8, 1<<60, 8) }, whole, 10 * whole, "runtime.allglen is 1152921504606846976, expected at most"},
		{"no list", func(p *patched) { p.put(m.list, 0, 8) }, 0, 0, "the list of its goroutines ends after 0 of"},
		{"list that is not in the target", func(p *patched) { p.hidden = [][2]uint64{{m.first, m.first + 8*m.count}} }, 0, 0, "the list of its goroutines ends after 0 of"},
		{"list of which the end is missing", func(p *patched) { p.hidden = [][2]uint64{{m.first + 80, m.first + 1<<12}} }, 5, 10, "the list of its goroutines ends after 10 of"},
		{"variable that is not in the target", func(p *patched) { p.hidden = [][2]uint64{{m.length, m.length + 8}} }, 0, 0, "runtime.allglen: address is not in the target"},
		{"goroutine that is not in the target", func(p *patched) { p.hidden = [][2]uint64{{g + 8, g + 16}} }, whole - 1, whole - 1, fmt.Sprintf("goroutine at %#x: address is not in the target", g)},
		{"goroutine twice", func(p *patched) { p.put(m.first, m.word(t, m.first+8), 8) }, whole - 1, whole - 1, "1 of"},
		{"goroutines that overlap", func(p *patched) { p.put(m.first+8*5, m.word(t, m.first)+8, 8) }, whole - 1, whole - 1, "1 of"},
		{"goroutine at the end of memory", func(p *patched) { p.put(m.first+8*5, ^uint64(7), 8) }, whole - 1, whole - 1, "1 of"},
		{"machine that is not in the target", func(p *patched) { p.put(g+m.machine, 8, 8) }, whole, whole, ""},
		{"PC of 0", func(p *patched) { p.put(g+m.pc, 0, 8) }, whole, whole, ""},
		{"PC that is no code", func(p *patched) { p.put(g+m.pc, ^uint64(0), 8) }, whole, whole, ""},
		{"SP that is no stack", func(p *patched) { p.put(g+m.sp, ^uint64(0), 8) }, whole, whole, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &patched{bytes: map[uint64]byte{}}
			c.patch(p)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := oracle.ProcessorTime()
			tg := with(p)
			list := goroutinesOf(tg)
			for s := range tg.Stacks(t.Context()) {
				if s.Stopped.Reason == "" {
					t.Errorf("the stack of %s has no end", s.Thread.ID)
				}
			}
			runtime.ReadMemStats(&after)
			if took := oracle.ProcessorTime() - began; took > 20*time.Second {
				t.Errorf("took %v of a processor", took)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
				t.Errorf("%d bytes were allocated", grown)
			}
			if len(list) < c.least || len(list) > c.most {
				t.Errorf("%d goroutines, expected %d to %d", len(list), c.least, c.most)
			}
			problems := strings.Join(tg.Info().Problems, "\n")
			if (c.problem == "") != (problems == "") || !strings.Contains(problems, c.problem) {
				t.Errorf("problems %q, expected %q", problems, c.problem)
			}
		})
	}
}

// TestGoroutineStates has one goroutine in each state, also those that no program can be
// stopped in.
func TestGoroutineStates(t *testing.T) {
	m, with := openGoroutines(t)
	waiting := goroutinesOf(with(&patched{}))
	i := slices.IndexFunc(waiting, func(th *trace.Thread) bool { return th.Goroutine.WaitReason == "chan send" })
	if i < 0 {
		t.Fatal("no goroutine sends")
	}
	id := waiting[i].Goroutine.ID
	g := m.goroutine(t, id)
	for _, c := range []struct {
		status uint64
		want   string
	}{
		{0, "idle"}, {1, "runnable"}, {2, "running"}, {3, "syscall"}, {4, "waiting chan send"}, {8, "copystack"}, {9, "preempted"},
		{0x1004, "waiting chan send scanned"}, {0x1001, "runnable scanned"}, {77, "state 77"},
		{6, ""}, {0x1006, ""}, // it ended
	} {
		p := &patched{bytes: map[uint64]byte{}}
		p.put(g+m.status, c.status, 4)
		got := ""
		tg := with(p)
		list := goroutinesOf(tg)
		i := slices.IndexFunc(list, func(th *trace.Thread) bool { return th.Goroutine.ID == id })
		if i >= 0 {
			got = list[i].Goroutine.State
			if r := list[i].Goroutine.WaitReason; r != "" {
				got += " " + r
			}
			if list[i].Goroutine.IsScanned {
				got += " scanned"
			}
			s := tg.Walk(t.Context(), list[i])
			if isWhole := s.Stopped.Reason == trace.StopOutermost; isWhole == (c.status == 2) {
				t.Errorf("state %#x: stopped %v", c.status, s.Stopped)
			}
			if c.status == 2 && !strings.Contains(s.Stopped.Detail, "which executes it, is not in the target") {
				t.Errorf("running in no thread: stopped %v", s.Stopped)
			}
		}
		if got != c.want {
			t.Errorf("state %#x: %q, expected %q", c.status, got, c.want)
		}
	}
}

// TestHowLongGoroutinesWait has one that the garbage collector found waiting five minutes
// before it ran last.
func TestHowLongGoroutinesWait(t *testing.T) {
	m, with := openGoroutines(t)
	last := uint64(0)
	for _, th := range goroutinesOf(with(&patched{})) {
		g := th.Goroutine
		last = max(last, g.WaitSince)
		if g.WaitAtLeast > 60e9 || g.WaitSince == 0 && g.WaitAtLeast != 0 || g.WaitSince != 0 && g.State != "waiting" && g.State != "syscall" {
			t.Errorf("%s [%s] waits since %d, at least %d", th.ID, g.State, g.WaitSince, g.WaitAtLeast)
		}
	}
	if last == 0 {
		t.Fatal("the garbage collector found no goroutine waiting")
	}
	for _, status := range []uint64{4, 1} {
		p := &patched{bytes: map[uint64]byte{}}
		first := goroutinesOf(with(&patched{}))[3].Goroutine.ID
		p.put(m.goroutine(t, first)+m.since, last-300e9, 8)
		p.put(m.goroutine(t, first)+m.status, status, 4)
		g := goroutinesOf(with(p))[3].Goroutine
		if minutes := g.WaitAtLeast / 60e9; minutes != 5 && status == 4 || status != 4 && g.WaitSince+g.WaitAtLeast != 0 {
			t.Errorf("goroutine %d [%s] waits since %d, at least %d", g.ID, g.State, g.WaitSince, g.WaitAtLeast)
		}
	}
}

// TestOnlyGoroutinesThatWaitAreInACall moves a goroutine to the first instruction of a
// function, where one is that was not executed yet, and right before which another
// function ends.
func TestOnlyGoroutinesThatWaitAreInACall(t *testing.T) {
	m, with := openGoroutines(t)
	waiting := goroutinesOf(with(&patched{}))
	i := slices.IndexFunc(waiting, func(th *trace.Thread) bool { return th.Goroutine.WaitReason == "chan send" })
	if i < 0 {
		t.Fatal("no goroutine sends")
	}
	id := waiting[i].Goroutine.ID
	top := func(p *patched) *trace.Frame {
		tg := with(p)
		list := goroutinesOf(tg)
		i := slices.IndexFunc(list, func(th *trace.Thread) bool { return th.Goroutine.ID == id })
		return &tg.Walk(t.Context(), list[i]).Frames[0]
	}
	if f := top(&patched{}); f.Exact || f.Symbols[0].Function != "runtime.gopark" {
		t.Errorf("a goroutine that waits is at %+v, which is exact: %v", f.Symbols, f.Exact)
	}
	f, err := elf.Open(subject.BuildGoroutines(t, "goroutines", "local"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	ends := map[uint64]bool{}
	for _, s := range symbols {
		ends[s.Value+s.Size] = s.Size > 0 && elf.ST_TYPE(s.Info) == elf.STT_FUNC
	}
	tried := 0
	for _, s := range symbols {
		if !strings.HasPrefix(s.Name, "runtime.") || !ends[s.Value] || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
			continue
		}
		tried++
		p := &patched{bytes: map[uint64]byte{}}
		p.put(m.goroutine(t, id)+m.pc, s.Value, 8)
		if f := top(p); !f.Exact || len(f.Symbols) == 0 || f.Symbols[len(f.Symbols)-1].Start != s.Value {
			t.Errorf("a goroutine at the start of %s is at %+v, which is exact: %v", s.Name, f.Symbols, f.Exact)
		}
	}
	if tried == 0 {
		t.Error("no function begins where another one ends")
	}
}

// TestProgramsWithoutGoroutines has programs whose goroutines cannot be found. Their
// threads are shown, and why there is no more.
func TestProgramsWithoutGoroutines(t *testing.T) {
	for _, c := range []struct{ subject, mode, problem string }{
		{"nested", "", "no goroutines: no code object that was found has a runtime that schedules threads"},
	} {
		core := subject.Core(t, subject.Build(t, c.subject), c.mode)
		r := enginetest.Report(t, core, withGoroutines)
		if problems := strings.Join(r.Target.Problems, "\n"); !strings.Contains(problems, c.problem) {
			t.Errorf("%s: problems %q, expected %q", c.subject, problems, c.problem)
		}
		if plain := enginetest.Report(t, core); len(r.Threads) != len(plain.Threads) || len(r.Threads) == 0 || len(r.Threads[0].Frames) < 3 {
			t.Errorf("%s: %d threads, without asking for them %d", c.subject, len(r.Threads), len(plain.Threads))
		}
	}
}

// TestGoroutinesOfASnapshot makes a snapshot that has all memory of a core.
func TestGoroutinesOfASnapshot(t *testing.T) {
	core := subject.Core(t, subject.BuildGoroutines(t, "goroutines", "local"), "abort", "10")
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}, InProcessRuntimes: []sdk.Runtime{goruntime.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	tg, err := e.Open(core)
	if err != nil {
		t.Fatal(err)
	}
	s, err := tg.Snapshot(t.Context(), engine.SnapshotOptions{Files: true})
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		f, err := os.Create(path)
		if err == nil {
			err = errors.Join(s.Write(f), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	stacksOnly := enginetest.Report(t, write("stacks.snapshot"), withGoroutines)
	if problems := strings.Join(stacksOnly.Target.Problems, "\n"); !strings.Contains(problems, "its goroutines are not listed: runtime.allgptr: ") {
		t.Errorf("without the runtime's memory: problems %q", problems)
	}
	f, err := elf.Open(core)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s.Contents().Memory = nil
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || p.Filesz == 0 {
			continue
		}
		data, err := io.ReadAll(p.Open())
		if err != nil {
			t.Fatal(err)
		}
		s.Contents().Memory = append(s.Contents().Memory, snapshot.Memory{Address: p.Vaddr, Data: data})
	}
	want, got := enginetest.Report(t, core, withGoroutines), enginetest.Report(t, write("whole.snapshot"), withGoroutines)
	if diff := cmp.Diff(want.Threads, got.Threads, cmpopts.IgnoreFields(report.Thread{}, "Stop")); diff != "" || len(got.Threads) < 40 {
		t.Errorf("%d threads (-core +snapshot):\n%s", len(got.Threads), diff)
	}
}
