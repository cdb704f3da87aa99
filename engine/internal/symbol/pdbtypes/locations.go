// SPDX-License-Identifier: Apache-2.0

package pdbtypes

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/codeview"
	"github.com/unwindd/unwindd/engine/internal/symbol/pdb"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/leb128"
)

// base is the register from which the variables of a function are addressed.
type base struct {
	isKnown  bool
	register register
	frame    []byte // an expression that yields the address instead of a register
}

// base is the register that S_FRAMEPROC numbers; the one of 32-bit x86 without a frame pointer is
// what the program of the frame data gives to $T0.
func (w *functionWriter) base(number uint32) base {
	n := w.machine.basePointers[number]
	if n == registerFrame {
		frame := w.virtualFrame()
		return base{isKnown: frame != nil, frame: frame}
	}
	r, ok := w.machine.register(n)
	return base{ok && n != 0, r, nil}
}

// virtualFrame is the value of $T0, by the program of the frame data: the address of the return
// address, ebp, or an aligned address below. nil: it is another one.
func (w *functionWriter) virtualFrame() []byte {
	top := leb128.AppendSigned([]byte{dw.OpCallFrameCFA, dw.OpConsts}, 4)
	top = append(top, dw.OpMinus)
	start, ok := w.records.Start()
	if !ok {
		return nil
	}
	data, ok := w.file.FrameData(start)
	if ok {
		if inner, isThere := w.file.FrameData(start + data.Prologue); isThere {
			data = inner
		}
	}
	if !ok || data.Program == "" {
		return top
	}
	words := strings.Fields(data.Program)
	for i := range words {
		if words[i] != "$T0" || i+2 >= len(words) {
			continue
		}
		switch {
		case words[i+1] == ".raSearch" && words[i+2] == "=":
			return top
		case words[i+1] == "$ebp" && words[i+2] == "=":
			return []byte{dw.OpBreg0 + 5, 0}
		}
		if i+6 < len(words) && words[i+1] == "$T1" && words[i+3] == "-" && words[i+5] == "@" && words[i+6] == "=" && strings.Contains(data.Program, "$T1 .raSearch =") {
			below, err := strconv.ParseUint(words[i+2], 10, 32)
			align, alignErr := strconv.ParseUint(words[i+4], 10, 32)
			if err != nil || alignErr != nil || align == 0 {
				return nil
			}
			expr := append(binary.AppendUvarint(append(top, dw.OpConstu), below), dw.OpMinus, dw.OpConsts)
			return append(leb128.AppendSigned(expr, -int64(align)), dw.OpAnd) //nolint:gosec // 32 bits
		}
		return nil
	}
	return nil
}

// at is the place at an offset from the base.
func (b *base) at(offset int64) []byte {
	if b.frame != nil {
		expr := leb128.AppendSigned(append(slices.Clone(b.frame), dw.OpConsts), offset)
		return append(expr, dw.OpPlus)
	}
	return registerPlus(b.register.number, offset)
}

// registerPlus is the memory at the address in a register, with an offset.
func registerPlus(number uint64, offset int64) []byte {
	if number < 32 {
		return leb128.AppendSigned([]byte{dw.OpBreg0 + byte(number)}, offset)
	}
	return leb128.AppendSigned(binary.AppendUvarint([]byte{dw.OpBregx}, number), offset)
}

// registerExpr appends the register of a number.
func registerExpr(b []byte, number uint64) []byte {
	if number < 32 {
		return append(b, dw.OpReg0+byte(number))
	}
	return binary.AppendUvarint(append(b, dw.OpRegx), number)
}

// place is where a variable, or a part of it, is in some code.
type place struct {
	code []symbol.CodeRange // nil: in all code
	expr []byte
	// Of a part: its offset in the variable and its size, in bytes; 0: it is not known.
	isPart   bool
	at, size uint64
}

// variable is a variable whose places are being read.
type variable struct {
	name        string
	typ         codeview.TypeIndex
	isParameter bool
	places      []place
}

// flush writes the variable whose places were read.
func (w *functionWriter) flush() {
	v := w.variable
	w.variable = nil
	if v == nil || w.hidden > 0 {
		return
	}
	attrs := w.typed([]attr{text(dw.AttrName, v.name)}, v.typ)
	if v.isParameter && v.name == "this" {
		attrs = append(attrs, flag(dw.AttrArtificial))
	}
	if location, ok := w.location(v); ok {
		attrs = append(attrs, location)
	}
	tag := dw.TagVariable
	if v.isParameter {
		tag = dw.TagFormalParameter
	}
	w.entry(tag, false, attrs...)
}

// location is where a variable is; false where it is nowhere.
func (w *functionWriter) location(v *variable) (attr, bool) {
	if len(v.places) == 0 {
		return attr{}, false
	}
	if p := &v.places[0]; len(v.places) == 1 && p.code == nil && !p.isPart {
		return expression(dw.AttrLocation, p.expr), true
	}
	var list []placed
	if slices.ContainsFunc(v.places, func(p place) bool { return p.isPart }) {
		size, _ := w.types.Size(v.typ)
		list = w.composed(v.places, size)
	} else {
		for i := range v.places {
			for _, c := range w.codeOf(&v.places[i]) {
				list = append(list, placed{c, v.places[i].expr})
			}
		}
	}
	if len(list) == 0 {
		return attr{}, false
	}
	return w.locations(list), true
}

func (w *functionWriter) codeOf(p *place) []symbol.CodeRange {
	if p.code == nil {
		return w.body
	}
	return p.code
}

// maxPieces bounds the places that are put together.
const maxPieces = 1 << 12

// composed puts the parts of a variable of size bytes together, for the code in which each of
// them holds.
func (w *functionWriter) composed(places []place, size uint64) (list []placed) {
	var edges []uint64
	for i := range places {
		for _, c := range w.codeOf(&places[i]) {
			edges = append(edges, c.Start, c.End)
		}
		if len(edges) > maxPieces {
			return nil
		}
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	for i := 0; i+1 < len(edges) && len(list) < maxPieces; i++ {
		var here []*place
		for j := range places {
			if slices.ContainsFunc(w.codeOf(&places[j]), func(c symbol.CodeRange) bool { return c.Start <= edges[i] && edges[i] < c.End }) {
				here = append(here, &places[j])
			}
		}
		if expr := joinParts(here, size); expr != nil {
			list = append(list, placed{symbol.CodeRange{Start: edges[i], End: edges[i+1]}, expr})
		}
	}
	return list
}

// joinParts is the expression of the parts of a variable; nil where there are none.
func joinParts(parts []*place, size uint64) (expr []byte) {
	slices.SortStableFunc(parts, func(a, b *place) int { return cmp.Compare(a.at, b.at) })
	done := uint64(0)
	for i, p := range parts {
		if !p.isPart { // the whole
			return p.expr
		}
		end := size
		if i+1 < len(parts) {
			end = min(end, parts[i+1].at)
		}
		if p.size > 0 {
			end = min(end, p.at+p.size)
		}
		if p.at < done || end <= p.at {
			continue
		}
		if p.at > done {
			expr = binary.AppendUvarint(append(expr, dw.OpPiece), p.at-done) // of which nothing is known
		}
		expr = binary.AppendUvarint(append(append(expr, p.expr...), dw.OpPiece), end-p.at)
		done = end
	}
	if done > 0 && done < size {
		expr = binary.AppendUvarint(append(expr, dw.OpPiece), size-done)
	}
	return expr
}

// scoped reads the code of a place (CV_LVAR_ADDR_RANGE and the gaps in it).
func (w *functionWriter) scoped(f *fields) []symbol.CodeRange {
	offset, section, size := f.u32(), f.u16(), uint32(f.u16())
	list := []symbol.CodeRange{}
	at := uint32(0)
	for len(f.b) >= 4 {
		gap, length := uint32(f.u16()), uint32(f.u16())
		if gap > at && gap <= size {
			list = append(list, w.file.Ranges(section, offset+at, gap-at)...)
		}
		at = max(at, min(gap+length, size))
	}
	if at < size {
		list = append(list, w.file.Ranges(section, offset+at, size-at)...)
	}
	return list
}

const (
	localIsParameter = 1 << 0
	partMask         = 0xfff
)

func readLocal(w *functionWriter, s pdb.Record) error {
	f := fields{b: s.Data}
	typ, flags := f.typ(), f.u16()
	w.declare(f.text(), typ, flags&localIsParameter != 0)
	return nil
}

// readFileStatic reads a static variable of a file that is in registers in the function.
func readFileStatic(w *functionWriter, s pdb.Record) error {
	f := fields{b: s.Data}
	typ := f.typ()
	f.take(6)
	w.declare(f.text(), typ, false)
	return nil
}

// declare begins a variable.
func (w *functionWriter) declare(name string, typ codeview.TypeIndex, isParameter bool) {
	w.variable = &variable{name: name, typ: typ, isParameter: isParameter}
}

// add adds a place to the variable.
func (w *functionWriter) add(p place) {
	if w.variable != nil && p.expr != nil && (p.code == nil || len(p.code) > 0) {
		w.variable.places = append(w.variable.places, p)
	}
}

// inRegister is the expression of a register of CodeView; nil where DWARF has none.
func (w *functionWriter) inRegister(number uint16) (expr []byte, size uint64) {
	r, ok := w.machine.register(number)
	if !ok {
		return nil, 0
	}
	expr = registerExpr(nil, r.number)
	if r.at > 0 { // such as ah
		expr = append(expr, dw.OpBitPiece, byte(8*r.size), byte(8*r.at))
	}
	return expr, r.size
}

// relative is the expression of memory by a register of CodeView; nil where DWARF has none.
func (w *functionWriter) relative(number uint16, offset int64) []byte {
	if number == registerFrame {
		b := base{frame: w.virtualFrame()}
		if b.frame == nil {
			return nil
		}
		return b.at(offset)
	}
	r, ok := w.machine.register(number)
	if !ok || r.size != w.machine.addressSize {
		return nil
	}
	return registerPlus(r.number, offset)
}

func readDefRegister(w *functionWriter, s pdb.Record) error {
	f := fields{b: s.Data}
	expr, _ := w.inRegister(f.u16())
	f.u16()
	w.add(place{code: w.scoped(&f), expr: expr})
	return nil
}

// ofFrame is the expression of memory by the register for the function's variables.
func (w *functionWriter) ofFrame(offset int64) []byte {
	b := &w.locals
	if w.variable != nil && w.variable.isParameter {
		b = &w.params
	}
	if !b.isKnown {
		return nil
	}
	return b.at(offset)
}

func readDefFrameRel(w *functionWriter, s pdb.Record) error {
	f := fields{b: s.Data}
	expr := w.ofFrame(f.i32())
	w.add(place{code: w.scoped(&f), expr: expr})
	return nil
}

func readDefFrameRelFull(w *functionWriter, s pdb.Record) error {
	f := fields{b: s.Data}
	w.add(place{code: w.wholeBody(), expr: w.ofFrame(f.i32())})
	return nil
}

// wholeBody is the code for a variable that has one place: nil where that is not bounded.
func (w *functionWriter) wholeBody() []symbol.CodeRange {
	if len(w.body) == len(w.code) && slices.Equal(w.body, w.code) {
		return nil
	}
	return w.body
}

func readDefSubfield(w *functionWriter, s pdb.Record) error {
	f := fields{b: s.Data}
	expr, size := w.inRegister(f.u16())
	f.u16()
	at := uint64(f.u32() & partMask)
	w.add(place{code: w.scoped(&f), expr: expr, isPart: true, at: at, size: w.partSize(at, size)})
	return nil
}

// partSize is the size of the member at an offset of the variable, if there is one, and at most
// most.
func (w *functionWriter) partSize(at, most uint64) uint64 {
	if w.variable == nil {
		return most
	}
	c, ok := w.types.UDT(w.types.Definition(w.variable.typ))
	if !ok || c.Fields == 0 {
		return most
	}
	_ = w.types.EachField(c.Fields, func(f *codeview.Field) bool { // without it the size of the register counts
		if f.Kind == codeview.LFMember && f.Offset == at {
			if size, ok := w.types.Size(f.Type); ok && size > 0 {
				most = min(most, size)
				return false
			}
		}
		return true
	})
	return most
}

const unknownSize = 1 << 32

func readDefRegRel(w *functionWriter, s pdb.Record) error {
	f := fields{b: s.Data}
	number, flags := f.u16(), f.u16()
	expr := w.relative(number, f.i32())
	p := place{code: w.scoped(&f), expr: expr}
	if isMember := flags&1 != 0; isMember {
		p.isPart, p.at = true, uint64(flags>>4)
		p.size = w.partSize(p.at, unknownSize)
	}
	w.add(p)
	return nil
}

// readDefRegRelIndirect reads a place behind a pointer in memory.
func readDefRegRelIndirect(w *functionWriter, s pdb.Record) error {
	f := fields{b: s.Data}
	number, flags := f.u16(), f.u16()
	expr := w.relative(number, f.i32())
	within := f.i32()
	p := place{code: w.scoped(&f), expr: behind(expr, within)}
	if flags&1 != 0 {
		p.isPart, p.at = true, uint64(flags>>4)
		p.size = w.partSize(p.at, unknownSize)
	}
	w.add(p)
	return nil
}

// behind is the memory at an offset from the address in memory.
func behind(expr []byte, offset int64) []byte {
	if expr == nil {
		return nil
	}
	return append(leb128.AppendSigned(append(slices.Clone(expr), dw.OpDeref, dw.OpConsts), offset), dw.OpPlus)
}

// single writes a variable that has one place in the whole body. The first of these in a function
// are its parameters.
func (w *functionWriter) single(name string, typ codeview.TypeIndex, expr []byte, isBounded bool) error {
	w.declare(name, typ, w.scopes == 0 && w.left > 0)
	w.left--
	p := place{expr: expr}
	if isBounded {
		p.code = w.wholeBody()
	}
	w.add(p)
	w.flush()
	return nil
}

func readRegister(w *functionWriter, s pdb.Record) error {
	f := fields{b: s.Data}
	typ := f.typ()
	expr, _ := w.inRegister(f.u16())
	return w.single(f.text(), typ, expr, false)
}

func readRegRelative(w *functionWriter, s pdb.Record) error {
	f := fields{b: s.Data}
	offset, typ := f.i32(), f.typ()
	expr := w.relative(f.u16(), offset)
	return w.single(f.text(), typ, expr, true)
}

func readRegRelIndirect(w *functionWriter, s pdb.Record) error {
	f := fields{b: s.Data}
	offset, typ, within := f.i32(), f.typ(), f.i32()
	expr := behind(w.relative(f.u16(), offset), within)
	return w.single(f.text(), typ, expr, true)
}

// readBPRelative reads a variable of 32-bit x86 in memory by ebp.
func readBPRelative(w *functionWriter, s pdb.Record) error {
	f := fields{b: s.Data}
	offset, typ := f.i32(), f.typ()
	b := w.machine.basePointers[2]
	return w.single(f.text(), typ, w.relative(b, offset), true)
}
