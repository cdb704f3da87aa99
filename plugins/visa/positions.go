// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"fmt"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/plugins/visa/stream"
	"github.com/unwindd/unwindd/sdk"
)

// positionKind is the kind of maps from the code to indexes of vISA
// instructions.
const positionKind = "visa"

// indexMap is the index map of an object, in order of the code. An entry
// applies up to the next one.
type indexMap []stream.Mapping

// indexMapOf returns the index map of an object. Of several entries for one
// place the last counts: the others are of instructions that became no code.
func indexMapOf(o *stream.Object) indexMap {
	m := slices.Clone(o.IndexMap)
	slices.SortStableFunc(m, func(a, b stream.Mapping) int { return int(int64(a.Gen) - int64(b.Gen)) })
	list := m[:0]
	for _, e := range m {
		if n := len(list); n > 0 && list[n-1].Gen == e.Gen {
			list[n-1] = e
			continue
		}
		list = append(list, e)
	}
	return list
}

// positions adds the vISA instruction of each place of a function's code to the
// answer.
func (o *codeObject) positions(c *codeSection, f *function, object *stream.Object) {
	m := sdk.PositionMap{Kind: positionKind, Section: c.index}
	for _, e := range indexMapOf(object) {
		m.PCs = append(m.PCs, f.start+uint64(e.Gen))
		m.Positions = append(m.Positions, uint64(e.VISA))
	}
	o.answer.PositionMaps = append(o.answer.PositionMaps, m)
}

// maxSubroutines bounds the subroutines of a function.
const maxSubroutines = 256

// findSubroutines finds the code of the subroutines of a function, and where
// their return addresses are. It returns the problems.
func (f *function) findSubroutines(object *stream.Object, code []byte) (problems []string) {
	if len(object.Subroutines) == 0 {
		return nil
	}
	m, encoded := indexMapOf(object), callsOf(code)
	for i := range object.Subroutines {
		if i == maxSubroutines {
			f.hasUnfound = true
			return append(problems, fmt.Sprintf("more than %d subroutines: the others are left out", maxSubroutines))
		}
		s, err := f.findSubroutine(&object.Subroutines[i], m, encoded)
		if err != nil {
			f.hasUnfound = true
			problems = append(problems, fmt.Sprintf("subroutine %s: %v", object.Subroutines[i].Name, err))
			continue
		}
		index := sort.Search(len(f.subroutines), func(i int) bool { return f.subroutines[i].start >= s.start })
		if index < len(f.subroutines) && f.subroutines[index].start < s.end || index > 0 && f.subroutines[index-1].end > s.start {
			f.hasUnfound = true
			problems = append(problems, fmt.Sprintf("subroutine %s: its code, %#x to %#x, is another one's, too", s.name, s.start, s.end))
			continue
		}
		f.subroutines = slices.Insert(f.subroutines, index, *s)
	}
	return problems
}

// findSubroutine finds where the return address of a subroutine is, and its code.
//
// The return address stays in one register from the call to the return. The code
// is that from the target of a call which puts the return address there, to the
// return that takes it from there. Where there is no code to read, it is that of
// the vISA instructions, if that is in one piece: index maps have instructions of
// one part in another, too, which are not told from others.
func (f *function) findSubroutine(from *stream.Subroutine, m indexMap, encoded []*calls) (*subroutine, error) {
	where, err := oneInterval(from.ReturnValue, "the return address")
	if err != nil {
		return nil, err
	}
	l := where.Location
	if where.Start > from.Start || where.End < from.End || l.Storage != stream.General || l.Register >= maxRegisters || l.Subregister > grf64/8-4 {
		return nil, fmt.Errorf("the return address is in %v from vISA instruction %d to %d, expected it in a general register in all of %d to %d",
			l.Storage, where.Start, where.End, from.Start, from.End)
	}
	s := &subroutine{name: from.Name, first: from.Start, last: from.End, register: generalRegister(uint32(l.Register)), offset: uint64(l.Subregister)}
	s.live = where
	if len(encoded) == 0 {
		s.start, s.end, err = m.piece(from.Start, from.End)
	} else {
		err = s.find(encoded, registerByte{uint32(l.Register), uint32(l.Subregister)}, func(start uint64) bool {
			visa, ok := m.at(start)
			return ok && visa >= from.Start && visa <= from.End
		})
	}
	if err == nil && s.end > f.size {
		err = fmt.Errorf("it ends at %#x, expected at most %#x", s.end, f.size)
	}
	return s, err
}

// find finds the code by its calls. Where encodings lead to different code,
// nothing is known.
func (s *subroutine) find(encoded []*calls, place registerByte, is func(uint64) bool) (err error) {
	for _, c := range encoded {
		start, end, e := c.subroutine(place, is)
		switch {
		case e != nil:
			err = e
		case s.end != 0 && (s.start != start || s.end != end):
			return fmt.Errorf("its code may begin at %#x or at %#x", s.start, start)
		default:
			s.start, s.end = start, end
		}
	}
	if s.end != 0 {
		return nil
	}
	return err
}

// at returns the vISA instruction of the code at an offset.
func (m indexMap) at(offset uint64) (visa uint32, ok bool) {
	i := sort.Search(len(m), func(i int) bool { return uint64(m[i].Gen) > offset })
	if i == 0 {
		return 0, false
	}
	return m[i-1].VISA, true
}

// piece returns the code of vISA instructions, which must be in one piece.
func (m indexMap) piece(visa, last uint32) (start, end uint64, err error) {
	isMeant := func(e stream.Mapping) bool { return e.VISA >= visa && e.VISA <= last }
	i := slices.IndexFunc(m, isMeant)
	if i < 0 {
		return 0, 0, fmt.Errorf("no code of vISA instructions %d to %d", visa, last)
	}
	j := i
	for j < len(m) && isMeant(m[j]) {
		j++
	}
	if j == len(m) || slices.ContainsFunc(m[j:], isMeant) {
		return 0, 0, fmt.Errorf("the code of vISA instructions %d to %d is in several pieces", visa, last)
	}
	return uint64(m[i].Gen), uint64(m[j].Gen), nil
}
