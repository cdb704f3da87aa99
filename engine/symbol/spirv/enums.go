package spirv

import (
	"fmt"
	"strconv"
	"strings"
)

// An encoding is a base type's, with what DWARF calls it (DWARF 5, 7.8).
type encoding struct {
	name string
	ate  uint8 // DW_ATE_*; 0: none
}

// DW_ATE_* constants.
const (
	ateAddress      = 0x01
	ateBoolean      = 0x02
	ateComplexFloat = 0x03
	ateFloat        = 0x04
	ateSigned       = 0x05
	ateSignedChar   = 0x06
	ateUnsigned     = 0x07
	ateUnsignedChar = 0x08
)

// debugInfoEncodings are those of DebugInfo, 3.3. 3 is not given.
var debugInfoEncodings = map[uint32]encoding{
	0: {"Unspecified", 0}, 1: {"Address", ateAddress}, 2: {"Boolean", ateBoolean}, 4: {"Float", ateFloat}, 5: {"Signed", ateSigned},
	6: {"SignedChar", ateSignedChar}, 7: {"Unsigned", ateUnsigned}, 8: {"UnsignedChar", ateUnsignedChar},
}

// openCLEncodings are those of the other sets. The last one is the LLVM/SPIR-V
// translator's own.
var openCLEncodings = map[uint32]encoding{
	0: {"Unspecified", 0}, 1: {"Address", ateAddress}, 2: {"Boolean", ateBoolean}, 3: {"Float", ateFloat}, 4: {"Signed", ateSigned},
	5: {"SignedChar", ateSignedChar}, 6: {"Unsigned", ateUnsigned}, 7: {"UnsignedChar", ateUnsignedChar},
	8: {"Complex", ateComplexFloat},
}

// Debug Info Flags that change what is said of a record.
const (
	flagLValueReference = 1 << 11
	flagRValueReference = 1 << 12
)

// A flag is a name of bits, all of which are set.
type flag struct {
	bits uint64
	name string
}

// flagNames are Debug Info Flags. FlagIsPublic is both of the others.
var flagNames = []flag{
	{3, "FlagIsPublic"}, {1, "FlagIsProtected"}, {1 << 1, "FlagIsPrivate"}, {1 << 2, "FlagIsLocal"}, {1 << 3, "FlagIsDefinition"},
	{1 << 4, "FlagFwdDecl"}, {1 << 5, "FlagArtificial"}, {1 << 6, "FlagExplicit"}, {1 << 7, "FlagPrototyped"},
	{1 << 8, "FlagObjectPointer"}, {1 << 9, "FlagStaticMember"}, {1 << 10, "FlagIndirectVariable"},
	{flagLValueReference, "FlagLValueReference"}, {flagRValueReference, "FlagRValueReference"}, {1 << 13, "FlagIsOptimized"},
	{1 << 14, "FlagIsEnumClass"}, {1 << 15, "FlagTypePassByValue"}, {1 << 16, "FlagTypePassByReference"},
	{1 << 17, "FlagUnknownPhysicalLayout"},
}

var buildFlagNames = []flag{{1, "IdentifierPossibleDuplicates"}}

// The values of enumerations, in the order of their numbers.
var (
	compositeNames = []string{"Class", "Structure", "Union"}
	qualifierNames = []string{"ConstType", "VolatileType", "RestrictType", "AtomicType"}
	importedNames  = []string{"ImportedModule", "ImportedDeclaration"}
	languageNames  = []string{
		"Unknown", "ESSL", "GLSL", "OpenCL_C", "OpenCL_CPP", "HLSL", "CPP_for_OpenCL", "SYCL", "HERO_C", "NZSL", "WGSL", "Slang", "Zig", "Rust",
	}
	storageNames = []string{
		"UniformConstant", "Input", "Uniform", "Output", "Workgroup", "CrossWorkgroup", "Private", "Function", "Generic", "PushConstant",
		"AtomicCounter", "Image", "StorageBuffer",
	}
	moreStorageNames = map[uint64]string{
		5328: "CallableDataKHR", 5329: "IncomingCallableDataKHR", 5338: "RayPayloadKHR", 5339: "HitAttributeKHR",
		5342: "IncomingRayPayloadKHR", 5343: "ShaderRecordBufferKHR", 5349: "PhysicalStorageBuffer", 5402: "TaskPayloadWorkgroupEXT",
		5605: "CodeSectionINTEL", 5936: "DeviceOnlyINTEL", 5937: "HostOnlyINTEL",
	}
)

// flagText is the names of flags, joined as SPIR-V's text form has them.
func flagText(v uint64, names []flag) string {
	if v == 0 {
		return "None"
	}
	var parts []string
	for _, f := range names {
		if v&f.bits == f.bits {
			parts = append(parts, f.name)
			v &^= f.bits
		}
	}
	if v != 0 {
		parts = append(parts, fmt.Sprintf("0x%x", v))
	}
	return strings.Join(parts, "|")
}

// enumText is what a number of a kind is called; ok is false where it has no
// name.
func (s *Set) enumText(k Kind, v uint64) (name string, ok bool) {
	list := func(names []string) (string, bool) {
		if v < uint64(len(names)) {
			return names[v], true
		}
		return "", false
	}
	switch k {
	case Flags:
		return flagText(v, flagNames), true
	case BuildIdentifier:
		return flagText(v, buildFlagNames), true
	case Encoding:
		e, ok := s.encodings[uint32(v)]
		return e.name, ok && v>>32 == 0
	case Composite:
		return list(compositeNames)
	case Qualifier:
		return list(qualifierNames)
	case ImportedEntity:
		return list(importedNames)
	case SourceLanguage:
		return list(languageNames)
	case StorageClass:
		if name, ok := list(storageNames); ok {
			return name, true
		}
		name, ok := moreStorageNames[v]
		return name, ok
	case Operation:
		if v < uint64(len(operations)) {
			return operations[v].name, true
		}
	}
	return strconv.FormatUint(v, 10), false
}
