// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"strings"
	"testing"
)

// Positions in a cubin are of functions and of sections: each section begins at address 0.
func TestPositionsInCubinsAreOfFunctionsAndSections(t *testing.T) {
	const cubin = "../internal/symbol/dwarf/testdata/cubin/sum75.cubin"
	const inlined = `square(int)
/src/kernels/sum.cuh:1:0
int clamp<int>(int, int)
/src/kernels/sum.cuh:2:0
often(int*, int)
/src/kernels/sum.cu:20:0

`
	const nothing = "??\n??:0:0\n\n"
	for _, test := range []struct{ question, want, message string }{
		{"_Z5oftenPii+0x60", inlined, ""},
		{"often(int*, int)+96", inlined, ""},
		{".text._Z5oftenPii+0x60", inlined, ""},
		{"_Z4oncePii", "once(int*, int)\n/src/kernels/sum.cu:14:0\n\n", ""},
		{"_Z5oftenPii+0x100000", nothing, "offset 0x100000, expected less than the size"},
		{"_Z5never+0x60", nothing, "no function and no section of code has the name, expected FUNCTION+OFFSET or SECTION+OFFSET"},
		{"0x60", nothing, "2 sections of code begin at address 0, expected FUNCTION+OFFSET or SECTION+OFFSET"},
	} {
		s := newSession(t, cubin)
		s.IR = true
		message := ""
		s.Message = func(text string) { message += text }
		var out strings.Builder
		if err := s.Run(&out, []string{test.question}, nil); err != nil {
			t.Fatal(err)
		}
		if out.String() != test.want || !strings.Contains(message, test.message) || test.message == "" && message != "" {
			t.Errorf("%s: %q, message %q, expected %q and %q", test.question, out.String(), message, test.want, test.message)
		}
	}
}

// The JSON of an answer has addresses that count from the section too.
func TestStartsOfFunctionsInCubinsCountFromTheSection(t *testing.T) {
	s := newSession(t, "../internal/symbol/dwarf/testdata/cubin/sum75.cubin")
	s.Output.Style = StyleJSON
	var out strings.Builder
	if err := s.Run(&out, []string{"_Z5oftenPii+0x400"}, nil); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, `"StartAddress":"0x150"`) || !strings.Contains(text, `"SymName":"_Z5oftenPii+0x400"`) {
		t.Error(text)
	}
}
