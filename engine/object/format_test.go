// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// boxes are files that begin with BOX; what is inside them is fixed.
type boxes struct {
	ranges []Range
	err    error
}

func (boxes) Recognises(head []byte) bool { return strings.HasPrefix(string(head), "BOX") }

func (b boxes) Nested(string, []byte) ([]Range, error) { return b.ranges, b.err }

func TestFormatsMakeObjectsOfFilesThatAreNoELFFiles(t *testing.T) {
	o, err := NewWith("box", []byte("BOX and more"), boxes{})
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := o.Symbols()
	if o.IsELF() || o.Name() != "box" || o.Path() != "" || string(o.Data()) != "BOX and more" || o.Machine() != 0 || o.Type() != elf.ET_NONE ||
		len(o.Sections()) > 0 || len(o.Segments()) > 0 || len(symbols) > 0 || err != nil || len(o.BuildID()) > 0 || o.DebugOnly() ||
		o.Section(".text") != nil || o.ByteOrder() == nil || len(o.Problems()) > 0 {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := o.MiniDebug(); !errors.Is(err, ErrNoSection) {
		t.Error(err)
	}
	if n, err := o.ReadAddress(make([]byte, 1), 0); n != 0 || !errors.Is(err, ErrNoAddress) {
		t.Error(n, err)
	}
	for n, err := range o.Nested(nil) {
		t.Error(n, err)
	}
	for n, err := range o.AllNotes() {
		t.Error(n, err)
	}
	for _, c := range []struct {
		data    string
		formats Formats
	}{{"BOX", nil}, {"BO", boxes{}}, {"", boxes{}}, {"\x7fBOX", boxes{}}} {
		if _, err := NewWith("box", []byte(c.data), c.formats); !errors.Is(err, ErrNotELF) {
			t.Errorf("%q: %v", c.data, err)
		}
	}
}

func TestCodeObjectsInsideAFormat(t *testing.T) {
	inner := testFile{sections: []testSection{{name: ".text", typ: elf.SHT_PROGBITS, data: []byte("code")}}}.bytes()
	data := append([]byte("BOX!"), inner...)
	whole := Range{"a", 4, uint64(len(inner))}
	dir := t.TempDir()
	path := filepath.Join(dir, "box")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path    string
		formats Formats
		want    string // of the error; "" for none
	}{
		{path + "#a", boxes{ranges: []Range{whole}}, ""},
		{path + "#0", boxes{ranges: []Range{whole}}, ""},
		{path + "#1", boxes{ranges: []Range{{"b", 0, 1}, whole}}, ""},
		{path + "#a", boxes{ranges: []Range{{"x", 5, ^uint64(0)}, whole}}, ""},
		{path + "#b", boxes{ranges: []Range{whole}}, "no such code object in the file"},
		{path + "#a", boxes{ranges: []Range{whole, whole}}, "2 code objects have that name"},
		{path + "#a", boxes{ranges: []Range{{"a", 4, 3}}}, "not an ELF file"},
		{path + "#a", boxes{ranges: []Range{{"a", 4, uint64(len(inner)) + 1}}}, "code object 0: offset 0x4"},
		{path + "#a", boxes{ranges: []Range{{"a", ^uint64(0), 2}}}, "is not in the"},
		{path + "#a", boxes{ranges: []Range{{strings.Repeat("a", maxNestedName+1), 4, 1}}}, "a name of 4097 bytes, expected at most 4096"},
		{path + "#a", boxes{ranges: make([]Range, maxNested+1)}, "262145 code objects in it, expected at most 262144"},
		{path + "#a", boxes{err: errors.New("the lid is on")}, "the lid is on"},
		{path + "#a", nil, "not an ELF file"},
		{path, boxes{ranges: []Range{whole}}, "not an ELF file, but a file that holds code objects: name a code object in it"},
		{path, boxes{}, "not an ELF file"},
		{path, boxes{err: errors.New("the lid is on")}, "the lid is on: not an ELF file"},
	} {
		o, err := OpenNested(c.path, c.formats)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, expected %q", c.path, err, c.want)
		case err == nil:
			if o.Name() != c.path || o.Path() != path || o.Section(".text") == nil {
				t.Errorf("%s: %s of %s", c.path, o.Name(), o.Path())
			}
			o.Close()
		}
		if c.path == path {
			continue
		}
		// From bytes it is the same.
		if o, err := NewNestedWith(c.path, data, c.formats); (err == nil) != (c.want == "") || err == nil && o.Section(".text") == nil {
			t.Errorf("%s from bytes: %v, expected %q", c.path, err, c.want)
		}
	}
	if _, err := NewNestedWith("box", data, boxes{}); !errors.Is(err, ErrNoNested) {
		t.Error(err)
	}
	f := Finder{Sysroot: "/", Formats: boxes{ranges: []Range{whole}}}
	for name, elf := range map[string]bool{path: false, path + "#a": true} {
		found := f.Find(name, nil, false)
		if found.Object == nil || found.Object.IsELF() != elf || found.Object.Name() != name {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		found.Object.Close()
	}
	if found := (&Finder{Sysroot: "/"}).Find(path, nil, false); found.Object != nil {
		t.Error("without formats the file is an object")
	}
}

func TestBeside(t *testing.T) {
	for _, c := range []struct {
		path, suffix, want string
		ok                 bool
	}{
		{"a/k.elf", ".dbg", "a/k.dbg", true},
		{"a.b/k", ".dbg", "a.b/k.dbg", true},
		{"k.x.elf", ".dbg", "k.x.dbg", true},
		{"k.dbg", ".dbg", "k.dbg", false},
	} {
		if got, ok := Beside(c.path, c.suffix); got != c.want || ok != c.ok {
			t.Errorf("%s, %s: %s %v", c.path, c.suffix, got, ok)
		}
	}
}

// Intel's compiler writes such a segment: it begins with the ELF header, and so
// is at the address of the code by mistake.
func TestSegmentsWithoutRightsSayNothing(t *testing.T) {
	text := testSection{name: ".text", typ: elf.SHT_PROGBITS, data: []byte("code"), flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR}
	data := testSection{name: ".data", typ: elf.SHT_PROGBITS, data: []byte("data!"), flags: elf.SHF_ALLOC | elf.SHF_WRITE, address: 0x100}
	zero := testSection{name: ".bss", typ: elf.SHT_NOBITS, flags: elf.SHF_ALLOC | elf.SHF_WRITE, address: 0x200, size: 8}
	other := testSection{name: ".debug_line", typ: elf.SHT_PROGBITS, data: []byte("lines")}
	build := func(flags elf.ProgFlag, sections ...testSection) *Object {
		f := testFile{typ: elf.ET_EXEC, programs: []Program{{Type: elf.PT_LOAD, Flags: flags, FileSize: 64, MemSize: 64}}, sections: sections}
		o, err := New("file", f.bytes())
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := build(0, text, data, zero, other)
	var flags []elf.ProgFlag
	for _, s := range o.Segments() {
		flags = append(flags, s.Flags)
	}
	if d := cmp.Diff([]elf.ProgFlag{elf.PF_R | elf.PF_X, elf.PF_R | elf.PF_W, elf.PF_R | elf.PF_W}, flags); d != "" {
		t.Error(d)
	}
	b := make([]byte, 5)
	if _, err := o.ReadAddress(b[:4], 0); err != nil || string(b[:4]) != "code" {
		t.Errorf("%q %v", b[:4], err)
	}
	if _, err := o.ReadAddress(b, 0x100); err != nil || string(b) != "data!" {
		t.Errorf("%q %v", b, err)
	}
	if _, err := o.ReadAddress(b, 0x200); err != nil || binary.LittleEndian.Uint32(b) != 0 {
		t.Errorf("%q %v", b, err)
	}
	if s := build(elf.PF_R, text).Segments(); len(s) != 1 || s[0].Flags != elf.PF_R {
		t.Errorf("a segment that may be read: %+v", s)
	}
	if s := build(0, other).Segments(); len(s) != 1 || s[0].FileSize != 64 {
		t.Errorf("nothing in its place: %+v", s)
	}
}
