// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/plugins/x86code"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// switchRow is the row of a function that calls on another stack than it was called on,
// at an offset of its code behind the switch: it leads back to the first stack. ok is
// false before the switch, and where the code does not show how to get back.
//
// The row is read from the code, because the place of a goroutine's stack pointer differs
// between versions of Go's runtime. A function that goes back itself (runtime.asmcgocall,
// runtime.systemstack) is executed up to its return. One that never returns
// (runtime.mcall) is executed from its beginning: it stores the PC and the stack pointer
// of its caller for the scheduler. One that turns C's call into a call in the goroutine
// (runtime.cgocallback) opens a frame on the goroutine's stack, below a return address
// there, as large as its own.
func switchRow(r *sdk.CodeRange, offset int) (row cfi.Row, ok bool) {
	rows, err := mode.FunctionRows(codeflow.OnePiece(r.Start, r.Code), mode.StackOrder)
	if err != nil || isFoundByStack(rows, r.PC) {
		return row, false
	}
	resume := offset
	if !r.Exact {
		if resume = mode.ResumeAfter(r.Code, offset); resume < 0 || resume > len(r.Code) {
			return row, false
		}
	}
	row = cfi.Row{Start: r.Start + uint64(offset), End: r.Start + uint64(max(resume, offset+1)), ReturnAddress: uint64(rip)}
	if strings.TrimSuffix(r.Name, ".abi0") == "runtime.cgocallback" {
		ok = !r.Exact && framedRules(rows, &row)
		return row, ok
	}
	m := newExecutor()
	if !r.Exact {
		m.execute(&x86asm.Inst{Op: x86asm.CALL}, &x86code.Effect{})
	}
	if m.untilReturn(r.Code, resume) {
		ok = returnRules(m, &row)
		return row, ok
	}
	for _, m := range executorsAt(r.Code, resume) {
		if savedRules(m, r.Exact, &row) {
			return row, true
		}
	}
	return row, false
}

// isFoundByStack reports whether a row at pc finds the frame by the stack pointer.
func isFoundByStack(rows []cfi.Row, pc uint64) bool {
	return slices.ContainsFunc(rows, func(r cfi.Row) bool {
		return pc >= r.Start && pc < r.End && r.CFA.Kind == cfi.CFARegister && r.CFA.Register == uint64(rsp)
	})
}

// instruction decodes the instruction at an offset.
func instruction(code []byte, offset int) (inst x86asm.Inst, e x86code.Effect, ok bool) {
	if offset < 0 || offset >= len(code) {
		return inst, e, false
	}
	if e, ok = mode.ReadEffect(code[offset:]); !ok {
		return inst, e, false
	}
	inst, err := mode.Decode(code[offset : offset+int(e.Length)])
	return inst, e, err == nil
}

// untilReturn executes code from an offset on up to a return. ok is false where it
// branches, or leaves the code.
func (m *executor) untilReturn(code []byte, offset int) (ok bool) {
	for range maxPath {
		inst, e, ok := instruction(code, offset)
		if !ok {
			return false
		}
		next := offset + int(e.Length)
		switch e.Kind {
		case x86code.Return:
			return true
		case x86code.Branch, x86code.Stop:
			return false
		case x86code.Jump:
			if !e.IsDirect {
				return false
			}
			next = int(int64(offset) + e.Target)
		default:
			m.execute(&inst, &e)
		}
		offset = next
	}
	return false
}

// maxPath is the number of instructions of one path that are executed.
const maxPath = 64

// maxPaths bounds the number of paths through a function that are followed.
const maxPaths = 64

// executorsAt returns the executors of the paths from the beginning of a function to an
// offset.
func executorsAt(code []byte, target int) (found []*executor) {
	type path struct {
		m      *executor
		offset int
	}
	waiting := []path{{newExecutor(), 0}}
	for paths := 1; len(waiting) > 0; {
		w := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		for range maxPath {
			if w.offset == target {
				found = append(found, w.m)
				break
			}
			inst, e, ok := instruction(code, w.offset)
			if !ok || e.Kind == x86code.Return || e.Kind == x86code.Stop || e.Kind == x86code.Jump && !e.IsDirect {
				break
			}
			next := w.offset + int(e.Length)
			switch e.Kind {
			case x86code.Jump:
				next = int(int64(w.offset) + e.Target)
			case x86code.Branch:
				if paths++; paths <= maxPaths {
					waiting = append(waiting, path{w.m.clone(), int(int64(w.offset) + e.Target)})
				}
			default:
				w.m.execute(&inst, &e)
			}
			w.offset = next
		}
	}
	return found
}

// returnRules makes the rules of an executor at a return: the return address is at its
// stack pointer.
func returnRules(m *executor, row *cfi.Row) bool {
	sp := m.gpr[x86code.SP]
	if sp == nil {
		return false
	}
	cfa := sp.plus(8)
	row.CFA = cfi.CFARule{Kind: cfi.CFAExpression, Expr: x86code.Expression(cfa.text())}
	if cfa.op == termPlus && cfa.a.equal(registerTerm(rsp)) {
		// The stack pointer is on the first stack again.
		row.CFA = cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(rsp), Offset: cfa.n}
	}
	fp := cfi.Rule{Kind: cfi.Undefined}
	if t := m.gpr[x86code.BP]; t != nil {
		fp = termRule(t)
	}
	row.Rules = callerRules(fp, cfi.Rule{Kind: cfi.Offset, Offset: -8})
	return true
}

// framedRules makes the rules of a frame that has the largest size of rows, at its calls.
func framedRules(rows []cfi.Row, row *cfi.Row) bool {
	for i := range rows {
		if c := rows[i].CFA; c.Kind == cfi.CFARegister && c.Register == uint64(rsp) && (row.CFA.Kind == cfi.NoCFA || c.Offset > row.CFA.Offset) {
			row.CFA = c
		}
	}
	row.Rules = callerRules(cfi.Rule{Kind: cfi.Undefined}, cfi.Rule{Kind: cfi.Offset, Offset: -8})
	return row.CFA.Kind != cfi.NoCFA
}

// callerRules are rules for rbp, which Go's code restores, for the return address, and
// for the other registers that C preserves and Go does not.
func callerRules(fp, pc cfi.Rule) []cfi.RegisterRule {
	var rules []cfi.RegisterRule
	for _, register := range calleeSaved {
		rule := cfi.Rule{Kind: cfi.Undefined}
		if register == rbp {
			rule = fp
		}
		rules = append(rules, cfi.RegisterRule{Column: uint64(register), Rule: rule})
	}
	return append(rules, cfi.RegisterRule{Column: uint64(rip), Rule: pc})
}

// termRule is the rule of a register whose value is a term.
func termRule(t *term) cfi.Rule {
	if t.op == termLoad {
		return cfi.Rule{Kind: cfi.Expression, Expr: x86code.Expression(t.a.text())}
	}
	return cfi.Rule{Kind: cfi.ValExpression, Expr: x86code.Expression(t.text())}
}

// saving is where a function has stored the registers of its caller: addresses relative
// to the goroutine, which one register had on entry.
type saving struct {
	owner      *term
	pc, sp, fp *term
}

// findSaving finds the saving among the stores of an executor.
func findSaving(m *executor) (c saving, ok bool) {
	entry := registerTerm(rsp)
	for _, x := range m.memory {
		place := &c.fp
		switch {
		case x.v == nil || x.address.hasPart(entry):
			continue
		case x.v.equal(entry.load()):
			place = &c.pc
		case x.v.equal(entry.plus(8)):
			place = &c.sp
		case !x.v.equal(registerTerm(rbp)):
			continue
		}
		*place = x.address
	}
	if c.pc == nil || c.sp == nil || c.pc.op != termPlus || !c.sp.hasPart(c.pc.a) {
		return c, false
	}
	c.owner = c.pc.a
	return c, true
}

// find is the known place of the owner at an executor's instruction, as a term of that
// instruction's registers.
func (c *saving) find(m *executor, exact bool) *term {
	for r, v := range m.gpr {
		if v.equal(c.owner) && v != nil && (exact || mode.IsPreserved(uint8(r))) {
			return registerTerm(mode.Numbers[r])
		}
	}
	for _, x := range m.memory {
		sp := m.gpr[x86code.SP]
		if !x.v.equal(c.owner) || x.v == nil || sp == nil {
			continue
		}
		for k := int64(0); k < 64; k += 8 {
			if x.address.equal(sp.plus(k)) {
				return registerTerm(rsp).plus(k).load()
			}
		}
	}
	return nil
}

// savedRules makes rules from the stores of an executor before it changed the stack.
//
// The goroutine may have moved to another thread since: then nothing called the code on
// this stack. It has not while the pointers that the code followed to this stack, from
// the thread that executes the goroutine, still lead here. A waiting goroutine has no
// thread, and its first pointer is zero.
func savedRules(m *executor, exact bool, row *cfi.Row) bool {
	c, ok := findSaving(m)
	sp := m.gpr[x86code.SP]
	if !ok || sp == nil || !sp.hasPart(c.owner) {
		return false
	}
	owner := c.find(m, exact)
	if owner == nil {
		return false
	}
	first := sp.firstLoad(c.owner).with(c.owner, owner)
	here := sp.with(c.owner, owner)
	now := func(t *term) *term { return t.with(c.owner, owner) }
	if first == nil || here == nil || now(c.pc) == nil || now(c.sp) == nil {
		return false
	}
	leadsHere := x86code.ChooseText(first.text(), here.text()+"; "+x86code.RegisterText(rsp, 0)+"; eq", "lit0")
	row.CFA = cfi.CFARule{Kind: cfi.CFAExpression,
		Expr: x86code.Expression(x86code.ChooseText(leadsHere, now(c.sp).load().text(), x86code.RegisterText(rsp, 8)))}
	orNowhere := func(t *term) cfi.Rule {
		return cfi.Rule{Kind: cfi.Expression, Expr: x86code.Expression(x86code.ChooseText(leadsHere, t.text(), "LLVM_undefined"))}
	}
	fp := cfi.Rule{Kind: cfi.Undefined}
	if t := now(c.fp); t != nil {
		fp = orNowhere(t)
	}
	row.Rules = callerRules(fp, orNowhere(now(c.pc)))
	return true
}

// firstLoad is the load of t at an address relative to a part: the first pointer that t
// follows from it.
func (t *term) firstLoad(part *term) *term {
	switch {
	case t == nil || !t.hasPart(part):
		return nil
	case t.op == termLoad && (t.a.equal(part) || t.a.op == termPlus && t.a.a.equal(part)):
		return t
	}
	if l := t.a.firstLoad(part); l != nil {
		return l
	}
	return t.b.firstLoad(part)
}
