// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/subject"
)

// The compiler's container has the files that it dumps of each kernel.
func TestKernelsInAContainerAreReadLikeFilesOfTheirOwn(t *testing.T) {
	files := subject.BuildIntel(t)
	out, stderr, status := unwindd(t, "dump", "notes", files.Container)
	if status != 0 || !strings.HasPrefix(out, "container\n  #0 ") || !strings.Contains(out, "bytes  alpha\n") || !strings.Contains(out, "bytes  beta\n") {
		t.Errorf("%d %s\n%s", status, stderr, out)
	}
	if len(files.ELF) != 2 {
		t.Fatalf("%q, expected two", files.ELF)
	}
	for i, name := range []string{"alpha", "beta"} {
		for _, args := range [][]string{
			{"dump", "rows", "FILE", "--format", "json"},
			{"dump", "cfi", "FILE"},
			{"dump", "expr", "FILE"},
			{"symbolize", "--obj", "FILE", "0x0", "0x40", "0x100", "0x200", "0x300"},
		} {
			of := func(file string) string {
				args := slices.Clone(args)
				args[slices.Index(args, "FILE")] = file
				out, stderr, status := unwindd(t, args...)
				if status != 0 || stderr != "" {
					t.Errorf("%q: %d %s", args, status, stderr)
				}
				return out
			}
			inside, alone := of(files.Container+"#"+name), of(files.ELF[i])
			if inside != alone || len(inside) < 20 {
				t.Errorf("%q of %s:\n%s\nof the file:\n%s", args, name, inside, alone)
			}
		}
	}
	for file, says := range map[string]string{
		files.Container: "but a file that holds code objects: name a code object in it",
		strings.TrimSuffix(files.ELF[0], ".elf") + ".dbg": "not an ELF file",
		files.Container + "#gamma":                        "no such code object in the file",
	} {
		if _, stderr, status := unwindd(t, "dump", "rows", file); status != 1 || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d %q, expected %q", file, status, stderr, says)
		}
	}
}
