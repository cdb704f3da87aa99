// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"fmt"
	"io"

	"github.com/unwindd/unwindd/engine/object"
)

// batchSize is how many samples a batch has: enough that passing one on costs
// nothing, few enough that the batches in flight are small.
const batchSize = 64

// run is a part of an area in which time does not go back.
type run struct {
	start, end uint64
	time       uint64 // of its first record
	area       uint16
}

// cursor is a position in a run.
type cursor struct {
	offset, end uint64 // of the next record
	time        uint64 // of the next record
	area        uint16
}

// isBefore reports whether c comes before d: by time, then by the order of the file.
func (c *cursor) isBefore(d *cursor) bool {
	if c.time != d.time {
		return c.time < d.time
	}
	if c.area != d.area {
		return c.area < d.area
	}
	return c.offset < d.offset
}

// Reader delivers the samples of a File in the order of time. It is for one
// goroutine; a File may have several Readers.
type Reader struct {
	file        *File
	runs        []run    // not begun
	heap        []cursor // begun
	pending     record   // waits for the next batch
	pendingArea uint16
	hasPending  bool
	current     record // reused, so that none is allocated for each sample
	ahead       record
	failed      error   // what Next returns
	pages       []pages // by area
	changed     error   // the records differ from the ones that were scanned
	state       state
	// keepsSwitches: batches have Switches.
	keepsSwitches bool
}

// Reader returns a reader that begins at the first sample.
func (f *File) Reader() *Reader {
	r := &Reader{file: f, runs: f.runs, state: newState(f)}
	for i := range f.areas {
		r.pages = append(r.pages, pages{mapping: f.areas[i].mapping})
	}
	return r
}

// Batch is some consecutive samples.
type Batch struct {
	// Sequence counts the batches of a Reader from 0.
	Sequence int
	Samples  []Sample
	// Kernel has the kernel's mappings, modules included, and KernelSymbols the
	// functions that it generated at run time (KSYMBOL), with the name as Path.
	Kernel, KernelSymbols *Space
	// Switches say when threads run, in the order of time (Reader.KeepSwitches).
	Switches []Switch

	file *File
}

// Release frees the batch for reuse. Its samples must not be used any more.
func (b *Batch) Release() {
	clear(b.Samples)
	b.Samples, b.Kernel, b.KernelSymbols, b.Switches = b.Samples[:0], nil, nil, b.Switches[:0]
	b.file.batches.Put(b)
}

func (f *File) batch() *Batch {
	if b, ok := f.batches.Get().(*Batch); ok {
		return b
	}
	return &Batch{Samples: make([]Sample, 0, batchSize), file: f}
}

// Next returns the next samples; io.EOF where there are no more. Any other error
// means that the file was truncated while it was mapped, and ends the reading.
func (r *Reader) Next() (*Batch, error) {
	if r.failed != nil {
		return nil, r.failed
	}
	b := r.file.batch()
	if err := object.Guard(func() error { r.fill(b); return nil }); err != nil {
		r.failed = err
	} else if r.changed != nil {
		r.failed = r.changed
	} else if len(b.Samples) < batchSize && len(b.Switches) < maxSwitches && !r.hasPending {
		r.failed = io.EOF
	}
	if len(b.Samples) == 0 && len(b.Switches) == 0 {
		b.Release()
		return nil, r.failed
	}
	b.Sequence = r.state.batches
	r.state.batches++
	return b, nil
}

// Problems returns the problems of the records that were read so far, except samples,
// each as a sentence.
func (r *Reader) Problems() []string { return r.state.problems.all(r.file.path) }

// fill reads records until the batch is full, or the mappings of the kernel change,
// which all samples of a batch share.
func (r *Reader) fill(b *Batch) {
	for len(b.Samples) < batchSize && len(b.Switches) < maxSwitches && r.changed == nil {
		rec := &r.current
		area, ok := r.next(rec)
		if !ok {
			break
		}
		if rec.kind == recordSample {
			n := len(b.Samples)
			s := &b.Samples[:n+1][n]
			r.file.decode(rec, s)
			s.IsCompressed = r.file.areas[area].isUnpacked
			r.state.place(s)
			b.Samples = b.Samples[:n+1] // not reached after a fault
			continue
		}
		if len(b.Samples) > 0 && r.state.changesKernel(rec) {
			r.pending, r.pendingArea, r.hasPending = *rec, area, true
			break
		}
		r.state.apply(rec, area)
		if r.keepsSwitches {
			if s, ok := r.file.switchOf(rec); ok {
				s.Before = len(b.Samples)
				b.Switches = append(b.Switches, s)
			}
		}
	}
	b.Kernel, b.KernelSymbols = r.state.kernel.version(&r.state), r.state.symbols.version(&r.state)
}

// next reads the next record of the kernel's types.
func (r *Reader) next(rec *record) (area uint16, ok bool) {
	if r.hasPending {
		r.hasPending = false
		*rec = r.pending
		r.pending = record{}
		return r.pendingArea, true
	}
	for len(r.runs) > 0 && (len(r.heap) == 0 || r.runs[0].time <= r.heap[0].time) {
		run := &r.runs[0]
		r.push(cursor{offset: run.start, end: run.end, time: run.time, area: run.area})
		r.runs = r.runs[1:]
	}
	if len(r.heap) == 0 {
		return 0, false
	}
	top := &r.heap[0]
	area = top.area
	a := &r.file.areas[area]
	next, done, _ := a.next(top.offset, rec)
	if done {
		r.change(top)
		return 0, false
	}
	r.pages[area].pass(uint64(len(rec.data)))
	top.offset = next
	if !r.advance(a, top) {
		last := len(r.heap) - 1
		r.heap[0] = r.heap[last]
		r.heap = r.heap[:last]
	}
	r.sink()
	return area, true
}

// advance finds the time of the next record of a run; false at its end.
func (r *Reader) advance(a *area, c *cursor) bool {
	rec := &r.ahead
	for c.offset < c.end {
		next, done, _ := a.next(c.offset, rec)
		if done {
			r.change(c)
			return false
		}
		if rec.kind < recordUser {
			if t, ok := r.file.attrs.time(rec, r.file.order); ok {
				c.time = max(c.time, t)
			}
			return true
		}
		c.offset = next
	}
	return false
}

// change records that a record cannot be read that was there when the file was
// scanned. A truncated file has zeros in the rest of its last page.
func (r *Reader) change(c *cursor) {
	r.changed = fmt.Errorf("%s: %s: %w", r.file.path, r.file.place(int(c.area), c.offset), object.ErrFileShrank)
}

func (r *Reader) push(c cursor) {
	r.heap = append(r.heap, c)
	for i := len(r.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !r.heap[i].isBefore(&r.heap[parent]) {
			break
		}
		r.heap[i], r.heap[parent] = r.heap[parent], r.heap[i]
		i = parent
	}
}

// sink moves the top of the heap down to its position.
func (r *Reader) sink() {
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(r.heap); child++ {
			if r.heap[child].isBefore(&r.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		r.heap[i], r.heap[least] = r.heap[least], r.heap[i]
		i = least
	}
}
