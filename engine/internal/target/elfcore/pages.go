// SPDX-License-Identifier: Apache-2.0

package elfcore

// ReleasePages frees the pages of the core's files that were read. The kernel may have them in
// its cache, and maps them again when they are read.
func (c *Core) ReleasePages() {
	c.mapping.ReleasePages(0, ^uint64(0))
	for _, m := range c.beside {
		m.ReleasePages(0, ^uint64(0))
	}
}
