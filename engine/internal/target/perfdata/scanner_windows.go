// SPDX-License-Identifier: Apache-2.0

package perfdata

// readAt reads bytes of the file.
func readAt(s *scanner, b []byte, offset int64) (int, error) { return s.file.ReadAt(b, offset) }
