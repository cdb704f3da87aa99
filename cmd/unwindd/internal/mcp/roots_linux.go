// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// kernels are the file systems whose files are views of living processes and of the kernel.
var kernels = []int64{unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC}

// isOfKernel reports whether a file is not on a disk.
func isOfKernel(f *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &st) != nil || slices.Contains(kernels, int64(st.Type)) //nolint:unconvert // it has 32 bits elsewhere
}
