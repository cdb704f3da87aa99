// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// TestVendorsModule installs the example of a vendor's plugin by name, and runs the tests
// of its module, both with what a module proxy has and without network.
func TestVendorsModule(t *testing.T) {
	long(t)
	oracle.Tools(t, "go")
	t.Parallel()
	plugins := subject.InstallVendor(t, "arch-riscv64")
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
	env := subject.NewModuleProxy(t).Env
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
	verifyVendor(t, subject.InstallVendor(t, "arch-riscv64"), made)
}
