// SPDX-License-Identifier: Apache-2.0

package aarch64

import "github.com/unwindd/unwindd/sdk"

// This file has the memory accesses of instructions, and the ways in which they stop a
// thread, by the bits of their words (Arm Architecture Reference Manual for A-profile,
// C4.1).

// kinds has the words w with w & mask == value that may stop a thread; the first that
// fits counts. Divisions are absent, because they do not trap.
var kinds = []struct {
	mask, value uint32
	kind        sdk.InstructionKind
}{
	{0xffff0000, 0x00000000, sdk.UndefinedInstruction},  // UDF
	{0xffffffff, 0xd4207d00, sdk.UndefinedInstruction},  // BRK #1000, GCC's __builtin_trap
	{0xffffffff, 0xd4200020, sdk.UndefinedInstruction},  // BRK #1, clang's __builtin_trap
	{0xfffff01f, 0xd42aa000, sdk.UndefinedInstruction},  // BRK #0x5500 to #0x557f, clang's -fsanitize-trap
	{0xffe0001f, 0xd4200000, sdk.BreakpointInstruction}, // BRK
	{0xffe0001f, 0xd4400000, sdk.BreakpointInstruction}, // HLT
	{0xffe0001f, 0xd4000001, sdk.SystemCallInstruction}, // SVC
	{0xffe0001e, 0xd4000002, sdk.PrivilegedInstruction}, // HVC, SMC
	{0xfc000000, 0x94000000, sdk.CallInstruction},       // BL
	{0xfc000000, 0x14000000, sdk.JumpInstruction},       // B
	{0xfeff0000, 0xd63f0000, sdk.CallInstruction},       // BLR, BLRAA
	{0xfeff0000, 0xd61f0000, sdk.JumpInstruction},       // BR, BRAA
	{0xfeff0000, 0xd65f0000, sdk.ReturnInstruction},     // RET, RETAA
	{0xffff0000, 0xd69f0000, sdk.PrivilegedInstruction}, // ERET
	{0xffff0000, 0xd6bf0000, sdk.PrivilegedInstruction}, // DRPS
	{0xffd70000, 0xd5130000, sdk.OtherInstruction},      // MRS, MSR of registers that processes have
	{0xffd00000, 0xd5100000, sdk.PrivilegedInstruction}, // other registers
	{0xffdf0000, 0xd50b0000, sdk.OtherInstruction},      // DC, IC, SYS that processes have
	{0xffd80000, 0xd5080000, sdk.PrivilegedInstruction}, // other ones, AT, TLBI
}

// kindOf returns the kind of the instruction of a word, and the register with its target.
func kindOf(w uint32) (kind sdk.InstructionKind, register, size uint32) {
	for i := range kinds {
		if k := &kinds[i]; w&k.mask == k.value {
			if w&0xfe800000 == 0xd6000000 && k.kind != sdk.PrivilegedInstruction {
				register, size = field(w, 5, 5), 64
			}
			if register == gprSP { // of RETAA, which is of x30
				register = x30
			}
			return k.kind, register, size
		}
	}
	return sdk.OtherInstruction, 0, 0
}

// accessPattern reads the accesses of the words w with w & mask == value; the first that
// fits counts.
type accessPattern struct {
	mask, value uint32
	read        func(w uint32, pc uint64) []sdk.Access
}

var accessPatterns = []accessPattern{
	{0x3f000000, 0x08000000, exclusiveAccess},     // LDXR, STLR, CAS
	{0xbf000000, 0x0c000000, structuresAccess},    // LD1 to ST4 of several elements
	{0xbf000000, 0x0d000000, structureAccess},     // of one
	{0x3b000000, 0x18000000, literalAccess},       // LDR of a literal
	{0xff200000, 0xd9200000, tagAccess},           // STG, LDG
	{0x3f200c00, 0x19000000, unscaledAccess},      // LDAPUR, STLUR
	{0x3b200c00, 0x19000400, copyAccess},          // CPY, SET
	{0x3a000000, 0x28000000, pairAccess},          // LDP, STP
	{0x3b000000, 0x39000000, scaledAccess},        // LDR, STR of an unsigned offset
	{0x3b200c00, 0x38200800, indexedAccess},       // of a register
	{0x3f200c00, 0x38200000, atomicAccess},        // LDADD, SWP, LDAPR
	{0xff200400, 0xf8200400, authenticatedAccess}, // LDRAA
	{0x3b200000, 0x38000000, unscaledAccess},      // LDUR, LDTR, post- and pre-index
	{0xffffff00, 0xd50b7400, zeroAccess},          // DC ZVA
	{0xffff0000, 0xd50b0000, cacheAccess},         // DC CVAC, IC IVAU
	{0xffc0e000, 0x85804000, wholeVectorAccess},   // LDR of SVE
	{0xffc0e010, 0x85800000, wholeVectorAccess},   //
	{0xffc0e000, 0xe5804000, wholeVectorAccess},   // STR of SVE
	{0xffc0e010, 0xe5800000, wholeVectorAccess},   //
	{0xfe00e000, 0xa4004000, vectorAccess},        // LD1 of SVE
	{0xfe10e000, 0xa400a000, vectorAccess},        //
	{0xfe00e000, 0xe4004000, vectorAccess},        // ST1 of SVE
	{0xfe10e000, 0xe400e000, vectorAccess},        //
}

// accessesOf returns the memory accesses of the instruction of a word.
func accessesOf(w uint32, pc uint64) []sdk.Access {
	for i := range accessPatterns {
		if f := &accessPatterns[i]; w&f.mask == f.value {
			return f.read(w, pc)
		}
	}
	return nil
}

// based is an access at the register in bits 5 to 9 and an offset.
func based(w uint32, offset int64) sdk.Access {
	return sdk.Access{Base: field(w, 5, 5), Index: sdk.NoRegister, Segment: sdk.NoRegister, Displacement: offset, AddressBits: 64}
}

// read, write and both return one access of size bytes.
func read(a sdk.Access, size uint32) []sdk.Access {
	a.IsRead, a.Size = true, size
	return []sdk.Access{a}
}

func write(a sdk.Access, size uint32) []sdk.Access {
	a.IsWrite, a.Size = true, size
	return []sdk.Access{a}
}

func both(a sdk.Access, size uint32) []sdk.Access {
	a.IsWrite = true
	return read(a, size)
}

// transfer is a load or a store.
func transfer(a sdk.Access, size uint32, isLoad bool) []sdk.Access {
	if isLoad {
		return read(a, size)
	}
	return write(a, size)
}

// isLoad is bit 22, which tells loads from stores in most encodings.
func isLoad(w uint32) bool { return field(w, 22, 1) == 1 }

func exclusiveAccess(w uint32, _ uint64) []sdk.Access {
	size := uint32(1) << (w >> 30)
	isOrdered, isSecond := field(w, 23, 1) == 1, field(w, 21, 1) == 1
	switch {
	case isOrdered && isSecond: // CAS
		return both(based(w, 0), size)
	case !isSecond:
		return transfer(based(w, 0), size, isLoad(w))
	case w>>31 == 1: // LDXP, STXP
		return transfer(based(w, 0), 2*size, isLoad(w))
	}
	return both(based(w, 0), 8<<(w>>30)) // CASP
}

// structureVectors has the number of vectors of LD1 to ST4, by their opcode.
var structureVectors = [16]uint32{0: 4, 2: 4, 4: 3, 6: 3, 7: 1, 8: 2, 10: 2}

func structuresAccess(w uint32, _ uint64) []sdk.Access {
	n := structureVectors[field(w, 12, 4)]
	if n == 0 {
		return nil
	}
	return transfer(based(w, 0), n*8<<field(w, 30, 1), isLoad(w))
}

func structureAccess(w uint32, _ uint64) []sdk.Access {
	count, size := field(w, 13, 1)<<1|field(w, 21, 1)+1, field(w, 14, 2)
	switch {
	case size == 3: // to every element
		size = field(w, 10, 2)
	case size == 2 && field(w, 10, 1) == 1:
		size = 3
	}
	return transfer(based(w, 0), count<<size, isLoad(w))
}

func literalAccess(w uint32, pc uint64) []sdk.Access {
	a := sdk.Access{Base: sdk.NoRegister, Index: sdk.NoRegister, Segment: sdk.NoRegister, AddressBits: 64}
	a.Displacement = int64(pc) + 4*signed(w, 5, 19) //nolint:gosec // an address
	opcode, isVector := w>>30, field(w, 26, 1) == 1
	switch {
	case isVector:
		return read(a, 4<<opcode)
	case opcode == 3: // PRFM
		return nil
	case opcode == 1:
		return read(a, 8)
	}
	return read(a, 4)
}

// tagGranule is the number of bytes that a memory tag covers.
const tagGranule = 16

func tagAccess(w uint32, _ uint64) []sdk.Access {
	opcode, how := field(w, 22, 2), field(w, 10, 2)
	offset := tagGranule * signed(w, 12, 9)
	switch {
	case how == 0 && opcode == 1: // LDG
		return read(based(w, offset), tagGranule)
	case how == 0: // of many tags, for operating systems
		return nil
	case how == 1: // post-index
		offset = 0
	}
	return write(based(w, offset), tagGranule<<(opcode>>1))
}

// indexes are bits 10 and 11 of a load or store with an offset of 9 bits.
const indexesAfter = 1

func unscaledAccess(w uint32, _ uint64) []sdk.Access {
	offset := signed(w, 12, 9)
	if field(w, 10, 2) == indexesAfter {
		offset = 0
	}
	return registerAccess(w, based(w, offset))
}

func scaledAccess(w uint32, _ uint64) []sdk.Access {
	return registerAccess(w, based(w, int64(field(w, 10, 12))*int64(registerSize(w))))
}

// registerSize is the number of bytes of a load or store of one register.
func registerSize(w uint32) uint32 {
	size := w >> 30
	if field(w, 26, 1) == 1 {
		size |= field(w, 23, 1) << 2
	}
	return 1 << size
}

// registerAccess is the access of a load or store of one register.
func registerAccess(w uint32, a sdk.Access) []sdk.Access {
	opcode, size, isVector := field(w, 22, 2), w>>30, field(w, 26, 1) == 1
	switch {
	case isVector && opcode&2 != 0 && size > 0:
		return nil // no instruction
	case isVector:
		return transfer(a, registerSize(w), isLoad(w))
	case opcode >= 2 && size == 3, opcode == 3 && size == 2:
		return nil // PRFM
	}
	return transfer(a, registerSize(w), opcode != 0)
}

func indexedAccess(w uint32, _ uint64) []sdk.Access {
	a := based(w, 0)
	option := field(w, 13, 3)
	if option&2 == 0 {
		return nil // no instruction
	}
	if index := field(w, 16, 5); index != gprSP { // which is the zero register here
		a.Index, a.Scale = index, 1
		if field(w, 12, 1) == 1 {
			a.Scale = registerSize(w)
		}
		if option&1 == 0 {
			a.IndexBits, a.IsIndexSigned = 32, option&4 != 0
		}
	}
	return registerAccess(w, a)
}

// blockSize is the number of bytes that LD64B and ST64B transfer.
const blockSize = 64

func atomicAccess(w uint32, _ uint64) []sdk.Access {
	size := uint32(1) << (w >> 30)
	operation := field(w, 12, 4)
	switch {
	case operation == 12 && field(w, 22, 2) == 2: // LDAPR
		return read(based(w, 0), size)
	case operation == 13 && size == 8: // LD64B
		return read(based(w, 0), blockSize)
	case operation >= 9 && operation <= 11 && size == 8: // ST64B
		return write(based(w, 0), blockSize)
	case operation > 8:
		return nil // no instruction of ARMv8
	}
	return both(based(w, 0), size)
}

func authenticatedAccess(w uint32, _ uint64) []sdk.Access {
	return read(based(w, signedOffset10(w)), 8)
}

func pairAccess(w uint32, _ uint64) []sdk.Access {
	opcode, isVector := w>>30, field(w, 26, 1) == 1
	size := int64(4) << (opcode >> 1)
	switch {
	case opcode == 3 && !isVector:
		return nil // LDTP of ARMv9.6
	case isVector:
		size = 4 << opcode
	case opcode == 1 && !isLoad(w): // STGP
		return write(based(w, pairOffset(w, tagGranule)), tagGranule)
	}
	return transfer(based(w, pairOffset(w, size)), uint32(2*size), isLoad(w)) //nolint:gosec // at most 32
}

func pairOffset(w uint32, unit int64) int64 {
	if field(w, 23, 2) == indexesAfter {
		return 0
	}
	return signed(w, 15, 7) * unit
}

// copyAccess is the access of the prologue, the main part or the epilogue of a copy or a
// set.
func copyAccess(w uint32, _ uint64) []sdk.Access {
	to := sdk.Access{Base: field(w, 0, 5), Index: sdk.NoRegister, Segment: sdk.NoRegister, AddressBits: 64}
	if field(w, 22, 2) == 3 { // SET
		return write(to, 0)
	}
	from := to
	from.Base = field(w, 16, 5)
	return append(write(to, 0), read(from, 0)...)
}

// zeroAccess is DC ZVA, which writes the block that an address is in. The processor
// defines its size.
func zeroAccess(w uint32, _ uint64) []sdk.Access { return cacheLine(w, true) }

func cacheAccess(w uint32, _ uint64) []sdk.Access {
	if field(w, 12, 4) != 7 {
		return nil
	}
	return cacheLine(w, false)
}

func cacheLine(w uint32, isWrite bool) []sdk.Access {
	if field(w, 0, 5) == gprSP {
		return nil
	}
	a := sdk.Access{Base: field(w, 0, 5), Index: sdk.NoRegister, Segment: sdk.NoRegister, AddressBits: 64}
	return transfer(a, 0, !isWrite)
}

// wholeVectorAccess is the access of a vector or a predicate.
func wholeVectorAccess(w uint32, _ uint64) []sdk.Access {
	if field(w, 16, 6) != 0 || field(w, 10, 3) != 0 {
		return nil
	}
	return transfer(based(w, 0), 0, w>>30 == 2)
}

// vectorAccess is the access of a vector of SVE. Its length and its elements depend on
// registers that are not read here: an offset in vectors is unknown.
func vectorAccess(w uint32, pc uint64) []sdk.Access {
	a := based(w, 0)
	isStore := w>>30 == 3
	hasIndex := field(w, 13, 1) == 0 && field(w, 14, 1) == 1
	switch {
	case hasIndex && field(w, 16, 5) == gprSP, isStore && field(w, 23, 2) > field(w, 21, 2):
		return nil // no instruction
	case hasIndex && isStore:
		a.Index, a.Scale = field(w, 16, 5), 1<<field(w, 23, 2)
	case hasIndex:
		a.Index, a.Scale = field(w, 16, 5), 1<<sveLoads[field(w, 21, 4)].shift
	case field(w, 16, 4) != 0:
		return nil
	}
	return transfer(a, 0, !isStore)
}
