// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/internal/dw"
)

// encoding is the encoding of a base type, with its name and DWARF's number (DWARF 5, 7.8).
type encoding struct {
	name string
	ate  uint8 // DW_ATE_*; 0: none
}

// debugInfoEncodings are the encodings of DebugInfo, 3.3. 3 is unused.
var debugInfoEncodings = map[uint32]encoding{
	0: {"Unspecified", 0}, 1: {"Address", dw.ATEAddress}, 2: {"Boolean", dw.ATEBoolean}, 4: {"Float", dw.ATEFloat}, 5: {"Signed", dw.ATESigned},
	6: {"SignedChar", dw.ATESignedChar}, 7: {"Unsigned", dw.ATEUnsigned}, 8: {"UnsignedChar", dw.ATEUnsignedChar},
}

// openCLEncodings are the encodings of the other sets. The last one is the LLVM/SPIR-V
// translator's own.
var openCLEncodings = map[uint32]encoding{
	0: {"Unspecified", 0}, 1: {"Address", dw.ATEAddress}, 2: {"Boolean", dw.ATEBoolean}, 3: {"Float", dw.ATEFloat}, 4: {"Signed", dw.ATESigned},
	5: {"SignedChar", dw.ATESignedChar}, 6: {"Unsigned", dw.ATEUnsigned}, 7: {"UnsignedChar", dw.ATEUnsignedChar},
	8: {"Complex", dw.ATEComplexFloat},
}

// Debug Info Flags that change the meaning of a record.
const (
	flagLValueReference = 1 << 11
	flagRValueReference = 1 << 12
)

// flag is a name of bits, all of which are set.
type flag struct {
	bits uint64
	name string
}

// flagNames are Debug Info Flags. FlagIsPublic has the bits of both others.
var flagNames = []flag{
	{3, "FlagIsPublic"}, {1, "FlagIsProtected"}, {1 << 1, "FlagIsPrivate"}, {1 << 2, "FlagIsLocal"}, {1 << 3, "FlagIsDefinition"},
	{1 << 4, "FlagFwdDecl"}, {1 << 5, "FlagArtificial"}, {1 << 6, "FlagExplicit"}, {1 << 7, "FlagPrototyped"},
	{1 << 8, "FlagObjectPointer"}, {1 << 9, "FlagStaticMember"}, {1 << 10, "FlagIndirectVariable"},
	{flagLValueReference, "FlagLValueReference"}, {flagRValueReference, "FlagRValueReference"}, {1 << 13, "FlagIsOptimized"},
	{1 << 14, "FlagIsEnumClass"}, {1 << 15, "FlagTypePassByValue"}, {1 << 16, "FlagTypePassByReference"},
	{1 << 17, "FlagUnknownPhysicalLayout"}, {1 << 18, "FlagBitField"}, // the last one is the LLVM/SPIR-V translator's
}

var buildFlagNames = []flag{{1, "IdentifierPossibleDuplicates"}}

// The values of enumerations, in the order of their numbers.
var (
	compositeNames = []string{"Class", "Structure", "Union"}
	qualifierNames = []string{"ConstType", "VolatileType", "RestrictType", "AtomicType"}
	importedNames  = []string{"ImportedModule", "ImportedDeclaration"}
	languageNames  = []string{
		"Unknown", "ESSL", "GLSL", "OpenCL_C", "OpenCL_CPP", "HLSL", "CPP_for_OpenCL", "SYCL", "HERO_C", "NZSL", "WGSL", "Slang", "Zig", "Rust",
		"Pred", "ApilaJai",
	}
	// moreLanguageNames are the LLVM/SPIR-V translator's.
	moreLanguageNames = map[uint64]string{
		200: "Python", 201: "Julia", 202: "Rust", 203: "D", 204: "Fortran77", 205: "Fortran90", 206: "Fortran95", 207: "Fortran2003",
		208: "Fortran2008", 209: "Fortran2018", 210: "C", 211: "C99", 212: "C11", 213: "C17", 214: "CPP", 215: "CPP03", 216: "CPP11",
		217: "CPP14", 218: "CPP17", 219: "CPP20",
	}
	scopeNames      = []string{"CrossDevice", "Device", "Workgroup", "Subgroup", "Invocation", "QueueFamily", "ShaderCallKHR"}
	useNames        = []string{"MatrixAKHR", "MatrixBKHR", "MatrixAccumulatorKHR"}
	checksumNames   = []string{"MD5", "SHA1", "SHA256"}
	fpEncodingNames = map[uint64]string{
		0: "BFloat16KHR", 4214: "Float8E4M3EXT", 4215: "Float8E5M2EXT", 4223: "Float6E2M3EXT", 4224: "Float6E3M2EXT", 4225: "Float4E2M1EXT",
		4226: "Float8UnsignedE8M0EXT", 4227: "MXInt8EXT",
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

// flagText is the names of flags, joined as in SPIR-V's text form.
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

// enumLists are the names of the numbers of kinds, in order from 0; enumMaps are the names
// of further numbers.
var (
	enumLists = map[Kind][]string{
		Composite: compositeNames, Qualifier: qualifierNames, ImportedEntity: importedNames, SourceLanguage: languageNames, StorageClass: storageNames,
		MemoryScope: scopeNames, MatrixUse: useNames, ChecksumKind: checksumNames,
	}
	enumMaps = map[Kind]map[uint64]string{SourceLanguage: moreLanguageNames, StorageClass: moreStorageNames, FPEncoding: fpEncodingNames}
)

// enumText is the name of a number of a kind; ok is false where it has none.
func (s *Set) enumText(k Kind, v uint64) (name string, ok bool) {
	switch k {
	case Flags:
		return flagText(v, flagNames), true
	case BuildIdentifier:
		return flagText(v, buildFlagNames), true
	case Encoding:
		e, ok := s.encodings[uint32(v)]
		return e.name, ok && v>>32 == 0
	case Operation:
		if operations := operations(); v < uint64(len(operations)) {
			return operations[v].name, true
		}
	}
	if names := enumLists[k]; v < uint64(len(names)) {
		return names[v], true
	}
	if name, ok := enumMaps[k][v]; ok {
		return name, true
	}
	return strconv.FormatUint(v, 10), false
}
