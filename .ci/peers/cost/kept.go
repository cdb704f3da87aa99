// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"os"
	"path/filepath"
)

// Kept returns a folder of the user's cache directory, which a function fills if it is not
// there. Of two that fill it at once the first one's stays.
func Kept(name string, fill func(dir string) error) (string, error) {
	dir, err := place(name)
	if err != nil || IsKept(name) {
		return dir, err
	}
	root := filepath.Dir(dir)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(root, "making-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	if err := fill(made); err != nil {
		return "", err
	}
	if err := os.Rename(made, dir); err != nil && !os.IsExist(err) {
		return "", err
	}
	return dir, nil
}

// IsKept reports whether Kept has nothing to make.
func IsKept(name string) bool {
	dir, err := place(name)
	if err == nil {
		_, err = os.Stat(dir)
	}
	return err == nil
}

// place returns the folder of a name.
func place(name string) (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "unwindd-peers", name), err
}
