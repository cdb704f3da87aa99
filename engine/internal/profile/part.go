// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file divides the samples of a recording into parts, each of which may be walked by
// another process. A part has only the stacks of its samples: the joining process reads the
// recording, too, and so finds mappings, names of threads and the kernel's records as if it
// walked the samples itself. So the profile is the same, and none of that is written twice.

// MaxParts is how many parts a recording may be divided into.
const MaxParts = 1 << 10

// checkPart refuses an impossible part.
func checkPart(p trace.ProfilePart) error {
	if p.Count < 1 || p.Count > MaxParts || p.Index < 0 || p.Index >= p.Count {
		return fmt.Errorf("part %d of %d: expected 0 to %d of 1 to %d", p.Index, p.Count, p.Count-1, MaxParts)
	}
	return nil
}

// MakePart walks the samples of one part of a recording, and writes the data that Options.Parts
// take. Only the options for walking stacks are used.
func (k *Maker) MakePart(ctx context.Context, path string, p trace.ProfilePart, o trace.ProfileOptions, w io.Writer) error {
	if err := checkPart(p); err != nil {
		return err
	}
	f, _, err := k.open(ctx, path, &o)
	if err != nil {
		return err
	}
	defer f.Close()
	d, err := divide(ctx, f, p.Count)
	if err != nil {
		return err
	}
	r := k.newRecording(f)
	defer r.close()
	r.generated.provided = o.PerfMaps
	out, err := newPartWriter(w, r, d, p)
	if err != nil {
		return err
	}
	defer out.close()
	out.progress = &progress{tell: o.Progress, total: d.size(p.Index)}
	if err := r.walkAll(ctx, o.Jobs, d.filter(p.Index), out.add); err != nil {
		return err
	}
	if err := object.Shrunk(); err != nil { // before its files are closed
		return err
	}
	return out.end()
}

// division assigns each sample of a recording to a part. In a row of all samples, by process
// and then by time, each part has the next few: processes stay together, whose code is the
// same, and a process with more samples than a part is divided by time.
type division struct {
	parts     int
	total     uint64
	processes []processSamples // by first appearance
	next      map[int]uint64   // the place in the row of the next sample of a process
}

// processSamples is how many samples a process has.
type processSamples struct {
	pid     int
	samples uint64
}

// divide counts the samples of processes.
func divide(ctx context.Context, f *perfdata.File, parts int) (*division, error) {
	index := map[int]int{}
	var list []processSamples
	for r := f.Reader(); ; {
		b, err := r.Next()
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, io.EOF) {
			return newDivision(parts, list), nil
		}
		if err != nil {
			return nil, err
		}
		for i := range b.Samples {
			place, ok := index[b.Samples[i].PID]
			if !ok {
				place = len(list)
				index[b.Samples[i].PID] = place
				list = append(list, processSamples{pid: b.Samples[i].PID})
			}
			list[place].samples++
		}
		b.Release()
	}
}

func newDivision(parts int, processes []processSamples) *division {
	d := &division{parts: parts, processes: processes, next: make(map[int]uint64, len(processes))}
	for _, p := range processes {
		d.next[p.pid] = d.total
		d.total += p.samples
	}
	return d
}

// part returns the part of the next sample, which belongs to a process; -1 where the process
// has more samples than were counted.
func (d *division) part(pid int) int {
	place, ok := d.next[pid]
	if !ok || place >= d.total {
		return -1
	}
	d.next[pid] = place + 1
	high, low := bits.Mul64(place, uint64(d.parts)) //nolint:gosec // positive
	part, _ := bits.Div64(high, low, d.total)
	return int(part) //nolint:gosec // less than parts
}

// size returns how many samples a part has: the samples at places of the row from its own start
// to the start of the next part.
func (d *division) size(part int) uint64 { return d.start(part+1) - d.start(part) }

// start returns the first place of a part.
func (d *division) start(part int) uint64 {
	parts := uint64(d.parts)                       //nolint:gosec // positive
	high, low := bits.Mul64(d.total, uint64(part)) //nolint:gosec // not negative
	low, carry := bits.Add64(low, parts-1, 0)      // rounded up
	start, _ := bits.Div64(high+carry, low, max(parts, 1))
	return start
}

// filter returns a function that keeps only the samples of a part in a batch.
func (d *division) filter(part int) func(*perfdata.Batch) {
	return func(b *perfdata.Batch) {
		kept := b.Samples[:0]
		for i := range b.Samples {
			if d.part(b.Samples[i].PID) == part {
				kept = append(kept, b.Samples[i])
			}
		}
		clear(b.Samples[len(kept):]) // Release clears the others
		b.Samples = kept
	}
}
