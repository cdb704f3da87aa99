// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// Wherever a kernel's code is, a thread at its beginning is in the kernel; nothing
// called it, where the file says as much.
func TestSnapshotsOfKernelsInEveryFormOfFile(t *testing.T) {
	t.Parallel()
	files := subject.BuildIntel(t)
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	elf := read(files.ELF[1])
	stream := read(strings.TrimSuffix(files.ELF[1], ".elf") + ".dbg")
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
		{"a container", "two.dbg#beta", map[string][]byte{"two.dbg": read(files.Container)}, []map[string]string{segment("", "0x20000")}, "beta", "the function is a kernel"},
		{"a zebin", "two.zebin", map[string][]byte{"two.zebin": read(files.Zebin)},
			[]map[string]string{segment(".text.alpha", "0x30000"), segment(".text.beta", "0x20000")}, "beta", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(map[string]any{
				"format_version": 1,
				"modules":        []any{map[string]any{"path": "k", "arch": "visa", "processor": "tgllp", "file": c.file, "segments": c.segments}},
				"threads":        []any{map[string]any{"id": "1", "arch": "visa", "processor": "tgllp", "registers": map[string]string{"IP": "0x20010", "EMask": "0xff"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			c.members["snapshot.json"] = text
			th := &enginetest.Report(t, archive(t, c.members)).Threads[0]
			if len(th.Frames) != 1 || th.Frames[0].Function != c.function || th.Frames[0].ModuleOffset != "0x10" {
				t.Errorf("frames %+v, expected one in %s", th.Frames, c.function)
			}
			if outermost := th.Stopped.Reason == "outermost"; outermost != (c.stopped != "") || outermost && th.Stopped.Detail != c.stopped {
				t.Errorf("stopped: %+v", th.Stopped)
			}
		})
	}
}

// A snapshot of a zebin without DWARF names the assembly that its code was made
// from: that has the lines, and the SPIR-V in the zebin the calls that were inlined.
func TestStackOfCodeWhoseSourceModuleIsInTheSnapshot(t *testing.T) {
	t.Parallel()
	oracle.Tools(t, "ocloc")
	dir := t.TempDir()
	source, err := filepath.Abs("testdata/visa/inline.cl")
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
	// A thread stands at every place of the beginning of the code.
	made := func(members map[string][]byte, more map[string]any) string {
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
		return archive(t, members)
	}
	oneFrame := func(a *enginetest.Ask) { a.Stack.MaxFrames = new(uint32(1)) }
	whole := enginetest.Report(t, made(map[string][]byte{"objects/k.elf": zebin}, nil), oneFrame)
	cut := map[string][]byte{
		"objects/k.elf": bytes.ReplaceAll(zebin, []byte(".debug_"), []byte(".other_")), "objects/k.dbg": stream, "internal/source/k.visaasm": assembly,
	}
	named := map[string]any{"source_module": "internal/source/k.visaasm"}
	got := enginetest.Report(t, made(cut, named), oneFrame)
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
		isSame := func(a, b report.Frame) bool {
			return a.Function == b.Function && a.File == b.File && a.Line == b.Line && a.Inlined == b.Inlined
		}
		if !slices.EqualFunc(g, w, isSame) {
			t.Errorf("%+v, DWARF has %+v", g, w)
		}
	}
	if chains == 0 || got.Modules[0].Problem != "" {
		t.Errorf("%d chains, problem %q", chains, got.Modules[0].Problem)
	}
	if out := enginetest.Text(t, made(cut, named), oneFrame); !strings.Contains(out, "(a guess, by source module)") {
		t.Error(out)
	}
	for source, expected := range map[string]string{
		"kernel":             "source module: expected SPIR-V, LLVM IR or vISA assembly",
		"BC\xc0\xde\x35\x14": "source module: LLVM bitcode, expected LLVM IR as text: llvm-dis writes it, `llvm-dis FILE -o FILE.ll`",
	} {
		cut["internal/source/k.visaasm"] = []byte(source)
		got = enginetest.Report(t, made(cut, named), oneFrame)
		if p := got.Modules[0].Problem; p != expected || got.Threads[0].Frames[0].Line != 0 {
			t.Errorf("problem %q, expected %q", p, expected)
		}
	}
}
