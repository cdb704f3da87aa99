// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/listing"
)

const (
	callsModule   = "../internal/symbol/spirv/testdata/calls.spv"
	inlinedModule = "../internal/symbol/llvmir/testdata/inlined.ll"
)

// askIR asks about a file in an intermediate representation. The words are options, and then
// questions.
func askIR(t *testing.T, file string, words ...string) answers {
	t.Helper()
	n := slices.IndexFunc(words, func(w string) bool { return !strings.HasPrefix(w, "-") })
	return Options{}.ask(t, &Session{Object: file, IR: true}, words[:n], words[n:], "")
}

func TestPositionsOfSPIRV(t *testing.T) {
	deepest := "leaf\n/example/calls.cl:4:11\nmiddle\n/example/calls.cl:10:0\ncalls\n/example/calls.cl:22:0\n\n"
	for _, c := range []struct {
		args           []string
		stdout, stderr string
	}{
		{[]string{"calls+66"}, deepest, ""},
		{[]string{"--no-inlines", "calls+0x42"}, "calls\n/example/calls.cl:4:11\n\n", ""},
		{[]string{"--output-style=gnu", "calls+66"}, "leaf\n/example/calls.cl:4\nmiddle\n/example/calls.cl:10\ncalls\n/example/calls.cl:22\n", ""},
		{[]string{"-f=short", "-s", "-p", "calls+66"}, "leaf at calls.cl:4:11\n (inlined by) middle at calls.cl:10:0\n (inlined by) calls at calls.cl:22:0\n\n", ""},
		{[]string{"calls+0"}, "calls\n??:0:0\n\n", ""},
		{[]string{"calls+9999"}, "??\n??:0:0\n\n", "tool: error: 'calls+9999': function calls has instructions 0 to 165\n"},
		{[]string{"DATA 1000"}, "??\n0 0\n??:?\n\n", "tool: error: '1000': spirv files have positions of code only\n"},
	} {
		if got := askIR(t, callsModule, c.args...); got.Failed || got.Stdout != c.stdout || got.Stderr != c.stderr {
			t.Errorf("%v: %+v, expected\n%s%s", c.args, got, c.stdout, c.stderr)
		}
	}
	// By the file's name in a question, and by an offset.
	f, err := listing.OpenIR(callsModule)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for p := range f.Positions() {
		if p.Function == "calls" && p.Instruction == 66 {
			number, _ := json.Marshal(p.Offset)
			if got := (Options{}).ask(t, &Session{IR: true}, nil, nil, callsModule+" "+string(number)+"\n"); got.Stdout != deepest {
				t.Errorf("word %d: %+v", p.Offset, got)
			}
		}
	}
	got := askIR(t, callsModule, "--output-style=JSON", "calls+66", "nobody")
	var list []struct {
		SymName string
		Symbol  []struct {
			FunctionName, FileName string
			Line                   int
		}
		Error *struct{ Message string }
	}
	if err := json.Unmarshal([]byte(got.Stdout), &list); err != nil || got.Failed || len(list) != 2 {
		t.Fatalf("%+v: %v", got, err)
	}
	if l := list[0]; l.SymName != "calls+66" || len(l.Symbol) != 3 || l.Symbol[1].FunctionName != "middle" || l.Symbol[1].Line != 10 {
		t.Errorf("%+v", l)
	}
	if list[1].Error == nil || !strings.Contains(list[1].Error.Message, "FUNCTION+INSTRUCTION") {
		t.Errorf("%+v", list[1])
	}
}

func TestPositionsOfLLVMIR(t *testing.T) {
	const inl = "inl\n/src/ir_a.c:2:60\nf\n/src/ir_a.c:3:80\n\n"
	for _, c := range []struct {
		args           []string
		stdout, stderr string
	}{
		{[]string{"f+10"}, inl, ""}, {[]string{"f%13"}, inl, ""}, {[]string{"%13"}, inl, ""}, {[]string{"@f+0xa"}, inl, ""}, {[]string{"32"}, inl, ""},
		{[]string{"--no-inlines", "f+10"}, "f\n/src/ir_a.c:2:60\n\n", ""},
		{[]string{"--output-style=gnu", "20"}, "inl\n/src/ir_a.c:2\nf\n/src/ir_a.c:3\n", ""},
		{[]string{"-f=short", "-s", "-p", "f+10"}, "inl at ir_a.c:2:60\n (inlined by) f at ir_a.c:3:80\n\n", ""},
		{[]string{"f+4"}, "f\n??:0:0\n\n", ""},
		{[]string{"f+17"}, "??\n??:0:0\n\n", "tool: error: 'f+17': f has 17 instructions\n"},
		{[]string{"g%3"}, "??\n??:0:0\n\n", "tool: error: 'g%3': a function, FUNCTION+INSTRUCTION, FUNCTION%RESULT or a line is expected\n"},
		{[]string{"DATA 32"}, "??\n0 0\n??:?\n\n", "tool: error: '32': llvmir files have positions of code only\n"},
	} {
		if got := askIR(t, inlinedModule, c.args...); got.Failed || got.Stdout != c.stdout || got.Stderr != c.stderr {
			t.Errorf("%v: %+v, expected\n%s%s", c.args, got, c.stdout, c.stderr)
		}
	}
}
