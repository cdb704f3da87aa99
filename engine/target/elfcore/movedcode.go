// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
)

// This file is about code that a program moved to memory without a file, to have it in large
// pages: Chromium, node (--use-largepages) and HHVM copy their code into anonymous memory,
// which takes the place of the file's mapping.

// isMoved reports whether an executable segment of an image named name has executable memory
// without a file in its place.
func (m *modules) isMoved(name string, p *object.Program, at uint64) bool {
	s := m.memory.segment(at)
	return p.Flags&elf.PF_X != 0 && s != nil && s.flags&elf.PF_X != 0 && !m.isMapped(name, at)
}

// isMapped reports whether a file is mapped at an address: the one of a name, or another one.
// The kernel names some memory that is of no file, too.
func (m *modules) isMapped(name string, at uint64) bool {
	r := m.process.files.at(at)
	return r != nil && (r.path == name || isFile(r.path))
}

// maxCompared is how many bytes of moved code are compared with the file.
const maxCompared = 1 << 20

// keepMoved takes out of the executable segments of a module what other memory took the
// place of, unless it has the bytes of the file.
func (m *modules) keepMoved(mod *target.Module, im *image, name string) {
	path := m.mappedPath(name, im)
	isOfFile := func(s target.Segment) bool {
		r := m.process.files.at(s.Start)
		return r != nil && r.path == path
	}
	if mod.Object == nil || !slices.ContainsFunc(mod.Segments, isOfFile) {
		return // NT_FILE does not have it at all
	}
	var list []target.Segment
	for _, s := range mod.Segments {
		if !s.Executable {
			list = append(list, s)
			continue
		}
		start := s.Start
		for _, piece := range m.memory.overlapping(s.Start, s.Size) {
			from, to := max(piece.start, s.Start), min(piece.start+piece.size, s.Start+s.Size)
			if piece.flags&elf.PF_X == 0 || m.isMapped(path, from) {
				continue
			}
			switch is, known := m.isSameCode(mod.Object, s.Address+(from-s.Start), from, to-from); {
			case !known:
				mod.Problem = joined(mod.Problem, fmt.Sprintf("memory without a file, which the %s does not have, took the place of its code at %#x: that it is the same code is a guess", m.noun(), from))
			case !is:
				mod.Problem = joined(mod.Problem, fmt.Sprintf("%#x bytes of other code took the place of its own at %#x", to-from, from))
				list = appendPart(list, s, start, from)
				start = to
			}
		}
		list = appendPart(list, s, start, s.Start+s.Size)
	}
	mod.Segments = list
}

// appendPart appends a part of a segment, unless it is empty.
func appendPart(list []target.Segment, s target.Segment, from, to uint64) []target.Segment {
	if from >= to {
		return list
	}
	s.Address, s.Start, s.Size = s.Address+(from-s.Start), from, to-from
	return append(list, s)
}

// isSameCode reports whether memory has the bytes of an object's code, but for those that were
// changed: traces and breakpoints are. known is false where one of both is not here.
func (m *modules) isSameCode(o *object.Object, address, at, size uint64) (is, known bool) {
	here := m.memory.readDumped(at, min(size, maxCompared))
	file := make([]byte, len(here))
	n, _ := o.ReadAddress(file, address)
	if n == 0 {
		return false, false
	}
	same := 0
	for i := range n {
		if here[i] == file[i] {
			same++
		}
	}
	return same >= n-n/8, true
}

// joined are two sentences, of which the first may be "".
func joined(first, second string) string {
	if first == "" {
		return second
	}
	return first + "; " + second
}

// overlapping are the segments that share an address with size bytes from start on.
func (m *memory) overlapping(start, size uint64) []segment {
	i, _ := slices.BinarySearchFunc(m.segments, start, func(s segment, at uint64) int {
		if s.start+s.size <= at {
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
