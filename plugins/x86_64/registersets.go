// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// Core note types.
const (
	ntPrstatus  = 1
	ntFpregset  = 2
	ntX86Xstate = 0x202
)

func registerSets() []sdk.RegisterSet {
	return []sdk.RegisterSet{
		{Source: sdk.CoreNote, Owner: "CORE", Type: ntPrstatus, Fields: prstatusFields()},
		{Source: sdk.CoreNote, Owner: "CORE", Type: ntFpregset, Fields: fxsaveFields(0)},
		{Source: sdk.CoreNote, Owner: "LINUX", Type: ntX86Xstate, Fields: xstateFields()},
		{Source: sdk.PerfSample, Fields: perfFields()},
		{Source: sdk.MinidumpContext, Type: 1232, Fields: contextFields()},
		{Source: sdk.MinidumpContext, Type: 736, Fields: lldbContextFields()},
	}
}

// prstatusFields lays out the registers of the 64-bit elf_prstatus: pr_reg, a
// user_regs_struct, at byte 112.
func prstatusFields() []sdk.RegisterField {
	const prReg = 112
	var fields []sdk.RegisterField
	for i, r := range [...]uint32{r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi,
		sdk.NoRegister /* orig_rax */, rip, cs, rflags, rsp, ss, fsBase, gsBase, ds, es, fs, gs} {
		size := uint32(8)
		switch {
		case r == sdk.NoRegister:
			continue
		case r >= es && r <= gs:
			size = 2 // a selector in a word of its own
		}
		fields = append(fields, sdk.RegisterField{Offset: prReg + 8*uint32(i), Size: size, Register: r})
	}
	return fields
}

// fxsaveFields lays out the 512 bytes of FXSAVE64 (user_fpregs_struct, the
// legacy area of XSAVE, FltSave of a CONTEXT) that begin at byte base of a
// record. Intel SDM volume 1, table 10-2.
//
// mm0 to mm7 are not there: the slot of each depends on the top-of-stack field of the
// status word.
func fxsaveFields(base uint32) []sdk.RegisterField {
	fields := []sdk.RegisterField{
		{Offset: base + 0, Size: 2, Register: fcw},
		{Offset: base + 2, Size: 2, Register: fsw},
		{Offset: base + 24, Size: 4, Register: mxcsr},
	}
	for i := range uint32(8) {
		fields = append(fields, sdk.RegisterField{Offset: base + 32 + 16*i, Size: 10, Register: st0 + i})
	}
	for i := range uint32(16) {
		fields = append(fields, sdk.RegisterField{Offset: base + 160 + 16*i, Size: 16, Register: xmm0 + i})
	}
	return fields
}

// xstateFields lays out the standard form of the XSAVE area as far as its places are the
// same on every processor: the legacy area, and the high halves of ymm0 to ymm15. The
// places of the components of AVX-512 come from CPUID leaf 0xD of the processor (Intel
// SDM volume 1, 13.5): k0 to k7 are at 1088 on Intel's processors, at 832 on AMD's. The
// note does not tell which, so they are absent rather than wrong.
func xstateFields() []sdk.RegisterField {
	const ymmHigh = 576
	fields := fxsaveFields(0)
	for i := range uint32(16) {
		fields = append(fields, sdk.RegisterField{Offset: ymmHigh + 16*i, Size: 16, Register: xmm0 + i, RegisterOffset: 16})
	}
	return fields
}

// perfFields maps the bits of sample_regs_user, PERF_REG_X86_* of
// asm/perf_regs.h. A vector register takes two bits, its low half first.
func perfFields() []sdk.RegisterField {
	var fields []sdk.RegisterField
	for bit, r := range [...]uint32{rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, rip, rflags, cs, ss, ds, es, fs, gs,
		r8, r9, r10, r11, r12, r13, r14, r15} {
		size := uint32(8)
		if r >= es && r <= gs {
			size = 2
		}
		fields = append(fields, sdk.RegisterField{Offset: uint32(bit), Size: size, Register: r})
	}
	const firstVector = 32 // PERF_REG_X86_XMM0
	for i := range uint32(16) {
		fields = append(fields,
			sdk.RegisterField{Offset: firstVector + 2*i, Size: 8, Register: xmm0 + i},
			sdk.RegisterField{Offset: firstVector + 2*i + 1, Size: 8, Register: xmm0 + i, RegisterOffset: 8})
	}
	return fields
}

// contextFields lays out the CONTEXT record of AMD64, 1232 bytes, as winnt.h
// declares it.
func contextFields() []sdk.RegisterField {
	const (
		segCs  = 0x38
		eFlags = 0x44
		gpr    = 0x78 // Rax
		pc     = 0xf8
		fltSav = 0x100
	)
	var fields []sdk.RegisterField
	for i, r := range [...]uint32{cs, ds, es, fs, gs, ss} {
		fields = append(fields, sdk.RegisterField{Offset: segCs + 2*uint32(i), Size: 2, Register: r})
	}
	fields = append(fields, sdk.RegisterField{Offset: eFlags, Size: 4, Register: rflags})
	for i, r := range [...]uint32{rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15} {
		fields = append(fields, sdk.RegisterField{Offset: gpr + 8*uint32(i), Size: 8, Register: r})
	}
	fields = append(fields, sdk.RegisterField{Offset: pc, Size: 8, Register: rip})
	return append(fields, fxsaveFields(fltSav)...)
}

// lldbContextFields lays out the context of 736 bytes that LLDB writes: the record of
// winnt.h up to rip, and the bases of fs and gs at its end.
func lldbContextFields() []sdk.RegisterField {
	const (
		fltSav = 0x100
		bases  = 720
	)
	fields := slices.DeleteFunc(contextFields(), func(f sdk.RegisterField) bool { return f.Offset >= fltSav })
	return append(fields,
		sdk.RegisterField{Offset: bases, Size: 8, Register: fsBase}, sdk.RegisterField{Offset: bases + 8, Size: 8, Register: gsBase})
}
