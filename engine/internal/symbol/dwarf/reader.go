// SPDX-License-Identifier: Apache-2.0

// Package dwarf reads functions, inlined calls, source positions, variables and
// types from DWARF, versions 2 to 5.
//
// Line tables that belong to no unit are read too, as compilers of CUDA write them, and with them
// NVIDIA's opcodes for inlined calls.
//
// Nothing is read before it is needed. The unit of an address is found by .gdb_index or
// .debug_aranges where they exist and prove right, else by reading the first entry of every unit.
// In a unit the functions are found first, and the inlined calls of one function when an address is
// in it. A line number program is run once, and every 32nd of its rows is stored.
//
// Split units (DWARF 5, 7.3.2) are read from their files or packages, and the parts in a
// supplementary file (7.3.6; .gnu_debugaltlink) from there.
//
// The package is large because DWARF is: units, entries, line numbers, lists, indexes,
// split units and types refer to one another by offsets that only the Reader resolves.
package dwarf

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
)

// maxProblems bounds the list of problems: a file may have one in every unit.
const maxProblems = 16

// Reader returns the frames that an object's DWARF describes. It implements symbol.Source
// and may be used concurrently.
type Reader struct {
	main      *file
	options   Options
	names     nameCache
	generated *generatedUnits // nil: the units are in main
	parts     *parts          // nil: likewise

	lone lazy[*loneTables]

	dwp     lazy[*file]
	linkage lazy[map[string][]entryKey] // functions with code, by linkage name
	removed lazy[map[string][]entryKey] // functions that linkers left out, by linkage name
	defined lazy[definitions]
	imports lazy[map[*unit]uint64] // languages of units that others import

	kept          atomic.Int64 // see MemorySize
	lineSearches  atomic.Int32 // see removedNear
	supplementary atomic.Pointer[object.Object]

	mu       sync.Mutex
	problems []string
	splits   map[place]*lazy[*file]
	opened   []*object.Object
}

// Options tell a Reader how to find the files that the debug information leads to: split
// files, packages and supplementary files.
type Options struct {
	// Finder opens them: a path in the debug information is a path on the target, under the
	// Finder's Sysroot. nil is a Finder without a Sysroot.
	Finder *object.Finder
	// Package is the path of the package (.dwp) of the object's split units, on this
	// machine. "": it is looked for beside the object.
	Package string
}

// New reads the unit headers of an object's DWARF; the rest is read when an
// address needs it. It returns ErrNoDebugInfo where the object has none.
func New(o *object.Object) (*Reader, error) { return NewWith(o, Options{}) }

// NewWith is New with options.
func NewWith(o *object.Object, options Options) (*Reader, error) {
	f, err := openFile(o, "")
	if err != nil {
		return nil, err
	}
	if len(f.info) == 0 && len(f.line) == 0 {
		return nil, fmt.Errorf("%s: %w", o.Name(), ErrNoDebugInfo)
	}
	r, err := newReader(f)
	if err == nil {
		r.options = options
	}
	return r, err
}

func newReader(f *file) (*Reader, error) {
	r := &Reader{main: f}
	f.reader = r
	err := r.protect(func() error {
		end := uint64(len(f.info))
		if f.rest.info != nil {
			end = 1 // the others when needed
		}
		x := f.unitsUpTo(end)
		if x.err == nil && len(x.list) == 0 && x.next < uint64(len(f.info)) {
			x = f.unitsUpTo(uint64(len(f.info)))
		}
		if x.err == nil && len(x.list) == 0 && len(f.info) > 0 {
			return bad(".debug_info", 0, "a unit is expected")
		}
		return x.err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// protect runs f. It is the one place where a fault on a mapped page becomes an
// error.
func (r *Reader) protect(f func() error) error {
	if err := object.Guard(f); err != nil {
		return fmt.Errorf("%s: %w", r.main.name, err)
	}
	return nil
}

// problem records a part that is missing from the results of Frames.
func (r *Reader) problem(text string) {
	text = r.main.name + ": " + text
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.problems) < maxProblems && !slices.Contains(r.problems, text) {
		r.problems = append(r.problems, text)
	}
}

// failedUnit records that a unit cannot be read.
func (r *Reader) failedUnit(u *unit, err error) {
	where := ""
	if u.file.isPart {
		where = u.file.name + ": "
	}
	var format *FormatError
	if errors.As(err, &format) && format.Section == u.section() {
		r.problem(where + err.Error())
		return
	}
	r.problem(fmt.Sprintf("%s%s: unit at %#x: %v", where, u.section(), u.offset, err))
}

// Problems are the parts found missing from frames so far: sentences that name the file and
// the unit. At most 16 are kept.
func (r *Reader) Problems() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.problems)
}

// Frames appends the functions at an ELF virtual address, innermost first; see
// symbol.Source. An address of a relocatable object is an offset in the first of its
// sections of code that is large enough, as it is for llvm-symbolizer. Where a unit has
// only a line table (assembly, a split unit whose file is missing) the one frame has a
// position and no name. An error names the unit.
func (r *Reader) Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	if r.main.layout == nil {
		if frames, err := r.FramesIn(dst, address, Entry{}); err == nil && len(frames) > len(dst) {
			return frames, nil
		}
	}
	return r.framesAt(dst, address, &ownFrameStyle)
}

// RawFrames is Frames for callers that demangle names themselves: Function is "" for a
// function whose linkage name looks mangled. Where several functions share code, name and
// position may be of different ones, as in other tools: llvm-symbolizer takes the position
// of the first sequence of the line table, addr2line that of the last.
func (r *Reader) RawFrames(dst []trace.Symbol, address uint64, isFirst bool) ([]trace.Symbol, error) {
	return r.framesAt(dst, address, &frameStyle{give: (*functionName).giveRaw, isFirst: isFirst})
}

// frameStyle is a tool's style of frames.
type frameStyle struct {
	give    func(n *functionName, f *trace.Symbol) // puts a function's name into a frame
	isFirst bool                                   // take the first of the sequences at one address, not the last
}

var ownFrameStyle = frameStyle{give: (*functionName).give}

func (r *Reader) framesAt(dst []trace.Symbol, address uint64, style *frameStyle) ([]trace.Symbol, error) {
	before := len(dst)
	base := uint64(0)
	if l := r.main.layout; l != nil {
		section, ok := l.place(address)
		if !ok {
			return dst, nil
		}
		base = section.start
	}
	err := r.protect(func() (err error) {
		dst, err = r.frames(dst, address+base, style)
		return err
	})
	if err != nil {
		return dst[:before], err
	}
	for i := before; i < len(dst); i++ {
		if dst[i].HasStart {
			dst[i].Start -= base
		}
	}
	return dst, nil
}

func (r *Reader) frames(dst []trace.Symbol, address uint64, style *frameStyle) ([]trace.Symbol, error) {
	n := len(dst)
	err := r.maps(address, func(m *unitMap) (isFound bool, err error) {
		dst, err = r.framesBy(m, dst, address, style)
		return len(dst) > n, err
	})
	if len(dst) > n {
		return dst, err
	}
	return r.loneFrames(dst, address, style), err
}

// framesBy tries the units that a map names. A unit that knows the function is preferred to
// one that has only a line.
func (r *Reader) framesBy(m *unitMap, dst []trace.Symbol, address uint64, style *frameStyle) ([]trace.Symbol, error) {
	var failed error
	n := len(dst)
	m.candidates(address, maxCandidates, func(u *unit) bool {
		b, err := u.open()
		if err == nil {
			dst, err = r.chain(dst, b, address, style)
		}
		if err != nil {
			failed = err
		}
		return len(dst) == n
	})
	if len(dst) > n {
		return dst, nil
	}
	return dst, failed
}

// chain appends the frames of one unit.
func (r *Reader) chain(dst []trace.Symbol, b *body, address uint64, style *frameStyle) ([]trace.Symbol, error) {
	place, known := r.place(b, address, style.isFirst)
	holder, f, err := r.functionAt(b, address)
	if err != nil {
		return dst, err
	}
	if f == nil {
		if known {
			dst = r.lineChain(append(dst, place.Symbol), &place, style)
		}
		return dst, nil
	}
	return r.chainIn(dst, holder, f, &place, b, address, style)
}

// chainIn appends the frames of a function at an address whose position is known; b is the
// unit that has the lines.
func (r *Reader) chainIn(dst []trace.Symbol, holder *body, f *function, place *linePlace, b *body, address uint64, style *frameStyle) ([]trace.Symbol, error) {
	x, innermost, err := holder.callsAt(f, address)
	if err != nil {
		return dst, err
	}
	dst = append(dst, place.Symbol)
	if innermost < 0 {
		dst = r.lineChain(dst, place, style)
	}
	for n := innermost; n >= 0; n = int(x.list[n].parent) {
		call, err := r.readCall(holder, holder.offset+uint64(x.list[n].offset))
		if err != nil {
			return dst[:len(dst)-1], err
		}
		inner := &dst[len(dst)-1]
		inner.Inlined = true
		style.give(call.name, inner)
		if call.low.form != 0 {
			inner.Start, err = holder.address(&call.low)
			inner.HasStart = err == nil
		}
		dst = append(dst, trace.Symbol{Line: int(call.line), Column: int(call.column), Discriminator: uint64(call.discriminator)})
		b.fileName(uint64(call.file)).give(&dst[len(dst)-1])
	}
	name, err := r.functionName(holder, holder.offset+uint64(f.offset))
	if err != nil {
		return dst[:len(dst)-1], err
	}
	last := &dst[len(dst)-1]
	last.Start, last.HasStart = f.entry, f.hasEntry
	style.give(name, last)
	return dst, nil
}

// Scoped reports whether the unit that has the function at an address describes scopes
// within functions: inlined calls or blocks. Without them only the line of inlined code is
// known. Addresses are as in Frames.
func (r *Reader) Scoped(address uint64) (scoped bool, err error) {
	if l := r.main.layout; l != nil {
		section, ok := l.place(address)
		if !ok {
			return false, nil
		}
		address += section.start
	}
	err = r.protect(func() error {
		f := r.fileAt(address)
		if f == nil {
			return nil
		}
		m, err := f.whole.get(f.wholeMap)
		if err != nil {
			return err
		}
		m.candidates(address, maxCandidates, func(u *unit) bool {
			var b, holder *body
			var f *function
			if b, err = u.open(); err == nil {
				if holder, f, err = r.functionAt(b, address); err == nil && f != nil {
					var abbrevs *abbrevTable
					if abbrevs, err = holder.abbrevs(); err == nil {
						scoped = abbrevs.hasScopes()
					}
				}
			}
			return err == nil && f == nil
		})
		return err
	})
	return scoped, err
}

// hasScopes reports whether a table has entries of inlined calls or blocks.
func (t *abbrevTable) hasScopes() bool {
	is := func(a *abbrev) bool {
		return a.isDeclared && (a.tag == dw.TagInlinedSubroutine || a.tag == dw.TagLexicalBlock)
	}
	for i := range t.dense {
		if is(&t.dense[i]) {
			return true
		}
	}
	for _, a := range t.sparse {
		if is(a) {
			return true
		}
	}
	return false
}

// give puts a function's name into a frame.
func (n *functionName) give(f *trace.Symbol) {
	n.giveRaw(f)
	f.Function, f.LinkageName = n.names()
	f.IsDecoded = n.decoded != ""
}

func (n *functionName) giveRaw(f *trace.Symbol) {
	f.Function, f.LinkageName, f.Name = n.readable, n.linkage, n.name
	f.StartFile, f.StartLine, f.ImplicitStartFile = n.file, n.line, n.isFileImplicit
}

// give puts a file into a frame.
func (n *fileName) give(f *trace.Symbol) {
	f.File, f.CompDir, f.Source, f.SourceMD5 = n.path, n.compDir, n.source, n.md5
}

// linePlace is the position of an address, and the row that has it.
type linePlace struct {
	trace.Symbol
	row
	unit     *body // of the table
	table    *lineTable
	sequence *sequence
}

// place is the position of an address by the line table. Faults of the table become
// problems: names need no positions.
func (r *Reader) place(b *body, address uint64, isFirst bool) (p linePlace, known bool) {
	t, err := b.lineTable()
	if err != nil {
		r.failedUnit(b.unit, err)
	}
	if t == nil || err != nil {
		return p, false
	}
	p.unit, p.table, p.sequence = b, t, t.sequenceAt(address, isFirst)
	if p.sequence == nil {
		return p, false
	}
	if p.row, known = t.rowIn(p.sequence, address); known {
		known = r.giveRow(&p.Symbol, b, t, &p.row)
	}
	return p, known
}

// giveRow sets the position by a row of a unit's line table.
func (r *Reader) giveRow(f *trace.Symbol, b *body, t *lineTable, row *row) (known bool) {
	if uint64(row.file) >= uint64(len(t.files)) {
		return false
	}
	b.fileName(uint64(row.file)).give(f)
	f.Line, f.Column, f.Discriminator = int(row.line), int(row.column), uint64(row.discriminator)
	return true
}

// functionAt returns the function of a unit at an address, and the unit that describes it,
// which is the split one if there is one; nil where there is none.
func (r *Reader) functionAt(b *body, address uint64) (*body, *function, error) {
	holder, err := r.splitOf(b)
	if err != nil {
		return b, nil, err
	}
	x, err := holder.functions.get(func() (*functions, error) { return holder.findFunctions(false) })
	if err != nil {
		return holder, nil, err
	}
	n := x.where.At(address)
	if n < 0 && x.hasSkipped {
		if x, err = holder.all.get(func() (*functions, error) { return holder.findFunctions(true) }); err != nil {
			return holder, nil, err
		}
		n = x.where.At(address)
	}
	if n < 0 {
		return holder, nil, nil
	}
	return holder, &x.list[n], nil
}
