// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
	"github.com/unwindd/unwindd/plugins/amdgpu"
)

// dumpedNotes are the notes of a file as JSON has them.
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
	n := openNotes(t, path)
	if n.Object != nil {
		if _, d := described(t, path); d != nil {
			n.Describe(d)
		}
	}
	var d dumpedNotes
	readJSON(t, n.WriteJSON, &d)
	return &d
}

// openNotes opens the notes of a file until the test ends.
func openNotes(t *testing.T, path string) *report.Notes {
	t.Helper()
	n, err := report.OpenNotes(path, kernelFiles{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	n.Problem = func(err error) { t.Error(err) }
	n.Decode = func(owner string, kind uint32, data []byte) (any, error) {
		if owner != amdgpu.MetadataOwner || kind != amdgpu.MetadataNote {
			return nil, nil
		}
		return amdgpu.DecodeMetadata(data)
	}
	return n
}

// noteLine is a note in the output of llvm-readelf.
var noteLine = regexp.MustCompile(`(?m)^  (\S+) +0x([0-9a-f]{8})\t(?:(NT_\w+)|Unknown note type: \(0x([0-9a-f]+)\))`)

// TestNotesAsLLVMListsThem holds owner, size and type of every note of a file
// against the notes by llvm-readelf, in their order. Types that it does not know have
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

// llvmHeader is the content of the header as llvm-readelf prints it: the version of
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

// writtenAs is all that is written of a code object, as text.
func writtenAs(t *testing.T, path string) (all map[string]string) {
	t.Helper()
	o, d := described(t, path)
	expressions, err := report.NewObjectExpressions(o, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	problem := func(err error) { t.Error(err) }
	c := callFrames(t, path)
	c.Problem = problem
	n := openNotes(t, path)
	n.Describe(d)
	all = map[string]string{}
	for name, write := range map[string]func(io.Writer) error{
		"notes": n.WriteText, "rows": c.WriteRowsText, "entries": c.WriteCFIText,
		"expressions": func(w io.Writer) error { return expressions.WriteText(w, problem) },
	} {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		all[name] = b.String()
	}
	return all
}

func TestCodeObjectsInsideFilesAreWrittenLikeTheFilesTheyWere(t *testing.T) {
	const objects = "../../plugins/amdgpu/testdata/"
	gfx1100, gfx90a := writtenAs(t, objects+"amd_k.gfx1100.co"), writtenAs(t, objects+"amd_h.gfx90a.co")
	for name, text := range gfx90a {
		if text == "" && name != "expressions" {
			t.Errorf("no %s", name)
		}
	}
	position := symbolized(t, objects+"amd_h.gfx90a.co", "0x1640")
	for _, bundle := range []string{"plain", "v2", "v3"} {
		bundle = "../object/testdata/bundles/" + bundle + ".hipfb"
		for _, file := range []string{bundle, fatBinary(t, bundle)} {
			d := dumpNotes(t, file)
			if len(d.Nested) != 3 || len(d.Problems) > 0 {
				t.Fatalf("%s: %+v", file, d)
			}
			n := d.Nested[1]
			if n.Kind != "hipv4" || n.Triple != "amdgcn-amd-amdhsa" || n.Processor != "gfx1100" || n.Size != 12904 || n.Index != 1 || (n.Section == "") != (file == bundle) {
				t.Errorf("%s: %+v", file, n)
			}
			for name, want := range map[string]map[string]string{"gfx1100": gfx1100, "2": gfx90a, "gfx90a": gfx90a} {
				if diff := cmp.Diff(want, writtenAs(t, file+"#"+name)); diff != "" {
					t.Errorf("%s#%s: %s", file, name, diff)
				}
			}
			if got := symbolized(t, file+"#gfx90a", "0x1640"); got != position || !strings.Contains(got, "amd_h.hip:") {
				t.Errorf("%s: %s, expected %s", file, got, position)
			}
		}
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

// symbolized is the text of addresses of a file.
func symbolized(t *testing.T, path string, addresses ...string) string {
	t.Helper()
	s := symbolize.New(symbolize.Options{Formats: kernelFiles{}})
	defer s.Close()
	session := symbolize.Session{Symbolizer: s, Object: path, Inlines: true, Output: symbolize.WriterOptions{Demangle: true}}
	var b strings.Builder
	if err := session.Run(&b, addresses, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// addressesOfFunctions are the addresses of every fourth byte of each function.
func addressesOfFunctions(t *testing.T, path string) (list []string) {
	t.Helper()
	functions, _ := subject.DeviceFunctions(t, path)
	for _, s := range functions {
		for a := s.Value; a < s.Value+s.Size; a += 4 {
			list = append(list, fmt.Sprintf("%#x", a))
		}
	}
	return list
}

// TestProgramsWithDeviceCode writes and symbolizes the code objects inside of programs that
// clang has linked, in bundles, in compressed ones, and in those that its linker wrapper
// makes: as the files that clang-offload-bundler takes out.
func TestProgramsWithDeviceCode(t *testing.T) {
	long(t)
	oracle.Tools(t, "objcopy", "llvm-symbolizer-22")
	for _, flags := range [][]string{nil, {"--offload-compress"}, {"--offload-new-driver"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			program := subject.BuildHIP(t, flags...)
			in := oracle.With{Dir: filepath.Dir(program)}
			in.Run(t, "objcopy", "--dump-section", ".hip_fatbin=bundle", program, "rest")
			d := dumpNotes(t, program)
			if len(d.Nested) != 3 || len(d.Problems) > 0 {
				t.Fatalf("%d code objects, problems %q", len(d.Nested), d.Problems)
			}
			compared := 0
			for _, n := range d.Nested {
				if n.Kind == "host" {
					continue
				}
				compared++
				file := filepath.Join(in.Dir, n.Processor+".co")
				in.Run(t, "clang-offload-bundler-22", "-unbundle", "-type=o", "-input=bundle", "-targets="+n.ID, "-output="+file)
				if info, err := os.Stat(file); err != nil || info.Size() != int64(n.Size) {
					t.Fatalf("%s of %d bytes: clang-offload-bundler takes out %v, %v", n.ID, n.Size, info, err)
				}
				want := writtenAs(t, file)
				if diff := cmp.Diff(want, writtenAs(t, program+"#"+n.Processor)); diff != "" {
					t.Errorf("%s: %.4000s", n.ID, diff)
				}
				for name, text := range want {
					if text == "" {
						t.Errorf("%s: no %s", n.ID, name)
					}
				}
				addresses := addressesOfFunctions(t, file)
				theirs := oracle.Run(t, "llvm-symbolizer-22", append([]string{"-e", file}, addresses...)...)
				if ours := symbolized(t, program+"#"+n.Processor, addresses...); ours != theirs || !strings.Contains(ours, "shapes.hip:") {
					t.Errorf("%s:\n%.2000s, of llvm-symbolizer\n%.2000s", n.ID, ours, theirs)
				}
			}
			if compared != 2 {
				t.Errorf("%d code objects for processors: %+v", compared, d.Nested)
			}
		})
	}
}
