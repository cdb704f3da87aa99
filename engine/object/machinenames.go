// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

// machineNames are the names of the architectures of ELF machines, as in `uname -m` and in the
// names of cross compilers. Machines that only debug/elf knows have the name of their constant.
var machineNames = map[elf.Machine]string{
	elf.EM_386: "i386", elf.EM_X86_64: "x86_64", elf.EM_ARM: "arm", elf.EM_AARCH64: "aarch64",
	elf.EM_PPC: "ppc", elf.EM_PPC64: "ppc64", elf.EM_S390: "s390", elf.EM_RISCV: "riscv",
	elf.EM_MIPS: "mips", elf.EM_MIPS_RS3_LE: "mips", elf.EM_LOONGARCH: "loongarch",
	elf.EM_SPARC: "sparc", elf.EM_SPARC32PLUS: "sparc", elf.EM_SPARCV9: "sparc64",
	elf.EM_ALPHA: "alpha", elf.EM_ALPHA_STD: "alpha", elf.EM_IA_64: "ia64", elf.EM_PARISC: "hppa",
	elf.EM_68K: "m68k", elf.EM_SH: "sh", elf.EM_ARC_COMPACT: "arc", elf.EM_ARC_COMPACT2: "arc",
	elf.EM_OPENRISC: "or1k", elf.EM_QDSP6: "hexagon",
	elf.EM_AMDGPU: "amdgpu", elf.EM_CUDA: "nvidia", elf.EM_BPF: "bpf",
	// debug/elf does not have EM_INTELGT and EM_CSKY.
	205: "visa", 252: "csky",
}

// variantNames are the names of architectures of which one machine has several, by its name, the
// class and the byte order.
var variantNames = map[string]string{
	"x86_64 32 little": "x32",
	"arm 32 big":       "armeb", "aarch64 64 big": "aarch64_be", "ppc64 64 little": "ppc64le",
	"s390 64 big":     "s390x",
	"riscv 32 little": "riscv32", "riscv 64 little": "riscv64",
	"mips 32 little": "mipsel", "mips 64 big": "mips64", "mips 64 little": "mips64el",
	"loongarch 32 little": "loongarch32", "loongarch 64 little": "loongarch64",
}

// MachineName returns the common name of the architectures of an ELF machine: "riscv". A machine
// without a known name is "ELF machine 4711".
func MachineName(machine uint16) string {
	if name, ok := machineNames[elf.Machine(machine)]; ok {
		return name
	}
	// debug/elf counts from the last constant that it knows: "EM_LOONGARCH+3".
	if name, ok := strings.CutPrefix(elf.Machine(machine).String(), "EM_"); ok && machine != 0 && !strings.Contains(name, "+") {
		return strings.ToLower(strings.TrimSpace(name))
	}
	return fmt.Sprintf("ELF machine %d", machine)
}

// ArchName returns the name of the architecture of ELF files with a machine, a class and a byte
// order: "riscv64", "ppc64le".
func ArchName(machine uint16, class elf.Class, order binary.ByteOrder) string {
	name := MachineName(machine)
	bits, end := 32, "little"
	if class == elf.ELFCLASS64 {
		bits = 64
	}
	if order == binary.ByteOrder(binary.BigEndian) {
		end = "big"
	}
	if form, ok := variantNames[fmt.Sprintf("%s %d %s", name, bits, end)]; ok {
		return form
	}
	return name
}

// DescribeMachine returns an ELF machine for messages: its number and its name.
func DescribeMachine(machine uint16) string {
	name := MachineName(machine)
	number := fmt.Sprintf("ELF machine %d", machine)
	if name == number {
		return number
	}
	return fmt.Sprintf("%s (%s)", number, name)
}
