// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"fmt"
	"strings"
)

// This file finds the code objects that are loaded from the middle of other files: from
// archives, as Android's linker does, and from what programs map themselves.

// addPart adds the module of an image whose ELF header is in memory, and in the middle of a
// file at a mapping.
func (m *modules) addPart(name string, im *image, r fileRange) {
	part, start, ok := m.finder.FindPart(name, r.offset, r.end-r.start)
	if !ok || start != im.offset {
		part = fmt.Sprintf("%s+%#x", strings.TrimSuffix(name, deletedSuffix), im.offset)
	}
	m.part(part, name)
	m.add(part, im, false, nil)
}

// part remembers of which mapped file the image of a module is a part.
func (m *modules) part(part, name string) {
	if m.parts == nil {
		m.parts = map[string]string{}
	}
	m.parts[part] = name
}

// mappedPath is the path of the mappings that an image named name is of.
func (m *modules) mappedPath(name string, im *image) string {
	if im.offset == 0 {
		return name
	}
	return m.parts[name]
}

// addParts adds the modules that executable mappings are of which lie in the middle of a file,
// as far as that says it. It says whether there is any.
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
		of := m.find(part, nil, false)
		if of.Object == nil {
			continue
		}
		// The mappings of the part are compared alone: others may be of parts that lie before.
		im, ok := m.fit(name, start, of.Object, group[i:i+1], claimed[i:i+1])
		if !ok {
			continue
		}
		found = true
		m.part(part, name)
		m.add(part, &im, false, &of)
		m.claim(&im, group, claimed)
	}
	return found
}
