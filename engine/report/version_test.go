// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// TestFirstMembersStandBeforeThreadsThatAreNotHeld too.
func TestFirstMembersStandBeforeThreadsThatAreNotHeld(t *testing.T) {
	for _, size := range []int{10, maxDeferred, maxDeferred + 100} {
		var b strings.Builder
		list := "[\"" + strings.Repeat("x", size) + "\"]"
		err := writeDeferred(&b, " \"version\": 1,\n", func(w io.Writer) error {
			_, err := io.WriteString(w, list)
			return err
		}, func() (head, tail string, err error) { return " \"target\": {}", "", nil })
		if err != nil {
			t.Fatal(err)
		}
		if out := b.String(); !strings.HasPrefix(out, "{\n \"version\": 1,\n") || !json.Valid([]byte(out)) {
			t.Errorf("%d: %.80s", size, out)
		}
	}
}
