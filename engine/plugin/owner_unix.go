// SPDX-License-Identifier: Apache-2.0

//go:build unix

package plugin

import (
	"os"
	"syscall"
)

// isOwnedByUs reports whether a file belongs to this user.
func isOwnedByUs(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
