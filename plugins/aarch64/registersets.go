// SPDX-License-Identifier: Apache-2.0

package aarch64

import "github.com/unwindd/unwindd/sdk"

// Core note types of Linux (include/uapi/linux/elf.h).
const (
	ntPrstatus      = 1
	ntFpregset      = 2
	ntArmTLS        = 0x401
	ntArmSystemCall = 0x404
	ntArmSVE        = 0x405
	ntArmPACMask    = 0x406
	ntArmSSVE       = 0x40b
	ntArmZA         = 0x40c
	ntArmZT         = 0x40d
	ntArmFPMR       = 0x40e
	ntArmGCS        = 0x410
)

// vectorLength is the offset in struct user_sve_header and struct user_za_header of the
// length of the thread's vectors in bytes (arch/arm64/include/uapi/asm/ptrace.h).
const vectorLength = 8

func registerSets() []sdk.RegisterSet {
	linux := func(typ uint32, fields ...sdk.RegisterField) sdk.RegisterSet {
		return sdk.RegisterSet{Source: sdk.CoreNote, Owner: "LINUX", Type: typ, Fields: fields}
	}
	return []sdk.RegisterSet{
		{Source: sdk.CoreNote, Owner: "CORE", Type: ntPrstatus, Fields: prstatusFields()},
		{Source: sdk.CoreNote, Owner: "CORE", Type: ntFpregset, Fields: fpsimdFields()},
		linux(ntArmTLS, words(0, tpidrEL0, tpidr2)...),
		linux(ntArmPACMask, words(0, pauthDmask, pauthCmask)...),
		linux(ntArmSVE, sdk.RegisterField{Offset: vectorLength, Size: 2, Register: sveLength}),
		linux(ntArmSSVE, sdk.RegisterField{Offset: vectorLength, Size: 2, Register: ssveLength}),
		linux(ntArmZA, sdk.RegisterField{Offset: vectorLength, Size: 2, Register: zaLength}),
		linux(ntArmZT, sdk.RegisterField{Size: 64, Register: zt0}),
		linux(ntArmFPMR, words(0, fpmr)...),
		linux(ntArmGCS, words(16, gcspr)...),
		linux(ntArmSystemCall, sdk.RegisterField{Size: 4, Register: syscallCode}),
		{Source: sdk.PerfSample, Fields: perfFields()},
		{Source: sdk.MinidumpContext, Type: 912, Fields: contextFields()},
		{Source: sdk.MinidumpContext, Type: 796, Fields: oldContextFields()},
	}
}

// words returns the fields of registers of 8 bytes that follow one another.
func words(offset uint32, registers ...uint32) []sdk.RegisterField {
	fields := make([]sdk.RegisterField, len(registers))
	for i, r := range registers {
		fields[i] = sdk.RegisterField{Offset: offset + 8*uint32(i), Size: 8, Register: r}
	}
	return fields
}

// numbered returns the fields of count registers with consecutive numbers that follow one
// another, each of size bytes.
func numbered(offset, size, first, count uint32) []sdk.RegisterField {
	fields := make([]sdk.RegisterField, count)
	for i := range count {
		fields[i] = sdk.RegisterField{Offset: offset + size*i, Size: size, Register: first + i}
	}
	return fields
}

// prstatusFields lays out the registers of the 64-bit elf_prstatus: pr_reg, a
// user_pt_regs, at byte 112: x0 to x30, sp, pc and pstate.
func prstatusFields() []sdk.RegisterField {
	const prReg = 112
	return append(numbered(prReg, 8, x0, 33), words(prReg+8*33, cpsr)...)
}

// fpsimdFields lays out struct user_fpsimd_state.
func fpsimdFields() []sdk.RegisterField {
	return append(numbered(0, 16, v0, 32), numbered(512, 4, fpsr, 2)...)
}

// perfFields maps the bits of sample_regs_user, PERF_REG_ARM64_* of
// asm/perf_regs.h.
func perfFields() []sdk.RegisterField {
	const bitVG = 46
	var fields []sdk.RegisterField
	for bit := range uint32(33) {
		fields = append(fields, sdk.RegisterField{Offset: bit, Size: 8, Register: x0 + bit})
	}
	return append(fields, sdk.RegisterField{Offset: bitVG, Size: 8, Register: vg})
}

// contextFields lays out the CONTEXT record of ARM64, 912 bytes, as winnt.h declares
// it and Breakpad has it too.
func contextFields() []sdk.RegisterField {
	const (
		cpsrAt = 4
		gpr    = 8
		vector = 272
		fpcrAt = 784
	)
	fields := []sdk.RegisterField{{Offset: cpsrAt, Size: 4, Register: cpsr}}
	fields = append(fields, numbered(gpr, 8, x0, 33)...)
	fields = append(fields, numbered(vector, 16, v0, 32)...)
	return append(fields, sdk.RegisterField{Offset: fpcrAt, Size: 4, Register: fpcr},
		sdk.RegisterField{Offset: fpcrAt + 4, Size: 4, Register: fpsr})
}

// oldContextFields lays out the older record of Breakpad, 796 bytes: its flags have 8
// bytes, and the vector registers are not aligned.
func oldContextFields() []sdk.RegisterField {
	const (
		gpr    = 8
		cpsrAt = 272
		fpsrAt = 276
		vector = 284
	)
	fields := append(numbered(gpr, 8, x0, 33), sdk.RegisterField{Offset: cpsrAt, Size: 4, Register: cpsr})
	fields = append(fields, numbered(fpsrAt, 4, fpsr, 2)...)
	return append(fields, numbered(vector, 16, v0, 32)...)
}
