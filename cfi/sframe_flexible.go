// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"encoding/binary"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/leb128"
)

// The first data word of a pair of a flexible FDE (3.2). The register's number is
// above these bits.
const (
	flexRegister = 1 << iota // the base is a register, else the CFA
	flexDeref                // the value is in memory
	flexUnused
	flexShift = iota
)

// flexRule is a pair of data words: the rule of the CFA, the return address or the frame
// pointer.
type flexRule struct {
	control uint64
	offset  int64
}

// fillFlexible takes the data words of an FRE of a flexible FDE: pairs for the CFA, the
// return address and the frame pointer. In place of a pair, one word of 0 leaves a register
// to the header.
func (c *sframeCursor) fillFlexible(row *Row, ra, fp *Rule) error {
	e := &c.fre
	words := e.offsets // a copy, so that c need not be on the heap
	rules, ok := e.flexRules()
	// The CFA's offset on s390x is scaled as in 3.1.3: binutils does so here too, and 3.2
	// does not mention it.
	a := c.fde.table.abi
	rules[0].offset = rules[0].offset*a.scale + a.bias
	cfa, isCFA := rules[0].cfa()
	if !ok || !isCFA {
		return c.fde.table.errorf(uint64(e.pos), ErrSFrame, "data words %d: not pairs for the CFA, the return address and the frame pointer, the first of a register", words[:e.count])
	}
	row.CFA = cfa
	for i, rule := range []*Rule{ra, fp} {
		if r := rules[1+i]; r.control != 0 {
			*rule = r.rule()
		}
	}
	return nil
}

// flexRules are the pairs of an FRE, zero where it has none; ok is false where its data words
// are no pairs.
func (e *sframeFRE) flexRules() (rules [3]flexRule, ok bool) {
	mask := addressMask(1 << (e.info >> freSizeShift & freSizeMask))
	used := 0
	for i := range rules {
		if used == e.count {
			break
		}
		r := &rules[i]
		r.control = uint64(e.offsets[used]) & mask
		if used++; r.control == 0 {
			continue
		}
		if used == e.count || r.control&flexUnused != 0 {
			return rules, false
		}
		r.offset = e.offsets[used]
		used++
	}
	return rules, used == e.count
}

// cfa returns the pair as the rule of a CFA, which cannot count from itself.
func (r flexRule) cfa() (rule CFARule, ok bool) {
	switch r.control & (flexRegister | flexDeref) {
	case flexRegister:
		return CFARule{Kind: CFARegister, Register: r.control >> flexShift, Offset: r.offset}, true
	case flexRegister | flexDeref:
		return CFARule{Kind: CFAExpression, Expr: append(r.address(), dw.OpDeref)}, true
	}
	return rule, false
}

// rule returns the pair as the rule of a register.
func (r flexRule) rule() Rule {
	switch r.control & (flexRegister | flexDeref) {
	case flexDeref:
		return Rule{Kind: Offset, Offset: r.offset}
	case flexRegister | flexDeref:
		return Rule{Kind: Expression, Expr: r.address()}
	case flexRegister:
		if r.offset == 0 {
			return Rule{Kind: Register, Register: r.control >> flexShift}
		}
		return Rule{Kind: ValExpression, Expr: r.address()}
	}
	return Rule{Kind: ValOffset, Offset: r.offset}
}

// address returns the expression of a register plus the offset.
func (r flexRule) address() []byte {
	b := binary.AppendUvarint([]byte{dw.OpBregx}, r.control>>flexShift)
	return leb128.AppendSigned(b, r.offset)
}
