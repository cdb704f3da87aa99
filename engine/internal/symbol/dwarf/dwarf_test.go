// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
)

func openObject(t testing.TB, path string) *object.Object {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.New(path, data)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func openReader(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := New(openObject(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// brief writes a chain as "function file:line:column" from the innermost on.
func brief(frames []trace.Symbol) string {
	var parts []string
	for _, f := range frames {
		kind := ""
		if f.Inlined {
			kind = " (inlined)"
		}
		parts = append(parts, fmt.Sprintf("%s %s:%d:%d%s", f.Function, strings.TrimPrefix(f.File, "/src/"), f.Line, f.Column, kind))
	}
	return strings.Join(parts, " < ")
}

// The answers are those of llvm-symbolizer 14 on small5, but for the names that
// it does not qualify.
func TestFramesAreTheInlinedCallsAtAnAddress(t *testing.T) {
	tests := []struct {
		address      uint64
		want, dwarf2 string // dwarf2: "" where it is the same
	}{
		{0x4000af, "", ""},
		{
			0x4000b0, "outer::mix small.cc:11:3 (inlined) < outer::c_name small.cc:14:68",
			"mix small.cc:11:3 (inlined) < c_name :0:0",
		},
		{
			0x4000b5, "outer::twice(int) small.cc:9:45 (inlined) < outer::mix small.cc:11:26 (inlined) < outer::c_name small.cc:14:68",
			"outer::twice(int) small.cc:9:45 (inlined) < mix :0:0 (inlined) < c_name :0:0",
		},
		{0x4000cf, "outer::c_name small.cc:14:76", "c_name small.cc:14:76"},
		{0x4000d0, "outer::work(int) small.cc:18:21", ""},
		{
			0x4000f3, "outer::(anonymous namespace)::Counter::next small.cc:6:31 (inlined) < outer::work(int) small.cc:18:41",
			"Counter::next small.cc:6:31 (inlined) < outer::work(int) :0:0",
		},
		{0x400112, "outer::work(int) small.cc:20:1", ""},
		{0x400113, " small.cc:20:1", ""}, // padding: a position, no function
		{0x400130, "_start small.cc:24:18", ""},
		{0x400154, "", ""},
		{0, "", ""},
		{^uint64(0), "", ""},
	}
	for _, name := range []string{"small5", "small4", "small2"} {
		t.Run(name, func(t *testing.T) {
			r := openReader(t, "testdata/"+name)
			for _, test := range tests {
				frames, err := r.Frames(nil, test.address)
				if err != nil {
					t.Fatal(err)
				}
				want := test.want
				if name == "small2" && test.dwarf2 != "" {
					want = test.dwarf2
				}
				if got := brief(frames); got != want {
					t.Errorf("%#x: %s\nwant %s", test.address, got, want)
				}
			}
			if p := r.Problems(); len(p) > 0 {
				t.Errorf("problems: %q", p)
			}
		})
	}
}

func TestFramesCarryLinkageNameAndStart(t *testing.T) {
	r := openReader(t, "testdata/small5")
	got, err := r.Frames([]trace.Symbol{{Function: "before"}}, 0x4000e0)
	if err != nil {
		t.Fatal(err)
	}
	const file = "/src/small.cc"
	want := []trace.Symbol{
		{Function: "before"},
		{
			Function: "outer::twice(int)", LinkageName: "_ZN5outer5twiceEi", Name: "twice", File: file, Line: 9, Column: 45, Inlined: true,
			StartFile: file, StartLine: 9, CompDir: "/src",
		},
		{
			Function: "outer::mix", Name: "mix", File: file, Line: 11, Column: 26, Inlined: true,
			StartFile: file, StartLine: 10, CompDir: "/src",
		},
		{
			Function: "outer::work(int)", LinkageName: "_ZN5outer4workEi", Name: "work", Start: 0x4000d0, HasStart: true,
			File: file, Line: 18, Column: 41, StartFile: file, StartLine: 15, CompDir: "/src",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNewSaysThatThereIsNoDebugInfo(t *testing.T) {
	data := make([]byte, 64)
	copy(data, "\x7fELF\x02\x01\x01")
	o, err := object.New("empty", data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(o); !errors.Is(err, ErrNoDebugInfo) {
		t.Errorf("error %v, want ErrNoDebugInfo", err)
	}
}

func TestReaderIsSafeForConcurrentUse(t *testing.T) {
	r := openReader(t, "testdata/small5")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for a := uint64(0x4000a0); a < 0x400160; a++ {
				if _, err := r.Frames(nil, a); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// A die is an entry of a hand-made unit: a tag, attributes, children.
type die struct {
	tag      dw.Tag
	attrs    []attr
	children []die
}

type attr struct {
	name  dw.Attr
	form  dw.Form
	value any // string, uint64 (of the form's size), expr, or label
}

// An expr is the bytes of an expression.
type expr []byte

// A label is the offset of the entry that has it as its mark.
type label string

type mark string // value of a pseudo attribute that names its entry

// assemble makes .debug_info and .debug_abbrev of version 4 units.
func assemble(units ...die) (info, abbrev []byte) {
	order := binary.LittleEndian
	offsets := map[label]uint32{}
	type fixup struct {
		at    int
		label label
	}
	var fixups []fixup
	code := uint64(0)
	abbrevOf := func(d die) uint64 {
		code++
		abbrev = binary.AppendUvarint(abbrev, code)
		abbrev = binary.AppendUvarint(abbrev, uint64(d.tag))
		abbrev = append(abbrev, bool2byte(d.children != nil))
		for _, a := range d.attrs {
			if _, ok := a.value.(mark); ok {
				continue
			}
			abbrev = binary.AppendUvarint(abbrev, uint64(a.name))
			abbrev = binary.AppendUvarint(abbrev, uint64(a.form))
		}
		abbrev = append(abbrev, 0, 0)
		return code
	}
	var write func(d die)
	write = func(d die) {
		at := len(info)
		info = binary.AppendUvarint(info, abbrevOf(d))
		for _, a := range d.attrs {
			switch v := a.value.(type) {
			case mark:
				offsets[label(v)] = uint32(at)
			case string:
				info = append(append(info, v...), 0)
			case expr:
				info = append(append(info, byte(len(v))), v...)
			case label:
				fixups = append(fixups, fixup{len(info), v})
				info = order.AppendUint32(info, 0)
			case uint64:
				switch a.form {
				case dw.FormAddr, dw.FormData8:
					info = order.AppendUint64(info, v)
				case dw.FormData4, dw.FormRefAddr, dw.FormSecOffset, dw.FormGNURefAlt:
					info = order.AppendUint32(info, uint32(v))
				case dw.FormData1:
					info = append(info, byte(v))
				default:
					panic("form")
				}
			}
		}
		if d.children != nil {
			for _, c := range d.children {
				write(c)
			}
			info = append(info, 0)
		}
	}
	for _, u := range units {
		start := len(info)
		info = append(info, make([]byte, 11)...)
		write(u)
		order.PutUint32(info[start:], uint32(len(info)-start-4))
		order.PutUint16(info[start+4:], 4)
		info[start+10] = 8
	}
	for _, f := range fixups {
		order.PutUint32(info[f.at:], offsets[f.label])
	}
	return info, append(abbrev, 0)
}

func bool2byte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

const (
	tagUnit, tagSub, tagInlined = dw.TagCompileUnit, dw.TagSubprogram, dw.TagInlinedSubroutine
	tagNamespace, tagStruct     = dw.TagNamespace, dw.TagStructureType

	atName, atLow, atHigh, atLanguage = dw.AttrName, dw.AttrLowPC, dw.AttrHighPC, dw.AttrLanguage
	atOrigin, atSpec, atLinkage       = dw.AttrAbstractOrigin, dw.AttrSpecification, dw.AttrLinkageName
	atRanges, atStmt, atCallLine      = dw.AttrRanges, dw.AttrStmtList, dw.AttrCallLine
	fAddr, fData4, fData1, fString    = dw.FormAddr, dw.FormData4, dw.FormData1, dw.FormString
	fSec, fRefAddr, fAlt              = dw.FormSecOffset, dw.FormRefAddr, dw.FormGNURefAlt
)

func name(s string) attr { return attr{atName, fString, s} }
func at64(low, size uint64) []attr {
	return []attr{{atLow, fAddr, low}, {atHigh, fData4, size}}
}

// unitDie is a C++ unit over [0x1000, 0x2000).
func unitDie(children ...die) die {
	return die{tagUnit, append(at64(0x1000, 0x1000), attr{atLanguage, fData1, uint64(4)}), children}
}

func sub(attrs ...attr) die { return die{tag: tagSub, attrs: attrs} }

func newTestReader(name string, s sections) (*Reader, error) {
	return newReader(&file{name: name, sections: s})
}

func handmade(t testing.TB, s sections, units ...die) *Reader {
	t.Helper()
	s.info, s.abbrev = assemble(units...)
	r, err := newTestReader("handmade", s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNamesFollowOriginsAndSpecifications(t *testing.T) {
	tests := []struct {
		name    string
		units   []die
		want    string
		problem string
	}{
		{
			"specification in a class of a namespace",
			[]die{unitDie(
				die{tagNamespace, []attr{name("n")}, []die{{tagStruct, []attr{name("S")}, []die{sub(attr{0, 0, mark("m")}, name("m"))}}}},
				sub(append(at64(0x1000, 16), attr{atSpec, fRefAddr, label("m")})...))},
			"n::S::m", "",
		},
		{
			"concrete of abstract of declaration, across units",
			[]die{
				unitDie(sub(append(at64(0x1000, 16), attr{atOrigin, fRefAddr, label("abstract")})...)),
				{tagUnit, []attr{{atLanguage, fData1, uint64(4)}}, []die{
					{tagNamespace, []attr{name("n")}, []die{sub(attr{0, 0, mark("decl")}, name("f"), attr{atLinkage, fString, "_ZN1n1fEv"})}},
					sub(attr{0, 0, mark("abstract")}, attr{atSpec, fRefAddr, label("decl")})}},
			},
			"n::f()", "",
		},
		{
			"a declaration's namespace in another unit",
			[]die{
				unitDie(die{tagNamespace, []attr{name("wrong")}, nil}, sub(append(at64(0x1000, 16), attr{atSpec, fRefAddr, label("decl")})...)),
				{tagUnit, nil, []die{{tagNamespace, []attr{name("right")}, []die{sub(attr{0, 0, mark("decl")}, name("f"))}}}},
			},
			"right::f", "",
		},
		{
			"cycle of origins",
			[]die{unitDie(
				sub(append(at64(0x1000, 16), attr{0, 0, mark("a")}, attr{atOrigin, fRefAddr, label("b")})...),
				sub(attr{0, 0, mark("b")}, name("f"), attr{atSpec, fRefAddr, label("a")}))},
			"f", "",
		},
		{
			"origin in no unit",
			[]die{unitDie(sub(append(at64(0x1000, 16), name("f"), attr{atOrigin, fRefAddr, uint64(0x99999)})...))},
			"f", "which is in no unit",
		},
		{
			"origin is no function",
			[]die{unitDie(
				die{tagNamespace, []attr{{0, 0, mark("n")}, name("n")}, nil},
				sub(append(at64(0x1000, 16), name("f"), attr{atOrigin, fRefAddr, label("n")})...))},
			"f", "where no function is declared",
		},
		{
			"origin in a supplementary file",
			[]die{unitDie(sub(append(at64(0x1000, 16), attr{atOrigin, fAlt, uint64(0x1234)})...))},
			"", ".gnu_debugaltlink",
		},
		{
			"anonymous namespace and class",
			[]die{unitDie(die{tagNamespace, nil, []die{{tagStruct, nil, []die{sub(append(at64(0x1000, 16), name("f"))...)}}}})},
			"(anonymous namespace)::(anonymous struct)::f", "",
		},
		{
			"C is not qualified",
			[]die{{tagUnit, append(at64(0x1000, 0x1000), attr{atLanguage, fData1, uint64(0x0c)}), []die{
				{tagStruct, []attr{name("s")}, []die{sub(append(at64(0x1000, 16), name("f"))...)}}}}},
			"f", "",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := handmade(t, sections{}, test.units...)
			frames, err := r.Frames(nil, 0x1008)
			if err != nil {
				t.Fatal(err)
			}
			if len(frames) != 1 || frames[0].Function != test.want {
				t.Errorf("frames %+v, want one of %q", frames, test.want)
			}
			problems := strings.Join(r.Problems(), "\n")
			if !strings.Contains(problems, test.problem) || test.problem == "" && problems != "" {
				t.Errorf("problems %q, want %q", problems, test.problem)
			}
		})
	}
}

func words(size int, values ...uint64) (b []byte) {
	for _, v := range values {
		for i := range size {
			b = append(b, byte(v>>(8*i)))
		}
	}
	return b
}

// TestNamesOfTypesStopAtAFunction has a class in a block of a method: functions in it
// have the method in their names, types have not.
func TestNamesOfTypesStopAtAFunction(t *testing.T) {
	r := handmade(t, sections{}, unitDie(die{tagNamespace, []attr{name("n")}, []die{{tagStruct, []attr{name("S")}, []die{
		{tagSub, append(at64(0x1000, 16), name("f")), []die{
			{tagBlock, nil, []die{{tagStruct, marked("T", name("T")), []die{
				{tagStruct, marked("inside", name("U")), nil},
				sub(append(at64(0x1100, 16), name("m"))...),
			}}}},
			{tagVariable, []attr{name("v"), ref("inside")}, nil},
		}},
	}}}}))
	frames, err := r.Frames(nil, 0x1100)
	if err != nil || len(frames) != 1 || frames[0].Function != "n::S::f::T::m" {
		t.Errorf("the function is %+v, %v, expected n::S::f::T::m", frames, err)
	}
	scopes, err := r.Scopes(0x1000)
	if err != nil || len(scopes) != 1 {
		t.Fatalf("%d scopes, expected 1: %v", len(scopes), err)
	}
	for v, err := range scopes[0].Variables() {
		if err != nil {
			t.Fatal(err)
		}
		of, err := v.ValueType()
		if err != nil || of.String() != "T::U" {
			t.Errorf("the type of %s is %v, %v, expected T::U", v.Name(), of, err)
		}
		return
	}
	t.Error("the function has no variable")
}

func TestRangeLists(t *testing.T) {
	const highest = ^uint64(0)
	join := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	tests := []struct {
		name    string
		version int
		list    []byte
		want    []span
		err     string
	}{
		{"pairs from the unit's base", 4, words(8, 0x10, 0x20, 0x30, 0x40, 0, 0), []span{{0x1010, 0x1020}, {0x1030, 0x1040}}, ""},
		{"a new base", 4, words(8, 0x10, 0x20, highest, 0x5000, 0x10, 0x20, 0, 0), []span{{0x1010, 0x1020}, {0x5010, 0x5020}}, ""},
		{"empty pairs", 4, words(8, 0x10, 0x10, 0x30, 0x20, 0, 0), nil, ""},
		{"no end", 4, words(8, 0x10, 0x20), nil, ".debug_ranges: offset 0x0: the list"},
		{"offset_pair", 5, []byte{rleOffsetPair, 0x10, 0x20, 0}, []span{{0x1010, 0x1020}}, ""},
		{"base_address", 5, join([]byte{rleBaseAddress}, words(8, 0x5000), []byte{rleOffsetPair, 1, 2, 0}), []span{{0x5001, 0x5002}}, ""},
		{"base_addressx", 5, []byte{rleBaseAddressx, 1, rleOffsetPair, 1, 2, 0}, []span{{0x7001, 0x7002}}, ""},
		{"startx_endx", 5, []byte{rleStartxEndx, 0, 1, 0}, []span{{0x6000, 0x7000}}, ""},
		{"startx_length", 5, []byte{rleStartxLength, 1, 5, 0}, []span{{0x7000, 0x7005}}, ""},
		{"start_end", 5, join([]byte{rleStartEnd}, words(8, 0x10, 0x20), []byte{0}), []span{{0x10, 0x20}}, ""},
		{"start_length", 5, join([]byte{rleStartLength}, words(8, 0x10), []byte{5, 0}), []span{{0x10, 0x15}}, ""},
		{"start_length over the end", 5, join([]byte{rleStartLength}, words(8, highest-1), []byte{5, 0}), nil, ""},
		{"unknown kind", 5, []byte{9}, nil, ".debug_rnglists: offset 0x0: entry kind 0x9"},
		{"no end", 5, []byte{rleOffsetPair, 1, 2}, nil, ".debug_rnglists: offset 0x0: the list"},
		{"no such address", 5, []byte{rleStartxLength, 2, 5, 0}, nil, ".debug_addr"},
		{"address index that overflows", 5, append(append([]byte{rleStartxLength}, binary.AppendUvarint(nil, highest/8+1)...), 5, 0), nil, ".debug_addr"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.name, test.version), func(t *testing.T) {
			// The header of .debug_addr is 8 bytes long.
			f := &file{sections: sections{debugRanges: test.list, rnglists: test.list, addr: words(8, highest, 0x6000, 0x7000)}}
			b := &body{unit: &unit{unitHeader: unitHeader{file: f, format: format{version: uint8(test.version), addrSize: 8}}}, base: 0x1000, addrBase: 8}
			budget := int64(100)
			read := b.rangeList
			if test.version == 5 {
				read = b.rangeList5
			}
			got, err := read(0, nil, &budget)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one that says %q", err, test.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%#x, error %v, want %#x", got, err, test.want)
			}
			budget = 0
			if _, err := read(0, nil, &budget); err == nil {
				t.Error("no error without a budget")
			}
		})
	}
}

func TestCodeThatTheLinkerThrewAwayHasNoFrames(t *testing.T) {
	s := sections{code: []span{{0x1000, 0x2000}}}
	r := handmade(t, s, unitDie(
		sub(append(at64(0, 0x5000), name("thrown_away"))...),
		sub(append(at64(0x1000, 16), name("kept"))...)))
	for address, want := range map[uint64]string{0x8: "", 0x1008: "kept", 0x1020: ""} {
		frames, err := r.Frames(nil, address)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(frames) > 0 {
			got = frames[0].Function
		}
		if got != want {
			t.Errorf("%#x: %q, want %q", address, got, want)
		}
	}
}

// A unit whose range spans others, as old compilers write, answers for what the
// others leave.
func TestOverlappingUnitsAreTriedInTurn(t *testing.T) {
	units := []die{unitDie(sub(append(at64(0x1f00, 16), name("far"))...), sub(append(at64(0x1000, 0x800), name("around"))...))}
	for i := range uint64(40) {
		low := 0x1100 + 16*i
		u := die{tagUnit, append(at64(low, 16), attr{atLanguage, fData1, uint64(4)}), []die{sub(append(at64(low, 8), name(fmt.Sprint("f", i)))...)}}
		units = append(units, u)
	}
	r := handmade(t, sections{}, units...)
	for address, want := range map[uint64]string{0x1100: "f0", 0x1108: "around", 0x1371: "f39", 0x1f08: "far", 0x1010: "around", 0x1e00: ""} {
		frames, err := r.Frames(nil, address)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(frames) > 0 {
			got = frames[0].Function
		}
		if got != want {
			t.Errorf("%#x: %q, want %q", address, got, want)
		}
	}
}

func TestUnitsWithoutRangesAreFoundByTheirFunctions(t *testing.T) {
	r := handmade(t, sections{}, die{tagUnit, nil, []die{sub(append(at64(0x3000, 16), name("f"))...)}})
	frames, err := r.Frames(nil, 0x3001)
	if err != nil || len(frames) != 1 || frames[0].Function != "f" {
		t.Errorf("frames %+v, error %v, want f", frames, err)
	}
}

func TestArangesAddToAUnitsOwnRange(t *testing.T) {
	// A set for the unit at 0: [0x3000, 0x3010), in 64-bit addresses.
	set := append(words(4, 44), words(2, 2)...)
	set = append(append(set, words(4, 0)...), 8, 0, 0, 0, 0, 0)
	set = append(set, words(8, 0x3000, 0x10, 0, 0)...)
	r := handmade(t, sections{aranges: set}, unitDie(sub(append(at64(0x3000, 16), name("f"))...)))
	frames, err := r.Frames(nil, 0x3001)
	if err != nil || len(frames) != 1 || frames[0].Function != "f" {
		t.Errorf("frames %+v, error %v, want f", frames, err)
	}
}

func TestSplitUnitsAreAProblemThatNamesTheFile(t *testing.T) {
	r := handmade(t, sections{}, die{tagUnit, append(at64(0x1000, 16), attr{dw.AttrGNUDwoName, fString, "a.dwo"}), nil})
	frames, err := r.Frames(nil, 0x1001)
	if err != nil || len(frames) != 0 {
		t.Errorf("frames %+v, error %v, want none", frames, err)
	}
	if p := strings.Join(r.Problems(), "\n"); !strings.Contains(p, "unit at 0x0") || !strings.Contains(p, "a.dwo") {
		t.Errorf("problems %q do not name the unit and the file", p)
	}
}

func TestNestingBeyondTheLimitIsAnErrorThatNamesTheUnit(t *testing.T) {
	d := sub(append(at64(0x1000, 16), name("f"))...)
	for range maxDepth + 1 {
		d = die{tagNamespace, nil, []die{d}}
	}
	r := handmade(t, sections{}, unitDie(), unitDie(d))
	_, err := r.Frames(nil, 0x1001)
	if err == nil || !strings.Contains(err.Error(), "unit at 0x") || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("error %v, want one that names the unit and the nesting", err)
	}
}

// Each case damages a sound unit.
func TestDamageIsAnErrorThatSaysWhere(t *testing.T) {
	info, abbrev := assemble(unitDie(sub(append(at64(0x1000, 16), name("f"))...)))
	sound := func() sections {
		return sections{info: append([]byte(nil), info...), abbrev: append([]byte(nil), abbrev...)}
	}
	tests := []struct {
		name   string
		damage func(s *sections)
		want   []string
	}{
		{"unit longer than the section", func(s *sections) { s.info[0] = 0xff }, []string{".debug_info", "unit at 0x0", "length"}},
		{"reserved length", func(s *sections) { copy(s.info, "\xf0\xff\xff\xff") }, []string{".debug_info", "unit at 0x0"}},
		{"version", func(s *sections) { s.info[4] = 9 }, []string{"unit at 0x0", "version 9", "2 to 5"}},
		{"address size", func(s *sections) { s.info[10] = 3 }, []string{"unit at 0x0", "3 bytes"}},
		{"abbreviation offset", func(s *sections) { s.info[8] = 0xff }, []string{"unit at 0x0", ".debug_abbrev"}},
		{"abbreviations cut", func(s *sections) { s.abbrev = s.abbrev[:len(s.abbrev)-1] }, []string{".debug_abbrev", "table at 0x0"}},
		{"unknown abbreviation", func(s *sections) { s.info[11+1+8+4+1] = 0x55 }, []string{"unit at 0x0", "abbreviation"}},
		{"no unit", func(s *sections) { s.info = make([]byte, 64) }, []string{".debug_info"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := sound()
			test.damage(&s)
			r, err := newTestReader("damaged", s)
			if err == nil {
				var frames []trace.Symbol
				if frames, err = r.Frames(nil, 0x1001); len(frames) > 0 {
					t.Errorf("frames %+v from a damaged unit", frames)
				}
			}
			if err == nil && len(r.Problems()) > 0 {
				err = errors.New(r.Problems()[0])
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range append(test.want, "damaged: ") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

func TestAbbreviationsOfManyAttributesAreRefused(t *testing.T) {
	d := sub(at64(0x1000, 16)...)
	for range maxAttributes {
		d.attrs = append(d.attrs, name("x"))
	}
	r := handmade(t, sections{}, unitDie(d))
	if frames, err := r.Frames(nil, 0x1001); len(frames) > 0 || err == nil || !strings.Contains(err.Error(), "attributes") {
		t.Errorf("frames %+v, error %v, want none and one about attributes", frames, err)
	}
}

func TestAWrongLineTableLeavesNames(t *testing.T) {
	u := unitDie(sub(append(at64(0x1000, 16), name("f"))...))
	u.attrs = append(u.attrs, attr{atStmt, fSec, uint64(0)})
	r := handmade(t, sections{line: []byte("\xff\x00\x00\x00\x04\x00")}, u)
	frames, err := r.Frames(nil, 0x1001)
	if err != nil || brief(frames) != "f :0:0" {
		t.Errorf("frames %+v, error %v, want f without a position", frames, err)
	}
	if p := strings.Join(r.Problems(), "\n"); !strings.Contains(p, ".debug_line: table at 0x0") {
		t.Errorf("problems %q do not name the table", p)
	}
}

func TestFileNamesAreJoinedAsLLVMSymbolizerDoes(t *testing.T) {
	text := func(s string) value { return value{form: dw.FormString, b: []byte(s)} }
	dirs := []string{"/abs", "rel", "", "/last"}
	tests := []struct {
		version uint16
		name    string
		dir     uint64
		want    string
	}{
		{4, "a.c", 0, "/comp/a.c"},
		{4, "a.c", 1, "/abs/a.c"},
		{4, "a.c", 2, "/comp/rel/a.c"},
		{4, "../a.c", 1, "/abs/../a.c"},
		{4, "/x/a.c", 2, "/x/a.c"},
		{4, "a.c", 3, "/comp/a.c"},
		{4, "a.c", 4, "/last/a.c"},
		{4, "a.c", 5, "/comp/a.c"},
		{5, "a.c", 0, "/abs/a.c"},
		{5, "a.c", 1, "/comp/rel/a.c"},
		{5, "a.c", 2, "/comp/a.c"},
		{5, `C:\x\a.c`, 0, `C:\x\a.c`},
		{5, "", 0, ""},
	}
	for _, test := range tests {
		h := lineHeader{file: &file{}, version: test.version, files: []lineFile{{}, {path: text(test.name), dir: test.dir}}}
		for _, dir := range dirs {
			h.dirs = append(h.dirs, lineFile{path: text(dir)})
		}
		table := &lineTable{lineHeader: h}
		if got := table.fileName(1, "/comp").path; got != test.want {
			t.Errorf("version %d, %q in %d: %q, want %q", test.version, test.name, test.dir, got, test.want)
		}
	}
	var none *lineTable
	if got := none.fileName(1, "/comp").path; got != "" {
		t.Errorf("no table: %q", got)
	}
}

func TestLEB128(t *testing.T) {
	tests := []struct {
		in       string
		unsigned uint64
		signed   int64
		failed   bool
	}{
		{"\x00", 0, 0, false},
		{"\x7f", 127, -1, false},
		{"\xe5\x8e\x26", 624485, 624485, false},
		{"\x80\x7f", 16256, -128, false},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 1<<64 - 1, -1, false},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 0, 0, false},
		{"\x80", 0, 0, true},
		{"", 0, 0, true},
	}
	for _, test := range tests {
		u := newCursor([]byte(test.in), false, 0, 99)
		if got := u.uleb(); got != test.unsigned || u.failed != test.failed {
			t.Errorf("uleb %x: %d, failed %v, want %d, %v", test.in, got, u.failed, test.unsigned, test.failed)
		}
		s := newCursor([]byte(test.in), false, 0, 99)
		if got := s.sleb(); got != test.signed || s.failed != test.failed {
			t.Errorf("sleb %x: %d, failed %v, want %d, %v", test.in, got, s.failed, test.signed, test.failed)
		}
	}
}
