// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// dumpedNotes is what `dump notes --format json` prints.
type dumpedNotes struct {
	Type, Arch, Processor string
	BuildID               string `json:"build_id"`
	ABIVersion            int    `json:"abi_version"`
	Notes                 []struct {
		Section, Offset, Owner string
		Type                   uint32
		TypeName               string `json:"type_name"`
		Size                   int
		BuildID                string `json:"build_id"`
		Contents               any
	}
	Nested []struct {
		Index                   int
		ID, Kind, Triple        string
		Processor, Section      string
		Bundle, Packing, Offset string
		Size                    int
	}
	Problems []string
}

func dumpNotes(t *testing.T, path string) *dumpedNotes {
	t.Helper()
	stdout, stderr, status := unwindd(t, "dump", "notes", "--format", "json", path)
	if status != 0 {
		t.Fatalf("%s: status %d\n%s", path, status, stderr)
	}
	var d dumpedNotes
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// noteLine is a note in the output of llvm-readelf.
var noteLine = regexp.MustCompile(`(?m)^  (\S+) +0x([0-9a-f]{8})\t(?:(NT_\w+)|Unknown note type: \(0x([0-9a-f]+)\))`)

// TestNotesAsLLVMListsThem holds owner, size and type of every note of a file
// against those of llvm-readelf, in their order. Types that it does not know have
// their number.
func TestNotesAsLLVMListsThem(t *testing.T) {
	tool := llvm(t, "readelf")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := append(subject.CodeObjects(t), "../../examples/crash/server", "../../examples/crash/server.core", self)
	for _, pattern := range []string{"/lib/*-linux-gnu/libc.so.6", "/lib/*-linux-gnu/libstdc++.so.6", "/usr/bin/gdb"} {
		list, _ := filepath.Glob(pattern)
		files = append(files, list...)
	}
	named := 0
	for _, path := range files {
		out := oracle.Run(t, tool, "--notes", path)
		d := dumpNotes(t, path)
		if len(d.Problems) > 0 {
			t.Errorf("%s: %q", path, d.Problems)
		}
		var want, got []string
		for i, m := range noteLine.FindAllStringSubmatch(out, -1) {
			theirs := m[3]
			if theirs == "" {
				theirs = "0x" + strings.TrimLeft(m[4], "0")
			} else {
				named++
			}
			want = append(want, fmt.Sprint(strings.Trim(m[1], "\x00"), " ", m[2], " ", theirs))
			if i >= len(d.Notes) {
				continue
			}
			n := &d.Notes[i]
			ours := n.TypeName
			if m[3] == "" {
				ours = fmt.Sprintf("%#x", n.Type)
			}
			got = append(got, fmt.Sprintf("%s %08x %s", n.Owner, n.Size, ours))
		}
		if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 || len(want) != len(d.Notes) {
			t.Errorf("%s: %d notes, of llvm-readelf %d (-llvm +got)\n%s", path, len(d.Notes), len(want), diff)
		}
		if id := regexp.MustCompile(`Build ID: (\S+)`).FindStringSubmatch(out); id != nil && d.BuildID != id[1] {
			t.Errorf("%s: build ID %s, want %s", path, d.BuildID, id[1])
		}
	}
	if named < 20 {
		t.Errorf("llvm-readelf named %d types", named)
	}
}

// llvmHeader is what the header says, as llvm-readelf prints it: the version of
// the ABI and the processor.
var llvmHeader = regexp.MustCompile(`(?s)ABI Version: +(\d+)\n.*Flags: +0x[0-9a-f]+, ([^,\s]+)`)

// TestMetadataFieldByField holds the metadata of every code object, its processor
// and the version of its ABI against what llvm-readelf prints, the metadata as
// YAML.
func TestMetadataFieldByField(t *testing.T) {
	tool := llvm(t, "readelf")
	for _, path := range subject.CodeObjects(t) {
		out := oracle.Run(t, tool, "--file-header", "--notes", path)
		_, text, _ := strings.Cut(out, "---\n")
		text, _, ok := strings.Cut(text, "\n...")
		var want any
		if err := yaml.Unmarshal([]byte(text), &want); err != nil || !ok {
			t.Fatalf("%s: %v", path, err)
		}
		d := dumpNotes(t, path)
		// Both through JSON: its numbers have one type.
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if len(d.Notes) != 1 {
			t.Fatalf("%s: %d notes", path, len(d.Notes))
		}
		if diff := cmp.Diff(want, d.Notes[0].Contents); diff != "" {
			t.Errorf("%s (-llvm +got)\n%s", path, diff)
		}
		head := llvmHeader.FindStringSubmatch(out)
		if head == nil {
			t.Fatalf("llvm-readelf prints\n%.1000s", out)
		}
		if d.Arch != "amdgpu" || d.Processor != head[2] || fmt.Sprint(d.ABIVersion) != head[1] {
			t.Errorf("%s: %s %s, ABI version %d, of llvm-readelf %s, %s", path, d.Arch, d.Processor, d.ABIVersion, head[2], head[1])
		}
		if target := want.(map[string]any)["amdhsa.target"].(string); !strings.HasPrefix(strings.Replace(target, "-unknown-", "--", 1), "amdgcn-amd-amdhsa--"+d.Processor) { // LLVM 23 names the environment
			t.Errorf("%s: for %q; the metadata says %q", path, d.Processor, target)
		}
	}
}

// fatBinary is an executable of the host with a section .hip_fatbin, put there by
// objcopy.
func fatBinary(t *testing.T, bundle string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	oracle.Run(t, "objcopy", "--add-section", ".hip_fatbin="+bundle, "../../examples/crash/server", path)
	return path
}

func TestCodeObjectsInsideFilesAreDumpedLikeTheFilesTheyWere(t *testing.T) {
	long(t)
	const objects = "../../plugins/amdgpu/testdata/"
	printed := map[string]string{} // of the files that they were
	of := func(args ...string) string {
		key := strings.Join(args, " ")
		if _, ok := printed[key]; !ok {
			printed[key], _, _ = unwindd(t, args...)
		}
		return printed[key]
	}
	for _, bundle := range []string{"plain", "v2", "v3"} {
		bundle = "../../engine/object/testdata/bundles/" + bundle + ".hipfb"
		for _, file := range []string{bundle, fatBinary(t, bundle)} {
			d := dumpNotes(t, file)
			if len(d.Nested) != 3 || len(d.Problems) > 0 {
				t.Fatalf("%s: %+v", file, d)
			}
			n := d.Nested[1]
			if n.Kind != "hipv4" || n.Triple != "amdgcn-amd-amdhsa" || n.Processor != "gfx1100" || n.Size != 12904 || n.Index != 1 || (n.Section == "") != (file == bundle) {
				t.Errorf("%s: %+v", file, n)
			}
			want := of("symbolize", "--obj", objects+"amd_h.gfx90a.co", "0x1640")
			if got, stderr, status := unwindd(t, "symbolize", "--obj", file+"#gfx90a", "0x1640"); status != 0 || got != want || !strings.Contains(got, "amd_h.hip:") {
				t.Errorf("symbolize --obj %s#gfx90a: status %d, %s\n%s", file, status, stderr, cmp.Diff(want, got))
			}
			for name, original := range map[string]string{"gfx1100": "amd_k.gfx1100.co", "2": "amd_h.gfx90a.co"} {
				for _, what := range []string{"notes", "rows", "cfi", "expr"} {
					want := of("dump", what, objects+original)
					got, stderr, status := unwindd(t, "dump", what, file+"#"+name)
					if status != 0 || got != want || want == "" && what != "expr" {
						t.Errorf("dump %s %s#%s: status %d, %s\n%s", what, file, name, status, stderr, cmp.Diff(want, got))
					}
				}
			}
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

func TestABIVersionsOfCodeObjects(t *testing.T) {
	file, err := os.ReadFile("../../plugins/amdgpu/testdata/amd_k.gfx1100.co")
	if err != nil {
		t.Fatal(err)
	}
	for version := byte(1); version <= 4; version++ { // code objects of version 3 to 6
		file[elf.EI_ABIVERSION] = version
		path := filepath.Join(t.TempDir(), "code.co")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if d := dumpNotes(t, path); d.ABIVersion != int(version) || d.Processor != "gfx1100" || d.Notes[0].Contents == nil {
			t.Errorf("version %d: %+v", version, d)
		}
	}
}
