// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"sort"
	"strconv"

	"github.com/unwindd/unwindd/cfi"
)

// This file looks at who calls a function that changes a register without saving it. Hand-written
// assembly has subroutines of its own for which that is right, as their callers have saved it; no
// table of another can say so.

// callers are the functions that call a function or jump to it, by its start.
type callers map[uint64][]*function

// callersOf finds the callers among functions that are by address.
func callersOf(functions []function) callers {
	m := callers{}
	for i := range functions {
		f := &functions[i]
		for j := range f.code {
			l := &f.code[j]
			if l.mnemonic != "call" && l.mnemonic != "jmp" || len(l.operands) == 0 {
				continue
			}
			target, err := strconv.ParseUint(l.operands[0], 16, 64)
			if err != nil {
				continue
			}
			n := sort.Search(len(functions), func(n int) bool { return functions[n].fde.End > target })
			if n < len(functions) && functions[n].fde.Start <= target && n != i {
				m[functions[n].fde.Start] = append(m[functions[n].fde.Start], f)
			}
		}
	}
	return m
}

// hasSaved reports whether a function's table has a place for a register somewhere.
func (f *function) hasSaved(number uint64) (has bool) {
	_ = f.fde.Rows(func(r *cfi.Row) bool {
		rule, _ := r.Rule(number)
		has = rule.Kind == cfi.Offset || rule.Kind == cfi.Expression
		return !has
	})
	return has
}

// excuse marks missing rules of a library's functions whose every caller has saved the register.
func (t *tables) excuse(library string, functions []function) {
	slices.SortFunc(functions, func(a, b function) int { return cmp.Compare(a.fde.Start, b.fde.Start) })
	var c callers
	for key, p := range t.faults {
		if key.library != library || p.register == 0 {
			continue
		}
		if c == nil {
			c = callersOf(functions)
		}
		const depth = 3 // subroutines call each other
		p.isExcused = c.haveSaved(p.function, p.register, depth)
	}
}

// haveSaved reports whether all who call a function have saved a register, or those who call them.
func (c callers) haveSaved(function, number uint64, depth int) bool {
	if depth == 0 || len(c[function]) == 0 {
		return false
	}
	for _, f := range c[function] {
		if !f.hasSaved(number) && !c.haveSaved(f.fde.Start, number, depth-1) {
			return false
		}
	}
	return true
}
