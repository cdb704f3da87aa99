// SPDX-License-Identifier: Apache-2.0

package valuecheck

import "testing"

// gdb prints the bytes b0 63 fb, which are in no encoding, as a text that lacks the 63.
func TestLiteralsThatEndInAnIncompleteCharacter(t *testing.T) {
	for _, c := range []struct {
		theirs, ours string
		want         bool
	}{
		{`"\260", <incomplete sequence \373>`, `"\260c\373"`, true},
		{`"\260", <incomplete sequence \373>...`, `"\260c\373"...`, true},
		{`"ab", <incomplete sequence \303>`, `"ab\303"`, true},
		{`"ab", <incomplete sequence \303>`, `"ab"`, false},
		{`"ab", <incomplete sequence \303>`, `"ab\304"`, false},
		{`"ab", <incomplete sequence \303>`, `"aa\303"`, false},
	} {
		if got := sameLiteral(c.theirs, c.ours); got != c.want {
			t.Errorf("%s and %s: %v, expected %v", c.theirs, c.ours, got, c.want)
		}
	}
}
