// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// Some programs move their code to memory without a file, to have it in large pages: Chromium,
// node (--use-largepages) and HHVM copy it into anonymous memory, which replaces the file's
// mapping.

// isMoved reports whether executable memory without a file replaced an executable segment of an
// image named name.
func (m *modules) isMoved(name string, p *object.Program, address uint64) bool {
	s := m.memory.segment(address)
	return p.Flags&elf.PF_X != 0 && s != nil && s.flags&elf.PF_X != 0 && !m.isMapped(name, address)
}

// isMapped reports whether a file is mapped at an address. NT_FILE also names memory without a
// file: only if the image has that name it counts.
func (m *modules) isMapped(name string, address uint64) bool {
	r := m.process.files.containing(address)
	return r != nil && (r.path == name || isFile(r.path))
}

// maxCompared bounds the bytes of moved code that are compared with the file.
const maxCompared = 1 << 20

// keepMoved removes from a module's executable segments the parts that other memory replaced,
// unless that memory has the bytes of the file.
func (m *modules) keepMoved(mod *target.Module, im *image, name string) {
	path := m.mappedPath(name, im)
	isOfFile := func(s trace.Segment) bool {
		r := m.process.files.containing(s.Start)
		return r != nil && r.path == path
	}
	if mod.Object == nil || !slices.ContainsFunc(mod.Segments, isOfFile) {
		return // NT_FILE does not have it
	}
	var list []trace.Segment
	for _, s := range mod.Segments {
		if !s.Executable {
			list = append(list, s)
			continue
		}
		start := s.Start
		for _, piece := range m.memory.overlapping(s.Start, s.Size) {
			first, end := max(piece.start, s.Start), min(piece.start+piece.size, s.Start+s.Size)
			if piece.flags&elf.PF_X == 0 || m.isMapped(path, first) {
				continue
			}
			switch is, known := m.isSameCode(mod.Object, s.Address+(first-s.Start), first, end-first); {
			case !known:
				mod.Problem = joined(mod.Problem, fmt.Sprintf("memory without a file, which the %s does not have, took the place of its code at %#x: that it is the same code is a guess", m.noun(), first))
			case !is:
				mod.Problem = joined(mod.Problem, fmt.Sprintf("%#x bytes of other code took the place of its own at %#x", end-first, first))
				list = appendPart(list, s, start, first)
				start = end
			}
		}
		list = appendPart(list, s, start, s.Start+s.Size)
	}
	mod.Segments = list
}

// appendPart appends a part of a segment, unless it is empty.
func appendPart(list []trace.Segment, s trace.Segment, start, end uint64) []trace.Segment {
	if start >= end {
		return list
	}
	s.Address, s.Start, s.Size = s.Address+(start-s.Start), start, end-start
	return append(list, s)
}

// isSameCode reports whether memory has the bytes of an object's code, except for a few that
// tracing and breakpoints change. known is false if either is not available.
func (m *modules) isSameCode(o *object.Object, address, start, size uint64) (same, known bool) {
	here := m.memory.readDumped(start, min(size, maxCompared))
	file := make([]byte, len(here))
	n, _ := o.ReadAddress(file, address)
	if n == 0 {
		return false, false
	}
	equal := 0
	for i := range n {
		if here[i] == file[i] {
			equal++
		}
	}
	return equal >= n-n/8, true
}

// joined joins two sentences; the first may be "".
func joined(first, second string) string {
	if first == "" {
		return second
	}
	return first + "; " + second
}

// overlapping returns the segments that share an address with size bytes from start on.
func (m *memory) overlapping(start, size uint64) []segment {
	i, _ := slices.BinarySearchFunc(m.segments, start, func(s segment, address uint64) int {
		if s.start+s.size <= address {
			return -1
		}
		return 1
	})
	end := i
	for end < len(m.segments) && m.segments[end].start < start+size {
		end++
	}
	return m.segments[i:end]
}
