// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// jitDump is a dump with a module for each of its functions that is in a stack.
type jitDump struct {
	file *perfdata.JITDump
	// isTimed is true where its times are by the clock of the recording.
	isTimed   bool
	mu        sync.Mutex
	generated map[*perfdata.JITFunction]*code.Module
	parts     map[jitPart]*code.Segment
}

// jitPart is the remaining part of a function at a time: newer ones may lie over the rest.
type jitPart struct {
	function   *perfdata.JITFunction
	start, end uint64
}

func (d *jitDump) close() {
	if d != nil {
		d.file.Close()
	}
}

// jitClock is the clock of dumps (tools/perf/Documentation/jitdump-specification.txt).
const jitClock = "CLOCK_MONOTONIC"

// find finds the code that was at an address at a time. Where the times of the dump cannot be
// compared, and there was no code at that time, it is the last code there, as in a perf map.
func (d *jitDump) find(r *recording, time, address uint64) (p jitPart) {
	p.function, p.start, p.end = d.file.Find(time, address)
	if p.function != nil || d.isTimed {
		return p
	}
	if p.function, p.start, p.end = d.file.Find(math.MaxUint64, address); p.function != nil {
		r.problem("%s: its times are by %s, those of %s by %s: where code took the place of other code, the last is named; record with `perf record -k mono`",
			d.file.Path(), d.clock(), r.file.Path(), clockOf(r.file))
	}
	return p
}

// clock returns the clock of the dump.
func (d *jitDump) clock() string {
	if d.file.HasArchTimestamps {
		return "a clock of the processor"
	}
	return jitClock
}

// segment returns the code that was at an address at a time; nil where there was none. It is a
// module by itself: later code at the address is another one.
func (d *jitDump) segment(r *recording, time, address uint64) *code.Segment {
	p := d.find(r, time, address)
	if p.function == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.parts[p]; s != nil {
		return s
	}
	s := &code.Segment{Start: p.start, End: p.end, Module: d.module(r, p.function), Address: p.start}
	d.parts[p] = s
	return s
}

// module returns the module of a function.
func (d *jitDump) module(r *recording, f *perfdata.JITFunction) *code.Module {
	mod := d.generated[f]
	if mod == nil {
		generated := &jitFunction{f}
		mod = r.process.AddModule(&target.Module{
			Module: trace.Module{
				Path:     f.Name,
				Arch:     r.arch,
				Segments: []trace.Segment{{Address: f.Address, Size: f.Size, Start: f.Address, Executable: true}},
			},
		}, &code.JIT{Functions: generated, Read: generated.read})
		d.generated[f] = mod
	}
	return mod
}

// jitFunction is a function of a dump as a source of names and of functions.
type jitFunction struct{ *perfdata.JITFunction }

// read reads its code.
func (f *jitFunction) read(address uint64, buf []byte) (int, error) {
	offset := address - f.Address
	if offset >= uint64(len(f.Code)) {
		return 0, target.ErrNoMemory
	}
	n := copy(buf, f.Code[offset:])
	if n < len(buf) {
		return n, target.ErrNoMemory
	}
	return n, nil
}

// Function returns the function, for any address in it.
func (f *jitFunction) Function(uint64) (symbol.Symbol, bool) {
	return symbol.Symbol{Name: f.Name, Start: f.Address, End: f.Address + f.Size}, true
}

// Frames appends the runtime's name of the function, and its line at an address.
func (f *jitFunction) Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	frame := trace.Symbol{Function: f.Name, Start: f.Address, HasStart: true}
	for i := range f.Lines {
		if l := &f.Lines[i]; l.Address <= address {
			frame.File, frame.Line, frame.Column = l.File, int(l.Line), int(l.Column)
		}
	}
	return append(dst, frame), nil
}

// sampleCode is the code of the process of a sample: its mappings, and the JIT code at that
// time.
type sampleCode struct {
	space     *codeSpace
	generated jitCode
}

// set sets the code to that of a process at a time.
func (c *sampleCode) set(space *codeSpace, time uint64) {
	c.space, c.generated.time, c.generated.dumps = space, time, nil
	if space != nil {
		c.generated.dumps = space.dumps
	}
}

// Segment returns the segment of code at an address.
func (c *sampleCode) Segment(address uint64) *code.Segment {
	if segment := c.space.code.Find(address); segment != nil {
		return segment
	}
	return c.generated.find(address)
}

// IsCode reports whether there is code at an address, known or not.
func (c *sampleCode) IsCode(address uint64) bool { return c.space.isCode(address) }

// jitCode finds JIT code.
type jitCode struct {
	recording *recording
	dumps     []*jitDump
	time      uint64
}

func (c *jitCode) find(address uint64) *code.Segment {
	for _, d := range c.dumps {
		if s := d.segment(c.recording, c.time, address); s != nil {
			return s
		}
	}
	return nil
}
