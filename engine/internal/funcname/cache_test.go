// SPDX-License-Identifier: Apache-2.0

package funcname_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/funcname"
)

// TestCache: names are read by their styles, the same ones again and again after many others.
func TestCache(t *testing.T) {
	var c funcname.Cache[string]
	read := func(key funcname.CacheKey) string { return string(rune(key.Style)) + key.Function }
	tail := strings.Repeat("x", 1<<10)
	for range 2 {
		for i := range 4 << 10 { // more than it keeps
			for _, style := range "ab" {
				key := funcname.CacheKey{Function: fmt.Sprintf("%d%s", i, tail), Style: byte(style)}
				if got, want := c.Get(key, read), read(key); got != want {
					t.Fatalf("%.10q is %.10q, expected %.10q", key.Function, got, want)
				}
			}
		}
	}
	long := funcname.CacheKey{Function: strings.Repeat(tail, 1<<6)}
	if got := c.Get(long, read); got != read(long) {
		t.Errorf("a long name is %.10q", got)
	}
	const again = "ns::f<int>(int)"
	count := 0
	counted := func(funcname.CacheKey) string { count++; return again }
	for range 100 {
		c.Get(funcname.CacheKey{Function: again}, counted)
	}
	if count > 50 { // the garbage collector, and the race detector, drop some
		t.Errorf("a name is read %d times of 100", count)
	}
}
