// SPDX-License-Identifier: Apache-2.0

package code

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/aarch64"
)

// TestFunctionsOfGoThatHaveCallers: Go's linker has the return address undefined in all functions that
// are marked as the first of a stack. Of those that have a caller, the table of the runtime
// says where it is.
func TestFunctionsOfGoThatHaveCallers(t *testing.T) {
	dir := t.TempDir()
	source, program := filepath.Join(dir, "p.go"), filepath.Join(dir, "p")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(1) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"GOARCH": "arm64", "GOOS": "linux", "CGO_ENABLED": "0", "GOFLAGS": "", "GO111MODULE": "off"} {
		t.Setenv(name, value)
	}
	oracle.Run(t, oracle.Tool(t, "go"), "build", "-o", program, source)
	loaded := moduleOf(t, object.NewStore(), program)
	loaded.Arch = "aarch64"
	m := newLibrary(t, 0, aarch64.New()).Load(loaded, Loading{})
	t.Cleanup(m.Close)

	middle := middlesOf(t, program)
	for name, hasCaller := range map[string]bool{
		"runtime.sigtramp.abi0": true, "runtime.mstart.abi0": true, "runtime.goexit.abi0": false, "runtime.rt0_go.abi0": false,
	} {
		address, ok := middle[name]
		if !ok {
			t.Fatalf("the program has no %s", name)
		}
		row, err := m.Row(t.Context(), address, true)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		isLast := row.Rules == nil
		if !isLast {
			back, isSaid := row.Rules.Rule(row.Rules.ReturnAddress)
			isLast = isSaid && back.Kind == cfi.Undefined
		}
		if isLast == hasCaller {
			t.Errorf("%s at %#x: the row %+v, expected that it has a caller: %v", name, address, row.Rules, hasCaller)
		}
	}
}

// middlesOf are addresses in the middle of functions.
func middlesOf(t *testing.T, path string) map[string]uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	middles := map[string]uint64{}
	for _, s := range list {
		middles[s.Name] = s.Value + s.Size/2&^3
	}
	return middles
}
