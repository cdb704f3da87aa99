// SPDX-License-Identifier: Apache-2.0

package object

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"hash/crc32"
	"path/filepath"
	"strings"
	"testing"
)

// library is a small shared object with an executable segment at an offset of its file.
func library(text string) []byte {
	const header, program = 64, 56
	b := make([]byte, 0x2000)
	copy(b, "\x7fELF\x02\x01\x01")
	le := binary.LittleEndian
	le.PutUint16(b[16:], uint16(elf.ET_DYN))
	le.PutUint16(b[18:], uint16(elf.EM_X86_64))
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[32:], header)
	le.PutUint16(b[52:], header)
	le.PutUint16(b[54:], program)
	le.PutUint16(b[56:], 2)
	for i, p := range []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Filesz: 0x200, Memsz: 0x200, Align: 0x1000},
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Off: 0x1000, Vaddr: 0x5000, Filesz: 0x1000, Memsz: 0x1000, Align: 0x1000},
	} {
		var w bytes.Buffer
		_ = binary.Write(&w, le, p)
		copy(b[header+i*program:], w.Bytes())
	}
	copy(b[0x1000:], text)
	return b
}

// archive is an APK: members that are not compressed lie at pages, as zipalign has it.
func archive(t testing.TB, members ...[2]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	packed, err := w.CreateRaw(&zip.FileHeader{Name: "AndroidManifest.xml", Method: zip.Deflate, UncompressedSize64: 100, CompressedSize64: 8})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = packed.Write([]byte("manifest"))
	for _, m := range members {
		_ = w.Flush()
		size := uint64(len(m[1]))
		h := &zip.FileHeader{Name: m[0], Method: zip.Store, CRC32: crc32.ChecksumIEEE([]byte(m[1])), UncompressedSize64: size, CompressedSize64: size}
		pad := -(b.Len() + 30 + len(m[0]) + 4) & 0xfff
		h.Extra = append([]byte{0x35, 0xd9, byte(pad), byte(pad >> 8)}, make([]byte, pad)...)
		raw, err := w.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = raw.Write([]byte(m[1]))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPartsOfFiles(t *testing.T) {
	one, two := string(library("one")), string(library("two"))
	apk := archive(t, [2]string{"lib/x86_64/libe.so", one}, [2]string{"lib/x86_64/libf.so", two}, [2]string{"assets/text", "no code"})
	first, second := uint64(bytes.Index(apk, []byte(one))), uint64(bytes.Index(apk, []byte(two)))
	if first&0xfff != 0 || second&0xfff != 0 {
		t.Fatalf("the members are at %#x and %#x", first, second)
	}
	bundle := append(make([]byte, 0x3000), one...)
	dir := t.TempDir()
	for name, data := range map[string][]byte{"base.apk": apk, "bundle": bundle, "itself": append([]byte(one), two...)} {
		write(t, filepath.Join(dir, name), data)
	}
	f := Finder{Sysroot: dir}
	for _, test := range []struct {
		file   string
		offset uint64
		want   string
		start  uint64
	}{
		{"/base.apk", first + 0x1000, "/base.apk!lib/x86_64/libe.so", first},
		{"/base.apk", second, "/base.apk!lib/x86_64/libf.so", second},
		{"/base.apk", second + 0x1000, "/base.apk!lib/x86_64/libf.so", second},
		{"/base.apk", 0, "", 0},
		{"/bundle", 0x4000, "/bundle+0x3000", 0x3000},
		{"/bundle", 0x3000, "/bundle+0x3000", 0x3000},
		{"/bundle (deleted)", 0x4000, "/bundle+0x3000", 0x3000},
		{"/bundle", 0x1000, "", 0},
		{"/bundle", 1 << 40, "", 0},
		{"/itself", 0x1000, "", 0},
		{"/itself", 0x3000, "/itself+0x2000", 0x2000},
		{"/none", 0x1000, "", 0},
	} {
		name, start, ok := f.FindPart(test.file, test.offset, 0x1000)
		if ok != (test.want != "") || name != test.want || start != test.start {
			t.Errorf("%s at %#x is of %q at %#x, expected %q at %#x", test.file, test.offset, name, start, test.want, test.start)
		}
	}
	for name, want := range map[string]string{
		"/base.apk!lib/x86_64/libe.so": "one", "/base.apk!/lib/x86_64/libf.so": "two", "/base.apk!libf.so": "two", "/base.apk/libe.so": "one",
		"/base.apk!/none.so": "", "/base.apk!text": "", "/bundle+0x3000": "one", "/bundle+0x1000": "", "/bundle+0xffffff": "", "/itself+0x2000": "two",
	} {
		found := f.Find(name, nil, false)
		if found.Object == nil {
			if want != "" {
				t.Errorf("%s: %s", name, found.Problem)
			}
			continue
		}
		text := make([]byte, 3)
		if _, err := found.Object.ReadAddress(text, 0x5000); err != nil || string(text) != want {
			t.Errorf("%s has %q (%v), expected %q", name, text, err, want)
		}
		found.Object.Close()
	}
}

func FuzzPart(f *testing.F) {
	f.Add(archive(f, [2]string{"libe.so", string(library("one"))}), uint64(0x2000), "!libe.so")
	f.Add(append(make([]byte, 0x1000), library("one")...), uint64(0x2000), "+0x1000")
	f.Fuzz(func(t *testing.T, data []byte, offset uint64, part string) {
		name, start, ok := partAt(data, offset, 0x1000)
		if ok && (start > offset || start >= uint64(len(data))) {
			t.Errorf("offset %#x is in a part at %#x", offset, start)
		}
		for _, name := range []string{name, part} {
			if !isPart(name) {
				continue
			}
			b, err := partOf(data, name)
			if err == nil && len(b) > len(data) {
				t.Errorf("%d bytes of %d", len(b), len(data))
			}
			if ok && name != part && (err != nil || !bytes.HasPrefix(b, []byte(elf.ELFMAG)) && !strings.HasPrefix(name, "!")) {
				t.Errorf("%q that was found is not there: %v", name, err)
			}
		}
		_, _, _ = cutEmbedded(part)
	})
}
