// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/visa/stream"
)

// frameDialect is a style in which compilers have described frames in
// .debug_frame.
type frameDialect uint8

// The dialects of frames.
const (
	_ frameDialect = iota
	// taggedFrames were written until September 2023: addresses have the number of
	// the scratch space in their upper byte, and the return address is in the
	// column of a register that does not exist.
	taggedFrames
	// basedFrames were written until July 2024, and before with an option of the
	// compiler: addresses are in memory, in the thread's scratch space there.
	basedFrames
	// placedFrames are written since: registers are at places relative to the CFA,
	// and the return address is in the column of IP.
	placedFrames
)

// restoreSize is the size that compilers assume for the instruction that
// takes a frame down, whatever its true size.
const restoreSize = 16

// absentColumn is the return address column of older compilers, r128.
const absentColumn = 144

// described is a function as call frame information describes it.
type described struct {
	function
	dialect     frameDialect
	section     uint32       // of a relocatable object
	frame       stream.Frame // the frame that the same compiler would write into a stream
	rows        []cfi.Row    // of the FDE
	isOutermost bool         // the return address is undefined
}

// readFrames reads a table of call frame information. code returns the code at an
// address of a section, or nil.
func readFrames(t *cfi.Table, code func(section uint32, start, size uint64) []byte) (list []described, problems []string) {
	for fde, err := range t.FDEs() {
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		if fde.Start >= fde.End {
			continue
		}
		if len(list) == maxFunctions {
			problems = append(problems, fmt.Sprintf("call frame information of more than %d functions: the others are not looked at", maxFunctions))
			break
		}
		d, err := describe(fde, code)
		if err != nil {
			problems = append(problems, fmt.Sprintf("call frame information of %#x to %#x: %v", fde.Start, fde.End, err))
		}
		if d != nil {
			list = append(list, *d)
		}
	}
	return list, problems
}

// maxRowsOfFDE bounds the rows of one FDE.
const maxRowsOfFDE = 1 << 12

// describe reads an FDE. The result is nil where the compiler did not write
// the FDE.
func describe(fde *cfi.FDE, code func(section uint32, start, size uint64) []byte) (*described, error) {
	d := &described{section: fde.Code}
	d.start, d.size = fde.Start, fde.End-fde.Start
	rules := 0
	err := fde.Rows(func(r *cfi.Row) bool {
		rules += len(r.Rules)
		d.rows = append(d.rows, *r.Clone())
		return len(d.rows) < maxRowsOfFDE && rules < maxSaves*4
	})
	if err != nil {
		return nil, err
	}
	if len(d.rows) == 0 || d.rows[len(d.rows)-1].End != fde.End {
		return nil, fmt.Errorf("too many rows")
	}
	column := fde.CIE.ReturnAddress
	switch column {
	case uint64(ip):
		d.dialect = placedFrames
	case absentColumn:
		d.dialect = taggedFrames
		if a, ok := addressOf(d.rows[0].CFA.Expr); ok && a.isBased {
			d.dialect = basedFrames
		}
	default:
		return nil, nil
	}
	if rule, _ := d.rows[0].Rule(column); rule.Kind == cfi.Undefined {
		d.isKernel, d.isOutermost = true, true
		return d, nil
	} else if d.dialect != placedFrames && d.start == 0 && len(d.rows) == 1 && rule.Kind == cfi.Register {
		// A kernel's FDE alone describes no frame at all, and it is the first
		// in the code.
		d.isKernel = true
		return d, nil
	}
	return d, d.readRows(column, code(d.section, d.start, d.size))
}

// readRows finds the frame of a function in its rows. code is the function's.
func (d *described) readRows(column uint64, code []byte) error {
	first, last := -1, -1 // rows with the return address in memory
	for i := range d.rows {
		if rule, _ := d.rows[i].Rule(column); rule.Kind == cfi.Expression {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	switch {
	case first < 0: // a subroutine, or a function without a frame
		return nil
	case last == len(d.rows)-1:
		return fmt.Errorf("no row for when the frame has been taken down")
	}
	pointer, unit, err := d.pointerOf(&d.rows[first], column)
	if err != nil {
		return err
	}
	if d.abi, err = abiOf(pointer); err != nil {
		return err
	}
	behind := d.rows[last+1].Start - d.start
	d.set, d.down, d.unit = d.rows[first].Start-d.start, behind-min(behind, restoreSize), unit
	if d.down < d.set {
		d.abi = nil
		return fmt.Errorf("a frame from %#x to %#x", d.set, d.down)
	}
	interval := func(l stream.Location) []stream.Interval {
		return []stream.Interval{{Start: uint32(d.set), End: uint32(d.down), Virtual: stream.General, Location: l}} //nolint:gosec // checked below
	}
	if d.size > maxFunctionSize {
		d.abi = nil
		return fmt.Errorf("%#x bytes of code, expected at most %#x", d.size, uint64(maxFunctionSize))
	}
	d.frame = stream.Frame{
		BEFP:          interval(pointer),
		CallerBEFP:    interval(stream.Location{Storage: stream.Memory, Offset: int32(d.abi.fp)}), //nolint:gosec // less than 32
		ReturnAddress: interval(stream.Location{Storage: stream.Memory, Offset: int32(d.abi.ip)}), //nolint:gosec // less than 32
	}
	facts := factsOf(code, d.abi, d.set, d.down)
	if size := facts.grow * d.unit; size <= math.MaxUint16 {
		d.frame.Size = uint16(size)
	}
	d.grf = facts.grf
	if d.grf == 0 {
		d.grf = d.registerSize(first, last)
	}
	return d.readSaves(first)
}

// pointerOf returns where the frame pointer of a row is, and the unit that it
// counts.
func (d *described) pointerOf(r *cfi.Row, column uint64) (stream.Location, uint64, error) {
	expr := r.CFA.Expr
	if d.dialect != placedFrames {
		rule, _ := r.Rule(column)
		expr = rule.Expr
	}
	a, ok := addressOf(expr)
	n, general := generalNumber(uint32(a.register)) //nolint:gosec // checked by addressOf
	if !ok || !general || a.register > maxRegisterNumber || a.isLoaded || a.offset != 0 && d.dialect == placedFrames {
		return stream.Location{}, 0, fmt.Errorf("row at %#x: the frame is not at a register's value", r.Start)
	}
	return stream.Location{Storage: stream.General, Register: uint16(n), Subregister: uint16(a.bit / 8)}, a.unit, nil //nolint:gosec // checked by addressOf
}

// readSaves finds the registers with rules of saves in the rows.
func (d *described) readSaves(first int) error {
	var before []stream.SavedRegister
	size := d.grf
	if size == 0 {
		size = grf32 / 8 // the saved registers are known, their places are not
	}
	for i := first; i < len(d.rows); i++ {
		r := &d.rows[i]
		var list []stream.SavedRegister
		for j := range r.Rules {
			rule := &r.Rules[j]
			n, general := generalNumber(uint32(min(rule.Column, maxRegisterNumber))) //nolint:gosec // bounded
			if rule.Rule.Kind != cfi.Expression || !general || rule.Column == uint64(d.abi.descriptor) || rule.Column == absentColumn && d.dialect != placedFrames {
				continue
			}
			offset, ok := d.frameOffset(rule.Rule.Expr)
			if !ok {
				return fmt.Errorf("row at %#x: column %d: not in the frame", r.Start, rule.Column)
			}
			where := stream.Location{Storage: stream.Memory, Offset: offset}
			if d.grf == 0 {
				where = stream.Location{Storage: stream.Unknown}
			}
			list = append(list, stream.SavedRegister{Offset: uint16(uint64(n) * size), Bytes: uint16(size), Location: where}) //nolint:gosec // 512 registers of 64 bytes
		}
		if !slices.Equal(list, before) {
			d.frame.CalleeSaves = append(d.frame.CalleeSaves, stream.Save{GenOffset: uint32(r.Start - d.start), Registers: list}) //nolint:gosec // less than maxFunctionSize
			before = list
		}
	}
	return nil
}

// registerSize returns the size of general registers: the distance between the
// places where neighbouring registers are saved; 0 where no neighbours are.
// Where pointers count OWORDs it is 32 bytes.
func (d *described) registerSize(first, last int) uint64 {
	if d.unit == owordUnit {
		return grf32 / 8
	}
	for i := first; i <= last; i++ {
		rules := d.rows[i].Rules
		for j := 1; j < len(rules); j++ {
			a, b := &rules[j-1], &rules[j]
			if a.Rule.Kind != cfi.Expression || b.Rule.Kind != cfi.Expression || b.Column != a.Column+1 {
				continue
			}
			from, ok := d.frameOffset(a.Rule.Expr)
			to, okTo := d.frameOffset(b.Rule.Expr)
			if distance := int64(to) - int64(from); ok && okTo && (distance == grf32/8 || distance == grf64/8) {
				return uint64(distance)
			}
		}
	}
	return 0
}

// frameOffset returns the byte of the frame that an expression leads to.
func (d *described) frameOffset(expr []byte) (frameByte int32, ok bool) {
	var offset uint64
	if d.dialect == placedFrames {
		offset, ok = placeOf(expr)
	} else {
		var a address
		a, ok = addressOf(expr)
		offset = a.offset
		n, _ := generalIndex(d.abi.descriptor)
		ok = ok && !a.isLoaded && a.register == uint64(r0+n) && a.bit/8 == d.abi.fp && a.unit == d.unit
	}
	const most = 1<<30 - 1
	return int32(min(offset, most)), ok && offset <= most //nolint:gosec // bounded
}

// address is the address that an expression of the compiler computes: a word
// of a register, in units of so many bytes, and an offset.
type address struct {
	register, bit uint64
	unit          uint64
	offset        uint64
	isLoaded      bool // the 32 bits there are an address in the same units
	isBased       bool // the scratch space's base register is added; else a tag
}

// maxRegisterNumber is the highest DWARF number of a general register.
const maxRegisterNumber = 605

// addressOf reads an expression that computes an address in the scratch space.
func addressOf(expr []byte) (a address, ok bool) {
	p := parser{rest: operationsOf(expr), ok: true}
	if n, ok := p.one("DW_OP_regx"); ok {
		a.register = n
		a.bit = p.constant()
		p.expectConstant(32)
		p.expect("DW_OP_INTEL_push_bit_piece_stack")
	} else {
		a.register = p.constant()
		a.bit = p.constant()
		bits, ok := p.one("DW_OP_INTEL_regval_bits")
		p.ok = p.ok && ok && bits == 32
	}
	a.unit = p.unit()
	a.offset = p.plus()
	a.isBased = p.space()
	if len(p.rest) > 0 {
		a.isLoaded = true
		p.expect("DW_OP_deref")
		p.expectConstant(1<<32 - 1)
		p.expect("DW_OP_and")
		p.ok = p.ok && p.unit() == a.unit && p.space() == a.isBased
	}
	ok = p.ok && len(p.rest) == 0 && a.register <= maxRegisterNumber && a.bit%8 == 0 && a.bit < grf64
	return a, ok
}

// placeOf reads an expression that adds a number to the CFA.
func placeOf(expr []byte) (offset uint64, ok bool) {
	p := parser{rest: operationsOf(expr), ok: true}
	offset = p.plus()
	return offset, p.ok && len(p.rest) == 0
}

// maxOperations bounds the operations of an expression; the recognised ones
// have fewer.
const maxOperations = 32

// operationsOf decodes an expression; nil where it cannot be decoded.
func operationsOf(expr []byte) []locexpr.Instruction {
	var list []locexpr.Instruction
	for instruction, err := range locexpr.Decode(expr, locexpr.Intel, 8, locexpr.LittleEndian) {
		if err != nil || len(list) == maxOperations {
			return nil
		}
		list = append(list, instruction)
	}
	return list
}

// parser goes through the operations of an expression. ok becomes false at an
// unexpected operation.
type parser struct {
	rest []locexpr.Instruction
	ok   bool
}

// one takes an operation with an operand, if it is next.
func (p *parser) one(name string) (operand uint64, ok bool) {
	if len(p.rest) == 0 || p.rest[0].Op.Name != name {
		return 0, false
	}
	operand = p.rest[0].Operands[0]
	p.rest = p.rest[1:]
	return operand, true
}

func (p *parser) expect(name string) {
	_, ok := p.one(name)
	p.ok = p.ok && ok
}

// number takes a constant, if it is next.
func (p *parser) number() (n uint64, ok bool) {
	for _, name := range [...]string{"DW_OP_const1u", "DW_OP_const2u", "DW_OP_const4u", "DW_OP_const8u", "DW_OP_constu"} {
		if n, ok = p.one(name); ok {
			return n, true
		}
	}
	if len(p.rest) == 0 {
		return 0, false
	}
	literal, ok := strings.CutPrefix(p.rest[0].Op.Name, "DW_OP_lit")
	if n, err := strconv.ParseUint(literal, 10, 8); ok && err == nil {
		p.rest = p.rest[1:]
		return n, true
	}
	return 0, false
}

func (p *parser) constant() uint64 {
	n, ok := p.number()
	p.ok = p.ok && ok
	return n
}

func (p *parser) expectConstant(want uint64) { p.ok = p.constant() == want && p.ok }

// followedBy takes a constant and the operation behind it, if those are next.
func (p *parser) followedBy(name string) (n uint64, ok bool) {
	was := p.rest
	if n, ok = p.number(); ok {
		if _, ok = p.one(name); ok {
			return n, true
		}
	}
	p.rest = was
	return 0, false
}

// unit takes the multiplication by the unit of an address.
func (p *parser) unit() uint64 {
	if n, ok := p.followedBy("DW_OP_mul"); ok {
		p.ok = p.ok && n == owordUnit
		return n
	}
	return byteUnit
}

// plus takes the addition of a number.
func (p *parser) plus() uint64 {
	n, _ := p.followedBy("DW_OP_plus")
	return n
}

// space takes the operations that put an offset into the scratch space: the
// addition of its base, or a tag in the upper byte.
func (p *parser) space() (based bool) {
	for _, base := range [...]string{"DW_OP_breg6", "DW_OP_breg11"} {
		if n, ok := p.one(base); ok {
			p.expect("DW_OP_plus")
			p.ok = p.ok && n == 0
			return true
		}
	}
	n, ok := p.followedBy("DW_OP_or")
	p.ok = p.ok && ok && n == uint64(scratch)<<56
	return false
}

// newFrameTable opens .debug_frame.
func newFrameTable(data []byte, code func(uint64) (uint32, bool)) (*cfi.Table, error) {
	return cfi.NewTable(cfi.Section{
		Name: ".debug_frame", Data: data, Order: binary.LittleEndian, AddressSize: 8, Code: code,
	})
}
