// SPDX-License-Identifier: Apache-2.0

//go:build !race && !asan && !msan

package confine

// Bounds of the memory of a plugin in bytes: its data, and all that it maps.
const (
	DataLimit         = 4 << 30
	addressSpaceLimit = 16 << 30
)
