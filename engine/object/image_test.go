// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ulikunitz/xz"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestFilesWithoutSectionHeadersAreRead takes the section headers off a file
// and compares with what they said.
func TestFilesWithoutSectionHeadersAreRead(t *testing.T) {
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-Wl,--hash-style=gnu"},
		{"-shared", "-fPIC", "-Wl,--hash-style=sysv"},
		{"-shared", "-fPIC", "-Wl,--hash-style=both"},
		{"-pie", "-fPIE", "-rdynamic"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			path := compile(t, args...)
			with := mustOpen(t, path)
			without := mustNew(t, sectionless(read(t, path)))
			if len(without.Sections()) != 0 || len(without.Problems()) != 0 {
				t.Fatalf("%d sections, problems %q", len(without.Sections()), without.Problems())
			}
			all, err := with.Symbols()
			if err != nil {
				t.Fatal(err)
			}
			var want []Symbol
			for _, s := range all {
				if s.Dynamic {
					want = append(want, s)
				}
			}
			got, err := without.Symbols()
			if diff := cmp.Diff(want, got); diff != "" || err != nil || len(got) < 3 {
				t.Errorf("symbols (-want +got):\n%s%v", diff, err)
			}
			for _, call := range []struct {
				name   string
				get    func(*Object) ([]byte, uint64, bool)
				longer bool
			}{
				{"EHFrameHeader", (*Object).EHFrameHeader, false},
				{"EHFrames", firstEHFrame, true},
			} {
				want, wantAddress, ok := call.get(with)
				if !ok || len(want) == 0 {
					t.Fatalf("%s: none in the whole file", call.name)
				}
				got, address, ok := call.get(without)
				if !ok || address != wantAddress || !bytes.HasPrefix(got, want) || (!call.longer && len(got) != len(want)) {
					t.Errorf("%s: %d bytes at %#x, %v, expected %d at %#x", call.name, len(got), address, ok, len(want), wantAddress)
				}
			}
		})
	}
}

// firstEHFrame is the .eh_frame of an object that has one.
func firstEHFrame(o *Object) (data []byte, address uint64, ok bool) {
	list := o.EHFrames()
	if len(list) == 0 || list[0].Err != nil {
		return nil, 0, false
	}
	return list[0].Data, list[0].Address, true
}

func TestEHFramesAreThoseThatAreLoaded(t *testing.T) {
	alloc := elf.SHF_ALLOC
	section := func(name string, flags elf.SectionFlag, address uint64) testSection {
		return testSection{name: name, typ: elf.SHT_PROGBITS, flags: flags, address: address, data: []byte{1, 2, 3, 4}}
	}
	// eh_frame_ptr: absolute, 8 bytes, 0x3000.
	header := testSection{name: ".eh_frame_hdr", typ: elf.SHT_PROGBITS, flags: alloc, address: 0x1000,
		data: []byte{1, 0x04, 0xff, 0xff, 0, 0x30, 0, 0, 0, 0, 0, 0}}
	unreadable := section(".eh_frame", alloc, 0x2000)
	unreadable.data, unreadable.size, unreadable.offset = nil, 1<<40, 64
	empty := testSection{name: ".eh_frame", typ: elf.SHT_NOBITS, flags: alloc, address: 0x2000, size: 16}
	tests := []struct {
		name     string
		typ      elf.Type
		sections []testSection
		want     []uint64 // addresses
		err      string   // of the first
	}{
		{"one", elf.ET_DYN, []testSection{section(".eh_frame", alloc, 0x2000)}, []uint64{0x2000}, ""},
		{"none", elf.ET_DYN, []testSection{section(".text", alloc, 0x2000)}, nil, ""},
		{"that of a rewritten file", elf.ET_DYN, []testSection{section(".bolt.org.eh_frame", alloc, 0x2000), header, section(".eh_frame", alloc, 0x3000)}, []uint64{0x3000}, ""},
		{"not the one that is not loaded", elf.ET_DYN, []testSection{section(".eh_frame", 0, 0), section(".eh_frame", alloc, 0x2000)}, []uint64{0x2000}, ""},
		{"the one of the header first", elf.ET_DYN, []testSection{section(".eh_frame", alloc, 0x2000), header, section(".eh_frame", alloc, 0x3000)}, []uint64{0x3000, 0x2000}, ""},
		{"all in section groups", elf.ET_REL, []testSection{section(".eh_frame", alloc, 0), section(".eh_frame", alloc, 0)}, []uint64{0, 0}, ""},
		{"without bytes none", elf.ET_DYN, []testSection{empty}, nil, ""},
		{"that cannot be read is told", elf.ET_DYN, []testSection{unreadable}, []uint64{0x2000}, "is not in the"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			list := mustNew(t, testFile{typ: test.typ, sections: test.sections}.bytes()).EHFrames()
			var got []uint64
			for _, f := range list {
				got = append(got, f.Address)
				if f.Section == nil || f.Open || test.err == "" && (f.Err != nil || len(f.Data) != 4) {
					t.Errorf("%+v", f)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
			if test.err != "" && len(list) > 0 {
				wantError(t, list[0].Err, nil, test.err)
			}
		})
	}
}

func TestEHFramePointerIsReadInItsEncodings(t *testing.T) {
	tests := []struct {
		encoding byte
		pointer  []byte
		want     uint64 // 0: none
	}{
		{0x1b, []byte{0xfc, 0x0f, 0, 0}, 0x2000},             // pcrel, sdata4
		{0x1a, []byte{0xfc, 0x0f}, 0x2000},                   // pcrel, sdata2
		{0x1c, []byte{0xfc, 0x0f, 0, 0, 0, 0, 0, 0}, 0x2000}, // pcrel, sdata8
		{0x3b, []byte{0, 0x10, 0, 0}, 0x2000},                // datarel, sdata4
		{0x3b, []byte{0xff, 0xff, 0xff, 0xff}, 0},            // datarel, -1: in no segment
		{0x03, []byte{0, 0x20, 0, 0}, 0x2000},                // absolute, udata4
		{0x02, []byte{0, 0x20}, 0x2000},
		{0x04, []byte{0, 0x20, 0, 0, 0, 0, 0, 0}, 0x2000},
		{0x00, []byte{0, 0x20, 0, 0, 0, 0, 0, 0}, 0x2000},
		{0x9b, []byte{0xfc, 0x0f, 0, 0}, 0}, // indirect
		{0x2b, []byte{0xfc, 0x0f, 0, 0}, 0}, // textrel
		{0x01, []byte{0, 0x40}, 0},          // uleb128
		{0xff, nil, 0},                      // omit
		{0x1b, []byte{0xfc, 0x0f}, 0},       // cut
	}
	for _, test := range tests {
		header := append([]byte{1, test.encoding, 3, 0x3b}, test.pointer...)
		f := testFile{programs: []Program{
			{Type: elf.PT_LOAD, Address: 0x1000, MemSize: 0x1008, FileSize: 0x1008},
			{Type: elf.PT_GNU_EH_FRAME, Address: 0x1000, FileSize: uint64(len(header))},
		}}
		start := uint64(len(f.bytes()))
		f.programs[0].Offset, f.programs[1].Offset = start, start
		b := append(f.bytes(), header...)
		b = append(b, make([]byte, int(start)+0x1000-len(b))...)
		b = append(b, "eh_frame"...)
		data, address, ok := firstEHFrame(mustNew(t, b))
		if ok != (test.want != 0) || (ok && (address != test.want || string(data) != "eh_frame")) {
			t.Errorf("encoding %#x: %q at %#x, %v, expected %#x", test.encoding, data, address, ok, test.want)
		}
	}
}

// TestVDSOIsReadFromMemory reads the vDSO of this process.
func TestVDSOIsReadFromMemory(t *testing.T) {
	b := vdso(t)
	for _, form := range []struct {
		name string
		b    []byte
	}{{"whole", b}, {"without section headers", sectionless(bytes.Clone(b))}} {
		t.Run(form.name, func(t *testing.T) {
			o := mustNew(t, form.b)
			if len(o.Problems()) != 0 || len(o.BuildID()) == 0 {
				t.Errorf("problems %q, build ID %x", o.Problems(), o.BuildID())
			}
			symbols, err := o.Symbols()
			if err != nil || !slices.ContainsFunc(symbols, func(s Symbol) bool {
				return strings.HasSuffix(s.Name, "clock_gettime") && s.Address != 0 && s.Defined()
			}) {
				t.Errorf("no clock_gettime in %v, %v", symbols, err)
			}
			if _, _, ok := o.EHFrameHeader(); !ok {
				t.Error("no .eh_frame_hdr")
			}
			if _, _, ok := firstEHFrame(o); !ok {
				t.Error("no .eh_frame")
			}
		})
	}
}

func vdso(t *testing.T) []byte {
	maps := string(read(t, "/proc/self/maps"))
	for _, line := range strings.Split(maps, "\n") {
		var start, end uint64
		if !strings.HasSuffix(line, "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			t.Fatal(err)
		}
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			t.Fatal(err)
		}
		defer mem.Close()
		b := make([]byte, end-start)
		if _, err := mem.ReadAt(b, int64(start)); err != nil {
			t.Fatal(err)
		}
		return b
	}
	t.Skip("this process has no vDSO")
	return nil
}

// TestFirstPageOfAFileGivesTheBuildID is what a core has of a mapped file.
func TestFirstPageOfAFileGivesTheBuildID(t *testing.T) {
	path := compile(t, "-Wl,--build-id=sha1")
	want := mustOpen(t, path).BuildID()
	o := mustNew(t, read(t, path)[:4096])
	if got := o.BuildID(); len(got) != 20 || !bytes.Equal(got, want) {
		t.Errorf("build ID %x, expected %x", got, want)
	}
	if len(o.Problems()) != 1 {
		t.Errorf("problems %q, expected the lost section headers", o.Problems())
	}
}

func TestSegmentForMapping(t *testing.T) {
	// As lld lays out: adjacent segments share a page of the file.
	lld := []Program{
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Offset: 0, Address: 0x200000, FileSize: 0x1234, MemSize: 0x1234},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Offset: 0x1240, Address: 0x202240, FileSize: 0x500, MemSize: 0x500},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_W, Offset: 0x1740, Address: 0x203740, FileSize: 0x400, MemSize: 0x400},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_W, Offset: 0x1b40, Address: 0x204b40, FileSize: 0, MemSize: 0x4000},
	}
	single := []Program{{Type: elf.PT_LOAD, Flags: elf.PF_R, Offset: 0, Address: 0x1000, FileSize: 0x3000, MemSize: 0x3000}}
	hostile := []Program{{Type: elf.PT_LOAD, Flags: elf.PF_X, Offset: ^uint64(0) - 5, Address: 0x9000, FileSize: ^uint64(0)}}
	tests := []struct {
		name         string
		programs     []Program
		offset, size uint64
		executable   bool
		want         uint64 // address of the segment; 0: none
	}{
		{"read-only", lld, 0, 0x2000, false, 0x200000},
		{"code in a shared page", lld, 0x1000, 0x1000, true, 0x202240},
		{"data in a shared page", lld, 0x1000, 0x1000, false, 0x203740},
		{"past the file", lld, 0x2000, 0x1000, true, 0},
		{"nothing", lld, 0x1000, 0, true, 0},
		{"code where no segment is code", single, 0x1000, 0x1000, true, 0x1000},
		{"at the end of all offsets", hostile, ^uint64(0) - 0xfff, 0x1000, true, 0x9000},
		{"no segments", nil, 0, 0x1000, true, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, ok := mustNew(t, testFile{programs: test.programs}.bytes()).SegmentForMapping(test.offset, test.size, test.executable)
			if ok != (test.want != 0) || s.Address != test.want {
				t.Errorf("segment at %#x, %v, expected %#x", s.Address, ok, test.want)
			}
		})
	}
}

// TestSegmentsOfThisProcessAreFound compares every mapping of this process with
// its segments: for executable ones the bytes in memory are those of the file.
func TestSegmentsOfThisProcessAreFound(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := mustOpen(t, self)
	found := 0
	for _, line := range strings.Split(string(read(t, "/proc/self/maps")), "\n") {
		var start, end, offset uint64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s %x", &start, &end, &rights, &offset); err != nil || !strings.HasSuffix(line, self) || rights != "r-xp" {
			continue
		}
		s, ok := o.SegmentForMapping(offset, end-start, true)
		if !ok || !s.Executable() {
			t.Fatalf("no segment for %s", line)
		}
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			t.Fatal(err)
		}
		defer mem.Close()
		want, got := make([]byte, 4096), make([]byte, 4096)
		for address := s.Address; address < s.Address+s.FileSize-4096; address += 64 << 10 {
			if _, err := mem.ReadAt(want, int64(start+address-(s.Address+offset-s.Offset))); err != nil {
				t.Fatal(err)
			}
			if n, err := o.ReadAddress(got, address); n != 4096 || err != nil || !bytes.Equal(got, want) {
				t.Fatalf("address %#x: %d, %v", address, n, err)
			}
			found++
		}
	}
	if found < 5 {
		t.Errorf("%d pages compared", found)
	}
}

func TestReadAddress(t *testing.T) {
	f := testFile{programs: []Program{
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Address: 0x3000, FileSize: 4, MemSize: 8}, // not in the order of addresses
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Address: 0x1000, FileSize: 8, MemSize: 8},
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Address: 0x1008, FileSize: 4, MemSize: 4},
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Address: 0x5000, FileSize: 100, MemSize: 100}, // reaches past the file
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Address: 0x6000, FileSize: 8, MemSize: 4},     // more in the file than in memory
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Address: ^uint64(0) - 3, FileSize: 4, MemSize: 100},
	}}
	start := uint64(len(f.bytes()))
	for i, offset := range []uint64{16, 0, 8, 12, 0, 0} {
		f.programs[i].Offset = start + offset
	}
	o := mustNew(t, append(f.bytes(), "abcdefghijklmnopqrst"...))
	tests := []struct {
		address uint64
		size    int
		want    string
		is      error
		says    string
	}{
		{0x1000, 8, "abcdefgh", nil, ""},
		{0x1004, 8, "efghijkl", nil, ""}, // two segments
		{0x1004, 9, "efghijkl", ErrNoAddress, "address 0x100c: address is not in the object"},
		{0x3000, 8, "qrst\x00\x00\x00\x00", nil, ""},
		{0x3000, 9, "qrst\x00\x00\x00\x00", ErrNoAddress, "0x3008"},
		{0x3006, 2, "\x00\x00", nil, ""},
		{0x5000, 9, "mnopqrst", nil, "past the"},
		{0x5050, 1, "", nil, "past the"},
		{0x6000, 5, "abcd", ErrNoAddress, "0x6004"},
		{0xfff, 2, "", ErrNoAddress, "0xfff"},
		{0, 1, "", ErrNoAddress, ""},
		{^uint64(0) - 3, 5, "abcd", ErrNoAddress, ""},
		{0x1000, 0, "", nil, ""},
	}
	for _, test := range tests {
		buf := make([]byte, test.size)
		n, err := o.ReadAddress(buf, test.address)
		if string(buf[:n]) != test.want {
			t.Errorf("address %#x: %q, expected %q", test.address, buf[:n], test.want)
		}
		if n == test.size && err == nil {
			continue
		}
		wantError(t, err, test.is, test.says)
	}
}

func TestADebugFileHasNoCode(t *testing.T) {
	path := compile(t)
	debug := path + ".debug"
	oracle.Run(t, "objcopy", "--only-keep-debug", path, debug)
	o, d := mustOpen(t, path), mustOpen(t, debug)
	if o.DebugOnly() || !d.DebugOnly() {
		t.Errorf("debug only: %v and %v, expected false and true", o.DebugOnly(), d.DebugOnly())
	}
	if !bytes.Equal(o.BuildID(), d.BuildID()) || d.BuildID() == nil {
		t.Errorf("build IDs %x and %x", o.BuildID(), d.BuildID())
	}
	_, err := d.ReadAddress(make([]byte, 1), d.Entry())
	wantError(t, err, ErrNoData, "debug information only")
	if _, _, ok := firstEHFrame(d); ok {
		t.Error("there is .eh_frame in the debug file")
	}
	if _, _, ok := d.EHFrameHeader(); ok {
		t.Error("there is .eh_frame_hdr in the debug file")
	}
	if mustOpen(t, compile(t, "-c")).DebugOnly() {
		t.Error("a relocatable object is taken for a debug file")
	}
}

func packXZ(t testing.TB, b []byte, config xz.WriterConfig) []byte {
	var out bytes.Buffer
	w, err := config.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func withMiniDebug(packed []byte) []byte {
	return testFile{sections: []testSection{{name: ".gnu_debugdata", typ: elf.SHT_PROGBITS, data: packed}}}.bytes()
}

func TestMiniDebugInfoIsUnpacked(t *testing.T) {
	inner := testFile{sections: []testSection{
		{name: ".symtab", typ: elf.SHT_SYMTAB, link: 2, data: append(make([]byte, 24), []byte{
			1, 0, 0, 0, 2, 0, 1, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0}...)},
		{name: ".strtab", typ: elf.SHT_STRTAB, data: []byte("\x00helper\x00")},
		{name: ".debug_str", typ: elf.SHT_PROGBITS, data: text(300000)},
	}}.bytes()
	check := func(t *testing.T, packed []byte) {
		o := mustNew(t, withMiniDebug(packed))
		mini, err := o.MiniDebug()
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := mini.Symbols()
		want := []Symbol{{Name: "helper", Address: 0x40, Size: 0x10, Section: 1, Type: elf.STT_FUNC}}
		if diff := cmp.Diff(want, symbols); diff != "" || err != nil {
			t.Errorf("symbols (-want +got):\n%s%v", diff, err)
		}
		if again, _ := o.MiniDebug(); again != mini {
			t.Error("unpacked a second time")
		}
		if mini.Name() != "test(.gnu_debugdata)" || mini.Path() != "" {
			t.Errorf("name %q, path %q", mini.Name(), mini.Path())
		}
	}
	for _, sum := range []byte{xz.CRC32, xz.CRC64, xz.SHA256} {
		t.Run(fmt.Sprintf("check %d", sum), func(t *testing.T) { check(t, packXZ(t, inner, xz.WriterConfig{CheckSum: sum})) })
	}
	t.Run("several blocks", func(t *testing.T) { check(t, packXZ(t, inner, xz.WriterConfig{BlockSize: 50000})) })
	t.Run("no check", func(t *testing.T) { check(t, packXZ(t, inner, xz.WriterConfig{NoCheckSum: true})) })
	for _, args := range [][]string{{"-9"}, {"-0", "-T2", "--block-size=70000"}, {"--check=none"}} {
		t.Run("xz "+strings.Join(args, " "), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "inner")
			write(t, path, inner)
			check(t, []byte(oracle.Run(t, "xz", append(args, "-c", path)...)))
		})
	}
}

func TestBadMiniDebugInfoIsAnError(t *testing.T) {
	_, err := mustNew(t, testFile{}.bytes()).MiniDebug()
	wantError(t, err, ErrNoSection, "test: .gnu_debugdata")

	good := packXZ(t, text(100000), xz.WriterConfig{})
	change := func(at int, v byte) []byte { b := bytes.Clone(good); b[at] = v; return b }
	property := bytes.Index(good, []byte{0x21, 1}) + 2
	tests := []struct {
		name   string
		packed []byte
		is     error
		says   string
	}{
		{"no stream", []byte("garbage"), nil, "expected an xz stream"},
		{"empty", nil, nil, "expected an xz stream"},
		{"header only", good[:12], nil, "cut before its index"},
		{"block header cut", good[:14], nil, "block header cut"},
		{"data cut", good[:1000], nil, "LZMA2 data cut"},
		{"index cut", good[:len(good)-20], nil, "decompressing"},
		{"block header checksum", change(12+8, good[12+8]^1), nil, "decompressing"},
		{"data changed", change(len(good)/2, good[len(good)/2]^1), nil, ""},
		{"dictionary of 1 GiB", change(property, 36), ErrTooLarge, "dictionary of 1073741824 bytes, expected at most 67108864"},
		{"dictionary of no size", change(property, 41), nil, "dictionary size 41, expected at most 40"},
		{"other filter", change(property-2, 3), nil, "expected the LZMA2 filter"},
		{"no ELF file inside", good, ErrNotELF, "test(.gnu_debugdata)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := mustNew(t, withMiniDebug(test.packed)).MiniDebug()
			wantError(t, err, test.is, test.says)
		})
	}
}

func TestXZSizeIsThatOfXZ(t *testing.T) {
	for _, n := range []int{0, 1, 65535, 65536, 300007} {
		if got, err := xzSize(packXZ(t, text(n), xz.WriterConfig{})); err != nil || got != uint64(n) {
			t.Errorf("%d bytes: %d, %v", n, got, err)
		}
	}
	// Bytes that do not compress are stored.
	random, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip(err)
	}
	random = packZSTD(random[:1<<20])[:100000]
	if got, err := xzSize(packXZ(t, random, xz.WriterConfig{})); err != nil || got != uint64(len(random)) {
		t.Errorf("stored: %d, %v", got, err)
	}
}

// bigFile makes a sparse file of 1 GiB: headers at its begin, the note in its
// middle, the section headers at its end.
func bigFile(t testing.TB) (path string, size int) {
	const middle, shoff = 1 << 29, 1 << 30
	id := note(binary.LittleEndian, 4, "GNU", noteBuildID, []byte("big file"))
	b := testFile{sections: []testSection{
		{name: ".text", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, size: 1 << 28, offset: 4096},
		{name: ".note", typ: elf.SHT_NOTE, size: uint64(len(id)), offset: middle},
	}}.bytes()
	old := binary.LittleEndian.Uint64(b[40:])
	headers := bytes.Clone(b[old:])
	binary.LittleEndian.PutUint64(b[40:], shoff)
	path = filepath.Join(t.TempDir(), "big")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, part := range []struct {
		b  []byte
		at int64
	}{{b, 0}, {id, middle}, {headers, shoff}} {
		if _, err := file.WriteAt(part.b, part.at); err != nil {
			t.Fatal(err)
		}
	}
	return path, shoff + len(headers)
}

func TestLldSegmentsShareAPage(t *testing.T) {
	oracle.Tools(t, "ld.lld")
	path := compile(t, "-fuse-ld=lld")
	o := mustOpen(t, path)
	for _, s := range o.Segments() {
		if !s.Executable() {
			continue
		}
		start := s.Offset &^ 4095
		got, ok := o.SegmentForMapping(start, (s.Offset+s.FileSize-start+4095)&^4095, true)
		if !ok || got != s {
			t.Errorf("segment %+v, %v, expected %+v", got, ok, s)
		}
	}
}

// TestASparseFileOfATebibyteCostsLittle points everything at the hole of a
// file that takes no room on disk.
func TestASparseFileOfATebibyteCostsLittle(t *testing.T) {
	const size = 1 << 40
	hole := func(name string, typ elf.SectionType, link, info uint32) testSection {
		return testSection{name: name, typ: typ, offset: 1 << 20, size: size - 1<<21, link: link, info: info}
	}
	compressed := hole(".debug_str", elf.SHT_PROGBITS, 0, 0)
	compressed.flags = elf.SHF_COMPRESSED
	types := []elf.Type{elf.ET_REL, elf.ET_DYN, elf.ET_CORE}
	if testing.Short() {
		types = types[:1] // each takes seconds under the race detector
	}
	for _, typ := range types {
		bare := typ != elf.ET_REL // without section headers
		f := testFile{typ: typ, programs: []Program{
			{Type: elf.PT_LOAD, Offset: 1 << 20, Address: 0x1000, FileSize: size / 2, MemSize: size / 2},
			{Type: elf.PT_NOTE, Offset: 1 << 20, FileSize: size / 2},
			{Type: elf.PT_GNU_EH_FRAME, Offset: 1 << 20, FileSize: size / 2},
		}, sections: []testSection{
			hole(".note", elf.SHT_NOTE, 0, 0),
			hole(".symtab", elf.SHT_SYMTAB, 4, 0),
			hole(".dynsym", elf.SHT_DYNSYM, 4, 0),
			hole(".strtab", elf.SHT_STRTAB, 0, 0),
			compressed,
			hole(".debug_info", elf.SHT_PROGBITS, 0, 0),
			hole(".rela.debug_info", elf.SHT_RELA, 2, 6),
			hole(".gnu_debugdata", elf.SHT_PROGBITS, 0, 0),
			hole(".gnu_debuglink", elf.SHT_PROGBITS, 0, 0),
		}}
		b := f.bytes()
		if bare {
			b = sectionless(b)
		}
		path := filepath.Join(t.TempDir(), "sparse")
		write(t, path, b)
		if err := os.Truncate(path, size); err != nil {
			t.Skipf("no such large files here: %v", err)
		}
		o, err := Open(path)
		if err != nil {
			t.Skipf("no such large files here: %v", err)
		}
		o.SetRelocations(x86Relocations)
		for _, s := range o.Sections() {
			s.Data()
		}
		if _, err := o.Symbols(); err == nil && !bare {
			t.Error("symbols without end are no error")
		}
		n := 0
		for _, err := range o.Notes() {
			if n++; err != nil {
				wantError(t, err, nil, "more than 4194304 notes")
			}
		}
		o.BuildID()
		o.DebugLink()
		o.EHFrames()
		if _, err := o.MiniDebug(); err == nil {
			t.Error("there is MiniDebugInfo")
		}
		o.Close()
		os.Remove(path)
	}
}
