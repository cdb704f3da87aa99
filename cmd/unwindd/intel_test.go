// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// intelFiles are what Intel's compiler writes for two kernels: the container of
// their debug information, the ELF files that it dumped of each kernel, in order,
// with streams beside them, and a zebin.
type intelFiles struct {
	container, zebin string
	elf              []string
}

func compileIntel(t *testing.T) intelFiles {
	t.Helper()
	oracle.Tools(t, "ocloc")
	source, err := filepath.Abs("../../plugins/visa/testdata/two.cl")
	if err != nil {
		t.Fatal(err)
	}
	ocloc := []string{"ocloc", "compile", "-file", source, "-device", "tgllp", "-options", "-g", "-out_dir"}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
		append([]string{"sh", "-c", `IGC_ShaderDumpEnable=1 IGC_DumpToCustomDir="$PWD/" exec "$0" "$@"`}, append(ocloc, "debug")...),
		append(ocloc, "zebin", "--format", "zebin"),
	}}.Make(t)
	one := func(pattern string) []string {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		slices.Sort(found)
		return found
	}
	return intelFiles{container: one("debug/*.dbg")[0], zebin: one("zebin/*.bin")[0], elf: one("*_entry_*.elf")}
}

// The compiler's container has the files that it dumps of each kernel.
func TestKernelsInAContainerAreReadLikeFilesOfTheirOwn(t *testing.T) {
	files := compileIntel(t)
	out, stderr, status := unwindd(t, "dump", "notes", files.container)
	if status != 0 || !strings.HasPrefix(out, "container\n  #0 ") || !strings.Contains(out, "bytes  alpha\n") || !strings.Contains(out, "bytes  beta\n") {
		t.Errorf("%d %s\n%s", status, stderr, out)
	}
	if len(files.elf) != 2 {
		t.Fatalf("%q, expected two", files.elf)
	}
	for i, name := range []string{"alpha", "beta"} {
		for _, args := range [][]string{
			{"dump", "rows", "FILE", "--format", "json"},
			{"dump", "cfi", "FILE"},
			{"dump", "expr", "FILE"},
			{"symbolize", "--obj", "FILE", "0x0", "0x40", "0x100", "0x200", "0x300"},
		} {
			of := func(file string) string {
				args := slices.Clone(args)
				args[slices.Index(args, "FILE")] = file
				out, stderr, status := unwindd(t, args...)
				if status != 0 || stderr != "" {
					t.Errorf("%q: %d %s", args, status, stderr)
				}
				return out
			}
			inside, alone := of(files.container+"#"+name), of(files.elf[i])
			if inside != alone || len(inside) < 20 {
				t.Errorf("%q of %s:\n%s\nof the file:\n%s", args, name, inside, alone)
			}
		}
	}
	for file, says := range map[string]string{
		files.container: "but a file that holds code objects: name a code object in it",
		strings.TrimSuffix(files.elf[0], ".elf") + ".dbg": "not an ELF file",
		files.container + "#gamma":                        "no such code object in the file",
	} {
		if _, stderr, status := unwindd(t, "dump", "rows", file); status != 1 || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d %q, expected %q", file, status, stderr, says)
		}
	}
}

// Wherever a kernel's code is, a thread at its beginning is in the kernel; nothing
// called it, where the file says as much.
func TestSnapshotsOfKernelsInEveryFormOfFile(t *testing.T) {
	files := compileIntel(t)
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	elf := read(files.elf[1])
	stream := read(strings.TrimSuffix(files.elf[1], ".elf") + ".dbg")
	segment := func(section, start string) map[string]string {
		return map[string]string{"section": section, "address": "0x0", "size": "0x400", "start": start}
	}
	for _, c := range []struct {
		name     string
		file     string
		members  map[string][]byte
		segments []map[string]string
		function string
		stopped  string // the detail; "": not known, as code that calls might be in a subroutine
	}{
		{"an ELF file", "objects/k.elf", map[string][]byte{"objects/k.elf": elf}, []map[string]string{segment("", "0x20000")}, "beta", "the function is a kernel"},
		{"an ELF file with its stream", "objects/k.elf", map[string][]byte{"objects/k.elf": elf, "objects/k.dbg": stream}, []map[string]string{segment("", "0x20000")}, "beta", "beta is a kernel"},
		{"a stream", "objects/k.dbg", map[string][]byte{"objects/k.dbg": stream}, []map[string]string{segment("", "0x20000")}, "beta", "beta is a kernel"},
		{"a container", "two.dbg#beta", map[string][]byte{"two.dbg": read(files.container)}, []map[string]string{segment("", "0x20000")}, "beta", "the function is a kernel"},
		{"a zebin", "two.zebin", map[string][]byte{"two.zebin": read(files.zebin)},
			[]map[string]string{segment(".text.alpha", "0x30000"), segment(".text.beta", "0x20000")}, "beta", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := json.Marshal(map[string]any{
				"format_version": 1,
				"modules":        []any{map[string]any{"path": "k", "arch": "visa", "processor": "tgllp", "file": c.file, "segments": c.segments}},
				"threads":        []any{map[string]any{"id": "1", "arch": "visa", "processor": "tgllp", "registers": map[string]string{"IP": "0x20010", "EMask": "0xff"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			c.members["snapshot.json"] = text
			out, stderr, status := unwindd(t, "stack", archive(t, c.members), "--format", "json")
			var got struct {
				Threads []struct {
					Frames []struct {
						Function     string `json:"function"`
						ModuleOffset string `json:"module_offset"`
					} `json:"frames"`
					Stopped struct{ Reason, Detail string } `json:"stopped"`
				} `json:"threads"`
			}
			if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 || len(got.Threads) != 1 {
				t.Fatalf("%d %v %s\n%s", status, err, stderr, out)
			}
			th := got.Threads[0]
			if len(th.Frames) != 1 || th.Frames[0].Function != c.function || th.Frames[0].ModuleOffset != "0x10" {
				t.Errorf("frames %+v, expected one in %s", th.Frames, c.function)
			}
			if outermost := th.Stopped.Reason == "outermost"; outermost != (c.stopped != "") || outermost && th.Stopped.Detail != c.stopped {
				t.Errorf("stopped: %+v\n%s", th.Stopped, out)
			}
		})
	}
}

// A snapshot of a zebin without DWARF names the assembly that its code was made
// from: that has the lines, and the SPIR-V in the zebin the calls that were inlined.
func TestStackOfCodeWhoseSourceModuleIsInTheSnapshot(t *testing.T) {
	oracle.Tools(t, "ocloc")
	dir := t.TempDir()
	source, err := filepath.Abs("../../engine/testdata/visa/inline.cl")
	if err != nil {
		t.Fatal(err)
	}
	oracle.With{Dir: dir, Env: []string{"IGC_ShaderDumpEnable=1", "IGC_DumpToCustomDir=" + dir + "/"}}.Run(t, "ocloc", "compile", "-file", source, "-device", "tgllp", "--format", "zebin", "-options", "-g", "-out_dir", filepath.Join(dir, "zebin"))
	one := func(pattern string) []byte {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		b, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	zebin, stream, assembly := one("zebin/*.bin"), one("*_entry_0001.dbg"), one("*.visaasm")
	type frame struct {
		Function  string `json:"function"`
		File      string `json:"file"`
		Line      int    `json:"line"`
		Inlined   bool   `json:"inlined"`
		LineFrom  string `json:"line_from"`
		ScopeFrom string `json:"scope_from"`
	}
	type report struct {
		Modules []struct {
			Problem string `json:"problem"`
		} `json:"modules"`
		Threads []struct {
			Frames []frame `json:"frames"`
		} `json:"threads"`
	}
	// A thread stands at every place of the beginning of the code.
	stack := func(members map[string][]byte, more map[string]any, args ...string) (string, report) {
		t.Helper()
		module := map[string]any{
			"path": "k", "arch": "visa", "processor": "tgllp", "file": "objects/k.elf",
			"segments": []any{map[string]string{"section": ".text.k", "address": "0x0", "size": "0x1000", "start": "0x20000"}},
		}
		for k, v := range more {
			module[k] = v
		}
		var threads []any
		for at := 0; at < 0x200; at += 8 {
			threads = append(threads, map[string]any{
				"id": fmt.Sprint(at), "arch": "visa", "processor": "tgllp", "registers": map[string]string{"IP": fmt.Sprintf("%#x", 0x20000+at), "EMask": "0xff"},
			})
		}
		text, err := json.Marshal(map[string]any{"format_version": 1, "modules": []any{module}, "threads": threads})
		if err != nil {
			t.Fatal(err)
		}
		members["snapshot.json"] = text
		out, stderr, status := unwindd(t, append([]string{"stack", archive(t, members), "--max-frames", "1"}, args...)...)
		if status != 0 {
			t.Fatalf("%d %s", status, stderr)
		}
		var r report
		if len(args) > 0 {
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatal(err)
			}
		}
		return out, r
	}
	_, whole := stack(map[string][]byte{"objects/k.elf": zebin}, nil, "--format", "json")
	cut := map[string][]byte{
		"objects/k.elf": bytes.ReplaceAll(zebin, []byte(".debug_"), []byte(".other_")), "objects/k.dbg": stream, "source/k.visaasm": assembly,
	}
	named := map[string]any{"source_module": "source/k.visaasm"}
	_, got := stack(cut, named, "--format", "json")
	chains := 0
	for i := range got.Threads {
		g, w := got.Threads[i].Frames, whole.Threads[i].Frames
		if len(g) != 2 || g[0].Function != "clamped" {
			continue
		}
		chains++
		if g[0].LineFrom != "assembly" || g[0].ScopeFrom != "source-module" || g[1].LineFrom != "" || g[1].ScopeFrom != "source-module" {
			t.Errorf("%+v", g)
		}
		for j := range g {
			g[j].LineFrom, g[j].ScopeFrom = "", ""
		}
		if !slices.Equal(g, w) {
			t.Errorf("%+v, DWARF has %+v", g, w)
		}
	}
	if chains == 0 || got.Modules[0].Problem != "" {
		t.Errorf("%d chains, problem %q", chains, got.Modules[0].Problem)
	}
	if out, _ := stack(cut, named); !strings.Contains(out, "(a guess, by source module)") {
		t.Error(out)
	}
	for source, expected := range map[string]string{
		"kernel":             "source module: expected SPIR-V, LLVM IR or vISA assembly",
		"BC\xc0\xde\x35\x14": "source module: LLVM bitcode, expected LLVM IR as text: llvm-dis writes it, `llvm-dis FILE -o FILE.ll`",
	} {
		cut["source/k.visaasm"] = []byte(source)
		_, got = stack(cut, named, "--format", "json")
		if p := got.Modules[0].Problem; p != expected || got.Threads[0].Frames[0].Line != 0 {
			t.Errorf("problem %q, expected %q", p, expected)
		}
	}
}
