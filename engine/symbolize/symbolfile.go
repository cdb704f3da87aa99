// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"debug/elf"
	"fmt"
	"io"
	"math"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
	"github.com/unwindd/unwindd/engine/internal/symbol/symtab"
	"github.com/unwindd/unwindd/engine/object"
)

// WrittenSymbols counts the records of a symbol file that was written.
type WrittenSymbols struct {
	breakpad.Written
	// HasDebugInfo means that there is debug information: without it, there are neither lines
	// nor inlined calls.
	HasDebugInfo bool
	// Problems are sentences about data that could not be read, beside File.Problems.
	Problems []string
}

// WriteSymbolFile writes Breakpad's symbol file of a file, with the names and lines that
// Frames has, and the rows of its call frame information, unwind codes or compact unwind encodings;
// frame data of a PDB file is written, too. The error comes from w, or concerns
// the file as a whole. The file must not be used elsewhere meanwhile.
func (f *File) WriteSymbolFile(w io.Writer) (WrittenSymbols, error) {
	x := &symbolSource{File: f}
	module, codeID, err := f.Identify()
	if err != nil {
		return x.done, err
	}
	x.base, _ = f.Object.ImageBase() // it is loaded, as Identify has seen
	var infos []string
	if codeID != "" {
		infos = []string{"CODE_ID " + codeID}
	}
	err = object.Guard(func() error {
		if err := x.open(); err != nil {
			return err
		}
		x.done.Written, err = breakpad.Write(w, &breakpad.Source{
			Module: module, Infos: infos,
			Functions: x.functions, Publics: x.publics, FrameData: x.frameData, Frames: x.frames,
			Register: BreakpadRegisters(f.Object.Machine()),
		})
		return err
	})
	return x.done, err
}

// symbolSource produces the records of a symbol file.
type symbolSource struct {
	*File
	base uint64
	code functionCode // nil without debug information
	// bounded are the symbols of code outside functions that become FUNC records: the code
	// has lines, or code of no symbol is behind it. bare are the others: a PUBLIC record has
	// no end, and its name applies up to the next record.
	bounded, bare []symbol.Symbol
	shared        map[uint64]bool // addresses of functions that were folded
	done          WrittenSymbols
	out           breakpad.SourceFunction
}

// functionCode is debug information that knows which code functions have.
type functionCode interface {
	Covers(address uint64) (covered bool, end uint64)
	Lines(dst []symbol.CodeLine, code symbol.CodeRange) []symbol.CodeLine
	EachFunction(yield func(*symbol.FunctionCode) bool) error
}

// functionPadding is how many bytes may lie between functions, to align them.
const functionPadding = 15

// open finds the functions, and the symbols outside of them.
func (x *symbolSource) open() (err error) {
	if x.code, err = x.functionCode(); err != nil {
		return err
	}
	x.done.HasDebugInfo = x.code != nil
	if x.Object.IsPDB() && !x.isWin32() {
		x.problem(fmt.Errorf("%s: how its functions are unwound is in the image alone: there are no STACK CFI records; give the .exe or .dll, beside which the PDB file is found", x.Object.Name()))
	}
	if err := x.missingUnwind(); err != nil {
		x.problem(err)
	}
	x.shared = x.sharedCode()
	symbols := x.resolver.Functions()
	for i, s := range symbols {
		covered, end := x.covers(s.Start)
		if s.Start < x.base || covered {
			continue
		}
		if i+1 < len(symbols) {
			end = min(end, symbols[i+1].Start)
		}
		if s.End == s.Start { // unknown size
			s.End = min(end, x.sectionEnd(s.Start))
		}
		if s.End > s.Start && s.End < end && end-s.End > functionPadding || len(x.linesOf(&s)) > 0 {
			x.bounded = append(x.bounded, s)
		} else {
			x.bare = append(x.bare, s)
		}
	}
	return nil
}

// functionCode returns the debug information: DWARF, or a PDB file.
func (x *symbolSource) functionCode() (functionCode, error) {
	if d := x.resolver.DWARF(); d != nil {
		return d.CodeMap()
	}
	if p := x.resolver.PDB(); p != nil {
		return p, nil
	}
	return nil, nil
}

// sectionEnd is where the section of code at an address ends; the address itself where
// there is none.
func (x *symbolSource) sectionEnd(address uint64) uint64 {
	for _, s := range x.Object.Sections() {
		if s.Flags&elf.SHF_EXECINSTR != 0 && address-s.Address < s.Size {
			return s.Address + s.Size
		}
	}
	return address
}

// covers reports whether a function has the code at an address, and up to where that holds.
func (x *symbolSource) covers(address uint64) (covered bool, end uint64) {
	if x.code == nil {
		return false, math.MaxUint64
	}
	return x.code.Covers(address)
}

// linesOf are the lines of a symbol's code up to where a function begins.
func (x *symbolSource) linesOf(s *symbol.Symbol) []symbol.CodeLine {
	if x.code == nil || s.Start >= s.End {
		return nil
	}
	_, end := x.covers(s.Start)
	return x.code.Lines(nil, symbol.CodeRange{Start: s.Start, End: min(s.End, end)})
}

// functions calls yield with all functions.
func (x *symbolSource) functions(yield func(*breakpad.SourceFunction) bool) (err error) {
	isMore := true
	if x.code != nil {
		err = x.code.EachFunction(func(fn *symbol.FunctionCode) bool {
			isMore = x.function(fn, yield)
			return isMore
		})
	}
	if err != nil {
		return err
	}
	for i := range x.bounded {
		s := &x.bounded[i]
		_, end := x.covers(s.Start)
		name, _ := symtab.Names(s.Name)
		x.out = breakpad.SourceFunction{
			Name: name, Multiple: x.shared[s.Start],
			Ranges: append(x.out.Ranges[:0], breakpad.Range{Start: s.Start - x.base, End: min(s.End, end) - x.base}),
			Lines:  x.lines(x.out.Lines[:0], x.linesOf(s)),
		}
		if !isMore || !yield(&x.out) {
			break
		}
	}
	return nil
}

// function calls yield with each range of a function: compilers split functions, and the
// ranges have names of their own.
func (x *symbolSource) function(fn *symbol.FunctionCode, yield func(*breakpad.SourceFunction) bool) bool {
	inlines := make([]breakpad.Inline, len(fn.Calls))
	for i := range fn.Calls {
		c := &fn.Calls[i]
		inlines[i] = breakpad.Inline{Depth: c.Depth, Name: c.Function, CallFile: c.CallFile, CallLine: c.CallLine, Ranges: x.ranges(c.Ranges)}
	}
	for _, r := range fn.Ranges {
		if r.Start < x.base {
			continue
		}
		frame := fn.Symbol
		if x.resolver.PDB() == nil {
			x.resolver.Complete(&frame, r.Start)
		}
		first := sort.Search(len(fn.Lines), func(i int) bool { return fn.Lines[i].End > r.Start })
		last := first + sort.Search(len(fn.Lines)-first, func(i int) bool { return fn.Lines[first+i].Start >= r.End })
		x.out = breakpad.SourceFunction{
			Name: frame.Function, Multiple: fn.IsShared || x.shared[r.Start], ParameterSize: x.parameterSize(r.Start),
			Ranges:  append(x.out.Ranges[:0], x.rangeOf(r)),
			Lines:   x.lines(x.out.Lines[:0], fn.Lines[first:last]),
			Inlines: inlines,
		}
		if !yield(&x.out) {
			return false
		}
	}
	return true
}

func (x *symbolSource) rangeOf(r symbol.CodeRange) breakpad.Range {
	return breakpad.Range{Start: r.Start - x.base, End: r.End - x.base}
}

func (x *symbolSource) ranges(list []symbol.CodeRange) []breakpad.Range {
	out := make([]breakpad.Range, len(list))
	for i, r := range list {
		out[i] = x.rangeOf(r)
	}
	return out
}

func (x *symbolSource) lines(dst []breakpad.Line, list []symbol.CodeLine) []breakpad.Line {
	for i := range list {
		l := &list[i]
		dst = append(dst, breakpad.Line{Start: l.Start - x.base, End: l.End - x.base, File: l.File, Line: l.Line})
	}
	return dst
}

// publics calls yield with the symbols of code that no function has.
func (x *symbolSource) publics(yield func(breakpad.Symbol) bool) error {
	for i := range x.bare {
		s := &x.bare[i]
		name, _ := symtab.Names(s.Name)
		if !yield(breakpad.Symbol{Name: name, Address: s.Start - x.base, Multiple: x.shared[s.Start], ParameterSize: x.parameterSize(s.Start)}) {
			break
		}
	}
	return nil
}
