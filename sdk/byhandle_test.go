// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

func TestByHandleForgetsTheOldest(t *testing.T) {
	var k sdk.ByHandle[string]
	if _, isKnown := k.Get(1); isKnown {
		t.Error("an empty one has a value")
	}
	for handle := range uint64(257) {
		k.Put(handle, "old")
	}
	k.Put(256, "new")
	if _, isKnown := k.Get(0); isKnown {
		t.Error("the oldest of 257 is kept")
	}
	for _, handle := range []uint64{1, 255, 256} {
		if value, isKnown := k.Get(handle); !isKnown || (value == "new") != (handle == 256) {
			t.Errorf("%d: %q, %v", handle, value, isKnown)
		}
	}
}
