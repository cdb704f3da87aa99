// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/llvmir"
	"github.com/unwindd/unwindd/engine/internal/symbol/spirv"
	"github.com/unwindd/unwindd/engine/object"
)

// irFormat is an intermediate representation that is read.
type irFormat struct {
	// is recognises it by the beginning of a file, and by its name.
	is func(path string, data []byte) bool
	// read may keep data. A partly readable file is not an error.
	read func(path string, data []byte) (symbol.IR, error)
}

// irFormats are tried in order.
var irFormats = []irFormat{
	{spirv.Is, func(path string, data []byte) (symbol.IR, error) { return spirv.Read(path, data) }},
	{llvmir.Is, llvmir.Read},
}

// ErrNotIR is the error where a file is none of the intermediate representations.
var ErrNotIR = errors.New("neither SPIR-V nor LLVM IR")

// IRFile is a file in an intermediate representation.
type IRFile struct {
	symbol.IR
	mapping *object.Mapping
}

// Close closes the file; its contents must not be used any more. The error is the
// mapping's.
func (f *IRFile) Close() error { return f.mapping.Close() }

// OpenIR opens a file in an intermediate representation, SPIR-V or LLVM IR, or FILE#NAME,
// the part of a file with that name. The error for any other file wraps ErrNotIR. Code
// that reads the file afterwards runs inside object.Guard.
func OpenIR(path string) (*IRFile, error) {
	m, data, err := mapIR(path)
	if err != nil {
		return nil, err
	}
	f := &IRFile{mapping: m}
	err = object.Guard(func() error {
		for _, format := range irFormats {
			if format.is(path, data) {
				var err error
				f.IR, err = format.read(path, data)
				return err
			}
		}
		return &pathError{path, ErrNotIR}
	})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return f, nil
}

// mapIR maps a file, or the part FILE#NAME where there is no file of that name.
func mapIR(path string) (m *object.Mapping, data []byte, err error) {
	m, err = object.Map(path)
	if errors.Is(err, fs.ErrNotExist) && strings.Contains(path, "#") {
		return object.MapNested(path)
	}
	if err != nil {
		return nil, nil, err
	}
	return m, m.Data(), nil
}

// pathError is an error of a file.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.path + ": " + e.err.Error() }
func (e *pathError) Unwrap() error { return e.err }
