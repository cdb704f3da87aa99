// SPDX-License-Identifier: Apache-2.0

package isa

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// The values of the fields of sources.
const (
	srcInline0    = 128 // to 192: the numbers 0 to 64
	srcNegative1  = 193 // to srcNegative16: -1 to -16
	srcNegative16 = 208
	srcDPP8       = 233 // a word follows that names eight lanes
	srcDPP8FI     = 234 // likewise; lanes that are not active are read, too
	srcFloats     = 240 // to 248
	srcSDWA       = 249 // a word about parts of registers follows
	srcDPP        = 250 // a word about lanes follows
	srcSCC        = 253
	srcLiteral64  = 254
	srcLiteral    = 255
	srcVector     = 256
)

// The bits of a field that name a register.
const (
	scalarBits = 0x7f // a scalar register, in a field that has eight bits for vector registers
	wholeBits  = 0x7f // a vector register, where the eighth bit selects a half of it
	hwregBits  = 0x3f // a hardware register, in the constant of s_setreg and s_getreg
)

// Fields of words that no layout has, because few operations have them.
var (
	sdwaScalar    = field{8, 7}  // of the word after srcSDWA: where a comparison writes,
	sdwaHasScalar = field{15, 1} // if it does not write VCC
	vop3InputMods = field{8, 8}  // of VOP3: absolute values, halves of registers, and clamping
	vop3FloatMods = field{59, 5} // of VOP3: the result's factor, and negation
)

// Decode reads the instruction at the beginning of code, whose address is pc (for
// Target). The error is or wraps ErrTruncated or ErrUnknown; the length of an
// unknown instruction is unknown, too, and so is the code after it.
//
// Encodings that the documents of the instruction sets reserve are not always
// refused: a processor may not take an instruction that Decode knows.
func (t Target) Decode(code []byte, pc uint64) (Inst, error) {
	m := t.machine
	if m == nil {
		return Inst{}, fmt.Errorf("no target: %w", ErrUnknown)
	}
	if len(code) < 4 {
		return Inst{}, fmt.Errorf("%d bytes of code at %#x: %w", len(code), pc, ErrTruncated)
	}
	var w words
	for i := range w {
		if len(code) < 4*i+4 {
			break
		}
		w[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	l := m.byTop[w[0]>>23]
	if l == nil {
		return Inst{}, fmt.Errorf("%#08x at %#x: %w", w[0], pc, ErrUnknown)
	}
	if len(code) < int(l.size) {
		return Inst{}, fmt.Errorf("%d bytes of code at %#x, expected %d: %w", len(code), pc, l.size, ErrTruncated)
	}
	f := l.format
	if f == flat {
		f += format(l.segment.of(&w))
	}
	var e entry
	if f == vopd || f == vopd3 {
		e = m.entry(f, l.op.of(&w))
		if y := m.entry(f+1, l.opHigh.of(&w)); y.flags&known != 0 {
			e.flags |= y.flags & literal
		} else {
			e = y
		}
	} else {
		e = m.entry(f, l.op.of(&w)|l.opHigh.of(&w)<<l.op.bits)
	}
	if e.flags&known == 0 {
		return Inst{}, fmt.Errorf("%#08x at %#x: %w", w[0], pc, ErrUnknown)
	}
	d := decoder{target: t, layout: l, format: f, entry: e, words: w}
	d.inst.Op, d.inst.Size = e.op, l.size
	if d.format >= vop2 && d.format <= vop3 && e.flags&(mask|scalarDst) != 0 && l.dst.of(&w) > scalarBits {
		return Inst{}, fmt.Errorf("%#08x %#08x at %#x writes no register: %w", w[0], w[1], pc, ErrUnknown)
	}
	if !d.lengthen() {
		return Inst{}, fmt.Errorf("%#08x %#08x at %#x asks for a word that it cannot have: %w", w[0], w[1], pc, ErrUnknown)
	}
	if len(code) < int(d.inst.Size) {
		return Inst{}, fmt.Errorf("%d bytes of code at %#x, expected %d: %w", len(code), pc, d.inst.Size, ErrTruncated)
	}
	d.control(pc)
	d.operands()
	d.writes()
	return d.inst, nil
}

// decoder decodes one instruction.
type decoder struct {
	target  Target
	layout  *layout
	format  format
	entry   entry
	words   words
	literal uint64 // the lower half, or all of it
	lanes   uint32 // the source that names the word about lanes, or 0
	inst    Inst
}

// lengthen adds to the size the words that the sources and the addresses need. It
// returns false if they need a word that the format cannot have.
func (d *decoder) lengthen() bool {
	l, e, m := d.layout, &d.entry, d.target.machine
	if e.flags&prefix != 0 { // the matrix operation that it scales follows, and both are one instruction
		next := words{d.words[2], d.words[3]}
		if after := m.entry(vop3p, l.op.of(&next)); m.byTop[next[0]>>23] == l && after.flags&scaled != 0 {
			d.words, d.entry = next, after
			d.inst.Size = 16
		}
		return true
	}
	first := l.sources[0].of(&d.words)
	follows := d.literalSize(first)
	switch {
	case d.format == vop1 && e.width == 0 && e.flags == known: // it has no source: whether a word follows is not known
		if follows != 0 || first == srcDPP8 || first == srcDPP8FI || first == srcSDWA || first == srcDPP {
			return false
		}
	case d.format >= ds: // its source is data, in registers
		follows = 0
		if l.soffset.bits == 8 && l.soffset.of(&d.words) == srcLiteral {
			return false
		}
	case l.canHaveLanes && first == srcDPP, l.canHaveLanes && m.hasDPP8 && (first == srcDPP8 || first == srcDPP8FI), l.canHaveLanes && m.hasSDWA && first == srcSDWA:
		if d.lanes = first; follows != 0 { // both cannot follow
			return false
		}
		follows = 4
	default:
		if follows != 0 && !l.canHaveLiteral && e.flags&literal == 0 {
			return false
		}
	}
	if follows != 0 {
		d.literal = uint64(d.words[l.size/4])
	}
	if follows == 8 {
		d.literal |= uint64(d.words[l.size/4+1]) << 32
	}
	d.inst.Size += follows
	d.inst.Size += uint8(4 * l.addresses.of(&d.words))
	return true
}

// literalSize returns how many bytes of a literal the operation and its sources need.
// first is the first source.
func (d *decoder) literalSize(first uint32) uint8 {
	l, e := d.layout, &d.entry
	sources := [3]uint32{first}
	if e.op != SSetGPRIdx { // whose second source is eight bits of its own
		sources[1], sources[2] = l.sources[1].of(&d.words), l.sources[2].of(&d.words)
	}
	switch {
	case e.flags&literal64 != 0:
		return 8
	case e.flags&literal != 0: // which the sources share
		return 4
	case e.flags&sourceless != 0:
	case d.target.machine.hasLiteral64 && slices.Contains(sources[:], srcLiteral64):
		return 8
	case slices.Contains(sources[:], srcLiteral):
		return 4
	}
	return 0
}

// control sets where the instruction leads.
func (d *decoder) control(pc uint64) {
	d.inst.Flow = flows[d.inst.Op]
	switch d.inst.Flow {
	case Branch, CondBranch, Call:
		words := int64(int16(d.words[0]))
		d.inst.Target = pc + uint64(d.inst.Size) + uint64(4*words)
	}
	if d.inst.Op != SAddPC {
		return
	}
	d.inst.Flow = Fork
	if count := d.source(d.layout.sources[0].of(&d.words), 2); count.Kind == Constant {
		d.inst.Flow, d.inst.Target = Branch, pc+uint64(d.inst.Size)+uint64(count.Value) //nolint:gosec // modular
	}
}

// operands sets the operands of the operations that matter.
func (d *decoder) operands() {
	inst, l, w := &d.inst, d.layout, &d.words
	if inst.Op == Other {
		return
	}
	imm := Operand{Kind: Constant, Width: 1, Value: int64(int16(w[0]))}
	bits := imm
	bits.Value = int64(uint16(w[0]))
	width := max(d.entry.width, 1)
	switch d.format {
	case sop2:
		inst.Dst = d.scalar(l.dst.of(w), d.entry.width)
		second := width
		switch inst.Op {
		case SLshlB64, SLshrB64, SAshrI64:
			second = 1
		case SRfe, SFork:
			width, second = 2, 2
		}
		inst.Src[0], inst.Src[1] = d.source(l.sources[0].of(w), width), d.source(l.sources[1].of(w), second)
	case sop1:
		inst.Dst = d.scalar(l.dst.of(w), d.entry.width)
		switch inst.Op {
		case SGetpc:
			return
		case SSetpc, SRfe, SAddPC:
			width = 2
		}
		inst.Src[0] = d.source(l.sources[0].of(w), width)
	case sopk:
		inst.Dst = d.scalar(l.dst.of(w), d.entry.width)
		switch inst.Op {
		case SMovB32, SCmovB32:
			inst.Src[0] = imm
		case SAddI32, SMulI32:
			inst.Src[0], inst.Src[1] = inst.Dst, imm
		case SGetreg:
			inst.Src[1] = bits
		case SSetreg:
			inst.Src[1] = bits
			inst.Src[0] = d.scalar(l.dst.of(w), 1)
			if d.entry.flags&literal != 0 {
				inst.Src[0] = d.source(srcLiteral, 1)
			}
		}
	case sopc:
		inst.Src[0] = d.source(l.sources[0].of(w), 1)
		inst.Src[1] = Operand{Kind: Constant, Width: 1, Value: int64(l.sources[1].of(w))}
	case sopp:
		inst.Src[0] = bits
	case vop1, vop3, vop3p:
		d.vectorOperands(width)
	case mubuf:
		d.buffer()
	case scratch:
		d.scratch()
	}
}

// vectorOperands sets the operands of moves and of operations on single lanes.
func (d *decoder) vectorOperands(width uint8) {
	inst, l, w := &d.inst, d.layout, &d.words
	if inst.Op == VMovB32 || inst.Op == VMovB64 {
		modified := d.format == vop3 && (vop3InputMods.of(w) != 0 || vop3FloatMods.of(w) != 0)
		if d.lanes != 0 || modified {
			inst.Op = Other
			return
		}
	}
	inst.Src[0] = d.source(l.sources[0].of(w), width)
	if inst.Src[0].Kind == VGPR && d.entry.flags&fromAGPR != 0 {
		inst.Src[0].Kind = AGPR
	}
	if d.format == vop3 && (inst.Op == VReadlane || inst.Op == VWritelane) {
		inst.Src[1] = d.source(l.sources[1].of(w), 1)
	}
	if d.entry.flags&scalarDst != 0 {
		inst.Dst = d.scalar(l.dst.of(w)&scalarBits, width)
		return
	}
	inst.Dst = Operand{Kind: d.kind(), Width: width, Reg: uint16(l.dst.of(w))}
}

// kind returns the kind of the registers that a vector operation writes, or that a
// memory operation loads or stores.
func (d *decoder) kind() Kind {
	switch {
	case d.entry.flags&agpr != 0:
		return AGPR
	case (d.entry.flags&eitherFile != 0 || d.format >= ds && d.target.machine.isUnified) && d.layout.accumulate.of(&d.words) != 0:
		return AGPR
	}
	return VGPR
}

// data sets the registers that a load writes or a store reads.
func (d *decoder) data() {
	inst := &d.inst
	inst.Bytes = d.entry.bytes
	o := Operand{Kind: d.kind(), Width: (inst.Bytes + 3) / 4}
	if inst.Op == BufferLoad || inst.Op == ScratchLoad {
		o.Reg = uint16(d.layout.dst.of(&d.words))
		inst.Dst = o
		return
	}
	o.Reg = uint16(d.layout.sources[0].of(&d.words))
	inst.Src[0] = o
}

// buffer sets the operands of a buffer's load or store.
func (d *decoder) buffer() {
	inst, l, w := &d.inst, d.layout, &d.words
	if l.toLDS.of(w) != 0 {
		inst.Op = Other
		return
	}
	d.data()
	inst.IsIndexed = l.index.of(w) != 0
	if n := uint8(l.hasVAddr.of(w) + l.index.of(w)); n != 0 {
		inst.VAddr = Operand{Kind: VGPR, Width: n, Reg: uint16(l.vaddr.of(w))}
	}
	inst.Base = d.scalar(l.base.of(w)<<l.baseShift&scalarBits, 4)
	inst.SOffset = d.source(l.soffset.of(w), 1)
	inst.Offset = int32(l.offset.of(w))
}

// scratch sets the operands of a load from private memory, or of a store.
func (d *decoder) scratch() {
	inst, l, w, m := &d.inst, d.layout, &d.words, d.target.machine
	if d.entry.flags&lds != 0 && m.hasScratchToLDS && l.toLDS.of(w) != 0 {
		inst.Op = Other
		return
	}
	d.data()
	base := l.base.of(w)
	vaddr := base == m.noBase
	if base != m.noBase && base != m.noAddress {
		inst.Base = d.scalar(base, 1)
	}
	if l.hasVAddr.bits != 0 { // a bit of its own says so
		vaddr = l.hasVAddr.of(w) != 0
	} else if m.hasVAddrBit {
		vaddr = l.toLDS.of(w) != 0
	}
	if vaddr {
		inst.VAddr = Operand{Kind: VGPR, Width: 1, Reg: uint16(l.vaddr.of(w))}
	}
	inst.Offset = l.offset.signed(w)
}

// scalar returns the operand of scalar registers whose field is n, of seven
// bits.
func (d *decoder) scalar(n uint32, width uint8) Operand {
	if width == 0 {
		return Operand{}
	}
	m := d.target.machine
	if n &= scalarBits; m.scalars[n] != Null {
		n = aligned(n, width)
	}
	return Operand{Kind: Scalar, Width: width, Reg: uint16(m.scalars[n])}
}

// aligned rounds a field's value as processors do: pairs of scalar registers begin at even
// ones, longer runs at multiples of four.
func aligned(n uint32, width uint8) uint32 {
	switch width {
	case 1:
		return n
	case 2:
		return n &^ 1
	}
	return n &^ 3
}

// source returns the operand of a source's field.
func (d *decoder) source(n uint32, width uint8) Operand {
	o := Operand{Kind: Constant, Width: width}
	switch {
	case n >= srcVector:
		return Operand{Kind: VGPR, Width: width, Reg: uint16(n - srcVector)}
	case n < srcInline0:
		o = d.scalar(n, width)
		if o.Reg == uint16(Null) {
			return Operand{Kind: Constant, Width: width}
		}
	case n < srcNegative1:
		o.Value = int64(n) - srcInline0
	case n <= srcNegative16:
		o.Value = srcNegative1 - 1 - int64(n)
	case n >= srcFloats && n < srcSDWA && width == 2:
		o.Value = int64(math.Float64bits(floats[n-srcFloats]))
	case n >= srcFloats && n < srcSDWA:
		o.Value = int64(int32(math.Float32bits(float32(floats[n-srcFloats]))))
	case n == srcSCC:
		return Operand{Kind: Scalar, Width: 1, Reg: uint16(SCC)}
	case (n == srcLiteral || n == srcLiteral64 && d.target.machine.hasLiteral64) && d.layout.canHaveLiteral, n == srcLiteral && d.format == sopk:
		o.Value = int64(int32(d.literal)) //nolint:gosec // 32 bits of it
		if width == 2 && (n == srcLiteral64 || d.inst.Op != SAshrI64 && d.inst.Op != SAddPC) {
			o.Value = int64(d.literal) //nolint:gosec // its bits
		}
	default:
		return Operand{Kind: Machine, Width: width}
	}
	return o
}

// floats are the inline numbers with a fraction.
var floats = [9]float64{0.5, -0.5, 1, -1, 2, -2, 4, -4, 1 / (2 * math.Pi)}

// comparison sets the operation and the result of a comparison of vectors. All operations
// of VOPC are comparisons, and so are the operations of VOP3 that write only a mask.
// Comparisons that move or leave out lanes remain Other.
func (d *decoder) comparison(lanes uint8) {
	inst, e := &d.inst, d.entry
	if inst.Op != Other || d.lanes != 0 || d.format != vopc && (d.format != vop3 || e.flags&(mask|execDst) == 0) {
		return
	}
	inst.Op = VCmp
	if e.flags&execDst != 0 {
		inst.Op = VCmpx
	}
	switch {
	case e.flags&mask != 0:
		inst.Dst = d.scalar(d.layout.dst.of(&d.words), lanes)
	case e.flags&vcc == 0:
	default:
		inst.Dst = Operand{Kind: Scalar, Width: lanes, Reg: uint16(VCCLo)}
	}
}

// writes sets the registers that the instruction writes.
func (d *decoder) writes() {
	lanes := uint8(2) // scalar registers of a mask of lanes
	if d.target.isWave32 {
		lanes = 1
	}
	d.comparison(lanes)
	d.writeNamed(lanes)
	if d.hasResult() {
		d.writeResult(lanes)
		d.writeSecondResult(lanes)
	}
	if r := d.inst.Src[1].Value & hwregBits; d.inst.Op == SSetreg && d.target.machine.hasHardwareScratch && r >= hwScratchLo && r <= hwXNACKMask {
		d.inst.Writes.add(FlatScratchLo + Reg(r-hwScratchLo))
	}
}

// writeNamed adds the registers that the operation writes besides its operands:
// SCC, M0, VCC and EXEC, and whole files of registers.
func (d *decoder) writeNamed(lanes uint8) {
	e, out := d.entry, &d.inst.Writes
	out.IsOfAllLanes = e.flags&allLanes != 0
	out.HasUnknownScalars = e.flags&anyScalar != 0
	out.HasUnknownVectors = e.flags&anyVector != 0
	if e.flags&scc != 0 {
		out.add(SCC)
	}
	if e.flags&m0 != 0 {
		out.add(M0)
	}
	switch sdwa := (words{uint32(d.literal)}); { //nolint:gosec // 32 bits of it
	case e.flags&vcc == 0:
	case d.format == vopc && d.lanes == srcSDWA && d.target.machine.hasSDWAScalar && sdwaHasScalar.of(&sdwa) != 0:
		d.writeScalars(sdwaScalar.of(&sdwa), lanes)
	default:
		out.addRun(VCCLo, lanes)
	}
	if e.flags&execDst == 0 {
		return
	}
	switch {
	case d.format > sopp:
	case d.format == sop1 && e.width == 1: // scalar operations write as much of EXEC as they have operands
		lanes = 1
	default: // also those that split a wave, which have none
		lanes = 2
	}
	out.addRun(ExecLo, lanes)
}

// hasResult reports whether the instruction writes registers that it names. An atomic
// operation may return nothing, and a load may go to LDS.
func (d *decoder) hasResult() bool {
	e, l, w := d.entry, d.layout, &d.words
	if e.flags&returns != 0 && l.returns.bits != 0 && l.returns.of(w) == 0 {
		return false
	}
	mayGoToLDS := e.flags&lds != 0 && (d.format != scratch || d.target.machine.hasScratchToLDS)
	return !mayGoToLDS || l.toLDS.bits == 0 || l.toLDS.of(w) == 0
}

// writeResult adds the registers of the result.
func (d *decoder) writeResult(lanes uint8) {
	e, dst := d.entry, d.layout.dst.of(&d.words)
	switch {
	case e.flags&anyScalar != 0 && d.inst.Op == Other: // from this one on
		d.writeScalars(dst, 2)
	case e.flags&mask != 0:
		d.writeScalars(dst, lanes)
	case e.flags&scalarDst != 0:
		d.writeScalars(dst, e.width)
	case e.width != 0:
		d.inst.Writes.addVectors(d.kind(), d.whole(dst), d.vectorWidth())
	}
}

// writeSecondResult adds registers that are written besides the result.
func (d *decoder) writeSecondResult(lanes uint8) {
	e, l, w, out := d.entry, d.layout, &d.words, &d.inst.Writes
	switch {
	case e.flags&second != 0:
		d.writeScalars(l.second.of(w), lanes)
	case d.format == vopd3:
		out.addVectors(VGPR, uint16(l.second.of(w)), 1)
	case d.format == vopd: // one operation writes an even register, the other an odd one
		out.addVectors(VGPR, uint16(l.second.of(w)<<1|^l.dst.of(w)&1), 1)
	case e.flags&both == 0:
	case d.format == mimg:
		out.addVectors(VGPR, uint16(l.third.of(w)), 3)
		out.addVectors(VGPR, uint16(l.last3.of(w)), 3)
	default:
		out.addVectors(VGPR, d.whole(l.third.of(w)), 1)
	}
}

// whole returns the vector register of a field, which may name a half of it.
func (d *decoder) whole(n uint32) uint16 {
	if d.entry.flags&half != 0 && d.format != vop3 {
		n &= wholeBits
	}
	return uint16(n)
}

// Hardware registers from gfx10 on that are scalar registers on gfx9, FlatScratchLo and
// its successors, in this order.
const (
	hwScratchLo = 20
	hwXNACKMask = 22
)

// vectorWidth returns how many vector registers are written.
func (d *decoder) vectorWidth() uint8 {
	l, w, e := d.layout, &d.words, d.entry
	n := e.width
	switch {
	case e.flags&gather != 0:
		n = 4
	case e.flags&dmask != 0:
		n = max(ones[l.components.of(w)], e.width) // a comparison and exchange has two, whatever it says
	}
	if e.flags&(gather|dmask) != 0 && l.packed.of(w) != 0 {
		n = (n + 1) / 2
	}
	if !d.target.machine.isUnified && l.status.of(w)|l.warning.of(w) != 0 {
		n++
	}
	return n
}

// ones has the number of set bits of each number of four bits.
var ones = [16]uint8{0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4}

// writeScalars adds scalar registers from a field's value on.
func (d *decoder) writeScalars(n uint32, width uint8) {
	m := d.target.machine
	if m.scalars[n&scalarBits] == Null {
		return
	}
	n = aligned(n&scalarBits, width)
	for i := range uint32(width) {
		if n+i > scalarBits {
			break
		}
		d.inst.Writes.add(m.scalars[n+i])
	}
}

func (w *Writes) add(r Reg) {
	if r != Null {
		w.Scalars[r/64%3] |= 1 << (r % 64)
	}
}

func (w *Writes) addRun(r Reg, n uint8) {
	for i := range n {
		w.add(r + Reg(i))
	}
}

func (w *Writes) addVectors(k Kind, first uint16, n uint8) {
	for i := range w.Vectors {
		if w.Vectors[i].Kind == None {
			w.Vectors[i] = Span{Kind: k, Count: n, First: first}
			return
		}
	}
}
