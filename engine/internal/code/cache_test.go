// SPDX-License-Identifier: Apache-2.0

package code

import "testing"

// TestACacheCountsWhatItHas adds values once, once more, and beyond the bound.
func TestACacheCountsWhatItHas(t *testing.T) {
	var c cache[int, string]
	if _, ok := c.find(1); ok {
		t.Error("an empty cache knows something")
	}
	if !c.add(1, "one", 10) || c.add(1, "other", 100) || !c.add(2, "", 1000) {
		t.Error("a value is added when its key is new, and only then")
	}
	if v, ok := c.find(1); !ok || v != "one" {
		t.Errorf("%q, %v is known, expected what was added first", v, ok)
	}
	if n := c.forget(); n != 1010 {
		t.Errorf("%d bytes were kept, expected 1010", n)
	}
	if _, ok := c.find(1); ok {
		t.Error("what was forgotten is known")
	}
	for key := range maxKept + 10 {
		if isAdded := c.add(key, "", 2); isAdded != (key < maxKept) {
			t.Fatalf("value %d is added: %v", key, isAdded)
		}
	}
	if n := c.forget(); n != 2*maxKept {
		t.Errorf("%d bytes were kept, expected %d", n, 2*maxKept)
	}
	if n := c.forget(); n != 0 {
		t.Errorf("%d bytes are given back twice", n)
	}
}
