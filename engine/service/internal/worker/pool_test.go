// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"slices"
	"testing"
)

// TestIdleWorkersOfTheAddressWithTheMostEndFirst has many callers of one address beside one of
// another, whose worker was used before all of theirs.
func TestIdleWorkersOfTheAddressWithTheMostEndFirst(t *testing.T) {
	var idle []*process
	for _, w := range []who{{"honest", "there"}, {"a", "here"}, {"other", "elsewhere"}, {"b", "here"}, {"more", "elsewhere"}, {"c", "here"}} {
		idle = append(idle, &process{caller: w.caller, address: w.address})
	}
	var ended []string
	for len(idle) > 0 {
		n := dispensable(idle)
		ended = append(ended, idle[n].caller)
		idle = slices.Delete(idle, n, n+1)
	}
	if want := []string{"a", "other", "b", "honest", "more", "c"}; !slices.Equal(ended, want) {
		t.Errorf("%v, expected %v", ended, want)
	}
}

type who struct{ caller, address string }
