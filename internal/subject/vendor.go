// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// proxiedVersion is the version of this checkout that the module proxy of tests has.
const proxiedVersion = "v0.0.0"

// ModuleProxy is a module proxy of this checkout and of modules of users.
type ModuleProxy struct {
	dir string
	// Env is the environment of a user who has no other proxy: modules that this checkout
	// needs come from the module cache. Executables are built without paths, so that the
	// build cache has them although the folder is a new one each time.
	Env []string
	// Bin is where executables are installed.
	Bin string
}

// NewModuleProxy returns a module proxy of this checkout.
func NewModuleProxy(t testing.TB) *ModuleProxy {
	t.Helper()
	p := &ModuleProxy{dir: t.TempDir()}
	p.Add(t, "github.com/unwindd/unwindd", filepath.Dir(oracle.Checkout(t, "engine")), func(path string) bool {
		top, _, _ := strings.Cut(filepath.ToSlash(path), "/")
		return top == "examples" || top == "docs" || strings.HasPrefix(top, ".")
	})
	cache := strings.TrimSpace(oracle.Run(t, "go", "env", "GOMODCACHE"))
	home := t.TempDir()
	t.Cleanup(func() { // the module cache is read only
		_ = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	p.Bin = filepath.Join(home, "bin")
	p.Env = []string{
		"GOPROXY=file://" + p.dir + ",file://" + filepath.Join(cache, "cache", "download") + ",off",
		"GOMODCACHE=" + filepath.Join(home, "mod"), "GOBIN=" + p.Bin,
		"GONOSUMDB=*", "GOFLAGS=-mod=mod -trimpath", "GOWORK=off", "CGO_ENABLED=0", "GOTOOLCHAIN=local",
	}
	return p
}

// Add puts a module into the proxy (Go Modules Reference, "GOPROXY protocol"). Data of
// tests and modules inside it are left out, and the paths that isLeftOut reports.
func (p *ModuleProxy) Add(t testing.TB, path, dir string, isLeftOut func(string) bool) {
	t.Helper()
	versions := filepath.Join(p.dir, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(versions, 0o700); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list": proxiedVersion + "\n", proxiedVersion + ".mod": string(mod),
		proxiedVersion + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, proxiedVersion),
	} {
		if err := os.WriteFile(filepath.Join(versions, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(versions, proxiedVersion+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	err = addFiles(z, path+"@"+proxiedVersion+"/", dir, isLeftOut)
	if err := errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// addFiles adds the files of a module, with a prefix before their names.
func addFiles(z *zip.Writer, prefix, dir string, isLeftOut func(string) bool) error {
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		_, nested := os.Stat(filepath.Join(file, "go.mod"))
		switch {
		case d.IsDir() && (d.Name() == "testdata" || nested == nil), isLeftOut(name):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !d.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		w, err := z.Create(prefix + filepath.ToSlash(name))
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	})
}

// Whole leaves nothing of a module out.
func Whole(string) bool { return false }

// InstallVendor installs the plugin of a module in examples as its users do, by go
// install, and returns the folder that it is in.
func InstallVendor(t testing.TB, name string) string {
	t.Helper()
	p := NewModuleProxy(t)
	p.Add(t, "example.com/"+name, oracle.Checkout(t, "examples/"+name), Whole)
	oracle.With{Dir: t.TempDir(), Env: p.Env}.Run(t, "go", "install", "example.com/"+name+"/unwindd-"+name+"@"+proxiedVersion)
	return p.Bin
}
