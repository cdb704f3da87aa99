// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// checkParts holds the profile of a recording that was divided into parts against that of
// the whole.
func checkParts(t testing.TB, e *Engine, path string, o trace.ProfileOptions, whole *trace.Profile) {
	t.Helper()
	if testing.Short() {
		return
	}
	const count = 3
	o.Parts = nil
	for index := range count {
		var b bytes.Buffer
		if err := e.ProfilePart(t.Context(), path, trace.ProfilePart{Index: index, Count: count}, o, &b); err != nil {
			t.Fatalf("%s, part %d of %d: %v", path, index, count, err)
		}
		o.Parts = append(o.Parts, io.Reader(&b))
	}
	joined, err := e.Profile(t.Context(), path, o)
	if err != nil {
		t.Fatalf("%s, %d parts: %v", path, count, err)
	}
	if want, got := plain(whole), plain(joined); !reflect.DeepEqual(want, got) { // cmp takes long
		t.Errorf("%s, %d parts (-whole +joined):\n%.2000s", path, count, cmp.Diff(want, got))
	}
}
