// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"archive/zip"
	"io"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
)

// TestLocalEntries has the distances of the ABI's table, and that other machines have none.
func TestLocalEntries(t *testing.T) {
	for machine, want := range map[string][8]uint64{
		"ppc64le": {0, 0, 4, 8, 16, 32, 64, 0},
		"s390x":   {},
	} {
		z, err := zip.OpenReader("../testdata/backchain/" + machine + ".snapshot")
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
		o, err := object.New(machine, data)
		if err != nil {
			t.Fatal(err)
		}
		for bits := range uint8(8) {
			const visibility = 2
			if got := o.LocalEntry(bits<<5 | visibility); got != want[bits] {
				t.Errorf("%s: bits %d: %d, expected %d", machine, bits, got, want[bits])
			}
		}
	}
}
