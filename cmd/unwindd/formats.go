// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/plugins/visa"
)

// bundledFormats reads the files of bundled architectures that are no ELF files, for
// commands that start no plugin.
type bundledFormats struct{}

func (bundledFormats) Recognises(head []byte) bool { return visa.Recognises(head) }

func (bundledFormats) Nested(_ string, data []byte) ([]object.Range, error) {
	nested, err := visa.Nested(data)
	list := make([]object.Range, len(nested))
	for i, n := range nested {
		list[i] = object.Range(n)
	}
	return list, err
}

// openObject opens a code object: FILE or FILE#NAME.
func openObject(path string) (*object.Object, error) {
	return object.OpenNested(path, bundledFormats{})
}
