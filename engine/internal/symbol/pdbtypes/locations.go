// SPDX-License-Identifier: Apache-2.0

package pdbtypes

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/codeview"
	"github.com/unwindd/unwindd/engine/internal/symbol/framerules"
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

// virtualFrame is the value of $T0 in the function's body, by the program of the frame data there;
// nil: it is not known.
func (w *functionWriter) virtualFrame() []byte {
	var data symbol.FrameData
	if len(w.code) > 0 {
		data, _ = w.file.FrameData(w.code[0].End - 1)
	}
	tokens, err := framerules.Base(&data)
	if err != nil {
		w.problem(fmt.Errorf("%s: frame data at %#x: %w", w.file.Name(), data.Start, err))
	}
	var expr []byte
	for _, token := range tokens {
		code := frameTokens[token]
		if n, err := strconv.ParseUint(token, 10, 32); err == nil {
			code = binary.AppendUvarint([]byte{dw.OpConstu}, n)
		}
		if code == nil {
			return nil
		}
		expr = append(expr, code...)
	}
	return expr
}

// frameTokens are the operations of the tokens of programs of frame data. The return address lies
// below the CFA. "@" aligns down to a power of two.
var frameTokens = map[string][]byte{
	".raSearch": {dw.OpCallFrameCFA, dw.OpLit0 + 4, dw.OpMinus},
	"$ebx":      {dw.OpBreg0 + 3, 0}, "$esp": {dw.OpBreg0 + 4, 0}, "$ebp": {dw.OpBreg0 + 5, 0},
	"+": {dw.OpPlus}, "-": {dw.OpMinus}, "*": {dw.OpMul}, "@": {dw.OpNeg, dw.OpAnd}, "^": {dw.OpDeref},
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
	isPart      bool
	start, size uint64
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
	attrs := w.typed([]attr{named(v.name)}, v.typ)
	if v.isParameter && v.name == "this" {
		attrs = append(attrs, flag(dw.AttrArtificial))
	}
	if location, ok := w.location(v); ok {
		attrs = append(attrs, location)
		w.placed[variableName{v.name, v.typ}] = true
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
	slices.SortStableFunc(parts, func(a, b *place) int { return cmp.Compare(a.start, b.start) })
	done := uint64(0)
	for i, p := range parts {
		if !p.isPart { // the whole
			return p.expr
		}
		end := size
		if i+1 < len(parts) {
			end = min(end, parts[i+1].start)
		}
		if p.size > 0 {
			end = min(end, p.start+p.size)
		}
		if p.start < done || end <= p.start {
			continue
		}
		if p.start > done {
			expr = binary.AppendUvarint(append(expr, dw.OpPiece), p.start-done) // of which nothing is known
		}
		expr = binary.AppendUvarint(append(append(expr, p.expr...), dw.OpPiece), end-p.start)
		done = end
	}
	if done > 0 && done < size {
		expr = binary.AppendUvarint(append(expr, dw.OpPiece), size-done)
	}
	return expr
}

// scoped reads the code of a place (CV_LVAR_ADDR_RANGE and the gaps in it).
func (w *functionWriter) scoped(f *fields) []symbol.CodeRange {
	offset, section, size := f.U32(), f.U16(), uint32(f.U16())
	list := []symbol.CodeRange{}
	at := uint32(0)
	for len(f.Rest) >= 4 {
		gap, length := uint32(f.U16()), uint32(f.U16())
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
	f := fieldsOf(s.Data)
	typ, flags := f.typ(), f.U16()
	w.left = 0 // these tell which are parameters
	w.declare(f.Text(), typ, flags&localIsParameter != 0)
	return nil
}

// readFileStatic reads a static variable of a file that is in registers in the function.
func readFileStatic(w *functionWriter, s pdb.Record) error {
	f := fieldsOf(s.Data)
	typ := f.typ()
	f.Take(6)
	w.declare(f.Text(), typ, false)
	return nil
}

// declare begins a variable.
func (w *functionWriter) declare(name string, typ codeview.TypeIndex, isParameter bool) {
	w.variable = &variable{name: name, typ: typ, isParameter: isParameter}
}

// unknownRegister is the place by a register that is not known, as Microsoft's compiler for ARM64 has
// it: no architecture has that number, so that reading it is an error, which being optimized out is not.
var unknownRegister = append(binary.AppendUvarint([]byte{dw.OpBregx}, 0xffffff), 0)

// add adds a place to the variable.
func (w *functionWriter) add(p place) {
	if w.variable == nil || p.code != nil && len(p.code) == 0 {
		return
	}
	if p.expr == nil {
		p.expr = unknownRegister
	}
	w.variable.places = append(w.variable.places, p)
}

// inRegister is the expression of a register of CodeView; nil where DWARF has none.
func (w *functionWriter) inRegister(number uint16) (expr []byte, size uint64) {
	r, ok := w.machine.register(number)
	if !ok {
		return nil, 0
	}
	expr = registerExpr(nil, r.number)
	if r.start > 0 { // such as ah
		expr = append(expr, dw.OpBitPiece, byte(8*r.size), byte(8*r.start))
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
	f := fieldsOf(s.Data)
	expr, _ := w.inRegister(f.U16())
	f.U16()
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
	f := fieldsOf(s.Data)
	expr := w.ofFrame(f.i32())
	w.add(place{code: w.scoped(&f), expr: expr})
	return nil
}

func readDefFrameRelFull(w *functionWriter, s pdb.Record) error {
	f := fieldsOf(s.Data)
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
	f := fieldsOf(s.Data)
	expr, size := w.inRegister(f.U16())
	f.U16()
	at := uint64(f.U32() & partMask)
	w.add(place{code: w.scoped(&f), expr: expr, isPart: true, start: at, size: w.partSize(at, size)})
	return nil
}

// partSize is the size of the member at an offset of the variable, if there is one, and at most
// most.
func (w *functionWriter) partSize(offset, most uint64) uint64 {
	if w.variable == nil {
		return most
	}
	c, ok := w.types.UDT(w.types.Definition(w.variable.typ))
	if !ok || c.Fields == 0 {
		return most
	}
	_ = w.types.EachField(c.Fields, func(f *codeview.Field) bool { // without it the size of the register counts
		if f.Kind == codeview.LFMember && f.Offset == offset {
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
	f := fieldsOf(s.Data)
	number, flags := f.U16(), f.U16()
	expr := w.relative(number, f.i32())
	p := place{code: w.scoped(&f), expr: expr}
	if isMember := flags&1 != 0; isMember {
		p.isPart, p.start = true, uint64(flags>>4)
		p.size = w.partSize(p.start, unknownSize)
	}
	w.add(p)
	return nil
}

// readDefRegRelIndirect reads a place behind a pointer in memory.
func readDefRegRelIndirect(w *functionWriter, s pdb.Record) error {
	f := fieldsOf(s.Data)
	number, flags := f.U16(), f.U16()
	expr := w.relative(number, f.i32())
	within := f.i32()
	p := place{code: w.scoped(&f), expr: behind(expr, within)}
	if flags&1 != 0 {
		p.isPart, p.start = true, uint64(flags>>4)
		p.size = w.partSize(p.start, unknownSize)
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
// are its parameters. Microsoft's compiler writes variables of optimized code that are in memory once
// more so, behind the records of their places.
func (w *functionWriter) single(name string, typ codeview.TypeIndex, expr []byte, isBounded bool) error {
	if w.placed[variableName{name, typ}] {
		return nil
	}
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
	f := fieldsOf(s.Data)
	typ := f.typ()
	expr, _ := w.inRegister(f.U16())
	return w.single(f.Text(), typ, expr, false)
}

func readRegRelative(w *functionWriter, s pdb.Record) error {
	f := fieldsOf(s.Data)
	offset, typ := f.i32(), f.typ()
	expr := w.relative(f.U16(), offset)
	return w.single(f.Text(), typ, expr, true)
}

func readRegRelIndirect(w *functionWriter, s pdb.Record) error {
	f := fieldsOf(s.Data)
	offset, typ, within := f.i32(), f.typ(), f.i32()
	expr := behind(w.relative(f.U16(), offset), within)
	return w.single(f.Text(), typ, expr, true)
}

// readBPRelative reads a variable of 32-bit x86 in memory by ebp.
func readBPRelative(w *functionWriter, s pdb.Record) error {
	f := fieldsOf(s.Data)
	offset, typ := f.i32(), f.typ()
	b := w.machine.basePointers[2]
	return w.single(f.Text(), typ, w.relative(b, offset), true)
}
