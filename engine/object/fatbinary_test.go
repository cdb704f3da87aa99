// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fatFixture is a file of testdata/fat.
func fatFixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "fat", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFatBinariesOfTheirMaker reads what nvcc wrote: entries are those that cuobjdump takes out.
func TestFatBinariesOfTheirMaker(t *testing.T) {
	const (
		sm80  = "242fd6b2112c480f42256d645800572415fae49427d772f77c4e031f301f3f50"
		sm90a = "1435d7f81186fba6d9a9bc4f022babecb13a10ec47c1d1278afe4785c47d7c58"
		ptx   = "f66d0f7f906e00177742a0aff34e50603d0ba6c59e7e24255dd7eab69363d3b0"
	)
	const id = "cuda-nvptx64-nvidia-cuda--"
	for file, want := range map[string][]string{
		"plain.fatbin": {id + "sm_80   " + sm80, id + "sm_90a   " + sm90a, id + "compute_90a ptx  " + ptx},
		"lz4.fatbin":   {id + "sm_80  lz4 " + sm80, id + "sm_90a  lz4 " + sm90a, id + "compute_90a ptx lz4 " + ptx},
		"zstd.fatbin":  {id + "sm_80  zstd " + sm80, id + "sm_90a  zstd " + sm90a, id + "compute_90a ptx zstd " + ptx},
		"group.fatbin": {id + "compute_90a ptx zstd " + ptx, id + "sm_80  zstd " + sm80, id + "sm_90a  zstd " + sm90a},
	} {
		data := fatFixture(t, file)
		var got []string
		for n, err := range BundleEntries(file, data) {
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(n.Data)
			got = append(got, strings.Join([]string{n.Name, n.Image, n.Packing, hex.EncodeToString(sum[:])}, " "))
			if n.Source != "scale.cu" || n.Format != "fat binary" {
				t.Errorf("%s: %s has source %q and format %q", file, n.Name, n.Source, n.Format)
			}
			if n.Packing == "" && !bytes.Equal(data[n.Offset:][:len(n.Data)], n.Data) {
				t.Errorf("%s: %s is not at %#x", file, n.Name, n.Offset)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-cuobjdump +here)\n%s", file, diff)
		}
	}
}

// TestFatBinaryInSections reads an object file of nvcc's, an archive of such files and a host with
// the names of sections that PE files have room for.
func TestFatBinaryInSections(t *testing.T) {
	dir := t.TempDir()
	host := func(section string) string {
		path := filepath.Join(dir, strings.Trim(section, "._"))
		b := testFile{sections: []testSection{{name: section, typ: elf.SHT_PROGBITS, data: fatFixture(t, "lz4.fatbin")}}}.bytes()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, section := range []string{".nv_fatbin", ".nv_fatb", "__nv_relfatbin", "__nv_rel"} {
		o, err := OpenNested(host(section)+"#sm_90a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if o.Machine() != uint16(elf.EM_CUDA) {
			t.Errorf("%s: machine %d", section, o.Machine())
		}
		_ = o.Close()
	}
	rdc := filepath.Join("testdata", "fat", "rdc.o")
	for _, name := range []string{"sm_80", "scale.cu:sm_80", "0"} {
		o, err := OpenNested(rdc+"#"+name, nil)
		if name == "scale.cu:sm_80" { // compiled without -lineinfo it has no source
			if !errors.Is(err, ErrNoNested) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(o.Data())
		if got := hex.EncodeToString(sum[:]); got != "66766707de3092d946827e17b35418df9f59de35ddba84c26e2e169cfc21293b" {
			t.Errorf("%s: SHA-256 %s", name, got)
		}
		_ = o.Close()
	}
	if _, err := OpenNested(rdc+"#compute_80", nil); !errors.Is(err, ErrNotELF) || !strings.Contains(err.Error(), "but nvvm") {
		t.Errorf("code that is compiled further: %v", err)
	}
	if _, err := OpenNested("testdata/fat/lz4.fatbin", nil); !errors.Is(err, ErrNotELF) || !strings.Contains(err.Error(), "but a fat binary: name a code object in it") {
		t.Errorf("a fat binary by itself: %v", err)
	}
	o, err := OpenNested("testdata/fat/lz4.fatbin#scale.cu:sm_80", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = o.Close()
}

// TestFatBinaryInAnOffloadBinary reads one that is an image of LLVM's container.
func TestFatBinaryInAnOffloadBinary(t *testing.T) {
	data := testOffload(2, nil, testImage{4, 2, 0, "nvptx64-nvidia-cuda", "", fatFixture(t, "zstd.fatbin")})
	entries, problems := listed(BundleEntries("f", data))
	if len(entries) != 3 || len(problems) > 0 || !strings.Contains(entries[1], "sm_90a") {
		t.Errorf("%q, %q", entries, problems)
	}
}

// edited is a fat binary with other bytes at an offset.
func edited(data []byte, offset int, value uint64, size int) []byte {
	b := bytes.Clone(data)
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], value)
	copy(b[offset:offset+size], word[:])
	return b
}

// TestBadFatBinaries: each member lies; entries before are read, and the error says where and what
// was expected.
func TestBadFatBinaries(t *testing.T) {
	plain, packed, group := fatFixture(t, "plain.fatbin"), fatFixture(t, "zstd.fatbin"), fatFixture(t, "group.fatbin")
	lz := fatFixture(t, "lz4.fatbin")
	second, part := 0x538, 0x1b0+fatEntry
	for _, c := range []struct {
		what    string
		data    []byte
		entries int
		problem string
	}{
		{"a header that is cut", plain[:12], 0, "12 bytes, expected a header of 16"},
		{"a version", edited(plain, 4, 2, 2), 0, "version 2, expected 1"},
		{"the header's size", edited(plain, 6, 4, 2), 0, "a header of 4 bytes, expected 16"},
		{"the size", edited(plain, 8, 1<<40, 8), 0, "a size of 1099511627776 bytes, expected at most 9936"},
		{"an entry that is cut", edited(plain, 8, 100, 8), 0, "entry at 0x10: contents of 4456 bytes, expected at most 20"},
		{"an entry's header", edited(packed, second+4, 8, 4), 1, "entry at 0x538: a header of 8 bytes, expected 64"},
		{"an entry's size", edited(packed, second+8, 1<<63, 8), 1, "entry at 0x538: contents of 9223372036854775808 bytes"},
		{"the source's name", edited(packed, second+32, 1<<31, 4), 1, "entry at 0x538: a source's name of 8 bytes at 0x80000000"},
		{"the compressed size", edited(packed, second+16, 1<<30, 4), 2, "compressed to 1073741824 bytes, expected at most 1304"},
		{"the unpacked size", edited(packed, second+56, 1<<50, 8), 2, "1125899906842624 bytes more, expected at most"},
		{"an unpacked size that is too small", edited(packed, second+56, 100, 8), 2, "decompressed to more than the 100 bytes"},
		{"an unpacked size of lz4", edited(lz, 0x10+56, 1<<24, 8), 2, "decompressing: 16777216 bytes, expected at most"},
		{"an unpacked size of lz4 that is too small", edited(lz, 0x10+56, 64, 8), 2, "decompressing"},
		{"the method", edited(packed, second+40, 0x11, 8), 2, "flags 0x11, expected one for lz4"},
		{"the compressed bytes", edited(packed, second+80, 0, 8), 2, "decompressing"},
		{"the parts", edited(group, part, 1<<31, 4), 1, "2147483648 parts, expected at most 2"},
		{"a part's offset", edited(group, part+8+4, 1<<31, 4), 1, "part 0: 4456 bytes at 0x80000000 are not in its"},
		{"a part's source", edited(group, part+8+36, 1<<20, 4), 1, "part 0: a source's name of 1048576 bytes"},
		{"a part's options", edited(group, part+8+20, 1<<20, 4), 2, "part 0: options at 0x100000"},
	} {
		entries, problems := listed(BundleEntries("f", c.data))
		if len(entries) != c.entries || len(problems) != 1 || !strings.Contains(problems[0], c.problem) || !strings.HasPrefix(problems[0], "f: fat binary at offset 0x0: ") {
			t.Errorf("%s: %d entries, expected %d; %q, expected %q", c.what, len(entries), c.entries, problems, c.problem)
		}
	}
}

// TestFatBinariesOneAfterTheOther: a broken one does not hide the next, and neither do its entries
// that cannot be unpacked.
func TestFatBinariesOneAfterTheOther(t *testing.T) {
	packed := fatFixture(t, "zstd.fatbin")
	data := append(edited(packed, 0x10+80, 0, 8), make([]byte, 24)...)
	data = append(append(data, edited(packed, 4, 9, 2)...), packed...)
	entries, problems := listed(BundleEntries("f", data))
	if len(entries) != 5 || len(problems) != 2 {
		t.Errorf("%q, %q", entries, problems)
	}
}

// TestFatBinariesAreBounded: entries that all name the same bytes end at a bound of what may be
// unpacked.
func TestFatBinariesAreBounded(t *testing.T) {
	zeros := make([]byte, 1<<20)
	body := packZSTD(zeros)
	packed := len(body)
	body = append(body, make([]byte, -len(body)&7)...)
	var entries []byte
	le := binary.LittleEndian
	for range 4096 {
		head := make([]byte, fatEntry)
		le.PutUint16(head, 2)
		le.PutUint32(head[4:], fatEntry)
		le.PutUint64(head[8:], uint64(len(body)))
		le.PutUint32(head[16:], uint32(packed))
		le.PutUint64(head[40:], fatZSTD)
		le.PutUint64(head[56:], uint64(len(zeros)))
		entries = append(append(entries, head...), body...)
	}
	data := le.AppendUint64(le.AppendUint16(le.AppendUint16([]byte(fatMagic), 1), fatHeader), uint64(len(entries)))
	data = append(data, entries...)
	total, problems := 0, 0
	for n, err := range BundleEntries("f", data) {
		if total += len(n.Data); err != nil {
			problems++
			if !errors.Is(err, ErrTooLarge) {
				t.Error(err)
			}
		}
	}
	if most := unpackedFloor + unpackedRatio*len(data); problems != 1 || total > most || total == 0 {
		t.Errorf("%d bytes and %d problems, expected at most %d and one", total, problems, most)
	}
}

// FuzzFatBinary reads whatever may be in a section.
func FuzzFatBinary(f *testing.F) {
	for _, name := range []string{"plain.fatbin", "lz4.fatbin", "zstd.fatbin", "group.fatbin"} {
		f.Add(fatFixture(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		total := uint64(0)
		for n, err := range BundleEntries("f", data) {
			if err == nil && n.Packing == "" && n.Format == "fat binary" && n.Offset+uint64(len(n.Data)) > uint64(len(data)) {
				t.Fatalf("%s ends behind the file", n.Name)
			}
			total += uint64(len(n.Data))
			_ = fmt.Sprint(n.Name, n.Image, err)
		}
	})
}
