// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

func TestCoresShareTheirCodeObjects(t *testing.T) {
	for name, core := range map[string]func(testing.TB) string{"kernel": shellCore, "gdb": sleepCore} {
		t.Run(name, func(t *testing.T) { sharesObjects(t, core(t)) })
	}
}

// sharesObjects opens a core twice with a store, and once without.
func sharesObjects(t *testing.T, path string) {
	open := func(store *object.Store) *Core {
		t.Helper()
		c, err := Open(path, Options{
			Finder:   object.Finder{Store: store},
			Describe: func(object.ELFMachine) (*sdk.Description, error) { return amd64Description(), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	store := object.NewStore()
	first, second, alone := open(store), open(store), open(nil)
	defer alone.Close()
	modules := second.Modules()
	if len(modules) == 0 || len(modules) != len(alone.Modules()) || len(modules) != len(first.Modules()) {
		t.Fatalf("%d, %d and %d modules", len(first.Modules()), len(modules), len(alone.Modules()))
	}
	for i, m := range modules {
		if of := alone.Modules()[i]; m.Path != of.Path || m.Problem != of.Problem || m.File != of.File || !slices.Equal(m.Segments, of.Segments) {
			t.Errorf("module %s is %+v, without a store %+v", m.Path, m, of)
		}
		if m.Object == nil || m.Object != first.Modules()[i].Object {
			t.Errorf("module %s: %p, in the first core %p", m.Path, m.Object, first.Modules()[i].Object)
		}
	}
	if !slices.Equal(second.Info().Problems, alone.Info().Problems) {
		t.Errorf("problems %q, without a store %q", second.Info().Problems, alone.Info().Problems)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for _, m := range modules { // what they have does not go with the first core
		for _, s := range m.Object.Segments() {
			if _, err := m.Object.ReadAddress(make([]byte, 16), s.Address); err != nil {
				t.Errorf("%s: %v", m.Path, err)
			}
		}
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}
