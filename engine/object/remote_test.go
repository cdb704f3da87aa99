// SPDX-License-Identifier: Apache-2.0

package object

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestSymbolFilesAreBesideATarget lists the paths at which a symbol file may be. A name
// that is a path leads nowhere.
func TestSymbolFilesAreBesideATarget(t *testing.T) {
	f := Finder{Folders: []string{"/a", "/b/c"}}
	for name, want := range map[string][]string{
		"libc.so.6":    {"/a/libc.so.6.sym", "/b/c/libc.so.6.sym"},
		"kernel32.pdb": {"/a/kernel32.sym", "/b/c/kernel32.sym"},
		"NTDLL.PDB":    {"/a/NTDLL.sym", "/b/c/NTDLL.sym"},
		".pdb":         {"/a/.pdb.sym", "/b/c/.pdb.sym"},
		"":             nil, "..": nil, "../x": nil, "/etc/x": nil, `C:\x`: nil, `..\x`: nil, "a\x00": nil, "a\n": nil, "\xff": nil,
	} {
		var got []string
		tried := f.SymbolFiles(name, "0", func(path string) bool { got = append(got, path); return true })
		if !slices.Equal(got, want) || len(tried) > 0 {
			t.Errorf("%q: %q, expected %q", name, got, want)
		}
		for _, path := range got {
			if dir := filepath.Dir(path); !slices.Contains(f.Folders, dir) {
				t.Errorf("%q leads to %s", name, path)
			}
		}
	}
}
