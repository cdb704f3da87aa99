// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/symtab"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// ForFile returns the architecture that recognises a code object.
func (m *Manager) ForFile(path string) (*Arch, error) {
	file, err := object.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return m.ForObject(FileOf(file))
}

// maxFunction bounds the code of a function of ReadObject, in bytes.
const maxFunction = 1 << 20

// ReadObject reads a whole code object into the request that the engine would make of a plugin
// with that description. handle identifies it in calls.
func ReadObject(path string, handle uint64, d *sdk.Description) (*archtest.Object, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > sdk.MaxFile {
		return nil, fmt.Errorf("%s: %d bytes, expected at most %d", path, info.Size(), sdk.MaxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := object.NewWith(path, data, magics{d})
	if err != nil {
		return nil, err
	}
	o := &archtest.Object{Name: path, Request: sdk.OpenObjectRequest{
		Object: handle, Path: path, Machine: file.Machine(), OSABI: file.OSABI(), Flags: file.Flags(),
	}}
	for _, s := range file.SyntheticSections() {
		o.Request.Sections = append(o.Request.Sections, sdk.SectionInfo{
			Name: s.Name, Type: uint32(s.Type), Flags: uint64(s.Flags), Address: s.Address, Size: s.Size})
	}
	o.Read = func(requested uint64, name string) ([]byte, error) {
		switch s := file.SyntheticSection(name); {
		case requested != handle:
			return nil, fmt.Errorf("no code object %d", requested)
		case name == "":
			return data, nil
		case s == nil:
			return nil, fmt.Errorf("%s: no section %s", path, name)
		default:
			return s.Data()
		}
	}
	table, err := symtab.New(file)
	if err != nil {
		return o, nil //nolint:nilerr // an object without symbols has no functions
	}
	for _, s := range table.Functions() {
		if slices.Contains(d.Symbols, s.Name) {
			o.Request.Symbols = append(o.Request.Symbols, sdk.SymbolInfo{
				Name: s.Name, Address: s.Start, Size: s.End - s.Start, Other: s.Other, Section: file.CodeSection(s.Start),
			})
		}
		if code := codeOf(file, s); code != nil {
			o.Functions = append(o.Functions, sdk.CodeRange{PC: s.Start, Start: s.Start, Code: code, Bounded: true, Name: s.Name, Exact: true})
		}
	}
	return o, nil
}

// codeOf returns the code of a function; nil if it is not complete, or too long.
func codeOf(file *object.Object, s symbol.Symbol) []byte {
	if s.End <= s.Start || s.End-s.Start > maxFunction {
		return nil
	}
	code := make([]byte, s.End-s.Start)
	if n, _ := file.ReadAddress(code, s.Start); n == len(code) {
		return code
	}
	for _, section := range file.Sections() {
		if section.Flags&elf.SHF_EXECINSTR == 0 || s.Start-section.Address >= section.Size {
			continue
		}
		if data, err := section.Data(); err == nil && s.End-section.Address <= uint64(len(data)) {
			return bytes.Clone(data[s.Start-section.Address : s.End-section.Address])
		}
	}
	return nil
}

// magics recognises the files that a description claims by their first bytes.
type magics struct{ d *sdk.Description }

// Recognises implements object.Formats.
func (m magics) Recognises(head []byte) bool {
	return slices.ContainsFunc(m.d.Recognises, func(r sdk.Recogniser) bool {
		return r.ELFMachine == 0 && len(r.Magic) > 0 && bytes.HasPrefix(head, r.Magic)
	})
}

// Nested implements object.Formats: nested objects are not requested.
func (magics) Nested(string, []byte) ([]object.Range, error) { return nil, nil }
