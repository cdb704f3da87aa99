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
// first address of each. The row is reused. Errors are problems of the whole, and come last.
func LineRows(o *object.Object) iter.Seq2[*LineRow, error] {
	return func(yield func(*LineRow, error) bool) {
		laid, err := o.LaidOut()
		if err != nil {
			yield(nil, err)
			return
		}
		names := resolve.New(laid, nil)
		defer names.Close()
		lines := names.DWARF()
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
	names.Complete(last, r.Start)
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
