// SPDX-License-Identifier: Apache-2.0

package isa

// Op is an operation that matters to frames, under one name where the
// generations' names differ (s_andn2_b64 is s_and_not1_b64 from gfx11 on).
type Op uint8

// Operations. D is Dst, A and B are Src[0] and Src[1]; the Writes tell whether SCC
// is written: it is then, unless a comment tells otherwise, whether D (EXEC for the
// Saveexec and Wrexec operations) is not zero.
const (
	Other Op = iota // any other operation; it has Size, Flow and Writes only

	SMovB32   // D = A; s_movk_i32 too
	SMovB64   // D = A
	SCmovB32  // if SCC: D = A; s_cmovk_i32 too
	SCmovB64  // if SCC: D = A
	SNotB32   // D = ^A
	SNotB64   // D = ^A
	SSextI16  // D = A's low 16 bits, sign-extended to 32
	SAddU32   // D = A + B, SCC the carry
	SSubU32   // D = A - B, SCC the borrow
	SAddI32   // D = A + B, SCC the overflow; s_addk_i32 too, with A the register and B the constant
	SSubI32   // D = A - B, SCC the overflow
	SAddcU32  // D = A + B + SCC
	SSubbU32  // D = A - B - SCC
	SAddU64   // D = A + B, SCC is kept
	SSubU64   // D = A - B, SCC is kept
	SMulI32   // D = A * B; s_mulk_i32 too
	SAndB32   // D = A & B
	SAndB64   //
	SOrB32    // D = A | B
	SOrB64    //
	SXorB32   // D = A ^ B
	SXorB64   //
	SAndn2B32 // D = A &^ B
	SAndn2B64 //
	SOrn2B32  // D = A | ^B
	SOrn2B64  //
	SNandB32  // D = ^(A & B)
	SNandB64  //
	SNorB32   // D = ^(A | B)
	SNorB64   //
	SXnorB32  // D = ^(A ^ B)
	SXnorB64  //
	SLshlB32  // D = A << B, of B the lower 5 bits, or 6 of the wider ones
	SLshlB64  // B is of 32 bits
	SLshrB32  // D = A >> B, unsigned
	SLshrB64  //
	SAshrI32  // D = A >> B, signed
	SAshrI64  //

	SCselectB32 // D = SCC ? A : B
	SCselectB64 //

	// D = EXEC; EXEC = A op EXEC.
	SAndSaveexec   // A & EXEC; of the width of its operands, like the following ones
	SOrSaveexec    // A | EXEC
	SXorSaveexec   // A ^ EXEC
	SAndn2Saveexec // A &^ EXEC
	SOrn2Saveexec  // A | ^EXEC
	SNandSaveexec  // ^(A & EXEC)
	SNorSaveexec   // ^(A | EXEC)
	SXnorSaveexec  // ^(A ^ EXEC)
	SAndn1Saveexec // ^A & EXEC
	SOrn1Saveexec  // ^A | EXEC
	SAndn1Wrexec   // D = EXEC = ^A & EXEC
	SAndn2Wrexec   // D = EXEC = A &^ EXEC

	SGetpc  // D = the address of the next instruction; on gfx12 of 48 bits, without its sign
	SSetpc  // Indirect
	SSwappc // IndirectCall
	SRfe    // Indirect, out of a trap handler
	SCall   // Call
	SBranch // Branch
	SAddPC  // Branch if A is a constant, which counts bytes, otherwise Fork (gfx1250)

	SCbranchSCC0   // CondBranch, taken if SCC is 0
	SCbranchSCC1   // if SCC is 1
	SCbranchVCCZ   // if VCC is 0
	SCbranchVCCNZ  // if VCC is not 0
	SCbranchEXECZ  // if EXEC is 0
	SCbranchEXECNZ // if EXEC is not 0
	SCbranchOther  // for another reason: a debugger's flags, a loop's count
	SFork          // Fork: s_cbranch_g_fork, _i_fork and _join of gfx9
	SEndpgm        // End
	SCodeEnd       // End: fills the space after a program, never executed
	STrap          // A is the trap's number
	SSetreg        // hardware register B (the encoded 16 bits: number, offset << 6, size-1 << 11) = A
	SGetreg        // D = hardware register B
	SNop           //

	// SSetGPRIdx turns M0 into an index of the vector registers of the following
	// instructions, or changes it (gfx9): until SGPRIdxOff, instructions read and
	// write other registers than those decoded.
	SSetGPRIdx
	SGPRIdxOff
	// SSetVGPRMSB sets the upper two bits of the vector registers' numbers in the
	// following instructions (gfx1250; see Inst). Bits 0 and 1 of A are the first
	// source's, then come the second's, the third's, and in bits 6 and 7 the result's.
	SSetVGPRMSB
	SSetVskip  // vector instructions that follow are skipped or not (gfx9)
	VWritelane // lane B of D = A, no matter what EXEC is
	// VCmp is a comparison: D is a mask of lanes, zero in those that are not active.
	VCmp
	// VCmpx is a comparison whose result is EXEC, and D too where there is
	// one.
	VCmpx
	VReadlane   // D (scalar) = lane B of A
	VReadfirst  // D (scalar) = A in the first active lane, or in lane 0
	VMovB32     // D = A in active lanes, whole registers and nothing across lanes; v_accvgpr_read, _write and _mov too
	VMovB64     // likewise, of two registers each
	BufferLoad  // of 1, 2, 4, 8, 12 or 16 bytes (Bytes), untyped and no atomic, to whole registers
	BufferStore //
	ScratchLoad //
	ScratchStore
	opCount
)

// flows has the Flow of each operation other than Next.
var flows = [opCount]Flow{
	SSetpc:         Indirect,
	SSwappc:        IndirectCall,
	SRfe:           Indirect,
	SCall:          Call,
	SBranch:        Branch,
	SCbranchSCC0:   CondBranch,
	SCbranchSCC1:   CondBranch,
	SCbranchVCCZ:   CondBranch,
	SCbranchVCCNZ:  CondBranch,
	SCbranchEXECZ:  CondBranch,
	SCbranchEXECNZ: CondBranch,
	SCbranchOther:  CondBranch,
	SFork:          Fork,
	SEndpgm:        End,
	SCodeEnd:       End,
}
