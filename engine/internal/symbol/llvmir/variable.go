// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// DebugRecord describes a variable from a place in a function on.
type DebugRecord struct {
	Kind RecordKind
	// Before is the instruction after the record; the number of instructions where there is
	// none.
	Before int
	Offset int      // in the text, bytes
	Values []string // typed, as in the module: "ptr %3", "i32 0"
	// IsKilled is set where the values are unknown, and so is the variable from here on.
	IsKilled  bool
	Variable  Ref  // the DILocalVariable, or the DILabel
	Location  Ref  // its scope and inlined call belong to the variable
	IsAddress bool // see Expression.IsAddress
	Fragment  *Fragment
	Operation []byte // see Expression.Bytes
	// Problem is why there is no Operation; "": there is one.
	Problem string

	inlinedAt Ref
	names     []string // of the values that belong to the function: x of %x
}

// DebugRecords are the records of the function, and the calls of debug
// intrinsics, in its order. An error is about one of them.
func (f *Function) DebugRecords() iter.Seq2[DebugRecord, error] {
	return func(yield func(DebugRecord, error) bool) {
		for i := range f.records {
			if !yield(f.record(&f.records[i])) {
				return
			}
		}
	}
}

func (f *Function) record(rec *record) (DebugRecord, error) {
	m := f.module
	d := DebugRecord{Kind: rec.kind, Before: int(rec.before), Offset: int(rec.start)}
	r := reader{Module: m, lexer: lexer{data: m.source, pos: int(rec.args) + 1}}
	args, err := r.fields(')', 0)
	if err != nil {
		return d, err
	}
	if rec.isCall {
		if rec.dbg != 0 {
			d.Location = m.refAt(rec.dbg)
		}
	} else if n := len(args); n > 0 {
		d.Location = m.ref(&args[n-1].Value)
		args = args[:n-1]
	}
	offset := int64(0)
	if len(args) > 1 && d.Kind == ValueRecord && args[1].Value.Kind == IRValue { // until LLVM 5
		offset, _ = args[1].Value.Int()
		args = slices.Delete(args, 1, 2)
	}
	if len(args) > 1 && d.Kind != LabelRecord {
		d.Variable = m.ref(&args[1].Value)
	}
	l, err := m.location(d.Location)
	if err != nil {
		return d, m.complain(d.Offset, "%v", err)
	}
	d.inlinedAt = l.inlinedAt
	switch d.Kind {
	case UnknownRecord:
		return d, nil
	case DefRecord, KillRecord:
		return d, d.readLifetime(m, args)
	case LabelRecord:
		if len(args) > 0 {
			d.Variable = m.ref(&args[0].Value)
		}
		return d, nil
	case DeclareRecord, AddrRecord:
		d.IsAddress = true
	case ValueRecord, AssignRecord, DeclareValueRecord:
	}
	err = d.readValue(m, args, offset)
	return d, err
}

// readLifetime reads the record of a DILifetime: the lifetime, and the value that its
// expression refers to (AMDGPU LLVM Extensions for Heterogeneous Debugging,
// "llvm.dbg.def").
func (d *DebugRecord) readLifetime(m *Module, args []Field) error {
	d.Variable = 0
	if len(args) == 0 {
		return m.complain(d.Offset, "a lifetime is expected")
	}
	n, ok := m.valueNode(&args[0].Value)
	if !ok || n.Kind != "DILifetime" {
		return m.complain(d.Offset, "a lifetime is expected, found %s", shorten([]byte(args[0].Value.String())))
	}
	v, expr := n.Field("object"), n.Field("location")
	if object, ok := m.valueNode(&v); !ok || object.Kind != "DILocalVariable" {
		m.problem(d.Offset, "the lifetime %s of a %s is not read: a DILocalVariable is expected", n.ID, object.Kind)
		return nil
	}
	d.Variable = m.ref(&v)
	if d.Kind == KillRecord {
		d.IsKilled = true
		return nil
	}
	e, ok := m.valueNode(&expr)
	if len(args) < 2 || !ok || e.Kind != "DIExpr" {
		return m.complain(d.Offset, "an expression and a value are expected of the lifetime %s", n.ID)
	}
	d.values(m, &args[1].Value)
	if objects := n.Field("argObjects"); objects.Kind != NullValue {
		if list, ok := m.valueNode(&objects); !ok || len(list.Fields) > 0 {
			d.Problem = "the lifetime refers to other objects"
			return nil
		}
	}
	// An undefined value is valid for an expression that does not use it.
	if d.IsKilled && !usesReferrer(e.Fields) {
		d.IsKilled = false
	}
	d.translate(m, e.Fields, 0)
	return nil
}

func usesReferrer(fields []Field) bool {
	return slices.ContainsFunc(fields, func(f Field) bool {
		return strings.HasPrefix(f.Value.Text, "DIOpReferrer") || strings.HasPrefix(f.Value.Text, "DIOpArg")
	})
}

// readValue reads the arguments of a record: the value, the variable, and an expression.
func (d *DebugRecord) readValue(m *Module, args []Field, offset int64) error {
	if len(args) < 2 {
		return m.complain(d.Offset, "a value and a variable are expected")
	}
	n, ok := m.valueNode(&args[1].Value)
	if !ok || n.Kind != "DILocalVariable" {
		return m.complain(d.Offset, "a variable is expected, found %s", shorten([]byte(args[1].Value.String())))
	}
	d.values(m, &args[0].Value)
	fields := m.ownExpression(&n)
	if len(args) > 2 {
		if fields, ok = m.expressionOf(&args[2].Value); !ok {
			return m.complain(d.Offset, "an expression is expected, found %s", shorten([]byte(args[2].Value.String())))
		}
	}
	if len(fields) == 0 && d.Kind == ValueRecord && n.isIndirect() {
		fields = []Field{{Value: Value{Kind: WordValue, Text: "DW_OP_deref"}}}
	}
	d.translate(m, fields, offset)
	return nil
}

// translate translates the record's expression. The intrinsics of LLVM until 5 have a
// separate offset.
func (d *DebugRecord) translate(m *Module, fields []Field, offset int64) {
	e, err := translate(fields, max(len(d.Values), 1), d.IsAddress)
	switch {
	case err != nil:
		d.Problem = err.Error()
		if isTyped(fields) {
			m.problem(d.Offset, "%v", err)
		}
	case offset != 0:
		d.Problem = fmt.Sprintf("the value of a part at offset %d", offset)
	default:
		d.Operation, d.Fragment, d.IsAddress = e.Bytes, e.Fragment, e.IsAddress
	}
}

// expressionOf are the operations of an expression. Some modules of LLVM 3.6 have an empty
// tuple instead of an empty expression.
func (m *Module) expressionOf(v *Value) (operations []Field, ok bool) {
	n, ok := m.valueNode(v)
	return n.Fields, ok && (n.Kind == "DIExpression" || n.Kind == "MDTuple" && len(n.Fields) == 0)
}

// values reads the values of a record.
func (d *DebugRecord) values(m *Module, v *Value) {
	list := []Field{{Value: *v}}
	if v.Kind == NodeValue || v.Kind == RefValue {
		list = nil
		if n, ok := m.valueNode(v); ok && (n.Kind == "DIArgList" || n.Kind == "MDTuple") {
			list = n.Fields
		}
	}
	d.IsKilled = len(list) == 0
	for i := range list {
		text := list[i].Value.String()
		_, value := splitTyped(text)
		switch value {
		case "undef", "poison", "":
			d.IsKilled = true
		}
		if name, ok := strings.CutPrefix(value, "%"); ok {
			d.names = append(d.names, unquote([]byte(name)))
		}
		d.Values = append(d.Values, text)
	}
}

// scopePlace is a scope in the function or in one inlined call.
type scopePlace struct{ scope, inlinedAt Ref }

// span is instructions from start up to end.
type span struct{ start, end int32 }

// maxSteps bounds the work for the variables of a module: a few seconds.
const maxSteps = 1 << 27

// scopeSpans are the instructions of each scope of the function. An instruction without a
// location is in the function's own only. It takes steps from left, and complete is false
// where they are too few.
func (f *Function) scopeSpans(left *int) (spans map[scopePlace][]span, complete bool) {
	m := f.module
	spans = map[scopePlace][]span{}
	add := func(p scopePlace, i int32) {
		list := spans[p]
		if n := len(list); n > 0 && list[n-1].end >= i {
			list[n-1].end = i + 1
			return
		}
		spans[p] = append(list, span{i, i + 1})
	}
	own := m.subprogram(f)
	for i := range f.instructions {
		index := int32(i)
		if own != 0 {
			add(scopePlace{own, 0}, index)
		}
		loc := Ref(0)
		if dbg := f.instructions[i].dbg; dbg != 0 {
			loc = m.refAt(dbg)
		}
		for depth := 0; loc != 0 && depth < maxInlined; depth++ {
			l, err := m.locationAt(loc, depth)
			if err != nil {
				break
			}
			scope := l.scope
			for inner := 0; scope != 0 && inner < maxScopes; inner++ {
				if *left--; *left < 0 {
					return spans, false
				}
				s := m.scope(scope)
				if s.err != nil {
					break
				}
				if scope != own || l.inlinedAt != 0 {
					add(scopePlace{scope, l.inlinedAt}, index)
				}
				scope = s.parent
			}
			loc = l.inlinedAt
		}
	}
	return spans, true
}

// intersect are the instructions that are in both lists.
func intersect(a, b []span) []span {
	var out []span
	for len(a) > 0 && len(b) > 0 {
		s := span{max(a[0].start, b[0].start), min(a[0].end, b[0].end)}
		if s.start < s.end {
			out = append(out, s)
		}
		if a[0].end < b[0].end {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// variableKey is a variable in the function or in one inlined call.
type variableKey struct{ variable, inlinedAt Ref }

func (d *DebugRecord) key() variableKey { return variableKey{d.Variable, d.inlinedAt} }

// Variables are the variables that the module describes: global ones, and variables of
// functions with their places while instructions in their scopes run.
func (m *Module) Variables() []symbol.Variable {
	ranges := map[variableKey][]symbol.VariableRange{}
	inlined := map[Ref][]Ref{} // the calls of a variable's ranges
	left := maxSteps
	for i := range m.functions {
		m.functions[i].ranges(&left, func(k variableKey, r symbol.VariableRange) {
			if _, ok := ranges[k]; !ok {
				inlined[k.variable] = append(inlined[k.variable], k.inlinedAt)
			}
			ranges[k] = append(ranges[k], r)
		})
	}
	globals := m.globalRanges()
	defined := m.definedLifetimes()
	var list []symbol.Variable
	for n, err := range m.Nodes() {
		switch {
		case err != nil:
		case n.Kind == "DILifetime" && !defined[n.Ref]:
			m.problem(int(n.Ref), "the lifetime %s, which no llvm.dbg.def begins, is not read", n.ID)
		case n.Kind == "DILocalVariable":
			calls := inlined[n.Ref]
			if len(calls) == 0 {
				calls = []Ref{0}
			}
			slices.Sort(calls)
			for _, call := range calls {
				v := m.local(&n)
				v.Ranges = ranges[variableKey{n.Ref, call}]
				if callNode, ok := m.open(call); ok {
					v.InlinedAt = callNode.ID
				}
				list = append(list, v)
			}
		case n.Kind == "DIGlobalVariable":
			v := m.variable(&n)
			v.IsGlobal = true
			name := n.Field("linkageName")
			v.LinkageName = name.str()
			v.Ranges = globals[n.Ref]
			list = append(list, v)
		}
	}
	return list
}

// definedLifetimes are the lifetimes that records begin.
func (m *Module) definedLifetimes() map[Ref]bool {
	defined := map[Ref]bool{}
	for i := range m.functions {
		for _, rec := range m.functions[i].records {
			if rec.kind != DefRecord {
				continue
			}
			r := reader{Module: m, lexer: lexer{data: m.source, pos: int(rec.args) + 1}}
			if args, err := r.fields(')', 0); err == nil && len(args) > 0 {
				defined[m.ref(&args[0].Value)] = true
			}
		}
	}
	return defined
}

// variable returns the attributes that global and local variables share.
func (m *Module) variable(n *Node) symbol.Variable {
	name, line, scope, typ := n.Field("name"), n.Field("line"), n.Field("scope"), n.Field("type")
	v := symbol.Variable{ID: n.ID, Name: name.str(), Line: line.line(), File: m.file(n.Field("file")).path, Type: m.typeName(typ)}
	if around, ok := m.valueNode(&scope); ok {
		v.Scope = around.ID
	}
	return v
}

func (m *Module) local(n *Node) symbol.Variable {
	v := m.variable(n)
	scope, argument := n.Field("scope"), n.Field("arg")
	v.Argument = argument.line()
	if s := m.scope(m.ref(&scope)); s.err == nil {
		v.Function = m.scope(s.function).frame.Name
	}
	return v
}

// globalRanges are the places of global variables, by their nodes.
func (m *Module) globalRanges() map[Ref][]symbol.VariableRange {
	ranges := map[Ref][]symbol.VariableRange{}
	attached := map[Ref]bool{}
	add := func(variable Ref, fields []Field, values []string) {
		r := symbol.VariableRange{IsAddress: len(values) > 0, Values: values}
		e, err := translate(fields, len(values), r.IsAddress)
		if r.Expression = e.Bytes; err == nil {
			r.IsAddress = e.IsAddress
		}
		if err != nil {
			r.Problem = err.Error()
		}
		ranges[variable] = append(ranges[variable], r)
	}
	expression := func(n *Node) (Ref, []Field) {
		variable, expr := n.Field("var"), n.Field("expr")
		e, _ := m.valueNode(&expr)
		return m.ref(&variable), e.Fields
	}
	for _, g := range m.globals {
		l := lexer{data: m.source}
		name := string(l.text(l.tokenAt(int(g.name))))
		ref := m.refAt(g.dbg)
		n, ok := m.open(ref)
		if !ok {
			m.problem(int(g.dbg), "the node of %s is not defined", name)
			continue
		}
		switch n.Kind {
		case "DIGlobalVariableExpression":
			attached[ref] = true
			variable, fields := expression(&n)
			add(variable, fields, []string{name})
		case "DIGlobalVariable": // LLVM 3.9
			add(ref, nil, []string{name})
		}
	}
	for n, err := range m.Nodes() {
		switch {
		case err != nil:
		case n.Kind == "DIGlobalVariableExpression" && !attached[n.Ref]: // a constant, or one that was optimized away
			if variable, fields := expression(&n); len(fields) > 0 {
				add(variable, fields, nil)
			}
		case n.Kind == "DIGlobalVariable": // until LLVM 3.8
			if v := n.Field("variable"); v.Kind == IRValue {
				_, name := splitTyped(v.Text)
				add(n.Ref, nil, []string{name})
			}
		}
	}
	return ranges
}

// ranges passes the places of the function's variables to tell. It takes steps from left.
func (f *Function) ranges(left *int, tell func(variableKey, symbol.VariableRange)) {
	if len(f.records) == 0 {
		return
	}
	m := f.module
	tooMany := func() {
		m.problem(int(f.start), "the variables of %s and their scopes are too many to follow", f.Name())
	}
	if *left < 0 {
		tooMany()
		return
	}
	groups, unread := f.recordGroups()
	spans, complete := f.scopeSpans(left)
	if !complete {
		tooMany()
		return
	}
	flow := newFlow(f, left)
	for _, group := range groups {
		k := group[0].key()
		for i := range unread {
			if u := &unread[i]; u.Variable == 0 || u.Variable == k.variable {
				group = append(group, u)
			}
		}
		node, ok := m.open(k.variable)
		if !ok {
			continue
		}
		scope := node.Field("scope")
		for _, part := range parts(group) {
			if !flow.find(group, part) {
				tooMany()
				return
			}
		}
		for _, s := range flow.take(spans[scopePlace{m.ref(&scope), k.inlinedAt}]) {
			d := group[s.record]
			tell(k, symbol.VariableRange{
				Function: f.Name(), Start: int(s.start), End: int(s.end),
				IsAddress: d.IsAddress, Values: d.Values, Expression: d.Operation, Problem: d.Problem,
			})
		}
	}
}

// recordGroups are the records of the function that describe variables: the records of one
// variable together, in the function's order. unread ends the known places where a record
// cannot be read: of its variable, or of all if it has none.
func (f *Function) recordGroups() (groups [][]*DebugRecord, unread []DebugRecord) {
	var list []*DebugRecord
	for d, err := range f.DebugRecords() {
		if err != nil {
			f.module.problem(d.Offset, "%s", strings.TrimPrefix(err.Error(), f.module.name+": "))
			unread = append(unread, DebugRecord{Kind: ValueRecord, Before: d.Before, Variable: d.Variable, IsKilled: true})
			continue
		}
		if d.Kind == UnknownRecord {
			line, _, _ := bytes.Cut(f.module.source[d.Offset:], []byte("\n"))
			f.module.problem(d.Offset, "a debug record of a kind that is not known is not read: %s", shorten(line))
		}
		if d.Variable != 0 && d.Kind != LabelRecord && d.Kind != UnknownRecord {
			list = append(list, &d)
		}
	}
	slices.SortStableFunc(list, func(a, b *DebugRecord) int {
		return cmp.Or(cmp.Compare(a.Variable, b.Variable), cmp.Compare(a.inlinedAt, b.inlinedAt))
	})
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].key() == list[0].key() {
			n++
		}
		groups = append(groups, list[:n:n])
		list = list[n:]
	}
	return groups, unread
}

// parts are the fragments that a variable's records describe. Records that only end others
// do not count.
func parts(group []*DebugRecord) []*Fragment {
	var list []*Fragment
	for _, d := range group {
		if d.IsKilled {
			continue
		}
		same := func(g *Fragment) bool {
			return g == d.Fragment || g != nil && d.Fragment != nil && *g == *d.Fragment
		}
		if !slices.ContainsFunc(list, same) {
			list = append(list, d.Fragment)
		}
	}
	return list
}
