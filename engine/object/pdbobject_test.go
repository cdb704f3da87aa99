// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol/msf/msftest"
)

var pdbGUID = [16]byte{0x04, 0x03, 0x02, 0x01, 0x06, 0x05, 0x08, 0x07, 9, 10, 11, 12, 13, 14, 15, 16}

// madeImage makes a PE file whose debug information is the PDB file at a path, of pdbGUID and an age.
func madeImage(pdb string, age uint32) []byte {
	le := binary.LittleEndian
	b := make([]byte, 0x400)
	copy(b, "MZ")
	le.PutUint32(b[0x3c:], 0x80)
	copy(b[0x80:], "PE\x00\x00")
	h := b[0x84:]
	le.PutUint16(h, pe.MachineX86_64)
	le.PutUint16(h[2:], 1)
	le.PutUint16(h[16:], 240)
	le.PutUint16(h[18:], 0x22)
	o := h[20:]
	le.PutUint16(o, 0x20b)
	le.PutUint64(o[24:], 0x140000000)
	le.PutUint32(o[32:], 0x1000)
	le.PutUint32(o[36:], 0x200)
	le.PutUint32(o[56:], 0x2000)
	le.PutUint32(o[60:], 0x200)
	le.PutUint32(o[108:], 16)
	le.PutUint32(o[112+6*8:], 0x1010) // the debug directory
	le.PutUint32(o[112+6*8+4:], 28)
	s := o[240:]
	copy(s, ".text")
	for i, v := range []uint32{0x200, 0x1000, 0x200, 0x200} {
		le.PutUint32(s[8+4*i:], v)
	}
	le.PutUint32(s[36:], 0x60000020)
	record := append([]byte("RSDS"), pdbGUID[:]...)
	record = append(append(le.AppendUint32(record, age), pdb...), 0)
	d := b[0x210:]
	le.PutUint32(d[12:], 2)
	le.PutUint32(d[16:], uint32(len(record)))
	le.PutUint32(d[20:], 0x1040)
	le.PutUint32(d[24:], 0x240)
	copy(b[0x240:], record)
	return b
}

// writeFiles writes files into a directory.
func writeFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAPDBFileIsADebugFileWithItsImagesIdentity(t *testing.T) {
	o, err := New("a.pdb", msftest.PDB(pdbGUID, 3, pe.MachineX86_64))
	if err != nil {
		t.Fatal(err)
	}
	image, err := New("a.exe", madeImage(`C:\build\a.pdb`, 3))
	if err != nil {
		t.Fatal(err)
	}
	if !o.IsPDB() || o.IsELF() || o.IsPE() || !o.DebugOnly() || !o.HasDebugInfo() || elf.Machine(o.Machine()) != elf.EM_X86_64 || o.Class() != elf.ELFCLASS64 {
		t.Errorf("PDB %v, debug only %v, machine %v, class %v", o.IsPDB(), o.DebugOnly(), o.Machine(), o.Class())
	}
	if name := "0102030405060708090A0B0C0D0E0F103"; o.SymbolName() != name || image.SymbolName() != name || !o.HasID(image.BuildID()) {
		t.Errorf("%s and %s, expected %s", o.SymbolName(), image.SymbolName(), name)
	}
	if s := o.Section(".text"); s == nil || s.Address != 0x1000 || s.Size != 0x100 || s.Flags&elf.SHF_EXECINSTR == 0 || len(o.Segments()) != 1 {
		t.Errorf("section %+v, %d segments", s, len(o.Segments()))
	}
	if base, ok := o.ImageBase(); base != 0 || !ok {
		t.Errorf("base %#x", base)
	}
	if _, err := New("net.pdb", []byte("BSJB\x01\x00\x01\x00\x00\x00\x00\x00\x0c\x00\x00\x00PDB v1.0")); err == nil || !strings.Contains(err.Error(), "portable PDB") {
		t.Errorf("%v, expected what a portable PDB is", err)
	}
}

func TestThePDBFileOfAnImageIsFound(t *testing.T) {
	pdb := func(age uint32) []byte { return msftest.PDB(pdbGUID, age, pe.MachineX86_64) }
	other := pdbGUID
	other[0] = 0
	for name, c := range map[string]struct {
		files   map[string][]byte
		path    string // of the file; "": none
		problem string
	}{
		"beside":             {map[string][]byte{"root/bin/a.pdb": pdb(3)}, "root/bin/a.pdb", ""},
		"beside, other case": {map[string][]byte{"root/bin/A.PDB": pdb(3)}, "root/bin/A.PDB", ""},
		"where it was built": {map[string][]byte{"root/Build/out/a.pdb": pdb(3)}, "root/Build/out/a.pdb", ""},
		"debug directory":    {map[string][]byte{"debug/a.pdb": pdb(3)}, "debug/a.pdb", ""},
		"by identity":        {map[string][]byte{"debug/renamed.bin": pdb(3)}, "debug/renamed.bin", ""},
		"folder":             {map[string][]byte{"folder/a.pdb": pdb(3)}, "folder/a.pdb", ""},
		"of another build":   {map[string][]byte{"root/bin/a.pdb": msftest.PDB(other, 3, 0), "debug/a.pdb": pdb(3)}, "debug/a.pdb", ""},
		"machine unknown":    {map[string][]byte{"root/bin/a.pdb": msftest.PDB(pdbGUID, 3, 0)}, "root/bin/a.pdb", ""},
		"another age":        {map[string][]byte{"root/bin/a.pdb": pdb(4)}, "", "root/bin/a.pdb (its GUID is the expected one, but its age is 4, expected 3)"},
		"another GUID":       {map[string][]byte{"root/bin/a.pdb": msftest.PDB(other, 3, 0)}, "", "a.pdb (its GUID and age are 0102030005060708090A0B0C0D0E0F103, expected 0102030405060708090A0B0C0D0E0F103)"},
		"portable":           {map[string][]byte{"root/bin/a.pdb": []byte("BSJB\x01\x00\x01\x00")}, "", "a.pdb (a portable PDB"},
		"nowhere":            {nil, "", "root/bin/a.pdb (no such file or directory)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, map[string][]byte{"root/bin/a.exe": madeImage(`D:\build\OUT\a.pdb`, 3), "debug/x": {1}, "folder/x": {1}})
			writeFiles(t, dir, c.files)
			f := Finder{Sysroot: filepath.Join(dir, "root"), DebugDirs: []string{filepath.Join(dir, "debug")}, Folders: []string{filepath.Join(dir, "folder")}}
			image := f.Find("/bin/a.exe", nil, false)
			if image.Object == nil {
				t.Fatal(image.Problem)
			}
			defer image.Object.Close()
			found := f.FindDebug(image.Object)
			path := ""
			if found.Object != nil {
				defer found.Object.Close()
				path, _ = filepath.Rel(dir, found.Path)
			}
			if path != c.path || !strings.Contains(found.Problem, c.problem) {
				t.Errorf("%q, problem %q, expected %q, %q", path, found.Problem, c.path, c.problem)
			}
			if c.path == "" {
				return
			}
			// Without the image the dump's module leads to it.
			if err := os.Remove(filepath.Join(dir, "root/bin/a.exe")); err != nil {
				t.Fatal(err)
			}
			alone := f.FindCode(`C:\bin\a.exe`, image.Object.BuildID(), "123", `D:\build\OUT\a.pdb`, true)
			if alone.Object == nil {
				t.Fatalf("without its image it is not found: %s", alone.Problem)
			}
			defer alone.Object.Close()
			if !alone.Object.IsPDB() || !alone.Checked || alone.File() != "" || !strings.Contains(alone.Problem, "which has no code") {
				t.Errorf("%+v", alone)
			}
		})
	}
}

func FuzzPDBHeaders(f *testing.F) {
	f.Add(msftest.PDB(pdbGUID, 3, pe.MachineX86_64))
	f.Fuzz(func(_ *testing.T, data []byte) {
		o, err := New("a.pdb", data)
		if err != nil {
			return
		}
		_, _, _ = o.BuildID(), o.Sections(), o.Problems()
		_, _ = o.ImageBase()
	})
}
