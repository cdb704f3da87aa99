// SPDX-License-Identifier: Apache-2.0

package value

import (
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// A cache forgets the values that were not needed for longest, and keeps those that are.
func TestCacheForgets(t *testing.T) {
	c := NewCache()
	needed := objectKey{address: 1}
	c.add(needed, remembered{trace.Value{Text: "needed"}, 1})
	for i := range uint64(5 * maxRemembered) {
		c.add(objectKey{address: 2 + i}, remembered{values: 1})
		if i%(maxRemembered/2) != 0 {
			continue
		}
		if v, ok := c.find(needed); !ok || v.Text != "needed" {
			t.Fatalf("after %d values: %q, %t", i, v.Text, ok)
		}
		if n := len(c.known) + len(c.older); n > 2*maxRemembered {
			t.Fatalf("after %d values %d are remembered, at most %d expected", i, n, 2*maxRemembered)
		}
	}
	if _, ok := c.find(objectKey{address: 2}); ok {
		t.Error("the value that was needed first is remembered still")
	}
}
