// SPDX-License-Identifier: Apache-2.0

// Package parts is what the kernels of the examples work on: worn parts, one for
// each work-item.
package parts

// Wear is how worn the part of a work-item is, which decides its way through the
// kernels.
func Wear(item int) uint32 { return uint32(item / 8 * 9 % 31) }

// Measured is how often a side of a part is measured, and what each gives.
func Measured(item, side int) []uint32 {
	m := make([]uint32, 1+(item/16+side)%4)
	for i := range m {
		m[i] = uint32((item + 7*side + 13*i) % 29)
	}
	return m
}
