// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/trace"
)

// FramesGNU appends the frames at an address as addr2line has them, without inlines a single
// one; none where it knows nothing. A function without a linkage name has the name of the
// symbol that addr2line chooses, where no call is inlined into it.
func (f *File) FramesGNU(dst []trace.Symbol, address uint64, inlines bool) []trace.Symbol {
	section, ok := f.sectionAt(address)
	if !ok {
		return dst
	}
	n := len(dst)
	frames := f.described(dst, address, false)
	s, ok := f.symbols().chooseGNU(section, address)
	if len(frames) == n {
		if frames = f.pdbFrames(dst, address, true); len(frames) > n {
			if !inlines {
				frames = append(dst, frames[len(frames)-1])
			}
			return frames
		}
		if ok {
			return append(dst, trace.Symbol{LinkageName: s.Name, Start: s.Start, HasStart: true, File: s.File})
		}
		if f.hasMore() {
			return append(dst, rawNames(f.Frames(address))...)
		}
		return dst
	}
	if !inlines {
		frames = frames[:n+1]
	}
	if first := &frames[n]; ok && !first.Inlined && len(frames) == n+1 && first.LinkageName == "" {
		first.LinkageName = s.Name
		if first.File == "" {
			first.File = s.File
		}
	}
	return frames
}

// sectionAt is the section of the memory image that holds an address.
func (f *File) sectionAt(address uint64) (uint32, bool) {
	for _, s := range f.Object.Sections() {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Flags&elf.SHF_TLS == 0 && address >= s.Address && address-s.Address < s.Size {
			return uint32(s.Index), true
		}
	}
	return 0, false
}

// chooseGNU returns the symbol of code at an ELF virtual address that addr2line names: among
// the symbols at the nearest address in the section a function before a label, the shortest
// one that covers the address, then the first of the table.
func (t *aliases) chooseGNU(section uint32, address uint64) (Named, bool) {
	best := t.nearestGNU(section, address)
	if best == nil || !best.covers(address) {
		return Named{}, false
	}
	n := best.named()
	if name, isLate := t.fileOf(best); best.isLocal || !isLate {
		n.File = name
	}
	return n, true
}

func (t *aliases) nearestGNU(section uint32, address uint64) (best *alias) {
	if t.requests.Add(1) <= scanned {
		for i := range t.all {
			a := &t.all[i]
			if a.typ == elf.STT_OBJECT || a.section != section || a.start > address {
				continue
			}
			if best == nil || a.start > best.start || a.start == best.start && a.fitsBetter(best, address) {
				best = a
			}
		}
		return best
	}
	t.requests.Store(scanned)
	t.indexGNU.Do(t.sortGNU)
	after := func(i int) bool {
		a := &t.all[t.gnu[i]]
		return a.section > section || a.section == section && a.start > address
	}
	for i := sort.Search(len(t.gnu), after) - 1; i >= 0; i-- {
		if a := &t.all[t.gnu[i]]; a.section != section || best != nil && a.start != best.start {
			break
		}
		best = &t.all[t.gnu[i]] // the first symbol at the address
	}
	if best == nil {
		return nil
	}
	first := sort.Search(len(t.gnu), func(i int) bool {
		a := &t.all[t.gnu[i]]
		return a.section > section || a.section == section && a.start >= best.start
	})
	for i := first; i < len(t.gnu) && !after(i); i++ {
		if a := &t.all[t.gnu[i]]; a.fitsBetter(best, address) {
			best = a
		}
	}
	return best
}

// fitsBetter reports whether addr2line prefers a symbol that comes later in the table and
// begins at the same address.
func (a *alias) fitsBetter(best *alias, address uint64) bool {
	size, bestSize := max(a.end-a.start, 1), max(best.end-best.start, 1)
	offset := address - best.start
	switch {
	case bestSize <= offset:
		return size > bestSize
	case size <= offset:
		return false
	case a.isFunction() != best.isFunction():
		return a.isFunction()
	case (a.typ == elf.STT_NOTYPE) != (best.typ == elf.STT_NOTYPE):
		return best.typ == elf.STT_NOTYPE
	}
	return size < bestSize
}

func (t *aliases) sortGNU() {
	for i := range t.all {
		if t.all[i].typ != elf.STT_OBJECT {
			t.gnu = append(t.gnu, uint32(i))
		}
	}
	slices.SortFunc(t.gnu, func(i, j uint32) int {
		a, b := &t.all[i], &t.all[j]
		return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(a.start, b.start), cmp.Compare(i, j))
	})
}
