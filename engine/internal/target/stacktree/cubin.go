// SPDX-License-Identifier: Apache-2.0

package stacktree

import (
	"strconv"
	"strings"
)

// cubinPrefix begins the name of a mapping that is a cubin, before its number.
const cubinPrefix = "cubin-"

// CubinOf returns the number of a cubin (see object.CubinID) that a mapping is, by its name and its
// build IDs, as parcagpu and parca-agent write them: cubin-000000003ae994c7, that number in 16 digits
// as its build ID, or in 32 digits with zeros behind it. ok is false for another mapping.
func CubinOf(name string, buildIDs ...string) (id uint64, ok bool) {
	if digits, isCubin := strings.CutPrefix(name, cubinPrefix); isCubin {
		digits, _, _ = strings.Cut(digits, ":") // which the name of a kernel may follow
		if id, err := strconv.ParseUint(digits, 16, 64); err == nil && len(digits) == 16 {
			return id, true
		}
	}
	for _, digits := range buildIDs {
		if len(digits) == 32 {
			digits = strings.TrimSuffix(digits, strings.Repeat("0", 16))
		}
		// CUPTI's numbers have 32 bits; a build ID of 64 that is none has others too.
		if id, err := strconv.ParseUint(digits, 16, 64); err == nil && len(digits) == 16 && id>>32 == 0 {
			return id, true
		}
	}
	return 0, false
}
