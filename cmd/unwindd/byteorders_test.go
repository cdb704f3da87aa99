// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestBothByteOrdersAreSideBySide installs the plugins of 64-bit POWER, which have one
// ELF machine, in one plugin directory: each walks the snapshots of its byte order, and is the one
// that a file of its byte order is given to.
func TestBothByteOrdersAreSideBySide(t *testing.T) {
	oracle.All(t)
	dir := t.TempDir()
	for _, name := range []string{"unwindd-arch-ppc64", "unwindd-arch-ppc64le"} {
		oracle.With{Dir: "../.."}.Run(t, "go", "build", "-o", filepath.Join(dir, name), "./internal/fixture/power/"+name)
	}
	for _, arch := range []string{"ppc64", "ppc64le"} {
		oracle.Tools(t, "unzip")
		file := filepath.Join(dir, arch+".data", "modules", "0.elf")
		oracle.Run(t, "unzip", "-q", "../../engine/testdata/abi/"+arch+"-O0-data.snapshot", "modules/0.elf", "-d", filepath.Dir(filepath.Dir(file)))
		if out, errs, status := ran(t, "plugin", "call", "OpenObject", file, "--plugin-dir", dir); status != 0 || !strings.Contains(out, "_start") {
			t.Errorf("OpenObject of a file of %s: status %d\n%s%s", arch, status, out, errs)
		}
		for _, build := range []string{"O0", "bare"} {
			out, errs, status := ran(t, "stack", "--format", "json", "--plugin-dir", dir, "../../engine/testdata/abi/"+arch+"-"+build+"-handler.snapshot")
			var report struct {
				Threads []struct {
					Arch   string
					Frames []struct{ Function string }
				}
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil || status != 0 || len(report.Threads) != 1 {
				t.Errorf("%s %s: status %d, %v\n%s%s", arch, build, status, err, out, errs)
				continue
			}
			functions := map[string]bool{}
			for _, f := range report.Threads[0].Frames {
				functions[f.Function] = true
			}
			for _, want := range []string{"crash", "handler", "narrow", "middle"} {
				if report.Threads[0].Arch != arch || !functions[want] {
					t.Errorf("%s %s: the thread is of %s, and %s is missing\n%s", arch, build, report.Threads[0].Arch, want, out)
				}
			}
		}
	}
}
