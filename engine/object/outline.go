// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"debug/elf"
	"math"
	"slices"
	"sync"
)

// An Extent is a range of the bytes of a file.
type Extent struct{ Offset, Size uint64 }

// Outline bounds: a small file is not worth two requests, and an outline of much of a file is none.
const (
	outlinedFile = 64 << 10
	mostRanges   = 64
	outlinedPart = 4 // an outline has at most one in so many of the file's bytes
	rangePage    = 4096
)

// outlineTypes are the types of sections that are read of every module of a target, whether code
// of it is on a stack or not: its identity and what it exports.
var outlineTypes = []elf.SectionType{
	elf.SHT_NOTE, elf.SHT_DYNAMIC, elf.SHT_DYNSYM, elf.SHT_HASH, elf.SHT_GNU_HASH, elf.SHT_GNU_VERSYM, elf.SHT_GNU_VERDEF, elf.SHT_GNU_VERNEED,
}

// Outline returns the ranges of an ELF file that New reads, and those that tell what it is and what
// it exports: an Object of these alone is one that SetRest completes when more is needed. There are
// none where all of the file is to be sent.
func (o *Object) Outline() []Extent {
	size := uint64(len(o.data))
	isLoaded := o.header.typ == elf.ET_DYN || o.header.typ == elf.ET_EXEC
	if size < outlinedFile || !o.IsELF() || !isLoaded || len(o.sections) == 0 || elf.Machine(o.Machine()) == elf.EM_CUDA {
		return nil
	}
	h := &o.header
	list := []Extent{{0, rangePage}, {h.phoff, uint64(len(o.programs)) * h.phentsize}, {h.shoff, uint64(len(o.sections)) * h.shentsize}}
	for _, p := range o.programs {
		if p.Type == elf.PT_NOTE || p.Type == elf.PT_DYNAMIC || p.Type == elf.PT_INTERP {
			list = append(list, Extent{p.Offset, p.FileSize})
		}
	}
	names := h.shstrndx
	if names == uint64(elf.SHN_XINDEX) {
		names = uint64(o.sections[0].Link)
	}
	for i, s := range o.sections {
		isStrings := s.Type == elf.SHT_STRTAB && (s.Flags&elf.SHF_ALLOC != 0 || uint64(i) == names)
		isLink := s.Name == ".gnu_debuglink" || s.Name == ".gnu_debugaltlink"
		if isStrings || isLink || slices.Contains(outlineTypes, s.Type) {
			list = append(list, Extent{s.Offset, s.Size})
		}
	}
	list = joined(list, size)
	sum := uint64(0)
	for _, r := range list {
		sum += r.Size
	}
	if len(list) > mostRanges || sum > size/outlinedPart {
		return nil
	}
	return list
}

// joined returns ranges of a file of a size, by pages and without overlap.
func joined(list []Extent, size uint64) (out []Extent) {
	var pages []Extent
	for _, r := range list {
		if r.Size == 0 || r.Offset >= size {
			continue
		}
		end := min(r.Size, size-r.Offset) + r.Offset
		start := r.Offset &^ (rangePage - 1)
		if end < math.MaxUint64-rangePage {
			end = (end + rangePage - 1) &^ (rangePage - 1)
		}
		pages = append(pages, Extent{start, min(end, size) - start})
	}
	slices.SortFunc(pages, func(a, b Extent) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, r := range pages {
		if n := len(out); n > 0 && out[n-1].Offset+out[n-1].Size >= r.Offset {
			last := &out[n-1]
			last.Size = max(last.Offset+last.Size, r.Offset+r.Size) - last.Offset
			continue
		}
		out = append(out, r)
	}
	return out
}

// rest is the part of an object's file that is not there yet.
type rest struct {
	mu    sync.Mutex
	there []Extent
	bring func(list []Extent, isRest bool) error
	done  bool
	err   error // why the file cannot be completed
}

// SetRest says that only some ranges of the object's file are there. Where a byte of others is needed, bring brings
// more ranges to their places in the file: the ranges of symbols, or the rest, all that is missing. Its error is that of
// whatever needed the bytes. SetRest is called before the object is used otherwise.
func (o *Object) SetRest(there []Extent, bring func(list []Extent, isRest bool) error) {
	o.rest = &rest{there: slices.Clone(there), bring: bring}
}

// missing are the ranges of a file of a size that are not there.
func (r *rest) missing(size uint64) (list []Extent) {
	slices.SortFunc(r.there, func(a, b Extent) int { return cmp.Compare(a.Offset, b.Offset) })
	end := uint64(0)
	for _, t := range r.there {
		if t.Offset > end {
			list = append(list, Extent{end, t.Offset - end})
		}
		end = max(end, t.Offset+t.Size)
	}
	if end < size {
		list = append(list, Extent{end, size - end})
	}
	return list
}

// need makes sure that a range of the file is there. isApart: the range is worth a request of its own.
func (o *Object) need(offset, size uint64, isApart bool) error {
	r := o.rest
	if r == nil || size == 0 || offset >= uint64(len(o.data)) {
		return nil
	}
	size = min(size, uint64(len(o.data))-offset)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.done || r.err != nil || r.has(offset, size):
		return r.err
	case isApart:
		list := joined([]Extent{{offset, size}}, uint64(len(o.data)))
		r.err = r.bring(list, false)
		r.there = append(r.there, list...)
	default:
		r.err = r.bring(r.missing(uint64(len(o.data))), true)
		r.done = r.err == nil
	}
	return r.err
}

// has reports whether one of the known ranges has another.
func (r *rest) has(offset, size uint64) bool {
	return slices.ContainsFunc(r.there, func(t Extent) bool {
		return offset >= t.Offset && offset-t.Offset <= t.Size && size <= t.Size-(offset-t.Offset)
	})
}
