// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// This file finds the companions with the debug information of Mach-O files that dsymutil writes: the file
// NAME.dSYM/Contents/Resources/DWARF/NAME, whose UUID is the program's.

const (
	dsymSuffix  = ".dSYM"
	dsymInside  = "Contents/Resources/DWARF"
	archiveDirs = "dSYMs" // of an .xcarchive
)

// maxBundles bounds how many folders above a program are looked at for the bundle that it is in.
const maxBundles = 8

// bundleSuffixes end the names of folders with a program inside, whose dSYM is beside the folder.
var bundleSuffixes = []string{".app", ".framework", ".bundle", ".appex", ".xpc", ".kext", ".plugin", ".dext", ".systemextension"}

// dsymPlaces returns the paths of the dSYM of a program, by its path: beside it, and beside the bundles that
// it is in.
func dsymPlaces(file string) (list []string) {
	base := filepath.Base(file)
	list = append(list, filepath.Join(file+dsymSuffix, dsymInside, base))
	dir := filepath.Dir(file)
	for range maxBundles {
		if slices.Contains(bundleSuffixes, strings.ToLower(filepath.Ext(dir))) {
			list = append(list, filepath.Join(dir+dsymSuffix, dsymInside, base))
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return list
}

// dsymFiles returns the files of the dSYMs that a folder is, or has: an archive of Xcode has them in a folder
// of their own. At most maxFolderEntries are looked at.
func dsymFiles(dir string, entries []fs.DirEntry) (list []string) {
	for _, folder := range dsymFolders(dir, entries) {
		inside := filepath.Join(folder, dsymInside)
		for _, entry := range sortedEntries(inside) {
			if entry.Type().IsRegular() && len(list) < maxFolderEntries {
				list = append(list, filepath.Join(inside, entry.Name()))
			}
		}
	}
	return list
}

// dsymFolders returns the folders of dSYMs that a folder is, or has.
func dsymFolders(dir string, entries []fs.DirEntry) (list []string) {
	if isDSYM(dir) {
		return []string{dir}
	}
	for _, entry := range entries {
		folder := filepath.Join(dir, entry.Name())
		switch {
		case isDSYM(folder):
			list = append(list, folder)
		case entry.Name() == archiveDirs, strings.EqualFold(filepath.Ext(folder), ".xcarchive"):
			if entry.Name() != archiveDirs {
				folder = filepath.Join(folder, archiveDirs)
			}
			for _, one := range sortedEntries(folder) {
				if isDSYM(one.Name()) {
					list = append(list, filepath.Join(folder, one.Name()))
				}
			}
		}
	}
	return list
}

// DSYMName returns the name that the dSYM of a program has, by the path of the program: that of the innermost bundle
// with it, or its own, with an ending.
func DSYMName(path string) string {
	dir := filepath.Dir(path)
	for range maxBundles {
		if slices.Contains(bundleSuffixes, strings.ToLower(filepath.Ext(dir))) {
			return filepath.Base(dir) + dsymSuffix
		}
		dir = filepath.Dir(dir)
	}
	return filepath.Base(path) + dsymSuffix
}

func isDSYM(path string) bool { return strings.EqualFold(filepath.Ext(path), dsymSuffix) }

// sortedEntries returns the entries of a folder, sorted by name, at most maxFolderEntries; none where it cannot be
// read.
func sortedEntries(dir string) []fs.DirEntry {
	d, err := os.OpenFile(dir, openDirFlags, 0)
	if err != nil {
		return nil
	}
	defer d.Close()
	list, _ := d.ReadDir(maxFolderEntries)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// InDSYM returns the path of the file in a dSYM whose folder is at a path. Another path is returned as it is. The
// error of a dSYM that has not one file names them.
func InDSYM(path string) (string, error) {
	clean := strings.TrimRight(path, "/")
	if !isDSYM(clean) || !isFolder(clean) {
		return path, nil
	}
	files := dsymFiles(clean, nil)
	switch len(files) {
	case 1:
		return files[0], nil
	case 0:
		return "", fmt.Errorf("%s: no file in its folder %s", clean, dsymInside)
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = filepath.Base(file)
	}
	return "", fmt.Errorf("%s: %d files in its folder %s: name one of %s", clean, len(files), dsymInside, strings.Join(names, ", "))
}
