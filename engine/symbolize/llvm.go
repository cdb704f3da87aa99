// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"cmp"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// FramesLLVM appends the frames at an address as llvm-symbolizer has them, at least one: the
// frames of DWARF, and with linkage the last one has the name and start of the symbol that
// llvm-symbolizer chooses; or the frames of a PDB file. An address that none of them knows has the
// frames of Frames.
//
// LinkageName is the raw name, and Name the DW_AT_name where there is no linkage name.
func (f *File) FramesLLVM(dst []trace.Symbol, address uint64, linkage bool) []trace.Symbol {
	frames := f.described(dst, address, true)
	described := len(frames) > len(dst)
	if !described {
		if frames = f.pdbFrames(dst, address, linkage); len(frames) > len(dst) {
			return frames
		}

		frames = append(frames, trace.Symbol{})
	}
	last := &frames[len(frames)-1]
	if !linkage {
		return frames
	}
	s, ok := f.symbols().chooseLLVM(address)
	switch {
	case ok:
		if last.LinkageName = s.Name; !f.isWin32() { // _f@4
			last.LinkageName = symbol.StripVersion(s.Name)
		}
		last.Start, last.HasStart = s.Start, true
		if last.File == "" {
			last.File = s.File
		}
	case !described && f.hasMore():
		if known := f.Frames(address); len(known) > 0 {
			return append(dst, rawNames(known)...)
		}
	}
	return frames
}

// Datum is the symbol of the data, or the code, at an address.
type Datum struct {
	Name  string // raw, of the symbol that covers the address; "" without one
	Start uint64 // ELF virtual address
	Size  uint64 // bytes; 0: not in the table of symbols
	// File and Line are where the variable is declared. Without debug information they are
	// the symbol's file (STT_FILE) and 0.
	File string
	Line int
}

// Data returns the symbol of data or code that covers an address, and the declaration of the
// variable there, as llvm-symbolizer has it: without a file where the file's number is in the
// abbreviation (DW_FORM_implicit_const), and for the first byte only of a variable that
// completes a declaration, as static members do.
func (f *File) Data(address uint64) Datum {
	s, _ := f.symbols().chooseLLVM(address)
	data := Datum{Name: s.Name, Start: s.Start, Size: s.Size, File: s.File}
	d := f.resolver.DWARF()
	if d == nil {
		return data
	}
	v, ok, err := d.Variable(address, symbol.StripVersion(s.Name))
	f.resolver.Note(err)
	if !ok || v.Line == 0 || v.Completes && address != v.Start {
		return data
	}
	data.File, data.Line = v.File, v.Line
	if v.ImplicitFile {
		data.File = ""
	}
	return data
}

// chooseLLVM returns the symbol of code or data at an ELF virtual address that
// llvm-symbolizer names: among the symbols at the nearest address the last one of the largest
// size.
func (t *aliases) chooseLLVM(address uint64) (Named, bool) {
	a := t.nearestLLVM(address)
	if a == nil || !a.covers(address) {
		return Named{}, false
	}
	n := a.named()
	if a.isLocal {
		n.File, _ = t.fileOf(a)
	}
	return n, true
}

func (t *aliases) nearestLLVM(address uint64) *alias {
	if t.requests.Add(1) > scanned {
		t.requests.Store(scanned)
		t.indexLLVM.Do(t.sortLLVM)
		if i := sort.Search(len(t.llvm), func(i int) bool { return t.all[t.llvm[i]].start > address }) - 1; i >= 0 {
			return &t.all[t.llvm[i]]
		}
		return nil
	}
	var best *alias
	for i := range t.all {
		if a := &t.all[i]; a.start <= address && (best == nil || a.start > best.start || a.start == best.start && a.end >= best.end) {
			best = a
		}
	}
	return best
}

// sortLLVM keeps one symbol for each address: the last one of the largest size.
func (t *aliases) sortLLVM() {
	t.llvm = make([]uint32, len(t.all))
	for i := range t.all {
		t.llvm[i] = uint32(i)
	}
	slices.SortFunc(t.llvm, func(i, j uint32) int {
		a, b := &t.all[i], &t.all[j]
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(i, j))
	})
	n := 0
	for i := range t.llvm {
		if i+1 < len(t.llvm) && t.all[t.llvm[i]].start == t.all[t.llvm[i+1]].start {
			continue
		}
		t.llvm[n] = t.llvm[i]
		n++
	}
	t.llvm = t.llvm[:n]
}
