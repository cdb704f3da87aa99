// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/ranges"
	"github.com/unwindd/unwindd/engine/object"
)

// maxMapEntries bounds the functions of a map.
const maxMapEntries = 1 << 24

// PerfMap is a runtime's list of its JIT code, /tmp/perf-PID.map: a line for each
// function, START SIZE NAME, the numbers in hexadecimal (Linux,
// tools/perf/Documentation/jit-interface.txt). It may be used concurrently, except
// for Close.
type PerfMap struct {
	mapping  *object.Mapping
	data     []byte
	entries  []mapEntry // by start, without overlap
	problems sentences
}

type mapEntry struct {
	start, end uint64
	function   uint64 // the function's start, which another one may cover
	name       uint64 // offset in the file
	size       uint32 // of the name
}

// OpenPerfMap maps a file and sorts its functions. The file grows while the
// runtime generates code, and addresses are reused: where functions overlap, the one
// that is later in the file is valid.
func OpenPerfMap(path string) (*PerfMap, error) {
	m, err := object.Map(path)
	if errors.Is(err, object.ErrEmpty) {
		return &PerfMap{}, nil
	}
	if err != nil {
		return nil, err
	}
	p := &PerfMap{mapping: m, data: m.Data()}
	if err := object.Guard(func() error { p.read(); return nil }); err != nil {
		m.Close()
		return nil, err
	}
	return p, nil
}

// Close unmaps the file.
func (p *PerfMap) Close() error { return p.mapping.Close() }

// Problems returns the lines that could not be read, each as a sentence.
func (p *PerfMap) Problems() []string {
	path := "perf map"
	if p.mapping != nil {
		path = p.mapping.Path()
	}
	return p.problems.all(path)
}

// Len returns the number of functions.
func (p *PerfMap) Len() int { return len(p.entries) }

// Find returns the function that contains an address.
func (p *PerfMap) Find(address uint64) (name string, start, end uint64, ok bool) {
	i := sort.Search(len(p.entries), func(i int) bool { return p.entries[i].end > address })
	if i == len(p.entries) || address < p.entries[i].start {
		return "", 0, 0, false
	}
	e := &p.entries[i]
	err := object.Guard(func() error {
		name = string(p.data[e.name : e.name+uint64(e.size)])
		return nil
	})
	return name, e.function, e.end, err == nil
}

// NamesIn reports whether there is a function between two addresses.
func (p *PerfMap) NamesIn(start, end uint64) bool {
	if p == nil {
		return false
	}
	i := sort.Search(len(p.entries), func(i int) bool { return p.entries[i].end > start })
	return i < len(p.entries) && p.entries[i].start < end
}

func (p *PerfMap) read() {
	var all []mapEntry
	offset := uint64(0)
	for line := 1; offset < uint64(len(p.data)); line++ {
		rest := p.data[offset:]
		length := bytes.IndexByte(rest, '\n')
		if length < 0 {
			// Perhaps the runtime was still writing it.
			p.problems.add("line %d does not end", line)
			break
		}
		e, err := parseMapLine(rest[:length])
		switch {
		case err != nil:
			p.problems.add("line %d: %v", line, err)
		case len(all) >= maxMapEntries:
			p.problems.add("line %d: there are %d functions before it: the rest is left out", line, maxMapEntries)
			offset = uint64(len(p.data))
			continue
		case e.end > e.start:
			e.name += offset
			all = append(all, e)
		}
		offset += uint64(length) + 1
	}
	p.entries = newest(all)
}

// parseMapLine reads a line. Numbers may begin with 0x.
func parseMapLine(line []byte) (e mapEntry, err error) {
	end := 0
	word := func() []byte {
		for end < len(line) && line[end] == ' ' {
			end++
		}
		start := end
		for end < len(line) && line[end] != ' ' {
			end++
		}
		return line[start:end]
	}
	number := func(what string) (n uint64) {
		w := word()
		if err != nil {
			return 0
		}
		if n, err = strconv.ParseUint(string(bytes.TrimPrefix(w, []byte("0x"))), 16, 64); err != nil {
			err = fmt.Errorf("%q is no %s in hexadecimal", clip(w, 40), what)
		}
		return n
	}
	start, size := number("address"), number("size")
	if err != nil {
		return e, err
	}
	if start+size < start {
		return e, fmt.Errorf("%#x bytes from %#x on are beyond the last address", size, start)
	}
	for end < len(line) && line[end] == ' ' {
		end++
	}
	name := bytes.TrimRight(line[end:], "\r")
	if len(name) == 0 || len(name) > 1<<20 {
		return e, fmt.Errorf("a name of %d bytes", len(name))
	}
	return mapEntry{start, start + size, start, uint64(end), uint32(len(name))}, nil
}

// newest sorts entries by address and resolves overlaps: where several overlap, the last one
// in the list is valid.
func newest(all []mapEntry) []mapEntry {
	overlapping := make([]ranges.Range, len(all))
	for i, e := range all {
		overlapping[i] = ranges.Range{Start: e.start, End: e.end, Index: int32(i)} //nolint:gosec // at most maxMapEntries
	}
	flat := ranges.Flatten(overlapping)
	out := make([]mapEntry, 0, len(all))
	for r := range flat.All() {
		e := all[r.Index]
		e.start, e.end = r.Start, r.End
		out = append(out, e)
	}
	return out
}
