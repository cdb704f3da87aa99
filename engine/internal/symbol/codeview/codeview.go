// SPDX-License-Identifier: Apache-2.0

// Package codeview reads the type records of PDB files (the streams TPI and IPI), and names types
// as C++ does.
package codeview

import "github.com/unwindd/unwindd/engine/internal/symbol/msf"

// TypeIndex is the number of a type or an identifier; below 0x1000 it is a simple type.
type TypeIndex uint32

// Types are the records of TPI or IPI. They may be used concurrently.
type Types struct {
	types *Types // of which the records of IPI speak; nil: these are TPI's
}

// NewTypes reads the header of a stream. types is TPI for the stream IPI, else nil.
func NewTypes(_ *msf.Stream, types *Types) (*Types, error) { return &Types{types: types}, nil }

// Record returns a record without its length: its kind, an LF_* constant, and what follows.
func (t *Types) Record(_ TypeIndex) (kind uint16, data []byte, err error) { return 0, nil, nil }

// Name returns the name of a type as llvm-pdbutil and undecorated names have it.
func (t *Types) Name(_ TypeIndex) string { return "" }

// FunctionName returns the qualified name of a function by its record of IPI: LF_FUNC_ID or
// LF_MFUNC_ID; "" where it has none.
func (t *Types) FunctionName(_ TypeIndex) string { return "" }

// Parameters returns the parameters' types of a function type of TPI, such as "int, char const *".
func (t *Types) Parameters(_ TypeIndex) string { return "" }
