// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

func TestAModuleIsReadConcurrently(t *testing.T) {
	for _, name := range []string{"inlined.ll", "foo37.ll", "main36.ll"} {
		alone := parseFile(t, name)
		positions, variables := readAll(alone), alone.Variables()
		for range 50 { // what is kept is found missing once a module
			together(t, name, alone, positions, variables)
		}
	}
}

// together reads a module eight times at once, and holds it against one that was read
// alone.
func together(t *testing.T, name string, alone *Module, positions []symbol.Position, variables []symbol.Variable) {
	t.Helper()
	m := parseFile(t, name)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if diff := cmp.Diff(positions, readAll(m)); diff != "" {
				t.Errorf("%s: positions (-alone +together):\n%s", name, diff)
			}
			if diff := cmp.Diff(variables, m.Variables()); diff != "" {
				t.Errorf("%s: variables (-alone +together):\n%s", name, diff)
			}
			for _, p := range positions {
				f, _ := m.Function(p.Function)
				got, err := m.instructionAt(f, p.Instruction)
				if diff := cmp.Diff(p, got); err != nil || diff != "" {
					t.Errorf("%s: %v, position (-alone +together):\n%s", name, err, diff)
				}
			}
			if _, err := m.Find("%x", false); err == nil {
				t.Error("a result that is not there was found")
			}
		})
	}
	wait.Wait()
	if !slices.Equal(alone.Problems(), m.Problems()) {
		t.Errorf("%s: problems %q and %q", name, alone.Problems(), m.Problems())
	}
}
