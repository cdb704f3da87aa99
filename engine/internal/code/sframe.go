// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// SFrameTable opens the .sframe of an object; nil where it has none. In relocatable files the
// assembler's start addresses are not relative to the place that the format defines, so those
// are left out.
func SFrameTable(o *object.Object) (*cfi.SFrame, error) {
	s := o.Section(".sframe")
	if s == nil || s.Type == elf.SHT_NOBITS || o.IsRelocatable() {
		return nil, nil
	}
	data, err := s.Data()
	if err != nil || len(data) == 0 {
		return nil, err
	}
	t, err := cfi.NewSFrame(inObject(o, cfi.Section{Name: ".sframe", Data: data, Address: s.Address}))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", o.Name(), err)
	case t.Machine() != o.Machine():
		return nil, fmt.Errorf("%s: .sframe is for %s, the object is of %s", o.Name(), object.DescribeMachine(t.Machine()), object.DescribeMachine(o.Machine()))
	}
	return t, nil
}

// isWrongPLT reports whether an address is in a PLT whose rows in .sframe may be wrong: until
// binutils 2.45 the linker took the entries of x86-64's PLT for indirect branch tracking for
// another PLT's (PR 32296). Such programs have a .plt.sec.
func isWrongPLT(o *object.Object, address uint64) bool {
	if o.Section(".plt.sec") == nil {
		return false
	}
	return slices.ContainsFunc([]string{".plt", ".plt.sec"}, func(name string) bool {
		s := o.Section(name)
		return s != nil && address-s.Address < s.Size
	})
}

// sframes are the rows of .sframe, which has less than call frame information.
type sframes struct {
	object *Object
	table  *cfi.SFrame
}

func newSFrames(o *Object) RowSource {
	if o.laid == nil {
		return nil
	}
	t, err := SFrameTable(o.laid)
	if err != nil {
		o.problem("%v", err)
	}
	if t == nil {
		return nil
	}
	return sframes{o, t}
}

func (s sframes) problems() (list []string) {
	for _, err := range s.table.Problems() {
		list = append(list, err.Error())
	}
	return list
}

func (s sframes) Row(_ context.Context, l *Lookup) (*Row, error) {
	if isWrongPLT(s.object.File, l.Address) {
		return nil, nil
	}
	fde, err := s.table.FDE(l.Address)
	address := l.Address
	if !l.IsExact && (err != nil || !fde.SignalFrame) {
		// As in callFrameRow, a signal trampoline is entered by returning to its start.
		if begins, beginsErr := s.table.FDE(l.PC); beginsErr == nil && begins.SignalFrame {
			fde, err = begins, nil
		}
	}
	row := new(cfi.Row)
	if err == nil {
		if fde.SignalFrame {
			address = l.PC
		}
		if !fde.Repeats {
			l.bound(Bounds{Start: fde.Start, End: fde.End, IsKnown: true})
		}
		err = fde.RowAt(address, row)
	}
	switch {
	case err == nil && !isCFA(row): // an FRE without offsets
		return &Row{Outermost: cmp.Or(l.outermost, "the return address is undefined")}, nil
	case err == nil:
		return &Row{Rules: row, By: trace.ByCFI}, nil
	case errors.Is(err, cfi.ErrNoFDE), errors.Is(err, cfi.ErrNoRow):
		return nil, nil
	}
	l.problem("%s: %v", s.object.File.Name(), err)
	return nil, noRow(err.Error())
}
