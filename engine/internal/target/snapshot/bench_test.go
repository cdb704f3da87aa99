// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
)

// writeFull writes the snapshot of full to a file.
func writeFull(t testing.TB) string {
	t.Helper()
	document, files := full()
	path := filepath.Join(t.TempDir(), "full.snapshot")
	if err := os.WriteFile(path, archiveOf(t, append(files, documentOf(t, document))...), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// BenchmarkOpenKnownMembers opens and closes a snapshot whose code objects somebody
// has open.
func BenchmarkOpenKnownMembers(b *testing.B) {
	path := writeFull(b)
	for _, test := range []struct {
		name  string
		store *object.Store
	}{{"store", object.NewStore()}, {"none", nil}} {
		b.Run(test.name, func(b *testing.B) {
			options := options()
			options.Finder.Store = test.store
			first, err := Open(path, options)
			if err != nil {
				b.Fatal(err)
			}
			defer first.Close()
			b.ReportAllocs()
			for b.Loop() {
				s, err := Open(path, options)
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestSnapshotsShareTheirMembers(t *testing.T) {
	path := writeFull(t)
	options := options()
	options.Finder.Store = object.NewStore()
	var list [2]*Snapshot
	for i := range list {
		s, err := Open(path, options)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = s
	}
	shared := 0
	for i, m := range list[0].Modules() {
		if m.Object == nil {
			continue
		}
		if m.Object != list[1].Modules()[i].Object {
			t.Errorf("module %s has an object of its own in the second snapshot", m.Path)
		}
		shared++
	}
	if shared == 0 {
		t.Error("no module has an object")
	}
	if err := list[0].Close(); err != nil {
		t.Fatal(err)
	}
	// The bytes do not go with the snapshot that was opened first.
	for _, m := range list[1].Modules() {
		if m.Object == nil {
			continue
		}
		for _, s := range m.Object.Segments() {
			if _, err := m.Object.ReadAddress(make([]byte, 1), s.Address); err != nil {
				t.Error(err)
			}
		}
	}
	if err := list[1].Close(); err != nil {
		t.Error(err)
	}
}
