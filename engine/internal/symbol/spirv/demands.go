// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"slices"
	"strings"
)

// This file has the document's requirements on operands (DebugInfo, chapter 4).

// demand is the required target of an operand: a record of one of some kinds, or an
// instruction of the core specification.
type demand struct {
	records []Op
	core    []uint16
}

// scopes are the records that a type or a variable can be in. A module is one in the sets
// that came after DebugInfo.
var scopes = []Op{DebugCompilationUnit, DebugFunction, DebugLexicalBlock, DebugTypeComposite, DebugModuleINTEL, DebugModule}

// demands are the document's, by instruction and operand. Later sets allow more members of
// a class: declarations of functions and templates.
var demands = map[Op]map[string]demand{
	DebugTypeEnum: {"Parent": {records: scopes}}, // 4.3, as for a composite
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

// checkDemand reports an operand with a wrong target.
func (m *Module) checkDemand(r *Record, p Parameter, word uint32) {
	d, ok := demands[r.Op][p.Name]
	if !ok {
		return
	}
	op, isRecord := m.recordOp(word)
	if isRecord && op == DebugInfoNone { // for unknown data (4.1)
		return
	}
	if isRecord && slices.Contains(d.records, op) || !isRecord && slices.Contains(d.core, m.opcode(word)) {
		return
	}
	found := "no record of debug information"
	if isRecord {
		found = m.records[m.byID[word]].name()
	}
	m.problem(r.Offset, "%s: %s is %%%d, %s, expected %s", r.Layout.Name, p.Name, word, found, m.demanded(r.Set, d))
}

// demanded describes the targets that a demand allows in a set.
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

// checkResult reports a result of another type than OpTypeVoid, which every instruction of
// debug information must have.
func (m *Module) checkResult(r *Record) {
	if typ := m.words[r.Offset+1]; m.opcode(typ) != opTypeVoid {
		m.problem(r.Offset, "%s: the result type is %%%d, expected OpTypeVoid", r.Layout.Name, typ)
	}
}
