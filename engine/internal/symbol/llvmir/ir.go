// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"fmt"
	"iter"
	"sort"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// Read parses a module as Parse does, for callers that need a symbol.IR.
func Read(path string, data []byte) (symbol.IR, error) {
	m, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Format is "llvmir".
func (m *Module) Format() string { return "llvmir" }

// Records are the module's nodes in the order of the text, with the current names of kinds
// and fields.
func (m *Module) Records() iter.Seq[symbol.Record] {
	return func(yield func(symbol.Record) bool) {
		for n, err := range m.Nodes() {
			if err != nil {
				m.problem(int(n.Ref), "node %s: %v", n.ID, strings.TrimPrefix(err.Error(), m.name+": "))
			}
			r := symbol.Record{ID: n.ID, Kind: n.Kind, Offset: m.line(int(n.Ref))}
			if n.IsDistinct {
				r.Operands = append(r.Operands, symbol.Operand{Name: "distinct", Value: true})
			}
			for i := range n.Fields {
				r.Operands = append(r.Operands, symbol.Operand{Name: n.Fields[i].Name, Value: plain(&n.Fields[i].Value)})
			}
			if !yield(r) {
				return
			}
		}
	}
}

// plain converts a value for symbol.Operand.
func plain(v *Value) any {
	switch v.Kind {
	case NumberValue:
		if n, err := strconv.ParseInt(v.Text, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(v.Text, 10, 64); err == nil {
			return n
		}
	case StringValue:
		return v.Text
	case WordValue:
		switch v.Text {
		case "true":
			return true
		case "false":
			return false
		}
	case NodeValue:
		if v.Node.Kind == "MDTuple" && !v.Node.IsDistinct {
			list := []any{}
			for i := range v.Node.Fields {
				list = append(list, plain(&v.Node.Fields[i].Value))
			}
			return list
		}
	case NullValue, RefValue, IRValue:
	}
	return v.String()
}

// Positions are the positions of all instructions, in the order of the text.
func (m *Module) Positions() iter.Seq[symbol.Position] {
	return func(yield func(symbol.Position) bool) {
		for i := range m.functions {
			f := &m.functions[i]
			for index := range f.instructions {
				if !yield(m.position(f, index)) {
					return
				}
			}
		}
	}
}

// resultPlace is the definition of a result. hasMore is set where other functions have a
// result of the same name.
type resultPlace struct {
	function, index int
	hasMore         bool
}

// findResults are the results of all functions, by name.
func (m *Module) findResults() map[string]resultPlace {
	results := map[string]resultPlace{}
	for i := range m.functions {
		for inst := range m.functions[i].Instructions() {
			if inst.Result == "" {
				continue
			}
			place, ok := results[inst.Result]
			if !ok {
				place = resultPlace{function: i, index: inst.Index}
			}
			place.hasMore = ok
			results[inst.Result] = place
		}
	}
	return results
}

// Find returns a position: FUNCTION+INSTRUCTION, FUNCTION%RESULT, %RESULT where only one
// function has it, FUNCTION for its first instruction, or the line of the text on which an
// instruction begins. See symbol.IR.
func (m *Module) Find(text string, hex bool) (symbol.Position, error) {
	none := symbol.Position{}
	base := 10
	digits := text
	if hex {
		base, digits = 16, strings.TrimPrefix(strings.TrimPrefix(text, "0x"), "0X")
	} else if cut, ok := strings.CutPrefix(text, "0x"); ok {
		base, digits = 16, cut
	}
	line, numberErr := strconv.ParseUint(digits, base, 64)
	if numberErr == nil {
		return m.atLine(line)
	}
	if f, ok := m.functionNamed(text); ok {
		return m.instructionAt(f, 0)
	}
	if name, ok := strings.CutPrefix(text, "%"); ok {
		name = unquote([]byte(name))
		place, ok := m.byResult()[name]
		switch {
		case !ok:
			return none, fmt.Errorf("no instruction has the result %s", text)
		case place.hasMore:
			return none, fmt.Errorf("several functions have a result %s: expected FUNCTION%s", text, text)
		}
		return m.instructionAt(&m.functions[place.function], place.index)
	}
	// A name may contain the separators.
	if i := strings.LastIndexByte(text, '+'); i > 0 {
		if f, ok := m.functionNamed(text[:i]); ok {
			index, err := strconv.ParseUint(text[i+1:], 0, 31)
			if err != nil {
				return none, fmt.Errorf("the number of an instruction is expected behind %s+", text[:i])
			}
			return m.instructionAt(f, int(index))
		}
	}
	for i := strings.IndexByte(text, '%'); i > 0; {
		if f, ok := m.functionNamed(text[:i]); ok {
			name := unquote([]byte(text[i+1:]))
			for inst := range f.Instructions() {
				if inst.Result == name && name != "" {
					return m.instructionAt(f, inst.Index)
				}
			}
			return none, fmt.Errorf("no instruction of %s has the result %%%s", text[:i], name)
		}
		next := strings.IndexByte(text[i+1:], '%')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return none, fmt.Errorf("a function, FUNCTION+INSTRUCTION, FUNCTION%%RESULT or a line is expected")
}

// functionNamed finds a function by its name, with or without the "@", or by its name in
// the source where only one function has that.
func (m *Module) functionNamed(text string) (*Function, bool) {
	if f, ok := m.Function(text); ok {
		return f, true
	}
	if rest, ok := strings.CutPrefix(text, "@"); ok {
		return m.Function(unquote([]byte(rest)))
	}
	if i, ok := m.bySource()[text]; ok && i != severalFunctions {
		return &m.functions[i], true
	}
	return nil, false
}

func (m *Module) instructionAt(f *Function, index int) (symbol.Position, error) {
	if index >= len(f.instructions) {
		return symbol.Position{}, fmt.Errorf("%s has %d instructions", f.Name(), len(f.instructions))
	}
	return m.position(f, index), nil
}

// atLine is the position of the instruction that begins on a line.
func (m *Module) atLine(line uint64) (symbol.Position, error) {
	// The last function that does not begin after the line may have it, or, where several
	// are on one line, the functions before it.
	last := sort.Search(len(m.functions), func(i int) bool { return m.line(int(m.functions[i].start)) > line }) - 1
	for i := last; i >= 0; i-- {
		f := &m.functions[i]
		list := f.instructions
		k := sort.Search(len(list), func(k int) bool { return m.line(int(list[k].start)) >= line })
		if k < len(list) && m.line(int(list[k].start)) == line {
			return m.position(f, k), nil
		}
		if m.line(int(f.start)) < line {
			break
		}
	}
	return symbol.Position{}, fmt.Errorf("no instruction begins on line %d", line)
}

// Sources are the source files that the nodes name.
func (m *Module) Sources() []symbol.SourceFile {
	var list []symbol.SourceFile
	for n, err := range m.Nodes() {
		if err != nil || n.Kind != "DIFile" {
			continue
		}
		s := symbol.SourceFile{ID: n.ID, Path: m.file(Value{Kind: NodeValue, Node: &n}).path}
		if sum := n.Field("checksum"); sum.str() != "" {
			kind := n.Field("checksumkind")
			s.Checksum = strings.TrimPrefix(kind.Text, "CSK_") + ":" + sum.str()
		}
		source := n.Field("source")
		s.Text, s.HasText = source.Text, source.Kind == StringValue
		list = append(list, s)
	}
	return list
}

// Macros are the module's definitions of macros, and their ends.
func (m *Module) Macros() []symbol.Macro {
	files := map[Ref]string{}
	var list []symbol.Macro
	for n, err := range m.Nodes() {
		if err != nil || n.Kind != "DIMacroFile" {
			continue
		}
		nodes := n.Field("nodes")
		tuple, ok := m.valueNode(&nodes)
		if !ok {
			continue
		}
		path := m.file(n.Field("file")).path
		for i := range tuple.Fields {
			files[m.ref(&tuple.Fields[i].Value)] = path
		}
	}
	for n, err := range m.Nodes() {
		if err != nil || n.Kind != "DIMacro" {
			continue
		}
		name, value, line, kind := n.Field("name"), n.Field("value"), n.Field("line"), n.Field("type")
		list = append(list, symbol.Macro{
			ID: n.ID, Name: name.str(), Value: value.str(), File: files[n.Ref], Line: line.line(), IsUndef: kind.Text == "DW_MACINFO_undef",
		})
	}
	return list
}
