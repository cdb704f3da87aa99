// SPDX-License-Identifier: Apache-2.0

package dwarf

import "github.com/unwindd/unwindd/internal/dw"

// This file finds the languages of units without DW_AT_language: dwz moves the parts that
// units share to partial units (DWARF 5, 3.1.1), and leaves DW_AT_language behind.

// languageOf is the language of a unit's entries: of its first importer where it has none.
func (b *body) languageOf() uint64 {
	if b.language != 0 || b.tag != dw.TagPartialUnit {
		return b.language
	}
	r := b.file.reader
	known, _ := r.imports.get(r.findImports)
	return known[b.unit]
}

// maxImports bounds the imports of a unit that are followed.
const maxImports = 1 << 12

// findImports finds the units that other units import, with the language of the first
// importer. Unreadable units are left out: their users get the error.
func (r *Reader) findImports() (map[*unit]uint64, error) {
	known := map[*unit]uint64{}
	for _, u := range r.everyUnit() {
		if b, err := u.open(); err == nil && b.language != 0 {
			b.imports(known, b.language)
		}
	}
	r.main.addKept(16 * len(known))
	return known, nil
}

// imports adds the units that a unit imports: only base types come before
// DW_TAG_imported_unit.
func (b *body) imports(known map[*unit]uint64, language uint64) {
	root, err := b.entryAt(b.first)
	if err != nil {
		return
	}
	n := 0
	for e, err := range root.Children() {
		isImport := err == nil && e.Tag() == dw.TagImportedUnit
		if n++; err != nil || !isImport && e.Tag() != dw.TagBaseType || n > maxImports {
			return
		}
		if !isImport {
			continue
		}
		v, ok, err := e.own(dw.AttrImport)
		if err != nil || !ok {
			continue
		}
		u, _, err := b.reference(&v)
		if err != nil {
			continue
		}
		if _, ok := known[u]; ok {
			continue
		}
		known[u] = language
		if imported, err := u.open(); err == nil {
			imported.imports(known, language)
		}
	}
}
