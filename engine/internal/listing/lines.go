// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"debug/elf"
	"errors"
	"iter"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/symbol/resolve"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// LineRow is a row of a line table.
type LineRow struct {
	symbol.LineRow
	// Section has the code, in an object whose sections have no addresses: Start and End then
	// count from its beginning. "" in others.
	Section string
	PTX     []dwarf.PTXRow // the assembly of the code, of cubins that have it
}

// LineRows lists the rows of the line tables of an object by address, with the inlined calls at the
// first address of each; the rows of an image are in its PDB file. The row is reused. Errors are
// problems of the whole, and come last.
func LineRows(o *object.Object) iter.Seq2[*LineRow, error] {
	return func(yield func(*LineRow, error) bool) {
		laid, err := o.LaidOut()
		if err != nil {
			yield(nil, err)
			return
		}
		pdb, problem := findPDB(o)
		if pdb != nil {
			defer pdb.Close()
		}
		names := resolve.New(laid, pdb)
		defer names.Close()
		lines := linesOf(names)
		ptx, err := dwarf.NewPTX(laid)
		if err != nil && !errors.Is(err, dwarf.ErrNoPTX) && !yield(nil, err) {
			return
		}
		isOver := false
		if lines != nil {
			err = lines.EachLine(func(r *symbol.LineRow) bool {
				isOver = !yield(newLineRow(laid, names, ptx, r), nil)
				return !isOver
			})
		}
		if isOver || lines != nil && err != nil && !yield(nil, err) {
			return
		}
		problems := names.Problems()
		if problem != "" && lines == nil {
			problems = append(problems, problem)
		}
		if ptx != nil {
			problems = append(problems, ptx.Problems()...)
		}
		for _, p := range problems {
			if !yield(nil, errors.New(p)) {
				return
			}
		}
	}
}

// lineTables are line tables of either kind of debug information.
type lineTables interface {
	EachLine(yield func(*symbol.LineRow) bool) error
}

// linesOf returns the line tables of an object; nil where it has none.
func linesOf(names *resolve.Resolver) lineTables {
	if d := names.DWARF(); d != nil {
		return d
	}
	if p := names.PDB(); p != nil {
		return p
	}
	return nil
}

// findPDB finds the PDB file, or the dSYM, of an image without debug information of its own; nil: there is none.
// problem says why the file that the image names was not found.
func findPDB(o *object.Object) (pdb *object.Object, problem string) {
	if !o.IsPE() && !o.IsMachO() || o.HasDebugInfo() {
		return nil, ""
	}
	found := new(object.Finder).FindDebug(o)
	if found.Object == nil && o.SymbolName() != "" {
		problem = found.Problem
	}
	return found.Object, problem
}

// newLineRow makes a row of the listing: with the name of the function that has the code, its
// assembly, and addresses that count from the section where sections have none.
func newLineRow(o *object.Object, names *resolve.Resolver, ptx *dwarf.PTX, r *symbol.LineRow) *LineRow {
	out := &LineRow{LineRow: *r}
	// Of several rows and units for an address another may be preferred.
	frames, _ := names.Frames(nil, r.Start) // the error is always nil
	if len(frames) > 0 && frames[0].File == r.Frames[0].File && frames[0].Line == r.Frames[0].Line && frames[0].Column == r.Frames[0].Column {
		out.Frames = frames
	}
	last := &out.Frames[len(out.Frames)-1]
	if names.PDB() == nil {
		names.Complete(last, r.Start)
	} else if last.Function == "" && len(frames) > 0 {
		*last = named(*last, frames[len(frames)-1])
	}
	if ptx != nil {
		// A table that cannot be read is a problem of the PTX.
		_ = ptx.EachRow(r.Start, r.End, func(p dwarf.PTXRow) { out.PTX = append(out.PTX, p) })
	}
	if !o.IsRelocatable() {
		return out
	}
	for _, s := range o.Sections() {
		if s.Flags&elf.SHF_EXECINSTR == 0 || r.Start < s.Address || r.Start-s.Address >= s.Size {
			continue
		}
		out.Section, out.Start, out.End = s.Name, r.Start-s.Address, r.End-s.Address
		if last.HasStart {
			last.Start -= s.Address
		}
		for i := range out.PTX {
			out.PTX[i].Start -= s.Address
			out.PTX[i].End -= s.Address
		}
		break
	}
	return out
}

// named returns a position with the names of the function that has the code.
func named(position, function trace.Symbol) trace.Symbol {
	function.File, function.Line, function.Column = position.File, position.Line, position.Column
	return function
}
