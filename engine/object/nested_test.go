// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"crypto/md5"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// testBundle is a bundle as clang-offload-bundler writes it: the header, and
// each code object aligned to 64 bytes.
func testBundle(entries ...bundleEntry) []byte {
	size := len(bundleMagic) + 8
	for _, e := range entries {
		size += 24 + len(e.name)
	}
	b := binary.LittleEndian.AppendUint64([]byte(bundleMagic), uint64(len(entries)))
	at := (size + 63) &^ 63
	body := make([]byte, 0)
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint64(b, uint64(at+len(body)))
		b = binary.LittleEndian.AppendUint64(b, uint64(len(e.data)))
		b = append(binary.LittleEndian.AppendUint64(b, uint64(len(e.name))), e.name...)
		body = append(body, e.data...)
		body = append(body, make([]byte, -len(body)&63)...)
	}
	b = append(b, make([]byte, at-len(b))...)
	return append(b, body...)
}

// packBundle compresses a bundle.
func packBundle(bundle []byte, version, method uint16) []byte {
	packed := packZLIB(bundle)
	if method == 1 {
		packed = packZSTD(bundle)
	}
	b := binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16([]byte(packedMagic), version), method)
	switch version {
	case 1:
		b = binary.LittleEndian.AppendUint32(b, uint32(len(bundle)))
	case 2:
		b = binary.LittleEndian.AppendUint32(b, uint32(24+len(packed)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(bundle)))
	default:
		b = binary.LittleEndian.AppendUint64(b, uint64(32+len(packed)))
		b = binary.LittleEndian.AppendUint64(b, uint64(len(bundle)))
	}
	sum := md5.Sum(bundle)
	return append(append(b, sum[:8]...), packed...)
}

// entriesOf lists entries as text, and errors as they are.
func entriesOf(data []byte) (entries, problems []string) {
	for n, err := range BundleEntries("f", data) {
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		entries = append(entries, fmt.Sprintf("%d %s %s%#x+%#x %q", n.Index, n.Name, n.Packing, n.Bundle, n.Offset, n.Data))
	}
	return entries, problems
}

func TestBundlesOfTheirMaker(t *testing.T) {
	var objects [][]byte
	for _, name := range []string{"amd_k.gfx1100.co", "amd_h.gfx90a.co"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "plugins", "amdgpu", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, b)
	}
	for file, packing := range map[string]string{"plain.hipfb": "", "v2.hipfb": "zstd", "v3.hipfb": "zstd"} {
		data, err := os.ReadFile("testdata/bundles/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var got []Nested
		for n, err := range BundleEntries(file, data) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, n)
		}
		if len(got) != 3 || got[0].Name != "host-x86_64-unknown-linux-gnu-" || len(got[0].Data) > 0 ||
			got[1].Name != "hipv4-amdgcn-amd-amdhsa--gfx1100" || !bytes.Equal(got[1].Data, objects[0]) ||
			got[2].Name != "hipv4-amdgcn-amd-amdhsa--gfx90a" || !bytes.Equal(got[2].Data, objects[1]) || got[2].Index != 2 {
			t.Fatalf("%s: %d entries", file, len(got))
		}
		for _, n := range got {
			if n.Packing != packing || n.Bundle != 0 || packing == "" && len(n.Data) > 0 && !bytes.Equal(data[n.Offset:][:len(n.Data)], n.Data) {
				t.Errorf("%s: %s: packing %q, offset %#x", file, n.Name, n.Packing, n.Offset)
			}
		}
	}
}

func TestBundlesOneAfterTheOther(t *testing.T) {
	a := testBundle(bundleEntry{name: "hip-a--gfx90a", data: []byte("CCOB, one")}, bundleEntry{name: "host-x"})
	b := testBundle(bundleEntry{name: "hip-b", data: []byte(bundleMagic + " is no bundle")})
	var file []byte
	var starts []int
	add := func(b []byte, padding int) {
		starts = append(starts, len(file))
		file = append(append(file, b...), make([]byte, padding)...)
	}
	add(a, 0)
	add(packBundle(b, 1, 0), 7)
	add(packBundle(a, 1, 1), 0)
	add(packBundle(b, 2, 0), 4096)
	add(packBundle(a, 2, 1), 1)
	add(b, 64)
	add(packBundle(b, 3, 0), 0)
	add(packBundle(a, 3, 1), 12)
	got, problems := entriesOf(file)
	var want []string
	for i, start := range starts {
		offset, packing := uint64(start), [...]string{"", "zlib", "zstd", "zlib", "zstd", "", "zlib", "zstd"}[i]
		if packing != "" {
			offset = 0
		}
		if i == 0 || i == 2 || i == 4 || i == 7 {
			want = append(want, fmt.Sprintf("%d hip-a--gfx90a %s%#x+%#x %q", len(want), packing, start, offset+128, "CCOB, one"))
			want = append(want, fmt.Sprintf("%d host-x %s%#x+%#x %q", len(want), packing, start, offset+192, ""))
			continue
		}
		want = append(want, fmt.Sprintf("%d hip-b %s%#x+%#x %q", len(want), packing, start, offset+64, bundleMagic+" is no bundle"))
	}
	if diff := cmp.Diff(want, got); diff != "" || problems != nil {
		t.Errorf("%q\n%s", problems, diff)
	}
}

func TestBundlesThatAreRefused(t *testing.T) {
	good := testBundle(bundleEntry{name: "hip-a", data: []byte("object")})
	put := func(b []byte, at int, v ...byte) []byte {
		b = bytes.Clone(b)
		copy(b[at:], v)
		return b
	}
	large := func(version uint16, size uint64) []byte {
		b := packBundle(good, version, 1)
		binary.LittleEndian.PutUint64(b[16:], size)
		return b
	}
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"the magic only", "expected the number of entries", []byte(bundleMagic)},
		{"more entries than fit", "18446744073709551615 entries, expected at most", put(good, 24, bytes.Repeat([]byte{0xff}, 8)...)},
		{"an entry past the end", "offset 0x40, size 0x10006 is not in its", put(good, 42, 1)},
		{"an offset that is larger than any", "entry 0, hip-a: offset 0xffffffffffffffff", put(good, 32, bytes.Repeat([]byte{0xff}, 8)...)},
		{"a long ID", "entry 0: an ID of 65541 bytes", put(good, 50, 1)},
		{"an ID of no UTF-8", "entry 0: an ID of 5 bytes", put(good, 57, 0xff)},
		{"a compressed one's magic only", "expected a version and a method", []byte(packedMagic)},
		{"version 4", "version 4 of compressed bundles", put(packBundle(good, 3, 1), 4, 4)},
		{"a header that is cut", "expected a header of 32", packBundle(good, 3, 1)[:31]},
		{"method 2", "compression method 2", put(packBundle(good, 3, 1), 6, 2)},
		{"a size that is more than the file", "expected 32 to", put(packBundle(good, 3, 1), 15, 1)},
		{"a size that is less than the header", "a size of 1 bytes, expected 24", put(packBundle(good, 2, 1), 8, 1, 0, 0, 0)},
		{"another hash", "whose MD5 begins with", put(packBundle(good, 3, 1), 24, 0, 0)},
		{"no zstd", "decompressing", put(packBundle(good, 3, 1), 32, 0, 0)},
		{"no zstd in version 1", "zstd frame", put(packBundle(good, 1, 1), 20, 0, 0)},
		{"zlib that is cut", "decompressing", packBundle(good, 1, 0)[:40]},
		{"zstd that is cut", "zstd", packBundle(good, 1, 1)[:40]},
		{"less than it says", "decompressed to 128 bytes, expected 129", large(3, 129)},
		{"more than it says", "decompressed to more than the 127 bytes", large(3, 127)},
		{"terabytes", ErrTooLarge.Error(), large(3, 1<<42)},
		{"what is no bundle", `begins with "text", expected`, packBundle([]byte("text"), 3, 1)},
		{"a compressed one in it", `begins with "CCOB`, packBundle(packBundle(good, 3, 1), 3, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries, problems := entriesOf(c.data)
			if len(entries) > 0 || len(problems) == 0 || !strings.Contains(problems[0], c.want) || !strings.Contains(problems[0], "f: offload bundle at offset 0x0: ") {
				t.Errorf("%q, problems %q, want %q", entries, problems, c.want)
			}
			// What follows is read all the same.
			if entries, _ := entriesOf(append(bytes.Clone(c.data), good...)); len(c.data) > 100 && !slices.ContainsFunc(entries, func(s string) bool { return strings.HasSuffix(s, `"object"`) }) {
				t.Errorf("the bundle behind it is missing: %q", entries)
			}
		})
	}
}

func TestWhatBundlesUnpackToIsBoundedTogether(t *testing.T) {
	big := testBundle(bundleEntry{name: "hip-a", data: make([]byte, 16<<20)})
	one := packBundle(big, 3, 1)
	count := 0
	var last error
	for _, err := range BundleEntries("f", bytes.Repeat(one, 40)) {
		if count++; err != nil {
			count--
			last = err
		}
	}
	if count < 4 || count >= 40 || !errors.Is(last, ErrTooLarge) {
		t.Errorf("%d bundles of 16 MiB from %d bytes: %v", count, 40*len(one), last)
	}
}

func TestManyEntriesAreBounded(t *testing.T) {
	entries := make([]bundleEntry, maxNested+5)
	n, errs := 0, 0
	for _, err := range BundleEntries("f", testBundle(entries...)) {
		if n++; err != nil {
			n, errs = n-1, errs+1
		}
	}
	if n != maxNested || errs != 1 {
		t.Errorf("%d entries, %d errors", n, errs)
	}
}

// hostFile is an ELF file with a fat binary.
func hostFile(bundles []byte) []byte {
	return testFile{sections: []testSection{
		{name: ".text", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, data: []byte("code")},
		{name: ".hip_fatbin", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC, data: bundles},
		{name: ".hipFatBinSegment", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC, data: []byte("FPIH\x01\x00\x00\x00")},
		{name: bundleMagic + "hip-amdgcn-amd-amdhsa--gfx906", typ: elf.SHT_PROGBITS, data: []byte("linked later")},
	}}.bytes()
}

func TestOpenNested(t *testing.T) {
	before := len(live.mappings)
	inner := testFile{machine: 224}.bytes()
	bundle := testBundle(bundleEntry{name: "host-x86_64-unknown-linux-gnu-"},
		bundleEntry{name: "hipv4-amdgcn-amd-amdhsa--gfx90a", data: inner}, bundleEntry{name: "hipv4-amdgcn-amd-amdhsa--gfx1100", data: inner})
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	host := write("host", hostFile(append(bytes.Clone(bundle), packBundle(testBundle(bundleEntry{name: "hipv4-amdgcn-amd-amdhsa--gfx1100", data: inner}), 3, 1)...)))
	file, odd := write("bundle", bundle), write("odd#name", inner)
	write("inner", inner)
	for _, c := range []struct {
		path    string
		machine uint16
		err     string
	}{
		{host, uint16(elf.EM_X86_64), ""},
		{host + "#gfx90a", 224, ""},
		{host + "#amdgcn-amd-amdhsa--gfx90a", 224, ""},
		{host + "#hipv4-amdgcn-amd-amdhsa--gfx90a", 224, ""},
		{host + "#1", 224, ""},
		{host + "#3", 224, ""},
		{file + "#gfx1100", 224, ""},
		{odd, 224, ""},
		{host + "#gfx1100", 0, "2 code objects have that name; name one by its index: 2 (hipv4-amdgcn-amd-amdhsa--gfx1100), 3 ("},
		{host + "#0", 0, "has no bytes: it stands for the host's own code"},
		{host + "#5", 0, ErrNoNested.Error()},
		{host + "#-1", 0, ErrNoNested.Error()},
		{host + "#90a", 0, ErrNoNested.Error()},
		{host + "#gfx906", 0, ErrNotELF.Error()},
		{host + "#", 0, "no such file"},
		{file, 0, "but an offload bundle: name a code object in it"},
		{filepath.Join(dir, "inner") + "#gfx90a", 0, ErrNoNested.Error()},
		{filepath.Join(dir, "none") + "#gfx90a", 0, "no such file"},
		{filepath.Join(dir, "none"), 0, "no such file"},
	} {
		o, err := OpenNested(c.path, nil)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", c.path, err, c.err)
		}
		if err != nil {
			continue
		}
		if o.Machine() != c.machine || o.Name() != c.path {
			t.Errorf("%s: machine %d, name %s", c.path, o.Machine(), o.Name())
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := len(live.mappings) - before; n != 0 {
		t.Errorf("%d files more are mapped than before", n)
	}
}

func TestFinderFindsCodeObjectsInsideFiles(t *testing.T) {
	before := len(live.mappings)
	first, second := withBuildID([]byte("first"), "a"), withBuildID([]byte("second"), "b")
	bundle := testBundle(bundleEntry{name: "hip-x-y-z--gfx90a", data: first}, bundleEntry{name: "hip-x-y-z--gfx942", data: second})
	root, folder := t.TempDir(), t.TempDir()
	for path, b := range map[string][]byte{filepath.Join(root, "lib", "host"): hostFile(bundle), filepath.Join(folder, "other.hipfb"): packBundle(bundle, 3, 1)} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	f := Finder{Sysroot: root, Folders: []string{folder}}
	for _, c := range []struct{ name, id, path, problem string }{
		{"/lib/host#gfx90a", "first", "host", ""},
		{"/lib/host#1", "second", "host", ""},
		{"/elsewhere/other.hipfb#gfx942", "second", "other.hipfb", ""},
		{"/lib/host#gfx90a", "second", "", "/lib/host#gfx90a (build ID is 6669727374, expected 7365636f6e64)"},
		{"/lib/host#gfx900", "first", "", "no such code object in the file"},
		{"/../../lib/none#gfx900", "first", "", "no such file"},
	} {
		found := f.Find(c.name, []byte(c.id), false)
		if (found.Object != nil) != (c.path != "") || filepath.Base(found.Path) != c.path && c.path != "" || !strings.Contains(found.Problem, c.problem) {
			t.Errorf("%s: %+v, want %s %q", c.name, found, c.path, c.problem)
		}
		if found.Object != nil {
			if !found.Checked || string(found.Object.BuildID()) != c.id {
				t.Errorf("%s: build ID %q", c.name, found.Object.BuildID())
			}
			found.Object.Close()
		}
	}
	if n := len(live.mappings) - before; n != 0 {
		t.Errorf("%d files more are mapped than before", n)
	}
}

// TestFatBinariesAsLLVMListsThem holds the entries against those of
// llvm-readobj. It lists plain bundles in a row, and of compressed ones the first.
func TestFatBinariesAsLLVMListsThem(t *testing.T) {
	uri := regexp.MustCompile(`(?m)^(\S+)\tfile://.*#offset=(\d+)&size=(\d+)$`)
	small := testBundle(bundleEntry{name: "hip-a", data: []byte("object")}, bundleEntry{name: "host-b"})
	files := map[string][]byte{
		"v1 zlib": packBundle(small, 1, 0), "v1 zstd": packBundle(small, 1, 1), "v2 zlib": packBundle(small, 2, 0), "v3 zlib": packBundle(small, 3, 0),
		"two": append(bytes.Clone(small), small...),
	}
	for _, name := range []string{"plain.hipfb", "v2.hipfb", "v3.hipfb"} {
		data, err := os.ReadFile("testdata/bundles/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	for name, bundles := range files {
		path := filepath.Join(t.TempDir(), "host")
		if err := os.WriteFile(path, hostFile(bundles), 0o600); err != nil {
			t.Fatal(err)
		}
		out := oracle.Run(t, "llvm-readobj-22", "--offloading", path)
		var want, got []string
		for _, m := range uri.FindAllStringSubmatch(out, -1) {
			want = append(want, strings.Join(m[1:], " "))
		}
		o, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for n, err := range o.Nested(nil) {
			if err != nil {
				t.Fatal(err)
			}
			if n.Section == ".hip_fatbin" {
				got = append(got, n.Name+" "+strconv.FormatUint(n.Offset, 10)+" "+strconv.Itoa(len(n.Data)))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
			t.Errorf("%s: (-llvm +got)\n%s", name, diff)
		}
		o.Close()
	}
}

// FuzzBundles reads any bytes as bundles, alone and in a host.
func FuzzBundles(f *testing.F) {
	small := testBundle(bundleEntry{name: "hip-a--gfx90a", data: []byte("object")}, bundleEntry{name: "host-b"})
	f.Add(small)
	for version := range uint16(3) {
		f.Add(packBundle(small, version+1, 0))
		f.Add(append(packBundle(small, version+1, 1), small...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		for e, err := range BundleEntries("f", b) {
			if err == nil && e.Packing == "" && len(e.Data) > 0 && !bytes.Equal(b[e.Offset:][:len(e.Data)], e.Data) {
				t.Errorf("%s at %#x", e.Name, e.Offset)
			}
			if err == nil && e.Index != n {
				t.Errorf("index %d of entry %d", e.Index, n)
			}
			if err == nil {
				n++
			}
		}
		o, err := New("host", hostFile(b))
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range o.Nested(nil) {
			if err == nil && e.Section == ".hip_fatbin" {
				n--
			}
		}
		if n != 0 {
			t.Errorf("%d entries more alone than in a host", n)
		}
	})
}
