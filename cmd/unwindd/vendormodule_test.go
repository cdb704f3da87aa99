// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// proxiedVersion is the version of this checkout that the module proxy of the tests has.
const proxiedVersion = "v0.0.0"

// moduleProxy makes a module proxy of this checkout and of modules of the examples, and
// returns the environment of who has no other one: modules that this checkout needs come
// from the module cache. Paths are left out of what is built, so that the build cache
// has it although the folder is a new one each time.
func moduleProxy(t *testing.T, root string, examples ...string) []string {
	t.Helper()
	dir := t.TempDir()
	addModule(t, dir, strings.TrimSuffix(module, "/"), root, func(path string) bool {
		top, _, _ := strings.Cut(filepath.ToSlash(path), "/")
		return top == "examples" || top == "docs" || strings.HasPrefix(top, ".")
	})
	for _, name := range examples {
		addModule(t, dir, "example.com/"+name, filepath.Join(root, "examples", name), func(string) bool { return false })
	}
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
	return []string{
		"GOPROXY=file://" + dir + ",file://" + filepath.Join(cache, "cache", "download") + ",off",
		"GOMODCACHE=" + filepath.Join(home, "mod"), "GOBIN=" + filepath.Join(home, "bin"),
		"GONOSUMDB=*", "GOFLAGS=-mod=mod -trimpath", "GOWORK=off", "CGO_ENABLED=0", "GOTOOLCHAIN=local",
	}
}

// addModule puts a module into a proxy (Go Modules Reference, "GOPROXY protocol"). Data of
// tests and modules inside it are left out.
func addModule(t *testing.T, proxy, path, dir string, isLeftOut func(string) bool) {
	t.Helper()
	versions := filepath.Join(proxy, filepath.FromSlash(path), "@v")
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
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
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
		w, err := z.Create(path + "@" + proxiedVersion + "/" + filepath.ToSlash(name))
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	})
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// goBin is where an environment of moduleProxy has executables installed.
func goBin(env []string) string { return variable(env, "GOBIN") }

// proxyOf is the folder of the proxy of an environment of moduleProxy.
func proxyOf(env []string) string {
	first, _, _ := strings.Cut(variable(env, "GOPROXY"), ",")
	return strings.TrimPrefix(first, "file://")
}

func variable(env []string, name string) string {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// installVendor installs the plugin of a module in examples/ as its users do, by go
// install, and returns the folder that it is in.
func installVendor(t *testing.T, name string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	env := moduleProxy(t, root, name)
	oracle.With{Dir: t.TempDir(), Env: env}.Run(t, "go", "install", "example.com/"+name+"/unwindd-"+name+"@"+proxiedVersion)
	return goBin(env)
}

// TestVendorsModule installs the example of a vendor's plugin by name, and runs the tests
// of its module, both with what a module proxy has and without network.
func TestVendorsModule(t *testing.T) {
	long(t)
	oracle.Tools(t, "go")
	t.Parallel()
	plugins := installVendor(t, "arch-riscv64")
	stdout, stderr, status := unwindd(t, "plugin", "list", "--plugin-dir", plugins)
	if status != exitDone || !strings.Contains(stdout, "riscv64") || !strings.Contains(stdout, "ELF machine 243") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	verifyVendor(t, plugins, vendorState)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "module")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "examples", "arch-riscv64"))); err != nil {
		t.Fatal(err)
	}
	env := moduleProxy(t, root)
	oracle.With{Dir: dir, Env: env}.Run(t, "go", "vet", "./...")
	oracle.With{Dir: dir, Env: env}.Run(t, "go", "test", "./...")
	imported := oracle.With{Dir: dir, Env: env}.Run(t, "go", "list", "-f", `{{range .Imports}}{{println .}}{{end}}`, "./...")
	for line := range strings.Lines(imported) {
		if room, ok := strings.CutPrefix(strings.TrimSpace(line), module); ok && room != "sdk" && room != "cfi" && room != "locexpr" {
			t.Errorf("the module imports %s, expected sdk, cfi and locexpr", room)
		}
	}
}

// TestVendorsModuleInTheCheckout builds the example where it is, as its document says: its
// go.work says that the version it asks for is the checkout.
func TestVendorsModuleInTheCheckout(t *testing.T) {
	long(t)
	t.Parallel()
	dir := filepath.Join("..", "..", "examples", "arch-riscv64")
	oracle.With{Dir: dir, Env: []string{"CGO_ENABLED=0", "GOWORK="}}.Run(t, "go", "build", "-trimpath", "-o", t.TempDir()+"/", "./unwindd-arch-riscv64")
}

// vendorState is the recorded state of the example, beside which its stack lies.
const vendorState = "../../examples/arch-riscv64/testdata/crash.snapshot"

// verifyVendor has a recorded state walked by the example's plugin.
func verifyVendor(t *testing.T, plugins, state string) {
	t.Helper()
	stdout, stderr, status := unwindd(t, "plugin", "verify", filepath.Join(plugins, "unwindd-arch-riscv64"), "--state", state)
	if status != exitDone || !strings.Contains(stdout, "passed: 0 errors, 0 warnings") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

// TestVendorsStateIsMade makes the recorded state of the example again, as its make.sh does.
func TestVendorsStateIsMade(t *testing.T) {
	long(t)
	oracle.Tools(t, "sh", "python3", "riscv64-linux-gnu-gcc", "qemu-riscv64", "gdb-multiarch")
	dir := t.TempDir()
	oracle.Run(t, "sh", filepath.Join(filepath.Dir(vendorState), "make.sh"), dir)
	made := filepath.Join(dir, filepath.Base(vendorState))
	expected, err := os.ReadFile(vendorState + ".expected.json")
	if err == nil {
		err = os.WriteFile(made+".expected.json", expected, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	verifyVendor(t, installVendor(t, "arch-riscv64"), made)
}
