// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

const aarch64Root = "/usr/aarch64-linux-gnu"

// TestCoresOfAArch64ByQemu has a program of AArch64 crash under qemu, which writes a core
// of it, and walks that by the bundled plugin, in its own process: the calls that the
// source says, with the address signed and not, with call frame information and without.
func TestCoresOfAArch64ByQemu(t *testing.T) {
	long(t)
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "qemu-aarch64", "sh")
	for name, c := range map[string]struct {
		flags []string
		what  string // how the program ends
		want  []string
	}{
		"plain":             {[]string{"-O1", "-g"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"signed":            {[]string{"-O1", "-g", "-mbranch-protection=standard"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"static":            {[]string{"-O2", "-g", "-static", "-fno-optimize-sibling-calls"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"without frames":    {[]string{"-O1", "-g", "-fomit-frame-pointer"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"without CFI":       {[]string{"-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"null call":         {[]string{"-O1", "-g"}, "call", []string{"", "calls", "step", "step", "step", "main"}},
		"null call, PAC":    {[]string{"-O1", "-g", "-mbranch-protection=pac-ret+leaf"}, "call", []string{"", "calls", "step", "step", "step", "main"}},
		"large frame":       {[]string{"-O1", "-g", "-DROOM=70000"}, "data", []string{"reads", "step", "step", "step", "main"}},
		"null call, no CFI": {[]string{"-O1", "-fno-asynchronous-unwind-tables"}, "call", []string{"", "calls", "step", "step", "step", "main"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			exe := filepath.Join(dir, "subject")
			oracle.Run(t, "aarch64-linux-gnu-gcc", append(c.flags, "-o", exe, filepath.Join("testdata", "subjects", "aarch64crash.c"))...)
			cmd := exec.Command("sh", "-c", "ulimit -c unlimited && exec qemu-aarch64 -cpu max -L "+aarch64Root+" ./subject "+c.what)
			cmd.Dir = dir
			_ = cmd.Run() // it crashes
			cores, _ := filepath.Glob(filepath.Join(dir, "qemu_*.core"))
			if len(cores) != 1 {
				list, _ := os.ReadDir(dir)
				t.Fatalf("%d cores of qemu in %v", len(cores), list)
			}
			got := stackJSON(t, cores[0], "--sysroot", aarch64Root, "--exe", exe)
			names := []string{}
			for _, f := range got.Threads[0].Frames {
				if names = append(names, f.Function); f.Function == "main" {
					break
				}
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("%q, expected %q", names, c.want)
			}
			if last := got.Threads[0].Frames[len(got.Threads[0].Frames)-1]; last.Function != "_start" {
				t.Errorf("it ends in %s, expected _start: %+v", last.Function, got.Threads[0].Stopped)
			}
		})
	}
}
