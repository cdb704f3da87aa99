// SPDX-License-Identifier: Apache-2.0

package object

import "strings"

// maxLinks is how many symbolic links a path may lead through, as in the kernel.
const maxLinks = 40

// maxDirectoryNames bounds the names that are read in a directory of the target.
const maxDirectoryNames = 1 << 16

// absolute returns a path as seen from the root. It is not cleaned: ".." after a symbolic link is
// resolved by the file system.
func absolute(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return "/" + name
}
