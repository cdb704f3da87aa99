// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// writer writes views as rows. A rule other than a register or an offset is an
// expression, which is written as text.
type writer struct {
	*machineMode
	v    *view      // the view
	e    expression // the expression
	tail expression // the end of an expression that has a branch over it
	// before is the view of the last row, and last is that row.
	before view
	last   cfi.Row
}

// row writes the row of a view. It shares equal parts with the last row.
func (w *writer) row(start, end uint64, v *view) cfi.Row {
	w.v = v
	sameBases := slices.Equal(v.bases, w.before.bases)
	row := cfi.Row{Start: start, End: end, ReturnAddress: uint64(pc64), CFA: w.last.CFA, Rules: w.last.Rules}
	if !sameBases || v.cfa != w.before.cfa || v.add != w.before.add {
		row.CFA = w.cfaRule()
	}
	if !sameBases || v.masks != w.before.masks || !slices.Equal(v.rules, w.before.rules) {
		row.Rules = w.rules(sameBases)
	}
	w.last = row
	return row
}

// rules writes the rules of a row. Where the bases of the places differ from the last
// row's (sameBases is false), none of its rules can be shared.
func (w *writer) rules(sameBases bool) []cfi.RegisterRule {
	rules := make([]cfi.RegisterRule, 0, len(w.v.rules))
	written, old := w.last.Rules, w.before.rules
	if !sameBases {
		written, old = nil, nil
	}
	for i := range w.v.rules {
		r := &w.v.rules[i]
		for len(old) > 0 && old[0].column < r.column {
			written, old = written[1:], old[1:]
		}
		if len(old) > 0 && old[0] == *r && (r.kind != maskRule || w.v.masks == w.before.masks) {
			rules = append(rules, written[0])
		} else {
			rules = append(rules, cfi.RegisterRule{Column: uint64(r.column), Rule: w.rule(r)})
		}
	}
	return rules
}

// assemble returns the bytes of the expression that was written.
func (w *writer) assemble() []byte { return assembly.expression(w.e.text) }

// cfaRule writes the rule of the CFA: the stack pointer's value on entry, an address in
// private_wave.
func (w *writer) cfaRule() cfi.CFARule {
	if w.v.cfa.kind == inScalar && w.v.cfa.reg < namedScalars && !w.isPerLane {
		return cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(dwarfScalar(w.v.cfa.reg)), Offset: -int64(int32(w.v.add)), Space: privateWave} //nolint:gosec // signed
	}
	w.e.begin()
	w.address(w.v.cfa, -int64(int32(w.v.add))) //nolint:gosec // signed
	return cfi.CFARule{Kind: cfi.CFAExpression, Expr: w.assemble()}
}

// address pushes the location in private_wave that a pointer leads to. pointer is the
// site of the pointer; add is added to it, in its own units.
func (w *writer) address(pointer site, add int64) {
	w.site(pointer)
	w.e.value(4)
	switch {
	case add > 0:
		w.e.number(add)
		w.e.op(-1, "DW_OP_plus")
	case add < 0:
		w.e.number(-add)
		w.e.op(-1, "DW_OP_minus")
	}
	if w.isPerLane {
		w.e.number(int64(bits.TrailingZeros32(w.lanes)))
		w.e.op(-1, "DW_OP_shl")
	}
	w.e.number(int64(privateWave))
	w.e.op(-1, "DW_OP_LLVM_form_aspace_address")
}

// place pushes the location of a place.
func (w *writer) place(p place) {
	if !p.isPrivate() {
		w.e.register(dwarfVector(p, w.lanes))
		return
	}
	scale := int64(w.lanes)
	if p.base() == 0 {
		w.e.cfa()
		w.e.offset(int64(p.offset()) * scale)
		return
	}
	for _, b := range w.v.bases {
		if b.symbol == p.base() {
			w.address(b.site, -int64(int32(b.add))) //nolint:gosec // signed
			w.e.offset(int64(p.offset()) * scale)
			return
		}
	}
}

// site pushes the location of a site.
func (w *writer) site(s site) {
	switch {
	case s.kind == inScalar && s.reg >= namedScalars:
		column, offset := dwarfHalf(s.reg, w.lanes)
		w.e.register(column)
		w.e.offset(offset)
	case s.kind == inScalar:
		w.e.register(dwarfScalar(s.reg))
	case s.kind == inFirst:
		w.first(s.place)
	default:
		w.place(s.place)
		w.e.offset(4 * int64(s.lane))
	}
}

// lowestBit replaces a mask that is not zero by the number of its lowest bit, which
// a loop counts: it shifts the mask right by 0, 1, 2... until the bit below is set.
// Each branch has the number of bytes of code that it skips, forward or backward.
const lowestBit = "DW_OP_lit0" +
	"; DW_OP_over; DW_OP_over; DW_OP_shr; DW_OP_lit1; DW_OP_and" + // from here on, 13 bytes
	"; DW_OP_bra 5" + // to DW_OP_swap
	"; DW_OP_plus_uconst 1; DW_OP_skip -13" +
	"; DW_OP_swap; DW_OP_drop"

// first pushes the location of the first lane of a place that was active on entry,
// which is the lowest bit of that mask. Where no lane was active it pushes the
// undefined location.
func (w *writer) first(p place) {
	w.entryExec()
	// These operations are executed where a lane was active: a branch skips them
	// elsewhere, which needs their size.
	text, depth := w.e.text, w.e.depth
	w.e.text = w.tail.text[:0]
	w.e.op(0, lowestBit)
	w.place(p)
	w.e.op(-1, "DW_OP_swap; DW_OP_lit2; DW_OP_shl; DW_OP_LLVM_offset") // 4 bytes a lane
	w.tail.text, w.e.text, w.e.depth = w.e.text, text, depth
	w.e.op(0, "DW_OP_dup; DW_OP_bra 6; DW_OP_drop; DW_OP_LLVM_undefined")
	w.e.opWith(0, "DW_OP_skip", int64(len(assembly.assemble(w.tail.text))))
	w.e.text = append(w.e.text, w.tail.text...)
}

// entryExec pushes the mask of the lanes that were active on entry.
func (w *writer) entryExec() {
	exec := exec64
	if w.lanes == wave32 {
		exec = exec32
	}
	w.e.opWith(1, "DW_OP_LLVM_call_frame_entry_reg", int64(exec))
	w.e.value(w.lanes / 8)
}

// isReachable reports whether the view has the base of a place.
func (w *writer) isReachable(p place) bool {
	return !p.isPrivate() || p.base() == 0 ||
		slices.ContainsFunc(w.v.bases, func(b base) bool { return b.symbol == p.base() && b.site.kind != nowhere })
}

// offsetRule returns the rule of a place at a constant distance from the CFA. ok is
// false where the place is elsewhere.
func (w *writer) offsetRule(p place, lane uint8) (r cfi.Rule, ok bool) {
	if !p.isPrivate() || p.base() != 0 {
		return cfi.Rule{}, false
	}
	return cfi.Rule{Kind: cfi.Offset, Offset: int64(p.offset())*int64(w.lanes) + 4*int64(lane)}, true
}

func (w *writer) rule(r *rule) cfi.Rule {
	w.e.begin()
	undefined := cfi.Rule{Kind: cfi.Undefined}
	switch r.kind {
	case pointerRule:
		return cfi.Rule{Kind: cfi.ValOffsetPerLane}
	case scalarRule:
		s := r.sites[0]
		if s.kind == inScalar && s.reg < namedScalars {
			return cfi.Rule{Kind: cfi.Register, Register: uint64(dwarfScalar(s.reg))}
		}
		if !w.isReachable(s.place) {
			return undefined
		}
		if rule, ok := w.offsetRule(s.place, s.lane); ok && s.kind == inLane {
			return rule
		}
		w.site(s)
	case addressRule:
		for i, s := range r.sites {
			w.site(s)
			w.e.piece(4, i == 0)
		}
	case maskRule:
		for _, m := range w.v.masks {
			if !w.isReachable(m[0].place) || !w.isReachable(m[1].place) {
				return undefined
			}
		}
		return w.maskRule()
	case vectorRule:
		return w.vectorRule(r)
	default:
		return undefined
	}
	return cfi.Rule{Kind: cfi.Expression, Expr: w.assemble()}
}

// maskRule writes EXEC on entry as the union of masks, half by half.
func (w *writer) maskRule() cfi.Rule {
	masks := &w.v.masks
	halves := int(w.lanes / 32)
	for i := range halves {
		w.site(masks[0][i])
		if masks[1][0].kind != nowhere {
			w.e.value(4)
			for _, m := range masks[1:] {
				if m[0].kind != nowhere {
					w.site(m[i])
					w.e.value(4)
					w.e.op(-1, "DW_OP_or")
				}
			}
			w.e.op(0, "DW_OP_stack_value")
		}
		if halves > 1 || masks[1][0].kind != nowhere {
			w.e.piece(4, i == 0)
		}
	}
	return cfi.Rule{Kind: cfi.Expression, Expr: w.assemble()}
}

func (w *writer) vectorRule(r *rule) cfi.Rule {
	active, inactive := r.sites[0], r.sites[1]
	for _, s := range [...]*site{&active, &inactive} {
		if s.kind == inLane && !w.isReachable(s.place) {
			*s = site{}
		}
	}
	if active == inactive {
		switch rule, ok := w.offsetRule(active.place, 0); {
		case active.kind == nowhere:
			return cfi.Rule{Kind: cfi.Undefined}
		case active.kind == itself:
			return cfi.Rule{Kind: cfi.SameValue}
		case ok:
			return rule
		case !active.place.isPrivate():
			return cfi.Rule{Kind: cfi.Register, Register: uint64(dwarfVector(active.place, w.lanes))}
		}
		w.place(active.place)
		return cfi.Rule{Kind: cfi.Expression, Expr: w.assemble()}
	}
	for _, s := range [...]site{inactive, active} {
		switch s.kind {
		case nowhere:
			w.e.op(1, "DW_OP_LLVM_undefined")
		case itself:
			w.e.register(r.column)
		default:
			w.place(s.place)
		}
	}
	w.entryExec()
	w.e.opWith(-2, "DW_OP_LLVM_select_bit_piece 32", int64(w.lanes))
	return cfi.Rule{Kind: cfi.Expression, Expr: w.assemble()}
}
