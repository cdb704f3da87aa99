// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/msf/msftest"
	"github.com/unwindd/unwindd/engine/trace"
)

// code is the section of code of most test files.
var code = []section{{0x1000, 0x3000}}

// lineRows are rows of lines from the start of a function on: offset and line.
func lineRows(start, size uint32, file uint32, rows ...uint32) []byte {
	return subsection(partLines, start, uint16(1), uint16(0), size, file, len(rows)/2, 12+4*len(rows), words(rows))
}

// odd is a file with what Microsoft's tools write, and LLVM's do not.
func odd() *testFile {
	var s symbolList
	s.procedure(kindGlobalProcID, 0x100, 0x20, "ns::f") // 100
	outer := s.beginProcedure(kindLocalProcID, 0x200, 0x40, "outer")
	site := s.add(symbolRecord(kindInlineSite2, 0, 0, 0x1001, 9, []byte{opOffsetAndLine, 0x20 | 4, opOffsetAndLine, 0x28, opCodeLength, 4, opPart, 1, opChangeOffset, 2, opCodeLength, 6, 0}))
	inner := s.add(symbolRecord(kindInlineSite, 0, 0, 0x1002, []byte{opLengthAndOffset, 2, 5, opFile, 8, opLine, 4, opLengthAndOffset, 3, 0x80, 7, 0}))
	s.end(inner, kindInlineSiteEnd)
	s.end(site, kindInlineSiteEnd)
	s.end(outer, kindProcIDEnd)
	s.end(s.add(symbolRecord(kindSeparated, 0, 0, 0x10, 0, 0x800, 0x200, uint16(1), uint16(1))), kindEnd)
	thunk := s.add(symbolRecord(kindThunk, 0, 0, 0, 0x300, uint16(1), uint16(6), uint8(0), "[thunk]: ns::g`adjustor{8}'"))
	s.end(thunk, kindEnd)
	s.procedure(kindLocalProcDPC, 0x310, 8, "parallel")
	s.procedure(kindLocalProc, 0x318, 8, "?A0xe19704fc::hidden")

	// A length without an offset before it, of code at the start; two places of one identifier.
	plain := s.beginProcedure(kindGlobalProc, 0x400, 0x20, "plain")
	s.end(s.add(symbolRecord(kindInlineSite, 0, 0, 0x1003, []byte{opLine, 2, opCodeLength, 8, opOffsetAndLine, 0x24, opCodeLength, 4, 0})), kindInlineSiteEnd)
	s.end(s.add(symbolRecord(kindInlineSite, 0, 0, 0x1004, []byte{opOffsetAndLine, 0x10, 0x10, opCodeLength, 4, 0})), kindInlineSiteEnd)
	s.end(s.add(symbolRecord(kindInlineSite, 0, 0, 0x1004, []byte{opChangeOffset, 0x10, opCodeLength, 4, 0})), kindInlineSiteEnd)
	s.end(plain, kindEnd)

	var linker symbolList
	linker.add(symbolRecord(kindTrampoline, uint16(0), uint16(5), 0x10f, 0x200, uint16(1), uint16(1)))
	linker.add(symbolRecord(kindTrampoline, uint16(1), uint16(5), 0x114, 0x300, uint16(1), uint16(1)))
	linker.b = bytesReplaceOffset(linker.b, 0x1000)
	return &testFile{
		machine: 0x8664, sections: code, names: []string{"a.cpp", "b.h"},
		modules: []testModule{
			{symbols: s.b, contributions: []contribution{{section{0x100, 0x120}, 0}, {section{0x200, 0x320}, 0}, {section{0x400, 0x420}, 0}, {section{0x800, 0x810}, 0}},
				c13: slices.Concat(subsection(partFiles, 1, 0, 7, 0), lineRows(0x100, 0x20, 0, 0, 10, 8, 0x80000000|12, 16, alwaysStepInto),
					lineRows(0x200, 0x40, 0, 0, 20, 4, 21), lineRows(0x800, 0x10, 0, 0, 28),
					subsection(partInlinees, 1, 0x1001, 8, 100, 1, 0, 0x1002, 0, 200, 0, 0x1003, 8, 300, 0, 0x1004, 8, 400, 0, 0x1004, 8, 500, 0),
					lineRows(0x400, 0x20, 0, 0, 40, 0, 41, 0x14, 42))},
			{symbols: linker.b, contributions: []contribution{{section{0x1100, 0x1200}, 0}}},
		},
		publics: []testPublic{
			{place{1, 0x100}, publicIsFunction, "?f@ns@@YAXXZ"}, {place{1, 0x900}, publicIsCode, "bare"}, {place{1, 0x910}, 0, "data"}, {place{1, 0x808}, publicIsFunction, "inside"},
		},
		thunkTable: 0x110a,
	}
}

// bytesReplaceOffset moves trampolines by an offset.
func bytesReplaceOffset(b []byte, difference uint32) []byte {
	for at := 0; at+20 <= len(b); at += 20 {
		copy(b[at+8:], bytesOf(uint32(b[at+8])|uint32(b[at+9])<<8+difference))
	}
	return b
}

// show is frames in a line.
func show(frames []trace.Symbol) string {
	var parts []string
	for i := range frames {
		f := &frames[i]
		name := f.Function
		if f.LinkageName != "" {
			name = f.LinkageName
		}
		parts = append(parts, strings.TrimSuffix(fmt.Sprintf("%s %s:%d", name, f.File, f.Line), " :0"))
	}
	return strings.Join(parts, " < ")
}

func TestRecordsOfMicrosoftsToolsAreRead(t *testing.T) {
	f := odd().open(t)
	defer func() {
		if p := f.Problems(); len(p) > 0 {
			t.Errorf("problems: %q", p)
		}
	}()
	for rva, want := range map[uint64]string{
		0x1100: "?f@ns@@YAXXZ a.cpp:10", 0x1107: "?f@ns@@YAXXZ a.cpp:10", 0x1108: "?f@ns@@YAXXZ a.cpp:12", 0x1110: "?f@ns@@YAXXZ a.cpp:0", 0x1120: "",
		0x1200: "outer a.cpp:20",
		0x1204: "[identifier 0x1001] b.h:101 < outer a.cpp:21",
		0x1205: "[identifier 0x1002] a.cpp:200 < [identifier 0x1001] b.h:101 < outer a.cpp:21",
		0x1207: "[identifier 0x1001] b.h:101 < outer a.cpp:21",
		0x120c: "[identifier 0x1002] b.h:202 < [identifier 0x1001] b.h:102 < outer a.cpp:21",
		0x1210: "outer a.cpp:21",
		0x1400: "[identifier 0x1003] b.h:301 < plain a.cpp:40", 0x1401: "[identifier 0x1003] b.h:301 < plain a.cpp:41", 0x1407: "[identifier 0x1003] b.h:301 < plain a.cpp:41",
		0x1408: "plain a.cpp:41", 0x140c: "[identifier 0x1003] b.h:302 < plain a.cpp:41", 0x1410: "[identifier 0x1004] b.h:0 < plain a.cpp:41", 0x1414: "plain a.cpp:42",
		0x1300: "[thunk]: ns::g`adjustor{8}'", 0x1310: "parallel", 0x1320: "",
		0x1318: "?A0xe19704fc::hidden", 0x1800: "outer a.cpp:28", 0x1802: "[identifier 0x1001] b.h:102 < outer a.cpp:28", 0x1808: "outer a.cpp:28",
		0x1900: "", 0x0: "", 0x3000: "",
		0x210f: "@ILT+5(outer)", 0x2114: "@island([thunk]: ns::g`adjustor{8}')",
	} {
		frames, err := f.Frames(nil, testBase+rva)
		if got := show(frames); got != want || err != nil {
			t.Errorf("%#x: %s, %v, expected %s", rva, got, err, want)
		}
	}
	if frames, _ := f.Frames(nil, testBase+0x1318); len(frames) != 1 || frames[0].Function != "`anonymous namespace'::hidden" {
		t.Errorf("a function of a namespace without a name is %+v", frames)
	}
	if s, ok := f.Function(testBase + 0x1804); !ok || s.Name != "outer" || s.Start != testBase+0x1800 || s.End != testBase+0x1810 {
		t.Errorf("the function of separated code is %+v, %v", s, ok)
	}
	id := f.Identity()
	if id.DebugID() != "3332313035343736383961626364656"+"63" || id.Machine != 0x8664 {
		t.Errorf("identity %s, machine %#x", id.DebugID(), id.Machine)
	}
}

func TestFunctionsHaveTheFramesOfTheirAddresses(t *testing.T) {
	f := odd().open(t)
	var addresses []uint64
	for a := range uint64(0x2000) {
		addresses = append(addresses, testBase+0x1000+a)
	}
	checkFunctions(t, f, addresses)
	var got []string
	if err := f.EachFunction(func(fn *symbol.FunctionCode) bool {
		got = append(got, fmt.Sprintf("%s %x", fn.Function, fn.Ranges))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if want := "outer [{11200 11240} {11800 11810}]"; !slices.Contains(got, want) {
		t.Errorf("functions %q, expected %s among them", got, want)
	}
	var names []string
	for _, s := range f.Functions() {
		names = append(names, fmt.Sprintf("%s %x-%x", s.Name, s.Start, s.End))
	}
	want := []string{
		"?f@ns@@YAXXZ 11100-11120", "outer 11200-11240", "[thunk]: ns::g`adjustor{8}' 11300-11306", "parallel 11310-11318", "?A0xe19704fc::hidden 11318-11320", "plain 11400-11420", "inside 11808-11808", "bare 11900-11900",
		"@ILT+5(outer) 1210f-12114", "@island([thunk]: ns::g`adjustor{8}') 12114-12119",
	}
	if !slices.Equal(names, want) {
		t.Errorf("functions\n%q, expected\n%q", names, want)
	}
	if start, ok := f.Start(); !ok || start != testBase+0x1100 {
		t.Errorf("the first function is at %#x, %v", start, ok)
	}
}

func TestContributionsMayBeOutOfOrderOrMissing(t *testing.T) {
	for name, change := range map[string]func(*testFile){
		"out of order": func(f *testFile) { slices.Reverse(f.modules[0].contributions) },
		"missing":      func(f *testFile) { f.noTable = true },
	} {
		t.Run(name, func(t *testing.T) {
			from := odd()
			change(from)
			f := from.open(t)
			for rva, want := range map[uint64]string{0x1108: "?f@ns@@YAXXZ a.cpp:12", 0x1804: "[identifier 0x1001] b.h:102 < outer a.cpp:28", 0x1312: "parallel"} {
				frames, _ := f.Frames(nil, testBase+rva)
				if got := show(frames); got != want {
					t.Errorf("%#x: %s, expected %s", rva, got, want)
				}
			}
			if frames, _ := f.Frames(nil, testBase+0x1904); name == "missing" && show(frames) != "bare" {
				t.Errorf("code of no module is %q, expected bare", show(frames))
			}
		})
	}
}

// moved is a file of an image whose code was moved after linking, as of old kernels.
func moved() *testFile {
	var s symbolList
	s.procedure(kindGlobalProc, 0, 0x40, "moved")
	s.procedure(kindGlobalProc, 0x40, 0x20, "gone")
	return &testFile{
		machine: pe.MachineX86, sections: []section{{0x2000, 0x4000}}, original: []section{{0x1000, 0x2000}}, names: []string{"a.c\x00x"},
		modules: []testModule{{symbols: s.b, contributions: []contribution{{section{0, 0x60}, 0}}, c13: slices.Concat(subsection(partFiles, 1, 0), lineRows(0, 0x40, 0, 0, 1, 0x10, 2, 0x30, 3))}},
		publics: []testPublic{{place{1, 0}, publicIsFunction, "_moved@8"}},
		// The second half of the function lies before the first.
		omapTo:    []uint32{0x2100, 0x1020, 0x2120, 0, 0x2200, 0x1000, 0x2220, 0},
		omapFrom:  []uint32{0x1000, 0x2200, 0x1020, 0x2100, 0x1040, 0},
		frameData: bytesOf(0x1000, 0x40, 4, 8, 12, 7, uint16(3), uint16(16), 4),
	}
}

func TestAddressesOfMovedCodeAreTranslated(t *testing.T) {
	f := moved().open(t)
	for rva, want := range map[uint64]string{0x2200: "_moved@8 a.c:1", 0x2211: "_moved@8 a.c:2", 0x2100: "_moved@8 a.c:2", 0x2111: "_moved@8 a.c:3", 0x2120: "", 0x2000: "", 0x1000: ""} {
		frames, _ := f.Frames(nil, testBase+rva)
		if got := show(frames); got != want {
			t.Errorf("%#x: %s, expected %s", rva, got, want)
		}
		if len(frames) > 0 && (frames[0].Start != testBase+0x2200 || frames[0].Function != "moved") {
			t.Errorf("%#x: %+v, expected moved from 0x12200 on", rva, frames[0])
		}
	}
	n := 0
	if err := f.EachFunction(func(fn *symbol.FunctionCode) bool {
		n++
		if got, want := fmt.Sprintf("%s %x", fn.Function, fn.Ranges), "moved [{12100 12120} {12200 12220}]"; got != want {
			t.Errorf("%s, expected %s", got, want)
		}
		if got, want := fmt.Sprintf("%x", fn.Lines), "[{{12100 12110} 612e63 2} {{12110 12120} 612e63 3} {{12200 12210} 612e63 1} {{12210 12220} 612e63 2}]"; got != want {
			t.Errorf("lines %s, expected %s", got, want)
		}
		return true
	}); err != nil || n != 1 {
		t.Errorf("%d functions, %v", n, err)
	}
	if d, ok := f.FrameData(testBase + 0x2105); !ok || d.Locals != 4 || d.SavedRegisters != 16 || d.Prologue != 3 {
		t.Errorf("frame data %+v, %v", d, ok)
	}
	if _, ok := f.FrameData(testBase + 0x2130); ok {
		t.Error("frame data where there is no code")
	}
}

func TestFrameDataAndFPOAreRead(t *testing.T) {
	program := "$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + ="
	file := &testFile{
		machine: pe.MachineX86, sections: code, names: []string{program},
		frameData: slices.Concat(bytesOf(0x1000, 0x40, 0, 4, 0, 1, uint16(2), uint16(0), 4), bytesOf(0x1001, 0x3f, 8, 4, 12, 1, uint16(1), uint16(4), 0)),
		fpo:       slices.Concat(bytesOf(0x1000, 0x40, 9, uint16(9), uint8(9), uint8(0)), bytesOf(0x1040, 0x10, 3, uint16(2), uint8(5), uint8(0x13)), bytesOf(0x1050, 0x10, 0, uint16(0), uint8(0), uint8(0x40))),
	}
	f := file.open(t)
	for rva, want := range map[uint64]symbol.FrameData{
		0x1000: {Start: 0x11000, End: 0x11040, Prologue: 2, Parameters: 4, Program: program},
		0x1020: {Start: 0x11001, End: 0x11040, Prologue: 1, Parameters: 4, SavedRegisters: 4, Locals: 8, MaxStack: 12, Program: program},
		0x104f: {IsFPO: true, Start: 0x11040, End: 0x11050, Prologue: 5, Parameters: 8, SavedRegisters: 12, Locals: 12, AllocatesBasePointer: true},
		0x1050: {IsFPO: true, Start: 0x11050, End: 0x11060},
		0x1060: {},
	} {
		if got, ok := f.FrameData(testBase + rva); got != want || ok != (want.End != 0) {
			t.Errorf("%#x: %+v, %v, expected %+v", rva, got, ok, want)
		}
	}
}

func TestFilesThatCannotNameCodeSayWhy(t *testing.T) {
	var old symbolList
	old.procedure(kindGlobalProc, 0, 0x40, "f")
	oldModule := &testFile{sections: code, modules: []testModule{{symbols: old.b, contributions: []contribution{{section{0, 0x40}, 0}}}}}
	for name, c := range map[string]struct {
		file *testFile
		want string
	}{
		"fastlink": {&testFile{sections: code, features: []uint32{20140508, isMinimal}}, "/DEBUG:FASTLINK"},
		"sections": {&testFile{}, "no stream with the headers of sections"},
	} {
		f := c.file.open(t)
		_, _ = f.Frames(nil, testBase+0x1000)
		if p := strings.Join(f.Problems(), "\n"); !strings.Contains(p, c.want) || !strings.HasPrefix(p, "a.pdb: ") {
			t.Errorf("%s: problems %q, expected %q", name, p, c.want)
		}
	}
	// A module of an older version of symbols.
	data := oldModule.bytes()
	at := bytes.Index(data, append(bytesOf(4), old.b[:8]...))
	copy(data[at:], bytesOf(2))
	f, err := New("a.pdb", data, testBase)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Frames(nil, testBase+0x1000)
	if p := strings.Join(f.Problems(), "\n"); !strings.Contains(p, "symbols of the version 2") {
		t.Errorf("problems %q, expected the version", p)
	}
}

func TestBadFilesAreErrors(t *testing.T) {
	info, dbi := bytesOf(20000404, 0, 7, []byte("0123456789abcdef"), 0, 0, 0, 0, 0), bytesOf(uint32(dbiSignature), 19990903, make([]byte, dbiHeader-8))
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"another file": {[]byte("MZ"), "not a PDB file"},
		"no streams":   {msftest.Container(nil), "stream 1, which has the identity, is missing"},
		"old":          {msftest.Container(nil, bytesOf(19970604, make([]byte, 24)), nil, dbi), "version 19970604"},
		"types alone":  {msftest.Container(nil, info, nil), "stream 3, which lists the modules, is missing"},
		"signature":    {msftest.Container(nil, info, nil, make([]byte, dbiHeader)), "expected 0xffffffff"},
	} {
		if _, err := New("a.pdb", c.data, 0); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "a.pdb: ") {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
	// A part of DBI of 4 GiB, and what is before it.
	whole := odd().bytes()
	at := bytes.Index(whole, bytesOf(uint32(dbiSignature), 19990903))
	copy(whole[at+28:], bytesOf(0xfffffff0))
	f, err := New("a.pdb", whole, testBase)
	if err != nil {
		t.Fatal(err)
	}
	if p := strings.Join(f.Problems(), "\n"); !strings.Contains(p, "part 1 of 4294967280 bytes") {
		t.Errorf("problems %q", p)
	}
}

// Each of many functions has the code of all others: the lists of them end in time.
func TestFunctionsThatOverlapAreListedWithinBounds(t *testing.T) {
	const count = 1500
	var s symbolList
	var lines []byte
	for i := range uint32(count) {
		s.procedure(kindGlobalProc, i, 0x2000-i, "f")
		lines = append(lines, lineRows(i, 1, 0, 0, i+1)...)
	}
	f := (&testFile{sections: code, modules: []testModule{{symbols: s.b, c13: lines, contributions: []contribution{{section{0, 0x2000}, 0}}}}}).open(t)
	functions := 0
	_ = f.EachFunction(func(*symbol.FunctionCode) bool { functions++; return true })
	_ = f.EachLine(func(*symbol.LineRow) bool { return true })
	if p := strings.Join(f.Problems(), "\n"); functions != count || !strings.Contains(p, "overlap so often") {
		t.Errorf("%d functions of %d, problems %q", functions, count, p)
	}
}

// Object files without code have contributions without bytes, often many at one place.
func TestContributionsWithoutCodeHideNone(t *testing.T) {
	file := odd()
	list := &file.modules[0].contributions
	for range 1000 {
		*list = slices.Insert(*list, 1, contribution{section{0x110, 0x110}, 0})
	}
	if frames, _ := file.open(t).Frames(nil, testBase+0x1118); show(frames) != "?f@ns@@YAXXZ a.cpp:0" {
		t.Errorf("%s, expected ?f@ns@@YAXXZ", show(frames))
	}
}
