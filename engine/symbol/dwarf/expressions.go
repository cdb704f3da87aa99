package dwarf

import (
	godwarf "debug/dwarf"
	"fmt"
	"iter"
)

// An Expression is an attribute of class exprloc of a debugging information
// entry.
type Expression struct {
	Entry     uint64 // offset of the entry in .debug_info
	Attribute string // "DW_AT_location"
	Bytes     []byte
}

// Expressions are the expressions that stand in entries, in the order of
// .debug_info. Those of location lists are not among them.
func (r *Reader) Expressions() iter.Seq2[Expression, error] {
	return func(yield func(Expression, error) bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		defer func() {
			// debug/dwarf panics on some damaged entries.
			if p := recover(); p != nil {
				yield(Expression{}, fmt.Errorf("%s: .debug_info: %v", r.name, p))
			}
		}()
		entries := r.data.Reader()
		for {
			e, err := entries.Next()
			if err != nil {
				yield(Expression{}, fmt.Errorf("%s: .debug_info: %w", r.name, err))
				return
			}
			if e == nil {
				return
			}
			for _, f := range e.Field {
				b, ok := f.Val.([]byte)
				if !ok || f.Class != godwarf.ClassExprLoc && f.Class != godwarf.ClassBlock {
					continue
				}
				if !yield(Expression{uint64(e.Offset), attributeName(f.Attr), b}, nil) {
					return
				}
			}
		}
	}
}

// attributeName is the name of an attribute as DWARF 5, 7.5.4 spells it.
func attributeName(a godwarf.Attr) string {
	if name, ok := exprAttributes[a]; ok {
		return name
	}
	return fmt.Sprintf("DW_AT_%#x", uint32(a))
}

// exprAttributes are the attributes that may have an expression.
var exprAttributes = map[godwarf.Attr]string{
	godwarf.AttrLocation: "DW_AT_location", godwarf.AttrByteSize: "DW_AT_byte_size", godwarf.AttrBitSize: "DW_AT_bit_size",
	godwarf.AttrStringLength: "DW_AT_string_length", godwarf.AttrConstValue: "DW_AT_const_value",
	godwarf.AttrLowerBound: "DW_AT_lower_bound", godwarf.AttrReturnAddr: "DW_AT_return_addr", godwarf.AttrStrideSize: "DW_AT_bit_stride",
	godwarf.AttrUpperBound: "DW_AT_upper_bound", godwarf.AttrCount: "DW_AT_count", godwarf.AttrDataMemberLoc: "DW_AT_data_member_location",
	godwarf.AttrFrameBase: "DW_AT_frame_base", godwarf.AttrSegment: "DW_AT_segment", godwarf.AttrStaticLink: "DW_AT_static_link",
	godwarf.AttrUseLocation: "DW_AT_use_location", godwarf.AttrVtableElemLoc: "DW_AT_vtable_elem_location",
	godwarf.AttrAllocated: "DW_AT_allocated", godwarf.AttrAssociated: "DW_AT_associated", godwarf.AttrDataLocation: "DW_AT_data_location",
	godwarf.AttrStride: "DW_AT_byte_stride", godwarf.AttrRank: "DW_AT_rank", godwarf.AttrCallValue: "DW_AT_call_value",
	godwarf.AttrCallTarget: "DW_AT_call_target", godwarf.AttrCallTargetClobbered: "DW_AT_call_target_clobbered",
	godwarf.AttrCallDataLocation: "DW_AT_call_data_location", godwarf.AttrCallDataValue: "DW_AT_call_data_value",
	0x2111: "DW_AT_GNU_call_site_value", 0x2113: "DW_AT_GNU_call_site_target",
	0x3e08: "DW_AT_LLVM_active_lane", 0x3e0a: "DW_AT_LLVM_lanes", 0x3e0b: "DW_AT_LLVM_lane_pc",
}
