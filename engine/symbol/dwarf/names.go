// SPDX-License-Identifier: Apache-2.0

package dwarf

import "fmt"

// A Tag says what a debugging information entry describes (DWARF 5, 7.5.3,
// table 7.3).
type Tag uint16

// The tags that this package works with. Others are numbers.
const (
	TagArrayType         Tag = 0x01
	TagClassType         Tag = 0x02
	TagEntryPoint        Tag = 0x03
	TagEnumerationType   Tag = 0x04
	TagFormalParameter   Tag = 0x05
	TagLexicalBlock      Tag = 0x0b
	TagMember            Tag = 0x0d
	TagPointerType       Tag = 0x0f
	TagReferenceType     Tag = 0x10
	TagStringType        Tag = 0x12
	TagStructureType     Tag = 0x13
	TagSubroutineType    Tag = 0x15
	TagTypedef           Tag = 0x16
	TagUnionType         Tag = 0x17
	TagUnspecifiedParams Tag = 0x18 // DW_TAG_unspecified_parameters
	TagVariant           Tag = 0x19
	TagCommonBlock       Tag = 0x1a
	TagInheritance       Tag = 0x1c
	TagModule            Tag = 0x1e
	TagInlinedSubroutine Tag = 0x1d
	TagPtrToMember       Tag = 0x1f
	TagSubrangeType      Tag = 0x21
	TagBaseType          Tag = 0x24
	TagConstType         Tag = 0x26
	TagConstant          Tag = 0x27
	TagEnumerator        Tag = 0x28
	TagPackedType        Tag = 0x2d
	TagSubprogram        Tag = 0x2e
	TagTemplateType      Tag = 0x2f // DW_TAG_template_type_parameter
	TagTemplateValue     Tag = 0x30 // DW_TAG_template_value_parameter
	TagVariantPart       Tag = 0x33
	TagVariable          Tag = 0x34
	TagVolatileType      Tag = 0x35
	TagRestrictType      Tag = 0x37
	TagInterfaceType     Tag = 0x38
	TagNamespace         Tag = 0x39
	TagUnspecifiedType   Tag = 0x3b
	TagPartialUnit       Tag = 0x3c
	TagImportedUnit      Tag = 0x3d
	TagSharedType        Tag = 0x40
	TagRvalueReference   Tag = 0x42
	TagTemplateAlias     Tag = 0x43
	TagCoarrayType       Tag = 0x44
	TagGenericSubrange   Tag = 0x45
	TagDynamicType       Tag = 0x46
	TagAtomicType        Tag = 0x47
	TagCallSite          Tag = 0x48
	TagCallSiteParameter Tag = 0x49
	TagImmutableType     Tag = 0x4b
	TagGNUCallSite       Tag = 0x4109
	TagGNUTemplatePack   Tag = 0x4107 // DW_TAG_GNU_template_parameter_pack
	TagGNUCallSiteParam  Tag = 0x410a
	TagLLVMPtrauthType   Tag = 0x4300
)

// An Attr is an attribute of a debugging information entry (DWARF 5, 7.5.4,
// table 7.5, and the vendors').
type Attr uint16

// The attributes that this package works with, or that its callers ask for.
// Others are numbers. DW_AT_LLVM_* are those of the heterogeneous extension
// (A.7.5.4); it prints one number for DW_AT_LLVM_lanes and
// DW_AT_LLVM_iterations, and none for the two spaces. That of
// DW_AT_LLVM_memory_space is what ROCm's compilers write; for an address space
// they, and clang, write DW_AT_address_class.
const (
	AttrSibling          Attr = 0x01
	AttrLocation         Attr = 0x02
	AttrName             Attr = 0x03
	AttrOrdering         Attr = 0x09
	AttrByteSize         Attr = 0x0b
	AttrBitOffset        Attr = 0x0c
	AttrBitSize          Attr = 0x0d
	AttrStmtList         Attr = 0x10
	AttrLowPC            Attr = 0x11
	AttrHighPC           Attr = 0x12
	AttrLanguage         Attr = 0x13
	AttrDiscr            Attr = 0x15
	AttrDiscrValue       Attr = 0x16
	AttrImport           Attr = 0x18
	AttrStringLength     Attr = 0x19
	AttrCompDir          Attr = 0x1b
	AttrConstValue       Attr = 0x1c
	AttrContainingType   Attr = 0x1d
	AttrInline           Attr = 0x20
	AttrProducer         Attr = 0x25
	AttrLowerBound       Attr = 0x22
	AttrReturnAddr       Attr = 0x2a
	AttrBitStride        Attr = 0x2e
	AttrUpperBound       Attr = 0x2f
	AttrAbstractOrigin   Attr = 0x31
	AttrAddressClass     Attr = 0x33
	AttrArtificial       Attr = 0x34
	AttrCallingConv      Attr = 0x36
	AttrCount            Attr = 0x37
	AttrDataMemberLoc    Attr = 0x38
	AttrDeclColumn       Attr = 0x39
	AttrDeclFile         Attr = 0x3a
	AttrDeclLine         Attr = 0x3b
	AttrDeclaration      Attr = 0x3c
	AttrDiscrList        Attr = 0x3d
	AttrEncoding         Attr = 0x3e
	AttrExternal         Attr = 0x3f
	AttrFrameBase        Attr = 0x40
	AttrSegment          Attr = 0x46
	AttrSpecification    Attr = 0x47
	AttrStaticLink       Attr = 0x48
	AttrType             Attr = 0x49
	AttrUseLocation      Attr = 0x4a
	AttrVirtuality       Attr = 0x4c
	AttrVtableElemLoc    Attr = 0x4d
	AttrAllocated        Attr = 0x4e
	AttrAssociated       Attr = 0x4f
	AttrDataLocation     Attr = 0x50
	AttrByteStride       Attr = 0x51
	AttrEntryPC          Attr = 0x52
	AttrRanges           Attr = 0x55
	AttrCallColumn       Attr = 0x57
	AttrCallFile         Attr = 0x58
	AttrCallLine         Attr = 0x59
	AttrObjectPointer    Attr = 0x64
	AttrEndianity        Attr = 0x65
	AttrSignature        Attr = 0x69
	AttrDataBitOffset    Attr = 0x6b
	AttrEnumClass        Attr = 0x6d
	AttrLinkageName      Attr = 0x6e
	AttrRank             Attr = 0x71
	AttrStrOffsetsBase   Attr = 0x72
	AttrAddrBase         Attr = 0x73
	AttrRnglistsBase     Attr = 0x74
	AttrDwoName          Attr = 0x76
	AttrCallAllCalls     Attr = 0x7a
	AttrCallAllSources   Attr = 0x7b // DW_AT_call_all_source_calls
	AttrCallAllTailCalls Attr = 0x7c
	AttrCallReturnPC     Attr = 0x7d
	AttrCallValue        Attr = 0x7e
	AttrCallOrigin       Attr = 0x7f
	AttrCallParameter    Attr = 0x80
	AttrCallPC           Attr = 0x81
	AttrCallTailCall     Attr = 0x82
	AttrCallTarget       Attr = 0x83
	AttrCallTargetClob   Attr = 0x84
	AttrCallDataLocation Attr = 0x85
	AttrCallDataValue    Attr = 0x86
	AttrAlignment        Attr = 0x88
	AttrLoclistsBase     Attr = 0x8c

	AttrMIPSLinkageName Attr = 0x2007
	AttrGNUVector       Attr = 0x2107
	AttrGNUCallValue    Attr = 0x2111
	AttrGNUCallData     Attr = 0x2112 // DW_AT_GNU_call_site_data_value
	AttrGNUCallTarget   Attr = 0x2113
	AttrGNUCallClob     Attr = 0x2114 // DW_AT_GNU_call_site_target_clobbered
	AttrGNUTailCall     Attr = 0x2115
	AttrGNUAllTailCalls Attr = 0x2116 // DW_AT_GNU_all_tail_call_sites
	AttrGNUAllCalls     Attr = 0x2117 // DW_AT_GNU_all_call_sites
	AttrGNUAllSources   Attr = 0x2118 // DW_AT_GNU_all_source_call_sites
	AttrGNUDwoName      Attr = 0x2130
	AttrGNUDwoID        Attr = 0x2131
	AttrGNURangesBase   Attr = 0x2132
	AttrGNUAddrBase     Attr = 0x2133
	AttrGNUDiscr        Attr = 0x2136 // DW_AT_GNU_discriminator

	AttrGoKind Attr = 0x2900
	AttrGoKey  Attr = 0x2901
	AttrGoElem Attr = 0x2902
	AttrGoType Attr = 0x2904 // DW_AT_go_runtime_type

	AttrLLVMTagOffset    Attr = 0x3e03
	AttrLLVMActiveLane   Attr = 0x3e08
	AttrLLVMAugmentation Attr = 0x3e09
	AttrLLVMLanes        Attr = 0x3e0a
	AttrLLVMIterations   Attr = 0x3e0a
	AttrLLVMLanePC       Attr = 0x3e0b
	AttrLLVMVectorSize   Attr = 0x3e0c
	AttrLLVMMemorySpace  Attr = 0x3e0d
	AttrLLVMAddressSpace Attr = 0x3e10
)

// secondNumbers are the numbers that LLVM 22 gives to attributes of the
// heterogeneous extension, because it uses the numbers that the extension prints
// for other attributes. An entry that has an attribute under its second number
// is read as if it had it under the first. What LLVM has at 0x3e08 to 0x3e0e
// stands in entries of other tags than the extension's.
var secondNumbers = map[Attr]Attr{
	0x3e0f: AttrLLVMMemorySpace,
	0x3e11: AttrLLVMLanes,
	0x3e12: AttrLLVMLanePC,
	0x3e13: AttrLLVMVectorSize,
}

// attrNames are the names of attributes that may have an expression.
var attrNames = map[Attr]string{
	AttrLocation: "DW_AT_location", AttrByteSize: "DW_AT_byte_size", AttrBitSize: "DW_AT_bit_size",
	AttrStringLength: "DW_AT_string_length", AttrConstValue: "DW_AT_const_value",
	AttrLowerBound: "DW_AT_lower_bound", AttrReturnAddr: "DW_AT_return_addr", AttrBitStride: "DW_AT_bit_stride",
	AttrUpperBound: "DW_AT_upper_bound", AttrCount: "DW_AT_count", AttrDataMemberLoc: "DW_AT_data_member_location",
	AttrFrameBase: "DW_AT_frame_base", AttrSegment: "DW_AT_segment", AttrStaticLink: "DW_AT_static_link",
	AttrUseLocation: "DW_AT_use_location", AttrVtableElemLoc: "DW_AT_vtable_elem_location",
	AttrAllocated: "DW_AT_allocated", AttrAssociated: "DW_AT_associated", AttrDataLocation: "DW_AT_data_location",
	AttrByteStride: "DW_AT_byte_stride", AttrRank: "DW_AT_rank", AttrCallValue: "DW_AT_call_value",
	AttrCallTarget: "DW_AT_call_target", AttrCallTargetClob: "DW_AT_call_target_clobbered",
	AttrCallDataLocation: "DW_AT_call_data_location", AttrCallDataValue: "DW_AT_call_data_value",
	AttrGNUCallValue: "DW_AT_GNU_call_site_value", AttrGNUCallTarget: "DW_AT_GNU_call_site_target",
	AttrGNUCallData: "DW_AT_GNU_call_site_data_value", AttrGNUCallClob: "DW_AT_GNU_call_site_target_clobbered",
	AttrLLVMActiveLane: "DW_AT_LLVM_active_lane", AttrLLVMLanes: "DW_AT_LLVM_lanes", AttrLLVMLanePC: "DW_AT_LLVM_lane_pc",
}

// String is the name as DWARF 5, 7.5.4 spells it, or the number.
func (a Attr) String() string {
	if name, ok := attrNames[a]; ok {
		return name
	}
	return fmt.Sprintf("DW_AT_%#x", uint16(a))
}

// A form is how the value of an attribute is encoded (DWARF 5, 7.5.6, table 7.6).
type form uint16

const (
	formAddr         form = 0x01
	formBlock2       form = 0x03
	formBlock4       form = 0x04
	formData2        form = 0x05
	formData4        form = 0x06
	formData8        form = 0x07
	formString       form = 0x08
	formBlock        form = 0x09
	formBlock1       form = 0x0a
	formData1        form = 0x0b
	formFlag         form = 0x0c
	formSdata        form = 0x0d
	formStrp         form = 0x0e
	formUdata        form = 0x0f
	formRefAddr      form = 0x10
	formRef1         form = 0x11
	formRef2         form = 0x12
	formRef4         form = 0x13
	formRef8         form = 0x14
	formRefUdata     form = 0x15
	formIndirect     form = 0x16
	formSecOffset    form = 0x17
	formExprloc      form = 0x18
	formFlagPresent  form = 0x19
	formStrx         form = 0x1a
	formAddrx        form = 0x1b
	formRefSup4      form = 0x1c
	formStrpSup      form = 0x1d
	formData16       form = 0x1e
	formLineStrp     form = 0x1f
	formRefSig8      form = 0x20
	formImplicit     form = 0x21 // DW_FORM_implicit_const
	formLoclistx     form = 0x22
	formRnglistx     form = 0x23
	formRefSup8      form = 0x24
	formStrx1        form = 0x25
	formStrx2        form = 0x26
	formStrx3        form = 0x27
	formStrx4        form = 0x28
	formAddrx1       form = 0x29
	formAddrx2       form = 0x2a
	formAddrx3       form = 0x2b
	formAddrx4       form = 0x2c
	formGNUAddrIndex form = 0x1f01
	formGNUStrIndex  form = 0x1f02
	formGNURefAlt    form = 0x1f20
	formGNUStrpAlt   form = 0x1f21
	formLLVMAddrxOff form = 0x2001 // DW_FORM_LLVM_addrx_offset
)

// Unit types (DWARF 5, 7.5.1, table 7.2).
const (
	unitCompile      = 0x01
	unitType         = 0x02
	unitSkeleton     = 0x04
	unitSplitCompile = 0x05
	unitSplitType    = 0x06
)

// Languages (DWARF 5, 7.12, table 7.17, and the heterogeneous extension, A.7.12).
// LangGo and LangRust are those whose values are written in their own manner; variables
// of LangOpenCL are in private memory where nothing else is said.
const (
	langAda83     = 0x0003
	langCPP       = 0x0004
	langCobol74   = 0x0005
	langCobol85   = 0x0006
	langFortran77 = 0x0007
	langFortran90 = 0x0008
	langPascal83  = 0x0009
	langModula2   = 0x000a
	langAda95     = 0x000d
	langFortran95 = 0x000e
	langPLI       = 0x000f
	langObjCPP    = 0x0011
	LangOpenCL    = 0x0015
	LangGo        = 0x0016
	langModula3   = 0x0017
	langCPP03     = 0x0019
	langCPP11     = 0x001a
	LangRust      = 0x001c
	langJulia     = 0x001f
	langCPP14     = 0x0021
	langFortran03 = 0x0022
	langFortran08 = 0x0023
	langCPP17     = 0x002a
	langCPP20     = 0x002b
	langFortran18 = 0x002d
	langAda2005   = 0x002e
	langAda2012   = 0x002f
	langCPP23     = 0x003a
	langLLVMHIP   = 0x8100
)
