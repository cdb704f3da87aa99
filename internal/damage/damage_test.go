// SPDX-License-Identifier: Apache-2.0

package damage

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestDamage damages files of any size: most are another one then, the same for the same seed,
// and what was damaged stays as it was.
func TestDamage(t *testing.T) {
	for _, size := range []int{0, 1, 2, 7, 64, 5000} {
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(i * 7)
		}
		before, changed := bytes.Clone(content), 0
		for n := range uint64(200) {
			got := Of(rand.New(rand.NewPCG(1, n)), content)
			if again := Of(rand.New(rand.NewPCG(1, n)), content); !bytes.Equal(got, again) {
				t.Fatalf("%d bytes, seed %d: twice are two", size, n)
			}
			if !bytes.Equal(got, content) {
				changed++
			}
		}
		if !bytes.Equal(content, before) {
			t.Errorf("%d bytes: the content was changed itself", size)
		}
		if size > 0 && changed < 100 {
			t.Errorf("%d bytes: %d of 200 were changed", size, changed)
		}
	}
}
