// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/unwindd/unwindd/internal/confine"
)

// DataSuffix ends the name of the folder of a plugin's data, which lies beside its executable:
// unwindd-arch-NAME.data.
const DataSuffix = ".data"

// dataFolder returns the folder of the data of the plugin at a path, with symbolic links
// resolved; "" where there is none. It is an error if others may write to it.
func dataFolder(path string) (string, error) {
	dir, err := filepath.Abs(path + DataSuffix)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", withoutCall(err)
	case !info.IsDir():
		return "", fmt.Errorf("%s is no folder, and a plugin's data is in one", dir)
	}
	if err := checkTrust(dir); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// isFolder reports whether a path leads to a folder.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// hashFile returns the SHA-256 of a file.
func hashFile(path string) (string, error) {
	sum, err := confine.HashFile(path)
	return sum, withoutCall(err)
}
