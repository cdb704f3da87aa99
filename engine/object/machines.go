package object

import "debug/elf"

// DataRelocations are the relocation types that sections of data and debugging
// information have on a machine that no architecture describes: those that hold
// an address, and those that hold the distance to one. nil where the machine is
// not known. Types that add to what another one left are not among them, so that
// a section that has them cannot be read.
func DataRelocations(machine uint16) []Relocation { return dataRelocations[elf.Machine(machine)] }

// dataRelocations has the types of the processor supplements of the System V
// ABI, whose names debug/elf has.
var dataRelocations = map[elf.Machine][]Relocation{
	elf.EM_386:         words(absolute32(elf.R_386_32), relative32(elf.R_386_PC32)),
	elf.EM_68K:         words(absolute32(1), relative32(4)), // R_68K_32, R_68K_PC32
	elf.EM_SPARC:       sparc,
	elf.EM_SPARC32PLUS: sparc,
	elf.EM_SPARCV9:     sparc,
	elf.EM_MIPS:        words(absolute32(elf.R_MIPS_32), absolute64(elf.R_MIPS_64), relative32(elf.R_MIPS_PC32)),
	elf.EM_PPC:         words(absolute32(elf.R_PPC_ADDR32), absolute32(elf.R_PPC_UADDR32), relative32(elf.R_PPC_REL32)),
	elf.EM_PPC64: words(absolute32(elf.R_PPC64_ADDR32), absolute64(elf.R_PPC64_ADDR64), absolute64(elf.R_PPC64_UADDR64),
		relative32(elf.R_PPC64_REL32), relative64(elf.R_PPC64_REL64)),
	elf.EM_S390: words(absolute32(elf.R_390_32), absolute64(elf.R_390_64), relative32(elf.R_390_PC32), relative64(elf.R_390_PC64)),
	elf.EM_ARM:  words(absolute32(elf.R_ARM_ABS32), relative32(elf.R_ARM_REL32)),
	elf.EM_AARCH64: words(absolute32(elf.R_AARCH64_ABS32), absolute64(elf.R_AARCH64_ABS64),
		relative32(elf.R_AARCH64_PREL32), relative64(elf.R_AARCH64_PREL64)),
	elf.EM_X86_64:    words(absolute32(elf.R_X86_64_32), absolute64(elf.R_X86_64_64), relative32(elf.R_X86_64_PC32), relative64(elf.R_X86_64_PC64)),
	elf.EM_RISCV:     words(absolute32(elf.R_RISCV_32), absolute64(elf.R_RISCV_64), relative32(elf.R_RISCV_32_PCREL)),
	elf.EM_LOONGARCH: words(absolute32(elf.R_LARCH_32), absolute64(elf.R_LARCH_64), relative32(elf.R_LARCH_32_PCREL), relative64(elf.R_LARCH_64_PCREL)),
}

var sparc = words(absolute32(elf.R_SPARC_32), absolute32(elf.R_SPARC_UA32), absolute64(elf.R_SPARC_64), absolute64(elf.R_SPARC_UA64),
	relative32(elf.R_SPARC_DISP32), relative64(elf.R_SPARC_DISP64))

// words are relocation types and type 0, which is none on every machine.
func words(list ...Relocation) []Relocation {
	return append(list, Relocation{Type: 0, Kind: RelocationNone})
}

func absolute32[T ~int | ~uint32](t T) Relocation {
	return Relocation{Type: uint32(t), Size: 4, Kind: RelocationAbsolute}
}

func absolute64[T ~int | ~uint32](t T) Relocation {
	return Relocation{Type: uint32(t), Size: 8, Kind: RelocationAbsolute}
}

func relative32[T ~int | ~uint32](t T) Relocation {
	return Relocation{Type: uint32(t), Size: 4, Kind: RelocationRelative}
}

func relative64[T ~int | ~uint32](t T) Relocation {
	return Relocation{Type: uint32(t), Size: 8, Kind: RelocationRelative}
}
