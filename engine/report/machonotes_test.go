// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

// TestNotesOfMachOFilesBeginWithTheirUUID: a dSYM is found by it.
func TestNotesOfMachOFilesBeginWithTheirUUID(t *testing.T) {
	n, err := OpenNotes("../../examples/apple/Notes.app.dSYM/Contents/Resources/DWARF/Notes", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var b strings.Builder
	if err := n.WriteText(&b); err != nil || b.String() != "arm64, macOS 13.0, UUID 4C4C4476-5555-3144-A123-B5959D72FBAD\n" {
		t.Errorf("%v: %q", err, b.String())
	}
}
