// SPDX-License-Identifier: Apache-2.0

package locexpr

import "fmt"

// A row gives an operation its encoding.
type row struct {
	opcode byte
	user   uint64
	op     Operation
}

// op0, op1 and op2 make rows of operations with that many operands.
func op0(opcode byte, name string, eval func(*evaluation) error) row {
	return row{opcode: opcode, op: Operation{Name: name, eval: eval}}
}

func op1(opcode byte, name string, a OperandKind, eval func(*evaluation) error) row {
	return row{opcode: opcode, op: Operation{Name: name, Operands: [2]OperandKind{a}, eval: eval}}
}

func op2(opcode byte, name string, a, b OperandKind, eval func(*evaluation) error) row {
	return row{opcode: opcode, op: Operation{Name: name, Operands: [2]OperandKind{a, b}, eval: eval}}
}

// notInCFI marks a row whose operation call frame information must not use
// (A.6.4.2).
func notInCFI(r row) row {
	r.op.isBarredFromCFI = true
	return r
}

// quickOp marks a row whose operation has a quick case.
func quickOp(q quick, r row) row {
	r.op.quick = q
	return r
}

// standardRows are the operations of DWARF 5, 7.7.1, Table 7.9.
func standardRows() []row {
	rows := []row{
		op1(0x03, "DW_OP_addr", Address, opAddr),
		op0(0x06, "DW_OP_deref", opDeref),
		op1(0x08, "DW_OP_const1u", Unsigned1, opConst),
		op1(0x09, "DW_OP_const1s", Signed1, opConst),
		op1(0x0a, "DW_OP_const2u", Unsigned2, opConst),
		op1(0x0b, "DW_OP_const2s", Signed2, opConst),
		op1(0x0c, "DW_OP_const4u", Unsigned4, opConst),
		op1(0x0d, "DW_OP_const4s", Signed4, opConst),
		op1(0x0e, "DW_OP_const8u", Unsigned8, opConst),
		op1(0x0f, "DW_OP_const8s", Signed8, opConst),
		op1(0x10, "DW_OP_constu", ULEB, opConst),
		op1(0x11, "DW_OP_consts", SLEB, opConst),
		op0(0x12, "DW_OP_dup", opDup),
		op0(0x13, "DW_OP_drop", opDrop),
		op0(0x14, "DW_OP_over", opOver),
		op1(0x15, "DW_OP_pick", Unsigned1, opPick),
		op0(0x16, "DW_OP_swap", opSwap),
		op0(0x17, "DW_OP_rot", opRot),
		op0(0x18, "DW_OP_xderef", opXderef),
		op0(0x19, "DW_OP_abs", opAbs),
		quickOp(quickAnd, op0(0x1a, "DW_OP_and", opAnd)),
		op0(0x1b, "DW_OP_div", opDiv),
		quickOp(quickMinus, op0(0x1c, "DW_OP_minus", opMinus)),
		op0(0x1d, "DW_OP_mod", opMod),
		quickOp(quickMul, op0(0x1e, "DW_OP_mul", opMul)),
		op0(0x1f, "DW_OP_neg", opNeg),
		op0(0x20, "DW_OP_not", opNot),
		quickOp(quickOr, op0(0x21, "DW_OP_or", opOr)),
		quickOp(quickPlus, op0(0x22, "DW_OP_plus", opPlus)),
		quickOp(quickUconst, op1(0x23, "DW_OP_plus_uconst", ULEB, opPlusUconst)),
		quickOp(quickShl, op0(0x24, "DW_OP_shl", opShl)),
		quickOp(quickShr, op0(0x25, "DW_OP_shr", opShr)),
		quickOp(quickShra, op0(0x26, "DW_OP_shra", opShra)),
		quickOp(quickXor, op0(0x27, "DW_OP_xor", opXor)),
		op1(0x28, "DW_OP_bra", Branch, opBra),
		quickOp(quickEq, op0(0x29, "DW_OP_eq", opEq)),
		quickOp(quickGe, op0(0x2a, "DW_OP_ge", opGe)),
		quickOp(quickGt, op0(0x2b, "DW_OP_gt", opGt)),
		quickOp(quickLe, op0(0x2c, "DW_OP_le", opLe)),
		quickOp(quickLt, op0(0x2d, "DW_OP_lt", opLt)),
		quickOp(quickNe, op0(0x2e, "DW_OP_ne", opNe)),
		op1(0x2f, "DW_OP_skip", Branch, opSkip),
		op1(0x90, "DW_OP_regx", RegisterNum, opRegx),
		notInCFI(op1(0x91, "DW_OP_fbreg", SLEB, opFbreg)),
		op2(0x92, "DW_OP_bregx", RegisterNum, SLEB, opBregx),
		op1(0x93, "DW_OP_piece", ULEB, opPiece),
		op1(0x94, "DW_OP_deref_size", Unsigned1, opDerefSize),
		op1(0x95, "DW_OP_xderef_size", Unsigned1, opXderefSize),
		op0(0x96, "DW_OP_nop", opNop),
		notInCFI(op0(0x97, "DW_OP_push_object_address", opPushObjectAddress)),
		notInCFI(op1(0x98, "DW_OP_call2", UnitEntry2, opCallUnit)),
		notInCFI(op1(0x99, "DW_OP_call4", UnitEntry4, opCallUnit)),
		notInCFI(op1(0x9a, "DW_OP_call_ref", EntryOffset, opCallRef)),
		op0(0x9b, "DW_OP_form_tls_address", opFormTLSAddress),
		notInCFI(op0(0x9c, "DW_OP_call_frame_cfa", opCallFrameCFA)),
		op2(0x9d, "DW_OP_bit_piece", ULEB, ULEB, opBitPiece),
		op1(0x9e, "DW_OP_implicit_value", Block, opImplicitValue),
		op0(0x9f, "DW_OP_stack_value", opStackValue),
		notInCFI(op2(0xa0, "DW_OP_implicit_pointer", EntryOffset, SLEB, opImplicitPointer)),
		notInCFI(op1(0xa1, "DW_OP_addrx", ULEB, opAddrx)),
		notInCFI(op1(0xa2, "DW_OP_constx", ULEB, opConstx)),
		notInCFI(op1(0xa3, "DW_OP_entry_value", Expression, opEntryValue)),
		notInCFI(op2(0xa4, "DW_OP_const_type", TypeOffset, Block1, opConstType)),
		notInCFI(op2(0xa5, "DW_OP_regval_type", RegisterNum, TypeOffset, opRegvalType)),
		notInCFI(op2(0xa6, "DW_OP_deref_type", Unsigned1, TypeOffset, opDerefType)),
		notInCFI(op2(0xa7, "DW_OP_xderef_type", Unsigned1, TypeOffset, opXderefType)),
		notInCFI(op1(0xa8, "DW_OP_convert", TypeOffset, opConvert)),
		notInCFI(op1(0xa9, "DW_OP_reinterpret", TypeOffset, opReinterpret)),
	}
	for n := range 32 {
		for _, r := range []row{
			quickOp(quickLit, op0(0x30, "DW_OP_lit", opLit)),
			op0(0x50, "DW_OP_reg", opReg),
			quickOp(quickBreg, op1(0x70, "DW_OP_breg", SLEB, opBreg)),
		} {
			r.opcode += byte(n)
			r.op.Name += fmt.Sprint(n)
			r.op.number = uint64(n)
			rows = append(rows, r)
		}
	}
	return rows
}

// gnuRows are GNU's operations. GCC and clang write those that became standard
// later for DWARF 4 and before, the first even for DWARF 5.
var gnuRows = []row{
	op0(0xe0, "DW_OP_GNU_push_tls_address", opFormTLSAddress),
	op0(0xf0, "DW_OP_GNU_uninit", opUninit),
	op2(0xf1, "DW_OP_GNU_encoded_addr", Unsigned1, EncodedPointer, opEncodedAddr),
	notInCFI(op2(0xf2, "DW_OP_GNU_implicit_pointer", EntryOffset, SLEB, opImplicitPointer)),
	notInCFI(op1(0xf3, "DW_OP_GNU_entry_value", Expression, opEntryValue)),
	notInCFI(op2(0xf4, "DW_OP_GNU_const_type", TypeOffset, Block1, opConstType)),
	notInCFI(op2(0xf5, "DW_OP_GNU_regval_type", RegisterNum, TypeOffset, opRegvalType)),
	notInCFI(op2(0xf6, "DW_OP_GNU_deref_type", Unsigned1, TypeOffset, opDerefType)),
	notInCFI(op1(0xf7, "DW_OP_GNU_convert", TypeOffset, opConvert)),
	notInCFI(op1(0xf9, "DW_OP_GNU_reinterpret", TypeOffset, opReinterpret)),
	notInCFI(op1(0xfa, "DW_OP_GNU_parameter_ref", UnitEntry4, opParameterRef)),
	notInCFI(op1(0xfb, "DW_OP_GNU_addr_index", ULEB, opAddrx)),
	notInCFI(op1(0xfc, "DW_OP_GNU_const_index", ULEB, opConstx)),
	notInCFI(op1(0xfd, "DW_OP_GNU_variable_value", EntryOffset, opVariableValue)),
}

// A vendorRow is an operation that no standard has, with its encodings in the
// dialects. An encoding of 0 says that the dialect has none.
type vendorRow struct {
	op         Operation
	canonical  uint64 // number after DW_OP_LLVM_user on the wire
	llvmUser   uint64 // number after DW_OP_LLVM_user in what compilers write (A.7.7.1)
	llvmLegacy byte   // opcode in what compilers wrote before DW_OP_LLVM_user, and write in call frame information
	intel      byte   // opcode in what Intel's graphics compiler writes
}

// vendorRows are the operations of vendors: those of the heterogeneous
// extension, and Intel's. To add one is to add a row here and the function that
// it names. The canonical numbers are the published ones where there are any,
// and from 0x40 on the project's own; they never change.
var vendorRows = []vendorRow{
	{op0(0, "DW_OP_LLVM_nop", opNop).op, 0x01, 0x01, 0, 0},
	{op0(0, "DW_OP_LLVM_form_aspace_address", opFormAspaceAddress).op, 0x02, 0x02, 0xe1, 0},
	{notInCFI(op0(0, "DW_OP_LLVM_push_lane", opPushLane)).op, 0x03, 0x03, 0xe2, 0},
	{op0(0, "DW_OP_LLVM_offset", opOffset).op, 0x04, 0x04, 0xe3, 0},
	{op1(0, "DW_OP_LLVM_offset_uconst", ULEB, opOffsetUconst).op, 0x05, 0x05, 0xe4, 0},
	{op0(0, "DW_OP_LLVM_bit_offset", opBitOffset).op, 0x06, 0x06, 0xe5, 0},
	{op1(0, "DW_OP_LLVM_call_frame_entry_reg", RegisterNum, opCallFrameEntryReg).op, 0x07, 0x07, 0xe6, 0},
	{op0(0, "DW_OP_LLVM_undefined", opUndefined).op, 0x08, 0x08, 0xe7, 0},
	{op2(0, "DW_OP_LLVM_aspace_bregx", RegisterNum, SLEB, opAspaceBregx).op, 0x09, 0x09, 0xe8, 0},
	{op0(0, "DW_OP_LLVM_piece_end", opPieceEnd).op, 0x0a, 0x0a, 0xea, 0},
	{op2(0, "DW_OP_LLVM_extend", ULEB, ULEB, opExtend).op, 0x0b, 0x0b, 0xeb, 0},
	{op2(0, "DW_OP_LLVM_select_bit_piece", ULEB, ULEB, opSelectBitPiece).op, 0x0c, 0x0c, 0xec, 0},
	{notInCFI(op2(0, "DW_OP_LLVM_aspace_implicit_pointer", EntryOffset, SLEB, opAspaceImplicitPointer)).op, 0x40, 0, 0xe9, 0},
	{notInCFI(op0(0, "DW_OP_LLVM_push_iteration", opPushIteration)).op, 0x41, 0, 0, 0},
	{op0(0, "DW_OP_LLVM_overlay", opOverlay).op, 0x42, 0, 0, 0},
	{op0(0, "DW_OP_LLVM_bit_overlay", opBitOverlay).op, 0x43, 0, 0, 0},
	{op0(0, "DW_OP_composite", opComposite).op, 0x44, 0, 0, 0},
	{op0(0, "DW_OP_INTEL_regs", opIntelRegs).op, 0x50, 0, 0, 0xeb},
	{op0(0, "DW_OP_INTEL_push_bit_piece_stack", opIntelPushBitPieceStack).op, 0x51, 0, 0, 0xec},
	{notInCFI(op0(0, "DW_OP_INTEL_push_simd_lane", opPushLane)).op, 0x52, 0, 0, 0xed},
	{op0(0, "DW_OP_INTEL_piece_stack", opIntelPieceStack).op, 0x53, 0, 0, 0xee},
	{op0(0, "DW_OP_INTEL_bit_piece_stack", opIntelBitPieceStack).op, 0x54, 0, 0, 0xef},
	{op1(0, "DW_OP_INTEL_regval_bits", Unsigned1, opIntelRegvalBits).op, 0x55, 0, 0, 0xfe},
}

// vendorEncodings are the rows of a dialect: those for which f returns an
// opcode.
func vendorEncodings(f func(*vendorRow) (opcode byte, user uint64)) []row {
	var rows []row
	for i := range vendorRows {
		v := &vendorRows[i]
		if opcode, number := f(v); opcode != 0 {
			rows = append(rows, row{opcode: opcode, user: number, op: v.op})
		}
	}
	return rows
}
