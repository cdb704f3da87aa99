// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// noOwner is the Owner of nothing.
type noOwner struct{}

func (noOwner) FindDebug(*Object) Found               { return Found{Problem: "the owner has none"} }
func (noOwner) GlanceDebug(*Object) (bool, []Attempt) { return true, nil }
func (noOwner) Key(*Object) string                    { return "" }

// TestOwnersPathsNameNoFileOfThisMachine opens a file under the path of another machine,
// where this machine has files beside that path: none of them is opened.
func TestOwnersPathsNameNoFileOfThisMachine(t *testing.T) {
	self, err := os.ReadFile("../../examples/crash/server")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"came", "program", "program.debug", ".debug/program.debug", "program.dwp"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, self, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := NewStore()
	claimed := filepath.Join(dir, "program")
	o, err := s.OpenAs(filepath.Join(dir, "came"), claimed, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if o.Name() != claimed || o.Path() != claimed || !bytes.Equal(o.Data(), self) {
		t.Errorf("%s, %s: %d bytes, expected %s", o.Name(), o.Path(), len(o.Data()), claimed)
	}
	again, err := s.OpenAs(filepath.Join(dir, "came"), claimed, nil)
	if err != nil || again != o {
		t.Errorf("it is %p the second time, expected %p: %v", again, o, err)
	}
	_ = again.Close()
	other, err := s.OpenAs(filepath.Join(dir, "came"), claimed+"2", nil)
	if err != nil || other == o {
		t.Errorf("under another path it is the same object: %v", err)
	}
	_ = other.Close()

	f := &Finder{Sysroot: t.TempDir(), Store: s}
	if found := f.FindDebug(o); found.Object != nil || len(found.Tried) > 0 && filepath.Dir(found.Tried[0].Path) == dir {
		t.Errorf("beside the path is %+v", found)
	}
	f.Owner = noOwner{}
	if beside, err := f.OpenBeside(claimed + ".dwp"); err == nil {
		t.Errorf("%s was opened", beside.Path())
	}
	if found := f.FindDebug(o); found.Problem != "the owner has none" {
		t.Errorf("%+v, expected what the owner says", found)
	}
	if has, _ := f.GlanceDebug(o); !has {
		t.Error("the owner was not asked")
	}
}
