// SPDX-License-Identifier: Apache-2.0

package debugmap

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
)

// CodeMap has the functions of all object files, with the addresses of the program.
type CodeMap struct {
	m     *Map
	files map[*file]*fileCode
}

// fileCode is the code of an object file.
type fileCode struct {
	code  *dwarf.CodeMap
	moved []moved // by start
}

// moved is code of an object file, and how far away it is in the program.
type moved struct {
	symbol.CodeRange        // in the object file
	distance         uint64 // to be added
}

// CodeMap finds the functions of all object files. Files that cannot be read become problems.
func (m *Map) CodeMap() (*CodeMap, error) {
	c := &CodeMap{m: m, files: map[*file]*fileCode{}}
	for i := range m.parts {
		p := &m.parts[i]
		f, start := m.find(p.start)
		if f == nil {
			continue
		}
		code := c.files[f]
		if code == nil {
			read, err := f.reader.CodeMap()
			if err != nil {
				m.problem(err.Error())
				continue
			}
			code = &fileCode{code: read}
			c.files[f] = code
		}
		code.moved = append(code.moved, moved{symbol.CodeRange{Start: start, End: start + p.end - p.start}, p.start - start})
	}
	for _, code := range c.files {
		slices.SortFunc(code.moved, func(a, b moved) int { return cmp.Compare(a.Start, b.Start) })
	}
	return c, nil
}

// move returns the part of a range of the object file that is in one function of the program; false where none is.
func (c *fileCode) move(r symbol.CodeRange) (symbol.CodeRange, bool) {
	i := sort.Search(len(c.moved), func(i int) bool { return c.moved[i].Start > r.Start }) - 1
	if i < 0 || r.Start >= c.moved[i].End {
		return r, false
	}
	m := &c.moved[i]
	return symbol.CodeRange{Start: r.Start + m.distance, End: min(r.End, m.End) + m.distance}, true
}

// Covers reports whether a function has code at an address, and the end of that code; without one, the end is the
// start of the next function, or of code that another object file has.
func (c *CodeMap) Covers(address uint64) (covers bool, end uint64) {
	parts := c.m.parts
	i := sort.Search(len(parts), func(i int) bool { return parts[i].start > address })
	next := uint64(math.MaxUint64)
	if i < len(parts) {
		next = parts[i].start
	}
	if i == 0 || address >= parts[i-1].end {
		return false, next
	}
	f, inFile := c.m.find(address)
	if f == nil || c.files[f] == nil {
		return false, parts[i-1].end
	}
	covers, end = c.files[f].code.Covers(inFile)
	return covers, min(end-inFile, parts[i-1].end-address) + address
}

// Lines appends the lines of code without a function.
func (c *CodeMap) Lines(dst []symbol.CodeLine, code symbol.CodeRange) []symbol.CodeLine {
	f, inFile := c.m.find(code.Start)
	if f == nil || c.files[f] == nil {
		return dst
	}
	list := c.files[f].code.Lines(nil, symbol.CodeRange{Start: inFile, End: inFile + code.End - code.Start})
	return c.files[f].lines(dst, list)
}

// lines appends lines of the object file with the addresses of the program.
func (c *fileCode) lines(dst, list []symbol.CodeLine) []symbol.CodeLine {
	for _, l := range list {
		if r, ok := c.move(l.CodeRange); ok {
			l.CodeRange = r
			dst = append(dst, l)
		}
	}
	return dst
}

// ranges returns ranges of the object file with the addresses of the program.
func (c *fileCode) ranges(list []symbol.CodeRange) (out []symbol.CodeRange) {
	for _, r := range list {
		if r, ok := c.move(r); ok {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b symbol.CodeRange) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// EachFunction calls yield with every function that the program has, file by file, until it returns false; the argument
// is reused.
func (c *CodeMap) EachFunction(yield func(*symbol.FunctionCode) bool) error {
	isMore := true
	for i := range c.m.files {
		code := c.files[&c.m.files[i]]
		if code == nil || !isMore {
			continue
		}
		err := code.code.EachFunction(func(f *symbol.FunctionCode) bool {
			if moved, ok := code.function(f); ok {
				isMore = yield(moved)
			}
			return isMore
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// function returns a function with the addresses of the program; false where the linker left it out.
func (c *fileCode) function(f *symbol.FunctionCode) (*symbol.FunctionCode, bool) {
	out := &symbol.FunctionCode{Symbol: f.Symbol, IsShared: f.IsShared, Ranges: c.ranges(f.Ranges)}
	if len(out.Ranges) == 0 {
		return nil, false
	}
	if start, ok := c.move(symbol.CodeRange{Start: f.Start, End: f.Start}); ok {
		out.Start = start.Start
	} else {
		out.HasStart = false
	}
	out.Lines = c.lines(nil, f.Lines)
	slices.SortStableFunc(out.Lines, func(a, b symbol.CodeLine) int { return cmp.Compare(a.Start, b.Start) })
	for _, call := range f.Calls {
		if call.Ranges = c.ranges(call.Ranges); len(call.Ranges) > 0 {
			out.Calls = append(out.Calls, call)
		}
	}
	return out, true
}
