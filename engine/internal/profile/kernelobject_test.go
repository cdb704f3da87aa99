// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// compileNames compiles testdata/names.cl.
func compileNames(t *testing.T, processor string) *object.Object {
	t.Helper()
	source, err := filepath.Abs("testdata/names.cl")
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
		{"ocloc", "compile", "-file", source, "-device", processor, "--format", "zebin", "-options", "-g", "-out_dir", "."},
	}}.Make(t)
	found, err := filepath.Glob(filepath.Join(dir, "*.bin"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	return openObject(t, found[0])
}

func openObject(t *testing.T, path string) *object.Object {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// Names as unitrace writes them (__cxa_demangle), as iaprof does (LLVM), and cut.
func TestKernelsAreFoundByTheNamesThatProfilersWrite(t *testing.T) {
	o := compileNames(t, "tgllp")
	k := newKernelObjects([]*object.Object{o})
	for name, want := range map[string]string{
		"_ZTSZ4mainEUlT_E_":                              "_ZTSZ4mainEUlT_E_",
		"main::{lambda(auto:1)#1}":                       "_ZTSZ4mainEUlT_E_",
		"main::{lambda(auto:1)#2}":                       "_ZTSZ4mainEUlT_E0_",
		"typeinfo name for main::'lambda0'(auto)":        "_ZTSZ4mainEUlT_E0_",
		"main::'lambda'(auto)":                           "_ZTSZ4mainEUlT_E_",
		"void ns::gemm<float, 16>(float*, float const*)": "_ZN2ns4gemmIfLi16EEEvPT_PKS1_",
		"void ns::gemm<float,16>(float *, float const*)": "_ZN2ns4gemmIfLi16EEEvPT_PKS1_",
		"gemm":                                   "_ZN2ns4gemmIfLi16EEEvPT_PKS1_",
		"void one::scale<int>(int*)":             "_ZN3one5scaleIiEEvPT_",
		"void two::scale<int>(int*) [clone .kd]": "_ZN3two5scaleIiEEvPT_",
		"_ZN3two5scaleIiEEvPT_.kd":               "_ZN3two5scaleIiEEvPT_",
		"float":                                  "f",
		"f":                                      "f",
	} {
		at, problem := k.find(name)
		if problem != "" || at.object != o || at.section != ".text."+want || at.address != 0 || at.size != o.Section(".text."+want).Size {
			t.Errorf("%s: %+v, %s, expected .text.%s", name, at, problem, want)
		}
	}
	for name, want := range map[string]string{
		"scale":                    "it may be " + o.Name() + " section .text._ZN3one5scaleIiEEvPT_ offset 0x0 or " + o.Name() + " section .text._ZN3two5scaleIiEEvPT_ offset 0x0: give only what was loaded",
		"_entry":                   "no object that was given has it",
		"main::{lambda(auto:1)#3}": "no object that was given has it",
		"double":                   "no object that was given has it",
		"":                         "no object that was given has it",
		"main::":                   "no object that was given has it",
	} {
		if at, problem := k.find(name); !strings.HasPrefix(problem, want) || at.object != nil {
			t.Errorf("%s: %+v, %q, expected %q", name, at, problem, want)
		}
	}
}

// A kernel of several objects is in none, unless they are copies.
func TestKernelsOfSeveralObjects(t *testing.T) {
	tgllp, pvc := compileNames(t, "tgllp"), compileNames(t, "pvc")
	both := newKernelObjects([]*object.Object{tgllp, pvc})
	for _, name := range []string{"f", "gemm", "main::{lambda(auto:1)#1}"} {
		if at, problem := both.find(name); !strings.Contains(problem, tgllp.Name()) || !strings.Contains(problem, pvc.Name()) || at.object != nil {
			t.Errorf("%s: %+v, %q", name, at, problem)
		}
	}
	again, err := object.New("copy", tgllp.Data())
	if err != nil {
		t.Fatal(err)
	}
	copies := newKernelObjects([]*object.Object{tgllp, again})
	for _, name := range []string{"f", "gemm", "main::{lambda(auto:1)#1}"} {
		if at, problem := copies.find(name); problem != "" || at.object != tgllp {
			t.Errorf("%s: %+v, %q", name, at, problem)
		}
	}
	if _, problem := copies.find("scale"); problem == "" {
		t.Error("scale of two scopes is found")
	}
}

// Every kernel of every code object is where its section or its symbol is.
func TestEveryKernelOfCodeObjectsIsFound(t *testing.T) {
	var paths []string
	for _, pattern := range []string{
		"../../../plugins/visa/testdata/*.zebin", "../../../../shared/corpus/visa/zebin/*.zebin", "../../../../shared/corpus/amdgpu/*/*.co",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	var all []*object.Object
	for _, path := range paths {
		o := openObject(t, path)
		all = append(all, o)
		k := newKernelObjects([]*object.Object{o})
		kernels := kernelsOf(t, path)
		if len(kernels) == 0 {
			t.Errorf("%s has no kernels", path)
		}
		for name, want := range kernels {
			at, problem := k.find(name)
			if got := fmt.Sprintf("%s %#x", at.section, at.address); problem != "" || got != want || at.object != o || at.size == 0 {
				t.Errorf("%s: %s: %s of %d bytes, %s, expected %s", path, name, got, at.size, problem, want)
			}
		}
	}
	t.Logf("%d code objects", len(all))
}

// kernelsOf reads the kernels of a code object as its runtime does: those that have a
// descriptor (AMD), or a section of their own (Intel).
func kernelsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list := map[string]string{}
	for _, s := range f.Sections {
		if name, ok := strings.CutPrefix(s.Name, ".text."); ok {
			list[name] = fmt.Sprintf("%s %#x", s.Name, 0)
		}
	}
	symbols, _ := f.Symbols()
	for _, d := range symbols {
		name, isKernel := strings.CutSuffix(d.Name, ".kd")
		for _, s := range symbols {
			if isKernel && s.Name == name {
				list[d.Name] = fmt.Sprintf(" %#x", s.Value)
				list[name] = list[d.Name]
			}
		}
	}
	return list
}

// A function that has the name of a kernel is not the kernel: compilers copy kernels into
// others that call them.
func TestAKernelGoesBeforeAFunctionOfItsName(t *testing.T) {
	data, symtab := readZebin(t)
	copy(data[symtab+3*24:][:4], data[symtab+24:][:4]) // odd has the name of reck
	o, err := object.New("copied", data)
	if err != nil {
		t.Fatal(err)
	}
	if at, problem := newKernelObjects([]*object.Object{o}).find("reck"); problem != "" || at.section != ".text.reck" || at.address != 0 {
		t.Errorf("%+v, %s", at, problem)
	}
}

// readZebin reads a zebin, and where its symbols are.
func readZebin(t *testing.T) (data []byte, symtab uint64) {
	t.Helper()
	const path = "../../../plugins/visa/testdata/skl-rec-O0.zebin"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return data, f.Section(".symtab").Offset
}

// What cannot be read of an object is said of a kernel that is not found.
func TestKernelsOfADamagedObject(t *testing.T) {
	data, symtab := readZebin(t)
	copy(data[symtab+24:], "\xff\xff\xff\xff") // the name of symbol 1
	o, err := object.New("damaged", data)
	if err != nil {
		t.Fatal(err)
	}
	k := newKernelObjects([]*object.Object{o})
	if at, problem := k.find("reck"); problem != "" || at.section != ".text.reck" {
		t.Errorf("%+v, %s", at, problem)
	}
	if at, problem := k.find("odd"); problem != "" || at.section != ".text.reck" || at.address != 0xf60 || at.size != 1248 {
		t.Errorf("%+v, %s", at, problem)
	}
	if _, problem := k.find("other"); !strings.HasPrefix(problem, "no object that was given has it, as far as they can be read: damaged: ") {
		t.Errorf("%q", problem)
	}
}

func TestNamesAreCut(t *testing.T) {
	for name, want := range map[string]string{
		"void ns::gemm<float, 16>(float*, (anonymous namespace)::A)": "gemm",
		"k":                            "k",
		"f(int) [clone .kd]":           "f",
		"ns::Foo<bar<int> >::run()":    "run",
		"main::{lambda(auto:1)#1}":     "",
		")":                            "",
		"":                             "",
		"unbalanced>)":                 "",
		"void f<(A)0>(int (*)(float))": "f",
	} {
		if got := shortName(name); got != want {
			t.Errorf("%s: %q, expected %q", name, got, want)
		}
	}
}
