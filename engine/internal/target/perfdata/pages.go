// SPDX-License-Identifier: Apache-2.0

package perfdata

import "github.com/unwindd/unwindd/engine/object"

// mappedBytes is how much of an area may be mapped. It is more than the batches in
// flight have, whose pages would otherwise be mapped twice.
const mappedBytes = 64 << 20

// pages are the pages of an area that are in memory, which may be smaller than a recording.
type pages struct {
	mapping *object.Mapping // nil: the area is no file
	passed  uint64          // bytes, since pages were released
}

// pass counts a record that was read. From time to time it releases the pages of all records
// before; a sample that is still walked gets its pages again. Bytes that were skipped count,
// too: the kernel maps the pages around each that is touched.
func (p *pages) pass(size uint64) {
	if p.passed += size; p.passed < mappedBytes {
		return
	}
	p.passed = 0
	p.mapping.ReleasePages(0, ^uint64(0))
}
