// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// stopped is a process that stands at an instruction.
type stopped interface {
	arch() string
	position() (pc, sp uint64)
	registers() sdk.Registers
	read(address uint64, buf []byte) int
	word(address uint64) (uint64, bool)
	maps() (string, error)
}

// point is a process as the engine sees it while it stands at an instruction. Its modules
// are loaded's.
type point struct {
	process stopped
	thread  trace.Thread
	threads []*trace.Thread
	maps    []mapping
	pages   map[uint64][]byte // of memory that was read at this point
	free    [][]byte
	loaded  *engine.Target
	walker  *walk.Walker
	stack   []byte
	steps   []trace.Frame
}

// mapping is a line of /proc/PID/maps.
type mapping struct {
	start, end, offset uint64
	isWritable, isCode bool
	path               string
}

const (
	pageSize = 4096
	// sampled is how many bytes of the stack a sample has.
	sampled = 16 << 10
)

// base is a point of a process without modules: they are added to it.
type base struct{ *point }

// Modules are none.
func (base) Modules() []*target.Module { return nil }

func newPoint(t stopped, e *engine.Engine) *point {
	p := &point{process: t, pages: map[uint64][]byte{}, stack: make([]byte, sampled)}
	p.thread = trace.Thread{ID: "1", Arch: t.arch()}
	p.threads = []*trace.Thread{&p.thread}
	p.loaded = e.Attach(base{p})
	p.walker = p.loaded.Process().Walker()
	return p
}

// load reads what the process has mapped.
func (p *point) load() error {
	text, err := p.process.maps()
	if err != nil {
		return err
	}
	p.maps = p.maps[:0]
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		f := strings.Fields(s.Text())
		var m mapping
		if _, err := fmt.Sscanf(f[0]+" "+f[2], "%x-%x %x", &m.start, &m.end, &m.offset); err != nil {
			return err
		}
		m.isWritable, m.isCode = f[1][1] == 'w', f[1][2] == 'x'
		if len(f) > 5 {
			m.path = f[5]
		}
		p.maps = append(p.maps, m)
	}
	_, err = p.loaded.LoadMaps(strings.NewReader(text), p.process.arch())
	return err
}

// at is the mapping that an address is in; nil: there is none.
func (p *point) at(address uint64) *mapping {
	i := sort.Search(len(p.maps), func(i int) bool { return p.maps[i].end > address })
	if i == len(p.maps) || address < p.maps[i].start {
		return nil
	}
	return &p.maps[i]
}

// arrive takes the registers of the instruction that is about to execute.
func (p *point) arrive() {
	for k, page := range p.pages {
		p.free = append(p.free, page)
		delete(p.pages, k)
	}
	p.thread.Registers = p.process.registers()
}

// walk walks the stack.
func (p *point) walk(ctx context.Context, e *engine.Engine) (*trace.Stack, func()) {
	t := e.Attach(p)
	return t.Walk(ctx, &p.thread), func() { _ = t.Close() }
}

// trace walks the stack as profiles do, from the registers and some bytes of it.
func (p *point) trace(ctx context.Context) *trace.Stack {
	_, sp := p.process.position()
	n := uint64(sampled)
	if m := p.at(sp); m != nil {
		n = min(n, m.end-sp)
	}
	n = uint64(p.process.read(sp, p.stack[:n])) //nolint:gosec // not negative
	s := &walk.Sample{Sample: trace.Sample{Arch: p.thread.Arch, Registers: p.thread.Registers, StackStart: sp, Stack: p.stack[:n]}, Loaded: p.loaded.Process().Modules()}
	steps, stopped := p.walker.Trace(ctx, s, 0, nil)
	p.steps = p.steps[:0]
	for i := range steps {
		p.steps = append(p.steps, trace.Frame{PC: steps[i].PC, FoundBy: steps[i].Found.FoundBy(), Exact: steps[i].Exact})
	}
	for i := 1; i < len(p.steps); i++ {
		p.steps[i].RestsOnGuess = p.steps[i-1].RestsOnGuess || p.steps[i-1].FoundBy.IsGuess()
	}
	return &trace.Stack{Frames: p.steps, Stopped: stopped}
}

// Info says that it is a process.
func (p *point) Info() trace.Target { return trace.Target{Kind: trace.LiveProcess} }

// Modules are those that were loaded last.
func (p *point) Modules() []*target.Module { return p.loaded.Process().Modules() }

// Threads is the one that is stepped.
func (p *point) Threads() []*trace.Thread { return p.threads }

// ReadMemory reads the memory of the process, pages of which are kept for this point.
func (p *point) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	if space != locexpr.DefaultSpace {
		return 0, fmt.Errorf("address space %d: %w", space, target.ErrNoMemory)
	}
	for n := 0; n < len(buf); {
		at := address + uint64(n)
		page := p.page(at &^ (pageSize - 1))
		if page == nil {
			return n, fmt.Errorf("0x%x: %w", at, target.ErrNoMemory)
		}
		n += copy(buf[n:], page[at&(pageSize-1):])
	}
	return len(buf), nil
}

func (p *point) page(start uint64) []byte {
	if page, ok := p.pages[start]; ok {
		return page
	}
	var page []byte
	if n := len(p.free); n > 0 {
		page, p.free = p.free[n-1], p.free[:n-1]
	} else {
		page = make([]byte, pageSize)
	}
	if p.process.read(start, page) < pageSize {
		return nil
	}
	p.pages[start] = page
	return page
}

// Mapped returns the mapping at an address.
func (p *point) Mapped(address uint64) (mapped, executable bool) {
	m := p.at(address)
	return m != nil, m != nil && m.isCode
}

// Close does nothing: the process is its owner's.
func (p *point) Close() error { return nil }
