// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"slices"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// instance is a variable in the function or in one inlined call.
type instance struct{ variable, inlined uint32 }

// change is a DebugDeclare or DebugValue in a function.
type change struct {
	instance
	index     int // of the instruction
	block     int
	record    *Record
	isDeclare bool
	value     uint32
	indexes   []uint32
	part      fragmentRange
	out       symbol.VariableRange
	// isGone is set where the variable has no value from here on.
	isGone bool
}

// Variables are the global and local variables, with their places while instructions run. A
// declaration is valid from its instruction to the end of the function. A value is valid
// until the variable changes, along every path of control.
func (m *Module) Variables() []symbol.Variable {
	ranges := map[instance][]symbol.VariableRange{}
	t := &translator{Module: m, known: map[applied]translation{}}
	for i := range m.functions {
		t.functionVariables(&m.functions[i], ranges)
	}
	instances := map[uint32][]uint32{} // of a variable: its inlined calls
	for key := range ranges {
		instances[key.variable] = append(instances[key.variable], key.inlined)
	}
	var list []symbol.Variable
	for i := range m.records {
		r := &m.records[i]
		switch r.Op {
		case DebugGlobalVariable:
			list = append(list, m.globalVariable(i))
		case DebugLocalVariable:
			inlined := instances[r.ID]
			if len(inlined) == 0 {
				list = append(list, m.variable(i))
			}
			slices.Sort(inlined)
			for _, call := range inlined {
				v := m.variable(i)
				if call != 0 {
					v.InlinedAt = idText(call)
				}
				v.Ranges = ranges[instance{r.ID, call}]
				list = append(list, v)
			}
		}
	}
	return list
}

// variable is the variable of a record.
func (m *Module) variable(i int) symbol.Variable {
	r := &m.records[i]
	v := symbol.Variable{
		ID: idText(r.ID), Name: m.stringOf(r, "Name"), LinkageName: m.stringOf(r, "LinkageName"),
		Line: m.line(r, "Line"), Column: m.line(r, "Column"), Argument: m.line(r, "ArgNumber"),
	}
	if t, ok := r.id("Type"); ok {
		if v.Type = m.TypeName(t); v.Type == unknownType {
			v.Type = ""
		}
	}
	v.File, _ = m.file(m.infos[i].source)
	if m.target(r, "Parent") != nil {
		id, _ := r.id("Parent")
		v.Scope = idText(id)
	}
	if f := m.infos[i].function; f >= 0 {
		v.Function = m.stringOf(&m.records[f], "Name")
	}
	return v
}

// globalVariable is a variable of the whole program, with its address or, where it is a
// constant, its value.
func (m *Module) globalVariable(i int) symbol.Variable {
	v := m.variable(i)
	v.IsGlobal = true
	id, ok := m.records[i].id("Variable")
	if _, defined := m.defs[id]; !ok || !defined {
		return v
	}
	if _, isRecord := m.byID[id]; isRecord {
		switch r := m.find(id); {
		case r == nil: // it was optimized out
		case r.Op == DebugExpression: // its value, without any input
			out := symbol.VariableRange{}
			var err error
			if out.Expression, out.IsAddress, err = m.Expression(r, false); err != nil {
				out.Problem = err.Error()
			}
			v.Ranges = []symbol.VariableRange{out}
		}
		return v
	}
	v.Ranges = []symbol.VariableRange{{IsAddress: m.opcode(id) == opVariable, Values: []string{idText(id)}}}
	return v
}

// variableChange reads a DebugDeclare or DebugValue.
func (m *translator) variableChange(r *Record, inlined uint32) (c change, ok bool) {
	id, ok := r.id("LocalVariable")
	v := m.find(id)
	if !ok || v == nil {
		return c, false
	}
	if v.Op == DebugInlinedVariable {
		inlined, _ = v.id("Inlined")
		id, _ = v.id("Variable")
		if v = m.find(id); v == nil {
			return c, false
		}
	}
	if v.Op != DebugLocalVariable {
		return c, false
	}
	if m.find(inlined) == nil {
		inlined = 0
	}
	c = change{instance: instance{id, inlined}, record: r, isDeclare: r.Op == DebugDeclare, indexes: r.rest("Indexes")}
	if c.isDeclare {
		c.value, _ = r.id("Variable")
	} else {
		c.value, _ = r.id("Value")
	}
	_, isRecord := m.byID[c.value]
	_, defined := m.defs[c.value]
	c.isGone = isRecord || !defined || m.opcode(c.value) == opUndef
	c.out.Values = []string{idText(c.value)}
	for _, w := range c.indexes {
		text := idText(w)
		if r.Set.HasConstants || m.opcode(w) == opConstant {
			if v, _, ok := m.constant(w); ok {
				text = constantText(v)
			}
		}
		c.out.Members = append(c.out.Members, text)
	}
	id, _ = r.id("Expression")
	e := m.translate(id, c.isDeclare)
	c.out.Expression, c.out.IsAddress, c.part, c.out.Problem = e.bytes, e.isInMemory, e.part, e.problem
	return c, true
}

// translator translates each expression once.
type translator struct {
	*Module
	known map[applied]translation
}

// applied is an expression that is applied to an address, or to a value.
type applied struct {
	id        uint32
	isAddress bool
}

// translation is an expression, or why there is none.
type translation struct {
	expression
	problem string
}

func (m *translator) translate(id uint32, address bool) translation {
	key := applied{id, address}
	if t, ok := m.known[key]; ok {
		return t
	}
	t := translation{problem: "its expression is not there"}
	if e := m.find(id); e != nil {
		var err error
		t.problem = ""
		if t.expression, err = m.expression(e, address); err != nil {
			t.problem = err.Error()
		}
	}
	m.known[key] = t
	return t
}

// overlaps reports whether two changes describe overlapping parts of a variable.
func (c *change) overlaps(d *change) bool {
	n := min(len(c.indexes), len(d.indexes))
	if !slices.Equal(c.indexes[:n], d.indexes[:n]) {
		return false
	}
	if !c.part.isPart || !d.part.isPart {
		return true
	}
	return c.part.offset < d.part.offset+d.part.size && d.part.offset < c.part.offset+c.part.size
}

// block is a basic block of a function, with its predecessors.
type block struct {
	start, end int // instructions
	before     []int
}

// functionVariables adds the ranges of a function's variables.
func (m *translator) functionVariables(f *function, ranges map[instance][]symbol.VariableRange) {
	blocks, changes := m.blocks(f)
	byInstance := map[instance][]int{}
	var order []instance
	for i := range changes {
		key := changes[i].instance
		if byInstance[key] == nil {
			order = append(order, key)
		}
		byInstance[key] = append(byInstance[key], i)
	}
	budget := maxFlow
	for _, key := range order {
		add := func(c *change, start, end int) {
			if c.isGone {
				return
			}
			r := c.out
			r.Function, r.Start, r.End = f.name, start, end
			ranges[key] = append(ranges[key], r)
		}
		var values []int
		for _, i := range byInstance[key] {
			if c := &changes[i]; c.isDeclare {
				add(c, c.index, f.count)
			} else {
				values = append(values, i)
			}
		}
		if len(values) > 0 {
			for _, s := range newFlow(blocks, changes, values, &budget).spans() {
				add(&changes[s.v], s.start, s.end)
			}
		}
		if _, ok := ranges[key]; !ok {
			ranges[key] = nil
		}
	}
}

// blocks finds the blocks of a function, and the changes of variables in them.
func (m *translator) blocks(f *function) (blocks []block, changes []change) {
	byLabel := map[uint32]int{}
	var targets [][]uint32
	current := -1
	m.walk(f, func(s step) bool {
		_, end := m.instruction(s.word)
		w := m.words[s.word:end]
		if s.op == opLabel && len(w) > 1 {
			current = len(blocks)
			blocks, targets = append(blocks, block{start: s.index}), append(targets, nil)
			byLabel[w[1]] = current
		}
		if current < 0 {
			return true
		}
		blocks[current].end = s.index + 1
		if r := m.recordAt(s.word); r != nil && (r.Op == DebugDeclare || r.Op == DebugValue) {
			if c, ok := m.variableChange(r, s.place.inlined); ok {
				c.index, c.block = s.index, current
				changes = append(changes, c)
			}
		}
		if terminators[s.op] {
			targets[current] = m.targets(s.op, w)
			current = -1
		}
		return true
	})
	for i, list := range targets {
		for _, label := range list {
			if target, ok := byLabel[label]; ok {
				blocks[target].before = append(blocks[target].before, i)
			}
		}
	}
	return blocks, changes
}

// targets are the labels that a terminator may go to.
func (m *Module) targets(op uint16, w []uint32) []uint32 {
	switch {
	case op == opBranch && len(w) > 1:
		return w[1:2]
	case op == opBranchConditional && len(w) > 3:
		return w[2:4]
	case op == opSwitch && len(w) > 2:
		// A literal is as wide as the selector's type.
		size := 1
		if selector, ok := m.defs[w[1]]; ok {
			if t, ok := m.defs[m.words[min(int(selector)+1, len(m.words)-1)]]; ok && uint16(m.words[t]) == opTypeInt && m.words[t]>>16 >= 3 && m.words[t+2] > 32 {
				size = 2
			}
		}
		list := []uint32{w[2]}
		for i := 3 + size; i < len(w); i += size + 1 {
			list = append(list, w[i])
		}
		return list
	}
	return nil
}
