// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// TestKeptNames is about names that are shortened once: they are the same as without, also for
// functions of one name whose linkage name or file differs, and their number is bounded.
func TestKeptNames(t *testing.T) {
	kept, anew := names{most: textName, known: map[shortenedName]string{}}, names{most: textName}
	symbols := []trace.Symbol{
		{Function: "std::vector<int>::push_back(int)"}, {Function: "std::vector<int>::push_back(int)", File: "x.d"},
		{Function: "std::vector<int>::push_back(int)", LinkageName: "_D3x"}, {Function: "std::vector<int>::push_back(int)", IsDecoded: true},
		{Function: "a.b(c)", File: "x.go"}, {Function: "a.b(c)"}, {},
	}
	for i := range maxShortNames + 10 {
		symbols = append(symbols, trace.Symbol{Function: fmt.Sprintf("f%d<int>(int)", i)})
	}
	for range 2 {
		for i := range symbols {
			if got, want := kept.of(&symbols[i]), anew.of(&symbols[i]); got != want {
				t.Fatalf("%+v: %q, expected %q", symbols[i], got, want)
			}
		}
	}
	if len(kept.known) != maxShortNames {
		t.Errorf("%d names are kept", len(kept.known))
	}
}
