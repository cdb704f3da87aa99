// SPDX-License-Identifier: Apache-2.0

// Package parts has the data of the kernels of the examples: worn parts, one for each
// work-item.
package parts

// Wear is the wear of the part of a work-item, which decides its path through the
// kernels.
func Wear(item int) uint32 { return uint32(item / 8 * 9 % 31) }

// Measured returns the measurements of a side of a part.
func Measured(item, side int) []uint32 {
	m := make([]uint32, 1+(item/16+side)%4)
	for i := range m {
		m[i] = uint32((item + 7*side + 13*i) % 29)
	}
	return m
}
