// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/report"
)

// lanes32 is a vector register of 32 lanes that hold their numbers.
var lanes32 = func() string {
	var b strings.Builder
	for i := range 32 {
		b.WriteString(string("0123456789abcdef"[i/16]) + string("0123456789abcdef"[i%16]) + "000000")
	}
	return b.String()
}()

func TestEval(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   []string
		status int
		want   string // compact JSON
	}{
		{"a value of the generic type", []string{"--arch", "x86_64", "--expr", "lit5; lit3; minus"}, 0,
			`{"kind":"value","value":{"type":"generic","hex":"0x2"}}`},
		{"the empty expression is undefined", []string{"--arch", "x86_64", "--expr", ""}, 0,
			`{"kind":"location","places":[{"storage":"undefined"}]}`},
		{"memory by a register", []string{"--arch", "x86_64", "--expr", "bregx rsp, 8", "--reg", "rsp=0x1000", "--kind", "location"}, 0,
			`{"kind":"location","places":[{"storage":"memory","space":"global","address":"0x1008","bit_offset":0}]}`},
		{"what is there", []string{"--arch", "x86_64", "--expr", "bregx rbp, -8; deref", "--reg", "RBP=1008", "--mem", "global:0x1000=2a00000000000000"}, 0,
			`{"kind":"value","value":{"type":"generic","hex":"0x2a"}}`},
		{"the CFA", []string{"--arch", "x86_64", "--expr", "call_frame_cfa; lit16; minus", "--cfa", "none:7000", "--kind", "value"}, 0,
			`{"kind":"value","value":{"type":"generic","hex":"0x6ff0"}}`},
		{"an object", []string{"--arch", "x86_64", "--expr", "push_object_address; plus_uconst 8", "--object", "addr 0x400", "--kind", "location"}, 0,
			`{"kind":"location","places":[{"storage":"memory","space":"global","address":"0x408","bit_offset":0}]}`},
		{"a lane of a spilled register", []string{"--arch", "amdgpu", "--wave", "32", "--expr", "DW_OP_regx VGPR0; DW_OP_LLVM_offset_uconst 20",
			"--reg", "v0=" + lanes32, "--read", "32"}, 0,
			`{"kind":"location","places":[{"storage":"register","register":"v0","thread":"1","frame":0,"bit_offset":160}],"read":"05000000"}`},
		{"private memory of a lane", []string{"--arch", "amdgpu", "--processor", "gfx90a", "--expr", "lit8; lit5; LLVM_form_aspace_address",
			"--lane", "3", "--mem", "private_wave:0x20c=78563412", "--read", "32"}, 0,
			`{"kind":"location","places":[{"storage":"memory","space":"private_lane","address":"0x8","thread":"1","frame":0,"lane":3,"bit_offset":0}],"read":"78563412"}`},
		{"the lane itself", []string{"--arch", "amdgpu", "--expr", "LLVM_push_lane", "--lane", "7", "--processor", "gfx1030"}, 0,
			`{"kind":"value","value":{"type":"generic","hex":"0x7"}}`},
		{"bits from the wave's entry", []string{"--arch", "amdgpu", "--processor", "gfx90a", "--reg", "EXEC=0x1",
			"--expr", "LLVM_call_frame_entry_reg EXEC; deref_size 8"}, 0,
			`{"kind":"value","value":{"type":"generic","hex":"0x1"}}`},
		{"a composite", []string{"--arch", "x86_64", "--expr", "reg0; piece 4; piece 2", "--reg", "rax=0x1122334455667788"}, 0,
			`{"kind":"location","places":[{"storage":"composite","bit_offset":0,"parts":[` +
				`{"bits":32,"places":[{"storage":"register","register":"rax","thread":"1","frame":0,"bit_offset":0}]},` +
				`{"bits":16,"places":[{"storage":"undefined"}]}]}]}`},
		{"a trace", []string{"--arch", "x86_64", "--expr", "lit1; dup", "--trace"}, 0,
			`{"kind":"value","value":{"type":"generic","hex":"0x1"},"trace":[` +
				`{"offset":0,"op":"DW_OP_lit1","stack":["0x1"]},{"offset":1,"op":"DW_OP_dup","stack":["0x1","0x1"]}]}`},

		{"names of DWARF 6", []string{"--arch", "x86_64", "--expr", "DW_OP_composite; reg0; lit2; DW_OP_offset; piece 2", "--reg", "rax=0x1122334455667788", "--read", "16"}, 0,
			`{"kind":"location","places":[{"storage":"composite","bit_offset":0,"parts":[` +
				`{"bits":16,"places":[{"storage":"register","register":"rax","thread":"1","frame":0,"bit_offset":16}]}]}],"read":"6655"}`},
		{"a branch that is not taken", []string{"--arch", "x86_64", "--expr", "lit0; bra 1000; lit7"}, 0,
			`{"kind":"value","value":{"type":"generic","hex":"0x7"}}`},

		{"a branch out of the expression", []string{"--arch", "x86_64", "--expr", "lit1; bra 1000; lit7"}, 1,
			`{"error":{"kind":"ill-formed","offset":1,"op":"DW_OP_bra"}}`},
		{"a lane beyond the lanes", []string{"--arch", "amdgpu", "--processor", "gfx90a", "--expr", "LLVM_push_lane", "--lane", "64"}, 1,
			`{"error":{"kind":"ill-formed","offset":0,"op":"DW_OP_LLVM_push_lane"}}`},
		{"an empty stack", []string{"--arch", "x86_64", "--expr", "lit1; plus"}, 1,
			`{"error":{"kind":"ill-formed","offset":1,"op":"DW_OP_plus"}}`},
		{"division by zero", []string{"--arch", "x86_64", "--expr", "lit1; lit0; div"}, 1,
			`{"error":{"kind":"evaluation","offset":2,"op":"DW_OP_div"}}`},
		{"a lane that was not given", []string{"--arch", "amdgpu", "--expr", "LLVM_push_lane"}, 1,
			`{"error":{"kind":"evaluation","offset":0,"op":"DW_OP_LLVM_push_lane"}}`},
		{"memory that was not given", []string{"--arch", "x86_64", "--expr", "lit16; deref"}, 1,
			`{"error":{"kind":"evaluation","offset":1,"op":"DW_OP_deref"}}`},
		{"a register that was not given", []string{"--arch", "x86_64", "--expr", "reg3", "--read", "64"}, 1,
			`{"error":{"kind":"evaluation","offset":0}}`},
		{"no operation of that name", []string{"--arch", "x86_64", "--expr", "DW_OP_fly"}, 1,
			`{"error":{"kind":"ill-formed","offset":0}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, status := unwindd(t, append([]string{"eval", "--format", "json", "--in-process"}, c.args...)...)
			if status != c.status {
				t.Errorf("status %d, expected %d: %s", status, c.status, stderr)
			}
			var got, want report.Evaluation
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
			}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if got.Error != nil {
				if got.Error.Reason == "" || stderr == "" {
					t.Errorf("no reason in %s, or on standard error", stdout)
				}
				got.Error.Reason = ""
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestEvalOfSharedParts is about four levels of a thousand uses each of what is
// below.
func TestEvalOfSharedParts(t *testing.T) {
	expr := "regx SGPR3" + strings.Repeat("; LLVM_extend 32, 1000", 4)
	for _, args := range [][]string{{}, {"--trace"}, {"--format", "json"}, {"--format", "json", "--trace"}} {
		stdout, stderr, status := unwindd(t, append([]string{"eval", "--in-process", "--arch", "amdgpu", "--wave", "64", "--expr", expr}, args...)...)
		if status != 0 || len(stdout) > 16<<20 || !strings.Contains(stdout, "999 parts more") && !strings.Contains(stdout, `"more_parts": 999`) {
			t.Errorf("%v: status %d, %d bytes: %s", args, status, len(stdout), stderr)
		}
	}
}

// A thread of a snapshot needs no PC, and no more registers than are read.
func TestEvalInASnapshotWithoutPC(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.zip")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, content := range map[string]string{
		"snapshot.json": `{"format_version":1,"modules":[],"threads":[
			{"id":"7","arch":"x86_64","registers":{"rsp":"0x1000","rax":"0x2a"}},
			{"id":"8","arch":"x86_64"},
			{"id":"9","arch":"amdgpu","processor":"gfx90a","registers":{"EXEC":"0x5"}}],
			"memory":[{"file":"memory/0.bin","space":"global","address":"0x1008"}]}`,
		"memory/0.bin": "\x11\x22\x33\x44",
	} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		args   string
		status int
		want   string // in the output
	}{
		{"a register", "--arch x86_64 --thread 7 --expr reg0 --read 64", 0, `"read":"2a00000000000000"`},
		{"memory by a register", "--arch x86_64 --thread 7 --expr breg7,8 --read 32", 0, `"read":"11223344"`},
		{"neither", "--arch x86_64 --thread 8 --expr lit5", 0, `"address":"0x5"`},
		{"another architecture", "--arch amdgpu --thread 9 --expr regx,EXEC --read 64", 0, `"read":"0500000000000000"`},
		{"a register that is not there", "--arch x86_64 --thread 8 --expr breg7,8", 1, "rsp"},
		{"a CFA that no row says", "--arch x86_64 --thread 7 --expr call_frame_cfa", 1, "CFA of a call frame: not in the evaluation context"},
		{"a caller", "--arch x86_64 --thread 7 --frame 1 --expr lit5", 1, "no such frame: 1, the target does not say the thread's PC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := strings.Fields(c.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], ",", " ")
			}
			stdout, stderr, status := unwindd(t, append([]string{"eval", "--format", "json", "--in-process", "--snapshot", path, "--kind", "location"}, args...)...)
			if out := strings.Join(strings.Fields(stdout), "") + stderr; status != c.status || !strings.Contains(out, c.want) {
				t.Errorf("status %d, expected %d, %s, expected %s", status, c.status, out, c.want)
			}
		})
	}
	// Without a PC there is no stack, and that is why.
	stdout, stderr, status := unwindd(t, "stack", "--format", "json", "--in-process", path)
	if status != 0 || strings.Count(stdout, `"frames": []`)+strings.Count(stdout, `"frames":[]`) != 3 || !strings.Contains(stdout, "rip") {
		t.Errorf("stack: status %d: %s\n%s", status, stderr, stdout)
	}
}

func TestEvalUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--expr", "lit1"}, {"--arch", "x86_64"}, {"--arch", "x86_64", "--expr", "", "--kind", "thing"},
		{"--arch", "x86_64", "--expr", "", "--reg", "rsp"}, {"--arch", "x86_64", "--expr", "", "--reg", "nope=1"},
		{"--arch", "x86_64", "--expr", "", "--mem", "moon:0=00"}, {"--arch", "x86_64", "--expr", "", "--mem", "global:0=0"},
		{"--arch", "x86_64", "--expr", "", "--thread", "1"}, {"--arch", "amdgpu", "--expr", "", "--wave", "48"},
		{"--snapshot", serverCore, "--frame", "-1", "--var", "batch"}, {"--snapshot", serverCore, "--var", "batch", "--depth", "0"},
		{"--snapshot", serverCore, "--var", "batch", "--lane", "-2"}, {"--snapshot", serverCore, "--var", "batch["}, {"--var", "batch"},
		{"--arch", "amdgpu", "--expr", "", "--processor", "gfx90a", "--wave", "32"}, {"--arch", "amdgpu", "--expr", "", "--processor", "z80"},
	} {
		if stdout, stderr, status := unwindd(t, append([]string{"eval", "--in-process"}, args...)...); status != exitUsage || stdout != "" {
			t.Errorf("eval %v: status %d, %q, %s", args, status, stdout, stderr)
		}
	}
}

func TestDumpExpr(t *testing.T) {
	for _, c := range []struct{ arch, dialect, hex, want string }{
		{"x86_64", "", "770880003f1a3b2a332422", ""},
		{"x86_64", "", "7708", "DW_OP_breg7 8"},
		{"amdgpu", "llvm-legacy", "90800ce414", "DW_OP_regx 1536; DW_OP_LLVM_offset_uconst 20"},
		{"amdgpu", "llvm-user", "90800ce90514", "DW_OP_regx 1536; DW_OP_LLVM_offset_uconst 20"},
		{"visa", "intel", "ed", "DW_OP_INTEL_push_simd_lane"},
	} {
		args := []string{"dump", "expr", "--in-process", "--arch", c.arch, "--hex", c.hex}
		if c.dialect != "" {
			args = append(args, "--dialect", c.dialect)
		}
		stdout, stderr, status := unwindd(t, args...)
		if status != 0 || c.want != "" && strings.TrimSpace(stdout) != c.want {
			t.Errorf("%v: status %d, %q, expected %q: %s", args, status, stdout, c.want, stderr)
		}
	}
	stdout, stderr, status := unwindd(t, "dump", "expr", "--in-process", crashDir+"/server")
	if status != 0 || !strings.Contains(stdout, ".eh_frame") || !strings.Contains(stdout, "DW_AT_frame_base") {
		t.Errorf("dump expr FILE: status %d: %s\n%.500s", status, stderr, stdout)
	}
	if _, stderr, status = unwindd(t, "dump", "expr", "--arch", "x86_64", "--hex", "ff"); status != exitInput {
		t.Errorf("bytes that are no expression: status %d: %s", status, stderr)
	}
}
