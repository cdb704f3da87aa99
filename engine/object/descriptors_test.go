// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"archive/zip"
	"io"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
)

// TestDescriptorsLeadToCode: the entry point of a program of 64-bit POWER's first ELF ABI leads to a
// descriptor, whose offset is checked.
func TestDescriptorsLeadToCode(t *testing.T) {
	z, err := zip.OpenReader("../testdata/backchain/ppc64.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	f, err := z.Open("modules/0.elf")
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.New("values", data)
	if err != nil {
		t.Fatal(err)
	}
	s := o.Section(".opd")
	if s == nil || o.Entry()-s.Address >= s.Size {
		t.Fatalf("the entry point %#x is in no .opd", o.Entry())
	}
	if i := o.CodeSection(o.EntryCode()); i == 0 || o.SyntheticSections()[i].Name != ".text" {
		t.Errorf("the entry point leads to %#x, expected code of .text", o.EntryCode())
	}
	for _, offset := range []uint64{s.Size - 7, s.Size, s.Size + 1, ^uint64(0), ^uint64(0) - 6, 8} { // at 8 is the TOC pointer
		if address, _, ok := s.DescribedCode(offset); ok {
			t.Errorf("a descriptor at %#x leads to %#x", offset, address)
		}
	}
	if _, _, ok := o.Section(".text").DescribedCode(0); ok {
		t.Error("code is taken for descriptors")
	}
	if i := o.CodeSection(s.Address); i != 0 {
		t.Errorf("section %d is no code", i)
	}
}
