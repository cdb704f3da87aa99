// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/symbol/postfix"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/leb128"
	"github.com/unwindd/unwindd/locexpr"
)

// frame writes a STACK CFI INIT record and the records that change it. Before a row that
// cannot be expressed the record ends, and another one begins after it.
func (x *writer) frame(f *SourceFrame) error {
	w := frameWriter{writer: x, limits: f.Range}
	err := f.Rows(func(row *cfi.Row) bool { w.row(row); return true })
	w.end()
	return err
}

// ruleText is a rule as it is written.
type ruleText struct {
	column uint64
	text   string
}

// frameWriter gathers the records of one stretch of code, which ends before a row that
// cannot be expressed.
type frameWriter struct {
	*writer
	limits     Range
	start, to  uint64 // the stretch
	open       bool
	init, rest []byte // the rules of INIT; the records after it
	cfa        string
	rules      []ruleText
}

func (w *frameWriter) row(row *cfi.Row) {
	start, end := max(row.Start, w.limits.Start), min(row.End, w.limits.End)
	if start >= end {
		return
	}
	cfa, rules, ok := w.texts(row)
	if !ok {
		w.done.Unwritten++
		w.end()
		return
	}
	if !w.open || start != w.to || w.isForgotten(rules) {
		w.end()
		w.open, w.start, w.cfa, w.rules = true, start, "", nil
		w.init = w.changes(w.init[:0], cfa, rules)
		w.rest = w.rest[:0]
	} else if changed := w.changes(nil, cfa, rules); len(changed) > 0 {
		w.rest = append(w.rest, "STACK CFI "...)
		w.rest = append(strconv.AppendUint(w.rest, start, 16), changed...)
		w.rest = append(w.rest, '\n')
		w.done.CFIRows++
	}
	w.to = end
}

// end writes the stretch.
func (w *frameWriter) end() {
	if !w.open {
		return
	}
	w.open = false
	w.done.CFI++
	w.done.CFIRows++
	line := strconv.AppendUint([]byte("STACK CFI INIT "), w.start, 16)
	line = strconv.AppendUint(append(line, ' '), w.to-w.start, 16)
	_, _ = w.w.Write(append(append(line, w.init...), '\n'))
	_, _ = w.w.Write(w.rest)
}

// changes appends the differences from the row before. A register without a rule has its
// value of the call again: the rule is written so.
func (w *frameWriter) changes(out []byte, cfa string, rules []ruleText) []byte {
	add := func(name, text string) {
		out = append(append(append(append(append(out, ' '), name...), ':'), ' '), text...)
	}
	if cfa != w.cfa {
		add(cfaName, cfa)
	}
	old := w.rules
	for _, r := range rules {
		for len(old) > 0 && old[0].column < r.column {
			add(w.dropped(old[0].column))
			old = old[1:]
		}
		if len(old) > 0 && old[0].column == r.column {
			same := old[0].text == r.text
			if old = old[1:]; same {
				continue
			}
		}
		name, _ := w.register(r.column)
		add(name, r.text)
	}
	for _, r := range old {
		add(w.dropped(r.column))
	}
	w.cfa, w.rules = cfa, rules
	return out
}

// isForgotten reports whether a register lost a rule that was not merely saved: now the
// reader's default applies to it, which only a new record has.
func (w *frameWriter) isForgotten(rules []ruleText) bool {
	for _, old := range w.rules {
		for len(rules) > 0 && rules[0].column < old.column {
			rules = rules[1:]
		}
		isKept := len(rules) > 0 && rules[0].column == old.column
		if !isKept && !(strings.HasPrefix(old.text, cfaName) && strings.HasSuffix(old.text, "^")) {
			return true
		}
	}
	return false
}

func (w *frameWriter) dropped(column uint64) (name, text string) {
	name, _ = w.register(column)
	return name, name
}

// texts are the rules of a row; false when it cannot be expressed. The column of the return
// address is called .ra, and always has a rule.
func (w *frameWriter) texts(row *cfi.Row) (cfa string, rules []ruleText, ok bool) {
	if cfa, ok = w.cfaText(&row.CFA); !ok {
		return "", nil, false
	}
	rules = make([]ruleText, 0, len(row.Rules)+1)
	back := ""
	for i := range row.Rules {
		r := &row.Rules[i]
		name, known := w.register(r.Column)
		text, ok := w.ruleText(&r.Rule, name)
		switch {
		case r.Column == row.ReturnAddress:
			if !ok {
				return "", nil, false
			}
			if back = text; r.Rule.Kind == cfi.Undefined {
				back = noCaller
			}
		case !known || text == "":
			// Breakpad restores no register that has no name.
		default:
			if !ok {
				w.done.Lost++
			}
			rules = append(rules, ruleText{r.Column, text})
		}
	}
	if back == "" {
		// Without a rule it is where a call left it, in a register.
		name, known := w.register(row.ReturnAddress)
		if !known {
			return "", nil, false
		}
		back = name
	}
	return cfa, append(rules, ruleText{returnColumn, back}), true
}

// returnColumn is the column of .ra, after all registers.
const returnColumn = ^uint64(0)

func (x *writer) register(number uint64) (string, bool) {
	if number == returnColumn {
		return returnName, true
	}
	if x.s.Register == nil {
		return "", false
	}
	return x.s.Register(number)
}

func (x *writer) cfaText(c *cfi.CFARule) (string, bool) {
	switch c.Kind {
	case cfi.CFARegister:
		name, ok := x.register(c.Register)
		return name + " " + strconv.FormatInt(c.Offset, 10) + " +", ok && c.Space == locexpr.DefaultSpace
	case cfi.CFAExpression:
		return x.expression(c.Expr, false)
	}
	return "", false
}

// ruleText is the text of the rule of a register with a name; "" where it needs none, and
// false with .undef where it cannot be expressed.
func (x *writer) ruleText(r *cfi.Rule, name string) (string, bool) {
	offset := cfaName + " " + strconv.FormatInt(r.Offset, 10) + " +"
	switch r.Kind {
	case cfi.Unspecified:
		return "", true
	case cfi.Undefined:
		return undefined, true
	case cfi.SameValue:
		return name, name != ""
	case cfi.Offset:
		return offset + " ^", true
	case cfi.ValOffset:
		return offset, true
	case cfi.Register:
		if source, ok := x.register(r.Register); ok {
			return source, true
		}
	case cfi.Expression, cfi.ValExpression:
		if text, ok := x.expression(r.Expr, true); ok {
			if r.Kind == cfi.Expression {
				text += " ^"
			}
			return text, true
		}
	}
	return undefined, false
}

// dwarfOperators are the operations that have an operator of their own.
var dwarfOperators = map[byte]string{dw.OpDeref: " ^", dw.OpPlus: " +", dw.OpMinus: " -", dw.OpMul: " *", dw.OpMod: " %"}

// expression writes a DWARF expression as a postfix one. Both run on a stack, so an
// operation becomes its operator; there are few. The CFA is on the stack at first in the
// rule of a register.
func (x *writer) expression(code []byte, hasCFA bool) (string, bool) {
	// The stack, as text: an operation replaces its operands.
	var stack []string
	if hasCFA {
		stack = append(stack, cfaName)
	}
	for offset := 0; offset < len(code); {
		op := code[offset]
		next, operand, ok := x.operand(code, offset)
		if ok {
			stack, offset = append(stack, operand), next
			continue
		}
		n := len(stack)
		operator := dwarfOperators[op]
		switch {
		case op == dw.OpDeref && n >= 1:
			stack[n-1] += operator
		case op == dw.OpPlusUconst && n >= 1:
			v, after, err := leb128.Unsigned(code, offset+1)
			if err != nil {
				return "", false
			}
			stack[n-1] += " " + strconv.FormatUint(v, 10) + " +"
			offset = after - 1
		case op == dw.OpPick && offset+1 < len(code) && n > int(code[offset+1]):
			stack = append(stack, stack[n-1-int(code[offset+1])])
			offset++
		case operator != "" && n >= 2:
			stack = append(stack[:n-2], stack[n-2]+" "+stack[n-1]+operator)
		default:
			return "", false
		}
		offset++
		if len(stack) > postfix.MaxOperands || len(stack[len(stack)-1]) > postfix.MaxCode {
			return "", false
		}
	}
	if len(stack) == 0 {
		return "", false
	}
	return stack[len(stack)-1], true
}

// operand reads an operation that pushes a register plus an offset or a constant.
func (x *writer) operand(code []byte, pos int) (next int, text string, ok bool) {
	op := code[pos]
	pos++
	switch {
	case op >= dw.OpLit0 && op <= dw.OpLit31:
		return pos, strconv.Itoa(int(op - dw.OpLit0)), true
	case op == dw.OpConstu:
		v, next, err := leb128.Unsigned(code, pos)
		return next, strconv.FormatUint(v, 10), err == nil
	case op == dw.OpConsts:
		v, next, err := leb128.Signed(code, pos)
		return next, strconv.FormatInt(v, 10), err == nil
	case op == dw.OpConst1u && pos < len(code):
		return pos + 1, strconv.Itoa(int(code[pos])), true
	case op == dw.OpConst1s && pos < len(code):
		return pos + 1, strconv.Itoa(int(int8(code[pos]))), true
	}
	register := uint64(op) - dw.OpBreg0
	if op == dw.OpBregx {
		v, next, err := leb128.Unsigned(code, pos)
		if err != nil {
			return pos, "", false
		}
		register, pos = v, next
	} else if op < dw.OpBreg0 || op > dw.OpBreg31 {
		return pos, "", false
	}
	name, known := x.register(register)
	offset, next, err := leb128.Signed(code, pos)
	if !known || err != nil {
		return pos, "", false
	}
	if offset == 0 {
		return next, name, true
	}
	return next, name + " " + strconv.FormatInt(offset, 10) + " +", true
}
