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

// A form is a CONTEXT structure.
type form struct {
	arch      string
	size      int    // of the structure
	flagsAt   int    // of ContextFlags
	flagsSize int    // 4 or 8
	mask, cpu uint64 // ContextFlags & mask is cpu
	xstate    uint64 // the flag of an extended state behind the structure
	wide      int    // how many vector registers that state has
	pc, sp    string
	fields    []field // by offset
}

// A field is a register. group has the bits of ContextFlags of which one says that
// it is there.
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

// The bits of ContextFlags that say the processor. dbghelp may set those from
// 0x08000000 up in contexts of its own. Breakpad has two of them for its forms.
// LLDB has another for a context of its own, which is that of x86-64 up to rip and
// has the bases of fs and gs at its end.
const (
	cpuMask = 0x00ff0000
	lldbOwn = 0x80000000
)

var contextForms = []*form{
	{arch: ArchAMD64, size: 1232, flagsAt: 48, flagsSize: 4, mask: cpuMask, cpu: 0x00100000, xstate: 0x40, wide: 16, pc: "rip", sp: "rsp", fields: amd64Fields()},
	{arch: ArchAMD64, size: 736, flagsAt: 48, flagsSize: 4, mask: cpuMask | lldbOwn, cpu: 0x00100000 | lldbOwn, pc: "rip", sp: "rsp", fields: lldbFields()},
	{arch: ArchARM64, size: 912, flagsSize: 4, mask: cpuMask, cpu: 0x00400000, pc: "pc", sp: "sp", fields: arm64Fields()},
	{arch: ArchX86, size: 716, flagsSize: 4, mask: cpuMask, cpu: 0x00010000, xstate: 0x40, wide: 8, pc: "eip", sp: "esp", fields: x86Fields()},
	{arch: ArchARM, size: 368, flagsSize: 4, mask: cpuMask | 0x40000000, cpu: 0x40000000, pc: "pc", sp: "sp", fields: armFields(integer)},
	{arch: ArchARM, size: 416, flagsSize: 4, mask: cpuMask, cpu: 0x00200000, pc: "pc", sp: "sp", fields: armFields(control)},
	{arch: ArchARM64, size: 796, flagsSize: 8, mask: cpuMask | 0x80000000, cpu: 0x80000000, pc: "pc", sp: "sp", fields: oldARM64Fields()},
}

// generalNames are the registers that programs compute with, by processor.
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

// general are the registers of a form that programs compute with.
func (f *form) general() []string { return generalNames[f.arch] }

// bits is how many bits they have.
func (f *form) bits() int {
	if slices.Contains(narrowArchitectures, f.arch) {
		return 32
	}
	return 64
}

// flags are the ContextFlags of a context of the form.
func (f *form) flags(r record) uint64 {
	if f.flagsSize == 8 {
		return r.u64(f.flagsAt)
	}
	return uint64(r.u32(f.flagsAt))
}

// fits says whether a context may be of the form.
func (f *form) fits(r record) bool { return len(r.b) >= f.size && f.flags(r)&f.mask == f.cpu }

// findForm finds the form of a context: one of the machine's own, else that of
// another processor, whose programs it executes (i386 in x86_64, for one). nil:
// there is none.
func findForm(arch string, r record) *form {
	own := slices.IndexFunc(contextForms, func(f *form) bool { return f.arch == arch && f.fits(r) })
	if own < 0 {
		own = slices.IndexFunc(contextForms, func(f *form) bool { return f.fits(r) })
	}
	if own < 0 {
		return nil
	}
	return contextForms[own]
}

// run are registers of one size that follow one another.
func run(offset, size int, group uint32, names ...string) []field {
	list := make([]field, len(names))
	for i, name := range names {
		list[i] = field{name, offset + i*size, size, group}
	}
	return list
}

// numbered are registers whose names have numbers.
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

// fxsave are the registers of an FXSAVE area (Intel SDM volume 1, 10.5.1). The area
// of i386 has 8 vector registers.
func fxsave(at, vectors int, group uint32) []field {
	return slices.Concat(
		run(at, 2, group, "fcw", "fsw", "ftw", "fop"),
		run(at+8, 4, group, "fip", "fcs", "fdp", "fds", "mxcsr", "mxcsr_mask"),
		numbered(at+32, 10, 16, 8, group, "st%d"),
		numbered(at+160, 16, 16, vectors, group, "xmm%d"))
}

// amd64Fields are those of CONTEXT for x86-64 (winnt.h). MxCsr is there twice, the
// one of the FXSAVE area is left out. rbp is among the integer registers.
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

// lldbFields are those of the context that LLDB writes for x86-64. It has room for
// vector registers, and none are written.
func lldbFields() []field {
	core := slices.DeleteFunc(amd64Fields(), func(f field) bool { return f.offset >= 256 || f.group&(control|integer|segments) == 0 })
	return append(core, run(720, 8, lldbOwn, "fs_base", "gs_base")...)
}

// x86Fields are those of CONTEXT for i386 (winnt.h). The x87 registers are there in
// the form of FSAVE, and once more, with those of SSE, in that of FXSAVE.
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

// arm64Fields are those of CONTEXT for arm64 (winnt.h), which Breakpad has too. x29
// and x30 are of the control group.
func arm64Fields() []field {
	return fields(
		run(4, 4, control, "cpsr"),
		numbered(8, 8, 8, 29, integer, "x%d"), run(240, 8, control, "x29", "x30", "sp", "pc"),
		numbered(272, 16, 16, 32, armFloat, "v%d"), run(784, 4, armFloat, "fpcr", "fpsr"),
		numbered(792, 4, 4, 8, armDebug, "bcr%d"), numbered(824, 8, 8, 8, armDebug, "bvr%d"),
		numbered(888, 4, 4, 2, armDebug, "wcr%d"), numbered(896, 8, 8, 2, armDebug, "wvr%d"))
}

// oldARM64Fields are those of the form that Breakpad had before.
func oldARM64Fields() []field {
	return fields(
		numbered(8, 8, 8, 31, integer, "x%d"), run(256, 8, integer, "sp", "pc"), run(272, 4, integer, "cpsr"),
		run(276, 4, armFloat, "fpsr", "fpcr"), numbered(284, 16, 16, 32, armFloat, "v%d"))
}

// armFields are those of CONTEXT for arm, whose beginning is the same in Breakpad's
// form and in that of winnt.h. frame has the flag of the last of its core
// registers.
func armFields(frame uint32) []field {
	return fields(
		numbered(4, 4, 4, 13, integer, "r%d"), run(56, 4, frame, "sp", "lr", "pc", "cpsr"),
		run(72, 4, armFloat, "fpscr"), numbered(80, 8, 8, 32, armFloat, "d%d"))
}
