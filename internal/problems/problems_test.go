// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"slices"
	"testing"
)

func TestListKeepsTheFirst(t *testing.T) {
	const most = 3
	var l List[int]
	if l.HasRoom(0) || l.Dropped() != 1 || len(l.Kept()) != 0 {
		t.Errorf("no room: %v kept, %d dropped, expected none and 1", l.Kept(), l.Dropped())
	}
	l = List[int]{}
	for n := range 10 {
		if l.HasRoom(most) {
			l.Keep(n)
		}
	}
	if !slices.Equal(l.Kept(), []int{0, 1, 2}) || l.Dropped() != 7 {
		t.Errorf("%v kept, %d dropped, expected [0 1 2] and 7", l.Kept(), l.Dropped())
	}
	// What a caller appends to the list is not part of it.
	_ = append(l.Kept(), 99)
	l.Keep(3)
	if got := l.Kept()[3]; got != 3 {
		t.Errorf("%d, expected 3", got)
	}
}
