// SPDX-License-Identifier: Apache-2.0

package dw

// Attr is an attribute of a debugging information entry (DWARF 5, 7.5.4,
// table 7.5, and vendors').
type Attr uint16

// The attributes that this project works with. DW_AT_LLVM_* are numbered by the heterogeneous
// extension (A.7.5.4); it prints one number for DW_AT_LLVM_lanes and DW_AT_LLVM_iterations, and
// none for the two spaces. ROCm's compilers write the number of DW_AT_LLVM_memory_space; for an
// address space they, and clang, write DW_AT_address_class.
const (
	AttrSibling                    Attr = 0x01
	AttrLocation                   Attr = 0x02
	AttrName                       Attr = 0x03
	AttrOrdering                   Attr = 0x09
	AttrByteSize                   Attr = 0x0b
	AttrBitOffset                  Attr = 0x0c
	AttrBitSize                    Attr = 0x0d
	AttrStmtList                   Attr = 0x10
	AttrLowPC                      Attr = 0x11
	AttrHighPC                     Attr = 0x12
	AttrLanguage                   Attr = 0x13
	AttrDiscr                      Attr = 0x15
	AttrDiscrValue                 Attr = 0x16
	AttrImport                     Attr = 0x18
	AttrStringLength               Attr = 0x19
	AttrCompDir                    Attr = 0x1b
	AttrConstValue                 Attr = 0x1c
	AttrContainingType             Attr = 0x1d
	AttrInline                     Attr = 0x20
	AttrLowerBound                 Attr = 0x22
	AttrProducer                   Attr = 0x25
	AttrReturnAddr                 Attr = 0x2a
	AttrBitStride                  Attr = 0x2e
	AttrUpperBound                 Attr = 0x2f
	AttrAbstractOrigin             Attr = 0x31
	AttrAddressClass               Attr = 0x33
	AttrArtificial                 Attr = 0x34
	AttrCallingConvention          Attr = 0x36
	AttrCount                      Attr = 0x37
	AttrDataMemberLocation         Attr = 0x38
	AttrDeclColumn                 Attr = 0x39
	AttrDeclFile                   Attr = 0x3a
	AttrDeclLine                   Attr = 0x3b
	AttrDeclaration                Attr = 0x3c
	AttrDiscrList                  Attr = 0x3d
	AttrEncoding                   Attr = 0x3e
	AttrExternal                   Attr = 0x3f
	AttrFrameBase                  Attr = 0x40
	AttrSegment                    Attr = 0x46
	AttrSpecification              Attr = 0x47
	AttrStaticLink                 Attr = 0x48
	AttrType                       Attr = 0x49
	AttrUseLocation                Attr = 0x4a
	AttrVirtuality                 Attr = 0x4c
	AttrVtableElemLocation         Attr = 0x4d
	AttrAllocated                  Attr = 0x4e
	AttrAssociated                 Attr = 0x4f
	AttrDataLocation               Attr = 0x50
	AttrByteStride                 Attr = 0x51
	AttrEntryPC                    Attr = 0x52
	AttrRanges                     Attr = 0x55
	AttrCallColumn                 Attr = 0x57
	AttrCallFile                   Attr = 0x58
	AttrCallLine                   Attr = 0x59
	AttrObjectPointer              Attr = 0x64
	AttrEndianity                  Attr = 0x65
	AttrSignature                  Attr = 0x69
	AttrDataBitOffset              Attr = 0x6b
	AttrEnumClass                  Attr = 0x6d
	AttrLinkageName                Attr = 0x6e
	AttrRank                       Attr = 0x71
	AttrStrOffsetsBase             Attr = 0x72
	AttrAddrBase                   Attr = 0x73
	AttrRnglistsBase               Attr = 0x74
	AttrDwoName                    Attr = 0x76
	AttrCallAllCalls               Attr = 0x7a
	AttrCallAllSourceCalls         Attr = 0x7b
	AttrCallAllTailCalls           Attr = 0x7c
	AttrCallReturnPC               Attr = 0x7d
	AttrCallValue                  Attr = 0x7e
	AttrCallOrigin                 Attr = 0x7f
	AttrCallParameter              Attr = 0x80
	AttrCallPC                     Attr = 0x81
	AttrCallTailCall               Attr = 0x82
	AttrCallTarget                 Attr = 0x83
	AttrCallTargetClobbered        Attr = 0x84
	AttrCallDataLocation           Attr = 0x85
	AttrCallDataValue              Attr = 0x86
	AttrAlignment                  Attr = 0x88
	AttrLoclistsBase               Attr = 0x8c
	AttrMIPSLinkageName            Attr = 0x2007
	AttrGNUVector                  Attr = 0x2107
	AttrGNUCallSiteValue           Attr = 0x2111
	AttrGNUCallSiteDataValue       Attr = 0x2112
	AttrGNUCallSiteTarget          Attr = 0x2113
	AttrGNUCallSiteTargetClobbered Attr = 0x2114
	AttrGNUTailCall                Attr = 0x2115
	AttrGNUAllTailCallSites        Attr = 0x2116
	AttrGNUAllCallSites            Attr = 0x2117
	AttrGNUAllSourceCallSites      Attr = 0x2118
	AttrGNUDwoName                 Attr = 0x2130
	AttrGNUDwoID                   Attr = 0x2131
	AttrGNURangesBase              Attr = 0x2132
	AttrGNUAddrBase                Attr = 0x2133
	AttrGNUDiscriminator           Attr = 0x2136
	AttrINTELSimdWidth             Attr = 0x2400
	AttrGoKind                     Attr = 0x2900
	AttrGoKey                      Attr = 0x2901
	AttrGoElem                     Attr = 0x2902
	AttrGoRuntimeType              Attr = 0x2904
	AttrLLVMTagOffset              Attr = 0x3e03
	AttrLLVMActiveLane             Attr = 0x3e08
	AttrLLVMAugmentation           Attr = 0x3e09
	AttrLLVMLanes                  Attr = 0x3e0a
	AttrLLVMIterations             Attr = 0x3e0a
	AttrLLVMLanePC                 Attr = 0x3e0b
	AttrLLVMVectorSize             Attr = 0x3e0c
	AttrLLVMMemorySpace            Attr = 0x3e0d
	AttrLLVMAddressSpace           Attr = 0x3e10
)

// String returns the name as the documents spell it, or the number.
func (a Attr) String() string { return nameOf(attrNames[:], a, "DW_AT_") }

var attrNames = [...]name[Attr]{
	{AttrSibling, "DW_AT_sibling"},
	{AttrLocation, "DW_AT_location"},
	{AttrName, "DW_AT_name"},
	{AttrOrdering, "DW_AT_ordering"},
	{AttrByteSize, "DW_AT_byte_size"},
	{AttrBitOffset, "DW_AT_bit_offset"},
	{AttrBitSize, "DW_AT_bit_size"},
	{AttrStmtList, "DW_AT_stmt_list"},
	{AttrLowPC, "DW_AT_low_pc"},
	{AttrHighPC, "DW_AT_high_pc"},
	{AttrLanguage, "DW_AT_language"},
	{AttrDiscr, "DW_AT_discr"},
	{AttrDiscrValue, "DW_AT_discr_value"},
	{AttrImport, "DW_AT_import"},
	{AttrStringLength, "DW_AT_string_length"},
	{AttrCompDir, "DW_AT_comp_dir"},
	{AttrConstValue, "DW_AT_const_value"},
	{AttrContainingType, "DW_AT_containing_type"},
	{AttrInline, "DW_AT_inline"},
	{AttrLowerBound, "DW_AT_lower_bound"},
	{AttrProducer, "DW_AT_producer"},
	{AttrReturnAddr, "DW_AT_return_addr"},
	{AttrBitStride, "DW_AT_bit_stride"},
	{AttrUpperBound, "DW_AT_upper_bound"},
	{AttrAbstractOrigin, "DW_AT_abstract_origin"},
	{AttrAddressClass, "DW_AT_address_class"},
	{AttrArtificial, "DW_AT_artificial"},
	{AttrCallingConvention, "DW_AT_calling_convention"},
	{AttrCount, "DW_AT_count"},
	{AttrDataMemberLocation, "DW_AT_data_member_location"},
	{AttrDeclColumn, "DW_AT_decl_column"},
	{AttrDeclFile, "DW_AT_decl_file"},
	{AttrDeclLine, "DW_AT_decl_line"},
	{AttrDeclaration, "DW_AT_declaration"},
	{AttrDiscrList, "DW_AT_discr_list"},
	{AttrEncoding, "DW_AT_encoding"},
	{AttrExternal, "DW_AT_external"},
	{AttrFrameBase, "DW_AT_frame_base"},
	{AttrSegment, "DW_AT_segment"},
	{AttrSpecification, "DW_AT_specification"},
	{AttrStaticLink, "DW_AT_static_link"},
	{AttrType, "DW_AT_type"},
	{AttrUseLocation, "DW_AT_use_location"},
	{AttrVirtuality, "DW_AT_virtuality"},
	{AttrVtableElemLocation, "DW_AT_vtable_elem_location"},
	{AttrAllocated, "DW_AT_allocated"},
	{AttrAssociated, "DW_AT_associated"},
	{AttrDataLocation, "DW_AT_data_location"},
	{AttrByteStride, "DW_AT_byte_stride"},
	{AttrEntryPC, "DW_AT_entry_pc"},
	{AttrRanges, "DW_AT_ranges"},
	{AttrCallColumn, "DW_AT_call_column"},
	{AttrCallFile, "DW_AT_call_file"},
	{AttrCallLine, "DW_AT_call_line"},
	{AttrObjectPointer, "DW_AT_object_pointer"},
	{AttrEndianity, "DW_AT_endianity"},
	{AttrSignature, "DW_AT_signature"},
	{AttrDataBitOffset, "DW_AT_data_bit_offset"},
	{AttrEnumClass, "DW_AT_enum_class"},
	{AttrLinkageName, "DW_AT_linkage_name"},
	{AttrRank, "DW_AT_rank"},
	{AttrStrOffsetsBase, "DW_AT_str_offsets_base"},
	{AttrAddrBase, "DW_AT_addr_base"},
	{AttrRnglistsBase, "DW_AT_rnglists_base"},
	{AttrDwoName, "DW_AT_dwo_name"},
	{AttrCallAllCalls, "DW_AT_call_all_calls"},
	{AttrCallAllSourceCalls, "DW_AT_call_all_source_calls"},
	{AttrCallAllTailCalls, "DW_AT_call_all_tail_calls"},
	{AttrCallReturnPC, "DW_AT_call_return_pc"},
	{AttrCallValue, "DW_AT_call_value"},
	{AttrCallOrigin, "DW_AT_call_origin"},
	{AttrCallParameter, "DW_AT_call_parameter"},
	{AttrCallPC, "DW_AT_call_pc"},
	{AttrCallTailCall, "DW_AT_call_tail_call"},
	{AttrCallTarget, "DW_AT_call_target"},
	{AttrCallTargetClobbered, "DW_AT_call_target_clobbered"},
	{AttrCallDataLocation, "DW_AT_call_data_location"},
	{AttrCallDataValue, "DW_AT_call_data_value"},
	{AttrAlignment, "DW_AT_alignment"},
	{AttrLoclistsBase, "DW_AT_loclists_base"},
	{AttrMIPSLinkageName, "DW_AT_MIPS_linkage_name"},
	{AttrGNUVector, "DW_AT_GNU_vector"},
	{AttrGNUCallSiteValue, "DW_AT_GNU_call_site_value"},
	{AttrGNUCallSiteDataValue, "DW_AT_GNU_call_site_data_value"},
	{AttrGNUCallSiteTarget, "DW_AT_GNU_call_site_target"},
	{AttrGNUCallSiteTargetClobbered, "DW_AT_GNU_call_site_target_clobbered"},
	{AttrGNUTailCall, "DW_AT_GNU_tail_call"},
	{AttrGNUAllTailCallSites, "DW_AT_GNU_all_tail_call_sites"},
	{AttrGNUAllCallSites, "DW_AT_GNU_all_call_sites"},
	{AttrGNUAllSourceCallSites, "DW_AT_GNU_all_source_call_sites"},
	{AttrGNUDwoName, "DW_AT_GNU_dwo_name"},
	{AttrGNUDwoID, "DW_AT_GNU_dwo_id"},
	{AttrGNURangesBase, "DW_AT_GNU_ranges_base"},
	{AttrGNUAddrBase, "DW_AT_GNU_addr_base"},
	{AttrGNUDiscriminator, "DW_AT_GNU_discriminator"},
	{AttrINTELSimdWidth, "DW_AT_INTEL_simd_width"},
	{AttrGoKind, "DW_AT_go_kind"},
	{AttrGoKey, "DW_AT_go_key"},
	{AttrGoElem, "DW_AT_go_elem"},
	{AttrGoRuntimeType, "DW_AT_go_runtime_type"},
	{AttrLLVMTagOffset, "DW_AT_LLVM_tag_offset"},
	{AttrLLVMActiveLane, "DW_AT_LLVM_active_lane"},
	{AttrLLVMAugmentation, "DW_AT_LLVM_augmentation"},
	{AttrLLVMLanes, "DW_AT_LLVM_lanes"},
	{AttrLLVMIterations, "DW_AT_LLVM_iterations"},
	{AttrLLVMLanePC, "DW_AT_LLVM_lane_pc"},
	{AttrLLVMVectorSize, "DW_AT_LLVM_vector_size"},
	{AttrLLVMMemorySpace, "DW_AT_LLVM_memory_space"},
	{AttrLLVMAddressSpace, "DW_AT_LLVM_address_space"},
}
