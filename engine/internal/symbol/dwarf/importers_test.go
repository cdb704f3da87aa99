// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/oracle"
)

// TestPartialUnitsAreWrittenInTheLanguageOfTheirImporters reads names of a C++ program
// whose types dwz moved to a file that it shares with another.
func TestPartialUnitsAreWrittenInTheLanguageOfTheirImporters(t *testing.T) {
	source, err := filepath.Abs("testdata/partial.cpp")
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
		{"g++", "-g", "-gdwarf-4", "-o", "program", source},
		{"cp", "program", "other"},
		{"dwz", "-m", "shared.debug", "program", "other"},
	}}.Make(t)
	o, err := object.Open(filepath.Join(dir, "program"))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"outer::inner::deep": "int", "outer::inner::more": "outer::inner::point [2]", "global": "plain",
	} {
		list, err := r.Globals(name)
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %d variables, %v", name, len(list), err)
			continue
		}
		typ, err := list[0].ValueType()
		if err != nil {
			t.Fatal(err)
		}
		if got := typ.String(); got != want {
			t.Errorf("%s is of the type %q, expected %q", name, got, want)
		}
		if plain, _ := typ.Plain(); plain.Kind == KindStructure && plain.Unit().b.tag != dw.TagPartialUnit {
			t.Errorf("%s: its type is in no partial unit: dwz moved nothing", name)
		}
	}
}
