// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

func TestEveryOperationStandsOnceInTheTable(t *testing.T) {
	seen := map[x86asm.Op]bool{}
	for i := range operationGroups {
		for _, op := range operationGroups[i].ops {
			if seen[op] {
				t.Errorf("%v stands in several groups", op)
			}
			seen[op] = true
		}
	}
}
