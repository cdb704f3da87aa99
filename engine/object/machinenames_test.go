// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"encoding/binary"
	"testing"
)

func TestArchitecturesAreNamed(t *testing.T) {
	for _, c := range []struct {
		machine elf.Machine
		class   elf.Class
		order   binary.ByteOrder
		want    string
	}{
		{elf.EM_AARCH64, elf.ELFCLASS64, binary.LittleEndian, "aarch64"},
		{elf.EM_AARCH64, elf.ELFCLASS64, binary.BigEndian, "aarch64_be"},
		{elf.EM_386, elf.ELFCLASS32, binary.LittleEndian, "i386"},
		{elf.EM_X86_64, elf.ELFCLASS64, binary.LittleEndian, "x86_64"},
		{elf.EM_X86_64, elf.ELFCLASS32, binary.LittleEndian, "x32"},
		{elf.EM_PPC, elf.ELFCLASS32, binary.BigEndian, "ppc"},
		{elf.EM_PPC64, elf.ELFCLASS64, binary.BigEndian, "ppc64"},
		{elf.EM_PPC64, elf.ELFCLASS64, binary.LittleEndian, "ppc64le"},
		{elf.EM_S390, elf.ELFCLASS64, binary.BigEndian, "s390x"},
		{elf.EM_S390, elf.ELFCLASS32, binary.BigEndian, "s390"},
		{elf.EM_RISCV, elf.ELFCLASS64, binary.LittleEndian, "riscv64"},
		{elf.EM_RISCV, elf.ELFCLASS32, binary.LittleEndian, "riscv32"},
		{elf.EM_MIPS, elf.ELFCLASS32, binary.BigEndian, "mips"},
		{elf.EM_MIPS, elf.ELFCLASS64, binary.LittleEndian, "mips64el"},
		{elf.EM_LOONGARCH, elf.ELFCLASS64, binary.LittleEndian, "loongarch64"},
		{elf.EM_AMDGPU, elf.ELFCLASS64, binary.LittleEndian, "amdgpu"},
		{elf.EM_Z80, elf.ELFCLASS32, binary.LittleEndian, "z80"}, // known to debug/elf alone
		{0, elf.ELFCLASS64, binary.LittleEndian, "ELF machine 0"},
		{259, elf.ELFCLASS64, binary.LittleEndian, "ELF machine 259"},
		{0xfffe, elf.ELFCLASS64, binary.LittleEndian, "ELF machine 65534"},
	} {
		if got := ArchName(uint16(c.machine), c.class, c.order); got != c.want {
			t.Errorf("machine %d, %v, %v: %q, want %q", c.machine, c.class, c.order, got, c.want)
		}
	}
	if got, want := DescribeMachine(183), "ELF machine 183 (aarch64)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := DescribeMachine(32343), "ELF machine 32343"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
