// SPDX-License-Identifier: Apache-2.0

package code

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
)

const goProgram = `package main

//go:noinline
func deeper(n int) int {
	var a [100]int
	if n > 0 {
		a[n%100] = deeper(n - 1)
	}
	return a[n%100] + n
}

func main() { println(deeper(10)) }
`

// goForWindows compiles a Go program for Windows.
func goForWindows(t *testing.T, flags string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": goProgram, "go.mod": "module program\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	oracle.With{Dir: dir, Env: []string{"GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"}}.Run(t, "go", "build", "-ldflags="+flags, "-o", "program.exe", ".")
	return filepath.Join(dir, "program.exe")
}

// Behind its code a Go function calls for a larger stack before it has a frame. Its unwind
// codes say that it has one there; DWARF, and the code, say that it has none.
func TestGoCallsForAStackWithoutAFrame(t *testing.T) {
	const objdump = "x86_64-w64-mingw32-objdump"
	oracle.Tools(t, objdump)
	path := goForWindows(t, "")
	calls := callsOf(oracle.Run(t, objdump, "-d", "--no-show-raw-insn", "-j", ".text", path), "<runtime.morestack_noctxt")
	if len(calls) < 100 {
		t.Fatalf("%d calls for a larger stack", len(calls))
	}
	for flags, by := range map[string]trace.FoundBy{"": trace.ByCFI, "-s -w": trace.ByRules} {
		path := path
		if flags != "" {
			path = goForWindows(t, flags)
		}
		m := newLibrary(t, 0, x86_64.New()).Load(moduleOf(t, object.NewStore(), path), Loading{})
		defer m.Close()
		for _, pc := range calls {
			row, err := m.Row(t.Context(), pc, false)
			if err != nil {
				t.Fatalf("%#x: %v", pc, err)
			}
			if want := (cfi.CFARule{Kind: cfi.CFARegister, Register: 7, Offset: 8}); row.Rules.CFA.Kind != want.Kind ||
				row.Rules.CFA.Register != want.Register || row.Rules.CFA.Offset != want.Offset || row.By != by {
				t.Fatalf("flags %q: %#x: CFA %+v by %s, want rsp+8 by %s", flags, pc, row.Rules.CFA, row.By, by)
			}
			if r := row.Defaults.Column(3); by == trace.ByCFI && r.Kind != cfi.Undefined {
				t.Fatalf("flags %q: %#x: rbx has rule %v above a Go function", flags, pc, r.Kind)
			}
		}
	}
}

// callsOf are the return addresses of the calls of a function in a disassembly.
func callsOf(text, name string) (list []uint64) {
	isCall := false
	for _, line := range strings.Split(text, "\n") {
		digits, instruction, ok := strings.Cut(strings.TrimSpace(line), ":\t")
		if address, err := strconv.ParseUint(digits, 16, 64); ok && err == nil && isCall {
			list = append(list, address)
		}
		isCall = strings.HasPrefix(instruction, "call") && strings.Contains(instruction, name)
	}
	return list
}

// Registers that Windows keeps have the caller's value beside unwind codes, and those that
// it does not have none.
func TestRegistersThatWindowsKeeps(t *testing.T) {
	const rax, rbx, rsi, rdi, xmm5, xmm6 = 0, 3, 4, 5, 22, 23
	m := windowsModule(t)
	var address uint64
	if err := m.Object.PE().Functions(func(fn pe.Function) bool { address = fn.Start; return false }); err != nil {
		t.Fatal(err)
	}
	row, err := m.Row(t.Context(), address, true)
	if err != nil || row.By != trace.ByPE {
		t.Fatalf("%+v, %v", row, err)
	}
	for register, want := range map[uint64]cfi.RuleKind{
		rax: cfi.Undefined, rbx: cfi.SameValue, rsi: cfi.SameValue, rdi: cfi.SameValue, xmm5: cfi.Undefined, xmm6: cfi.SameValue,
	} {
		if r := row.Defaults.Column(register); r.Kind != want {
			t.Errorf("register %d has rule %v, want %v", register, r.Kind, want)
		}
	}
}

// The names of a program by Microsoft's conventions are in a PDB file. Where that is not found it
// is said once which.
func TestAMissingPDBFileIsNamed(t *testing.T) {
	m := windowsModule(t)
	id, err := m.Object.PE().Identity()
	if err != nil {
		t.Fatal(err)
	}
	start := m.Object.Entry()
	for _, address := range []uint64{start, start + 1} {
		if names := m.Names(address, false); len(names) > 0 {
			t.Fatalf("%#x is %v", address, names)
		}
	}
	want := "into a store as app.pdb/" + id.DebugID() + "/app.pdb"
	if p := m.Info().Problems; len(p) != 1 || !strings.Contains(p[0], want) {
		t.Errorf("problems %q, want %q", p, want)
	}
}

// windowsModule is a program that clang and LLD write as Microsoft's tools do, without its PDB
// file.
func windowsModule(t *testing.T) *Module {
	t.Helper()
	source, err := filepath.Abs("testdata/windows.c")
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
		{"clang-22", "--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-O1", "-c", "-o", "app.obj", source},
		{"lld-link-22", "/entry:start", "/subsystem:console", "/debug", `/pdbaltpath:C:\build\app.pdb`, "/pdb:app.pdb", "/nodefaultlib", "/out:app.exe", "app.obj"},
	}}.Make(t)
	exe := filepath.Join(t.TempDir(), "app.exe") // away from the PDB file
	oracle.Run(t, "cp", filepath.Join(dir, "app.exe"), exe)
	m := newLibrary(t, 0, x86_64.New()).Load(moduleOf(t, object.NewStore(), exe), Loading{})
	t.Cleanup(m.Close)
	return m
}

// A file for x86-64 may have code of ARM64EC. It is not unwound by the unwind codes of x86-64, and the
// problems of the module name it.
func TestCodeOfARM64ECIsNotUnwoundAsX64(t *testing.T) {
	source, err := filepath.Abs("../pe/testdata")
	if err != nil {
		t.Fatal(err)
	}
	compile := func(target, name, file string) []string {
		return []string{"clang-22", "--target=" + target + "-pc-windows-msvc", "-O1", "-ffreestanding", "-DNAME=v_" + name, "-DCALL=f_" + name, "-c", "-o", name + ".obj", filepath.Join(source, file)}
	}
	dir := oracle.Build{
		Sources: []string{filepath.Join(source, "hybrid.c"), filepath.Join(source, "hybridec.s")},
		Commands: [][]string{
			compile("arm64ec", "ec", "hybrid.c"), compile("x86_64", "x64", "hybrid.c"), compile("arm64ec", "config", "hybridec.s"),
			{"lld-link-22", "/machine:arm64ec", "/dll", "/noentry", "/nodefaultlib", "/force:unresolved", "/out:app.dll", "ec.obj", "x64.obj", "config.obj"},
		},
	}.Make(t)
	m := newLibrary(t, 0, x86_64.New()).Load(moduleOf(t, object.NewStore(), filepath.Join(dir, "app.dll")), Loading{})
	defer m.Close()
	var known, foreign int
	f := m.Object.PE()
	for _, section := range f.Sections() {
		for at := section.Address(); section.IsCode() && at < section.Address()+uint64(section.FileSize()); at += 4 {
			_, err := m.Row(t.Context(), at, true)
			switch isForeign := f.ForeignCode(at) != ""; {
			case (err != nil) != isForeign || err != nil && !strings.Contains(err.Error(), "ARM64EC"):
				t.Errorf("%#x: %v, code of another machine: %v", at, err, isForeign)
			case isForeign:
				foreign++
			default:
				known++
			}
		}
	}
	want := "app.dll is an ARM64EC image: for x86-64, with code for arm64; the code there that is ARM64EC"
	if p := m.Info().Problems; known == 0 || foreign == 0 || !slices.ContainsFunc(p, func(p string) bool { return strings.Contains(p, want) }) {
		t.Errorf("%d addresses of x86-64, %d of ARM64EC, problems %q", known, foreign, p)
	}
}
