// SPDX-License-Identifier: Apache-2.0

package pdbtypes

import (
	"encoding/binary"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/codeview"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/leb128"
)

// attr is an attribute of an entry.
type attr struct {
	name dw.Attr
	form dw.Form
	n    uint64
	b    []byte // of texts and expressions
}

func named(name string) attr { return attr{name: dw.AttrName, form: dw.FormString, b: []byte(name)} }

func number(name dw.Attr, n uint64) attr { return attr{name: name, form: dw.FormUdata, n: n} }

func negative(name dw.Attr, n int64) attr { return attr{name: name, form: dw.FormSdata, n: uint64(n)} } //nolint:gosec // two's complement

func flag(name dw.Attr) attr { return attr{name: name, form: dw.FormFlagPresent} }

func expression(name dw.Attr, b []byte) attr { return attr{name: name, form: dw.FormExprloc, b: b} }

func signature(name dw.Attr, index codeview.TypeIndex) attr {
	return attr{name: name, form: dw.FormRefSig8, n: uint64(index)}
}

// maxUnit bounds the bytes of a unit: 65,536 members take a few MiB.
const maxUnit = 16 << 20

// unit is a unit of DWARF 5 that is being written.
type unit struct {
	*maker
	out   dwarf.GeneratedUnit
	codes map[string]uint64 // of abbreviations, by their bytes
	open  int               // entries whose children are being written
	holes []hole
	local map[codeview.TypeIndex]uint32 // offsets of the types that are in the unit itself
	queue []codeview.TypeIndex          // such types that are still to be written
}

// hole is where the offset of a type of the unit belongs.
type hole struct {
	offset int
	index  codeview.TypeIndex
}

const (
	unitCompile = 1
	unitType    = 2
)

// newUnit begins a unit; isType tells a type unit, of a signature.
func (m *maker) newUnit(isType bool, signature uint64) *unit {
	u := &unit{maker: m, codes: map[string]uint64{}, local: map[codeview.TypeIndex]uint32{}}
	kind := byte(unitCompile)
	if isType {
		kind = unitType
	}
	u.out.Info = append(u.out.Info, 0, 0, 0, 0, 5, 0, kind, byte(m.machine.addressSize), 0, 0, 0, 0)
	if isType {
		u.out.Info = binary.LittleEndian.AppendUint64(u.out.Info, signature)
		u.out.Info = append(u.out.Info, 0, 0, 0, 0)
	}
	return u
}

const typeOffsetAt = 20 // of the offset of its type in a type unit

// here is the offset of the next entry.
func (u *unit) here() uint32 { return uint32(len(u.out.Info)) } //nolint:gosec // at most maxUnit

// entry begins an entry. With hasChildren, end ends it.
func (u *unit) entry(tag dw.Tag, hasChildren bool, attrs ...attr) {
	u.out.Info = binary.AppendUvarint(u.out.Info, u.code(tag, hasChildren, attrs))
	for i := range attrs {
		u.value(&attrs[i])
	}
	if hasChildren {
		u.open++
	}
}

// code is the abbreviation of an entry.
func (u *unit) code(tag dw.Tag, hasChildren bool, attrs []attr) uint64 {
	key := binary.AppendUvarint(nil, uint64(tag))
	if hasChildren {
		key = append(key, 1)
	} else {
		key = append(key, 0)
	}
	for i := range attrs {
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(attrs[i].name)), uint64(attrs[i].form))
	}
	key = append(key, 0, 0)
	code := u.codes[string(key)]
	if code == 0 {
		code = uint64(len(u.codes)) + 1
		u.codes[string(key)] = code
		u.out.Abbrev = append(binary.AppendUvarint(u.out.Abbrev, code), key...)
	}
	return code
}

func (u *unit) value(a *attr) {
	b := u.out.Info
	switch a.form {
	case dw.FormString:
		b = append(append(b, a.b...), 0)
	case dw.FormUdata:
		b = binary.AppendUvarint(b, a.n)
	case dw.FormSdata:
		b = leb128.AppendSigned(b, int64(a.n)) //nolint:gosec // two's complement
	case dw.FormExprloc:
		b = append(binary.AppendUvarint(b, uint64(len(a.b))), a.b...)
	case dw.FormRefSig8, dw.FormData8:
		b = binary.LittleEndian.AppendUint64(b, a.n)
	case dw.FormSecOffset:
		b = binary.LittleEndian.AppendUint32(b, uint32(a.n)) //nolint:gosec // of a small section
	case dw.FormRef4:
		u.holes = append(u.holes, hole{len(b), codeview.TypeIndex(a.n)}) //nolint:gosec // an index
		b = append(b, 0, 0, 0, 0)
	case dw.FormAddr:
		b = u.appendAddress(b, a.n)
	}
	u.out.Info = b
}

func (u *unit) appendAddress(b []byte, address uint64) []byte {
	b = binary.LittleEndian.AppendUint64(b, address)
	return b[:len(b)-8+int(u.machine.addressSize)] //nolint:gosec // 4 or 8
}

// end ends the children of the innermost entry.
func (u *unit) end() {
	u.out.Info = append(u.out.Info, 0)
	u.open--
}

// finish writes the types that the unit refers to, and ends it. The unit's first entry is open.
func (u *unit) finish() (dwarf.GeneratedUnit, error) {
	for len(u.queue) > 0 {
		index := u.queue[0]
		u.queue = u.queue[1:]
		u.writeLocal(index)
		if len(u.out.Info)+len(u.out.Loclists)+len(u.out.Rnglists) > maxUnit {
			return dwarf.GeneratedUnit{}, fmt.Errorf("%s: a function or a type of more than %d bytes of descriptions", u.file.Name(), maxUnit)
		}
	}
	for u.open > 0 {
		u.end()
	}
	u.out.Abbrev = append(u.out.Abbrev, 0)
	for _, h := range u.holes {
		binary.LittleEndian.PutUint32(u.out.Info[h.offset:], u.local[h.index])
	}
	binary.LittleEndian.PutUint32(u.out.Info, u.here()-4)
	return u.out, nil
}

// code ranges and location lists (DWARF 5, 7.25 and 7.29).
const (
	rleEnd      = 0
	rleStartEnd = 6
	lleEnd      = 0
	lleStartEnd = 7
)

// ranges writes code as a list, and returns the attribute for it.
func (u *unit) ranges(list []symbol.CodeRange) attr {
	at := len(u.out.Rnglists)
	for _, r := range list {
		u.out.Rnglists = append(u.out.Rnglists, rleStartEnd)
		u.out.Rnglists = u.appendAddress(u.appendAddress(u.out.Rnglists, r.Start), r.End)
	}
	u.out.Rnglists = append(u.out.Rnglists, rleEnd)
	return attr{name: dw.AttrRanges, form: dw.FormSecOffset, n: uint64(at)} //nolint:gosec // not negative
}

// placed is an expression and the code in which it holds.
type placed struct {
	symbol.CodeRange
	expr []byte
}

// locations writes a location list, and returns the attribute for it.
func (u *unit) locations(list []placed) attr {
	at := len(u.out.Loclists)
	b := u.out.Loclists
	for i := range list {
		b = append(b, lleStartEnd)
		b = u.appendAddress(u.appendAddress(b, list[i].Start), list[i].End)
		b = append(binary.AppendUvarint(b, uint64(len(list[i].expr))), list[i].expr...)
	}
	u.out.Loclists = append(b, lleEnd)
	return attr{name: dw.AttrLocation, form: dw.FormSecOffset, n: uint64(at)} //nolint:gosec // not negative
}
