// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// This file gives what an object file describes the addresses of the program.

// moveLocation gives a location of an object file the addresses of the program; false where it is of data that the
// program does not have.
func (l *Location) moveLocation() (ok bool, err error) {
	b := l.Unit.b
	if !b.main().isPart {
		return true, nil
	}
	if l.Lists == nil {
		l.Expr, ok = b.movedExpression(l.Expr)
		return ok, nil
	}
	l.Lists, err = b.movedList(l)
	l.Offset, l.Base = 0, 0
	return err == nil, err
}

// Entries of location lists (DWARF 5, 7.7.3) that are made.
const (
	lleEndOfList       = 0x00
	lleDefaultLocation = 0x05
	lleStartEnd        = 0x07
)

// movedList makes a location list with the addresses of the program. An error of an entry ends it.
func (b *body) movedList(l *Location) (*locexpr.LocationLists, error) {
	made := &locexpr.LocationLists{
		Section: l.Lists.Section, Format: locexpr.DebugLoclists, AddressSize: l.Lists.AddressSize, OffsetSize: l.Lists.OffsetSize, Order: l.Lists.Order,
	}
	put := func(address uint64) {
		made.Data = append(made.Data, make([]byte, made.AddressSize)...)
		putAddress(made.Data[len(made.Data)-made.AddressSize:], b.format.isBigEndian, address)
	}
	for e, err := range l.Lists.Entries(l.Offset, l.Base, b.addrx) {
		if err != nil {
			return nil, err
		}
		expr, isThere := b.movedExpression(e.Expr)
		code, isMoved := b.main().movedSpan(span{e.Start, e.End})
		switch {
		case !isThere || e.IsDead:
			continue
		case e.IsDefault():
			made.Data = append(made.Data, lleDefaultLocation)
		case !isMoved || e.Start >= e.End:
			continue
		default:
			made.Data = append(made.Data, lleStartEnd)
			put(code.start)
			put(code.end)
		}
		made.Data = append(binary.AppendUvarint(made.Data, uint64(len(expr))), expr...)
	}
	made.Data = append(made.Data, lleEndOfList)
	return made, nil
}

// movedExpression returns an expression with the addresses of the program; false where it is of data that the program
// does not have. Operations behind one that cannot be decoded are not evaluated.
func (b *body) movedExpression(expr []byte) (moved []byte, ok bool) {
	if bytes.IndexByte(expr, dw.OpAddr) < 0 && bytes.IndexByte(expr, dw.OpConst8u) < 0 {
		return expr, true
	}
	order := locexpr.LittleEndian
	if b.format.isBigEndian {
		order = locexpr.BigEndian
	}
	size := int(b.format.addrSize)
	moved = slices.Clone(expr)
	last := -1 // the offset of a constant before the operation: the place of a thread's variable
	for instruction, err := range locexpr.Decode(expr, locexpr.Canonical, size, order) {
		if err != nil {
			break
		}
		at := instruction.Offset
		isThread := last >= 0 && (expr[at] == dw.OpFormTLSAddress || expr[at] == dw.OpGNUPushTLSAddress)
		switch {
		case expr[at] == dw.OpAddr:
			last = at
		case expr[at] == dw.OpConst8u && size == 8:
			last = at
			continue
		case !isThread:
			last = -1
			continue
		}
		operand := expr[last+1:][:size]
		address, err := b.main().moved(uintAt(operand, b.format.isBigEndian))
		if errors.Is(err, errLeftOut) {
			return nil, false
		}
		putAddress(moved[last+1:][:size], b.format.isBigEndian, address)
		last = -1
	}
	return moved, true
}

// putAddress writes an address of as many bytes as b has.
func putAddress(b []byte, isBigEndian bool, address uint64) {
	for i := range b {
		shift := 8 * i
		if isBigEndian {
			shift = 8 * (len(b) - 1 - i)
		}
		b[i] = byte(address >> shift)
	}
}

// movedLines returns the line table of a unit of an object file with the addresses of the program: with the
// functions of the unit that the program has.
func (b *body) movedLines(t *lineTable) (*lineTable, error) {
	x, err := b.functions.get(func() (*functions, error) { return b.findFunctions(false) })
	if err == nil && x.hasSkipped {
		x, err = b.all.get(func() (*functions, error) { return b.findFunctions(true) })
	}
	if err != nil {
		return nil, err
	}
	moved := *t
	moved.sequences = nil
	for code := range x.where.All() {
		from, distance, ok := b.file.origin(span{code.Start, code.End})
		if !ok {
			continue
		}
		if s := t.sequenceAt(from.start, false); s != nil {
			part := *s
			part.moved = distance
			part.span = span{code.Start, min(from.end, s.end) + distance}
			moved.sequences = append(moved.sequences, part)
		}
	}
	return &moved, nil
}

// origin returns where in the object file a range of the program's is, and the distance from there.
func (f *file) origin(s span) (from span, distance uint64, ok bool) {
	i, found := slices.BinarySearchFunc(f.byAddress(), s.start, func(m Moved, address uint64) int { return compare(m.Address, address) })
	if !found {
		i--
	}
	if i < 0 {
		return s, 0, false
	}
	m := &f.byAddress()[i]
	if s.start-m.Address >= m.End-m.Start {
		return s, 0, false
	}
	distance = m.Address - m.Start
	return span{s.start - distance, s.end - distance}, distance, true
}

// byAddress returns what the program has of the object file, by its places there.
func (f *file) byAddress() []Moved {
	list, _ := f.origins.get(func() ([]Moved, error) {
		list := slices.Clone(f.moves)
		slices.SortFunc(list, func(a, b Moved) int { return compare(a.Address, b.Address) })
		return list, nil
	})
	return list
}
