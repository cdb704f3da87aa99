// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// dialects checks the dialects of the description. That names are known and no opcode is
// two operations is a part of the check of the description itself.
func (v *verifier) dialects() {
	for i := range v.desc.Dialects {
		d := &v.desc.Dialects[i]
		builtIn, isBuiltIn := locexpr.DialectByName(d.Name)
		switch {
		case isBuiltIn && builtIn.Name != d.Name:
			v.find(Warning, "Write the name as the built-in dialect has it: names of dialects are compared exactly.",
				"Description.Dialects[%d].Name: %s, and %s is built in", i, d.Name, builtIn.Name)
		case len(d.Operations) == 0 && !isBuiltIn:
			v.find(Warning, "List the operations with their opcodes, or leave the dialect out: without operations it is standard DWARF, and every expression of the vendor's is ill-formed. Built in are "+builtInNames()+".",
				"Description.Dialects[%d]: %s has no operations and is not built in", i, d.Name)
		}
		for j := range d.Operations {
			if k := slices.IndexFunc(d.Operations[:j], func(o sdk.DialectOperation) bool { return o.Name == d.Operations[j].Name }); k >= 0 {
				v.find(Warning, "Give each operation one encoding, unless compilers write several.",
					"Description.Dialects[%d].Operations[%d]: %s is Operations[%d] too", i, j, d.Operations[j].Name, k)
			}
		}
		for k := range v.desc.Dialects[:i] {
			if other := v.desc.Dialects[k].Name; strings.EqualFold(other, d.Name) {
				v.find(Warning, "Call them by names that differ in more than case.", "Description.Dialects[%d].Name: %s, and Dialects[%d] is %s", i, d.Name, k, other)
			}
		}
	}
}

// builtInNames lists the dialects that a description need not declare.
func builtInNames() string {
	names := make([]string, len(locexpr.Dialects))
	for i, d := range locexpr.Dialects {
		names[i] = d.Name
	}
	return strings.Join(names, ", ")
}

// dialectOf returns the dialect of a name, as the engine finds it; nil if there is none.
func (v *verifier) dialectOf(name string) *locexpr.Dialect {
	if name == "" {
		return locexpr.DWARF5
	}
	builtIn, _ := locexpr.DialectByName(name)
	for i := range v.desc.Dialects {
		if d := &v.desc.Dialects[i]; d.Name == name {
			if table, err := d.Table(); err == nil && (len(d.Operations) > 0 || builtIn == nil) {
				return table
			}
		}
	}
	return builtIn
}

// knownDialects returns the dialects of the description, and those that are built in.
func (v *verifier) knownDialects() (list []*locexpr.Dialect) {
	for i := range v.desc.Dialects {
		list = append(list, v.dialectOf(v.desc.Dialects[i].Name))
	}
	return append(list, locexpr.DWARF5, locexpr.LLVMUser, locexpr.LLVMLegacy, locexpr.Intel)
}

// The bounds of decoding a sample object: expressions, and entries of its debug
// information.
const (
	maxDecoded = 50_000
	maxEntries = 500_000
)

// objectDialects decodes the expressions of a sample object in the dialects that OpenObject
// answered for it.
func (v *verifier) objectDialects(o *Object, a *sdk.OpenObjectAnswer) {
	answered := []*locexpr.Dialect{v.dialectOf(a.Dialect)}
	for i := range a.Overrides {
		answered = append(answered, v.dialectOf(a.Overrides[i].Dialect))
	}
	left := maxDecoded
	decode := func(place string, expr []byte) bool {
		left--
		return left > 0 && v.ctx.Err() == nil && !v.undecoded(o, answered, place, expr)
	}
	v.frameExpressions(o, decode)
	v.debugExpressions(o, decode)
}

// undecoded reports whether an expression cannot be decoded in any of the answered dialects,
// and finds that.
func (v *verifier) undecoded(o *Object, answered []*locexpr.Dialect, place string, expr []byte) bool {
	var reason error
	for _, d := range answered {
		err := v.decoded(d, expr)
		if err == nil {
			return false
		}
		reason = errors.Join(reason, err)
	}
	names := make([]string, len(answered))
	for i, d := range answered {
		names[i] = d.Name
	}
	fix := "Answer, in Dialect or in Overrides, the dialect that the compiler of the object writes."
	if i := slices.IndexFunc(v.knownDialects(), func(d *locexpr.Dialect) bool { return v.decoded(d, expr) == nil }); i >= 0 {
		fix = fmt.Sprintf("Answer, in Dialect or in Overrides, the dialect that the compiler of the object writes: %s has all its operations.", v.knownDialects()[i].Name)
	}
	first, _, _ := strings.Cut(reason.Error(), "\n")
	v.findLater("expressions", fix, "%s: %s, in dialect %s: %s", o.Name, place, strings.Join(names, ", "), first)
	return true
}

// decoded returns the error of decoding an expression.
func (v *verifier) decoded(d *locexpr.Dialect, expr []byte) error {
	for _, err := range locexpr.Decode(expr, d, int(v.desc.AddressBits+7)/8, locexpr.ByteOrder(v.desc.ByteOrder)) {
		if err != nil {
			return err
		}
	}
	return nil
}

// order is the byte order of the architecture.
func (v *verifier) order() binary.ByteOrder {
	if v.desc.ByteOrder == sdk.BigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// frameExpressions decodes the expressions of an object's call frame information.
func (v *verifier) frameExpressions(o *Object, decode func(place string, expr []byte) bool) {
	for _, name := range []string{".eh_frame", ".debug_frame"} {
		data, err := o.Read(o.Request.Object, name)
		if err != nil {
			continue
		}
		table, err := cfi.NewTable(cfi.Section{Name: name, Data: data, EH: name == ".eh_frame", Order: v.order(), AddressSize: int(v.desc.AddressBits+7) / 8})
		if err != nil {
			continue
		}
		table.Rows(func(f *cfi.FDE, row *cfi.Row, _ error) bool {
			return row == nil || rowDecodes(fmt.Sprintf("%s, FDE at offset %#x, PC %#x", name, f.Offset, row.Start), row, decode)
		})
	}
}

// rowDecodes passes the expressions of a row to decode, until that returns false.
func rowDecodes(place string, row *cfi.Row, decode func(place string, expr []byte) bool) bool {
	if row.CFA.Kind == cfi.CFAExpression && !decode(place, row.CFA.Expr) {
		return false
	}
	for i := range row.Rules {
		if r := &row.Rules[i].Rule; (r.Kind == cfi.Expression || r.Kind == cfi.ValExpression) && !decode(place, r.Expr) {
			return false
		}
	}
	return true
}

// debugExpressions decodes the expressions of attributes of an object's debug information.
func (v *verifier) debugExpressions(o *Object, decode func(place string, expr []byte) bool) {
	// A file of a vendor's compiler is read as any other: what cannot be read ends it.
	defer func() { _ = recover() }()
	section := func(name string) []byte {
		data, _ := o.Read(o.Request.Object, name)
		return data
	}
	d, err := dwarf.New(section(".debug_abbrev"), nil, nil, section(".debug_info"), nil, nil, nil, section(".debug_str"))
	if err != nil {
		return
	}
	for _, name := range []string{".debug_addr", ".debug_line_str", ".debug_str_offsets", ".debug_rnglists"} {
		if data := section(name); data != nil {
			if d.AddSection(name, data) != nil {
				return
			}
		}
	}
	r := d.Reader()
	for range maxEntries {
		entry, err := r.Next()
		if err != nil || entry == nil {
			return
		}
		for _, f := range entry.Field {
			expr, ok := f.Val.([]byte)
			if ok && f.Class == dwarf.ClassExprLoc && !decode(fmt.Sprintf(".debug_info, entry at offset %#x, %v", entry.Offset, f.Attr), expr) {
				return
			}
		}
	}
}
