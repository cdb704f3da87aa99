// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/confine"
)

// Formats are the formats of files, other than ELF, of bundled architectures. Reading such a
// file starts no plugin. They implement object.Formats.
type Formats []confine.Bundled

// find returns the architecture that recognises a file by its first bytes; nil: none does.
func (f Formats) find(start []byte) *confine.Bundled {
	for i := range f {
		if f[i].Recognises != nil && f[i].Recognises(start) {
			return &f[i]
		}
	}
	return nil
}

// Recognises implements object.Formats.
func (f Formats) Recognises(start []byte) bool { return f.find(start) != nil }

// Nested implements object.Formats.
func (f Formats) Nested(_ string, data []byte) ([]object.Range, error) {
	b := f.find(data)
	if b == nil {
		return nil, nil
	}
	nested, err := b.Nested(data)
	list := make([]object.Range, len(nested))
	for i, n := range nested {
		list[i] = object.Range(n)
	}
	return list, err
}
