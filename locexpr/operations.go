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
	r.op.noCFI = true
	return r
}

// user makes a row one of DW_OP_LLVM_user with a number.
func user(number uint64, r row) row {
	r.opcode, r.user = opLLVMUser, number
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
		op0(0x1a, "DW_OP_and", opAnd),
		op0(0x1b, "DW_OP_div", opDiv),
		op0(0x1c, "DW_OP_minus", opMinus),
		op0(0x1d, "DW_OP_mod", opMod),
		op0(0x1e, "DW_OP_mul", opMul),
		op0(0x1f, "DW_OP_neg", opNeg),
		op0(0x20, "DW_OP_not", opNot),
		op0(0x21, "DW_OP_or", opOr),
		op0(0x22, "DW_OP_plus", opPlus),
		op1(0x23, "DW_OP_plus_uconst", ULEB, opPlusUconst),
		op0(0x24, "DW_OP_shl", opShl),
		op0(0x25, "DW_OP_shr", opShr),
		op0(0x26, "DW_OP_shra", opShra),
		op0(0x27, "DW_OP_xor", opXor),
		op1(0x28, "DW_OP_bra", Branch, opBra),
		op0(0x29, "DW_OP_eq", opEq),
		op0(0x2a, "DW_OP_ge", opGe),
		op0(0x2b, "DW_OP_gt", opGt),
		op0(0x2c, "DW_OP_le", opLe),
		op0(0x2d, "DW_OP_lt", opLt),
		op0(0x2e, "DW_OP_ne", opNe),
		op1(0x2f, "DW_OP_skip", Branch, opSkip),
		op1(0x90, "DW_OP_regx", RegisterNum, opRegx),
		notInCFI(op1(0x91, "DW_OP_fbreg", SLEB, opFbreg)),
		op2(0x92, "DW_OP_bregx", RegisterNum, SLEB, opBregx),
		op1(0x93, "DW_OP_piece", ULEB, opPiece),
		op1(0x94, "DW_OP_deref_size", Unsigned1, opDerefSize),
		op1(0x95, "DW_OP_xderef_size", Unsigned1, opXderefSize),
		op0(0x96, "DW_OP_nop", opNop),
		notInCFI(op0(0x97, "DW_OP_push_object_address", opPushObjectAddress)),
		op0(0x9b, "DW_OP_form_tls_address", opFormTLSAddress),
		notInCFI(op0(0x9c, "DW_OP_call_frame_cfa", opCallFrameCFA)),
		op2(0x9d, "DW_OP_bit_piece", ULEB, ULEB, opBitPiece),
		op1(0x9e, "DW_OP_implicit_value", Block, opImplicitValue),
		op0(0x9f, "DW_OP_stack_value", opStackValue),
		notInCFI(op2(0xa0, "DW_OP_implicit_pointer", EntryOffset, SLEB, opImplicitPointer)),
		notInCFI(op1(0xa1, "DW_OP_addrx", ULEB, opAddrx)),
		notInCFI(op1(0xa2, "DW_OP_constx", ULEB, opConstx)),
		notInCFI(op1(0xa3, "DW_OP_entry_value", Expression, opEntryValue)),
	}
	for n := range 32 {
		for _, r := range []row{
			op0(0x30, "DW_OP_lit", opLit),
			op0(0x50, "DW_OP_reg", opReg),
			op1(0x70, "DW_OP_breg", SLEB, opBreg),
		} {
			r.opcode += byte(n)
			r.op.Name += fmt.Sprint(n)
			r.op.number = uint64(n)
			rows = append(rows, r)
		}
	}
	return rows
}

// gnuRows are GNU's operations that became standard later. GCC and clang write
// them for DWARF 4 and before, the first even for DWARF 5.
var gnuRows = []row{
	op0(0xe0, "DW_OP_GNU_push_tls_address", opFormTLSAddress),
	notInCFI(op2(0xf2, "DW_OP_GNU_implicit_pointer", EntryOffset, SLEB, opImplicitPointer)),
	notInCFI(op1(0xf3, "DW_OP_GNU_entry_value", Expression, opEntryValue)),
	notInCFI(op1(0xfb, "DW_OP_GNU_addr_index", ULEB, opAddrx)),
	notInCFI(op1(0xfc, "DW_OP_GNU_const_index", ULEB, opConstx)),
}

// canonicalRows are operations of the heterogeneous extension, A.7.7.1.
var canonicalRows = []row{
	user(0x02, op0(0, "DW_OP_LLVM_form_aspace_address", opFormAspaceAddress)),
	user(0x04, op0(0, "DW_OP_LLVM_offset", opOffset)),
	user(0x05, op1(0, "DW_OP_LLVM_offset_uconst", ULEB, opOffsetUconst)),
	user(0x06, op0(0, "DW_OP_LLVM_bit_offset", opBitOffset)),
	user(0x08, op0(0, "DW_OP_LLVM_undefined", opUndefined)),
	user(0x09, op2(0, "DW_OP_LLVM_aspace_bregx", RegisterNum, SLEB, opAspaceBregx)),
}
