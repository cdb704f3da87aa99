// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/comparepage"
)

// WriteHTML writes the comparison as a page of HTML: one file that needs no other, with the classes, the tree
// of stacks, and the stacks of each target by lines. Its data have at most 19 MiB: of a larger comparison inner frames that
// few targets have are left out first, and the page says how many.
func (c *Comparison) WriteHTML(w io.Writer) error {
	var text strings.Builder
	if err := c.WriteText(&text, TextOptions{}); err != nil {
		return err
	}
	return comparepage.Write(w, c.c, text.String())
}
