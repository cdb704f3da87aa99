// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// resolvedPath returns the path of an open file without symbolic links; "" where it is not known.
func resolvedPath(_ int, path string) string {
	resolved, _ := filepath.EvalSymlinks(path)
	return resolved
}

// inWords returns an error of a file without its path.
func inWords(err error) error {
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		return inner.Err
	}
	return err
}
