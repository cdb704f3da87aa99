// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/listing"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// IR is the output of `dump spirv` and `dump llvmir`: the debug information of a module in an
// intermediate representation.
type IR struct {
	File  string
	IR    symbol.IR
	Color bool
}

// OpenIR opens a module in an intermediate representation, SPIR-V or LLVM IR: a file, or
// FILE#NAME, the part of a file with that name. Its output is written inside object.Guard.
// The caller closes the file.
func OpenIR(path string) (*IR, io.Closer, error) {
	f, err := listing.OpenIR(path)
	if err != nil {
		return nil, nil, err
	}
	return &IR{File: path, IR: f.IR}, f, nil
}

// jsonRecord is a record of debug information.
type jsonRecord struct {
	ID       string        `json:"id,omitempty"`
	Kind     string        `json:"kind"`
	Offset   uint64        `json:"offset"`
	Operands []jsonOperand `json:"operands"`
}

type jsonOperand struct {
	Name  string  `json:"name"`
	Value any     `json:"value"`
	Text  *string `json:"text,omitempty"`
}

// jsonPosition is the source position of an instruction.
type jsonPosition struct {
	Function    string `json:"function"`
	Instruction int    `json:"instruction"`
	Offset      uint64 `json:"offset"`
	jsonPlace
	InlinedAt []jsonPlace `json:"inlined_at"`
}

// jsonPlace is a place in the source. Scope is the function there, ScopeID the
// record of the innermost scope.
type jsonPlace struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Scope   string `json:"scope,omitempty"`
	ScopeID string `json:"scope_id,omitempty"`
}

type jsonIRVariable struct {
	ID          string           `json:"id,omitempty"`
	Name        string           `json:"name,omitempty"`
	LinkageName string           `json:"linkage_name,omitempty"`
	Type        string           `json:"type,omitempty"`
	Global      bool             `json:"global,omitempty"`
	Argument    int              `json:"argument,omitempty"`
	Function    string           `json:"function,omitempty"`
	Scope       string           `json:"scope_id,omitempty"`
	File        string           `json:"file,omitempty"`
	Line        int              `json:"line,omitempty"`
	Column      int              `json:"column,omitempty"`
	InlinedAt   string           `json:"inlined_at_id,omitempty"`
	Ranges      []jsonValueRange `json:"ranges"`
}

// jsonValueRange has Start and End only where it has a Function.
type jsonValueRange struct {
	Function   string   `json:"function,omitempty"`
	Start      *int     `json:"start,omitempty"`
	End        *int     `json:"end,omitempty"`
	Kind       string   `json:"kind"` // "address", "value"
	Values     []string `json:"values"`
	Members    []string `json:"members,omitempty"`
	Expression *string  `json:"expression,omitempty"` // hex, canonical
	Text       *string  `json:"text,omitempty"`       // of the expression
	Problem    string   `json:"problem,omitempty"`
}

type jsonMacro struct {
	ID      string `json:"id,omitempty"`
	Name    string `json:"name"`
	Value   string `json:"value,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	IsUndef bool   `json:"undef,omitempty"`
}

func jsonMacroOf(m *symbol.Macro) jsonMacro { return jsonMacro(*m) }

type jsonSourceFile struct {
	ID       string  `json:"id,omitempty"`
	File     string  `json:"file"`
	Checksum string  `json:"checksum,omitempty"`
	Text     *string `json:"text,omitempty"`
}

func jsonSourceFileOf(s *symbol.SourceFile) jsonSourceFile {
	j := jsonSourceFile{ID: s.ID, File: s.Path, Checksum: s.Checksum}
	if s.HasText {
		j.Text = &s.Text
	}
	return j
}

func jsonRecordOf(r *symbol.Record) jsonRecord {
	out := jsonRecord{ID: r.ID, Kind: r.Kind, Offset: r.Offset, Operands: []jsonOperand{}}
	for i := range r.Operands {
		o := &r.Operands[i]
		operand := jsonOperand{Name: o.Name, Value: o.Value}
		if o.HasText {
			operand.Text = &o.Text
		}
		out.Operands = append(out.Operands, operand)
	}
	return out
}

// jsonPositionOf is a position. The physical function is left out of the functions inlined
// into it where only its name is known.
func jsonPositionOf(p *symbol.Position) jsonPosition {
	out := jsonPosition{Function: p.Function, Instruction: p.Instruction, Offset: p.Offset, InlinedAt: []jsonPlace{}}
	for i := range p.Frames {
		f := &p.Frames[i]
		place := jsonPlace{File: f.File, Line: f.Line, Column: f.Column}
		if i < len(p.Scopes) && p.Scopes[i] != "" {
			place.Scope, place.ScopeID = scopeName(f), p.Scopes[i]
		}
		if i == 0 {
			out.jsonPlace = place
		} else {
			out.InlinedAt = append(out.InlinedAt, place)
		}
	}
	return out
}

// scopeName is the name of a function in its source.
func scopeName(f *trace.Symbol) string { return cmp.Or(f.Name, f.Function) }

func jsonVariableOf(v *symbol.Variable) jsonIRVariable {
	out := jsonIRVariable{
		ID: v.ID, Name: v.Name, LinkageName: v.LinkageName, Type: v.Type, Global: v.IsGlobal, Argument: v.Argument,
		Function: v.Function, Scope: v.Scope, File: v.File, Line: v.Line, Column: v.Column, InlinedAt: v.InlinedAt,
		Ranges: []jsonValueRange{},
	}
	for i := range v.Ranges {
		r := &v.Ranges[i]
		j := jsonValueRange{Function: r.Function, Kind: rangeKind(r), Values: append([]string{}, r.Values...), Members: r.Members, Problem: r.Problem}
		if r.Function != "" {
			j.Start, j.End = &r.Start, &r.End
		}
		if r.Problem == "" {
			bytes, text := hex.EncodeToString(r.Expression), expressionOf(r)
			j.Expression, j.Text = &bytes, &text
		}
		out.Ranges = append(out.Ranges, j)
	}
	return out
}

func rangeKind(r *symbol.VariableRange) string {
	if r.IsAddress {
		return "address"
	}
	return "value"
}

// expressionOf is the text of a range's expression.
func expressionOf(r *symbol.VariableRange) string {
	return locexpr.FormatText(r.Expression, locexpr.TextOptions{Dialect: locexpr.Canonical})
}

// WriteJSON writes everything as one JSON value.
func (d *IR) WriteJSON(w io.Writer) error {
	o := newOutput(w)
	o.put(`{"file":`, quoted(d.File), `,"format":`, quoted(d.IR.Format()))
	for _, member := range []func() error{
		func() error { return writeMember(o, "records", d.IR.Records(), jsonRecordOf) },
		func() error { return writeMember(o, "positions", d.IR.Positions(), jsonPositionOf) },
		func() error { return writeMember(o, "variables", slices.Values(d.IR.Variables()), jsonVariableOf) },
		func() error { return writeMember(o, "macros", slices.Values(d.IR.Macros()), jsonMacroOf) },
		func() error { return writeMember(o, "sources", slices.Values(d.IR.Sources()), jsonSourceFileOf) },
		func() error {
			return writeMember(o, "problems", slices.Values(d.IR.Problems()), func(p *string) string { return *p })
		},
	} {
		if err := member(); err != nil {
			return err
		}
	}
	o.put("}\n")
	return o.Flush()
}

// writeMember writes a member of an object that is a list, an element a line.
func writeMember[T, J any](o output, name string, list iter.Seq[T], convert func(*T) J) error {
	o.put(`,"`, name, `":[`)
	comma := ""
	for x := range list {
		text, err := marshal(convert(&x))
		if err != nil {
			return err
		}
		o.put(comma, "\n ", text)
		if err := o.check(); err != nil {
			return err
		}
		comma = ","
	}
	o.put("\n]")
	return nil
}

// WriteText writes the parts that exist, each below its name.
func (d *IR) WriteText(w io.Writer) error {
	t := &irText{Printer: NewPrinter(w), paint: newPaint(d.Color), hasLines: d.IR.Format() == "llvmir"}
	for r := range d.IR.Records() {
		t.part("records")
		t.record(&r)
		if err := t.check(); err != nil {
			return err
		}
	}
	for p := range d.IR.Positions() {
		t.part("positions")
		t.position(&p)
		if err := t.check(); err != nil {
			return err
		}
	}
	variables := d.IR.Variables()
	for i := range variables {
		t.part("variables")
		t.variable(&variables[i])
	}
	for _, m := range d.IR.Macros() {
		t.part("macros")
		t.macro(&m)
	}
	for _, s := range d.IR.Sources() {
		t.part("sources")
		t.source(&s)
	}
	for _, p := range d.IR.Problems() {
		t.part("problems")
		t.printf("  %s\n", t.warn(printable(p)))
	}
	return t.Flush()
}

// irText writes the text form.
type irText struct {
	*Printer
	paint
	hasLines bool // offsets count lines
	current  string
	function string
}

// offset is the place of a record or an instruction: the line of a text, or the word of a
// module.
func (t *irText) offset(n uint64) string {
	if t.hasLines {
		return fmt.Sprintf("line %-5d", n)
	}
	return fmt.Sprintf("0x%06x", n)
}

// part begins a part, once.
func (t *irText) part(name string) {
	if t.current == name {
		return
	}
	if t.current != "" {
		t.printf("\n")
	}
	t.current = name
	t.printf("%s\n", t.header(name))
}

func (t *irText) record(r *symbol.Record) {
	id := cmp.Or(r.ID, "-")
	t.printf("  %s  %-7s %s", t.offset(r.Offset), printable(id), r.Kind)
	for i := range r.Operands {
		o := &r.Operands[i]
		t.printf(" ")
		if o.Name != "" {
			t.printf("%s=", strings.ReplaceAll(o.Name, " ", ""))
		}
		t.printf("%s", operandText(o.Value))
		if o.HasText {
			t.printf("(%s)", shortened(o.Text))
		}
	}
	t.printf("\n")
}

func operandText(v any) string {
	switch v := v.(type) {
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = operandText(v[i])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case string:
		return shortened(v)
	}
	return fmt.Sprint(v)
}

// maxShown bounds the strings in a line of the text form, in bytes.
const maxShown = 80

// shortened is a text on one line, cut where it is long.
func shortened(s string) string {
	if line, _, more := strings.Cut(s, "\n"); more || len(line) > maxShown {
		cut := strings.ToValidUTF8(line[:min(len(line), maxShown)], "")
		return fmt.Sprintf("%s and %d bytes more", printable(cut), len(s)-len(cut))
	}
	return printable(s)
}

// position writes one line for an instruction.
func (t *irText) position(p *symbol.Position) {
	if t.function != p.Function || p.Instruction == 0 {
		t.function = p.Function
		t.printf("  %s\n", t.paint.function(printable(p.Function)))
	}
	t.printf("    +%-5d %s  ", p.Instruction, t.offset(p.Offset))
	for i := range p.Frames {
		f := &p.Frames[i]
		if i > 0 {
			t.printf(", inlined into ")
		}
		scope := ""
		if i < len(p.Scopes) && p.Scopes[i] != "" {
			scope = scopeName(f)
		}
		position := place(f)
		switch {
		case scope != "" && position != "":
			t.printf("%s %s in %s", printable(scope), position, printable(p.Scopes[i]))
		case scope != "":
			t.printf("%s in %s", printable(scope), printable(p.Scopes[i]))
		case position != "":
			t.printf("? %s", position)
		default:
			t.printf("-")
		}
	}
	t.printf("\n")
}

// place is FILE:LINE:COLUMN as far as it is known.
func place(f *trace.Symbol) string {
	if f.Line == 0 {
		return ""
	}
	file := "?"
	if f.File != "" {
		file = printable(f.File)
	}
	if f.Column == 0 {
		return fmt.Sprintf("%s:%d", file, f.Line)
	}
	return fmt.Sprintf("%s:%d:%d", file, f.Line, f.Column)
}

func (t *irText) variable(v *symbol.Variable) {
	name := cmp.Or(v.Name, "?")
	t.printf("  %s", printable(name))
	if v.Type != "" {
		t.printf(" %s", printable(v.Type))
	}
	switch {
	case v.IsGlobal:
		t.printf(", global")
	case v.Argument != 0:
		t.printf(", parameter %d of %s", v.Argument, printable(v.Function))
	case v.Function != "":
		t.printf(", in %s", printable(v.Function))
	}
	if position := place(&trace.Symbol{File: v.File, Line: v.Line, Column: v.Column}); position != "" {
		t.printf(", %s", position)
	}
	if v.InlinedAt != "" {
		t.printf(", inlined at %s", printable(v.InlinedAt))
	}
	t.printf("\n")
	for i := range v.Ranges {
		r := &v.Ranges[i]
		t.printf("    ")
		if r.Function != "" {
			t.printf("%s +%d to +%d ", printable(r.Function), r.Start, r.End)
		}
		t.printf("%s", rangeKind(r))
		for _, value := range r.Values {
			t.printf(" %s", printable(value))
		}
		if len(r.Members) > 0 {
			t.printf(" for member %s", strings.Join(r.Members, "."))
		}
		switch {
		case r.Problem != "":
			t.printf(" %s", t.warn(printable(r.Problem)))
		case len(r.Expression) > 0:
			t.printf(" { %s }", expressionOf(r))
		}
		t.printf("\n")
	}
}

func (t *irText) macro(m *symbol.Macro) {
	position := "command line"
	if m.Line != 0 {
		position = place(&trace.Symbol{File: m.File, Line: m.Line})
	}
	what := "#define"
	if m.IsUndef {
		what = "#undef"
	}
	t.printf("  %s %s", what, printable(m.Name))
	if m.Value != "" {
		t.printf(" %s", shortened(m.Value))
	}
	t.printf(", %s\n", position)
}

func (t *irText) source(s *symbol.SourceFile) {
	path := cmp.Or(s.Path, "?")
	t.printf("  %s", printable(path))
	if s.Checksum != "" {
		t.printf(", %s", printable(s.Checksum))
	}
	if s.HasText {
		t.printf(", %d bytes of text", len(s.Text))
	}
	t.printf("\n")
}
