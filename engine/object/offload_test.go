// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// A testImage is an image of an offload binary.
type testImage struct {
	image, kind  uint16
	flags        uint32
	triple, arch string
	data         []byte
}

// testOffload is an offload binary as LLVM writes its versions: 1 has one image, 3 may be
// compressed by pack.
func testOffload(version int, pack func([]byte) []byte, images ...testImage) []byte {
	le := binary.LittleEndian
	head, width := offloadHeader, 24
	switch version {
	case 1:
		width = 16
	case 3:
		head += 8
	}
	texts := bytes.NewBuffer([]byte{0})
	textsAt := head + len(images)*(offloadEntry+2*width)
	add := func(s string) uint64 {
		at := textsAt + texts.Len()
		texts.WriteString(s + "\x00")
		return uint64(at)
	}
	var entries, pairs, data []byte
	for _, x := range images {
		for _, s := range [][2]string{{"triple", x.triple}, {"arch", x.arch}} {
			pairs = le.AppendUint64(le.AppendUint64(pairs, add(s[0])), add(s[1]))
			if version > 1 {
				pairs = le.AppendUint64(pairs, uint64(len(s[1])))
			}
		}
	}
	imageAt := (textsAt + texts.Len() + 7) &^ 7
	for i, x := range images {
		entries = le.AppendUint32(le.AppendUint16(le.AppendUint16(entries, x.image), x.kind), x.flags)
		for _, n := range []int{head + len(images)*offloadEntry + i*2*width, 2, imageAt + len(data), len(x.data)} {
			entries = le.AppendUint64(entries, uint64(n))
		}
		data = append(data, x.data...)
	}
	body := append(append(entries, pairs...), texts.Bytes()...)
	body = append(append(body, make([]byte, imageAt-head-len(body))...), data...)
	body = append(body, make([]byte, -(head+len(body))&7)...)
	whole := 0
	if pack != nil {
		whole = head + len(body)
		body = pack(body)
	}
	b := le.AppendUint32([]byte(offloadMagic), uint32(version))
	count := len(images)
	if version == 1 {
		count = offloadEntry
	}
	for _, n := range []int{head + len(body), head, count, whole}[:(head-8)/8] {
		b = le.AppendUint64(b, uint64(n))
	}
	return append(b, body...)
}

func listed(list func(func(Nested, error) bool)) (entries, problems []string) {
	list(func(n Nested, err error) bool {
		if err != nil {
			problems = append(problems, err.Error())
			return true
		}
		text := fmt.Sprintf("%d %s", n.Index, n.Name)
		for _, s := range []string{n.Image, n.Member, n.Section, n.Packing} {
			if s != "" {
				text += " " + s
			}
		}
		entries = append(entries, fmt.Sprintf("%s %q", text, n.Data[:min(len(n.Data), 4)]))
		return true
	})
	return entries, problems
}

// zstdOf is packZSTD without options.
func zstdOf(b []byte) []byte { return packZSTD(b) }

// TestOffloadBinaries reads each version, packed or not, in a file of its own and in a section.
func TestOffloadBinaries(t *testing.T) {
	device := testFile{machine: 224}.bytes()
	amd := testImage{1, 4, 0, "amdgcn-amd-amdhsa", "gfx90a:xnack-", device}
	omp := testImage{1, 1, 0, "amdgcn-amd-amdhsa-llvm", "gfx1030", device}
	spirv := testImage{6, 8, 0, "spirv64-unknown-unknown", "", []byte("\x03\x02\x23\x07spirv")}
	bundle := testImage{4, 4, 0, "amdgcn-amd-amdhsa", "", testBundle(bundleEntry{name: "hipv4-amdgcn-amd-amdhsa--gfx906", data: device})}
	odd := testImage{9, 16, 0, "nvptx64-nvidia-cuda", "sm_90", []byte("odd")}
	none := testImage{1, 1, 1, "amdgcn-amd-amdhsa", "gfx942", nil}
	want := []string{
		`0 hip-amdgcn-amd-amdhsa--gfx90a:xnack-%s "\x7fELF"`, `1 openmp-amdgcn-amd-amdhsa-llvm-gfx1030%s "\x7fELF"`,
		`2 sycl-spirv64-unknown-unknown-- spirv%s "\x03\x02#\a"`, `3 hipv4-amdgcn-amd-amdhsa--gfx906%s "\x7fELF"`,
		`4 kind16-nvptx64-nvidia-cuda--sm_90 kind 9%s "odd"`, `5 openmp-amdgcn-amd-amdhsa--gfx942 metadata%s ""`,
	}
	all := []testImage{amd, omp, spirv, bundle, odd, none}
	var ones []byte
	for _, x := range all {
		ones = append(ones, testOffload(1, nil, x)...)
	}
	for name, c := range map[string]struct {
		data    []byte
		packing string
	}{
		"version 1": {ones, ""}, "version 2": {testOffload(2, nil, all...), ""}, "version 3": {testOffload(3, nil, all...), ""},
		"zstd": {testOffload(3, zstdOf, all...), " zstd"}, "zlib": {testOffload(3, packZLIB, all...), " zlib"},
		"two": {append(testOffload(2, nil, amd, omp, spirv), testOffload(3, nil, bundle, odd, none)...), ""},
	} {
		entries, problems := listed(BundleEntries("f", c.data))
		var expected []string
		for _, w := range want {
			expected = append(expected, fmt.Sprintf(w, c.packing))
		}
		if diff := cmp.Diff(expected, entries); diff != "" || len(problems) > 0 {
			t.Errorf("%s: problems %q, (-want +got)\n%s", name, problems, diff)
		}
		for n, err := range BundleEntries("f", c.data) {
			if err == nil && n.Packing == "" && c.packing == "" && !bytes.Equal(c.data[n.Offset:][:len(n.Data)], n.Data) {
				t.Errorf("%s: %s is not at %#x", name, n.Name, n.Offset)
			}
		}
		for _, s := range []testSection{{name: ".llvm.offloading"}, {name: "other", typ: offloadType}, {name: ".llvm.offloading.x"}} {
			if s.typ == 0 {
				s.typ = elf.SHT_PROGBITS
			}
			s.data = c.data
			path := filepath.Join(t.TempDir(), "host")
			if err := os.WriteFile(path, testFile{sections: []testSection{s}}.bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, entry := range []string{"#gfx1030", "#3", "#hipv4-amdgcn-amd-amdhsa--gfx906", "#gfx90a:xnack-"} {
				o, err := OpenNested(path+entry, nil)
				if err != nil || o.Machine() != 224 {
					t.Errorf("%s in %s: %v", name, s.name, err)
					continue
				}
				o.Close()
			}
			for entry, problem := range map[string]string{"#2": "but spirv", "#5": "has no bytes", "#gfx9": ErrNoNested.Error()} {
				if _, err := OpenNested(path+entry, nil); err == nil || !strings.Contains(err.Error(), problem) {
					t.Errorf("%s%s: %v, expected %q", name, entry, err, problem)
				}
			}
		}
	}
}

// TestDamagedOffloadBinaries says what of a binary cannot be read, and reads the next one.
func TestDamagedOffloadBinaries(t *testing.T) {
	x := testImage{1, 4, 0, "amdgcn-amd-amdhsa", "gfx90a", []byte("one!")}
	le := binary.LittleEndian
	for _, c := range []struct {
		what    string
		version int
		change  func(b []byte) []byte
		want    string
		entries int
	}{
		{"nothing", 2, func(b []byte) []byte { return b }, "", 2},
		{"another version", 2, func(b []byte) []byte { b[4] = 4; return b }, "offload binary at offset 0x0: version 4, expected 1 to 3", 1},
		{"too large", 2, func(b []byte) []byte { b[13] = 1; return b }, "bytes, expected 32 to", 1},
		{"many entries", 2, func(b []byte) []byte { b[28] = 1; return b }, "4294967297 entries, expected at most", 1},
		{"entries behind the end", 2, func(b []byte) []byte { le.PutUint64(b[16:], 1<<63); return b }, "entry 0 at 0x8000000000000000 is not in", 1},
		{"strings behind the end", 2, func(b []byte) []byte { le.PutUint64(b[32+8:], 1<<63); return b }, "string 0 at 0x8000000000000000 is not in", 1},
		{"strings that wrap", 1, func(b []byte) []byte { le.PutUint64(b[32+8:], 1<<64-8); return b }, "string 0 at", 1},
		{"many strings", 2, func(b []byte) []byte { le.PutUint64(b[32+16:], 1<<40); return b }, "1099511627776 strings, expected at most", 1},
		{"an image behind the end", 2, func(b []byte) []byte { le.PutUint64(b[32+32:], 1<<40); return b }, "size 0x10000000000 is not in", 1},
		{"a value behind the end", 2, func(b []byte) []byte { le.PutUint64(b[32+40+16:], 1<<40); return b }, "expected a key and a value", 1},
		{"what cannot be unpacked", 3, func(b []byte) []byte { le.PutUint64(b[32:], 4096); return b }, "zlib", 1},
		{"what unpacks to too much", 3, func(b []byte) []byte { le.PutUint64(b[32:], 1<<60); return b }, "at most", 1},
		{"what unpacks to less than its header", 3, func(b []byte) []byte { le.PutUint64(b[32:], 8); return b }, "unpacks to 8", 1},
	} {
		b := append(c.change(testOffload(c.version, nil, x)), testOffload(2, nil, x)...)
		entries, problems := listed(BundleEntries("f", b))
		if got := strings.Join(problems, "\n"); len(entries) != c.entries || (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d entries, problems %q, expected %d and %q", c.what, len(entries), got, c.entries, c.want)
		}
	}
}

// TestOffloadBinariesOfTheirMaker reads what LLVM's tool writes.
func TestOffloadBinariesOfTheirMaker(t *testing.T) {
	dir := t.TempDir()
	device, out := filepath.Join(dir, "device"), filepath.Join(dir, "out")
	if err := os.WriteFile(device, testFile{machine: 224}.bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "llvm-offload-binary-22", "-o", out,
		"--image=file="+device+",triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=openmp", "--image=file="+device+",triple=amdgcn-amd-amdhsa,arch=gfx1030,kind=hip")
	for _, entry := range []string{"#gfx90a", "#gfx1030", "#openmp-amdgcn-amd-amdhsa--gfx90a"} {
		o, err := OpenNested(out+entry, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Close()
	}
}

// testArchive is an archive of members. A thin one has their names alone.
func testArchive(isThin bool, members ...[2]string) []byte {
	var long, body []byte
	header := func(name string, size int) []byte {
		return fmt.Appendf(nil, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, 0, 0, 0, "644", size)
	}
	for i, m := range members {
		name := m[0] + "/"
		switch {
		case isThin || i%3 == 1:
			name = fmt.Sprintf("/%d", len(long))
			long = append(long, m[0]+"/\n"...)
		case i%3 == 2:
			name, m[1] = fmt.Sprintf("#1/%d", len(m[0])+1), m[0]+"\x00"+m[1]
		}
		body = append(body, header(name, len(m[1]))...)
		if !isThin {
			body = append(body, m[1]+strings.Repeat("\n", len(m[1])%2)...)
		}
	}
	b := append([]byte(archiveMagic), append(header("/", 3), "sym\n"...)...)
	if isThin {
		copy(b, thinMagic)
	}
	b = append(b, append(header("//", len(long)), long...)...)
	return append(append(b, make([]byte, len(long)%2)...), body...)
}

// TestArchives finds the code objects in the members of archives.
func TestArchives(t *testing.T) {
	device := string(testFile{machine: 224}.bytes())
	host := testFile{sections: []testSection{{name: ".text", typ: elf.SHT_PROGBITS, data: []byte("code")}}}.bytes()
	fat := hostFile(testBundle(bundleEntry{name: "hipv4-amdgcn-amd-amdhsa--gfx90a", data: []byte(device)}))
	rdc := testFile{sections: []testSection{{name: ".llvm.offloading", typ: offloadType, data: testOffload(2, nil,
		testImage{1, 4, 0, "amdgcn-amd-amdhsa", "gfx90a", []byte(device)}, testImage{1, 4, 0, "amdgcn-amd-amdhsa", "gfx1100", []byte(device)})}}}.bytes()
	members := [][2]string{{"plain.o", string(host)}, {"fat.o", string(fat)}, {"rdc.o", string(rdc)}, {"device.o", device}, {"text", "no object"}, {"odd", "odd"}}
	want := []string{
		`0 hipv4-amdgcn-amd-amdhsa--gfx90a fat.o .hip_fatbin "\x7fELF"`, `1 hip-amdgcn-amd-amdhsa--gfx906 fat.o __CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx906 "link"`,
		`2 hip-amdgcn-amd-amdhsa--gfx90a rdc.o .llvm.offloading "\x7fELF"`, `3 hip-amdgcn-amd-amdhsa--gfx1100 rdc.o .llvm.offloading "\x7fELF"`,
		`4 device.o device.o "\x7fELF"`,
	}
	dir := t.TempDir()
	for _, m := range members {
		if err := os.WriteFile(filepath.Join(dir, m[0]), []byte(m[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, isThin := range []bool{false, true} {
		path := filepath.Join(dir, fmt.Sprintf("lib%v.a", isThin))
		data := testArchive(isThin, members...)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		list, ok := NestedIn(path, data, nil)
		if !ok {
			t.Fatal("no archive")
		}
		entries, problems := listed(list)
		if diff := cmp.Diff(want, entries); diff != "" || len(problems) > 0 {
			t.Errorf("thin %v: problems %q, (-want +got)\n%s", isThin, problems, diff)
		}
		for n := range list {
			if !isThin && !bytes.Equal(data[n.Offset:][:len(n.Data)], n.Data) || isThin != (n.File != "") {
				t.Errorf("%s is not at %#x, or in %q", n.Name, n.Offset, n.File)
			}
		}
		for name, problem := range map[string]string{
			"#gfx1100": "", "#4": "", "#device.o": "", "#fat.o:gfx90a": "", "#rdc.o:hip-amdgcn-amd-amdhsa--gfx90a": "",
			"#gfx90a": "2 code objects have that name; name one by its index: 0 (fat.o:hipv4-amdgcn-amd-amdhsa--gfx90a), 2 (rdc.o:", "#plain.o": ErrNoNested.Error(),
			"": "a file that holds code objects: name a code object in it",
		} {
			o, err := OpenNested(path+name, nil)
			if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
				t.Errorf("thin %v, %s: %v, expected %q", isThin, name, err, problem)
			}
			if err == nil {
				if o.Machine() != 224 {
					t.Errorf("thin %v, %s: machine %d", isThin, name, o.Machine())
				}
				o.Close()
			}
		}
		// What was sent by others opens no file of this machine.
		o, err := NewNestedWith(path+"#gfx1100", data, nil)
		if (err == nil) != !isThin || isThin && !strings.Contains(err.Error(), "a file of its own") {
			t.Errorf("thin %v: %v", isThin, err)
		}
		if err == nil {
			o.Close()
		}
	}
	plain := filepath.Join(dir, "plain.a")
	if err := os.WriteFile(plain, testArchive(false, members[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenNested(plain, nil); !errors.Is(err, ErrNotELF) || !strings.Contains(err.Error(), "an archive without code of accelerators") {
		t.Error(err)
	}
}

// TestSectionsOfDevicesThatAreNotRead are said, and those of Intel's programs are listed.
func TestSectionsOfDevicesThatAreNotRead(t *testing.T) {
	section := func(name, data string) testSection {
		return testSection{name: name, typ: elf.SHT_PROGBITS, data: []byte(data)}
	}
	o, err := New("f", testFile{sections: []testSection{
		section(".gnu.offload_lto_.opts", "GCC!"), section("Intel(R) OpenCL Device Debug", "BOX of a kernel"),
		section("SPIRV Object", "\x03\x02\x23\x07"), section("Intel(R) OpenCL Device Binary", "CTNI"), section(".text", "code"),
	}}.bytes())
	if err != nil {
		t.Fatal(err)
	}
	entries, problems := listed(o.Nested(boxes{ranges: []Range{{"kernel", 4, 4}}}))
	want := []string{`0 kernel Intel(R) OpenCL Device Debug "of a"`, `1 spirv spirv SPIRV Object "\x03\x02#\a"`}
	if diff := cmp.Diff(want, entries); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := strings.Join(problems, "\n"); len(problems) != 2 || !strings.Contains(got, "section .gnu.offload_lto_.opts (1): 4 bytes at offset 0x40, GCC's") ||
		!strings.Contains(got, "Device Binary (4): 4 bytes") {
		t.Errorf("problems %q", problems)
	}
	if _, problems = listed(o.Nested(nil)); len(problems) != 3 || !strings.Contains(strings.Join(problems, "\n"), "debug information of kernels at offset 0x48: no format") {
		t.Errorf("problems %q", problems)
	}
}

// FuzzOffload reads any bytes as offload binaries and as archives.
func FuzzOffload(f *testing.F) {
	x := testImage{1, 4, 0, "amdgcn-amd-amdhsa", "gfx90a", []byte("one!")}
	fat := testImage{4, 4, 0, "amdgcn-amd-amdhsa", "", testBundle(bundleEntry{name: "hip-a", data: []byte("object")})}
	for version := 1; version <= 3; version++ {
		f.Add(testOffload(version, nil, x))
	}
	f.Add(testOffload(3, zstdOf, x, fat))
	f.Add(testArchive(false, [2]string{"a.o", string(testOffload(2, nil, x, fat))}, [2]string{"b.o", string(hostFile(nil))}, [2]string{"c", "CCOB"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, ok := nestedIn("f", b, nil, "")
		if !ok {
			return
		}
		n := 0
		for e, err := range list {
			if err != nil {
				continue
			}
			if e.Packing == "" && e.Image != "metadata" && len(e.Data) > 0 && !bytes.Equal(b[e.Offset:][:len(e.Data)], e.Data) {
				t.Errorf("%s is not at %#x", e.Name, e.Offset)
			}
			if e.Index != n {
				t.Errorf("index %d of entry %d", e.Index, n)
			}
			n++
		}
	})
}
