// SPDX-License-Identifier: Apache-2.0

package code

import (
	"debug/elf"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// How much code is read at once, in bytes.
const (
	// CodeWindow is how much code is read before and after a PC in a function that nothing
	// bounds: a page.
	CodeWindow = 4096
	// MaxFunctionCode is the most that is read of one function and its parts.
	MaxFunctionCode = 1 << 20
	// maxUnbounded is how far behind its start a function that nothing bounds may reach.
	maxUnbounded = 1 << 14
	// maxPartCode is how far behind its start a part that nothing bounds may reach.
	maxPartCode = 1 << 12
)

// Bounds are where a function begins and ends, or where code without bounds is read.
type Bounds struct {
	Start, End uint64
	IsKnown    bool // it is a function; else a window of code, or nothing
	Name       string
}

// symbolBounds returns the bounds of a symbol, which are not known if it has no size.
func symbolBounds(s symbol.Symbol, ok bool) Bounds {
	if !ok || s.End <= s.Start {
		return Bounds{}
	}
	return Bounds{s.Start, s.End, true, s.Name}
}

func fdeBounds(fde *cfi.FDE) Bounds { return Bounds{Start: fde.Start, End: fde.End, IsKnown: true} }

func peBounds(f *pe.Function) Bounds { return Bounds{Start: f.Start, End: f.End, IsKnown: true} }

// size returns how many bytes the code has.
func (b *Bounds) size() uint64 { return b.End - b.Start }

// isReadable reports whether the code is not too large to read at once.
func (b *Bounds) isReadable() bool { return b.End > b.Start && b.size() <= MaxFunctionCode }

// BoundsAt returns the bounds of the function at an address by call frame information, or else
// by its symbol.
func (o *Object) BoundsAt(address uint64) Bounds {
	o.resolver()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bounds(address)
}

// bounds is BoundsAt for a caller that holds mu.
func (o *Object) bounds(address uint64) Bounds {
	if b := o.rows.bounds(address); b.IsKnown {
		return b
	}
	if b := symbolBounds(o.symbolAt(address)); b.IsKnown {
		return b
	}
	if f := o.pe(); f != nil {
		if fn, ok, err := f.FunctionAt(address); ok && err == nil {
			return peBounds(&fn)
		}
	}
	return Bounds{}
}

// codeWindow returns the code around pc, within its section or segment.
func (o *Object) codeWindow(pc uint64) Bounds {
	w := Bounds{Start: 0, End: ^uint64(0)}
	for s := range o.codeSegments() {
		if pc-s.Address < s.Size {
			w.Start, w.End = s.Address, s.Address+s.Size
		}
	}
	if o.laid != nil {
		for _, s := range o.laid.Sections() {
			if s.Flags&elf.SHF_EXECINSTR != 0 && pc-s.Address < s.Size && s.Address >= w.Start && s.Address+s.Size <= w.End {
				w = Bounds{Start: s.Address, End: s.Address + s.Size, Name: s.Name}
			}
		}
	}
	if pc-w.Start > CodeWindow {
		w.Start = pc - CodeWindow
	}
	if w.End-pc > CodeWindow {
		w.End = pc + CodeWindow
	}
	return w
}

// codeSegments yields the executable segments: the module's for an object that is one target's
// alone, and else the file's.
func (o *Object) codeSegments() func(yield func(trace.Segment) bool) {
	return func(yield func(trace.Segment) bool) {
		if m := o.memory.module; m != nil {
			for _, s := range m.Placed {
				if s.Executable && !yield(s) {
					return
				}
			}
			return
		}
		for _, s := range o.File.Segments() {
			if s.Executable() && !yield(trace.Segment{Address: s.Address, Size: s.MemSize, Executable: true}) {
				return
			}
		}
	}
}

// EntryOf returns the address of the function's symbol where calls from the same module enter the
// function at another one (see object.LocalEntry); any other address is returned as it is.
func (o *Object) EntryOf(address uint64) uint64 {
	if o.File == nil {
		return address
	}
	if s, ok := o.symbolAt(address); ok && address-s.Start == o.File.LocalEntry(s.Other) {
		return s.Start
	}
	return address
}
