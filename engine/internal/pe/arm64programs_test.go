// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// arm64Options are the ways in which the programs are compiled.
var arm64Options = [][]string{
	{"-O0"}, {"-O1"}, {"-O2"}, {"-Os"}, {"-O3", "-fno-inline"}, {"-O2", "-fno-omit-frame-pointer"},
	{"-O2", "-mbranch-protection=pac-ret"}, {"-O1", "-mbranch-protection=standard"}, {"-O0", "-mbranch-protection=pac-ret+leaf"},
	{"-Oz"}, {"-O2", "-fstack-protector-all"},
}

// arm64Programs are programs for arm64 as clang and LLD make them for Windows, with several options.
func arm64Programs(t testing.TB) []string {
	t.Helper()
	var sources []string
	for _, name := range []string{"arm64.c", "arm64.cpp"} {
		path, err := filepath.Abs(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, path)
	}
	b := oracle.Build{Sources: sources}
	var names []string
	for i, options := range arm64Options {
		for _, source := range sources {
			name := fmt.Sprintf("%s-%d", filepath.Base(source), i)
			b.Commands = append(b.Commands,
				slices.Concat([]string{"clang-22", "--target=aarch64-pc-windows-msvc", "-w", "-ffreestanding", "-funwind-tables", "-fexceptions", "-fcxx-exceptions", "-c", "-o", name + ".obj", source}, options),
				[]string{"lld-link-22", "/entry:start", "/subsystem:console", "/nodefaultlib", "/opt:noref", "/force:unresolved", "/debug:symtab", "/out:" + name + ".exe", name + ".obj"})
			names = append(names, name+".exe")
		}
	}
	dir := b.Make(t)
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names
}
