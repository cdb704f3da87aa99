// SPDX-License-Identifier: Apache-2.0

package perfdata

import "github.com/unwindd/unwindd/engine/object"

// keptBytes is how much of an area may be mapped. It is more than batches that are
// walked have, whose pages would else be mapped twice.
const keptBytes = 64 << 20

// pages are those of an area that are in memory: a recording may be larger than that.
type pages struct {
	mapping *object.Mapping // nil: the area is no file
	passed  uint64          // bytes, since pages were given back
}

// pass says that a record of some size was read. What was read before is given back from
// time to time; a sample that is walked still gets its pages again. Bytes that nobody looked
// at count, too: the kernel maps what lies around those that somebody did.
func (p *pages) pass(size uint64) {
	if p.passed += size; p.passed < keptBytes || p.mapping == nil {
		return
	}
	p.passed = 0
	p.mapping.ReleasePages(0, ^uint64(0))
}
