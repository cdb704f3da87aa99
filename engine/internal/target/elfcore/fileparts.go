// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"fmt"
	"strings"
)

// Code objects may be loaded from the middle of other files: Android's linker loads them from
// archives, and programs map parts of files themselves.

// addPart adds the module of an image whose ELF header is in memory, at a mapping of the middle
// of a file.
func (m *modules) addPart(name string, im *image, r fileRange) {
	part, start, ok := m.finder.FindPart(name, r.offset, r.end-r.start)
	if !ok || start != im.offset {
		part = fmt.Sprintf("%s+%#x", strings.TrimSuffix(name, deletedSuffix), im.offset)
	}
	m.setPart(part, name)
	m.add(part, im, false, nil)
}

// setPart records the mapped file that has a module's image as a part.
func (m *modules) setPart(part, name string) {
	if m.parts == nil {
		m.parts = map[string]string{}
	}
	m.parts[part] = name
}

// mappedPath returns the path of the mappings of an image named name.
func (m *modules) mappedPath(name string, im *image) string {
	if im.offset == 0 {
		return name
	}
	return m.parts[name]
}

// addParts adds the modules of executable mappings in the middle of a file, if the file has a
// code object there. It reports whether there are any.
func (m *modules) addParts(group []fileRange, claimed []bool) (found bool) {
	name := group[0].path
	for i, r := range group {
		if s := m.memory.segment(r.start); claimed[i] || r.offset == 0 || s != nil && s.flags&elf.PF_X == 0 {
			continue
		}
		part, start, ok := m.finder.FindPart(name, r.offset, r.end-r.start)
		if !ok {
			continue
		}
		opened := m.find(part, nil, false)
		if opened.Object == nil {
			continue
		}
		// The part's mapping is compared alone: others may be of earlier parts.
		im, ok := m.fit(name, start, opened.Object, group[i:i+1], claimed[i:i+1])
		if !ok {
			continue
		}
		found = true
		m.setPart(part, name)
		m.add(part, &im, false, &opened)
		m.claim(&im, group, claimed)
	}
	return found
}
