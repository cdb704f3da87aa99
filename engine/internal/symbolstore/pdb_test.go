// SPDX-License-Identifier: Apache-2.0

package symbolstore

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol/msf/msftest"
	"github.com/unwindd/unwindd/engine/object"
)

var (
	pdbGUID = [16]byte{0x04, 0x03, 0x02, 0x01, 0x06, 0x05, 0x08, 0x07, 9, 10, 11, 12, 13, 14, 15, 16}
	pdb     = object.RemoteFile{Kind: object.RemotePDB, Name: "Kernel32.pdb", ID: "0102030405060708090A0B0C0D0E0F10a"}
)

// cabinetOf makes a cabinet of one file, which is not compressed.
func cabinetOf(name string, data []byte) []byte {
	le := binary.LittleEndian
	const block = 1 << 15
	blocks := (len(data) + block - 1) / block
	b := make([]byte, 36+8)
	copy(b, "MSCF")
	le.PutUint32(b[16:], uint32(len(b)))
	b[24], b[25], b[26], b[28] = 3, 1, 1, 1
	file := append(le.AppendUint32(nil, uint32(len(data))), make([]byte, 12)...)
	file = append(append(file, name...), 0)
	le.PutUint32(b[36:], uint32(len(b)+len(file)))
	le.PutUint16(b[40:], uint16(blocks))
	b = append(b, file...)
	for ; len(data) > 0; data = data[min(len(data), block):] {
		part := data[:min(len(data), block)]
		b = append(b, 0, 0, 0, 0)
		b = le.AppendUint16(le.AppendUint16(b, uint16(len(part))), uint16(len(part)))
		b = append(b, part...)
	}
	return b
}

func TestPDBFilesAreFoundInStores(t *testing.T) {
	data := msftest.PDB(pdbGUID, 10, 0)
	for _, place := range []string{
		"Kernel32.pdb/" + pdb.ID + "/Kernel32.pdb",
		"Kernel32.pdb/" + strings.ToUpper(pdb.ID) + "/Kernel32.pdb",
		"kernel32.pdb/" + strings.ToLower(pdb.ID) + "/kernel32.pdb",
		"Kernel32.pdb/" + pdb.ID + "/Kernel32.pd_",
		"Ke/Kernel32.pdb/" + pdb.ID + "/Kernel32.pdb",
		"Ke/Kernel32.pdb/" + pdb.ID + "/Kernel32.pd_",
	} {
		dir := t.TempDir()
		stored := data
		if strings.HasSuffix(place, "_") {
			stored = cabinetOf("kernel32.pdb", data)
		}
		put(t, dir, place, stored)
		s := httptest.NewServer(http.FileServer(http.Dir(dir)))
		gets(t, client(t, nil, dir), pdb, data)
		again := client(t, nil, s.URL)
		gets(t, again, pdb, data)
		s.Close()
		gets(t, again, pdb, data) // from the cache
		if t.Failed() {
			t.Fatal(place)
		}
	}
	dir := t.TempDir()
	put(t, dir, "Kernel32.pdb", data)
	gets(t, client(t, nil, dir), pdb, data)
	gets(t, client(t, nil, filepath.Join(dir, "Kernel32.pdb")), pdb, data)
	refuses(t, client(t, nil, dir), object.RemoteFile{Kind: object.RemotePDB, Name: pdb.Name, ID: otherID}, object.Mismatched,
		`its GUID and age is "`+pdb.ID+`", expected `+otherID)
}

func TestWrongPDBFilesOfStoresAreRefused(t *testing.T) {
	place := "Kernel32.pdb/" + pdb.ID + "/"
	for _, c := range []struct {
		want, leaf string
		data       []byte
	}{
		{"no PDB file", "Kernel32.pdb", []byte("text")},
		{"a portable PDB", "Kernel32.pdb", []byte("BSJB\x01\x00\x01\x00")},
		{"its GUID and age is", "Kernel32.pdb", msftest.PDB(pdbGUID, 11, 0)},
		{"the cabinet cannot be unpacked: block 0", "Kernel32.pd_", cabinetOf("a", make([]byte, 1000))[:500]},
		{"the cabinet cannot be read: offset 0", "Kernel32.pd_", []byte("MSCF")},
		{"its GUID and age is", "Kernel32.pd_", cabinetOf("a", msftest.PDB(pdbGUID, 12, 0))},
		{"which is no path of this machine", "file.ptr", []byte(`PATH:\\server\share\a.pdb`)},
		{`the store does not have the file: "removed"`, "file.ptr", []byte("MSG: removed")},
		{"a file.ptr of the store leads to it: what came cannot be read", "file.ptr", []byte("PATH:/no/such/file.pdb")},
		{"expected at most 4096", "file.ptr", make([]byte, 5000)},
	} {
		dir := t.TempDir()
		put(t, dir, place+c.leaf, c.data)
		path, tried := client(t, nil, dir).Fetch(pdb)
		if path != "" || len(tried) == 0 || !strings.Contains(tried[len(tried)-1].Reason, c.want) {
			t.Errorf("%s: %q, %v, expected %q", c.leaf, path, tried, c.want)
		}
	}
}

func TestAFilePtrLeadsToTheFile(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	data := msftest.PDB(pdbGUID, 10, 0)
	put(t, elsewhere, "any.name", data)
	put(t, dir, "Kernel32.pdb/"+pdb.ID+"/file.ptr", []byte("PATH:"+filepath.Join(elsewhere, "any.name")+"\r\n"))
	gets(t, client(t, nil, dir), pdb, data)
}
