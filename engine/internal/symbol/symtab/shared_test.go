// SPDX-License-Identifier: Apache-2.0

package symtab

import "testing"

func TestNamesOfOneCodeThatMayBeOfSeveralFunctions(t *testing.T) {
	var list []candidate
	for i, names := range [][]string{{"own", "other"}, {"_ZN1SC1Ev", "_ZN1SC2Ev"}, {"_ZN1SD0Ev", "_ZN1SD2Ev"}, {"memcpy", "memcpy@@GLIBC_2.14"}, {"f1", "f2"}, {"alone"}} {
		for _, name := range names {
			start := uint64(0x1000 + 16*i)
			list = append(list, candidate{start: start, end: start + 16, name: name, typed: true})
		}
	}
	table := build(list)
	for i, want := range []bool{true, false, false, false, true, false, false} {
		if got := table.IsShared(uint64(0x1008 + 16*i)); got != want {
			t.Errorf("%d: %v, expected %v", i, got, want)
		}
	}
}
