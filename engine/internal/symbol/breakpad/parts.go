// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"bytes"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
)

// readParts reads the file as about count parts at once, and returns how many lines begin
// with the name of a record.
func (f *File) readParts(count int) (known int, err error) {
	starts := f.partStarts(count)
	parts := make([]*indexer, len(starts))
	for i, start := range starts {
		end := uint64(len(f.data))
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		parts[i] = f.part(start, end)
	}
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, x := range parts[1:] {
		wg.Go(func() { errs[i+1] = object.Guard(func() error { x.read(); return nil }) })
	}
	errs[0] = f.guard(func() error { parts[0].read(); return nil })
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	if !areApart(parts) {
		parts = []*indexer{f.part(0, uint64(len(f.data)))}
		parts[0].read()
	}
	for _, x := range parts {
		known += x.known
		f.take(x.File)
	}
	return known, nil
}

// part returns an indexer of a part of the file.
func (f *File) part(from, to uint64) *indexer {
	return &indexer{File: &File{path: f.path, data: f.data, mapping: f.mapping}, offset: from, limit: to}
}

// The records at which a part may begin: in files of known producers no later line belongs
// to a record before them.
var (
	newFunction = []byte("\nFUNC ")
	newRules    = []byte("\nSTACK CFI INIT ")
)

// partStarts are the starts of about count parts.
func (f *File) partStarts(count int) []uint64 {
	starts := []uint64{0}
	for i := 1; i < count; i++ {
		nominal := len(f.data) / count * i
		near := f.data[nominal:min(len(f.data), nominal+maxLength)]
		index := bytes.Index(near, newFunction)
		if rules := bytes.Index(near[:max(index, 0)], newRules); index < 0 {
			index = bytes.Index(near, newRules)
		} else if rules >= 0 {
			index = rules
		}
		if index < 0 {
			continue
		}
		if start := uint64(nominal + index + 1); start > starts[len(starts)-1] { //nolint:gosec // not negative
			starts = append(starts, start)
		}
	}
	return starts
}

// areApart reports whether no line of a part belongs to a record of an earlier one, and all
// records together are not too many.
func areApart(parts []*indexer) bool {
	function, cfi := false, false
	functions, publics, rules, numbers, infos := 0, 0, 0, 0, 0
	for _, x := range parts {
		if x.orphans && (function || cfi) {
			return false
		}
		function, cfi = function || x.function, cfi || x.cfi
		functions, publics, rules = functions+len(x.functions), publics+len(x.publics), rules+len(x.rules)+len(x.win[0])+len(x.win[1])
		numbers, infos = numbers+len(x.files)+len(x.origins), infos+len(x.infos)
	}
	return len(parts) == 1 || infos <= maxInfos && max(functions, publics, rules, numbers) <= maxRecords
}

// take appends the records of the next part.
func (f *File) take(p *File) {
	if f.module == (Module{}) {
		f.module = p.module
	}
	f.infos = joined(f.infos, p.infos)
	f.counts.add(&p.counts)
	f.files, f.origins = joined(f.files, p.files), joined(f.origins, p.origins)
	f.functions, f.publics, f.rules = joined(f.functions, p.functions), joined(f.publics, p.publics), joined(f.rules, p.rules)
	for i := range f.win {
		f.win[i] = joined(f.win[i], p.win[i])
	}
	for _, err := range p.problems.Kept() {
		if f.problems.HasRoom(maxProblems) {
			f.problems.Keep(err)
		}
	}
	for range p.problems.Dropped() {
		f.problems.HasRoom(0)
	}
}

// joined returns a list with another one appended.
func joined[T any](a, b []T) []T {
	if len(a) == 0 {
		return b
	}
	return append(a, b...)
}

func (c *Counts) add(d *Counts) {
	c.Files, c.Origins, c.Functions, c.Publics = c.Files+d.Files, c.Origins+d.Origins, c.Functions+d.Functions, c.Publics+d.Publics
	c.Records, c.CFI, c.CFIRows = c.Records+d.Records, c.CFI+d.CFI, c.CFIRows+d.CFIRows
	c.FrameData, c.FPO, c.OtherWin, c.Damaged = c.FrameData+d.FrameData, c.FPO+d.FPO, c.OtherWin+d.OtherWin, c.Damaged+d.Damaged
}
