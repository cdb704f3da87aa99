// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	callsModule   = "../../engine/internal/symbol/spirv/testdata/calls.spv"
	inlinedModule = "../../engine/internal/symbol/llvmir/testdata/inlined.ll"
)

// TestFilesOfIR runs each command once: what is printed is for other packages to test.
func TestFilesOfIR(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"dump", "spirv", callsModule}, "\n\nsources\n  /example/calls.cl, MD5:"},
		{[]string{"dump", "spirv", "--format", "json", callsModule}, `"format":"spirv"`},
		{[]string{"dump", "llvmir", inlinedModule}, "\n\nsources\n  /src/ir_a.c, MD5:2c4510559eae58b103ced671ce3f308f\n"},
		{[]string{"symbolize", "--obj", callsModule, "--output-style", "gnu", "calls+66"}, "middle\n/example/calls.cl:10\n"},
		{[]string{"symbolize", "--obj", inlinedModule, "--functions", "short", "-s", "-p", "f%13"}, "inl at ir_a.c:2:60\n (inlined by) f at ir_a.c:3:80\n"},
	} {
		if stdout, stderr, status := unwindd(t, c.args...); status != exitDone || stderr != "" || !strings.Contains(stdout, c.want) {
			t.Errorf("%v: status %d, %s\n%s", c.args, status, stderr, stdout)
		}
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
		{[]string{"dump", "spirv", inlinedModule}, 1, "inlined.ll: a llvmir file, expected spirv"},
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
