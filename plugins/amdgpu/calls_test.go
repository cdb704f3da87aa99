// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
	"github.com/unwindd/unwindd/sdk"
)

// callCode is the code of the functions of testdata/calls.cpp, by processor and name.
func callCode(t *testing.T) map[string]map[string][]byte {
	t.Helper()
	file, err := os.ReadFile("testdata/calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]map[string][]byte{}
	for line := range strings.Lines(string(file)) {
		fields := strings.Fields(line)
		data, err := base64.StdEncoding.DecodeString(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		for p := range strings.SplitSeq(fields[1], ",") {
			if codes[p] == nil {
				codes[p] = map[string][]byte{}
			}
			codes[p][fields[0]] = data
		}
	}
	// The compiler does not know some processors. Their code is that of their generation.
	for i := range processors {
		p := &processors[i]
		for k := 0; codes[p.name] == nil && k < len(processors); k++ {
			if o := &processors[k]; o.generation == p.generation {
				codes[p.name] = codes[o.name]
			}
		}
	}
	return codes
}

// TestCallsOfUnknownFunctionsOnEveryProcessor reads functions that call others by a
// pointer and by a table of virtual functions: what a call may change is all that the
// processor has and the convention does not preserve.
func TestCallsOfUnknownFunctionsOnEveryProcessor(t *testing.T) {
	codes := callCode(t)
	for i := range processors {
		p := &processors[i]
		for _, name := range [...]string{"pointer_call", "virtual_call"} {
			data := codes[p.name][name]
			if len(data) == 0 {
				t.Errorf("%s: no code of %s", p.name, name)
				continue
			}
			checkCalls(t, p, name, data)
		}
	}
}

// checkCalls holds the rows of a function that calls unknown ones against the convention.
func checkCalls(t *testing.T, p *processor, name string, data []byte) {
	t.Helper()
	req := &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{{PC: codeStart, Start: codeStart, Code: data, Bounded: true, Exact: true}}}
	rules := program(p.name, data).frameRules(context.Background(), nil, 1, &req.Functions[0])
	answer := sdk.FrameRulesAnswer{Functions: []sdk.FrameRules{rules}}
	if err := answer.Validate(Description(), req); err != nil {
		t.Errorf("%s: %s: %v", p.name, name, err)
		return
	}
	target, err := isa.NewTarget(p.name, p.lanes[0])
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for pc := uint64(codeStart); pc < codeStart+uint64(len(data)); {
		in, err := target.Decode(data[pc-codeStart:], pc)
		if err != nil {
			t.Fatalf("%s: %s: %v", p.name, name, err)
		}
		i := slices.IndexFunc(rules.Rows, func(r cfi.Row) bool { return pc >= r.Start && pc < r.End })
		if i < 0 && pc < codeStart+uint64(len(data))-uint64(in.Size) {
			t.Errorf("%s: %s: no row at %#x", p.name, name, pc)
		}
		if in.Flow == isa.IndirectCall {
			calls++
			checkCall(t, p, &rules.Rows[i])
		}
		pc += uint64(in.Size)
	}
	if calls == 0 {
		t.Errorf("%s: %s calls nothing", p.name, name)
	}
}

// checkCall holds the row of a call against what the processor has.
func checkCall(t *testing.T, p *processor, row *cfi.Row) {
	t.Helper()
	lanes := p.lanes[0]
	text := rowText(row, lanes)
	if text["PC"] == "" || text["PC"] == "undefined" || text["PC"] == inS30 {
		t.Errorf("%s: the return address during a call is in %q", p.name, text["PC"])
	}
	for i := range vectors {
		column := dwarfVector(place(i), lanes)
		if column == noColumn {
			continue
		}
		_, isNamed := row.Rule(uint64(column))
		switch {
		case !p.hasVector(place(i)) && isNamed:
			t.Errorf("%s: a rule of column %d, which the processor does not have", p.name, column)
		case p.hasVector(place(i)) && !isNamed && !isPreserved(column, p):
			t.Errorf("%s: no rule of column %d, which a call may change", p.name, column)
		}
	}
}

// TestCallsAreWhatTheCompilerMakes compiles the functions for every processor that LLVM 22
// knows.
func TestCallsAreWhatTheCompilerMakes(t *testing.T) {
	oracle.Tools(t, "clang-22", "llvm-objcopy-22")
	codes := callCode(t)
	dir := t.TempDir()
	object, text := filepath.Join(dir, "o"), filepath.Join(dir, "text")
	for i := range processors {
		p := &processors[i]
		if strings.Contains(newerProcessors, " "+p.name+" ") {
			continue
		}
		oracle.Run(t, "clang-22", "-target", "amdgcn-amd-amdhsa", "-mcpu="+p.name, "-O1", "-fno-exceptions", "-fno-rtti", "-nogpulib", "-c", "testdata/calls.cpp", "-o", object)
		oracle.Run(t, "llvm-objcopy-22", "-O", "binary", "-j", ".text", object, text)
		made, err := os.ReadFile(text)
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range codes[p.name] {
			if !strings.Contains(string(made), string(data)) {
				t.Errorf("%s: %s is other code than testdata/calls.txt has; calls.py writes that anew", p.name, name)
			}
		}
	}
}
