// SPDX-License-Identifier: Apache-2.0

package symbolize_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/internal/oracle"
)

// windowsSource has inlined calls, templates, overloads, functions of C, and a static function.
const windowsSource = `namespace ns {
template <class T> struct Box { T v; __declspec(noinline) T get(T d) { return v + d; } };
static __forceinline int twice(int x) { return x * 2; }
static __forceinline int thrice(int x) { return twice(x) + x; }
}
volatile int sink;
static __declspec(noinline) int hidden(int a, double b) { sink = a; return ns::thrice(sink) + a; }
extern "C" __declspec(noinline) int plain(int a) { sink += a; return hidden(a, 1.5) + sink; }
extern "C" __declspec(noinline) int __stdcall standard(int a, int b) { sink += a; return sink - b; }
extern "C" __declspec(noinline) int __fastcall fast(int a, int b) { sink *= a; return sink - b; }
__declspec(noinline) int over(int a) { ns::Box<int> b{a}; return b.get(plain(a)); }
__declspec(noinline) int over(const char *s) { sink = s[0]; return ns::twice(over(sink)) + standard(sink, 1) + fast(1, sink); }
extern "C" __declspec(dllexport) int start() { int n = over("x"); return n + ns::thrice(sink); }
`

// windowsTargets are the machines of programs of Windows, by LLVM's names.
var windowsTargets = []string{"x86_64", "i686", "aarch64"}

// windowsProgram compiles a program with a PDB file, and returns the path of its image.
func windowsProgram(t *testing.T, machine string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.cpp"), []byte(windowsSource), 0o600); err != nil {
		t.Fatal(err)
	}
	in := oracle.With{Dir: dir}
	in.Run(t, "clang-cl-22", "--target="+machine+"-pc-windows-msvc", "/c", "/O2", "/Z7", "-gcolumn-info", "/GS-", "/Foa.obj", "a.cpp")
	in.Run(t, "lld-link-22", "/debug", "/entry:start", "/nodefaultlib", "/subsystem:console", "/out:a.exe", "a.obj")
	return filepath.Join(dir, "a.exe")
}

// functionAddresses returns all addresses of functions of an image, and the address after the last
// of each function where another one begins.
func functionAddresses(t *testing.T, s *symbolize.Symbolizer, path string) (list []uint64) {
	t.Helper()
	f, err := s.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range f.Names().Functions() {
		for a := fn.Start; a < fn.End; a++ {
			list = append(list, a)
		}
	}
	if len(list) < 150 {
		t.Fatalf("%d addresses of functions", len(list))
	}
	return list
}

// TestImagesReadAsByLLVMSymbolizer compares the answers about every address of every function of
// images with PDB files, in all styles.
func TestImagesReadAsByLLVMSymbolizer(t *testing.T) {
	styles := map[string]func(*symbolize.Session){
		"":                       func(*symbolize.Session) {},
		"--no-demangle":          func(s *symbolize.Session) { s.Output.Demangle = false },
		"--functions=none":       func(s *symbolize.Session) { s.Output.Functions = symbolize.NoNames },
		"--functions=short":      func(s *symbolize.Session) { s.Output.Functions = symbolize.ShortNames },
		"--no-inlines":           func(s *symbolize.Session) { s.Inlines = false },
		"--verbose":              func(s *symbolize.Session) { s.Output.Verbose = true },
		"--output-style=GNU":     func(s *symbolize.Session) { s.Output.Style = symbolize.StyleLLVMGNU },
		"--output-style=JSON -p": func(s *symbolize.Session) { s.Output.Style, s.Output.Pretty = symbolize.StyleJSON, true },
		"--relative-address -a":  func(s *symbolize.Session) { s.IsRelative, s.Output.Addresses = true, true },
	}
	for _, machine := range windowsTargets {
		path := windowsProgram(t, machine)
		symbolizer := symbolize.New(symbolize.Options{})
		defer symbolizer.Close()
		addresses := functionAddresses(t, symbolizer, path)
		f, err := symbolizer.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		base, _ := f.Object.ImageBase()
		for flags, set := range styles {
			session := &symbolize.Session{Symbolizer: symbolizer, Object: path, Inlines: true, Output: symbolize.WriterOptions{Demangle: true}}
			set(session)
			var questions strings.Builder
			for _, a := range addresses {
				if session.IsRelative {
					a -= base
				}
				fmt.Fprintf(&questions, "%#x\n", a)
			}
			var got bytes.Buffer
			if err := session.Run(&got, nil, strings.NewReader(questions.String())); err != nil {
				t.Fatal(err)
			}
			want := oracle.With{Input: questions.String()}.Run(t, "llvm-symbolizer-22", append(strings.Fields(flags), "--obj="+path)...)
			if got.String() != want {
				t.Errorf("%s %s: %s", machine, flags, firstDifference(got.String(), want))
			}
		}
	}
}

// firstDifference returns the first lines that differ.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d: %q, expected %q", i+1, g[max(i-2, 0):i+1], w[max(i-2, 0):i+1])
		}
	}
	return fmt.Sprintf("%d lines, expected %d", len(g), len(w))
}

// TestSymbolFilesOfWindows writes symbol files of images and of PDB files alone, and reads them
// back.
func TestSymbolFilesOfWindows(t *testing.T) {
	for _, machine := range windowsTargets {
		image := windowsProgram(t, machine)
		symbolizer := symbolize.New(symbolize.Options{})
		defer symbolizer.Close()
		addresses := functionAddresses(t, symbolizer, image)
		opened, err := symbolizer.Open(image)
		if err != nil {
			t.Fatal(err)
		}
		base, _ := opened.Object.ImageBase()
		for _, path := range []string{image, strings.TrimSuffix(image, ".exe") + ".pdb"} {
			f, err := symbolizer.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			written, err := f.WriteSymbolFile(&text)
			if err != nil {
				t.Fatal(err)
			}
			sym, err := breakpad.Read("a.sym", text.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if m := sym.Module(); m.OS != "windows" || m.Name != "a.pdb" || m.ID != f.Object.SymbolName() {
				t.Errorf("%s: %+v", path, m)
			}
			if hasCode := strings.Contains(text.String(), "INFO CODE_ID "); hasCode != (path == image) || !written.HasDebugInfo {
				t.Errorf("%s: CODE_ID %v, debug information %v", path, hasCode, written.HasDebugInfo)
			}
			if isWin32 := machine == "i686"; isWin32 != (written.FrameData > 0) {
				t.Errorf("%s: %d records STACK WIN", path, written.FrameData)
			}
			if machine != "i686" && path == image && written.CFI == 0 {
				t.Errorf("%s: no STACK CFI", path)
			}
			own, _ := f.Object.ImageBase()
			for _, a := range addresses {
				a -= base
				got, err := sym.Frames(nil, a)
				want := f.Frames(a + own)
				if err != nil || frameText(got) != frameText(want) {
					t.Errorf("%s: %#x: %s, expected %s, %v", path, a, frameText(got), frameText(want), err)
					break
				}
			}
		}
	}
}
