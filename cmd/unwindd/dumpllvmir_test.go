// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// inlinedModule is the LLVM IR of inlined.c, in which f calls inl.
const inlinedModule = "../../engine/symbol/llvmir/testdata/inlined.ll"

func TestDumpOfLLVMIRAsJSON(t *testing.T) {
	stdout, stderr, status := unwindd(t, "dump", "llvmir", "--format", "json", inlinedModule)
	if status != 0 {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	var d dumpedIR
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatal(err)
	}
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

func TestDumpOfLLVMIRAsText(t *testing.T) {
	stdout, stderr, status := unwindd(t, "dump", "llvmir", inlinedModule)
	if status != 0 {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	for _, want := range []string{
		"records\n  line 46     !llvm.dbg.cu MDTuple !0\n", "  line 82     !31     DILexicalBlock distinct=true scope=!28 file=!1 line=3 column=42\n",
		"\n\npositions\n  f\n    +0     line 12     f /src/ir_a.c:3:60 in !31\n", "    +4     line 20     -\n",
		"inl /src/ir_a.c:2:44 in !45, inlined into f /src/ir_a.c:3:80 in !30\n",
		"\n\nvariables\n  s S*, parameter 1 of f, /src/ir_a.c:3\n    f +0 to +2 value ptr %0 { DW_OP_stack_value }\n", "\n  x int, parameter 1 of inl, /src/ir_a.c:2, inlined at !51\n",
		"\n\nsources\n  /src/ir_a.c, MD5:2c4510559eae58b103ced671ce3f308f\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

func TestSymbolizeOfLLVMIR(t *testing.T) {
	const inl = "inl\n/src/ir_a.c:2:60\nf\n/src/ir_a.c:3:80\n\n"
	for _, c := range []struct {
		args           []string
		stdout, stderr string
	}{
		{[]string{"f+10"}, inl, ""}, {[]string{"f%13"}, inl, ""}, {[]string{"%13"}, inl, ""}, {[]string{"@f+0xa"}, inl, ""}, {[]string{"32"}, inl, ""},
		{[]string{"--no-inlines", "f+10"}, "f\n/src/ir_a.c:2:60\n\n", ""},
		{[]string{"--output-style", "gnu", "20"}, "inl\n/src/ir_a.c:2\nf\n/src/ir_a.c:3\n", ""},
		{[]string{"--functions", "short", "-s", "-p", "f+10"}, "inl at ir_a.c:2:60\n (inlined by) f at ir_a.c:3:80\n\n", ""},
		{[]string{"f+4"}, "f\n??:0:0\n\n", ""},
		{[]string{"f+17"}, "??\n??:0:0\n\n", "unwindd: error: 'f+17': f has 17 instructions\n"},
		{[]string{"g%3"}, "??\n??:0:0\n\n", "unwindd: error: 'g%3': a function, FUNCTION+INSTRUCTION, FUNCTION%RESULT or a line is expected\n"},
		{[]string{"DATA 32"}, "??\n0 0\n??:?\n\n", "unwindd: error: '32': llvmir files have positions of code only\n"},
	} {
		stdout, stderr, status := unwindd(t, append([]string{"symbolize", "--obj", inlinedModule}, c.args...)...)
		if status != 0 || stdout != c.stdout || stderr != c.stderr {
			t.Errorf("%v: status %d, prints\n%s%s, expected\n%s%s", c.args, status, stdout, stderr, c.stdout, c.stderr)
		}
	}
}

func TestDumpOfLLVMIRRefusesOtherFiles(t *testing.T) {
	_, stderr, status := unwindd(t, "dump", "spirv", inlinedModule)
	if status != 1 || !strings.Contains(stderr, "inlined.ll: a llvmir file, expected spirv") {
		t.Errorf("status %d, %s", status, stderr)
	}
}
