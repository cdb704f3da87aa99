// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/confine/confinetest"
	"github.com/unwindd/unwindd/internal/oracle"
)

// compile compiles C, or skips where there is no compiler.
func compile(t *testing.T, source string, args ...string) {
	t.Helper()
	oracle.With{Input: source}.Run(t, "gcc", append([]string{"-x", "c", "-", "-x", "none"}, args...)...)
}

// TestSharedLibrariesStayReadable runs a program whose library, and that one's,
// lie beside it, under the whole sandbox.
func TestSharedLibrariesStayReadable(t *testing.T) {
	confinetest.Need(t)
	dir := t.TempDir()
	lib := filepath.Join(dir, "lib")
	if err := os.Mkdir(lib, 0o700); err != nil {
		t.Fatal(err)
	}
	inner, outer := filepath.Join(lib, "libinner.so"), filepath.Join(lib, "libouter.so")
	compile(t, `int inner(void) { return 42; }`, "-shared", "-fPIC", "-Wl,-soname,libinner.so", "-o", inner)
	compile(t, `int inner(void); int outer(void) { return inner(); }`, "-shared", "-fPIC", "-Wl,-soname,libouter.so",
		inner, "-Wl,-rpath,$ORIGIN", "-o", outer)
	program := filepath.Join(dir, "program")
	compile(t, `int outer(void); int main(void) { return outer(); }`, "-o", program,
		outer, "-Wl,-rpath,$ORIGIN/lib", "-Wl,-rpath-link,"+lib)

	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := libraries(program, f, nil)
	for _, want := range []string{inner, outer} {
		if !slices.Contains(found, want) {
			t.Errorf("%s is not among %q", want, found)
		}
	}
	// Linked by name to where it is installed, as package managers do.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{program, link} {
		out, err := exec.Command(self(t), "plugin", "exec", "--", path).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 42 {
			t.Errorf("%s: %v: %s", path, err, out)
		}
	}
}

// TestLibrariesOpenNothingElse: what an executable names as its library is not
// a way to the user's files.
func TestLibrariesOpenNothingElse(t *testing.T) {
	dir := t.TempDir()
	lib := filepath.Join(dir, "libkey.so")
	compile(t, `int f(void) { return 0; }`, "-shared", "-fPIC", "-Wl,-soname,libkey.so", "-o", lib)
	program := filepath.Join(dir, "program")
	compile(t, `int f(void); int main(void) { return f(); }`, "-o", program, lib, "-Wl,-rpath,$ORIGIN")
	if err := os.WriteFile(lib, []byte("-----BEGIN OPENSSH PRIVATE KEY-----"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, r := range pluginPaths(program, f) {
		if r.path == lib || r.path == dir {
			t.Errorf("%s is open to the plugin", r.path)
		}
	}
}

func TestLoaderDirectories(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ld.so.conf":    "include conf.d/*.conf\n/opt/one # why\nrelative\n\n#/opt/no\n",
		"conf.d/a.conf": "/opt/two/\n  /opt/three\ninclude " + filepath.Join(dir, "ld.so.conf") + "\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := loaderDirectories(filepath.Join(dir, "ld.so.conf"))
	slices.Sort(got)
	got = slices.Compact(got) // the files include each other, up to a bound
	if d := cmp.Diff([]string{"/opt/one", "/opt/three", "/opt/two"}, got); d != "" {
		t.Error(d)
	}
}
