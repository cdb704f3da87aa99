// SPDX-License-Identifier: Apache-2.0

package pdbtypes

import "github.com/unwindd/unwindd/engine/internal/pe"

// register is where DWARF has a register of CodeView, or a part of one.
type register struct {
	number uint64 // DWARF's
	size   uint64 // bytes
	start  uint64 // bytes: where the part begins in DWARF's register
}

// registerRun is registers of CodeView whose numbers follow one another, and DWARF's numbers.
type registerRun struct {
	first   uint16
	size    uint64
	start   uint64
	numbers []uint64
}

// from are the numbers from one on.
func from(first, count uint64) []uint64 {
	list := make([]uint64, count)
	for i := range list {
		list[i] = first + uint64(i)
	}
	return list
}

// registerFrame is CV_ALLREG_VFRAME: the value that a program of frame data gives to $T0.
const registerFrame = 30006

// machine has the registers of an architecture.
type machine struct {
	addressSize uint64
	hasX87      bool // real numbers of 10 bytes
	runs        []registerRun
	// basePointers are the registers of CodeView that S_FRAMEPROC numbers, 0 for none.
	basePointers [4]uint16
}

// machines are the architectures by IMAGE_FILE_MACHINE_*. The numbers of DWARF are from the
// psABIs: on x86-64 they are rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8, ..., on i386 eax, ecx,
// edx, ebx, esp, ebp, esi, edi.
var machines = map[uint16]*machine{
	pe.MachineX86_64: {8, true, []registerRun{
		{1, 1, 0, []uint64{0, 2, 1, 3}},                     // al, cl, dl, bl
		{5, 1, 1, []uint64{0, 2, 1, 3}},                     // ah, ch, dh, bh
		{9, 2, 0, []uint64{0, 2, 1, 3, 7, 6, 4, 5}},         // ax, cx, dx, bx, sp, bp, si, di
		{17, 4, 0, []uint64{0, 2, 1, 3, 7, 6, 4, 5}},        // eax, ...
		{128, 10, 0, from(33, 8)},                           // st0
		{146, 8, 0, from(41, 8)},                            // mm0
		{154, 16, 0, from(17, 8)},                           // xmm0
		{252, 16, 0, from(25, 8)},                           // xmm8
		{324, 1, 0, []uint64{4, 5, 6, 7}},                   // sil, dil, bpl, spl
		{328, 8, 0, []uint64{0, 3, 2, 1, 4, 5, 6, 7}},       // rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp
		{336, 8, 0, from(8, 8)},                             // r8
		{344, 1, 0, from(8, 8)},                             // r8b
		{352, 2, 0, from(8, 8)},                             // r8w
		{360, 4, 0, from(8, 8)},                             // r8d
		{368, 32, 0, from(17, 16)},                          // ymm0
		{694, 16, 0, from(67, 16)},                          // xmm16
		{710, 32, 0, from(67, 16)},                          // ymm16
		{726, 64, 0, append(from(17, 16), from(67, 16)...)}, // zmm0
		{758, 8, 0, from(118, 8)},                           // k0
	}, [4]uint16{0, 335, 334, 341}}, // rsp, rbp, r13
	pe.MachineX86: {4, true, []registerRun{
		{1, 1, 0, from(0, 4)},     // al, cl, dl, bl
		{5, 1, 1, from(0, 4)},     // ah, ch, dh, bh
		{9, 2, 0, from(0, 8)},     // ax, ...
		{17, 4, 0, from(0, 8)},    // eax, ecx, edx, ebx, esp, ebp, esi, edi
		{128, 10, 0, from(11, 8)}, // st0
		{146, 8, 0, from(29, 8)},  // mm0
		{154, 16, 0, from(21, 8)}, // xmm0
	}, [4]uint16{0, registerFrame, 22, 20}}, // ebp, ebx
	pe.MachineARM64: {8, false, []registerRun{
		{10, 4, 0, from(0, 31)},   // w0
		{50, 8, 0, from(0, 32)},   // x0 to sp
		{100, 4, 0, from(64, 32)}, // s0
		{140, 8, 0, from(64, 32)}, // d0
		{180, 16, 0, from(64, 32)},
	}, [4]uint16{0, 81, 79, 0}}, // sp, fp
}

// register returns where DWARF has a register of CodeView.
func (m *machine) register(number uint16) (r register, ok bool) {
	for i := range m.runs {
		run := &m.runs[i]
		if n := number - run.first; number >= run.first && int(n) < len(run.numbers) {
			return register{run.numbers[n], run.size, run.start}, true
		}
	}
	return r, false
}
