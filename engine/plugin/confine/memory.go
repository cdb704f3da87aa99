// SPDX-License-Identifier: Apache-2.0

//go:build !race && !asan && !msan

package confine

// The memory of a plugin in bytes: what it may have for data, and all that it
// may map.
const (
	DataLimit         = 4 << 30
	addressSpaceLimit = 16 << 30
)
