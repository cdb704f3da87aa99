// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// sized is a target with some memory and no threads.
type sized struct{ target.Target }

func (sized) MemorySize() uint64       { return 1 << 10 }
func (sized) Threads() []*trace.Thread { return nil }

func TestChecksOfGuessesAreBounded(t *testing.T) {
	b := newBounds(sized{})
	b.checks.Store(1)
	if !b.mayCheck() || len(b.problems()) > 0 {
		t.Error("the last step is refused")
	}
	w := &walker{process: &Process{bounds: b}}
	if w.mayCheck() {
		t.Error("there is a step more")
	}
	if p := b.problems(); len(p) != 1 || !strings.Contains(p[0], "without a check") {
		t.Errorf("problems %q", p)
	}
}
