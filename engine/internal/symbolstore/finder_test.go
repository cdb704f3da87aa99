// SPDX-License-Identifier: Apache-2.0

package symbolstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// asked is a remote that is not to be asked.
type asked struct{ t *testing.T }

func (a asked) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	a.t.Errorf("%+v is asked for", f)
	return "", nil
}

// TestFilesOfWindowsAreFoundInStores finds a program of MinGW by its code identifier, and
// does not ask servers of debuginfod for it.
func TestFilesOfWindowsAreFoundInStores(t *testing.T) {
	source := filepath.Join(t.TempDir(), "prog.c")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(source)
	oracle.With{Dir: dir}.Run(t, "x86_64-w64-mingw32-gcc", "-Wl,--build-id", source, "-o", "prog.exe")
	exe, err := os.ReadFile(filepath.Join(dir, "prog.exe"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.New("prog.exe", exe)
	if err != nil {
		t.Fatal(err)
	}
	id, err := o.PE().Identity()
	if err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	place := filepath.Join("prog.exe", id.CodeID(), "prog.exe")
	put(t, store, place, exe)
	put(t, store, filepath.Join("prog.exe", "123456781000", "prog.exe"), exe) // which is of another build
	f := object.Finder{Sysroot: t.TempDir(), Remote: asked{t}, Symbols: client(t, nil, store)}
	for _, name := range []string{`C:\dir\prog.exe`, "prog.exe", "/dir/prog.exe"} {
		found := f.FindCode(name, o.BuildID(), id.CodeID(), "", true)
		if found.Object == nil || !found.Checked || found.Path != filepath.Join(store, place) {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		_ = found.Object.Close()
	}
	for _, codeID := range []string{"123456781000", "", "../x"} {
		if found := f.FindCode(`C:\dir\prog.exe`, o.BuildID(), codeID, "", true); found.Object != nil {
			t.Errorf("%q: %s is found", codeID, found.Path)
		}
	}
	other := f.FindCode(`C:\dir\prog.exe`, o.BuildID(), "123456781000", "", true)
	if !strings.Contains(other.Problem, "its time and size is") {
		t.Errorf("%q does not say why the file of another build is not taken", other.Problem)
	}
}
