// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
)

// TestFoldersWithoutFilesOfCodeAreLeftOut has folders with the kinds of files that lie beside targets.
func TestFoldersWithoutFilesOfCodeAreLeftOut(t *testing.T) {
	for name, isKept := range map[string]bool{
		"core": false, "crash.json": false, "other.log": false,
		"server": true, "SERVER.exe": true, "server.sym": true, "libc.debug": true, "x.dwo": true,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		f := object.Finder{Folders: []string{dir}, Indexes: object.NewFolderIndexes()}
		if got := f.FoldersOf("/usr/bin/server"); slices.Contains(got, dir) != isKept {
			t.Errorf("%s: %v, expected it to be kept: %v", name, got, isKept)
		}
		f = object.Finder{Folders: []string{dir}}
		if got := f.FoldersOf("/usr/bin/server"); !slices.Contains(got, dir) {
			t.Errorf("%s: %v, expected all folders where none are remembered", name, got)
		}
	}
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "renamed"), exe, 0o600); err != nil {
		t.Fatal(err)
	}
	f := object.Finder{Folders: []string{dir}, Indexes: object.NewFolderIndexes()}
	if o, err := object.Open("/proc/self/exe"); err != nil || len(o.BuildID()) > 0 == (len(f.FoldersOf("/usr/bin/server")) == 0) {
		t.Errorf("%v, %v: code with a build ID is in the folder", f.FoldersOf("/usr/bin/server"), err)
	}
}
