// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/oracle"
)

// namesByDwarfdump are the entries of .debug_names by llvm-dwarfdump: for each name
// its tags and offsets in units, sorted.
func namesByDwarfdump(t *testing.T, path string) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	name, tag := "", ""
	for line := range strings.Lines(oracle.Run(t, "llvm-dwarfdump-22", "--debug-names", path)) {
		line = strings.TrimSpace(line)
		switch key, value, _ := strings.Cut(line, ": "); key {
		case "String":
			_, quoted, _ := strings.Cut(value, " ")
			text, err := strconv.Unquote(quoted)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			name = text
		case "Tag":
			tag = value
		case "DW_IDX_die_offset":
			off, err := strconv.ParseUint(value, 0, 64)
			if err == nil { // else it is of an abbreviation
				names[name] = append(names[name], fmt.Sprintf("%s at %#x", tag, off))
			}
		}
	}
	for _, list := range names {
		slices.Sort(list)
	}
	return names
}

func TestNamesEqualDwarfdumps(t *testing.T) {
	for _, test := range []struct {
		name    string
		command []string
		after   [][]string
	}{
		{"linked", []string{"clang++", "-O2", "-gdwarf-5", "-gpubnames"}, nil},
		{"compressed", []string{"clang++", "-O2", "-gdwarf-5", "-gpubnames", "-gz=zlib"}, nil},
		{"split", []string{"clang++", "-O2", "-gdwarf-5", "-gpubnames", "-gsplit-dwarf"}, nil},
		{"package", []string{"clang++", "-O2", "-gdwarf-5", "-gpubnames", "-gsplit-dwarf"}, packaged},
		{"link-time", []string{"clang++", "-O2", "-gdwarf-5", "-gpubnames", "-flto", "-fuse-ld=lld"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			oracle.Tools(t, "llvm-dwarfdump-22")
			s := subject{test.name, cpp, test.command, test.after, ""}
			_, path := s.build(t)
			checkNames(t, path)
		})
	}
	t.Run("64-bit relocatable", func(t *testing.T) {
		oracle.Tools(t, "clang", "llvm-dwarfdump-22")
		dir := t.TempDir()
		source, err := filepath.Abs("testdata/bare.c")
		if err != nil {
			t.Fatal(err)
		}
		oracle.With{Dir: dir}.Run(t, "clang", "-c", "-O1", "-gdwarf-5", "-gdwarf64", "-gpubnames", "-ffreestanding", "-o", "o", source)
		checkNames(t, filepath.Join(dir, "o"))
	})
	t.Run("big endian", func(t *testing.T) {
		s := subject{"", bare, append(other("powerpc64-linux-gnu", 5), "-gpubnames"), nil, ""}
		_, path := s.build(t)
		checkNames(t, path)
	})
}

// checkNames compares all names of a file, and some that it does not have.
func checkNames(t *testing.T, path string) {
	t.Helper()
	r := openMapped(t, path)
	want := namesByDwarfdump(t, path)
	if len(want) == 0 {
		t.Fatal("llvm-dwarfdump lists no name")
	}
	entries := 0
	for name, list := range want {
		got, err := r.Named(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var texts []string
		for _, e := range got {
			texts = append(texts, fmt.Sprintf("%v at %#x", e.Tag(), e.Offset()-e.Unit().Offset()))
		}
		slices.Sort(texts)
		if diff := cmp.Diff(list, texts); diff != "" {
			t.Errorf("%s: (-llvm-dwarfdump +ours)\n%s", name, diff)
		}
		entries += len(got)
		if got, err := r.Named(name + "?"); len(got) > 0 || err != nil {
			t.Errorf("%s?: %v, error %v, want none", name, got, err)
		}
	}
	if p := r.Problems(); len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
	t.Logf("%d names, %d entries, %d indexes", len(want), entries, len(r.main.nameIndexes()))
}

// DWARF 5, 7.33, and what llvm-dwarfdump prints of names.
func TestHashesOfNames(t *testing.T) {
	for name, want := range map[string]uint32{
		"": 5381, "f": 0x2b60b, "F": 0x2b60b, "main": 0x7c9a7f6a, "MAIN": 0x7c9a7f6a, "plain": 0x10269c19, "cname": 0xf3c76c9,
		"É": hashOfName("é"), "Σ": hashOfName("ς"), "İ": hashOfName("i"), "ı": hashOfName("i"), "\xff": 5381*33 + 0xff,
	} {
		if got := hashOfName(name); got != want {
			t.Errorf("%q: %#x, want %#x", name, got, want)
		}
	}
}

// A named is an entry of an index that a test makes.
type named struct {
	name string
	tag  dw.Tag
	unit uint64 // number of the unit
	die  uint64 // offset in the unit
}

// nameIndexOf makes an index of units (DWARF 5, 6.1.1.4), and the strings that it
// refers to, behind those that are there.
func nameIndexOf(str []byte, offsetSize int, buckets uint64, units []uint64, list ...named) (index, strings []byte) {
	word := func(b []byte, size int, v uint64) []byte {
		if size == 8 {
			return binary.LittleEndian.AppendUint64(b, v)
		}
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	slices.SortStableFunc(list, func(a, b named) int {
		if buckets == 0 {
			return 0
		}
		return int(uint64(hashOfName(a.name))%buckets) - int(uint64(hashOfName(b.name))%buckets)
	})
	var bucketTable, hashes, names, offsets, abbrevs, pool []byte
	first := make([]uint64, buckets)
	for i, n := range list {
		h := hashOfName(n.name)
		if buckets > 0 {
			if b := uint64(h) % buckets; first[b] == 0 {
				first[b] = uint64(i) + 1
			}
			hashes = word(hashes, 4, uint64(h))
		}
		names = word(names, offsetSize, uint64(len(str)))
		str = append(append(str, n.name...), 0)
		offsets = word(offsets, offsetSize, uint64(len(pool)))
		abbrevs = binary.AppendUvarint(append(abbrevs, byte(i)+1), uint64(n.tag))
		abbrevs = append(abbrevs, idxCompileUnit, byte(dw.FormData1), idxDieOffset, byte(dw.FormRef4), 4, byte(dw.FormFlagPresent), 0, 0)
		pool = append(pool, byte(i)+1, byte(n.unit))
		pool = append(word(pool, 4, n.die), 0)
	}
	for _, f := range first {
		bucketTable = word(bucketTable, 4, f)
	}
	abbrevs = append(abbrevs, 0)
	body := append(words(2, 5, 0), words(4, uint64(len(units)), 0, 0, buckets, uint64(len(list)), uint64(len(abbrevs)), 8)...)
	body = append(body, "TEST0000"...)
	for _, u := range units {
		body = word(body, offsetSize, u)
	}
	for _, part := range [][]byte{bucketTable, hashes, names, offsets, abbrevs, pool} {
		body = append(body, part...)
	}
	if offsetSize == 8 {
		index = append(words(4, 0xffffffff), words(8, uint64(len(body)))...)
	} else {
		index = words(4, uint64(len(body)))
	}
	return append(index, body...), str
}

// withNames gives a reader a .debug_names.
func withNames(r *Reader, index, str []byte) *Reader {
	r.main.str = str
	r.main.debugNames.make(func() ([]*nameIndex, error) { return r.main.readNameIndexes(index) })
	return r
}

// twoUnits are two units with a variable each: one at 0x5000, one at 0x6000.
func twoUnits(t testing.TB) (r *Reader, units []uint64, dies [2]uint64) {
	variable := func(n string, address uint64) die {
		return die{tagVariable, []attr{name(n), {atDeclLine, fData1, uint64(7)}, {atLoc, fExprloc, append(expr{dw.OpAddr}, words(8, address)...)}}, nil}
	}
	r = handmade(t, sections{}, unitDie(variable("first", 0x5000)), unitDie(sub(append(at64(0x1800, 16), name("f"))...), variable("second", 0x6000)))
	for _, u := range r.main.everyUnit() {
		units = append(units, u.offset)
	}
	list, err := r.main.findVariables()
	if err != nil || len(list) != 2 {
		t.Fatalf("variables %v, error %v, want two", list, err)
	}
	for i := range dies {
		dies[i] = list[i].off - units[i]
	}
	return r, units, dies
}

const atDeclLine = dw.AttrDeclLine

func TestNamesLeadToEntriesInEveryForm(t *testing.T) {
	for _, offsetSize := range []int{4, 8} {
		for _, buckets := range []uint64{0, 1, 2, 7} {
			r, units, dies := twoUnits(t)
			one, str := nameIndexOf(nil, offsetSize, buckets, units[:1], named{"first", dw.TagVariable, 0, dies[0]})
			two, str := nameIndexOf(str, offsetSize, buckets, units, named{"other", dw.TagVariable, 1, dies[1]}, named{"second", dw.TagVariable, 1, dies[1]}, named{"second", dw.TagSubprogram, 1, dies[1]})
			withNames(r, append(append(one, words(4, 0)...), two...), str)
			for name, want := range map[string]int{"first": 1, "second": 1, "other": 0, "": 0, "firs": 0} {
				got, err := r.Named(name)
				if err != nil || len(got) != want {
					t.Errorf("%d-byte offsets, %d buckets: %q: %v, error %v, want %d", offsetSize, buckets, name, got, err, want)
				}
			}
			if p := r.Problems(); len(p) > 0 {
				t.Errorf("problems: %q", p)
			}
		}
	}
}

func TestAnIndexIsCheckedBeforeItIsBelieved(t *testing.T) {
	_, units, dies := twoUnits(t)
	sound := func() []byte {
		b, _ := nameIndexOf(nil, 4, 1, units, named{"first", dw.TagVariable, 0, dies[0]})
		return b
	}
	_, str := nameIndexOf(nil, 4, 1, units, named{"first", dw.TagVariable, 0, dies[0]})
	lists := uint64(4 + 2 + 2 + 7*4 + 8)
	changed := func(at uint64, v ...byte) []byte {
		b := sound()
		copy(b[at:], v)
		return b
	}
	// The pool is the last 7 bytes: an abbreviation, a unit, 4 bytes of offset, the end.
	pool := uint64(len(sound())) - 7
	for _, test := range []struct {
		name, problem string
		data          []byte
	}{
		{"version", "version 4", changed(4, 4)},
		{"length", "length", changed(0, 0xf0)},
		{"counts", "do not fit", changed(24, 0xff, 0xff, 0xff, 0xff)},
		{"augmentation", "do not fit", changed(32, 0xff, 0xff, 0xff, 0xff)},
		{"a unit where there is none", "a unit at 0x1", changed(lists, 1)},
		{"bucket", "name 9", changed(lists+8, 9)},
		{"series", "a series of entries at 0x63", changed(lists+8+4+4+4, 99)},
		{"abbreviation", "abbreviation 5", changed(pool, 5)},
		{"number of the unit", "unit 2", changed(pool+1, 2)},
		{"offset", "an entry is expected", changed(pool+2, 0xff, 0xff)},
		{"offset in the header", "an entry is expected", changed(pool+2, 2)},
		{"another entry", "", changed(pool+2, 11)},
		{"end", "expected at most", sound()[:30]},
		{"none", "", nil},
	} {
		r, _, _ := twoUnits(t)
		withNames(r, test.data, str)
		got, err := r.Named("first")
		if len(got) > 0 {
			t.Errorf("%s: %v, want none", test.name, got)
		}
		text := strings.Join(r.Problems(), "; ")
		if err != nil {
			text += err.Error()
		}
		if !strings.Contains(text, test.problem) || test.problem == "" && text != "" {
			t.Errorf("%s: problems %q, want one about %q", test.name, text, test.problem)
		}
		// What the index does not have is found all the same.
		v, ok, err := r.Variable(0x5000, "first")
		if !ok || err != nil || v.Line != 7 || v.Start != 0x5000 {
			t.Errorf("%s: variable %+v, %v, error %v, want line 7", test.name, v, ok, err)
		}
	}
	r, _, _ := twoUnits(t)
	withNames(r, sound(), str)
	if got, err := r.Named("first"); len(got) != 1 || err != nil {
		t.Errorf("the sound index: %v, error %v, want an entry", got, err)
	}
}

// FuzzNames reads a hostile index beside sound units.
func FuzzNames(f *testing.F) {
	_, units, dies := twoUnits(f)
	for _, offsetSize := range []int{4, 8} {
		for _, buckets := range []uint64{0, 3} {
			index, str := nameIndexOf(nil, offsetSize, buckets, units, named{"first", dw.TagVariable, 0, dies[0]}, named{"second", dw.TagVariable, 1, dies[1]})
			f.Add(index, str)
		}
	}
	f.Fuzz(func(t *testing.T, index, str []byte) {
		r, _, _ := twoUnits(t)
		withNames(r, index, str)
		for _, x := range r.main.nameIndexes() {
			for i := range min(x.names, 8) {
				if off := x.word(x.strings, i, int(x.format.offsetSize)); off < uint64(len(str)) {
					name, _, _ := strings.Cut(string(str[off:]), "\x00")
					list, _ := r.Named(name)
					for _, e := range list {
						if !e.isCalled(name) {
							t.Fatalf("%v is not called %q", e, name)
						}
					}
				}
			}
		}
		// Whatever the index says, the variables are found.
		for address, want := range map[uint64]string{0x5000: "first", 0x6000: "second"} {
			v, ok, err := r.Variable(address, want)
			if !ok || err != nil || v.Name() != want {
				t.Fatalf("%#x: %+v, %v, error %v, want %s", address, v, ok, err, want)
			}
		}
	})
}

// Every variable of the symbol table is the same by its name in the index and by
// a look at all entries.
func TestVariablesAreTheSameByNameAndByScan(t *testing.T) {
	oracle.Tools(t, "clang++")
	s := subject{"", []string{"variables.cc"}, []string{"clang++", "-O0", "-gdwarf-5", "-gpubnames"}, nil, ""}
	_, path := s.build(t)
	r := openMapped(t, path)
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	byIndex := 0
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_OBJECT || s.Value == 0 {
			continue
		}
		scanned, ok, err := r.Variable(s.Value, "")
		if err != nil {
			t.Fatal(err)
		}
		v, found, err := r.namedVariable(s.Value, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		if found && (!ok || v != scanned) {
			t.Errorf("%s: by name %+v, by scan %+v", s.Name, v, scanned)
		}
		if found {
			byIndex++
		}
	}
	if byIndex < 10 {
		t.Errorf("%d variables were found by their names", byIndex)
	}
}
