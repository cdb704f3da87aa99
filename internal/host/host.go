// SPDX-License-Identifier: Apache-2.0

// Package host has small functions that every operating system does in its own way: files without
// names, their owners, the room on a disk, locks.
package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// IsLinux is true where targets run too: elsewhere the files at their paths are others.
const IsLinux = runtime.GOOS == "linux"

// IsOwn reports whether a file belongs to this user or to root, or its owner is not known here.
func IsOwn(info fs.FileInfo) bool {
	user, _, ok := Owner(info)
	return !ok || user == 0 || user == os.Geteuid()
}

// CacheDir returns the directory of the user's caches: of XDG_CACHE_HOME, or else .cache in HOME,
// or LOCALAPPDATA of Windows; "" if none is set. getenv reads a variable.
func CacheDir(getenv func(string) string) string {
	if dir := getenv("XDG_CACHE_HOME"); dir != "" {
		return dir
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".cache")
	}
	if runtime.GOOS == "windows" {
		return getenv("LOCALAPPDATA")
	}
	return ""
}

// PathOfURL returns the path of a file: URL on this machine. A drive of Windows follows a slash.
func PathOfURL(path string) string {
	if runtime.GOOS == "windows" && len(path) > 2 && path[0] == '/' && path[2] == ':' {
		path = path[1:]
	}
	return filepath.FromSlash(path)
}
