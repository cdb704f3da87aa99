// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"github.com/unwindd/unwindd/engine/object"
)

// IsOfSections reports whether the first bytes of a file (64 are enough) are the header of a core
// without segments: one of accelerators, whose state is in sections.
func IsOfSections(head []byte) bool {
	h, err := readStart(head)
	return err == nil && hasSections(&h, head)
}

// ProcessOf returns the ID of the process that a core is of, by its notes alone; ok is false for a core
// without that ID, and for other files.
func ProcessOf(path string) (pid int64, ok bool) {
	m, err := object.Map(path)
	if err != nil {
		return 0, false
	}
	defer m.Close()
	// A file that is truncated meanwhile is no core.
	err = object.Guard(func() error {
		h, _, err := readHeader(m.Data())
		if err != nil {
			return err
		}
		notes, _ := readNotes(m.Data(), &h)
		for _, nt := range notes {
			if nt.owner == coreOwner && nt.typ == ntPRPSINFO {
				pid, _, _ = h.readInfo(nt.data)
				return nil
			}
		}
		return nil
	})
	return pid, err == nil && pid > 0
}
