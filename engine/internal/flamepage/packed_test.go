// SPDX-License-Identifier: Apache-2.0

package flamepage

import (
	"testing"

	"github.com/unwindd/unwindd/engine/internal/look/looktest"
)

// TestPagesArePacked: page.packed has the files of the page as they are.
func TestPagesArePacked(t *testing.T) {
	looktest.Packed(t, &packed, []string{"page.html"}, []string{"page.css"},
		[]string{"../look/data.js", "data.js", "tree.js", "colors.js", "graph.js", "../look/dom.js", "parts.js", "page.js"})
}
