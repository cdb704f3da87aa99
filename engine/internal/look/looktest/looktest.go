// SPDX-License-Identifier: Apache-2.0

// Package looktest has what tests of pages share.
package looktest

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/look"
)

var update = flag.Bool("update", false, "write page.packed")

// Packed fails where page.packed in the current folder does not have the files of the parts: layout, style
// and scripts. With -update it writes it. Packed is its contents that the program has.
func Packed(t *testing.T, packed *[]byte, files ...[]string) {
	t.Helper()
	parts := make([]string, len(files))
	for i, names := range files {
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			parts[i] += string(text)
		}
	}
	if *update {
		*packed = look.Pack(parts)
		if err := os.WriteFile("page.packed", *packed, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := look.Unpack(*packed); err != nil || strings.Join(got, "\x00") != strings.Join(parts, "\x00") {
		t.Fatalf("page.packed is not of the files beside it (%v): run this test with -update", err)
	}
}
