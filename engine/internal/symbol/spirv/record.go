// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"cmp"
	"iter"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// Record is an instruction of a set of debug information.
type Record struct {
	ID     uint32
	Op     Op
	Offset uint32 // the word at which it begins
	Set    *Set
	// Layout describes the operands; nil: the set has no such instruction.
	Layout *Layout
	// Operands are the words in the module.
	Operands []uint32
}

// record adds a record. Its layout is chosen when all are there.
func (m *Module) record(set *Set, word, end uint32) {
	w := m.words[word:end]
	r := Record{ID: w[2], Op: Op(w[4]), Offset: word, Set: set, Operands: w[5:len(w):len(w)], Layout: set.layouts[Op(w[4])]}
	if m.defs[r.ID] == word {
		m.byID[r.ID] = len(m.records)
	}
	m.records = append(m.records, r)
}

// checkRecords chooses layouts, and reports records that do not fit. Additions of an
// unknown version are reported once for each instruction.
func (m *Module) checkRecords() {
	type addition struct {
		set *Set
		op  Op
	}
	said := map[addition]bool{}
	for i := range m.records {
		r := &m.records[i]
		more := addition{r.Set, r.Op}
		isSaid := r.Set.ReadAs != "" && said[more]
		if r.Layout == nil {
			if !isSaid {
				m.problem(r.Offset, "instruction %d of %s, which has none of that number", r.Op, cmp.Or(r.Set.ReadAs, r.Set.Name))
			}
			said[more] = true
			continue
		}
		m.choose(r)
		least, most := r.Layout.required(), r.Layout.most()
		switch n := len(r.Operands); {
		case n < least:
			m.problem(r.Offset, "%s with %d operands, expected %d or more", r.Layout.Name, n, least)
		case most >= 0 && n > most:
			if !isSaid {
				m.problem(r.Offset, "%s with %d operands, expected at most %d", r.Layout.Name, n, most)
			}
			said[more] = true
		}
		m.checkResult(r)
		m.checkReferences(r)
	}
	m.describeFunctions()
}

// choose sets the layout that fits a record: the set's own, or another that producers
// write. Where no layout fits, operands beyond a layout's are allowed.
func (m *Module) choose(r *Record) {
	for _, more := range []bool{false, true} {
		if m.fits(r, r.Layout, more) {
			return
		}
		for _, other := range r.Set.others[r.Op] {
			if m.fits(r, other, more) {
				r.Layout = other
				r.Op = r.Set.opOf(other)
				return
			}
		}
	}
}

// describeFunctions finds the DebugFunction of every function.
func (m *Module) describeFunctions() {
	for i := range m.records {
		switch r := &m.records[i]; r.Op {
		case DebugFunction:
			if f, ok := r.id("Function"); ok && m.opcode(f) == opFunction {
				m.describe(f, i)
			}
		case DebugFunctionDefinition:
			function, _ := r.id("Function")
			definition, _ := r.id("Definition")
			if d, ok := m.byID[function]; ok && m.records[d].Op == DebugFunction {
				m.describe(definition, d)
			}
		}
	}
}

// opOf is the number of the instruction of a layout of translatorRows or grammarRows.
func (s *Set) opOf(l *Layout) Op {
	for op, own := range s.layouts {
		if own.Name == l.Name {
			return op
		}
	}
	return l.Op
}

func (m *Module) describe(function uint32, record int) {
	if _, ok := m.described[function]; !ok {
		m.described[function] = record
	}
}

// opcode is the opcode of the instruction of a result; 0: there is none.
func (m *Module) opcode(id uint32) uint16 {
	if word, ok := m.defs[id]; ok {
		return uint16(m.words[word])
	}
	return 0
}

// fits reports whether a record may have a layout. It compares the number of operands,
// where more allows further ones, and the kinds of their targets, as far as these can be
// told apart.
func (m *Module) fits(r *Record, l *Layout, more bool) bool {
	if most := l.most(); len(r.Operands) < l.required() || !more && most >= 0 && len(r.Operands) > most {
		return false
	}
	for i, p := range l.Parameters {
		if i >= len(r.Operands) || p.IsRepeated {
			break
		}
		if !m.canBe(r, p, r.Operands[i]) {
			return false
		}
	}
	return true
}

// canBe reports whether an operand may be a parameter's.
func (m *Module) canBe(r *Record, p Parameter, word uint32) bool {
	if p.Kind != Ref && !r.Set.HasConstants {
		return true // any literal is possible
	}
	op, isRecord := m.recordOp(word)
	if isRecord && op == DebugInfoNone {
		return true
	}
	_, isString := m.strings[word]
	switch {
	case p.Kind == ArgumentNumber:
	case p.Kind != Ref:
		return !isRecord && !isString
	case p.Name == "Name", p.Name == "TemplateName":
		return isString
	case p.Name == "Source":
		return isRecord && op == DebugSource || isString && r.Set.layouts[DebugSource] == nil
	case p.Name == "Expression":
		return isRecord && op == DebugExpression
	case p.Name == "Parent", p.Name == "Scope":
		return isRecord
	}
	return true
}

// recordOp is the instruction of the record of an ID.
func (m *Module) recordOp(id uint32) (Op, bool) {
	if i, ok := m.byID[id]; ok {
		return m.records[i].Op, true
	}
	return 0, false
}

// checkReferences reports operands without a target.
func (m *Module) checkReferences(r *Record) {
	for i, word := range r.Operands {
		p, ok := r.parameter(i)
		if !ok || p.Kind != Ref && p.Kind != EnumeratorPairs && !r.Set.HasConstants || m.isLiteral(r, p, word) {
			continue
		}
		if !m.isValid(word) {
			m.problem(r.Offset, "%s: %s is %%%d, expected an ID from 1 to the bound of %d", r.Layout.Name, p.Name, word, m.bound)
		} else if _, ok := m.defs[word]; !ok {
			m.problem(r.Offset, "%s: %s is %%%d, which is not defined", r.Layout.Name, p.Name, word)
		} else {
			m.checkDemand(r, p, word)
		}
	}
}

// parameter is the parameter of the operand at an index; ok is false where the layout has
// none there.
func (r *Record) parameter(i int) (p Parameter, ok bool) {
	if r.Layout == nil {
		return p, false
	}
	ps := r.Layout.Parameters
	switch {
	case i < len(ps):
		return ps[i], true
	case len(ps) > 0 && ps[len(ps)-1].IsRepeated:
		return ps[len(ps)-1], true
	}
	return p, false
}

// name is the instruction's name, or its set and number where it has none.
func (r *Record) name() string {
	if r.Layout == nil {
		return r.Set.Name + " " + strconv.FormatUint(uint64(r.Op), 10)
	}
	return r.Layout.Name
}

// word is the operand of a name; ok is false where the record has none.
func (r *Record) word(name string) (w uint32, ok bool) {
	if r.Layout == nil {
		return 0, false
	}
	if i := r.Layout.find(name); i >= 0 && i < len(r.Operands) {
		return r.Operands[i], true
	}
	return 0, false
}

// id is word of an operand that is an ID.
func (r *Record) id(name string) (uint32, bool) { return r.word(name) }

// rest is the repeated operand of a name.
func (r *Record) rest(name string) []uint32 {
	if r.Layout == nil {
		return nil
	}
	if i := r.Layout.find(name); i >= 0 && i < len(r.Operands) {
		return r.Operands[i:]
	}
	return nil
}

// number is the operand of a name that is a number, an enumeration or flags: a literal, or
// the constant that the operand refers to.
func (m *Module) number(r *Record, name string) (uint64, bool) {
	w, ok := r.word(name)
	if !ok {
		return 0, false
	}
	if i := r.Layout.find(name); m.isLiteral(r, r.Layout.Parameters[i], w) {
		return uint64(w), true
	}
	return m.numberOf(r.Set, w)
}

// isLiteral reports whether an operand is a literal though the set has constants: the
// LLVM/SPIR-V translator writes the numbers of arguments so.
func (m *Module) isLiteral(r *Record, p Parameter, w uint32) bool {
	if !r.Set.HasConstants || p.Kind != ArgumentNumber {
		return false
	}
	_, _, isConstant := m.constant(w)
	_, isRecord := m.byID[w]
	return !isConstant && !isRecord
}

func (m *Module) numberOf(set *Set, w uint32) (uint64, bool) {
	if !set.HasConstants {
		return uint64(w), true
	}
	v, _, ok := m.constant(w)
	return v, ok
}

// line is a number of lines or columns; 0: unknown.
func (m *Module) line(r *Record, name string) int {
	v, ok := m.number(r, name)
	if !ok || v > 1<<31-1 {
		return 0
	}
	return int(v)
}

// stringOf is the string that an operand refers to; "" where it refers to none.
func (m *Module) stringOf(r *Record, name string) string {
	w, _ := r.id(name)
	return m.strings[w]
}

// target is the record that an operand refers to; nil where there is none, or
// where it is DebugInfoNone.
func (m *Module) target(r *Record, name string) *Record {
	w, _ := r.id(name)
	return m.find(w)
}

// find is the record of an ID; nil where there is none, or where it is
// DebugInfoNone.
func (m *Module) find(id uint32) *Record {
	if i, ok := m.byID[id]; ok && m.records[i].Op != DebugInfoNone {
		return &m.records[i]
	}
	return nil
}

// DebugRecords are the records in the order of the module.
func (m *Module) DebugRecords() []Record { return m.records }

// Records are the records with their operands by name.
func (m *Module) Records() iter.Seq[symbol.Record] {
	return func(yield func(symbol.Record) bool) {
		for i := range m.records {
			if !yield(m.plain(&m.records[i])) {
				return
			}
		}
	}
}

// plain converts a record to a symbol.Record. A repeated operand comes as often as it is
// there.
func (m *Module) plain(r *Record) symbol.Record {
	out := symbol.Record{ID: idText(r.ID), Offset: uint64(r.Offset)}
	out.Kind = r.name()
	if r.Layout == nil {
		for _, w := range r.Operands {
			out.Operands = append(out.Operands, symbol.Operand{Name: "Word", Value: uint64(w)})
		}
		return out
	}
	for i, w := range r.Operands {
		p, ok := r.parameter(i)
		if !ok {
			p = Parameter{Name: "Unexpected", Kind: Number}
		}
		value, text, hasText := m.operand(r, p, w)
		name := p.Name
		if p.Kind == EnumeratorPairs {
			name = []string{"Value", "Name"}[(i-r.Layout.find(p.Name))%2]
		}
		out.Operands = append(out.Operands, symbol.Operand{Name: name, Value: value, Text: text, HasText: hasText})
	}
	return out
}

// operand is the value of an operand, and the text of its target.
func (m *Module) operand(r *Record, p Parameter, w uint32) (value any, text string, hasText bool) {
	kind := p.Kind
	if kind == operationOperands || kind == ArgumentNumber {
		kind = Number
	}
	if kind == Ref || kind == EnumeratorPairs || r.Set.HasConstants && !m.isLiteral(r, p, w) {
		if s, ok := m.strings[w]; ok {
			return idText(w), s, true
		}
		v, signed, ok := m.constant(w)
		switch {
		case !ok:
			return idText(w), "", false
		case kind != Ref && kind != EnumeratorPairs && kind != Number:
			text, _ = r.Set.enumText(kind, v)
		case signed:
			text = strconv.FormatInt(int64(v), 10)
		default:
			text = strconv.FormatUint(v, 10)
		}
		return idText(w), text, true
	}
	if kind == Number {
		return uint64(w), "", false
	}
	if name, ok := r.Set.enumText(kind, uint64(w)); ok {
		return name, "", false
	}
	return uint64(w), "", false
}
