// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"errors"
	"fmt"
	"sort"
)

// An ARM64Operation is the effect of an instruction of a prologue or an epilogue of arm64 ("ARM64
// exception handling", Unwind codes).
type ARM64Operation uint8

// The operations. Several codes that differ in the room for their operands are one operation each, as
// llvm-readobj and the document list them.
const (
	ARM64AllocS ARM64Operation = iota
	ARM64SaveR19R20X
	ARM64SaveFPLR
	ARM64SaveFPLRX
	ARM64AllocM
	ARM64SaveRegP
	ARM64SaveRegPX
	ARM64SaveReg
	ARM64SaveRegX
	ARM64SaveLRPair
	ARM64SaveFRegP
	ARM64SaveFRegPX
	ARM64SaveFReg
	ARM64SaveFRegX
	ARM64AllocZ
	ARM64AllocL
	ARM64SetFP
	ARM64AddFP
	ARM64Nop
	ARM64End
	ARM64EndC
	ARM64SaveNext
	ARM64SaveAnyReg
	ARM64TrapFrame
	ARM64MachineFrame
	ARM64Context
	ARM64ECContext
	ARM64ClearUnwoundToCall
	ARM64PACSignLR
	arm64Reserved
)

// arm64Kind is how an operation is undone.
type arm64Kind uint8

const (
	doesNothing arm64Kind = iota
	allocates
	saves
	setsFrame
	signs
	ends
	pushes // the system, or an assembly routine, stored registers: there is no instruction
)

// arm64Operations are the operations: their names in the document, and how they are undone.
var arm64Operations = [...]struct {
	name string
	kind arm64Kind
}{
	ARM64AllocS: {"alloc_s", allocates}, ARM64AllocM: {"alloc_m", allocates}, ARM64AllocL: {"alloc_l", allocates}, ARM64AllocZ: {"alloc_z", allocates},
	ARM64SaveR19R20X: {"save_r19r20_x", saves}, ARM64SaveFPLR: {"save_fplr", saves}, ARM64SaveFPLRX: {"save_fplr_x", saves},
	ARM64SaveRegP: {"save_regp", saves}, ARM64SaveRegPX: {"save_regp_x", saves}, ARM64SaveReg: {"save_reg", saves}, ARM64SaveRegX: {"save_reg_x", saves},
	ARM64SaveLRPair: {"save_lrpair", saves}, ARM64SaveFRegP: {"save_fregp", saves}, ARM64SaveFRegPX: {"save_fregp_x", saves},
	ARM64SaveFReg: {"save_freg", saves}, ARM64SaveFRegX: {"save_freg_x", saves}, ARM64SaveNext: {"save_next", saves}, ARM64SaveAnyReg: {"save_any_reg", saves},
	ARM64SetFP: {"set_fp", setsFrame}, ARM64AddFP: {"add_fp", setsFrame}, ARM64Nop: {"nop", doesNothing},
	ARM64End: {"end", ends}, ARM64EndC: {"end_c", ends},
	ARM64TrapFrame: {"trap_frame", pushes}, ARM64MachineFrame: {"machine_frame", pushes}, ARM64Context: {"context", pushes},
	ARM64ECContext: {"ec_context", pushes}, ARM64ClearUnwoundToCall: {"clear_unwound_to_call", pushes},
	ARM64PACSignLR: {"pac_sign_lr", signs}, arm64Reserved: {"reserved", doesNothing},
}

// String returns the operation's name in the document, without MSFT_OP_.
func (o ARM64Operation) String() string {
	if int(o) < len(arm64Operations) {
		return arm64Operations[o].name
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// An ARM64Code is an unwind code of arm64.
type ARM64Code struct {
	Operation ARM64Operation
	// Registers that are saved, one behind the other, by their DWARF numbers: 0 to 30 for x0 to x30, 64
	// to 95 for v0 to v31, 48 to 63 for p0 to p15, 96 to 127 for z0 to z31. Count is how many there are.
	Registers [2]uint8
	Count     uint8
	// Value is the bytes that are allocated; the offset from sp at which registers are saved, in bytes, or
	// with IsPre the bytes by which sp is lowered before; of add_fp the bytes of x29 above sp.
	Value uint32
	// IsPre: sp is lowered by Value, and the registers are saved at it.
	IsPre bool
	// Scale is the unit of Value where that counts no bytes: 1 for an eighth of the length of a vector,
	// which is the length of a predicate, and 8 for the length of a vector. Else it is 0.
	Scale uint8
	// Size is the bytes of each register that is saved; 0 for registers of SVE.
	Size uint8
}

// DWARF numbers of arm64 (DWARF for the Arm 64-bit architecture, 4.1).
const (
	arm64FP   = 29
	arm64LR   = 30
	arm64SP   = 31
	arm64PC   = 32
	arm64VG   = 46
	arm64P0   = 48
	arm64V0   = 64
	arm64Z0   = 96
	firstSave = 19 // x19, the first register that functions preserve
)

// An arm64Format is the encoding of a code: the operand is in the low bits, the register above it.
type arm64Format struct {
	first        byte // the lowest first byte; the next format's ends it
	size         int  // bytes
	operation    ARM64Operation
	bits         int    // of the operand
	unit, plus   uint32 // the value is (operand + plus) * unit
	register     uint8  // the first one that can be saved
	registerBits int
	step, count  uint8 // a register's number counts steps; count are saved
	isPre        bool
}

// arm64Formats are sorted by their first byte.
var arm64Formats = []arm64Format{
	{first: 0x00, size: 1, operation: ARM64AllocS, bits: 5, unit: 16},
	{first: 0x20, size: 1, operation: ARM64SaveR19R20X, bits: 5, unit: 8, register: firstSave, count: 2, isPre: true},
	{first: 0x40, size: 1, operation: ARM64SaveFPLR, bits: 6, unit: 8, register: arm64FP, count: 2},
	{first: 0x80, size: 1, operation: ARM64SaveFPLRX, bits: 6, unit: 8, plus: 1, register: arm64FP, count: 2, isPre: true},
	{first: 0xc0, size: 2, operation: ARM64AllocM, bits: 11, unit: 16},
	{first: 0xc8, size: 2, operation: ARM64SaveRegP, bits: 6, unit: 8, register: firstSave, registerBits: 4, step: 1, count: 2},
	{first: 0xcc, size: 2, operation: ARM64SaveRegPX, bits: 6, unit: 8, plus: 1, register: firstSave, registerBits: 4, step: 1, count: 2, isPre: true},
	{first: 0xd0, size: 2, operation: ARM64SaveReg, bits: 6, unit: 8, register: firstSave, registerBits: 4, step: 1, count: 1},
	{first: 0xd4, size: 2, operation: ARM64SaveRegX, bits: 5, unit: 8, plus: 1, register: firstSave, registerBits: 4, step: 1, count: 1, isPre: true},
	{first: 0xd6, size: 2, operation: ARM64SaveLRPair, bits: 6, unit: 8, register: firstSave, registerBits: 3, step: 2, count: 2},
	{first: 0xd8, size: 2, operation: ARM64SaveFRegP, bits: 6, unit: 8, register: arm64V0 + 8, registerBits: 3, step: 1, count: 2},
	{first: 0xda, size: 2, operation: ARM64SaveFRegPX, bits: 6, unit: 8, plus: 1, register: arm64V0 + 8, registerBits: 3, step: 1, count: 2, isPre: true},
	{first: 0xdc, size: 2, operation: ARM64SaveFReg, bits: 6, unit: 8, register: arm64V0 + 8, registerBits: 3, step: 1, count: 1},
	{first: 0xde, size: 2, operation: ARM64SaveFRegX, bits: 5, unit: 8, plus: 1, register: arm64V0 + 8, registerBits: 3, step: 1, count: 1, isPre: true},
	{first: 0xdf, size: 2, operation: ARM64AllocZ, bits: 8, unit: 1},
	{first: 0xe0, size: 4, operation: ARM64AllocL, bits: 24, unit: 16},
	{first: 0xe1, size: 1, operation: ARM64SetFP},
	{first: 0xe2, size: 2, operation: ARM64AddFP, bits: 8, unit: 8},
	{first: 0xe3, size: 1, operation: ARM64Nop},
	{first: 0xe4, size: 1, operation: ARM64End},
	{first: 0xe5, size: 1, operation: ARM64EndC},
	{first: 0xe6, size: 1, operation: ARM64SaveNext},
	{first: 0xe7, size: 3, operation: ARM64SaveAnyReg},
	{first: 0xe8, size: 1, operation: ARM64TrapFrame},
	{first: 0xe9, size: 1, operation: ARM64MachineFrame},
	{first: 0xea, size: 1, operation: ARM64Context},
	{first: 0xeb, size: 1, operation: ARM64ECContext},
	{first: 0xec, size: 1, operation: ARM64ClearUnwoundToCall},
	{first: 0xed, size: 1, operation: arm64Reserved},
	{first: 0xfc, size: 1, operation: ARM64PACSignLR},
	{first: 0xfd, size: 1, operation: arm64Reserved},
}

var (
	errCodeEnds     = errors.New("the unwind codes have no end")
	errReservedCode = errors.New("unwind code is reserved")
	errNothingNext  = errors.New("save_next without a pair of registers before it")
)

// arm64Codes decodes a sequence of codes from an offset on, up to its end.
func arm64Codes(b []byte, offset int) (list []ARM64Code, err error) {
	for offset < len(b) {
		i := sort.Search(len(arm64Formats), func(i int) bool { return arm64Formats[i].first > b[offset] }) - 1
		format := &arm64Formats[i]
		if offset+format.size > len(b) {
			return nil, fmt.Errorf("byte %d: %v has %d bytes, %d are left", offset, format.operation, format.size, len(b)-offset)
		}
		c, err := format.decode(b[offset : offset+format.size])
		if err != nil {
			return nil, fmt.Errorf("byte %d: %w", offset, err)
		}
		list = append(list, c)
		if c.Operation == ARM64End {
			return list, resolveNext(list)
		}
		offset += format.size
	}
	return nil, errCodeEnds
}

// decode decodes a code, whose bytes have the highest first.
func (f *arm64Format) decode(b []byte) (c ARM64Code, err error) {
	switch f.operation {
	case arm64Reserved:
		return c, fmt.Errorf("%#x: %w", b[0], errReservedCode)
	case ARM64SaveAnyReg:
		return saveAnyReg(b[1], b[2])
	}
	value := uint32(0)
	for _, v := range b {
		value = value<<8 | uint32(v)
	}
	c = ARM64Code{Operation: f.operation, Count: f.count, IsPre: f.isPre, Value: (value&(1<<f.bits-1) + f.plus) * f.unit}
	if c.Operation == ARM64AllocZ {
		c.Scale = 8
	}
	if f.count > 0 {
		number := uint8(value>>f.bits&(1<<f.registerBits-1)) * f.step
		c.Registers = [2]uint8{f.register + number, f.register + number + 1}
		c.Size = 8
		if f.operation == ARM64SaveLRPair {
			c.Registers[1] = arm64LR
		}
	}
	return c, c.check()
}

// check refuses registers that there are not.
func (c *ARM64Code) check() error {
	for _, r := range c.Registers[:c.Count] {
		if r > arm64LR && r < arm64V0 {
			return fmt.Errorf("%v of register %d, expected x0 to x30", c.Operation, r)
		}
	}
	return nil
}

// saveAnyReg decodes save_any_reg: 0pxrrrrr nnoooooo, for one register or a pair, without and with a
// lowered sp; n is x, d, q, and for SVE's registers, which have 8 bits of offset: 0oo0rrrr 11oooooo
// saves z8 and others, 0oo1rrrr 11oooooo p0 and others.
func saveAnyReg(first, second byte) (c ARM64Code, err error) {
	if first&0x80 != 0 {
		return c, fmt.Errorf("save_any_reg with %#x: %w", first, errReservedCode)
	}
	c = ARM64Code{Operation: ARM64SaveAnyReg, Count: 1, Value: uint32(second & 0x3f)}
	if second>>6 == 3 {
		c.Value |= uint32(first>>5&3) << 6
		if c.Registers[0], c.Scale = arm64Z0+8+first&15, 8; first&0x10 != 0 {
			c.Registers[0], c.Scale = arm64P0+first&15, 1
		}
		return c, nil
	}
	isPair, number := first&0x40 != 0, first&31
	c.IsPre, c.Size = first&0x20 != 0, 8
	switch second >> 6 {
	case 0:
		c.Registers[0] = number
	case 1:
		c.Registers[0] = arm64V0 + number
	case 2:
		c.Registers[0], c.Size = arm64V0+number, 16
	}
	if c.Registers[1] = c.Registers[0] + 1; isPair {
		c.Count = 2
		if number == 31 {
			return c, fmt.Errorf("save_any_reg of a pair from register 31 on")
		}
	}
	unit := uint32(16)
	if !c.IsPre && !isPair && c.Size == 8 {
		unit = 8
	}
	if c.IsPre {
		c.Value++
	}
	c.Value *= unit
	return c, c.check()
}

// resolveNext gives save_next its registers and its place: the pair behind that of the code that it
// follows in the prologue, which comes behind it here. Behind x27 and x28 come d8 and d9.
func resolveNext(list []ARM64Code) error {
	for i := len(list) - 2; i >= 0; i-- {
		c, before := &list[i], &list[i+1]
		if c.Operation != ARM64SaveNext {
			continue
		}
		if before.Count != 2 || before.Operation == ARM64SaveLRPair {
			return errNothingNext
		}
		c.Registers[0] = before.Registers[0] + 2
		switch first := c.Registers[0]; {
		case first == arm64FP || first == arm64LR:
			c.Registers[0] = arm64V0 + 8
		case first == arm64SP || first == arm64PC || first >= arm64Z0-1:
			return errNothingNext
		}
		c.Registers[1] = c.Registers[0] + 1
		c.Count, c.Size = 2, before.Size
		if c.Value = 2 * uint32(before.Size); !before.IsPre {
			c.Value += before.Value
		}
	}
	return nil
}

// IsInstruction reports whether an instruction of the code belongs to the unwind code.
func (c *ARM64Code) IsInstruction() bool {
	kind := arm64Operations[c.Operation].kind
	return kind != pushes && kind != ends
}

// arm64Instructions returns how many instructions a sequence has up to its end, or up to the end
// of its own scope, which is the first; behind that come codes of the function that a fragment is
// of. isWhole: it ends with end, which in an epilogue is the instruction that leaves.
func arm64Instructions(list []ARM64Code) (n int, isWhole bool) {
	for i := range list {
		if c := &list[i]; arm64Operations[c.Operation].kind == ends {
			return n, c.Operation == ARM64End
		} else if c.IsInstruction() {
			n++
		}
	}
	return n, false
}
