// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io/fs"
	"syscall"
	"time"
)

// Accessed returns the time when a file was read last.
func Accessed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Atimespec.Unix())
	}
	return info.ModTime()
}
