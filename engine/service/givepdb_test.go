// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol/msf/msftest"
)

// TestPDBFilesOfFoldersAreGiven asks a server for a PDB file beneath its sysroot, as symbol servers
// are asked.
func TestPDBFilesOfFoldersAreGiven(t *testing.T) {
	o := rooted(t)
	data := string(msftest.PDB([16]byte{4, 3, 2, 1, 6, 5, 8, 7, 9, 10, 11, 12, 13, 14, 15, 16}, 3, 0))
	if err := os.WriteFile(filepath.Join(o.Sysroot, "srv/a.pdb"), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, o)
	for path, isThere := range map[string]bool{
		"/a.pdb/0102030405060708090A0B0C0D0E0F103/a.pdb": true,
		"/A.PDB/0102030405060708090a0b0c0d0e0f103/A.PDB": true, // whose name is another, as its identifier says
		"/a.pdb/0102030405060708090A0B0C0D0E0F104/a.pdb": false,
		"/a.pdb/0102030405060708090A0B0C0D0E0F103/a.pd_": false,
	} {
		answer, text := s.ask(t, http.MethodGet, path, nil, "Accept-Encoding", "identity")
		if is := answer.StatusCode == http.StatusOK && text == data; is != isThere || !is && answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s, %d bytes", path, answer.Status, len(text))
		}
	}
}
