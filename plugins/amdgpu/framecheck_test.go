// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"context"
	"debug/elf"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// contradictions are what call frame information of an object has otherwise than its code,
// and in how many bytes of how many.
func contradictions(t *testing.T, path string) (reasons map[string]uint64, total uint64) {
	t.Helper()
	o := readObject(t, path)
	a := New()
	e := sections{data: o.data}
	opened, err := a.OpenObject(context.Background(), e, &o.req)
	if err != nil || !opened.ChecksCFI {
		t.Fatalf("%s: %v, checked: %v", path, err, opened.ChecksCFI)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	text := f.Section(".text")
	req := &sdk.FrameRulesRequest{Object: 1}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 {
			total += s.Size
			req.Functions = append(req.Functions, sdk.CodeRange{PC: s.Value, Start: s.Value, Code: o.data[".text"][s.Value-text.Addr:][:s.Size], Bounded: true})
		}
	}
	answer, err := a.FrameRules(context.Background(), e, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(Description(), req); err != nil {
		t.Fatal(err)
	}
	reasons = map[string]uint64{}
	for i := range answer.Functions {
		for _, c := range answer.Functions[i].Contradictions {
			reasons[c.Reason] += c.End - c.Start
		}
	}
	return reasons, total
}

// TestCallFrameInformationThatTheCodeContradicts is of LLVM 23, which takes a lane's stack
// pointer for one of the wave on gfx942, and elsewhere is wrong in epilogues; and of call
// frame information that is right but for the last instructions of epilogues.
func TestCallFrameInformationThatTheCodeContradicts(t *testing.T) {
	for _, c := range []struct {
		path    string
		reasons []string
		percent uint64 // of the code, at most
	}{
		{"testdata/amd_h.gfx942.llvm23.co", []string{wrongUnit}, 100},
		{"testdata/amd_h.gfx90a.llvm23.co", []string{wrongReturn}, 5},
		{"testdata/amd_k.gfx90a.llvm23.co", []string{wrongLanes, wrongReturn}, 100},
		{"testdata/amd_h.gfx90a.cfi.co", []string{wrongReturn}, 5},
	} {
		reasons, total := contradictions(t, c.path)
		var wrong uint64
		for reason, n := range reasons {
			wrong += n
			t.Logf("%s: %d of %d bytes: %s", c.path, n, total, reason)
			if !slices.Contains(c.reasons, reason) {
				t.Errorf("%s: %s", c.path, reason)
			}
		}
		for _, reason := range c.reasons {
			if reasons[reason] == 0 {
				t.Errorf("%s: nothing is wrong by: %s", c.path, reason)
			}
		}
		if wrong*100 > total*c.percent {
			t.Errorf("%s: %d of %d bytes are contradicted", c.path, wrong, total)
		}
	}
}
