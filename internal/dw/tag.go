// SPDX-License-Identifier: Apache-2.0

package dw

// Tag is the kind of a debugging information entry (DWARF 5, 7.5.3, table 7.3, and vendors').
type Tag uint16

// The tags that this project works with.
const (
	TagArrayType                Tag = 0x01
	TagClassType                Tag = 0x02
	TagEntryPoint               Tag = 0x03
	TagEnumerationType          Tag = 0x04
	TagFormalParameter          Tag = 0x05
	TagImportedDeclaration      Tag = 0x08
	TagLabel                    Tag = 0x0a
	TagLexicalBlock             Tag = 0x0b
	TagMember                   Tag = 0x0d
	TagPointerType              Tag = 0x0f
	TagReferenceType            Tag = 0x10
	TagCompileUnit              Tag = 0x11
	TagStringType               Tag = 0x12
	TagStructureType            Tag = 0x13
	TagSubroutineType           Tag = 0x15
	TagTypedef                  Tag = 0x16
	TagUnionType                Tag = 0x17
	TagUnspecifiedParameters    Tag = 0x18
	TagVariant                  Tag = 0x19
	TagCommonBlock              Tag = 0x1a
	TagInheritance              Tag = 0x1c
	TagInlinedSubroutine        Tag = 0x1d
	TagModule                   Tag = 0x1e
	TagPtrToMemberType          Tag = 0x1f
	TagSubrangeType             Tag = 0x21
	TagBaseType                 Tag = 0x24
	TagConstType                Tag = 0x26
	TagConstant                 Tag = 0x27
	TagEnumerator               Tag = 0x28
	TagFileType                 Tag = 0x29
	TagPackedType               Tag = 0x2d
	TagSubprogram               Tag = 0x2e
	TagTemplateTypeParameter    Tag = 0x2f
	TagTemplateValueParameter   Tag = 0x30
	TagVariantPart              Tag = 0x33
	TagVariable                 Tag = 0x34
	TagVolatileType             Tag = 0x35
	TagRestrictType             Tag = 0x37
	TagInterfaceType            Tag = 0x38
	TagNamespace                Tag = 0x39
	TagUnspecifiedType          Tag = 0x3b
	TagPartialUnit              Tag = 0x3c
	TagImportedUnit             Tag = 0x3d
	TagSharedType               Tag = 0x40
	TagTypeUnit                 Tag = 0x41
	TagRvalueReferenceType      Tag = 0x42
	TagTemplateAlias            Tag = 0x43
	TagCoarrayType              Tag = 0x44
	TagGenericSubrange          Tag = 0x45
	TagDynamicType              Tag = 0x46
	TagAtomicType               Tag = 0x47
	TagCallSite                 Tag = 0x48
	TagCallSiteParameter        Tag = 0x49
	TagImmutableType            Tag = 0x4b
	TagGNUTemplateParameterPack Tag = 0x4107
	TagGNUCallSite              Tag = 0x4109
	TagGNUCallSiteParameter     Tag = 0x410a
	TagLLVMPtrauthType          Tag = 0x4300
)

// String returns the name as the documents spell it, or the number.
func (t Tag) String() string { return nameOf(tagNames[:], t, "DW_TAG_") }

var tagNames = [...]name[Tag]{
	{TagArrayType, "DW_TAG_array_type"},
	{TagClassType, "DW_TAG_class_type"},
	{TagEntryPoint, "DW_TAG_entry_point"},
	{TagEnumerationType, "DW_TAG_enumeration_type"},
	{TagFormalParameter, "DW_TAG_formal_parameter"},
	{TagImportedDeclaration, "DW_TAG_imported_declaration"},
	{TagLabel, "DW_TAG_label"},
	{TagLexicalBlock, "DW_TAG_lexical_block"},
	{TagMember, "DW_TAG_member"},
	{TagPointerType, "DW_TAG_pointer_type"},
	{TagReferenceType, "DW_TAG_reference_type"},
	{TagCompileUnit, "DW_TAG_compile_unit"},
	{TagStringType, "DW_TAG_string_type"},
	{TagStructureType, "DW_TAG_structure_type"},
	{TagSubroutineType, "DW_TAG_subroutine_type"},
	{TagTypedef, "DW_TAG_typedef"},
	{TagUnionType, "DW_TAG_union_type"},
	{TagUnspecifiedParameters, "DW_TAG_unspecified_parameters"},
	{TagVariant, "DW_TAG_variant"},
	{TagCommonBlock, "DW_TAG_common_block"},
	{TagInheritance, "DW_TAG_inheritance"},
	{TagInlinedSubroutine, "DW_TAG_inlined_subroutine"},
	{TagModule, "DW_TAG_module"},
	{TagPtrToMemberType, "DW_TAG_ptr_to_member_type"},
	{TagSubrangeType, "DW_TAG_subrange_type"},
	{TagBaseType, "DW_TAG_base_type"},
	{TagConstType, "DW_TAG_const_type"},
	{TagConstant, "DW_TAG_constant"},
	{TagEnumerator, "DW_TAG_enumerator"},
	{TagFileType, "DW_TAG_file_type"},
	{TagPackedType, "DW_TAG_packed_type"},
	{TagSubprogram, "DW_TAG_subprogram"},
	{TagTemplateTypeParameter, "DW_TAG_template_type_parameter"},
	{TagTemplateValueParameter, "DW_TAG_template_value_parameter"},
	{TagVariantPart, "DW_TAG_variant_part"},
	{TagVariable, "DW_TAG_variable"},
	{TagVolatileType, "DW_TAG_volatile_type"},
	{TagRestrictType, "DW_TAG_restrict_type"},
	{TagInterfaceType, "DW_TAG_interface_type"},
	{TagNamespace, "DW_TAG_namespace"},
	{TagUnspecifiedType, "DW_TAG_unspecified_type"},
	{TagPartialUnit, "DW_TAG_partial_unit"},
	{TagImportedUnit, "DW_TAG_imported_unit"},
	{TagSharedType, "DW_TAG_shared_type"},
	{TagTypeUnit, "DW_TAG_type_unit"},
	{TagRvalueReferenceType, "DW_TAG_rvalue_reference_type"},
	{TagTemplateAlias, "DW_TAG_template_alias"},
	{TagCoarrayType, "DW_TAG_coarray_type"},
	{TagGenericSubrange, "DW_TAG_generic_subrange"},
	{TagDynamicType, "DW_TAG_dynamic_type"},
	{TagAtomicType, "DW_TAG_atomic_type"},
	{TagCallSite, "DW_TAG_call_site"},
	{TagCallSiteParameter, "DW_TAG_call_site_parameter"},
	{TagImmutableType, "DW_TAG_immutable_type"},
	{TagGNUTemplateParameterPack, "DW_TAG_GNU_template_parameter_pack"},
	{TagGNUCallSite, "DW_TAG_GNU_call_site"},
	{TagGNUCallSiteParameter, "DW_TAG_GNU_call_site_parameter"},
	{TagLLVMPtrauthType, "DW_TAG_LLVM_ptrauth_type"},
}
