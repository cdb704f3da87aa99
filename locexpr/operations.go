// SPDX-License-Identifier: Apache-2.0

package locexpr

import "github.com/unwindd/unwindd/internal/dw"

// row assigns an encoding to an operation.
type row struct {
	opcode byte
	user   uint64
	op     Operation
}

// op0, op1 and op2 make rows of operations with that many operands.
func op0(opcode byte, eval func(*evaluation) error) row {
	return row{opcode: opcode, op: Operation{Name: dw.OpName(opcode), eval: eval}}
}

func op1(opcode byte, a OperandKind, eval func(*evaluation) error) row {
	return row{opcode: opcode, op: Operation{Name: dw.OpName(opcode), Operands: [2]OperandKind{a}, eval: eval}}
}

func op2(opcode byte, a, b OperandKind, eval func(*evaluation) error) row {
	return row{opcode: opcode, op: Operation{Name: dw.OpName(opcode), Operands: [2]OperandKind{a, b}, eval: eval}}
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

// standardRows are the operations of DWARF 5, 7.7.1, Table 7.9, without the numbered ones.
var standardRows = []row{
	op1(dw.OpAddr, Address, opAddr),
	op0(dw.OpDeref, opDeref),
	op1(dw.OpConst1u, Unsigned1, opConst),
	op1(dw.OpConst1s, Signed1, opConst),
	op1(dw.OpConst2u, Unsigned2, opConst),
	op1(dw.OpConst2s, Signed2, opConst),
	op1(dw.OpConst4u, Unsigned4, opConst),
	op1(dw.OpConst4s, Signed4, opConst),
	op1(dw.OpConst8u, Unsigned8, opConst),
	op1(dw.OpConst8s, Signed8, opConst),
	op1(dw.OpConstu, ULEB, opConst),
	op1(dw.OpConsts, SLEB, opConst),
	op0(dw.OpDup, opDup),
	op0(dw.OpDrop, opDrop),
	op0(dw.OpOver, opOver),
	op1(dw.OpPick, Unsigned1, opPick),
	op0(dw.OpSwap, opSwap),
	op0(dw.OpRot, opRot),
	op0(dw.OpXderef, opXderef),
	op0(dw.OpAbs, opAbs),
	quickOp(quickAnd, op0(dw.OpAnd, opAnd)),
	op0(dw.OpDiv, opDiv),
	quickOp(quickMinus, op0(dw.OpMinus, opMinus)),
	op0(dw.OpMod, opMod),
	quickOp(quickMul, op0(dw.OpMul, opMul)),
	op0(dw.OpNeg, opNeg),
	op0(dw.OpNot, opNot),
	quickOp(quickOr, op0(dw.OpOr, opOr)),
	quickOp(quickPlus, op0(dw.OpPlus, opPlus)),
	quickOp(quickUconst, op1(dw.OpPlusUconst, ULEB, opPlusUconst)),
	quickOp(quickShl, op0(dw.OpShl, opShl)),
	quickOp(quickShr, op0(dw.OpShr, opShr)),
	quickOp(quickShra, op0(dw.OpShra, opShra)),
	quickOp(quickXor, op0(dw.OpXor, opXor)),
	op1(dw.OpBra, Branch, opBra),
	quickOp(quickEq, op0(dw.OpEq, opEq)),
	quickOp(quickGe, op0(dw.OpGe, opGe)),
	quickOp(quickGt, op0(dw.OpGt, opGt)),
	quickOp(quickLe, op0(dw.OpLe, opLe)),
	quickOp(quickLt, op0(dw.OpLt, opLt)),
	quickOp(quickNe, op0(dw.OpNe, opNe)),
	op1(dw.OpSkip, Branch, opSkip),
	op1(dw.OpRegx, RegisterNum, opRegx),
	notInCFI(op1(dw.OpFbreg, SLEB, opFbreg)),
	op2(dw.OpBregx, RegisterNum, SLEB, opBregx),
	op1(dw.OpPiece, ULEB, opPiece),
	op1(dw.OpDerefSize, Unsigned1, opDerefSize),
	op1(dw.OpXderefSize, Unsigned1, opXderefSize),
	op0(dw.OpNop, opNop),
	notInCFI(op0(dw.OpPushObjectAddress, opPushObjectAddress)),
	notInCFI(op1(dw.OpCall2, UnitEntry2, opCallUnit)),
	notInCFI(op1(dw.OpCall4, UnitEntry4, opCallUnit)),
	notInCFI(op1(dw.OpCallRef, EntryOffset, opCallRef)),
	op0(dw.OpFormTLSAddress, opFormTLSAddress),
	notInCFI(op0(dw.OpCallFrameCFA, opCallFrameCFA)),
	op2(dw.OpBitPiece, ULEB, ULEB, opBitPiece),
	op1(dw.OpImplicitValue, Block, opImplicitValue),
	op0(dw.OpStackValue, opStackValue),
	notInCFI(op2(dw.OpImplicitPointer, EntryOffset, SLEB, opImplicitPointer)),
	notInCFI(op1(dw.OpAddrx, ULEB, opAddrx)),
	notInCFI(op1(dw.OpConstx, ULEB, opConstx)),
	notInCFI(op1(dw.OpEntryValue, Expression, opEntryValue)),
	notInCFI(op2(dw.OpConstType, TypeOffset, Block1, opConstType)),
	notInCFI(op2(dw.OpRegvalType, RegisterNum, TypeOffset, opRegvalType)),
	notInCFI(op2(dw.OpDerefType, Unsigned1, TypeOffset, opDerefType)),
	notInCFI(op2(dw.OpXderefType, Unsigned1, TypeOffset, opXderefType)),
	notInCFI(op1(dw.OpConvert, TypeOffset, opConvert)),
	notInCFI(op1(dw.OpReinterpret, TypeOffset, opReinterpret)),
}

// numberedRows are the operations of the same table that have a number in their opcode:
// DW_OP_lit0 to lit31, and so on.
func numberedRows() (rows []row) {
	for n := range 32 {
		for _, r := range []row{
			quickOp(quickLit, op0(dw.OpLit0, opLit)),
			op0(dw.OpReg0, opReg),
			quickOp(quickBreg, op1(dw.OpBreg0, SLEB, opBreg)),
		} {
			r.opcode += byte(n)
			r.op.Name = dw.OpName(r.opcode)
			r.op.number = uint64(n)
			rows = append(rows, r)
		}
	}
	return rows
}

// gnuRows are GNU's operations. GCC and clang write those that became standard
// later for DWARF 4 and before, the first even for DWARF 5.
var gnuRows = []row{
	op0(dw.OpGNUPushTLSAddress, opFormTLSAddress),
	op0(dw.OpGNUUninit, opUninit),
	op2(dw.OpGNUEncodedAddr, Unsigned1, EncodedPointer, opEncodedAddr),
	notInCFI(op2(dw.OpGNUImplicitPointer, EntryOffset, SLEB, opImplicitPointer)),
	notInCFI(op1(dw.OpGNUEntryValue, Expression, opEntryValue)),
	notInCFI(op2(dw.OpGNUConstType, TypeOffset, Block1, opConstType)),
	notInCFI(op2(dw.OpGNURegvalType, RegisterNum, TypeOffset, opRegvalType)),
	notInCFI(op2(dw.OpGNUDerefType, Unsigned1, TypeOffset, opDerefType)),
	notInCFI(op1(dw.OpGNUConvert, TypeOffset, opConvert)),
	notInCFI(op1(dw.OpGNUReinterpret, TypeOffset, opReinterpret)),
	notInCFI(op1(dw.OpGNUParameterRef, UnitEntry4, opParameterRef)),
	notInCFI(op1(dw.OpGNUAddrIndex, ULEB, opAddrx)),
	notInCFI(op1(dw.OpGNUConstIndex, ULEB, opConstx)),
	notInCFI(op1(dw.OpGNUVariableValue, EntryOffset, opVariableValue)),
}

// vendorOp makes a row the row of a vendor's operation in the canonical dialect.
func vendorOp(number uint64, r row) row {
	r.user, r.op.Name = number, dw.VendorOpName(number)
	return r
}

// vendorRows are the operations of the heterogeneous extension, and Intel's, in the canonical
// dialect. To add one is to add a row here and to dw.VendorOps, and the function that it
// names.
var vendorRows = []row{
	vendorOp(dw.UserNop, op0(dw.OpLLVMUser, opNop)),
	vendorOp(dw.UserFormAspaceAddress, op0(dw.OpLLVMUser, opFormAspaceAddress)),
	vendorOp(dw.UserPushLane, notInCFI(op0(dw.OpLLVMUser, opPushLane))),
	vendorOp(dw.UserOffset, op0(dw.OpLLVMUser, opOffset)),
	vendorOp(dw.UserOffsetUconst, op1(dw.OpLLVMUser, ULEB, opOffsetUconst)),
	vendorOp(dw.UserBitOffset, op0(dw.OpLLVMUser, opBitOffset)),
	vendorOp(dw.UserCallFrameEntryReg, op1(dw.OpLLVMUser, RegisterNum, opCallFrameEntryReg)),
	vendorOp(dw.UserUndefined, op0(dw.OpLLVMUser, opUndefined)),
	vendorOp(dw.UserAspaceBregx, op2(dw.OpLLVMUser, RegisterNum, SLEB, opAspaceBregx)),
	vendorOp(dw.UserPieceEnd, op0(dw.OpLLVMUser, opPieceEnd)),
	vendorOp(dw.UserExtend, op2(dw.OpLLVMUser, ULEB, ULEB, opExtend)),
	vendorOp(dw.UserSelectBitPiece, op2(dw.OpLLVMUser, ULEB, ULEB, opSelectBitPiece)),
	vendorOp(dw.UserAspaceImplicitPointer, notInCFI(op2(dw.OpLLVMUser, EntryOffset, SLEB, opAspaceImplicitPointer))),
	vendorOp(dw.UserPushIteration, notInCFI(op0(dw.OpLLVMUser, opPushIteration))),
	vendorOp(dw.UserOverlay, op0(dw.OpLLVMUser, opOverlay)),
	vendorOp(dw.UserBitOverlay, op0(dw.OpLLVMUser, opBitOverlay)),
	vendorOp(dw.UserComposite, op0(dw.OpLLVMUser, opComposite)),
	vendorOp(dw.UserIntelRegs, op0(dw.OpLLVMUser, opIntelRegs)),
	vendorOp(dw.UserIntelPushBitPiece, op0(dw.OpLLVMUser, opIntelPushBitPieceStack)),
	vendorOp(dw.UserIntelPushSIMDLane, notInCFI(op0(dw.OpLLVMUser, opPushLane))),
	vendorOp(dw.UserIntelPiece, op0(dw.OpLLVMUser, opIntelPieceStack)),
	vendorOp(dw.UserIntelBitPiece, op0(dw.OpLLVMUser, opIntelBitPieceStack)),
	vendorOp(dw.UserIntelRegvalBits, op1(dw.OpLLVMUser, Unsigned1, opIntelRegvalBits)),
}

// vendorEncodings are the rows of a dialect: the operations for which encoding returns an
// opcode.
func vendorEncodings(encoding func(*dw.VendorOp) (opcode byte, user uint64)) []row {
	var rows []row
	for i := range dw.VendorOps {
		v := &dw.VendorOps[i]
		if opcode, number := encoding(v); opcode != 0 {
			rows = append(rows, row{opcode: opcode, user: number, op: Operation{Name: v.Name}})
		}
	}
	return rows
}
