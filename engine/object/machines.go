// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"

	"github.com/unwindd/unwindd/sdk/reloc"
)

// Machines of which debug/elf has no name of its own.
const (
	machineVE   = elf.Machine(251) // EM_VE
	machineCSKY = elf.Machine(252) // EM_CSKY
)

// machineRelocations has the relocation types of sections of data and debugging information, by
// machine, of the processor supplements of the System V ABI; their numbers are in debug/elf or in
// the comment. The types of thread-local storage (DTPREL, DTPOFF, LDO) are for the offset of a
// symbol in its block, which is the symbol's value before linking.
var machineRelocations = tables(map[elf.Machine][]reloc.Entry{
	elf.EM_386: {abs32(elf.R_386_32), rel32(elf.R_386_PC32), abs16(elf.R_386_16), abs8(elf.R_386_8), abs32(elf.R_386_TLS_LDO_32)},
	elf.EM_68K: {abs32(1), abs16(2), abs8(3), rel32(4), abs32(31)}, // R_68K_32, _16, _8, _PC32, _TLS_LDO32
	elf.EM_AARCH64: {
		abs32(elf.R_AARCH64_ABS32), abs64(elf.R_AARCH64_ABS64), abs16(elf.R_AARCH64_ABS16),
		rel32(elf.R_AARCH64_PREL32), rel64(elf.R_AARCH64_PREL64),
		abs32(elf.R_AARCH64_P32_ABS32), rel32(elf.R_AARCH64_P32_PREL32), abs16(elf.R_AARCH64_P32_ABS16),
	},
	elf.EM_ALPHA: {
		abs32(elf.R_ALPHA_REFLONG), abs64(elf.R_ALPHA_REFQUAD), rel32(elf.R_ALPHA_SREL32), rel64(elf.R_ALPHA_SREL64),
		abs64(33), // R_ALPHA_DTPREL64
	},
	elf.EM_ARC_COMPACT:  arc,
	elf.EM_ARC_COMPACT2: arc,
	elf.EM_ARM: {
		abs32(elf.R_ARM_ABS32), abs16(elf.R_ARM_ABS16), abs8(elf.R_ARM_ABS8), rel32(elf.R_ARM_REL32),
		abs32(elf.R_ARM_TLS_LDO32),
	},
	// R_AVR_32, _16, _8, and _DIFF8, _16, _32 and _32_PCREL: the assembler has
	// written the difference of the DIFF types, linkers correct it.
	elf.EM_AVR:   {abs32(1), abs16(4), abs8(26), none(30), none(31), none(32), rel32(36)},
	elf.EM_BPF:   {abs64(2), abs32(3), abs32(4)},           // R_BPF_64_ABS64, _ABS32, _NODYLD32
	elf.EM_CUDA:  {abs32(1), abs64(2), abs32(3), abs64(4)}, // R_CUDA_32, _64, _G32, _G64
	machineCSKY:  {abs32(1), rel32(5), abs32(55)},          // R_CKCORE_ADDR32, _PCREL32, _TLS_LDO32
	elf.EM_LANAI: {abs32(4)},                               // R_LANAI_32
	elf.EM_LOONGARCH: {
		abs32(elf.R_LARCH_32), abs64(elf.R_LARCH_64), rel32(elf.R_LARCH_32_PCREL), rel64(elf.R_LARCH_64_PCREL),
		add(elf.R_LARCH_ADD8, 1), add(elf.R_LARCH_ADD16, 2), add(elf.R_LARCH_ADD32, 4), add(elf.R_LARCH_ADD64, 8),
		subtract(elf.R_LARCH_SUB8, 1), subtract(elf.R_LARCH_SUB16, 2), subtract(elf.R_LARCH_SUB32, 4), subtract(elf.R_LARCH_SUB64, 8),
		low(elf.R_LARCH_ADD6, reloc.Add), low(elf.R_LARCH_SUB6, reloc.Subtract),
		leb(elf.R_LARCH_ADD_ULEB128, reloc.Add), leb(elf.R_LARCH_SUB_ULEB128, reloc.Subtract),
		abs32(elf.R_LARCH_TLS_DTPREL32), abs64(elf.R_LARCH_TLS_DTPREL64),
	},
	elf.EM_MIPS: {
		abs32(elf.R_MIPS_32), abs64(elf.R_MIPS_64), abs16(elf.R_MIPS_16), rel32(elf.R_MIPS_PC32),
		abs32(elf.R_MIPS_TLS_DTPREL32), abs64(elf.R_MIPS_TLS_DTPREL64),
	},
	elf.EM_MSP430: {abs32(1)}, // R_MSP430_32, the same in both numberings
	elf.EM_PARISC: { // R_PARISC_DIR32, _SECREL32, _DIR64, _SECREL64, _PCREL32, _PCREL64
		abs32(1), abs32(41), abs64(80), abs64(104), {Type: 9, Size: 4, Kind: reloc.RelativePA}, {Type: 72, Size: 8, Kind: reloc.RelativePA},
	},
	elf.EM_PPC: {
		abs32(elf.R_PPC_ADDR32), abs32(elf.R_PPC_UADDR32), abs16(elf.R_PPC_ADDR16), rel32(elf.R_PPC_REL32),
		abs32(elf.R_PPC_DTPREL32),
	},
	elf.EM_PPC64: {
		abs32(elf.R_PPC64_ADDR32), abs64(elf.R_PPC64_ADDR64), abs64(elf.R_PPC64_UADDR64), abs32(elf.R_PPC64_UADDR32), abs16(elf.R_PPC64_ADDR16),
		rel32(elf.R_PPC64_REL32), rel64(elf.R_PPC64_REL64), abs64(elf.R_PPC64_DTPREL64),
	},
	elf.EM_QDSP6: {abs32(6), abs16(7), abs8(8), rel32(31), abs32(62)}, // R_HEX_32, _16, _8, _32_PCREL, _DTPREL_32
	elf.EM_RISCV: {
		abs32(elf.R_RISCV_32), abs64(elf.R_RISCV_64), rel32(elf.R_RISCV_32_PCREL),
		add(elf.R_RISCV_ADD8, 1), add(elf.R_RISCV_ADD16, 2), add(elf.R_RISCV_ADD32, 4), add(elf.R_RISCV_ADD64, 8),
		subtract(elf.R_RISCV_SUB8, 1), subtract(elf.R_RISCV_SUB16, 2), subtract(elf.R_RISCV_SUB32, 4), subtract(elf.R_RISCV_SUB64, 8),
		set(elf.R_RISCV_SET8, 1), set(elf.R_RISCV_SET16, 2), set(elf.R_RISCV_SET32, 4),
		low(elf.R_RISCV_SET6, reloc.Set), low(elf.R_RISCV_SUB6, reloc.Subtract),
		leb(60, reloc.Set), leb(61, reloc.Subtract), // R_RISCV_SET_ULEB128, _SUB_ULEB128
		abs32(elf.R_RISCV_TLS_DTPREL32), abs64(elf.R_RISCV_TLS_DTPREL64),
	},
	elf.EM_S390: {
		abs32(elf.R_390_32), abs64(elf.R_390_64), abs16(elf.R_390_16), abs8(elf.R_390_8),
		rel32(elf.R_390_PC32), rel64(elf.R_390_PC64), abs32(elf.R_390_TLS_LDO32), abs64(elf.R_390_TLS_LDO64),
	},
	// R_SH_DIR32, _REL32, _DIR16, _DIR8, _TLS_LDO_32. Assemblers leave the addend
	// of the first two in the place.
	elf.EM_SH:          {add(1, 4), {Type: 2, Size: 4, Kind: reloc.AddRelative}, abs16(33), abs8(34), abs32(146)},
	elf.EM_SPARC:       sparc,
	elf.EM_SPARC32PLUS: sparc,
	elf.EM_SPARCV9:     sparc,
	machineVE:          {abs32(1), abs64(2), rel32(3)}, // R_VE_REFLONG, _REFQUAD, _SREL32
	elf.EM_X86_64: {
		abs32(elf.R_X86_64_32), abs32(elf.R_X86_64_32S), abs64(elf.R_X86_64_64), abs16(elf.R_X86_64_16), abs8(elf.R_X86_64_8),
		rel32(elf.R_X86_64_PC32), rel32(elf.R_X86_64_PLT32), rel64(elf.R_X86_64_PC64),
		abs32(elf.R_X86_64_DTPOFF32), abs64(elf.R_X86_64_DTPOFF64),
	},
	elf.EM_XTENSA: {
		// R_XTENSA_32 adds to the value in the place, addend or not. The assembler has
		// written the differences of DIFF (17 to 19), PDIFF (57 to 59) and NDIFF (60
		// to 62).
		add(1, 4), rel32(14),
		none(17), none(18), none(19), none(57), none(58), none(59), none(60), none(61), none(62),
	},
})

var arc = []reloc.Entry{abs8(1), abs16(2), abs32(4), rel32(49), abs32(67)} // R_ARC_8, _16, _32, _32_PCREL, _TLS_DTPOFF

var sparc = []reloc.Entry{
	abs32(elf.R_SPARC_32), abs32(elf.R_SPARC_UA32), abs64(elf.R_SPARC_64), abs64(elf.R_SPARC_UA64),
	abs16(elf.R_SPARC_16), abs16(elf.R_SPARC_UA16), abs8(elf.R_SPARC_8),
	rel32(elf.R_SPARC_DISP32), rel64(elf.R_SPARC_DISP64), abs32(76), abs64(77), // R_SPARC_TLS_DTPOFF32, 64
}

// tables indexes relocation types by number, and adds type 0, which is none on
// every machine.
func tables(lists map[elf.Machine][]reloc.Entry) map[elf.Machine]map[uint32]reloc.Entry {
	all := make(map[elf.Machine]map[uint32]reloc.Entry, len(lists))
	for machine, list := range lists {
		all[machine] = map[uint32]reloc.Entry{0: none(0)}
		for _, r := range list {
			all[machine][r.Type] = r
		}
	}
	return all
}

func none(t uint32) reloc.Entry { return reloc.Entry{Type: t, Kind: reloc.None} }

func abs8[T ~int | ~uint32](t T) reloc.Entry {
	return reloc.Entry{Type: uint32(t), Size: 1, Kind: reloc.Absolute}
}
func abs16[T ~int | ~uint32](t T) reloc.Entry {
	return reloc.Entry{Type: uint32(t), Size: 2, Kind: reloc.Absolute}
}
func abs32[T ~int | ~uint32](t T) reloc.Entry {
	return reloc.Entry{Type: uint32(t), Size: 4, Kind: reloc.Absolute}
}
func abs64[T ~int | ~uint32](t T) reloc.Entry {
	return reloc.Entry{Type: uint32(t), Size: 8, Kind: reloc.Absolute}
}
func rel32[T ~int | ~uint32](t T) reloc.Entry {
	return reloc.Entry{Type: uint32(t), Size: 4, Kind: reloc.Relative}
}
func rel64[T ~int | ~uint32](t T) reloc.Entry {
	return reloc.Entry{Type: uint32(t), Size: 8, Kind: reloc.Relative}
}

func set[T ~int | ~uint32](t T, size uint8) reloc.Entry {
	return reloc.Entry{Type: uint32(t), Size: size, Kind: reloc.Set}
}

func add[T ~int | ~uint32](t T, size uint8) reloc.Entry {
	return reloc.Entry{Type: uint32(t), Size: size, Kind: reloc.Add}
}

func subtract[T ~int | ~uint32](t T, size uint8) reloc.Entry {
	return reloc.Entry{Type: uint32(t), Size: size, Kind: reloc.Subtract}
}

func low[T ~int | ~uint32](t T, kind reloc.Kind) reloc.Entry {
	return reloc.Entry{Type: uint32(t), Size: 1, Kind: kind, Field: reloc.Low6}
}

func leb[T ~int | ~uint32](t T, kind reloc.Kind) reloc.Entry {
	return reloc.Entry{Type: uint32(t), Size: 0, Kind: kind, Field: reloc.ULEB128}
}
