// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// clones are the system calls of Linux that make threads. They return twice, and the
// second time on the stack of the new thread, onto which no call has pushed a return
// address. C libraries end the call frame information before them; Go's treats them like
// any other instruction.
//
// isParent is the text of an expression that is zero in the new thread. clone is given
// the new stack in rsi; as fork it gets none, and the stack is a copy of the old one. The
// result of clone3 is 0.
var clones = []struct{ code, isParent string }{
	{movEAXImm(sysClone) + bytesSyscall, registerText(rsp, 0) + "; " + registerText(rsi, 0) + "; minus"},
	{movEAXImm(sysClone3) + bytesSyscall, registerText(rax, 0)},
}

const (
	sysClone  = 56
	sysClone3 = 435
)

// shared is an instruction right after such a system call, which both threads execute.
type shared struct {
	offset, length int
	isParent       string
}

// forNewThreads makes the return address 0 in a new thread, in the rows that hold right
// after the system call that makes it.
func forNewThreads(rows []cfi.Row, start uint64, code []byte) []cfi.Row {
	var list []shared
	for _, c := range clones {
		for at := 0; ; {
			i := bytes.Index(code[at:], []byte(c.code))
			if i < 0 {
				break
			}
			at += i + len(c.code)
			list = append(list, sharedFrom(code, at, c.isParent)...)
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
func sharedFrom(code []byte, offset int, isParent string) (list []shared) {
	const most = 16
	waiting := []int{offset}
	for len(waiting) > 0 && len(list) < most {
		at := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if at < 0 || at >= len(code) || slices.ContainsFunc(list, func(i shared) bool { return i.offset == at }) {
			continue
		}
		e, ok := readEffect(code[at:])
		if !ok {
			continue
		}
		list = append(list, shared{at, int(e.length), isParent})
		switch {
		case e.kind == effectBranch && e.clobbers == 0:
			waiting = append(waiting, at+int(e.length), int(int64(at)+e.target))
		case e.kind == effectOther && e.clobbers == 0 && !e.hasMem:
			waiting = append(waiting, at+int(e.length))
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
	word := wordText(uint32(row.CFA.Register), row.CFA.Offset+row.Rules[i].Rule.Offset)
	rules = slices.Clone(row.Rules)
	rules[i].Rule = cfi.Rule{Kind: cfi.ValExpression, Expr: expression(chooseText(isParent, word, "lit0"))}
	return rules, true
}
