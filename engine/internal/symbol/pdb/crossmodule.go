// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"bytes"
	"strings"
)

// Identifiers of modules that were generated at link time are references to identifiers of
// other modules: the number of the other module among the imports, and that of the identifier.
const (
	isCrossModule   = 0x80000000
	importModule    = 20 // bits below its number
	importModuleMax = 0x7ff
	importMask      = 1<<importModule - 1
)

// identifier returns the identifier in the stream of identifiers; ok is false for a reference
// that leads nowhere.
func (f *File) identifier(x *moduleIndex, id uint32) (global uint32, ok bool) {
	if id&isCrossModule == 0 {
		return id, true
	}
	file, local, ok := f.imported(x, id>>importModule&importModuleMax, id&importMask)
	if !ok {
		return 0, false
	}
	number, ok := f.moduleNumbers()[strings.ToLower(f.names().text(file))]
	if !ok {
		return 0, false
	}
	return f.exported(f.dbi.modules()[number].index(), local)
}

// imported returns a member of a module's imports: the name of the other module, an offset in
// /names, and the identifier there.
func (f *File) imported(x *moduleIndex, module, number uint32) (name, local uint32, ok bool) {
	r, err := readAt(x.stream, x.imports.offset, x.imports.size)
	if err != nil {
		f.note(err)
		return 0, 0, false
	}
	for ; len(r.Rest) >= 8; module-- {
		name = r.U32()
		ids := fieldsOf(r.Take(4 * int(min(r.U32(), uint32(len(r.Rest)/4))))) //nolint:gosec // a part of a stream
		if module == 0 {
			ids.Take(4 * int(number))
			local = ids.U32()
			return name, local, !ids.IsCut
		}
	}
	return 0, 0, false
}

// exported returns the identifier that an exported one of a module stands for.
func (f *File) exported(x *moduleIndex, local uint32) (global uint32, ok bool) {
	if x.stream == nil {
		return 0, false
	}
	r, err := readAt(x.stream, x.exports.offset, x.exports.size)
	f.note(err)
	for len(r.Rest) >= 8 {
		from, to := r.U32(), r.U32()
		if from == local {
			return to, true
		}
	}
	return 0, false
}

// readModuleNumbers reads the names of modules, in lower case, as imports have them.
func (f *File) readModuleNumbers() map[string]int {
	modules := f.dbi.modules()
	numbers := make(map[string]int, len(modules))
	end := f.dbi.moduleBytes.offset + f.dbi.moduleBytes.size
	size := 0
	for i := range modules {
		at := modules[i].offset + moduleHeader
		if at >= end {
			break
		}
		r, err := readAt(f.dbi.stream, at, min(end-at, maxName))
		if err != nil {
			f.note(err)
			break
		}
		name := r.Rest[:max(bytes.IndexByte(r.Rest, 0), 0)]
		if text := strings.ToLower(string(name)); text != "" {
			numbers[text] = i
			size += len(text) + 32
		}
	}
	f.kept.Add(int64(size))
	return numbers
}
