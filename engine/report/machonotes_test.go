// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNotesOfMachOFilesBeginWithTheirUUID: a dSYM is found by it.
func TestNotesOfMachOFilesBeginWithTheirUUID(t *testing.T) {
	n, err := OpenNotes("../../examples/apple/Notes.app.dSYM", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var b strings.Builder
	if err := n.WriteText(&b); err != nil || b.String() != "arm64, macOS 13.0, UUID 4C4C4476-5555-3144-A123-B5959D72FBAD\n" {
		t.Errorf("%v: %q", err, b.String())
	}
}

// TestNotesOfAUniversalDSYM: its files are listed, as the ones of a universal file are.
func TestNotesOfAUniversalDSYM(t *testing.T) {
	file, err := os.ReadFile("../../examples/apple/Notes.app.dSYM/Contents/Resources/DWARF/Notes")
	if err != nil {
		t.Fatal(err)
	}
	const magic, arm64, x86, start, size = 0xcafebabe, 0x0100000c, 0x01000007, 0x1000, 0x4000
	whole := make([]byte, start)
	for i, v := range []uint32{magic, 2, x86, 3, start, size, 12, arm64, 0, start + size, size, 12} {
		binary.BigEndian.PutUint32(whole[4*i:], v)
	}
	file = append(file, make([]byte, size-len(file))...)
	dsym := filepath.Join(t.TempDir(), "Notes.app.dSYM")
	inside := filepath.Join(dsym, "Contents/Resources/DWARF")
	if err := os.MkdirAll(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inside, "Notes"), slices.Concat(whole, file, file), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := OpenNotes(dsym, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var b strings.Builder
	if err := n.WriteText(&b); err != nil || !strings.Contains(b.String(), "universal file\n  #0     0x00001000") {
		t.Errorf("%v: %q", err, b.String())
	}
}
