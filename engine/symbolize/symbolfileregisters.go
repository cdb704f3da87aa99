// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"debug/elf"
	"strconv"
	"strings"
)

// registerRange is registers with consecutive DWARF numbers. Their names are in the list, or
// are the prefix and a number.
type registerRange struct {
	first  uint64
	names  string // with blanks between them; "": prefix, start and count
	prefix string
	count  uint64
	start  uint64
}

// breakpadRegisters are the names of registers in STACK CFI records ("STACK CFI records"), by the
// DWARF numbers of their ABIs' supplements. Walkers of Breakpad expect a dollar sign before
// the names of x86.
var breakpadRegisters = map[elf.Machine][]registerRange{
	elf.EM_X86_64: {
		{first: 0, names: "$rax $rdx $rcx $rbx $rsi $rdi $rbp $rsp"},
		{first: 8, prefix: "$r", count: 8, start: 8},
		{first: 16, names: "$rip"},
		{first: 17, prefix: "$xmm", count: 16},
		{first: 33, prefix: "$st", count: 8},
		{first: 41, prefix: "$mm", count: 8},
		{first: 49, names: "$rflags $es $cs $ss $ds $fs $gs"},
		{first: 58, names: "$fs.base $gs.base"},
		{first: 62, names: "$tr $ldtr $mxcsr $fcw $fsw"},
	},
	elf.EM_386: {
		{first: 0, names: "$eax $ecx $edx $ebx $esp $ebp $esi $edi $eip $eflags"},
		{first: 11, prefix: "$st", count: 8},
		{first: 21, prefix: "$xmm", count: 8},
		{first: 29, prefix: "$mm", count: 8},
		{first: 37, names: "$fcw $fsw $mxcsr $es $cs $ss $ds $fs $gs"},
		{first: 48, names: "$tr $ldtr"},
	},
	elf.EM_ARM: {
		{first: 0, prefix: "r", count: 13},
		{first: 13, names: "sp lr pc"},
		{first: 16, prefix: "f", count: 8},
		{first: 24, names: "fps cpsr"},
		{first: 64, prefix: "s", count: 32},
	},
	elf.EM_AARCH64: {
		{first: 0, prefix: "x", count: 31},
		{first: 31, names: "sp"},
		{first: 64, prefix: "v", count: 32},
	},
	elf.EM_MIPS: {
		{first: 0, names: "$zero $at $v0 $v1 $a0 $a1 $a2 $a3 $t0 $t1 $t2 $t3 $t4 $t5 $t6 $t7"},
		{first: 16, names: "$s0 $s1 $s2 $s3 $s4 $s5 $s6 $s7 $t8 $t9 $k0 $k1 $gp $sp $fp $ra $lo $hi $pc"},
		{first: 35, prefix: "$f", count: 32},
	},
	elf.EM_RISCV: {
		{first: 1, names: "ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6"},
		{first: 32, prefix: "f", count: 32},
	},
}

// BreakpadRegisters names the registers of a machine (e_machine) by their numbers.
func BreakpadRegisters(machine uint16) func(number uint64) (string, bool) {
	known := map[uint64]string{}
	for _, r := range breakpadRegisters[elf.Machine(machine)] {
		for i, name := range strings.Fields(r.names) {
			known[r.first+uint64(i)] = name
		}
		for i := range r.count {
			known[r.first+i] = r.prefix + strconv.FormatUint(r.start+i, 10)
		}
	}
	return func(number uint64) (string, bool) {
		name, ok := known[number]
		return name, ok
	}
}
