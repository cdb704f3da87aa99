// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// TestDecoratedNamesEqualLLVMSymbolizer compares the names in images for Windows, by their symbol tables,
// by DWARF and by exports alone.
func TestDecoratedNamesEqualLLVMSymbolizer(t *testing.T) {
	oracle.All(t)
	source, err := filepath.Abs("testdata/decorated.cc")
	if err != nil {
		t.Fatal(err)
	}
	for _, machine := range []string{"x86_64", "i686", "aarch64"} {
		clang := []string{"clang++-22", "--target=" + machine + "-pc-windows-msvc", "-std=c++20", "-fno-threadsafe-statics", "-fno-rtti", "-w"}
		link := []string{"lld-link-22", "/nodefaultlib", "/noentry", "/force", "/dll", "/safeseh:no"}
		dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
			append(clang, "-c", "-o", "plain.obj", source), append(clang, "-gdwarf", "-c", "-o", "dwarf.obj", source),
			append(link, "/out:plain.dll", "/debug:symtab", "plain.obj"), append(link, "/out:dwarf.dll", "/debug:dwarf,symtab", "dwarf.obj"),
			append(link, "/out:exports.dll", "plain.obj"),
		}}.Make(t)
		for _, name := range []string{"plain.dll", "dwarf.dll", "exports.dll"} {
			t.Run(machine+"/"+name, func(t *testing.T) {
				path := filepath.Join(dir, name)
				questions := linesOf("%#x", startsOfFunctions(t, path))
				for _, words := range [][]string{nil, {"--no-demangle"}, {"--output-style=JSON"}} {
					want := askTool(t, "llvm-symbolizer-22", questions, append(words, "-e", path)...)
					if diff := cmp.Diff(want, Options{}.ask(t, &Session{Object: path}, words, nil, questions)); diff != "" {
						t.Errorf("%v: (-theirs +ours)\n%.3000s", words, diff)
					}
				}
			})
		}
	}
}

// startsOfFunctions are where the functions of an image begin.
func startsOfFunctions(t *testing.T, path string) (list []uint64) {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	symbols, err := o.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if section := o.Section(".text"); s.Address >= section.Address && s.Address < section.Address+section.Size {
			list = append(list, s.Address)
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s has no functions", path)
	}
	return list
}
