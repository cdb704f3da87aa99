// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cmd/unwindd/internal/verify"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// leftOutOfShort leaves what compiles modules out of -short.
func leftOutOfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: run without -short")
	}
}

// TestVendorsModule installs the example of a vendor's plugin by name, and runs the tests
// of its module, both with what a module proxy has and without network.
func TestVendorsModule(t *testing.T) {
	leftOutOfShort(t)
	oracle.Tools(t, "go")
	t.Parallel()
	plugins := subject.InstallVendor(t, "arch-riscv64")
	m, err := plugin.NewManager(plugin.Options{Dirs: []string{plugins}, Self: self(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if a, err := m.Find("riscv64"); err != nil || !a.Recognises(plugin.File{Machine: object.ELFMachine{Number: uint16(elf.EM_RISCV)}}) {
		t.Errorf("an architecture of ELF machine %d: %v, %v", elf.EM_RISCV, a, err)
	}
	verifyVendor(t, plugins, vendorState)
	dir := filepath.Join(t.TempDir(), "module")
	if err := os.CopyFS(dir, os.DirFS(riscv64Example)); err != nil {
		t.Fatal(err)
	}
	env := subject.NewModuleProxy(t).Env
	oracle.With{Dir: dir, Env: env}.Run(t, "go", "vet", "./...")
	oracle.With{Dir: dir, Env: env}.Run(t, "go", "test", "./...")
	imported := oracle.With{Dir: dir, Env: env}.Run(t, "go", "list", "-f", `{{range .Imports}}{{println .}}{{end}}`, "./...")
	promised := []string{"sdk", "sdk/codeflow", "cfi", "locexpr"}
	for line := range strings.Lines(imported) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "github.com/unwindd/unwindd/"); ok && !slices.Contains(promised, name) {
			t.Errorf("the module imports %s, expected %s", name, promised)
		}
	}
}

// TestVendorsModuleInTheCheckout builds the example where it is, as its document says: its
// go.work says that the version it asks for is the checkout.
func TestVendorsModuleInTheCheckout(t *testing.T) {
	leftOutOfShort(t)
	t.Parallel()
	oracle.With{Dir: riscv64Example, Env: []string{"CGO_ENABLED=0", "GOWORK="}}.Run(t, "go", "build", "-trimpath", "-o", t.TempDir()+"/", "./unwindd-arch-riscv64")
}

const (
	riscv64Example = "../../../../examples/arch-riscv64"
	// vendorState is the recorded state of the example, beside which its stack lies.
	vendorState = riscv64Example + "/testdata/crash.snapshot"
)

// verifyVendor has a recorded state walked by the example's plugin.
func verifyVendor(t *testing.T, plugins, state string) {
	t.Helper()
	r := examine(t, verify.Options{Path: filepath.Join(plugins, "unwindd-arch-riscv64"), States: []string{state}})
	if len(r.Findings) > 0 || !r.Passed {
		t.Errorf("%+v", r.Findings)
	}
}

// TestVendorsStateIsMade makes the recorded state of the example again, as its make.sh does.
func TestVendorsStateIsMade(t *testing.T) {
	leftOutOfShort(t)
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
