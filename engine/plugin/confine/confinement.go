// SPDX-License-Identifier: Apache-2.0

package confine

// A Confinement is what a process of this executable may still use that reads files which
// strangers have made: it is confined as plugins are, but for the system calls that it
// starts plugins with.
type Confinement struct {
	Read    []string // files, and folders with all that is in them, that it may read
	Execute []string // files that it may execute too
	Write   []string // folders in which it may make and remove files and sockets
	// Memory is how many bytes of data it may have, FileSize how many bytes a file may get
	// that it writes, Files how many descriptors it may have open.
	Memory, FileSize, Files uint64
}
