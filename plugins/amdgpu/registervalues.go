// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// hasValue reports whether r has a value for one of the count registers from first.
func hasValue(r *sdk.Registers, first, count uint32) bool {
	i, _ := slices.BinarySearch(r.Numbers, first)
	for ; i < len(r.Numbers) && r.Numbers[i]-first < count; i++ {
		if value, ok := r.Get(r.Numbers[i]); ok && len(value) > 0 {
			return true
		}
	}
	return false
}
