// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The names of the processors whose contexts are read.
const (
	ArchAMD64 = "x86_64"
	ArchARM64 = "aarch64"
	ArchX86   = "i386"
	ArchARM   = "arm"
)

// contextFormat is the layout of a CONTEXT structure.
type contextFormat struct {
	arch      string
	size      int    // of the structure
	flagsAt   int    // of ContextFlags
	flagsSize int    // 4 or 8
	mask, cpu uint64 // ContextFlags & mask is cpu
	xstate    uint64 // the flag of an extended state behind the structure
	wide      int    // the number of vector registers in the extended state
	pc, sp    string
	fields    []field // by offset
}

// field is a register. It is present if one of the bits of group is set in ContextFlags.
type field struct {
	name         string
	offset, size int
	group        uint32
}

// The groups of ContextFlags.
const (
	control  = 1
	integer  = 2
	segments = 4    // of x86
	floating = 8    // of x86
	debug    = 0x10 // of x86
	fxsaved  = 0x20 // of i386: the FXSAVE area
	armFloat = 4    // of arm and arm64
	armDebug = 8    // of arm64

	allGroups = 0xffff
)

// The bits of ContextFlags for the processor. dbghelp may set the bits from 0x08000000
// up in contexts of its own. Breakpad has two of them for its formats. LLDB has another
// for a context of its own, which is as x86-64's up to rip and has the bases of fs and gs
// at its end.
const (
	cpuMask = 0x00ff0000
	lldbOwn = 0x80000000
)

var contextFormats = []*contextFormat{
	{arch: ArchAMD64, size: 1232, flagsAt: 48, flagsSize: 4, mask: cpuMask, cpu: 0x00100000, xstate: 0x40, wide: 16, pc: "rip", sp: "rsp", fields: amd64Fields()},
	{arch: ArchAMD64, size: 736, flagsAt: 48, flagsSize: 4, mask: cpuMask | lldbOwn, cpu: 0x00100000 | lldbOwn, pc: "rip", sp: "rsp", fields: lldbFields()},
	{arch: ArchARM64, size: 912, flagsSize: 4, mask: cpuMask, cpu: 0x00400000, pc: "pc", sp: "sp", fields: arm64Fields()},
	{arch: ArchX86, size: 716, flagsSize: 4, mask: cpuMask, cpu: 0x00010000, xstate: 0x40, wide: 8, pc: "eip", sp: "esp", fields: x86Fields()},
	{arch: ArchARM, size: 368, flagsSize: 4, mask: cpuMask | 0x40000000, cpu: 0x40000000, pc: "pc", sp: "sp", fields: armFields(integer)},
	{arch: ArchARM, size: 416, flagsSize: 4, mask: cpuMask, cpu: 0x00200000, pc: "pc", sp: "sp", fields: armFields(control)},
	{arch: ArchARM64, size: 796, flagsSize: 8, mask: cpuMask | 0x80000000, cpu: 0x80000000, pc: "pc", sp: "sp", fields: oldARM64Fields()},
}

// generalNames are the general registers, by processor.
var generalNames = map[string][]string{
	ArchAMD64: strings.Fields("rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip"),
	ArchX86:   strings.Fields("eip esp ebp ebx esi edi eax ecx edx eflags"),
	ArchARM64: append(numberedNames("x%d", 31), "sp", "pc"),
	ArchARM:   append(numberedNames("r%d", 13), "sp", "lr", "pc"),
}

func numberedNames(format string, count int) []string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return list
}

// general returns the general registers of a format.
func (f *contextFormat) general() []string { return generalNames[f.arch] }

// bits returns the number of bits of a general register.
func (f *contextFormat) bits() int {
	if slices.Contains(narrowArchitectures, f.arch) {
		return 32
	}
	return 64
}

// flags returns the ContextFlags of a context of the format.
func (f *contextFormat) flags(r record) uint64 {
	if f.flagsSize == 8 {
		return r.u64(f.flagsAt)
	}
	return uint64(r.u32(f.flagsAt))
}

// fits reports whether a context may be of the format.
func (f *contextFormat) fits(r record) bool { return len(r.b) >= f.size && f.flags(r)&f.mask == f.cpu }

// findFormat returns the format of a context: one of the machine's own, else of
// another processor, whose programs it executes (such as i386 on x86_64); nil where
// there is none.
func findFormat(arch string, r record) *contextFormat {
	own := slices.IndexFunc(contextFormats, func(f *contextFormat) bool { return f.arch == arch && f.fits(r) })
	if own < 0 {
		own = slices.IndexFunc(contextFormats, func(f *contextFormat) bool { return f.fits(r) })
	}
	if own < 0 {
		return nil
	}
	return contextFormats[own]
}

// run returns consecutive registers of one size.
func run(offset, size int, group uint32, names ...string) []field {
	list := make([]field, len(names))
	for i, name := range names {
		list[i] = field{name, offset + i*size, size, group}
	}
	return list
}

// numbered returns registers whose names have numbers.
func numbered(offset, size, stride, count int, group uint32, format string) []field {
	list := make([]field, count)
	for i := range count {
		list[i] = field{fmt.Sprintf(format, i), offset + i*stride, size, group}
	}
	return list
}

func fields(lists ...[]field) []field {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b field) int { return cmp.Compare(a.offset, b.offset) })
	return all
}

// fxsave returns the registers of an FXSAVE area (Intel SDM volume 1, 10.5.1). The area
// of i386 has 8 vector registers.
func fxsave(offset, vectors int, group uint32) []field {
	return slices.Concat(
		run(offset, 2, group, "fcw", "fsw", "ftw", "fop"),
		run(offset+8, 4, group, "fip", "fcs", "fdp", "fds", "mxcsr", "mxcsr_mask"),
		numbered(offset+32, 10, 16, 8, group, "st%d"),
		numbered(offset+160, 16, 16, vectors, group, "xmm%d"))
}

// amd64Fields returns the fields of CONTEXT for x86-64 (winnt.h). MxCsr is there twice,
// the one of the FXSAVE area is left out. rbp is among the integer registers.
func amd64Fields() []field {
	save := slices.DeleteFunc(fxsave(256, 16, floating), func(f field) bool { return f.name == "mxcsr" })
	return fields(
		run(52, 4, floating, "mxcsr"),
		run(56, 2, control, "cs"), run(58, 2, segments, "ds", "es", "fs", "gs"), run(66, 2, control, "ss"),
		run(68, 4, control, "eflags"),
		run(72, 8, debug, "dr0", "dr1", "dr2", "dr3", "dr6", "dr7"),
		run(120, 8, integer, "rax", "rcx", "rdx", "rbx"), run(152, 8, control, "rsp"),
		run(160, 8, integer, "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"),
		run(248, 8, control, "rip"),
		save,
		run(1192, 8, debug, "debug_control", "last_branch_to", "last_branch_from", "last_exception_to", "last_exception_from"))
}

// lldbFields returns the fields of the context that LLDB writes for x86-64. Its space
// for vector registers is not filled.
func lldbFields() []field {
	core := slices.DeleteFunc(amd64Fields(), func(f field) bool { return f.offset >= 256 || f.group&(control|integer|segments) == 0 })
	return append(core, run(720, 8, lldbOwn, "fs_base", "gs_base")...)
}

// x86Fields returns the fields of CONTEXT for i386 (winnt.h). The x87 registers are there
// in the format of FSAVE, and again, with the SSE registers, in the format of FXSAVE.
func x86Fields() []field {
	return fields(
		run(4, 4, debug, "dr0", "dr1", "dr2", "dr3", "dr6", "dr7"),
		run(28, 4, floating, "fsave_control", "fsave_status", "fsave_tag", "fsave_error_offset", "fsave_error_selector",
			"fsave_data_offset", "fsave_data_selector"),
		numbered(56, 10, 10, 8, floating, "fsave_st%d"), run(136, 4, floating, "cr0_npx_state"),
		run(140, 4, segments, "gs", "fs", "es", "ds"),
		run(156, 4, integer, "edi", "esi", "ebx", "edx", "ecx", "eax"),
		run(180, 4, control, "ebp", "eip", "cs", "eflags", "esp", "ss"),
		fxsave(204, 8, fxsaved))
}

// arm64Fields returns the fields of CONTEXT for arm64 (winnt.h), which Breakpad has too.
// x29 and x30 are of the control group.
func arm64Fields() []field {
	return fields(
		run(4, 4, control, "cpsr"),
		numbered(8, 8, 8, 29, integer, "x%d"), run(240, 8, control, "x29", "x30", "sp", "pc"),
		numbered(272, 16, 16, 32, armFloat, "v%d"), run(784, 4, armFloat, "fpcr", "fpsr"),
		numbered(792, 4, 4, 8, armDebug, "bcr%d"), numbered(824, 8, 8, 8, armDebug, "bvr%d"),
		numbered(888, 4, 4, 2, armDebug, "wcr%d"), numbered(896, 8, 8, 2, armDebug, "wvr%d"))
}

// oldARM64Fields returns the fields of Breakpad's older format.
func oldARM64Fields() []field {
	return fields(
		numbered(8, 8, 8, 31, integer, "x%d"), run(256, 8, integer, "sp", "pc"), run(272, 4, integer, "cpsr"),
		run(276, 4, armFloat, "fpsr", "fpcr"), numbered(284, 16, 16, 32, armFloat, "v%d"))
}

// armFields returns the fields of CONTEXT for arm, which begins the same in Breakpad and
// in winnt.h. frame is the flag of the last core registers.
func armFields(frame uint32) []field {
	return fields(
		numbered(4, 4, 4, 13, integer, "r%d"), run(56, 4, frame, "sp", "lr", "pc", "cpsr"),
		run(72, 4, armFloat, "fpscr"), numbered(80, 8, 8, 32, armFloat, "d%d"))
}
