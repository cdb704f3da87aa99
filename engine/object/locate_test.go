// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

func TestLocateStaysBeneathTheRoot(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "src"), 0o700),
		os.WriteFile(filepath.Join(dir, "outside"), []byte("outside"), 0o600),
		os.WriteFile(filepath.Join(root, "src/a.c"), []byte("a"), 0o600),
		os.WriteFile(filepath.Join(root, "src/empty.c"), nil, 0o600),
		os.Symlink("/src/a.c", filepath.Join(root, "absolute")),
		os.Symlink("../../../outside", filepath.Join(root, "src/up")),
		os.Symlink(filepath.Join(dir, "outside"), filepath.Join(root, "out")),
		os.Symlink("loop", filepath.Join(root, "loop")),
		oracle.Mkfifo(filepath.Join(root, "fifo")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"/src/a.c", "src/a.c", "/src/../src/a.c", "/../../src/a.c", "/absolute"} {
		path, size, err := Locate(root, name)
		if err != nil || path != filepath.Join(root, "src/a.c") || size != 1 {
			t.Errorf("%s: %s, %d, %v", name, path, size, err)
		}
	}
	for _, name := range []string{"/outside", "/../outside", "/src/up", "/out", "/loop", "/none", "", "/", "/src/a.c\x00"} {
		if path, _, err := Locate(root, name); err == nil {
			t.Errorf("%q is %s", name, path)
		}
	}
	for name, want := range map[string]error{"/fifo": ErrNotRegular, "/src": ErrNotRegular, "/src/empty.c": ErrEmpty} {
		if _, _, err := Locate(root, name); !errors.Is(err, want) {
			t.Errorf("%s: %v, expected %v", name, err, want)
		}
	}
	if path, size, err := Locate("", filepath.Join(dir, "outside")); err != nil || path != filepath.Join(dir, "outside") || size != 7 {
		t.Errorf("without a root: %s, %d, %v", path, size, err)
	}
	if _, _, err := Locate("/", "/proc/self/environ"); err == nil {
		t.Error("a file of the kernel's that says that it is empty is found")
	}
}
