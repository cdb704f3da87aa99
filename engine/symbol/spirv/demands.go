// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"slices"
	"strings"
)

// This file has what the document says that operands must be (DebugInfo, chapter 4).

// A demand is what an operand of an instruction must refer to: a record of one of some
// kinds, or an instruction of the core specification.
type demand struct {
	records []Op
	core    []uint16
}

// scopes are the records that a type or a variable can be in. A module is one of the sets
// that came after DebugInfo.
var scopes = []Op{DebugCompilationUnit, DebugFunction, DebugLexicalBlock, DebugTypeComposite, DebugModuleINTEL, DebugModule}

// demands are those of the document, by instruction and operand. What members a class can
// have grew: declarations of functions and templates are members in the later sets.
var demands = map[Op]map[string]demand{
	DebugTypeEnum: {"Parent": {records: scopes}}, // 4.3, as of a composite
	DebugTypeComposite: {
		"Parent":  {records: scopes},
		"Members": {records: []Op{DebugTypeMember, DebugFunction, DebugTypeInheritance, DebugFunctionDeclaration, DebugTypeTemplate, DebugTypeSubrange}},
	},
	DebugGlobalVariable: {"Parent": {records: scopes}},
	DebugDeclare: {
		"LocalVariable": {records: []Op{DebugLocalVariable, DebugInlinedVariable}},
		"Variable":      {core: []uint16{opVariable, opFunctionParameter, opUndef}},
		"Expression":    {records: []Op{DebugExpression}},
	},
	DebugValue: {
		"LocalVariable": {records: []Op{DebugLocalVariable, DebugInlinedVariable}},
		"Expression":    {records: []Op{DebugExpression}},
	},
	DebugExpression: {"Operations": {records: []Op{DebugOperation}}},
}

// checkDemand says what is wrong with an operand that refers to something.
func (m *Module) checkDemand(r *Record, p Parameter, word uint32) {
	d, ok := demands[r.Op][p.Name]
	if !ok {
		return
	}
	op, isRecord := m.recordOp(word)
	if isRecord && op == DebugInfoNone { // of what is not known any more (4.1)
		return
	}
	if isRecord && slices.Contains(d.records, op) || !isRecord && slices.Contains(d.core, m.opcode(word)) {
		return
	}
	what := "no record of debug information"
	if isRecord {
		what = m.records[m.byID[word]].name()
	}
	m.problem(r.Offset, "%s: %s is %%%d, %s, expected %s", r.Layout.Name, p.Name, word, what, m.demanded(r.Set, d))
}

// demanded is what a demand allows, as far as a set has it.
func (m *Module) demanded(set *Set, d demand) string {
	var names []string
	for _, op := range d.records {
		if l := set.layouts[op]; l != nil {
			names = append(names, l.Name)
		}
	}
	if len(d.core) > 0 {
		names = append(names, "OpVariable")
	}
	return strings.Join(names, ", ")
}

// checkResult says that the result of a record is of another type than OpTypeVoid, which
// every instruction of debug information must have.
func (m *Module) checkResult(r *Record) {
	if typ := m.words[r.Offset+1]; m.opcode(typ) != opTypeVoid {
		m.problem(r.Offset, "%s: the result type is %%%d, expected OpTypeVoid", r.Layout.Name, typ)
	}
}
