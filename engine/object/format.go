// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
)

// Formats recognise code objects, and files with code objects inside, that are no ELF files, by
// their first bytes, as architectures do. They may be used concurrently.
type Formats interface {
	// Recognises reports whether a file with such a beginning has one of the formats.
	Recognises(beginning []byte) bool
	// Nested lists the code objects inside a file that is recognised; none where
	// it is a code object itself. The caller checks the ranges. The bytes are read
	// inside Guard; the name is used in messages only.
	Nested(name string, data []byte) ([]Range, error)
}

// Beside returns the path of the file beside another one with the same name and another suffix,
// which begins with a dot. It is false where that is the file itself.
func Beside(path, suffix string) (string, bool) {
	beside := strings.TrimSuffix(path, filepath.Ext(path)) + suffix
	return beside, beside != path
}

// A Range is the place of a code object in a file.
type Range struct {
	Name         string
	Offset, Size uint64 // bytes
}

// MaxMagic is the most bytes of a file that Formats.Recognises gets.
const MaxMagic = 256

// recognised reports whether the bytes have one of the formats, which may be nil.
func recognised(data []byte, formats Formats) (is bool, err error) {
	if formats == nil {
		return false, nil
	}
	var beginning []byte
	err = Guard(func() error {
		beginning = bytes.Clone(data[:min(len(data), MaxMagic)])
		return nil
	})
	return err == nil && formats.Recognises(beginning), err
}

// NewWith is New, but bytes that are neither an ELF, a PE nor a PDB file and that the formats recognise
// are an object too. It has only bytes and a name: IsELF is false, and there are neither sections,
// nor segments, nor symbols.
func NewWith(name string, data []byte, formats Formats) (*Object, error) {
	if !isELF(data) && !isPE(data) && !isPDB(data) && !isMachO(data) && !isUniversal(data) {
		switch is, err := recognised(data, formats); {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case is:
			return newForeign(name, data), nil
		}
	}
	return New(name, data)
}

// isELF reports whether the bytes begin as an ELF file. Bytes that cannot be read are left to New,
// which returns the error.
func isELF(data []byte) bool {
	is := true
	_ = Guard(func() error {
		is = bytes.HasPrefix(data, []byte("\x7fELF"))
		return nil
	})
	return is
}

func newForeign(name string, data []byte) *Object {
	o := &Object{name: name, data: data, foreign: true, header: header{order: binary.LittleEndian}}
	o.headerSize = o.sizeOfHeaders()
	o.lazy()
	return o
}

// NestedIn yields the code objects inside a file that is no ELF file: an offload
// bundle, a universal file, an archive, or one of the formats, which may be nil. The members of a thin archive are
// beside the file of the name. It is false where the file is none of these.
func NestedIn(name string, data []byte, formats Formats) (iter.Seq2[Nested, error], bool) {
	return nestedIn(name, data, formats, filepath.Dir(name))
}

func nestedIn(name string, data []byte, formats Formats, dir string) (iter.Seq2[Nested, error], bool) {
	switch {
	case IsBundle(data):
		return BundleEntries(name, data), true
	case isUniversal(data):
		return func(yield func(Nested, error) bool) { newBundleWalk(name, uint64(len(data)), yield).universal(data) }, true
	case IsArchive(data):
		return func(yield func(Nested, error) bool) {
			w := newBundleWalk(name, uint64(len(data)), yield)
			w.formats = formats
			w.archive(data, dir)
		}, true
	}
	return formatEntries(name, data, formats)
}

// formatEntries yields the code objects inside a file of one of the formats.
func formatEntries(name string, data []byte, formats Formats) (iter.Seq2[Nested, error], bool) {
	if is, err := recognised(data, formats); !is || err != nil || isELF(data) || isPE(data) || isPDB(data) || isMachO(data) || isUniversal(data) {
		return nil, false
	}
	return func(yield func(Nested, error) bool) {
		var list []Range
		err := Guard(func() (err error) {
			list, err = formats.Nested(name, data)
			return err
		})
		if err != nil {
			yield(Nested{}, fmt.Errorf("%s: %w", name, err))
			return
		}
		if len(list) > maxNested {
			yield(Nested{}, fmt.Errorf("%s: %d code objects in it, expected at most %d", name, len(list), maxNested))
			return
		}
		for i, r := range list {
			n := Nested{Index: i, Name: r.Name, Format: "container", Offset: r.Offset}
			var err error
			var ok bool
			switch n.Data, ok = slice(data, r.Offset, r.Size); {
			case !ok:
				n, err = Nested{}, fmt.Errorf("%s: code object %d: offset %#x, size %#x is not in the %d bytes of the file", name, i, r.Offset, r.Size, len(data))
			case len(r.Name) > maxNestedName:
				n, err = Nested{}, fmt.Errorf("%s: code object %d: a name of %d bytes, expected at most %d", name, i, len(r.Name), maxNestedName)
			}
			if !yield(n, err) {
				return
			}
		}
	}, true
}
