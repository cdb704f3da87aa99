// SPDX-License-Identifier: Apache-2.0

package code

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/plugins/x86_64"
)

// TestExitsAreAskedForTogether asks for the exits of functions one after the other, whose
// successors are known: few calls are made, and the answers are the same as to single questions.
func TestExitsAreAskedForTogether(t *testing.T) {
	asked, askedAlone := 0, 0
	together := newLibrary(t, 0, countedRules{x86_64.New(), &asked}).Load(moduleOf(t, object.NewStore(), crash), Loading{})
	t.Cleanup(together.Close)
	alone := newLibrary(t, 0, countedRules{x86_64.New(), &askedAlone}).Load(moduleOf(t, object.NewStore(), crash), Loading{})
	t.Cleanup(alone.Close)
	starts := startsOf(t, alone.Code)
	starts = starts[:min(len(starts), 300)]
	for i, at := range starts {
		got, err := together.Code.ExitsAhead(t.Context(), at, func() []uint64 { return starts[i+1:] })
		if err != nil {
			t.Fatal(err)
		}
		want, err := alone.Code.Exits(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%#x: alone (-), together (+):\n%s", at, diff)
		}
	}
	if asked > askedAlone/8 {
		t.Errorf("%d calls, and %d alone, expected an eighth at most", asked, askedAlone)
	}
}
