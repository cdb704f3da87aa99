// SPDX-License-Identifier: Apache-2.0

package code

import (
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// identity tells a code object from others. It is set when the object is made and never
// changes, so that it is read without a lock.
type identity struct {
	number     uint64    // unique in the process: plugins keep their own data of the object under it
	key        objectKey // under which the library shares the object; zero: it is not shared
	path       string
	arch       string
	processor  string
	isUnmapped bool           // see IsUnmapped
	buildID    []byte         // according to the target
	symbolID   trace.SymbolID // likewise; zero: the target has none
}

// objectKey tells shared code objects apart. A Store gives one pointer for one file.
type objectKey struct {
	file                           *object.Object
	arch, processor, path, folders string
}

// IsUnmapped reports whether it is code that is in no file, which only snapshots have modules
// for. A scan takes it for no more than other targets' code without a module.
func (id *identity) IsUnmapped() bool { return id.isUnmapped }

// usage counts the users of an object, and the memory that it keeps.
type usage struct {
	users     int           // modules; guarded by Library.mu
	used      atomic.Uint64 // when it was used last, by Library.uses
	bytes     atomic.Int64  // about how much memory the object keeps
	fileBytes atomic.Int64  // the part of bytes that its files keep
}

// touch marks the object as used now.
func (o *Object) touch() { o.usage.used.Store(o.library.uses.Add(1)) }

// count adds memory that the object keeps. The caller may hold mu: nothing is forgotten.
func (o *Object) count(bytes int) {
	o.usage.bytes.Add(int64(bytes))
	o.library.bytes.Add(int64(bytes))
}

// grow adds memory that the object keeps, and has the library forget others' where that is
// too much. The caller does not hold mu.
func (o *Object) grow(bytes int) {
	o.touch()
	read := int64(o.readBytes()) //nolint:gosec // of memory
	o.count(bytes + int(read-o.usage.fileBytes.Swap(read)))
	if o.library.Bytes() > o.library.most {
		o.library.trim()
	}
}

// readBytes returns the memory that was made of the file and of its debug file: sections that
// were decompressed or relocated, symbols, indexes of debug information, and functions whose
// code was read.
func (o *Object) readBytes() (n uint64) {
	n = uint64(o.code.size.Load()) //nolint:gosec // of memory
	if o.File == nil {
		return n
	}
	o.mu.Lock()
	debug, symbols := o.debug.found.Object, o.debug.resolver
	o.mu.Unlock()
	n += o.File.MemorySize()
	if debug != nil {
		n += debug.MemorySize()
	}
	if symbols != nil {
		n += symbols.MemorySize()
	}
	return n
}
