// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// fakeIR has one of everything.
type fakeIR struct{}

func (fakeIR) Format() string { return "spirv" }

func (fakeIR) Records() iter.Seq[symbol.Record] {
	return slices.Values([]symbol.Record{
		{ID: "%7", Kind: "DebugTypeBasic", Offset: 30, Operands: []symbol.Operand{
			{Name: "Name", Value: "%3", Text: "a\x1b[31m", HasText: true}, {Name: "Size", Value: uint64(32)},
		}},
		{Kind: "DebugSource", Offset: 40, Operands: []symbol.Operand{{Name: "Text", Value: "%4", Text: strings.Repeat("x", 100) + "\nmore", HasText: true}}},
	})
}

func (fakeIR) Positions() iter.Seq[symbol.Position] {
	return slices.Values([]symbol.Position{
		{Function: "f", Offset: 50, Frames: []trace.Symbol{{Function: "f"}}, Scopes: []string{""}},
		{Function: "f", Instruction: 1, Offset: 52, Frames: []trace.Symbol{{Function: "f", File: "a.cl", Line: 2}}, Scopes: []string{""}},
		{Function: "f", Instruction: 2, Offset: 54, Frames: []trace.Symbol{
			{Function: "g(int)", Name: "g", File: "a.cl", Line: 3, Column: 4, Inlined: true}, {Function: "f", Name: "f", File: "a.cl", Line: 9},
		}, Scopes: []string{"%11", "%10"}},
		{Function: "f", Instruction: 3, Offset: 56, Frames: []trace.Symbol{{Function: "f", Name: "f"}}, Scopes: []string{"%10"}},
	})
}

func (fakeIR) Find(string, bool) (symbol.Position, error) { return symbol.Position{}, nil }

func (fakeIR) Calls() iter.Seq[symbol.Call] { return func(func(symbol.Call) bool) {} }

func (fakeIR) Variables() []symbol.Variable {
	return []symbol.Variable{
		{ID: "%20", Name: "v", LinkageName: "_v", Type: "int", File: "a.cl", Line: 1, IsGlobal: true, Ranges: []symbol.VariableRange{{IsAddress: true, Values: []string{"%30"}}}},
		{ID: "%21", Type: "S", Line: 5, Column: 6, Scope: "%10", Function: "f", Argument: 1, InlinedAt: "%12", Ranges: []symbol.VariableRange{
			{Function: "f", Start: 1, End: 3, Values: []string{"%31"}, Members: []string{"0", "2"}, Expression: []byte{0x06}},
			{Function: "f", Start: 3, End: 4, Values: []string{"%32"}, Problem: "its expression is not there"},
		}},
		{ID: "%22", Name: "gone", Function: "f"},
	}
}

func (fakeIR) Sources() []symbol.SourceFile {
	return []symbol.SourceFile{{ID: "%1", Path: "a.cl", Checksum: "MD5:00", Text: "int v;\n", HasText: true}, {ID: "%2"}}
}

func (fakeIR) Macros() []symbol.Macro {
	return []symbol.Macro{{ID: "%40", Name: "M(x)", Value: "x", File: "a.cl", Line: 1}, {ID: "%41", Name: "M(x)", File: "a.cl", Line: 2, IsUndef: true}, {ID: "%42", Name: "D"}}
}

func (fakeIR) Problems() []string { return []string{"k.spv: word 0x9: wrong"} }

func TestIRAsText(t *testing.T) {
	var b strings.Builder
	if err := (&IR{File: "k.spv", IR: fakeIR{}}).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	expected := `records
  0x00001e  %7      DebugTypeBasic Name=%3("a\x1b[31m") Size=32
  0x000028  -       DebugSource Text=%4(` + strings.Repeat("x", 80) + ` and 25 bytes more)

positions
  f
    +0     0x000032  -
    +1     0x000034  ? a.cl:2
    +2     0x000036  g a.cl:3:4 in %11, inlined into f a.cl:9 in %10
    +3     0x000038  f in %10

variables
  v int, global, a.cl:1
    address %30
  ? S, parameter 1 of f, ?:5:6, inlined at %12
    f +1 to +3 value %31 for member 0.2 { DW_OP_deref }
    f +3 to +4 value %32 its expression is not there
  gone, in f

macros
  #define M(x) x, a.cl:1
  #undef M(x), a.cl:2
  #define D, command line

sources
  a.cl, MD5:00, 7 bytes of text
  ?

problems
  k.spv: word 0x9: wrong
`
	if diff := cmp.Diff(expected, b.String()); diff != "" {
		t.Errorf("text (-expected +written):\n%s", diff)
	}
}

func TestIRAsJSON(t *testing.T) {
	var b strings.Builder
	if err := (&IR{File: "k.spv", IR: fakeIR{}}).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	expected := `{"file":"k.spv","format":"spirv","records":[
 {"id":"%7","kind":"DebugTypeBasic","offset":30,"operands":[{"name":"Name","value":"%3","text":"a\u001b[31m"},{"name":"Size","value":32}]},
 {"kind":"DebugSource","offset":40,"operands":[{"name":"Text","value":"%4","text":"` + strings.Repeat("x", 100) + `\nmore"}]}
],"positions":[
 {"function":"f","instruction":0,"offset":50,"inlined_at":[]},
 {"function":"f","instruction":1,"offset":52,"file":"a.cl","line":2,"inlined_at":[]},
 {"function":"f","instruction":2,"offset":54,"file":"a.cl","line":3,"column":4,"scope":"g","scope_id":"%11","inlined_at":[{"file":"a.cl","line":9,"scope":"f","scope_id":"%10"}]},
 {"function":"f","instruction":3,"offset":56,"scope":"f","scope_id":"%10","inlined_at":[]}
],"variables":[
 {"id":"%20","name":"v","linkage_name":"_v","type":"int","global":true,"file":"a.cl","line":1,"ranges":[{"kind":"address","values":["%30"],"expression":"","text":""}]},
 {"id":"%21","type":"S","argument":1,"function":"f","scope_id":"%10","line":5,"column":6,"inlined_at_id":"%12","ranges":[{"function":"f","start":1,"end":3,"kind":"value","values":["%31"],"members":["0","2"],"expression":"06","text":"DW_OP_deref"},{"function":"f","start":3,"end":4,"kind":"value","values":["%32"],"problem":"its expression is not there"}]},
 {"id":"%22","name":"gone","function":"f","ranges":[]}
],"macros":[
 {"id":"%40","name":"M(x)","value":"x","file":"a.cl","line":1},
 {"id":"%41","name":"M(x)","file":"a.cl","line":2,"undef":true},
 {"id":"%42","name":"D"}
],"sources":[
 {"id":"%1","file":"a.cl","checksum":"MD5:00","text":"int v;\n"},
 {"id":"%2","file":""}
],"problems":[
 "k.spv: word 0x9: wrong"
]}
`
	if diff := cmp.Diff(expected, b.String()); diff != "" {
		t.Errorf("JSON (-expected +written):\n%s", diff)
	}
	if !json.Valid([]byte(b.String())) {
		t.Error("that is not JSON")
	}
}

// A failing writer ends the report.
type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFailing
	}
	return len(b), nil
}

var errFailing = &json.SyntaxError{}

func TestIRTellsOfTheWriter(t *testing.T) {
	r := &IR{File: "k.spv", IR: fakeIR{}}
	if err := r.WriteText(&failing{}); err == nil {
		t.Error("text: no error")
	}
	if err := r.WriteJSON(&failing{}); err == nil {
		t.Error("JSON: no error")
	}
}
