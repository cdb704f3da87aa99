// SPDX-License-Identifier: Apache-2.0

package pe

import "testing"

func TestNamesOfCOn32BitX86LoseTheirConvention(t *testing.T) {
	for name, want := range map[string]string{
		"_main": "main", "_f@4": "f", "@f@8": "f", "f@@16": "f", "?f@@YAXXZ": "?f@@YAXXZ", "_": "_", "": "", "@": "@", "f": "f", "_f@x": "f@x", "__imp__f@4": "_imp__f", "@@4": "@@4", "f@4": "f",
	} {
		if got := WithoutConvention(name); got != want {
			t.Errorf("%s is %s, expected %s", name, got, want)
		}
	}
}
