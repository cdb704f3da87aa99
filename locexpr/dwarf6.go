// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"slices"
	"strings"
)

// This file has the operations of the heterogeneous extension under their names in the
// proposals approved for DWARF 6 (230524.1, "Locations on the stack"), and the operation that
// these add. None has a number yet: they are read in text only.

// dwarf6Names has the operations of other dialects by their names in DWARF 6.
var dwarf6Names = map[string]string{
	"DW_OP_OFFSET":               "DW_OP_LLVM_offset",
	"DW_OP_BIT_OFFSET":           "DW_OP_LLVM_bit_offset",
	"DW_OP_UNDEFINED":            "DW_OP_LLVM_undefined",
	"DW_OP_PUSH_LANE":            "DW_OP_LLVM_push_lane",
	"DW_OP_PUSH_OBJECT_LOCATION": "DW_OP_push_object_address",
	"DW_OP_FORM_TLS_LOCATION":    "DW_OP_form_tls_address",
}

// lookupText is Lookup for a name in a text, which may be that of DWARF 6.
func (d *Dialect) lookupText(name string) (op *Operation, e Encoding, ok bool) {
	if op, e, ok = d.Lookup(name); ok {
		return op, e, true
	}
	full := strings.ToUpper(name)
	if !strings.HasPrefix(full, "DW_OP_") {
		full = "DW_OP_" + full
	}
	if other, known := dwarf6Names[full]; known {
		return d.Lookup(other)
	}
	return nil, Encoding{}, false
}

// opComposite pushes an empty composite, to which the operations for pieces add
// (230524.1, 3.12). Unlike a composite that a piece starts, this one is
// complete: any operation takes it as it is, and pieces may still add to it
// later.
func opComposite(ev *evaluation) error {
	return ev.pushComposite(&detail{depth: 1, isOpen: true})
}

// isOpen reports whether the entry is a composite that DW_OP_composite began.
func (s *Entry) isOpen() bool {
	return s != nil && s.kind == locationEntry && len(s.location.more) == 0 &&
		s.location.place.Storage == Composite && s.location.place.detail.isOpen
}

// takesPieces reports whether the entry is a composite to which the next piece is added, once
// the piece's location is off the stack.
func (s *Entry) takesPieces() bool { return s.isIncomplete() || s.isOpen() }

// extend returns a copy of d to which a part can be added. Other locations may share d. The
// first copy shares the array of d's parts and adds behind them, where d does not read; later
// copies get arrays of their own.
func (d *detail) extend() *detail {
	longer := &detail{bits: d.bits, parts: d.parts, depth: d.depth, isOpen: true}
	if d.isExtended {
		longer.parts = slices.Clip(d.parts)
	}
	d.isExtended = true
	return longer
}
