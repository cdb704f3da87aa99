// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/report"
)

const (
	callsModule = "../internal/symbol/spirv/testdata/calls.spv"
	// inlinedModule is the LLVM IR of inlined.c, in which f calls inl.
	inlinedModule = "../internal/symbol/llvmir/testdata/inlined.ll"
)

// irFile opens a file in an intermediate representation until the test ends.
func irFile(t *testing.T, path string) *report.IR {
	t.Helper()
	r, file, err := report.OpenIR(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return r
}

// dumpedIR is the output of `dump spirv --format json`.
type dumpedIR struct {
	File, Format string
	Records      []struct {
		ID, Kind string
		Offset   uint64
		Operands []struct {
			Name  string
			Value any
			Text  *string
		}
	}
	Positions []struct {
		Function    string
		Instruction int
		Offset      uint64
		irPlace
		InlinedAt []irPlace `json:"inlined_at"`
	}
	Variables []struct {
		Name, Type, Function string
		Argument, Line       int
		Ranges               []struct {
			Function, Kind, Expression, Text string
			Start, End                       int
			Values                           []string
		}
	}
	Macros, Sources, Problems []any
}

type irPlace struct {
	File         string
	Line, Column int
	Scope        string
	ScopeID      string `json:"scope_id"`
}

func TestFileOfSPIRVAsJSON(t *testing.T) {
	var d dumpedIR
	readJSON(t, irFile(t, callsModule).WriteJSON, &d)
	if d.Format != "spirv" || d.File != callsModule || d.Macros == nil || d.Problems == nil || len(d.Sources) != 1 {
		t.Errorf("file %q, format %q, macros %v, sources %v, problems %v", d.File, d.Format, d.Macros, d.Sources, d.Problems)
	}
	kinds := map[string]int{}
	for _, r := range d.Records {
		kinds[r.Kind]++
		if r.Kind == "DebugFunction" && (r.Operands[0].Name != "Name" || r.Operands[0].Text == nil || r.Operands[3].Value == nil) {
			t.Errorf("record %+v", r)
		}
	}
	if kinds["DebugFunction"] != 4 || kinds["DebugInlinedAt"] != 4 || kinds["DebugSource"] != 1 {
		t.Errorf("records %v", kinds)
	}
	next := map[string]int{}
	deepest := false
	for _, p := range d.Positions {
		if p.Instruction != next[p.Function] || p.InlinedAt == nil {
			t.Errorf("position %+v, expected instruction %d and a list of calls", p, next[p.Function])
		}
		next[p.Function]++
		if p.Line == 5 && p.Function == "calls" && len(p.InlinedAt) == 2 && p.InlinedAt[0].Line == 12 {
			deepest = true
			if p.Scope != "leaf" || p.InlinedAt[0].Scope != "middle" || p.InlinedAt[1].Scope != "calls" || p.InlinedAt[1].Line != 22 ||
				p.ScopeID == "" || p.InlinedAt[0].ScopeID == "" || p.File != "/example/calls.cl" || p.InlinedAt[0].File != p.File {
				t.Errorf("position %+v", p)
			}
		}
	}
	if !deepest {
		t.Error("no instruction of line 5 was inlined at line 12")
	}
	if len(next) != 3 || next["plain"] == 0 || next["calls"] == 0 {
		t.Errorf("functions %v", next)
	}
	found := false
	for _, v := range d.Variables {
		if v.Name == "deep" && v.Type == "int" && v.Function == "middle" && v.Line == 12 {
			r := v.Ranges[0]
			found = r.Function == "calls" && r.Kind == "address" && strings.HasPrefix(r.Values[0], "%") && r.Text == "DW_OP_constu 0; DW_OP_swap; DW_OP_xderef" && r.Expression != "" && r.End == next["calls"]
		}
	}
	if !found {
		t.Errorf("variables %+v", d.Variables)
	}
}

func TestFileOfSPIRVAsText(t *testing.T) {
	var out strings.Builder
	if err := irFile(t, callsModule).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"records\n  0x", "\n\npositions\n  plain\n    +0 ", "leaf /example/calls.cl:5:10 in %", ", inlined into middle /example/calls.cl:12 in %",
		", inlined into calls /example/calls.cl:22 in %", "\n\nvariables\n", "\n  deep int, in middle, /example/calls.cl:12, inlined at %",
		" address %", "{ DW_OP_constu 0; DW_OP_swap; DW_OP_xderef }\n", "\n\nsources\n  /example/calls.cl, MD5:",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestFileOfLLVMIRAsJSON(t *testing.T) {
	var d dumpedIR
	readJSON(t, irFile(t, inlinedModule).WriteJSON, &d)
	if d.Format != "llvmir" || d.File != inlinedModule || d.Macros == nil || d.Problems == nil || len(d.Sources) != 1 || len(d.Records) != 71 {
		t.Errorf("file %q, format %q, macros %v, sources %v, problems %v, %d records", d.File, d.Format, d.Macros, d.Sources, d.Problems, len(d.Records))
	}
	for _, r := range d.Records {
		if r.ID == "!45" && (r.Kind != "DISubprogram" || r.Offset != 96 || r.Operands[0].Value != true || r.Operands[1].Name != "name" || r.Operands[1].Value != "inl") {
			t.Errorf("record %+v", r)
		}
	}
	if len(d.Positions) != 17 {
		t.Fatalf("%d positions", len(d.Positions))
	}
	for i, p := range d.Positions {
		if p.Instruction != i || p.Function != "f" || p.InlinedAt == nil {
			t.Errorf("position %d is %+v", i, p)
		}
	}
	const file = "/src/ir_a.c"
	p := d.Positions[10]
	if p.Offset != 32 || p.irPlace != (irPlace{file, 2, 60, "inl", "!45"}) || len(p.InlinedAt) != 1 || p.InlinedAt[0] != (irPlace{file, 3, 80, "f", "!30"}) {
		t.Errorf("position %+v", p)
	}
	if p := d.Positions[4]; p.irPlace != (irPlace{}) {
		t.Errorf("an instruction without a position has %+v", p)
	}
	found := false
	for _, v := range d.Variables {
		if v.Name == "sum" && v.Type == "int" && v.Function == "f" && len(v.Ranges) == 3 {
			r := v.Ranges[1]
			found = r.Function == "f" && r.Kind == "value" && r.Values[0] == "i32 %9" && r.Start == 7 && r.End == 12 && r.Expression == "9f" && r.Text == "DW_OP_stack_value"
		}
	}
	if !found {
		t.Errorf("variables %+v", d.Variables)
	}
}

func TestFileOfLLVMIRAsText(t *testing.T) {
	var out strings.Builder
	if err := irFile(t, inlinedModule).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"records\n  line 46     !llvm.dbg.cu MDTuple !0\n", "  line 82     !31     DILexicalBlock distinct=true scope=!28 file=!1 line=3 column=42\n",
		"\n\npositions\n  f\n    +0     line 12     f /src/ir_a.c:3:60 in !31\n", "    +4     line 20     -\n",
		"inl /src/ir_a.c:2:44 in !45, inlined into f /src/ir_a.c:3:80 in !30\n",
		"\n\nvariables\n  s S*, parameter 1 of f, /src/ir_a.c:3\n    f +0 to +2 value ptr %0 { DW_OP_stack_value }\n", "\n  x int, parameter 1 of inl, /src/ir_a.c:2, inlined at !51\n",
		"\n\nsources\n  /src/ir_a.c, MD5:2c4510559eae58b103ced671ce3f308f\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
