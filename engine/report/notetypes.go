// SPDX-License-Identifier: Apache-2.0

package report

import "debug/elf"

// noteType names a note: an owner, a type, and whether the file is a core. The
// same number means one thing in a core and another in an object (gABI, "Note
// Section"; <elf.h>).
type noteType struct {
	owner string
	kind  uint32
}

var objectNotes = map[noteType]string{
	{"GNU", 1}: "NT_GNU_ABI_TAG",
	{"GNU", 2}: "NT_GNU_HWCAP",
	{"GNU", 3}: "NT_GNU_BUILD_ID",
	{"GNU", 4}: "NT_GNU_GOLD_VERSION",
	{"GNU", 5}: "NT_GNU_PROPERTY_TYPE_0",

	{"FDO", 0xcafe1a7e}: "NT_FDO_PACKAGING_METADATA",
	{"FDO", 0x407c0c0a}: "NT_FDO_DLOPEN_METADATA",
	{"stapsdt", 3}:      "NT_STAPSDT",
	{"Go", 4}:           "NT_GO_BUILDID",
	{"LLVM", 5}:         "NT_LLVM_HWASAN_GLOBALS",

	// AMDGPU backend guide, "Note Records": of code object version 2, and of 3 and
	// later ones.
	{"AMD", 1}:     "NT_AMD_HSA_CODE_OBJECT_VERSION",
	{"AMD", 2}:     "NT_AMD_HSA_HSAIL",
	{"AMD", 3}:     "NT_AMD_HSA_ISA_VERSION",
	{"AMD", 10}:    "NT_AMD_HSA_METADATA",
	{"AMD", 11}:    "NT_AMD_HSA_ISA_NAME",
	{"AMD", 12}:    "NT_AMD_PAL_METADATA",
	{"AMDGPU", 32}: "NT_AMDGPU_METADATA",
	{"AMDGPU", 33}: "NT_AMDGPU_KFD_CORE_STATE",

	// Intel Compute Runtime, zebin.
	{"IntelGT", 1}: "NT_INTELGT_PRODUCT_FAMILY",
	{"IntelGT", 2}: "NT_INTELGT_GFXCORE_FAMILY",
	{"IntelGT", 3}: "NT_INTELGT_TARGET_METADATA",
	{"IntelGT", 4}: "NT_INTELGT_ZEBIN_VERSION",
	{"IntelGT", 5}: "NT_INTELGT_VISA_ABI_VERSION",
}

var coreNotes = map[noteType]string{
	{"CORE", 1}:          "NT_PRSTATUS",
	{"CORE", 2}:          "NT_FPREGSET",
	{"CORE", 3}:          "NT_PRPSINFO",
	{"CORE", 4}:          "NT_TASKSTRUCT",
	{"CORE", 5}:          "NT_PLATFORM",
	{"CORE", 6}:          "NT_AUXV",
	{"CORE", 0x53494749}: "NT_SIGINFO",
	{"CORE", 0x46494c45}: "NT_FILE",

	{"LINUX", 0x46e62b7f}: "NT_PRXFPREG",
	{"LINUX", 0x100}:      "NT_PPC_VMX",
	{"LINUX", 0x101}:      "NT_PPC_SPE",
	{"LINUX", 0x102}:      "NT_PPC_VSX",
	{"LINUX", 0x103}:      "NT_PPC_TAR",
	{"LINUX", 0x104}:      "NT_PPC_PPR",
	{"LINUX", 0x105}:      "NT_PPC_DSCR",
	{"LINUX", 0x106}:      "NT_PPC_EBB",
	{"LINUX", 0x107}:      "NT_PPC_PMU",
	{"LINUX", 0x108}:      "NT_PPC_TM_CGPR",
	{"LINUX", 0x109}:      "NT_PPC_TM_CFPR",
	{"LINUX", 0x10a}:      "NT_PPC_TM_CVMX",
	{"LINUX", 0x10b}:      "NT_PPC_TM_CVSX",
	{"LINUX", 0x10c}:      "NT_PPC_TM_SPR",
	{"LINUX", 0x10d}:      "NT_PPC_TM_CTAR",
	{"LINUX", 0x10e}:      "NT_PPC_TM_CPPR",
	{"LINUX", 0x10f}:      "NT_PPC_TM_CDSCR",
	{"LINUX", 0x110}:      "NT_PPC_PKEY",
	{"LINUX", 0x200}:      "NT_386_TLS",
	{"LINUX", 0x201}:      "NT_386_IOPERM",
	{"LINUX", 0x202}:      "NT_X86_XSTATE",
	{"LINUX", 0x204}:      "NT_X86_SHSTK",
	{"LINUX", 0x205}:      "NT_X86_XSAVE_LAYOUT",
	{"LINUX", 0x300}:      "NT_S390_HIGH_GPRS",
	{"LINUX", 0x301}:      "NT_S390_TIMER",
	{"LINUX", 0x302}:      "NT_S390_TODCMP",
	{"LINUX", 0x303}:      "NT_S390_TODPREG",
	{"LINUX", 0x304}:      "NT_S390_CTRS",
	{"LINUX", 0x305}:      "NT_S390_PREFIX",
	{"LINUX", 0x306}:      "NT_S390_LAST_BREAK",
	{"LINUX", 0x307}:      "NT_S390_SYSTEM_CALL",
	{"LINUX", 0x308}:      "NT_S390_TDB",
	{"LINUX", 0x309}:      "NT_S390_VXRS_LOW",
	{"LINUX", 0x30a}:      "NT_S390_VXRS_HIGH",
	{"LINUX", 0x30b}:      "NT_S390_GS_CB",
	{"LINUX", 0x30c}:      "NT_S390_GS_BC",
	{"LINUX", 0x400}:      "NT_ARM_VFP",
	{"LINUX", 0x401}:      "NT_ARM_TLS",
	{"LINUX", 0x402}:      "NT_ARM_HW_BREAK",
	{"LINUX", 0x403}:      "NT_ARM_HW_WATCH",
	{"LINUX", 0x404}:      "NT_ARM_SYSTEM_CALL",
	{"LINUX", 0x405}:      "NT_ARM_SVE",
	{"LINUX", 0x406}:      "NT_ARM_PAC_MASK",
	{"LINUX", 0x407}:      "NT_ARM_PACA_KEYS",
	{"LINUX", 0x408}:      "NT_ARM_PACG_KEYS",
	{"LINUX", 0x409}:      "NT_ARM_TAGGED_ADDR_CTRL",
	{"LINUX", 0x40a}:      "NT_ARM_PAC_ENABLED_KEYS",
	{"LINUX", 0x40b}:      "NT_ARM_SSVE",
	{"LINUX", 0x40c}:      "NT_ARM_ZA",
	{"LINUX", 0x40d}:      "NT_ARM_ZT",
	{"LINUX", 0x40e}:      "NT_ARM_FPMR",
	{"LINUX", 0x40f}:      "NT_ARM_POE",
	{"LINUX", 0x410}:      "NT_ARM_GCS",
	{"LINUX", 0x900}:      "NT_RISCV_CSR",
	{"LINUX", 0x901}:      "NT_RISCV_VECTOR",
	{"LINUX", 0x902}:      "NT_RISCV_TAGGED_ADDR_CTRL",
	{"LINUX", 0xa00}:      "NT_LOONGARCH_CPUCFG",
	{"LINUX", 0xa01}:      "NT_LOONGARCH_CSR",
	{"LINUX", 0xa02}:      "NT_LOONGARCH_LSX",
	{"LINUX", 0xa03}:      "NT_LOONGARCH_LASX",
	{"LINUX", 0xa04}:      "NT_LOONGARCH_LBT",
}

// noteTypeName is the name of a note's type; "" where it is not known.
func noteTypeName(file elf.Type, owner string, kind uint32) string {
	if name, ok := coreNotes[noteType{owner, kind}]; ok && file == elf.ET_CORE {
		return name
	}
	return objectNotes[noteType{owner, kind}]
}

// The operating systems of NT_GNU_ABI_TAG.
var abiTagSystems = [...]string{"Linux", "Hurd", "Solaris", "FreeBSD", "NetBSD", "Syllable", "NaCl"}

// propertyKind is a kind of program property (Linux Extensions to gABI,
// "Program Property Note"; the psABIs).
type propertyKind struct {
	name string
	bits []string // of a 4-byte value, the lowest first
}

var (
	x86Features2 = []string{"x86", "x87", "MMX", "XMM", "YMM", "ZMM", "FXSR", "XSAVE", "XSAVEOPT", "XSAVEC", "TMM", "MASK"}
	x86Levels    = []string{"x86-64-baseline", "x86-64-v2", "x86-64-v3", "x86-64-v4"}

	commonProperties = map[uint32]propertyKind{
		1:          {name: "GNU_PROPERTY_STACK_SIZE"},
		2:          {name: "GNU_PROPERTY_NO_COPY_ON_PROTECTED"},
		3:          {name: "GNU_PROPERTY_MEMORY_SEAL"},
		0xb0008000: {"GNU_PROPERTY_1_NEEDED", []string{"INDIRECT_EXTERN_ACCESS"}},
	}
	x86Properties = map[uint32]propertyKind{
		0xc0000002: {"GNU_PROPERTY_X86_FEATURE_1_AND", []string{"IBT", "SHSTK", "LAM_U48", "LAM_U57"}},
		0xc0008001: {"GNU_PROPERTY_X86_FEATURE_2_NEEDED", x86Features2},
		0xc0008002: {"GNU_PROPERTY_X86_ISA_1_NEEDED", x86Levels},
		0xc0010001: {"GNU_PROPERTY_X86_FEATURE_2_USED", x86Features2},
		0xc0010002: {"GNU_PROPERTY_X86_ISA_1_USED", x86Levels},
	}
	processorProperties = map[elf.Machine]map[uint32]propertyKind{
		elf.EM_386:     x86Properties,
		elf.EM_X86_64:  x86Properties,
		elf.EM_AARCH64: {0xc0000000: {"GNU_PROPERTY_AARCH64_FEATURE_1_AND", []string{"BTI", "PAC", "GCS"}}},
	}
)
