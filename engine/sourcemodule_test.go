// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/gen/genasm"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/sdk"
)

// withoutScopes is an object file whose DWARF has no inlined calls and no blocks:
// their entries have the tag of labels.
func withoutScopes(t *testing.T, data []byte) []byte {
	t.Helper()
	data = bytes.Clone(data)
	o, err := object.New("k", data)
	if err != nil {
		t.Fatal(err)
	}
	section := o.Section(".debug_abbrev")
	if section == nil {
		t.Fatal("no .debug_abbrev")
	}
	table := data[section.Offset : section.Offset+section.Size]
	patched := 0
	at := 0
	number := func() uint64 {
		v, n := binary.Uvarint(table[at:])
		at += n
		return v
	}
	for at < len(table) {
		if number() == 0 {
			continue
		}
		if tag := &table[at]; *tag == byte(dw.TagInlinedSubroutine) || *tag == byte(dw.TagLexicalBlock) {
			*tag = byte(dw.TagLabel)
			patched++
		}
		number()
		for at++; ; {
			attribute, form := number(), number()
			if form == uint64(dw.FormImplicitConst) {
				number()
			}
			if attribute == 0 && form == 0 {
				break
			}
		}
	}
	if patched == 0 {
		t.Fatal("nothing to patch")
	}
	return data
}

// withoutDWARF is an object file whose sections of debugging information have
// other names.
func withoutDWARF(data []byte) []byte {
	return bytes.ReplaceAll(data, []byte(".debug_"), []byte(".other_"))
}

// A genModule is code with what belongs to it.
type genModule struct {
	name   string
	data   []byte
	stream []byte // beside it; nil: none
	source []byte // nil: none
}

// genFrames are the functions at every place of the first section of code, eight
// bytes apart, and what was wrong.
func genFrames(t *testing.T, g genModule) (frames [][]trace.Symbol, problems []string) {
	t.Helper()
	o, err := object.New(g.name+".elf", g.data)
	if err != nil {
		t.Fatal(err)
	}
	m := &target.Module{Module: trace.Module{Path: o.Name(), Arch: "visa"}, Object: o}
	if g.stream != nil {
		m.Companion = func(suffix string) (string, []byte, error) {
			if suffix != ".dbg" {
				return "", nil, os.ErrNotExist
			}
			return g.name + suffix, g.stream, nil
		}
	}
	if g.source != nil {
		m.SourceModule = func() ([]byte, error) { return g.source, nil }
	}
	s := newState()
	for _, section := range o.Sections() {
		if !strings.HasPrefix(section.Name, ".text") || section.Size == 0 {
			continue
		}
		m.Segments = []trace.Segment{{Section: section.Name, Address: section.Address, Size: section.Size, Start: genBase, Executable: true}}
		for at := uint64(0); at < section.Size; at += 8 {
			th := &trace.Thread{Handle: at / 8, ID: fmt.Sprint(at), Arch: "visa", Processor: "tgllp"}
			th.Registers.Set(0, littleEndianBytes(genBase+at, 4))
			s.threads = append(s.threads, th)
		}
		break
	}
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{visa.New()}}, MaxFrames: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	tt := e.Attach(withModules{s, []*target.Module{m}})
	for _, th := range tt.Threads() {
		frames = append(frames, tt.Walk(context.Background(), th).Frames[0].Symbols)
	}
	return frames, tt.ModuleInfo(&m.Module).Problems
}

// sameChain reports whether two chains have the same frames. DWARF may leave the
// column of a call out.
func sameChain(a, dwarf []trace.Symbol) bool {
	if len(a) != len(dwarf) {
		return false
	}
	for i := range a {
		f, d := &a[i], &dwarf[i]
		if f.Function != d.Function || filepath.Clean(f.File) != filepath.Clean(d.File) || f.Line != d.Line || f.Inlined != d.Inlined ||
			d.Column != 0 && f.Column != 0 && f.Column != d.Column {
			return false
		}
	}
	return true
}

func readFile(t *testing.T, pattern string) []byte {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	var all []byte
	for _, path := range found {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

func show(f []trace.Symbol) string {
	var b strings.Builder
	for i := range f {
		fmt.Fprintf(&b, "%s %s:%d:%d inlined %v, ", f[i].Function, filepath.Base(f[i].File), f[i].Line, f[i].Column, f[i].Inlined)
	}
	return b.String()
}

// wantChains holds chains of a source module against those of DWARF. Places at
// which nothing was concluded have the one frame that there would be without the
// source module; these are counted.
func wantChains(t *testing.T, got, want [][]trace.Symbol) (chains, unknown int) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d places, expected %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		switch {
		case len(w) == 0:
			if len(g) != 0 {
				t.Errorf("place %d: %s", i, show(g))
			}
		case sameChain(g, w):
			if len(w) > 1 {
				chains++
			}
			for _, f := range g {
				if f.ScopeBySource != (len(g) > 1) {
					t.Errorf("place %d: %s of %s: marked %v", i, f.Function, show(g), f.ScopeBySource)
				}
			}
			if n := len(g) - 1; g[n].Start != w[n].Start || g[n].HasStart != w[n].HasStart {
				t.Errorf("place %d: start %#x %v, DWARF has %#x %v", i, g[n].Start, g[n].HasStart, w[n].Start, w[n].HasStart)
			}
		case len(g) == 1 && len(w) > 1 && g[0].Line == w[0].Line && g[0].Function == w[len(w)-1].Function && !g[0].ScopeBySource:
			unknown++
		default:
			t.Errorf("place %d: %s, DWARF has %s", i, show(g), show(w))
		}
	}
	return chains, unknown
}

// DWARF without inlined calls gets them from the SPIR-V, and they are those that
// DWARF had. Two calls of fold are of one function: which of them it is nothing
// says there.
func TestInlinedCallsOfSPIRVAreThoseOfDWARF(t *testing.T) {
	zebin, err := os.ReadFile(compileZebin(t, "tgllp", "testdata/visa/inline.cl"))
	if err != nil {
		t.Fatal(err)
	}
	dir := compileGen(t, "tgllp", "inline", "")
	elf, stream := readFile(t, dir+"/*_entry_0001.elf"), readFile(t, dir+"/*_entry_0001.dbg")
	ir := readFile(t, dir+"/*.spv")
	for _, c := range []struct {
		name       string
		whole, cut genModule
	}{
		{"in the object", genModule{name: "k", data: zebin}, genModule{name: "k", data: withoutScopes(t, zebin)}},
		{"beside it", genModule{name: "k", data: elf, stream: stream, source: ir}, genModule{name: "k", data: withoutScopes(t, elf), stream: stream, source: ir}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, _ := genFrames(t, c.whole)
			for _, frames := range want {
				for _, f := range frames {
					if f.ScopeBySource || f.LineByAssembly {
						t.Fatalf("DWARF has scopes, but they are taken from elsewhere: %s", show(frames))
					}
				}
			}
			got, problems := genFrames(t, c.cut)
			if len(problems) > 0 {
				t.Error(problems)
			}
			chains, unknown := wantChains(t, got, want)
			t.Logf("%d places: %d with inlined calls, %d where these are not known", len(got), chains, unknown)
			if chains < 4 || unknown == 0 || unknown > chains {
				t.Error("too few chains")
			}
		})
	}
}

// LLVM bitcode in a zebin is told, under either name of its section.
func TestBitcodeInAZebin(t *testing.T) {
	zebin, err := os.ReadFile(compileZebin(t, "tgllp", "testdata/visa/inline.cl"))
	if err != nil {
		t.Fatal(err)
	}
	data := withoutScopes(t, zebin)
	o, err := object.New("k", data)
	if err != nil {
		t.Fatal(err)
	}
	copy(data[o.Section(".spv").Offset:], "BC\xc0\xde")
	for name, data := range map[string][]byte{".spv": data, ".llvm": bytes.Replace(data, []byte("\x00.spv\x00"), []byte("\x00.llvm"), 1)} {
		if name == ".llvm" { // its name ends where the next one begins
			i := bytes.Index(data, []byte("\x00.llvm"))
			data[i+len("\x00.llvm")] = 0
		}
		_, problems := genFrames(t, genModule{name: "k", data: data})
		if text := strings.Join(problems, "\n"); !strings.Contains(text, "k.elf: "+name+": LLVM bitcode") || !strings.Contains(text, "llvm-dis") {
			t.Errorf("%s: problems %q", name, text)
		}
	}
}

// The same of LLVM IR, as the frontend wrote it and as it was compiled: every
// address of a kernel of AMDGPU.
func TestInlinedCallsOfLLVMIRAreThoseOfDWARF(t *testing.T) {
	oracle.Tools(t, "clang-22")
	dir := t.TempDir()
	text, err := os.ReadFile("testdata/visa/inline.cl")
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(dir, "inline.cl")
	if err := os.WriteFile(source, bytes.ReplaceAll(text, []byte("get_global_id(0)"), []byte("__builtin_amdgcn_workitem_id_x()")), 0o600); err != nil {
		t.Fatal(err)
	}
	compile := func(args ...string) []byte {
		t.Helper()
		out := filepath.Join(dir, "out")
		cmd := exec.Command("clang-22", append([]string{
			"-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib", "-O2", "-g", source, "-o", out,
		}, args...)...)
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, b)
		}
		return readFile(t, out)
	}
	data := compile()
	want := sourceFrames(t, "amdgpu", data, nil)
	for _, c := range []struct {
		name string
		args []string
	}{{"of the frontend", []string{"-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes"}}, {"optimized", []string{"-S", "-emit-llvm"}}} {
		t.Run(c.name, func(t *testing.T) {
			ir := compile(append(c.args, "-gembed-source")...)
			for i, f := range sourceFrames(t, "amdgpu", data, ir) {
				if show(f) != show(want[i]) || len(f) > 0 && f[0].ScopeBySource {
					t.Errorf("%d: DWARF has scopes, %s: %s", i, show(want[i]), show(f))
				}
			}
			got := sourceFrames(t, "amdgpu", withoutScopes(t, data), ir)
			for _, chain := range got {
				for _, f := range chain {
					if strings.Contains(f.Source, "Calls that are inlined") != (f.Line != 0) {
						t.Fatalf("%s: text of %d bytes", show(chain), len(f.Source))
					}
				}
			}
			chains, unknown := wantChains(t, got, want)
			t.Logf("%d places: %d with inlined calls, %d where these are not known", len(want), chains, unknown)
			if chains < 20 || unknown > chains {
				t.Error("too few chains")
			}
		})
	}
}

// Where DWARF has scopes, a line of another function is what it says, and not an
// inlined call that a source module has.
func TestSourceModulesAddNothingToScopesOfDWARF(t *testing.T) {
	path := compileZebin(t, "tgllp", "testdata/visa/inline.cl")
	zebin := readFile(t, path)
	source, err := filepath.Abs("testdata/visa/inline.cl")
	if err != nil {
		t.Fatal(err)
	}
	ir := fmt.Appendf(nil, `
define void @k() !dbg !2 { call void @ghost(), !dbg !4 }
define void @ghost() !dbg !3 { ret void, !dbg !5 }
!0 = !DIFile(filename: "%s", directory: "")
!1 = distinct !DICompileUnit(language: DW_LANG_C99, file: !0)
!2 = distinct !DISubprogram(name: "k", file: !0, line: 19, unit: !1)
!3 = distinct !DISubprogram(name: "ghost", file: !0, line: 20, unit: !1)
!4 = !DILocation(line: 19, scope: !2)
!5 = !DILocation(line: 20, scope: !3)
`, source)
	for _, scoped := range []bool{true, false} {
		data := zebin
		if !scoped {
			data = withoutScopes(t, zebin)
		}
		frames, problems := genFrames(t, genModule{name: "k", data: data, source: ir})
		ghosts := 0
		for _, f := range frames {
			if len(f) == 2 && f[0].Function == "ghost" && f[0].Line == 20 && f[1].Line == 19 {
				ghosts++
			}
		}
		if scoped != (ghosts == 0) || len(problems) > 0 {
			t.Errorf("scopes in DWARF %v: %d inlined calls, %q", scoped, ghosts, problems)
		}
	}
}

// sourceFrames are the functions at the addresses of a code object with a source
// module, four bytes apart.
func sourceFrames(t *testing.T, arch string, data, ir []byte) (list [][]trace.Symbol) {
	t.Helper()
	o, err := object.New("k.co", data)
	if err != nil {
		t.Fatal(err)
	}
	m := &target.Module{Module: trace.Module{Path: "k.co", Arch: arch}, Object: o}
	if ir != nil {
		m.SourceModule = func() ([]byte, error) { return ir, nil }
	}
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	tt := e.Attach(withModules{newState(), []*target.Module{m}})
	s := o.Section(".text")
	for at := s.Address; at < s.Address+s.Size; at += 4 {
		list = append(list, tt.process.Loaded()[0].Code.Names(at, false))
	}
	if p := tt.ModuleInfo(&m.Module).Problems; len(p) > 0 {
		t.Error(p)
	}
	return list
}

// Of a large program with templates, from what the frontend wrote, every chain is
// the one of DWARF; from IR that was optimized all but one in a hundred: the
// compiler may drop the only instructions of an inlined call and merge others.
func TestInlinedCallsOfALargeProgram(t *testing.T) {
	proof.Only(t)
	compile := func(args ...string) []byte {
		t.Helper()
		out := filepath.Join(t.TempDir(), "out")
		cmd := exec.Command("clang++-22", append([]string{"-O2", "-g", "-fPIC", "internal/symbol/dwarf/testdata/large.cc", "-o", out}, args...)...)
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, b)
		}
		return readFile(t, out)
	}
	data := compile("-shared")
	want := sourceFrames(t, "x86_64", data, nil)
	for _, c := range []struct {
		args    []string
		percent int
	}{{[]string{"-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes"}, 0}, {[]string{"-S", "-emit-llvm"}, 1}} {
		chains, unknown, wrong := 0, 0, 0
		for i, g := range sourceFrames(t, "x86_64", withoutScopes(t, data), compile(c.args...)) {
			w := want[i]
			switch {
			case len(w) == 0:
			case sameChain(g, w):
				if len(w) > 1 {
					chains++
				}
			case len(g) == 1:
				unknown++
			default:
				wrong++
			}
		}
		t.Logf("%q: %d places with inlined calls, %d where these are not known, %d with others", c.args, chains, unknown, wrong)
		if wrong*100 > chains*c.percent || chains < 1000 {
			t.Errorf("%q: %d wrong chains of %d", c.args, wrong, chains)
		}
	}
}

// annotated are the lines that the compiler wrote into the assembly of Gen, by
// the offset of instructions.
func annotated(t *testing.T, path string) (lines map[uint64]int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := map[int]int{} // by line of the text
	line := 0
	for i, text := range strings.Split(string(b), "\n") {
		if n := 0; strings.HasPrefix(text, "// Line ") {
			if _, err := fmt.Sscanf(text, "// Line %d:", &n); err != nil {
				t.Fatal(err)
			}
			line = n
		}
		at[i+1] = line
	}
	lines = map[uint64]int{}
	assembly, err := genasm.ReadAssembly(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range assembly.Instructions {
		lines[in.Offset] = at[in.Line]
	}
	return lines
}

// An address of code leads to a vISA instruction, and that to a line, which the
// compiler's line table or its annotated assembly has too. The line table has
// another one where an instruction has no position of its own, and where code of a
// kernel counts as the last instruction of a subroutine; the annotation where
// registers are saved around a call.
func TestLinesOfVISAAssemblyAreThoseOfTheCompiler(t *testing.T) {
	for _, processor := range []string{"tgllp", "pvc"} {
		for _, level := range genLevels {
			t.Run(processor+" "+level.name, func(t *testing.T) {
				dir := compileGen(t, processor, "inline", level.option)
				elf, stream := readFile(t, dir+"/*_entry_0001.elf"), readFile(t, dir+"/*_entry_0001.dbg")
				want, _ := genFrames(t, genModule{name: "k", data: elf, stream: stream})
				got, problems := genFrames(t, genModule{name: "k", data: withoutDWARF(elf), stream: stream, source: readFile(t, dir+"/*.visaasm")})
				for _, p := range problems {
					if strings.Contains(p, "source module") {
						t.Error(p)
					}
				}
				paths, err := filepath.Glob(dir + "/*.asm")
				if err != nil || len(paths) != 1 {
					t.Fatal(paths, err)
				}
				lines := annotated(t, paths[0])
				unknown, dwarf, assembly := 0, 0, 0
				for offset, line := range lines {
					g, w := got[offset/8], want[offset/8]
					if len(g) != 1 || g[0].Line == 0 {
						unknown++
						continue
					}
					f := &g[0]
					if filepath.Base(f.File) != "inline.cl" || !f.LineByAssembly || f.ScopeBySource {
						t.Errorf("%#x: %+v", offset, f)
					}
					told := len(w) > 0 && w[0].Line == f.Line
					switch {
					case !told && f.Line != line:
						t.Errorf("%#x: %s, DWARF has %s, and the assembly line %d", offset, show(g), show(w), line)
					case !told:
						dwarf++
					case f.Line != line:
						assembly++
					}
					if told && w[len(w)-1].Function != f.Function {
						t.Errorf("%#x: %s, DWARF has %s", offset, show(g), show(w))
					}
				}
				t.Logf("%d instructions: %d without a line, %d with another one in DWARF, %d with another one in the assembly",
					len(lines), unknown, dwarf, assembly)
				if unknown > len(lines)/4 || dwarf > len(lines)/2 || assembly > len(lines)/25 || len(lines) < 50 {
					t.Error("too many")
				}
			})
		}
	}
}

// Without DWARF the assembly has the lines, and the SPIR-V in the object the calls.
func TestLinesOfTheAssemblyLeadToInlinedCalls(t *testing.T) {
	zebin, err := os.ReadFile(compileZebin(t, "tgllp", "testdata/visa/inline.cl"))
	if err != nil {
		t.Fatal(err)
	}
	dir := compileGen(t, "tgllp", "inline", "")
	want, _ := genFrames(t, genModule{name: "k", data: zebin})
	got, problems := genFrames(t, genModule{
		name: "k", data: withoutDWARF(zebin), stream: readFile(t, dir+"/*_entry_0001.dbg"), source: readFile(t, dir+"/*.visaasm"),
	})
	if len(problems) > 0 {
		t.Error(problems)
	}
	chains := 0
	for i := range want {
		g, w := got[i], want[i]
		if len(g) > 1 && g[0].Line == w[0].Line {
			if chains++; !sameChain(g, w) || !g[0].LineByAssembly || g[len(g)-1].LineByAssembly || !g[0].ScopeBySource {
				t.Errorf("%#x: %s, DWARF has %s", 8*i, show(g), show(w))
			}
		}
	}
	if chains < 4 {
		t.Errorf("only %d chains", chains)
	}
}
