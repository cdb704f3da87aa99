package engine

import (
	"debug/elf"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
)

// sframeTable opens the .sframe of an object; nil where it has none. In
// relocatable files the assembler's start addresses are relative to something
// else than the format says, so those are left out.
func sframeTable(o *object.Object) (*cfi.SFrame, error) {
	s := o.Section(".sframe")
	if s == nil || s.Type == elf.SHT_NOBITS || o.Type() == elf.ET_REL {
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

// wrongPLT says whether an address is in a PLT whose rows in .sframe may be
// wrong: until binutils 2.45 the linker took the entries of x86-64's PLT for
// indirect branch tracking for those of another PLT (PR 32296). Such programs
// have a .plt.sec.
func wrongPLT(o *object.Object, address uint64) bool {
	if o.Section(".plt.sec") == nil {
		return false
	}
	for _, name := range []string{".plt", ".plt.sec"} {
		if s := o.Section(name); s != nil && address-s.Address < s.Size {
			return true
		}
	}
	return false
}

// findSFrame looks for a row in the module's .sframe. Where it finds none,
// bounds and none get what it learned.
func (m *module) findSFrame(lookup uint64, source *rowSource, bounds *codeBounds, none *noRow) (found bool) {
	if wrongPLT(m.Object, lookup) {
		return false
	}
	fde, err := m.sframe.FDE(lookup)
	row := new(cfi.Row)
	if err == nil {
		if !bounds.known && !fde.Repeats {
			*bounds = codeBounds{start: fde.Start, end: fde.End, known: true}
		}
		err = fde.RowAt(lookup, row)
	}
	switch {
	case err == nil && row.CFA.Kind == cfi.NoCFA: // an FRE without offsets
		if source.outermost == "" {
			source.outermost = "the return address is undefined"
		}
		return true
	case err == nil:
		source.row, source.by = row, ByCFI
		return true
	case errors.Is(err, cfi.ErrNoFDE), errors.Is(err, cfi.ErrNoRow):
	default:
		m.problem("%s: %v", m.Object.Name(), err)
		none.reasons = append(none.reasons, err.Error())
	}
	return false
}
