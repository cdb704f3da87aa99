// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"fmt"
	"strconv"
)

// Thread ID, signal and PC of NT_PRSTATUS are read without an architecture. The note is struct
// elf_prstatus of Linux (include/linux/elfcore.h), whose beginning is the same everywhere except
// for the size and alignment of words, and whose pr_reg is the architecture's elf_gregset_t.

// statusLayout has the offsets of members in NT_PRSTATUS of one size.
type statusLayout struct {
	size int // of the note
	pid  int // offset of pr_pid
	pc   int // offset of the program counter
	bits int // size of the program counter; higher bits of its word are not part of it
}

// statusKey identifies the architecture of NT_PRSTATUS.
type statusKey struct {
	machine elf.Machine
	is64    bool // ELFCLASS64
}

// statusLayouts are by architecture, and there by the note's size. pr_reg is
// at offset 72 of 32-bit notes and at 112 of 64-bit ones; the program counter is
// a member of pr_reg (arch/*/include/uapi/asm/ptrace.h).
var statusLayouts = map[statusKey][]statusLayout{
	{elf.EM_386, false}:         {{144, 24, 72 + 4*12, 32}},
	{elf.EM_X86_64, true}:       {{336, 32, 112 + 8*16, 64}},
	{elf.EM_X86_64, false}:      {{296, 24, 72 + 8*16, 64}}, // x32
	{elf.EM_ARM, false}:         {{148, 24, 72 + 4*15, 32}},
	{elf.EM_AARCH64, true}:      {{392, 32, 112 + 8*32, 64}},
	{elf.EM_PPC, false}:         {{268, 24, 72 + 4*32, 32}},
	{elf.EM_PPC64, true}:        {{504, 32, 112 + 8*32, 64}},
	{elf.EM_S390, false}:        {{224, 24, 72 + 4*1, 31}}, // of 31-bit addresses
	{elf.EM_S390, true}:         {{336, 32, 112 + 8*1, 64}},
	{elf.EM_RISCV, false}:       {{204, 24, 72, 32}},
	{elf.EM_RISCV, true}:        {{376, 32, 112, 64}},
	{elf.EM_MIPS, false}:        {{256, 24, 72 + 4*40, 32}, {440, 24, 72 + 8*34, 64}}, // o32, n32
	{elf.EM_MIPS, true}:         {{480, 32, 112 + 8*34, 64}},
	{elf.EM_LOONGARCH, true}:    {{480, 32, 112 + 8*33, 64}},
	{elf.EM_SPARC, false}:       {{228, 24, 72 + 4*33, 32}},
	{elf.EM_SPARCV9, true}:      {{408, 32, 112 + 8*33, 64}},
	{elf.EM_ALPHA, true}:        {{384, 32, 112 + 8*32, 64}},
	{elf.EM_ALPHA_STD, true}:    {{384, 32, 112 + 8*32, 64}},
	{elf.EM_SH, false}:          {{168, 24, 72 + 4*16, 32}},
	{elf.EM_68K, false}:         {{154, 22, 70 + 4*18, 32}}, // words are aligned to 2 bytes
	{elf.EM_SPARC32PLUS, false}: {{228, 24, 72 + 4*33, 32}},
}

func (h *coreHeader) statusKey() statusKey { return statusKey{elf.Machine(h.machine), h.is64} }

// statusLayout returns the layout of an NT_PRSTATUS of a size. If it is not known, ok is false,
// and the offset of pr_pid is that of most architectures.
func (h *coreHeader) statusLayout(size int) (l statusLayout, ok bool) {
	for _, l := range statusLayouts[h.statusKey()] {
		if l.size == size {
			return l, true
		}
	}
	return statusLayout{pid: h.offset(24, 32)}, false
}

// readStatus reads the beginning of NT_PRSTATUS: si_signo, si_code
// and si_errno of pr_info (4 bytes each), pr_cursig (2 bytes), pr_sigpend and
// pr_sighold (a word each), pr_pid.
func (h *coreHeader) readStatus(t *thread) (problem string) {
	data := t.status.data
	l, _ := h.statusLayout(len(data))
	if len(data) < l.pid+4 {
		t.Problem = fmt.Sprintf("NT_PRSTATUS at offset %#x has %d bytes, expected at least %d", t.status.offset, len(data), l.pid+4)
		return t.Problem
	}
	t.Signal = int(int16(h.order.Uint16(data[12:])))
	if t.Signal == 0 {
		t.Signal = int(int32(h.order.Uint32(data)))
	}
	t.lwp = int64(int32(h.order.Uint32(data[l.pid:])))
	t.ID = strconv.FormatInt(t.lwp, 10)
	return ""
}

// readPC reads the program counter of a thread whose registers no architecture
// reads. problem is why it is not known.
func (h *coreHeader) readPC(t *thread) (problem string) {
	data := t.status.data
	l, ok := h.statusLayout(len(data))
	switch known := statusLayouts[h.statusKey()]; {
	case !ok && len(known) == 0:
		return fmt.Sprintf("where its threads are is not known: the layout of NT_PRSTATUS of %s is not", h.arch())
	case !ok:
		return fmt.Sprintf("where its threads are is not known: NT_PRSTATUS at offset %#x has %d bytes, expected %d, as those of %s have",
			t.status.offset, len(data), known[0].size, h.arch())
	case l.bits <= 32:
		t.PC = uint64(h.order.Uint32(data[l.pc:])) & (1<<l.bits - 1)
	default:
		t.PC = h.mask(h.order.Uint64(data[l.pc:]))
	}
	t.HasPC = true
	return ""
}
