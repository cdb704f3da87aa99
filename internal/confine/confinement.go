// SPDX-License-Identifier: Apache-2.0

package confine

// Confinement is the list of files and limits of a process of this executable that reads
// strangers' files: it is confined as plugins are, except for the system calls that it
// starts plugins with.
type Confinement struct {
	Read    []string // files and folders, with their contents, that it may read
	Open    []string // folders of which it may read files, and not list them
	Execute []string // files that it may execute too
	Write   []string // folders in which it may make and remove files and sockets
	// Memory bounds its data in bytes, FileSize the size of a file that it writes, Files
	// the number of its open descriptors.
	Memory, FileSize, Files uint64
}
