// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/examples/mixed/simt"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// TestSnapshotIsWhatItsKernelsDo executes the code objects in the snapshot anew:
// the waves have the registers of its waves, and the calls that their stacks say.
func TestSnapshotIsWhatItsKernelsDo(t *testing.T) {
	oracle.Tools(t, "llvm-objdump", "llvm-objdump-22")
	const file = "../../../../examples/mixed/mixed.snapshot"
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	target, err := e.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	threads := target.Threads()[1:]
	var waves []*simt.Wave
	for i := range dispatches {
		d := &dispatches[i]
		b, err := fs.ReadFile(z, fmt.Sprintf("modules/%d.elf", d.number))
		if err != nil {
			t.Fatal(err)
		}
		code := filepath.Join(t.TempDir(), d.kernel+".co")
		if err := os.WriteFile(code, b, 0o600); err != nil {
			t.Fatal(err)
		}
		program, executed, err := d.execute(code)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range executed {
			th := threads[len(waves)]
			if want := registers(w, program); !reflect.DeepEqual(th.Registers, want) {
				t.Errorf("%s: its registers are not those that %s has", th.ID, d.kernel)
			}
			waves = append(waves, w)
		}
	}
	if len(waves) != len(threads) {
		t.Errorf("%d waves, expected %d", len(threads), len(waves))
	}
	if err := check(e, file, waves); err != nil {
		t.Error(err)
	}
}
