// SPDX-License-Identifier: Apache-2.0

package pdbtypes

import (
	"errors"
	"hash/maphash"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/symbol/codeview"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/symbol/pdb"
	"github.com/unwindd/unwindd/internal/dw"
)

// globals are the places of the records of variables, by a hash of the last parts of their names.
type globals struct {
	seed   maphash.Seed
	byName map[uint64][]pdb.GlobalPlace
}

// maxGlobals bounds the variables that are found by name.
const maxGlobals = 1 << 20

// maxSameGlobals bounds the variables with one name.
const maxSameGlobals = 1 << 8

// readGlobals reads the variables that each calls a function with.
func readGlobals(each func(func(pdb.GlobalPlace, pdb.Record) bool)) *globals {
	g := &globals{maphash.MakeSeed(), map[uint64][]pdb.GlobalPlace{}}
	count := 0
	each(func(place pdb.GlobalPlace, r pdb.Record) bool {
		name, ok := globalName(r)
		if !ok {
			return true
		}
		parts := split(name)
		key := maphash.String(g.seed, parts[len(parts)-1])
		if list := g.byName[key]; len(list) < maxSameGlobals {
			g.byName[key] = append(list, place)
		}
		count++
		return count < maxGlobals
	})
	return g
}

func globalName(r pdb.Record) (string, bool) {
	v, ok := decodeStatic(r)
	return v.name, ok && v.name != ""
}

var errNoVariable = errors.New("no variable")

// Global implements dwarf.Maker.
func (m *maker) Global(place uint64) (dwarf.GeneratedUnit, error) {
	r, ok := m.file.Global(pdb.GlobalPlace(place))
	if !ok {
		return dwarf.GeneratedUnit{}, errNoVariable
	}
	v, ok := decodeStatic(r)
	if !ok {
		return dwarf.GeneratedUnit{}, errNoVariable
	}
	u := m.newUnit(false, 0)
	u.entry(dw.TagCompileUnit, true, number(dw.AttrLanguage, dw.LangCPP14))
	v.name = u.enter(v.name)
	u.writeStatic(&v, false, flag(dw.AttrExternal))
	for u.open > 1 {
		u.end()
	}
	return u.finish()
}

// writeStatic writes a variable at an address, or a constant. isLocal tells one of a function.
func (u *unit) writeStatic(v *static, isLocal bool, more ...attr) {
	attrs := append(u.typed([]attr{named(v.name)}, v.typ), more...)
	switch {
	case v.isConstant:
		n, ok := v.value.Uint64()
		if isConst, isScalar := u.constancy(v.typ); !ok || !isScalar || isLocal && !isConst {
			// Of a variable that was optimized out LLVM writes one of the numbers that it, or a part
			// of it, had somewhere.
			u.entry(dw.TagVariable, false, attrs...)
			return
		}
		value := number(dw.AttrConstValue, n)
		if v.value.IsSigned {
			value = negative(dw.AttrConstValue, int64(n)) //nolint:gosec // two's complement
		}
		u.entry(dw.TagVariable, false, append(attrs, value)...)
	case v.isThread:
		expr := u.appendAddress([]byte{u.constOp()}, uint64(v.offset))
		u.entry(dw.TagVariable, false, append(attrs, expression(dw.AttrLocation, append(expr, dw.OpFormTLSAddress)))...)
	default:
		if address, ok := u.file.Address(v.section, v.offset); ok {
			attrs = append(attrs, expression(dw.AttrLocation, u.appendAddress([]byte{dw.OpAddr}, address)))
		}
		u.entry(dw.TagVariable, false, slices.Clip(attrs)...)
	}
}

// constOp is the operation of a constant as large as an address.
func (u *unit) constOp() byte {
	if u.machine.addressSize == 4 {
		return dw.OpConst4u
	}
	return dw.OpConst8u
}

// constancy reports whether a type is const, and whether its values are one number.
func (m *maker) constancy(index codeview.TypeIndex) (isConst, isScalar bool) {
	for range maxScopes {
		if s, ok := codeview.SimpleType(index); ok {
			return isConst, s.Encoding != 0
		}
		kind, data, err := m.types.Record(index)
		if err != nil {
			return isConst, false
		}
		if kind != codeview.LFModifier {
			return isConst, kind == codeview.LFPointer || kind == codeview.LFEnum
		}
		q, err := codeview.DecodeModifier(data)
		if err != nil {
			return isConst, false
		}
		isConst = isConst || q.Qualifiers&codeview.Const != 0
		index = q.Target
	}
	return isConst, false
}
