// SPDX-License-Identifier: Apache-2.0

package x86

import "github.com/unwindd/unwindd/sdk"

// Core note types.
const (
	ntPrstatus  = 1
	ntFpregset  = 2
	ntPrxfpreg  = 0x46e62b7f
	nt386TLS    = 0x200
	ntX86Xstate = 0x202
)

func registerSets() []sdk.RegisterSet {
	return []sdk.RegisterSet{
		{Source: sdk.CoreNote, Owner: "CORE", Type: ntPrstatus, Fields: prstatusFields()},
		{Source: sdk.CoreNote, Owner: "CORE", Type: ntFpregset, Fields: fsaveFields(0)},
		{Source: sdk.CoreNote, Owner: "LINUX", Type: ntPrxfpreg, Fields: fxsaveFields(0)},
		{Source: sdk.CoreNote, Owner: "LINUX", Type: ntX86Xstate, Fields: xstateFields()},
		{Source: sdk.CoreNote, Owner: "LINUX", Type: nt386TLS, Fields: tlsFields()},
		{Source: sdk.PerfSample, Fields: perfFields()},
		{Source: sdk.MinidumpContext, Type: 716, Fields: contextFields()},
	}
}

// prstatusFields lays out the registers of the 32-bit elf_prstatus: pr_reg, a
// user_regs_struct, at byte 72. Kernels of x86-64 write the same for their 32-bit processes.
func prstatusFields() []sdk.RegisterField {
	const prReg = 72
	var fields []sdk.RegisterField
	for i, r := range [...]uint32{ebx, ecx, edx, esi, edi, ebp, eax, ds, es, fs, gs, sdk.NoRegister /* orig_eax */, eip, cs, eflags, esp, ss} {
		size := uint32(4)
		switch {
		case r == sdk.NoRegister:
			continue
		case r >= es && r <= gs:
			size = 2 // a selector in a word of its own
		}
		fields = append(fields, sdk.RegisterField{Offset: prReg + 4*uint32(i), Size: size, Register: r})
	}
	return fields
}

// fsaveFields lays out the 108 bytes of FSAVE (user_i387_struct) that begin at byte base of
// a record. Intel SDM volume 1, figure 8-9.
func fsaveFields(base uint32) []sdk.RegisterField {
	fields := []sdk.RegisterField{{Offset: base, Size: 2, Register: fcw}, {Offset: base + 4, Size: 2, Register: fsw}}
	for i := range uint32(8) {
		fields = append(fields, sdk.RegisterField{Offset: base + 28 + 10*i, Size: 10, Register: st0 + i})
	}
	return fields
}

// fxsaveFields lays out the 512 bytes of FXSAVE (user_fpxregs_struct, the legacy area of
// XSAVE, ExtendedRegisters of a CONTEXT) that begin at byte base of a record. Intel SDM
// volume 1, table 10-2.
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
	for i := range uint32(8) {
		fields = append(fields, sdk.RegisterField{Offset: base + 160 + 16*i, Size: 16, Register: xmm0 + i})
	}
	return fields
}

// xstateFields lays out the standard form of the XSAVE area as far as its places are the
// same on every processor: the legacy area, and the high halves of ymm0 to ymm7.
func xstateFields() []sdk.RegisterField {
	const ymmHigh = 576
	fields := fxsaveFields(0)
	for i := range uint32(8) {
		fields = append(fields, sdk.RegisterField{Offset: ymmHigh + 16*i, Size: 16, Register: xmm0 + i, RegisterOffset: 16})
	}
	return fields
}

// tlsFields lays out the list of struct user_desc that set_thread_area(2) takes: C libraries
// request the first descriptor, and address the memory of the thread by it and gs.
func tlsFields() []sdk.RegisterField {
	const baseAddr = 4
	return []sdk.RegisterField{{Offset: baseAddr, Size: 4, Register: gsBase}}
}

// perfFields maps the bits of sample_regs_user, PERF_REG_X86_* of asm/perf_regs.h. Samples
// of 32-bit processes have them in words of 64 bits, and r8 to r15 are of no meaning. A
// vector register takes two bits, its low half first.
func perfFields() []sdk.RegisterField {
	var fields []sdk.RegisterField
	for bit, r := range [...]uint32{eax, ebx, ecx, edx, esi, edi, ebp, esp, eip, eflags, cs, ss, ds, es, fs, gs} {
		size := uint32(4)
		if r >= es && r <= gs {
			size = 2
		}
		fields = append(fields, sdk.RegisterField{Offset: uint32(bit), Size: size, Register: r})
	}
	const firstVector = 32 // PERF_REG_X86_XMM0
	for i := range uint32(8) {
		fields = append(fields,
			sdk.RegisterField{Offset: firstVector + 2*i, Size: 8, Register: xmm0 + i},
			sdk.RegisterField{Offset: firstVector + 2*i + 1, Size: 8, Register: xmm0 + i, RegisterOffset: 8})
	}
	return fields
}

// contextFields lays out the CONTEXT record of i386, 716 bytes, as winnt.h declares it, and
// the WOW64_CONTEXT of 32-bit processes, which is the same. The registers of x87 are there
// as FSAVE has them, and again in ExtendedRegisters.
func contextFields() []sdk.RegisterField {
	const (
		segGs    = 140
		general  = 156 // Edi
		control  = 180 // Ebp
		extended = 204
	)
	var fields []sdk.RegisterField
	for i, r := range [...]uint32{gs, fs, es, ds} {
		fields = append(fields, sdk.RegisterField{Offset: segGs + 4*uint32(i), Size: 2, Register: r})
	}
	for i, r := range [...]uint32{edi, esi, ebx, edx, ecx, eax} {
		fields = append(fields, sdk.RegisterField{Offset: general + 4*uint32(i), Size: 4, Register: r})
	}
	for i, r := range [...]uint32{ebp, eip, cs, eflags, esp, ss} {
		size := uint32(4)
		if r >= es && r <= gs {
			size = 2
		}
		fields = append(fields, sdk.RegisterField{Offset: control + 4*uint32(i), Size: size, Register: r})
	}
	return append(fields, fxsaveFields(extended)...)
}
