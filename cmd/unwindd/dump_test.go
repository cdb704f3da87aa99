// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

// TestDumpIsStreamed has a library whose rows as JSON are 100 MB.
func TestDumpIsStreamed(t *testing.T) {
	proof.Only(t)
	libraries, _ := filepath.Glob("/usr/lib/*/libLLVM*.so*")
	if len(libraries) == 0 {
		oracle.Missing(t, "no libLLVM is installed")
	}
	cmd := command("dump", "rows", "--format", "json", libraries[0])
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	most := oracle.PeakMemory(cmd.ProcessState)
	t.Logf("%d KiB resident at most, in %v", most, cmd.ProcessState.UserTime())
	if most == 0 || most > 128<<10 {
		t.Errorf("%d KiB resident, expected at most 128 MiB", most)
	}
}

func TestRowsWithoutCallFrameInformation(t *testing.T) {
	oracle.Tools(t, "objcopy", "gcc")
	path := filepath.Join(t.TempDir(), "none.o")
	source := filepath.Join(t.TempDir(), "none.c")
	if err := os.WriteFile(source, []byte("int x;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "gcc", "-c", "-o", path, source)
	for _, what := range []string{"rows", "cfi"} {
		out, err := command("dump", what, "--format", "json", path).Output()
		var d map[string][]any
		if err != nil || json.Unmarshal(out, &d) != nil || len(d) != 2 || len(d["problems"]) != 0 || d["problems"] == nil {
			t.Errorf("dump %s: %v\n%s", what, err, out)
		}
		cmd := command("dump", what, path)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if out, err := cmd.Output(); err != nil || len(out) != 0 || !strings.Contains(stderr.String(), "no call frame information") {
			t.Errorf("dump %s: %v %q %q", what, err, out, stderr.String())
		}
	}
	if err := command("dump", "rows", source).Run(); err == nil || !strings.Contains(fmt.Sprint(err), "exit status 1") {
		t.Errorf("dump rows of a text: %v", err)
	}
}

func TestFilesThatAreNoStreams(t *testing.T) {
	for _, c := range []struct{ bytes, want string }{
		{"\x7fELF\x02", "f: vISA stream+0x0: magic_number: 7f 45 4c 46, expected 0xdeadd010: this is an ELF file; the compiler writes the stream to a file of its own, KERNEL.dbg\n"},
		{"CTNI\x01", "magic_number: 43 54 4e 49, expected 0xdeadd010: this is a container of ELF files; the"},
		{"no", "f: vISA stream+0x0: magic_number: 6e 6f, expected 0xdeadd010\n"},
		{"\x10\xd0\xad\xde\x01\x00", "f: vISA stream+0x6: objects: 1 of at least 29 bytes each, expected no more than the 0 bytes that are left in the stream\n"},
		{"", "f: file is empty"},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(c.bytes), 0o644); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, status := unwindd(t, "dump", "visa", path)
		if status != 1 || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: status %d, %q %q, want %q", c.bytes, status, stdout, stderr, c.want)
		}
	}
}

func TestNotesOfFilesThatHaveNone(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	bundle := "../../engine/object/testdata/bundles/v3.hipfb"
	for _, c := range []struct{ path, want string }{
		{text, "not an ELF file"},
		{filepath.Join(dir, "none"), "no such file"},
		{dir, "not a regular file"},
		{bundle + "#gfx9", "no such code object in the file"},
		{bundle + "#0", "has no bytes"},
	} {
		stdout, stderr, status := unwindd(t, "dump", "notes", c.path)
		if status != 1 || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, %q, want %q", c.path, status, stderr, c.want)
		}
	}
	if _, stderr, status := unwindd(t, "dump", "rows", bundle); status != 1 || !strings.Contains(stderr, "an offload bundle: name a code object in it") {
		t.Errorf("status %d, %q", status, stderr)
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

// TestDumpsOfWhatCannotBeRead: a file of whose entries not one could be read is an error.
func TestDumpsOfWhatCannotBeRead(t *testing.T) {
	for _, what := range []string{"rows", "cfi", "expr"} {
		for format, count := range map[string]int{"text": 2, "json": 0} {
			_, stderr, status := unwindd(t, "dump", what, "--format", format, "../../engine/report/testdata/unrelocated.o")
			if status != exitInput || strings.Count(stderr, "is not known") != count || !strings.Contains(stderr, "could be read") {
				t.Errorf("dump %s as %s: status %d: %s", what, format, status, stderr)
			}
		}
	}
}

// TestDumpLines has rows of inlined calls with their PTX, and rows of a file with addresses.
func TestDumpLines(t *testing.T) {
	for path, want := range map[string]string{
		"../../engine/internal/symbol/dwarf/testdata/cubin/sum75.cubin": `.text._Z5oftenPii
0x0060-0x0070  /src/kernels/sum.cuh:1 square(int) <- /src/kernels/sum.cuh:2 int clamp<int>(int, int) <- /src/kernels/sum.cu:20 often(int*, int)
  0x0060  PTX 239: mad.lo.s32 \t%r3, %r2, %r2, 1;
`,
		"../../engine/internal/symbol/dwarf/testdata/small5": "0x4000b5-0x4000ba  /src/small.cc:9:45 outer::twice(int) <- /src/small.cc:11:26 outer::mix <- /src/small.cc:14:68 outer::c_name\n",
	} {
		out, err := command("dump", "lines", path).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, out)
		}
		for line := range strings.Lines(want) {
			if !strings.Contains(string(out), line) {
				t.Errorf("%s: no line %q in\n%.1000s", path, line, out)
			}
		}
		out, err = command("dump", "lines", "--format", "json", path).Output()
		var rows struct {
			Rows     []map[string]any
			Problems []string
		}
		if err != nil || json.Unmarshal(out, &rows) != nil || len(rows.Rows) < 10 || len(rows.Problems) > 0 {
			t.Errorf("%s: %v, %d rows, problems %q", path, err, len(rows.Rows), rows.Problems)
		}
	}
	cmd := command("dump", "lines", filepath.Join(t.TempDir(), "none"))
	if err := cmd.Run(); err == nil {
		t.Error("a file that is not there has lines")
	}
}
