// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// callsModule is the SPIR-V module of calls.cl, whose lines its tests know.
const callsModule = "../../engine/symbol/spirv/testdata/calls.spv"

// dumpedIR is what `dump spirv --format json` prints.
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

func TestDumpOfSPIRVAsJSON(t *testing.T) {
	stdout, stderr, status := unwindd(t, "dump", "spirv", "--format", "json", callsModule)
	if status != 0 {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	var d dumpedIR
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatal(err)
	}
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

func TestDumpOfSPIRVAsText(t *testing.T) {
	stdout, stderr, status := unwindd(t, "dump", "spirv", callsModule)
	if status != 0 {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	for _, want := range []string{
		"records\n  0x", "\n\npositions\n  plain\n    +0 ", "leaf /example/calls.cl:5:10 in %", ", inlined into middle /example/calls.cl:12 in %",
		", inlined into calls /example/calls.cl:22 in %", "\n\nvariables\n", "\n  deep int, in middle, /example/calls.cl:12, inlined at %",
		" address %", "{ DW_OP_constu 0; DW_OP_swap; DW_OP_xderef }\n", "\n\nsources\n  /example/calls.cl, MD5:",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

func TestSymbolizeOfSPIRV(t *testing.T) {
	deepest := "leaf\n/example/calls.cl:4:11\nmiddle\n/example/calls.cl:10:0\ncalls\n/example/calls.cl:22:0\n\n"
	for _, c := range []struct {
		args           []string
		stdout, stderr string
	}{
		{[]string{"calls+66"}, deepest, ""},
		{[]string{"--no-inlines", "calls+0x42"}, "calls\n/example/calls.cl:4:11\n\n", ""},
		{[]string{"--output-style", "gnu", "calls+66"}, "leaf\n/example/calls.cl:4\nmiddle\n/example/calls.cl:10\ncalls\n/example/calls.cl:22\n", ""},
		{[]string{"--functions", "short", "-s", "-p", "calls+66"}, "leaf at calls.cl:4:11\n (inlined by) middle at calls.cl:10:0\n (inlined by) calls at calls.cl:22:0\n\n", ""},
		{[]string{"calls+0"}, "calls\n??:0:0\n\n", ""},
		{[]string{"calls+9999"}, "??\n??:0:0\n\n", "unwindd: error: 'calls+9999': function calls has instructions 0 to 165\n"},
		{[]string{"DATA 1000"}, "??\n0 0\n??:?\n\n", "unwindd: error: '1000': spirv files have positions of code only\n"},
	} {
		stdout, stderr, status := unwindd(t, append([]string{"symbolize", "--obj", callsModule}, c.args...)...)
		if status != 0 || stdout != c.stdout || stderr != c.stderr {
			t.Errorf("%v: status %d, prints\n%s%s, expected\n%s%s", c.args, status, stdout, stderr, c.stdout, c.stderr)
		}
	}
	// By the file's name in a question, and by an offset and an ID of the dump.
	stdout, _, _ := unwindd(t, "dump", "spirv", "--format", "json", callsModule)
	var d dumpedIR
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Positions {
		if p.Function == "calls" && p.Instruction == 66 {
			number, _ := json.Marshal(p.Offset)
			cmd := command("symbolize")
			cmd.Stdin = strings.NewReader(callsModule + " " + string(number) + "\n")
			if out, err := cmd.Output(); err != nil || string(out) != deepest {
				t.Errorf("word %d: %s, %v", p.Offset, out, err)
			}
		}
	}
	stdout, _, status := unwindd(t, "symbolize", "--obj", callsModule, "--output-style", "json", "calls+66", "nobody")
	var list []struct {
		SymName string
		Symbol  []struct {
			FunctionName, FileName string
			Line                   int
		}
		Error *struct{ Message string }
	}
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || status != 0 || len(list) != 2 {
		t.Fatalf("%s: %v", stdout, err)
	}
	if l := list[0]; l.SymName != "calls+66" || len(l.Symbol) != 3 || l.Symbol[1].FunctionName != "middle" || l.Symbol[1].Line != 10 {
		t.Errorf("%+v", l)
	}
	if list[1].Error == nil || !strings.Contains(list[1].Error.Message, "FUNCTION+INSTRUCTION") {
		t.Errorf("%+v", list[1])
	}
}

func TestFilesThatAreNoIR(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.spv")
	if err := os.WriteFile(other, []byte("neither of them\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.spv")
	if err := os.WriteFile(cut, []byte("\x03\x02\x23\x07\x00\x04\x01\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	bitcode, wrapped := filepath.Join(dir, "kernel.bc"), filepath.Join(dir, "wrapped.ll")
	for path, text := range map[string]string{bitcode: "BC\xc0\xde\x35\x14", wrapped: "\xde\xc0\x17\x0b\x00\x00"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"dump", "llvmir", bitcode}, 1, "kernel.bc: LLVM bitcode, expected LLVM IR as text: llvm-dis writes it"},
		{[]string{"dump", "llvmir", wrapped}, 1, "wrapped.ll: LLVM bitcode, expected LLVM IR as text: llvm-dis writes it"},
		{[]string{"dump", "spirv", bitcode}, 1, "kernel.bc: LLVM bitcode"},
		{[]string{"symbolize", "--obj", bitcode, "f+1"}, 1, "kernel.bc: LLVM bitcode"},
		{[]string{"dump", "spirv", other}, 1, "other.spv: neither SPIR-V nor LLVM IR"},
		{[]string{"dump", "spirv", cut}, 1, "cut.spv: header of 8 bytes, expected 20"},
		{[]string{"dump", "llvmir", callsModule}, 1, "calls.spv: a spirv file, expected llvmir"},
		{[]string{"dump", "spirv"}, 2, ""},
		{[]string{"dump", "spirv", "--format", "html", callsModule}, 2, "--format html"},
		{[]string{"dump", "spirv", filepath.Join(dir, "none.spv")}, 1, "no such file"},
		{[]string{"symbolize", "--obj", other, "f+1"}, 1, "not recognized as a valid object file"},
		{[]string{"symbolize", "--obj", cut, "f+1"}, 1, "header of 8 bytes, expected 20"},
	} {
		_, stderr, status := unwindd(t, c.args...)
		if status != c.status || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%v: status %d, %q, expected %d, %q", c.args, status, stderr, c.status, c.stderr)
		}
	}
	// Under the names of other tools the executable does what they do.
	program := filepath.Join(dir, "llvm-symbolizer")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	cmd := command("--obj="+callsModule, "calls+66")
	cmd.Path, cmd.Args[0] = program, program
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not recognized as a valid object file") {
		t.Errorf("llvm-symbolizer: %s, %v", out, err)
	}
}
