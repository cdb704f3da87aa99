// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/binary"
	"os"
	"testing"
)

// A cubin is an executable by its type, and its sections have no addresses: it is laid out, and its
// debugging information is relocated, with addends in the relocations or in the place.
func TestCubinsAreRelocatable(t *testing.T) {
	for _, name := range []string{"sum75", "sum120"} {
		o, err := Open("../internal/symbol/dwarf/testdata/cubin/" + name + ".cubin")
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		laid, err := o.LaidOut()
		if err != nil || !o.IsRelocatable() || !laid.IsRelocatable() || laid == o {
			t.Fatalf("%s: relocatable %v, laid out %v, %v", name, o.IsRelocatable(), laid != o, err)
		}
		lines, code := laid.Section(".debug_line"), laid.Section(".text._Z4oncePii")
		data, err := lines.Data()
		if err != nil {
			t.Fatal(err)
		}
		references, err := lines.References()
		if err != nil || len(references) != 2 {
			t.Fatalf("%s: %d references, %v", name, len(references), err)
		}
		found := false
		for _, r := range references {
			found = found || r.Section == uint32(code.Index) && binary.LittleEndian.Uint64(data[r.Offset:]) == code.Address
		}
		if !found || code.Address == 0 {
			t.Errorf("%s: no address of .debug_line is the %#x of %s", name, code.Address, code.Name)
		}
	}
}

// The image of a cubin that a driver placed has addresses, which stay.
func TestPlacedImagesOfCubinsAreNotRelocatable(t *testing.T) {
	data, err := os.ReadFile("../internal/symbol/dwarf/testdata/cubin/sum75.cubin")
	if err != nil {
		t.Fatal(err)
	}
	o, err := New("cubin", data)
	if err != nil {
		t.Fatal(err)
	}
	index := o.Section(".text._Z4oncePii").Index
	header := binary.LittleEndian.Uint64(data[0x28:]) + uint64(index)*64
	binary.LittleEndian.PutUint64(data[header+16:], 0x7f0000001000)
	if o, err = New("placed", data); err != nil {
		t.Fatal(err)
	}
	if laid, err := o.LaidOut(); o.IsRelocatable() || laid != o || err != nil {
		t.Errorf("relocatable %v, laid out %v, %v", o.IsRelocatable(), laid != o, err)
	}
}
