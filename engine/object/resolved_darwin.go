// SPDX-License-Identifier: Apache-2.0

package object

import "path/filepath"

// resolvedPath returns the path of an open file without symbolic links; "" where it is not known.
func resolvedPath(_ int, path string) string {
	resolved, _ := filepath.EvalSymlinks(path)
	return resolved
}
