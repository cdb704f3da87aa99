// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

func openObject(t *testing.T, req *sdk.OpenObjectRequest) *sdk.OpenObjectAnswer {
	t.Helper()
	answer, err := New().OpenObject(context.Background(), nil, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(Description(), req); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestGoPreservesNoRegister(t *testing.T) {
	for section, isGo := range map[string]bool{
		".gopclntab": true, ".data.rel.ro.gopclntab": true, ".note.go.buildid": true, ".text": false,
	} {
		answer := openObject(t, &sdk.OpenObjectRequest{Machine: machine, Sections: []sdk.SectionInfo{{Name: section}}})
		if (answer.DefaultRules != nil) != isGo {
			t.Errorf("%s: default rules %v", section, answer.DefaultRules)
		}
		for _, r := range answer.DefaultRules {
			if slices.Contains(calleeSaved[:], uint32(r.Column)) && r.Rule.Kind != cfi.Undefined {
				t.Errorf("%s: register %d has rule %d", section, r.Column, r.Rule.Kind)
			}
			if r.Column == uint64(rsp) && r.Rule.Kind != cfi.ValOffset {
				t.Errorf("%s: rsp has rule %d", section, r.Rule.Kind)
			}
		}
	}
}

func TestObjectsOfOtherMachinesHaveNothing(t *testing.T) {
	answer := openObject(t, &sdk.OpenObjectRequest{Machine: 3, Symbols: []sdk.SymbolInfo{{Name: "_start", Address: 1, Size: 1}}})
	if len(answer.Functions) > 0 {
		t.Errorf("%+v", answer.Functions)
	}
}

func TestFunctionKindsCoverTheirCode(t *testing.T) {
	answer := openObject(t, &sdk.OpenObjectRequest{
		Machine:  machine,
		Sections: []sdk.SectionInfo{{Name: ".text", Address: 0x1000, Size: 0x1000}},
		Symbols: []sdk.SymbolInfo{
			{Name: "main", Address: 0x1100, Size: 0x20},
			{Name: "runtime.goexit.abi0", Address: 0x1800, Size: 6},
			{Name: "_start", Address: 0x1000, Size: 0x26},
			{Name: "_start", Address: 0x1000, Size: 0x26},        // .dynsym names it too
			{Name: "runtime.rt0_go", Address: 0x1900},            // bounded by what follows
			{Name: "other", Address: 0x1940},                     //
			{Name: "_rt0_amd64_linux", Address: 0x1ff0},          // bounded by the section
			{Name: "_dl_start_user", Address: 0x9000},            // in no section: no range
			{Name: "_rt0_amd64", Address: ^uint64(0), Size: 100}, // wraps
		},
	})
	want := []sdk.Function{
		{Name: "_start", Start: 0x1000, End: 0x1026, Kind: sdk.OutermostFunction},
		{Name: "runtime.goexit.abi0", Start: 0x1800, End: 0x1806, Kind: sdk.OutermostFunction},
		{Name: "runtime.rt0_go", Start: 0x1900, End: 0x1940, Kind: sdk.OutermostFunction},
		{Name: "_rt0_amd64_linux", Start: 0x1ff0, End: 0x2000, Kind: sdk.OutermostFunction},
	}
	if diff := cmp.Diff(want, answer.Functions); diff != "" {
		t.Errorf("functions (-want +got):\n%s", diff)
	}
}

func TestOutermostFunctionsHaveNoReturnAddress(t *testing.T) {
	code := assemble(t, map[string]string{"start": "endbr64; xor %ebp,%ebp; mov %rdx,%r9; pop %rsi; call .+99; hlt"})["start"]
	got := ask(t, sdk.CodeRange{PC: testBase + 9, Start: testBase, Code: code, Bounded: true, Exact: true, Name: "_start"})
	want := []string{"0-16 rsp+8 rbx=u rbp=u r12=u r13=u r14=u r15=u rip=u"}
	if diff := cmp.Diff(want, rowTexts(testBase, &got)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}
