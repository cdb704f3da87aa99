// SPDX-License-Identifier: Apache-2.0

//go:build unix

package perfdata

import "golang.org/x/sys/unix"

// readAt reads bytes of the file. The locks of an os.File would cost as much as a short read.
func readAt(s *scanner, b []byte, offset int64) (int, error) { return unix.Pread(s.fd, b, offset) }
