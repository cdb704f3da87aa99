// SPDX-License-Identifier: Apache-2.0

package riscv64

import "github.com/unwindd/unwindd/sdk"

// Core note types.
const (
	ntPrstatus = 1
	ntFpregset = 2
)

// registerSets are the layouts of records of registers: notes of cores, and samples of
// perf.
func registerSets() []sdk.RegisterSet {
	return []sdk.RegisterSet{
		{Source: sdk.CoreNote, Owner: "CORE", Type: ntPrstatus, Fields: prstatusFields()},
		{Source: sdk.CoreNote, Owner: "CORE", Type: ntFpregset, Fields: fpregsetFields()},
		{Source: sdk.PerfSample, Fields: perfFields()},
	}
}

// prstatusFields lays out the registers of elf_prstatus: pr_reg, at byte 112, is a
// user_regs_struct (asm/ptrace.h of Linux): the PC and x1 to x31.
func prstatusFields() []sdk.RegisterField {
	const prReg = 112
	fields := []sdk.RegisterField{{Offset: prReg, Size: 8, Register: pc}}
	for i := range uint32(31) {
		fields = append(fields, sdk.RegisterField{Offset: prReg + 8 + 8*i, Size: 8, Register: ra + i})
	}
	return fields
}

// fpregsetFields lays out __riscv_d_ext_state of asm/ptrace.h.
func fpregsetFields() []sdk.RegisterField {
	var fields []sdk.RegisterField
	for i := range uint32(32) {
		fields = append(fields, sdk.RegisterField{Offset: 8 * i, Size: 8, Register: f0 + i})
	}
	return append(fields, sdk.RegisterField{Offset: 256, Size: 4, Register: fcsr})
}

// perfFields are the bits PERF_REG_RISCV_* of asm/perf_regs.h: the PC and x1 to x31.
func perfFields() []sdk.RegisterField {
	fields := []sdk.RegisterField{{Offset: 0, Size: 8, Register: pc}}
	for i := uint32(1); i < 32; i++ {
		fields = append(fields, sdk.RegisterField{Offset: i, Size: 8, Register: zero + i})
	}
	return fields
}
