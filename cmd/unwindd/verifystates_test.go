// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/subject"
)

// TestRecordedStatesPassByTheirOwnReports does what the documents and the findings of `plugin
// verify` tell a vendor to do, for each recorded state of the repository: the report that
// `stack --format json` prints is written beside the state, and the state passes. It passes from
// another folder, too.
func TestRecordedStatesPassByTheirOwnReports(t *testing.T) {
	oracle.All(t)
	for _, c := range []struct {
		plugin string   // the folder of its executable, or an example that vendors install
		states []string // each in a folder with its files
		isMore bool     // it is for the proof
	}{
		{"plugins/x86_64/unwindd-arch-x86_64", []string{
			"examples/crash/server.core", "examples/crash/server.dmp", "engine/testdata/bounds/deep.snapshot", "engine/testdata/bounds/vain.snapshot"}, false},
		{"plugins/amdgpu/unwindd-arch-amdgpu", []string{"examples/mixed/mixed.snapshot", "examples/rocm-core/crash.core"}, false},
		{"plugins/visa/unwindd-arch-visa", []string{"examples/gen/gen.snapshot"}, true},
		{"plugins/nvidia/unwindd-arch-nvidia", []string{"examples/cuda-core/crash.core"}, true},
		{"internal/fixture/s390x/unwindd-arch-s390x", []string{"engine/testdata/bigendian/s390x.snapshot"}, true},
		{"internal/fixture/power/unwindd-arch-ppc64le", []string{"engine/testdata/bigendian/ppc64le.snapshot"}, true},
		{"internal/fixture/power/unwindd-arch-ppc64", []string{"engine/testdata/bigendian/ppc64.snapshot"}, false},
		{"arch-riscv64", []string{"examples/arch-riscv64/testdata/crash.snapshot"}, false},
	} {
		t.Run(filepath.Base(c.plugin), func(t *testing.T) {
			if c.isMore {
				proof.Only(t)
			}
			var plugin, dir string
			if filepath.Base(c.plugin) == c.plugin {
				dir = subject.InstallVendor(t, c.plugin)
				plugin = filepath.Join(dir, "unwindd-"+c.plugin)
			} else {
				folder := t.TempDir()
				plugin = filepath.Join(folder, filepath.Base(c.plugin))
				if strings.HasPrefix(c.plugin, "internal/") { // it is not bundled
					dir = folder
				}
				oracle.With{Dir: "../.."}.Run(t, "go", "build", "-o", plugin, "./"+c.plugin)
			}
			verify := []string{"plugin", "verify", plugin}
			for _, state := range c.states {
				verify = append(verify, "--state", withOwnReport(t, state, dir))
			}
			if out, errs, status := ran(t, verify...); status != 0 {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
		})
	}
}

// withOwnReport copies a state with the files of its folder, and writes its report beside it.
// The command is run in that folder.
func withOwnReport(t *testing.T, state, pluginDir string) string {
	t.Helper()
	dir, name := t.TempDir(), filepath.Base(state)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../..", filepath.Dir(state)))); err != nil {
		t.Fatal(err)
	}
	stack := []string{"stack", name, "--format", "json"}
	if pluginDir != "" {
		stack = append(stack, "--plugin-dir", pluginDir)
	}
	cmd := command(stack...)
	cmd.Dir = dir
	report, err := cmd.Output()
	if err == nil {
		os.Remove(filepath.Join(dir, name+".expected.json")) // the one that was written by hand
		err = os.WriteFile(filepath.Join(dir, name+".expected.json"), report, 0o600)
	}
	if err != nil {
		t.Fatalf("%s: %v", state, err)
	}
	return filepath.Join(dir, name)
}
