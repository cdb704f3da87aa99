// SPDX-License-Identifier: Apache-2.0

package symtab

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
)

// TestNamedAreThoseOfTheTable holds the functions of some names of this machine's
// programs and libraries against their tables: names of every kind, and one that none has.
func TestNamedAreThoseOfTheTable(t *testing.T) {
	files, err := filepath.Glob("/usr/lib/*-linux-gnu/lib[cgsp]*.so.*")
	if err != nil {
		t.Fatal(err)
	}
	programs, _ := filepath.Glob("/usr/bin/[gp]*")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files = append(append(files, programs...), self)
	if testing.Short() {
		files = files[max(0, len(files)-20):]
	}
	answered, found := 0, 0
	for i, path := range files {
		if i%4 != 0 && i+1 < len(files) {
			continue
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 32<<20 && path != self {
			continue
		}
		o, err := object.Open(path)
		if err != nil {
			continue // a script
		}
		defer o.Close()
		table, err := New(o)
		if err != nil {
			continue // Named leaves it to the table
		}
		all := table.Functions()
		names := map[string]bool{"nothing has this name": true, "_start": true, "clone": true}
		symbols, err := o.Symbols()
		if err != nil {
			t.Fatal(err)
		}
		// Some of them are names of code that the table has by another.
		for j := 0; j < len(symbols); j += 7 {
			if s := symbols[j]; s.Size > 0 {
				names[symbol.StripVersion(s.Name)] = true
			}
		}
		got, ok := Named(names, o)
		if !ok {
			continue // a function of these names has no size
		}
		answered++
		want := slices.DeleteFunc(slices.Clone(all), func(s symbol.Symbol) bool { return !names[s.Name] })
		found += len(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d functions, the table has %d of these names", path, len(got), len(want))
		}
	}
	if answered == 0 || !testing.Short() && (answered < 3 || found < 100) {
		t.Errorf("%d functions in %d files, expected more", found, answered)
	}
}
