// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	pefile "debug/pe"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// variant is a way of building the program of testdata.
type variant struct {
	name, target string
	compile      []string
	link         []string
}

// variants are the ways for an architecture.
func variants(architecture string) []variant {
	target := architecture + "-pc-windows-msvc"
	return []variant{
		{architecture + "-Od", target, []string{"/Od"}, nil},
		{architecture + "-O1", target, []string{"/O1"}, nil},
		{architecture + "-O2", target, []string{"/O2"}, nil},
		{architecture + "-O2-icf", target, []string{"/O2", "/Gy"}, []string{"/opt:ref,icf"}},
		{architecture + "-O2-lto", target, []string{"/O2", "-flto"}, []string{"/pdbpagesize:8192"}},
		{architecture + "-O2-no-comdats", target, []string{"/O2", "/Gy-"}, []string{"/pdbpagesize:16384"}},
	}
}

// build builds the program, and returns the path of its image, beside which its PDB is.
func (v *variant) build(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("testdata", "program.cpp"))
	if err != nil {
		t.Fatal(err)
	}
	compile := append([]string{"clang-cl-22", "--target=" + v.target, "/c", "/Z7", "/GS-", "/GR-", "-gcolumn-info", "/Foa.obj"}, v.compile...)
	link := append([]string{"lld-link-22", "/debug", "/entry:entry", "/nodefaultlib", "/subsystem:console", "/out:a.exe", "/pdb:a.pdb", "a.obj"}, v.link...)
	return filepath.Join(oracle.Build{Sources: []string{source}, Commands: [][]string{append(compile, "--", source), link}}.Make(t), "a.exe")
}

// llvmFrame is a frame as llvm-symbolizer prints it.
type llvmFrame struct {
	FunctionName, FileName string
	Line, Column           int
}

// llvmFrames asks llvm-symbolizer for addresses of an image.
func llvmFrames(t *testing.T, image string, addresses []uint64) [][]llvmFrame {
	t.Helper()
	var in strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	out := oracle.With{Input: in.String()}.Run(t, "llvm-symbolizer-22", "--no-demangle", "--output-style=JSON", "--obj="+image)
	var all [][]llvmFrame
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var answer struct{ Symbol []llvmFrame }
		if err := d.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		all = append(all, answer.Symbol)
	}
	if len(all) != len(addresses) {
		t.Fatalf("%d answers to %d addresses", len(all), len(addresses))
	}
	return all
}

// asLLVM is the frames as llvm-symbolizer prints them.
func asLLVM(frames []trace.Symbol) []llvmFrame {
	out := make([]llvmFrame, len(frames))
	for i := range frames {
		f := &frames[i]
		name := f.LinkageName
		if name == "" {
			name = f.Function
		}
		out[i] = llvmFrame{name, f.File, f.Line, f.Column}
	}
	return out
}

// openBeside opens the PDB beside an image, whose addresses are those that the image has.
func openBeside(t *testing.T, image string, base uint64) *File {
	t.Helper()
	f, err := Open(strings.TrimSuffix(image, ".exe")+".pdb", base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if problems := f.Problems(); len(problems) > 0 {
			t.Errorf("problems: %q", problems)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// codeAddresses are all addresses of the sections of code of an image.
func codeAddresses(t *testing.T, image string) (base uint64, addresses []uint64) {
	t.Helper()
	p, err := pefile.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	switch h := p.OptionalHeader.(type) {
	case *pefile.OptionalHeader64:
		base = h.ImageBase
	case *pefile.OptionalHeader32:
		base = uint64(h.ImageBase)
	}
	for _, s := range p.Sections {
		if s.Characteristics&pefile.IMAGE_SCN_CNT_CODE == 0 {
			continue
		}
		for a := range uint64(s.VirtualSize) {
			addresses = append(addresses, base+uint64(s.VirtualAddress)+a)
		}
	}
	return base, addresses
}

// hasSeveralFiles reports whether the line table for an address is of several files.
func hasSeveralFiles(f *File, address uint64) bool {
	x, ok := f.locate(address)
	if !ok || x.index.lineTable(x.rva, 0) == nil {
		return false
	}
	rows := x.index.rows(f, x.index.lineTable(x.rva, 0))
	return slices.ContainsFunc(rows, func(r lineRow) bool { return r.file != rows[0].file })
}

// isPadding reports whether there are no frames at an address, and llvm-symbolizer has no line:
// it names code that belongs to no function by the public symbol before it.
func isPadding(frames []trace.Symbol, want []llvmFrame) bool {
	return len(frames) == 0 && len(want) == 1 && want[0].FileName == "" && want[0].Line == 0
}

func TestEveryAddressHasTheFramesOfLLVM(t *testing.T) {
	for _, architecture := range []string{"x86_64", "i686", "aarch64"} {
		for _, v := range variants(architecture) {
			t.Run(v.name, func(t *testing.T) {
				oracle.Tools(t, "llvm-symbolizer-22")
				image := v.build(t)
				base, addresses := codeAddresses(t, image)
				f := openBeside(t, image, base)
				differ := 0
				for i, want := range llvmFrames(t, image, addresses) {
					frames, err := f.Frames(nil, addresses[i])
					if err != nil {
						t.Fatal(err)
					}
					switch {
					case hasSeveralFiles(f, addresses[i]): // of which llvm-symbolizer searches the first wrongly
						if got := asLLVM(frames); len(got) != 1 || got[0].FunctionName != want[0].FunctionName {
							t.Errorf("%#x: code of several files:\n got %v\nwant %v", addresses[i], got, want)
						}
						continue
					case isPadding(frames, want):
						continue
					case len(frames) > 0 && frames[len(frames)-1].Equals > 0:
						if got := asLLVM(frames); len(got) != len(want) || got[len(got)-1].FunctionName != want[len(want)-1].FunctionName {
							t.Errorf("%#x: folded functions:\n got %v\nwant %v", addresses[i], got, want)
						}
						continue
					}
					got := asLLVM(frames)
					for i := range got {
						if len(want) > i && strings.HasPrefix(got[i].FunctionName, "[id") {
							got[i].FunctionName = want[i].FunctionName
						}
					}
					if got := fmt.Sprint(got); got != fmt.Sprint(want) {
						if differ++; differ < 10 {
							t.Errorf("%#x:\n got %v\nwant %v", addresses[i], got, want)
						}
					}
				}
				t.Logf("%d addresses, %d differ", len(addresses), differ)
				checkFunctions(t, f, addresses)
			})
		}
	}
}
