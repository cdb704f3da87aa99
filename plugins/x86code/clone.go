// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// Clone is a system call of Linux that makes a thread. It returns twice, and the second
// time on the stack of the new thread, onto which no call has pushed a return address. C
// libraries end the call frame information before it; Go's treats it like any other
// instruction.
type Clone struct {
	Code string
	// IsParent is the text of an expression that is zero in the new thread.
	IsParent string
}

// shared is an instruction right after such a system call, which both threads execute.
type shared struct {
	offset, length int
	isParent       string
}

// forNewThreads makes the return address 0 in a new thread, in the rows that hold right
// after the system call that makes it.
func (m *Mode) forNewThreads(rows []cfi.Row, start uint64, code []byte) []cfi.Row {
	var list []shared
	for _, c := range m.Clones {
		for at := 0; ; {
			i := bytes.Index(code[at:], []byte(c.Code))
			if i < 0 {
				break
			}
			at += i + len(c.Code)
			list = append(list, m.sharedFrom(code, at, c.IsParent)...)
		}
	}
	if len(list) == 0 {
		return rows
	}
	slices.SortStableFunc(list, func(a, b shared) int { return cmp.Compare(a.offset, b.offset) })
	var out []cfi.Row
	for _, row := range rows {
		for ; len(list) > 0 && start+uint64(list[0].offset) < row.End; list = list[1:] {
			i := &list[0]
			at := start + uint64(i.offset)
			if at < row.Start {
				continue // there is no row, or it is of a part already
			}
			end := min(at+uint64(i.length), row.End)
			if at > row.Start {
				before := row
				before.End = at
				out = append(out, before)
			}
			if rules, ok := whenParent(&row, i.isParent); ok {
				part := row
				part.Start, part.End, part.Rules = at, end, rules
				out = append(out, part)
			}
			row.Start = end
		}
		if row.Start < row.End {
			out = append(out, row)
		}
	}
	return out
}

// sharedFrom lists the instructions from an offset on that are executed with the
// registers of that offset, over branches.
func (m *Mode) sharedFrom(code []byte, offset int, isParent string) (list []shared) {
	const most = 16
	waiting := []int{offset}
	for len(waiting) > 0 && len(list) < most {
		at := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if at < 0 || at >= len(code) || slices.ContainsFunc(list, func(i shared) bool { return i.offset == at }) {
			continue
		}
		e, ok := m.ReadEffect(code[at:])
		if !ok {
			continue
		}
		list = append(list, shared{at, int(e.Length), isParent})
		switch {
		case e.Kind == Branch && e.Clobbers == 0:
			waiting = append(waiting, at+int(e.Length), int(int64(at)+e.Target))
		case e.Kind == Other && e.Clobbers == 0 && !e.HasMem:
			waiting = append(waiting, at+int(e.Length))
		}
	}
	return list
}

// whenParent returns a row's rules with a return address that is zero where isParent is;
// ok is false where the row does not find the return address in the frame.
func whenParent(row *cfi.Row, isParent string) (rules []cfi.RegisterRule, ok bool) {
	i := slices.IndexFunc(row.Rules, func(r cfi.RegisterRule) bool { return r.Column == row.ReturnAddress })
	if i < 0 || row.Rules[i].Rule.Kind != cfi.Offset || row.CFA.Kind != cfi.CFARegister {
		return nil, false
	}
	word := WordText(uint32(row.CFA.Register), row.CFA.Offset+row.Rules[i].Rule.Offset)
	rules = slices.Clone(row.Rules)
	rules[i].Rule = cfi.Rule{Kind: cfi.ValExpression, Expr: Expression(ChooseText(isParent, word, "lit0"))}
	return rules, true
}
