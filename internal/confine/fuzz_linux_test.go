// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"bytes"
	"os"
	"testing"
)

// FuzzPluginPaths reads what a hostile executable says of its loader and its
// libraries: nothing but itself, its loader and ELF files may come of it.
func FuzzPluginPaths(f *testing.F) {
	if b, err := os.ReadFile("/bin/true"); err == nil && len(b) < 1<<17 {
		f.Add(b)
	}
	f.Add([]byte("#!/bin/sh -e\n"))
	f.Add([]byte("#!\n"))
	f.Add([]byte("#!/etc/passwd\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, r := range pluginPaths("/nowhere/plugin", bytes.NewReader(b)) {
			if r.rights&^(readTree|executeFile) != 0 {
				t.Fatalf("%s: rights %#x", r.path, r.rights)
			}
		}
		libs := libraries("/nowhere/plugin", bytes.NewReader(b), nil)
		if len(libs) > maxLibraries {
			t.Fatalf("%d libraries", len(libs))
		}
		for _, lib := range libs {
			file, err := os.Open(lib)
			if err != nil {
				t.Fatal(err)
			}
			if !isELF(file) {
				t.Fatalf("%s is no ELF file", lib)
			}
			file.Close()
		}
	})
}
