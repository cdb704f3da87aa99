// SPDX-License-Identifier: Apache-2.0

package pdb

import "fmt"

// effort bounds the bytes that a list of all functions or lines reads. Where files are sound it reads
// their records and line tables once or twice; damaged ones may have functions that overlap, each of
// which has all of the same lines.
type effort struct {
	f    *File
	left int64
}

// maxReads is how often all bytes of a file may be read for a list.
const maxReads = 8

func (f *File) newEffort() *effort {
	return &effort{f, maxReads * (f.container.Size() + 1<<20)}
}

// take takes some bytes from the bound; false where it is reached.
func (e *effort) take(n uint32) bool {
	const least = 64
	if e.left -= int64(n) + least; e.left >= 0 {
		return true
	}
	e.f.note(fmt.Errorf("%s: functions or line tables overlap so often that not all of their lines and inlined calls are listed", e.f.Name()))
	return false
}
