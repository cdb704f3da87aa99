// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestLambdasAreNamedInTheirFunctions has the names of what g++ inlined of lambdas.
func TestLambdasAreNamedInTheirFunctions(t *testing.T) {
	source, err := filepath.Abs("testdata/lambdas.cc")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
		dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
			{"g++", "-g", version, "-O2", "-std=c++17", "-shared", "-fPIC", "-o", "program", source},
		}}.Make(t)
		r := openMapped(t, filepath.Join(dir, "program"))
		found := map[string]bool{}
		for _, address := range textAddresses(t, filepath.Join(dir, "program"), 1<<20) {
			frames, err := r.Frames(nil, address)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range frames {
				if f.Inlined && (strings.Contains(f.Function, "lambda") || strings.Contains(f.Function, "Local")) {
					found[f.Function] = true
				}
			}
		}
		want := []string{
			"ns::(anonymous namespace)::hidden::<lambda>::operator()",
			"ns::(anonymous namespace)::hidden::<lambda>::operator()::<lambda>::operator()",
			"ns::S::method(int) const::<lambda>::operator()",
			"ns::S::method(int) const::Local::own",
			"ns::function(int)::<lambda>::operator()",
			"own::<lambda>::operator()",
		}
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, expected %q", version, got, want)
		}
	}
}
