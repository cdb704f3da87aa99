// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// testAddrx has the addresses 0x1000, 0x2000, 0x2010 and that of dropped code.
func testAddrx(index uint64) (uint64, error) {
	addresses := []uint64{0x1000, 0x2000, 0x2010, ^uint64(0)}
	if index >= uint64(len(addresses)) {
		return 0, fmt.Errorf(".debug_addr has %d entries", len(addresses))
	}
	return addresses[index], nil
}

// listText writes entries for comparing: "kind start-end expression".
func listText(s *LocationLists, offset, base uint64, addrx func(uint64) (uint64, error)) string {
	var lines []string
	for e, err := range s.Entries(offset, base, addrx) {
		switch {
		case err != nil:
			lines = append(lines, err.Error())
		case e.IsDefault():
			lines = append(lines, fmt.Sprintf("%d default %x", e.Offset, e.Expr))
		case e.IsDead:
			lines = append(lines, fmt.Sprintf("%d dead %x", e.Offset, e.Expr))
		default:
			lines = append(lines, fmt.Sprintf("%d 0x%x-0x%x %x", e.Offset, e.Start, e.End, e.Expr))
		}
	}
	return strings.Join(lines, "\n")
}

func lines(l ...string) string { return strings.Join(l, "\n") }

// The bytes are assembled by hand from the tables of DWARF 5, 7.7.3, DWARF 4,
// 2.6.2, and GCC's of split DWARF 4. The base address of the unit is 0x100.
var listCases = []struct {
	name, bytes string
	s           LocationLists // without Data
	offset      uint64
	want        string
}{
	{name: "end_of_list", bytes: "00"},
	{name: "each kind of DWARF 5", bytes: `
		04 10 20 01 50
		01 01
		04 00 8001 01 51
		02 00 02 02 7000
		03 00 10 01 52
		05 01 53
		06 0000000001000000
		04 01 02 00
		07 0030000000000000 0040000000000000 01 54
		08 0050000000000000 8001 01 55
		00 ff`,
		want: lines("0 0x110-0x120 50", "7 0x2000-0x2080 51", "13 0x1000-0x2010 7000", "19 0x1000-0x1010 52",
			"24 default 53", "36 0x100000001-0x100000002 ", "40 0x3000-0x4000 54", "59 0x5000-0x5080 55")},
	{name: "addresses of 4 bytes, big-endian", s: LocationLists{AddressSize: 4, Order: BigEndian}, bytes: `
		06 00001000
		04 00 04 01 50
		07 00002000 00002010 01 51
		08 ffffff00 ff01 01 52
		00`,
		want: lines("5 0x1000-0x1004 50", "10 0x2000-0x2010 51", "21 0xffffff00-0xffffffff 52")},
	{name: "the list at an offset", offset: 2, bytes: "ffff 04 00 01 01 50 00", want: "2 0x100-0x101 50"},
	{name: "an empty range", bytes: "04 05 05 01 50 00", want: "0 0x105-0x105 50"},
	{name: "an expression without bytes", bytes: "04 00 01 00 00", want: "0 0x100-0x101 "},
	{name: "a length of three bytes", bytes: "05 818000 50 00", want: "0 default 50"},
	{name: "view pairs within the list", bytes: "09 01 02 04 00 01 01 50 00", want: "3 0x100-0x101 50"},
	{name: "dropped code by its base address", bytes: `
		06 ffffffffffffffff 04 00 10 01 50
		01 03 04 00 10 01 51
		06 0010000000000000 04 00 10 01 52 00`,
		want: lines("9 dead 50", "16 dead 51", "30 0x1000-0x1010 52")},
	{name: "dropped code by its address", bytes: `
		03 03 10 01 50
		02 03 03 01 51
		08 ffffffffffffffff 20 01 52
		07 ffffffffffffffff 0000000000000000 01 53 00`,
		want: lines("0 dead 50", "5 dead 51", "10 dead 52", "22 dead 53")},

	{name: ".debug_loc", s: LocationLists{Format: DebugLoc}, bytes: `
		1000000000000000 2000000000000000 0100 50
		ffffffffffffffff 0010000000000000
		0000000000000000 0800000000000000 0200 7000
		0400000000000000 0400000000000000 0000
		0000000000000000 0000000000000000 ff`,
		want: lines("0 0x110-0x120 50", "35 0x1000-0x1008 7000", "55 0x1004-0x1004 ")},
	{name: ".debug_loc, 4 bytes, big-endian", s: LocationLists{Format: DebugLoc, AddressSize: 4, Order: BigEndian}, bytes: `
		00000010 00000020 0001 50
		ffffffff 00001000
		00000000 00000008 0002 7000
		fffffff8 fffffffc 0000
		00000000 00000000`,
		want: lines("0 0x110-0x120 50", "19 0x1000-0x1008 7000", "31 0xff8-0xffc ")},
	{name: ".debug_loc, dropped code", s: LocationLists{Format: DebugLoc, AddressSize: 4}, bytes: `
		feffffff feffffff 0100 50
		ffffffff feffffff
		00000000 10000000 0100 51
		00000000 00000000`,
		want: lines("0 0xfe-0xfe 50", "19 dead 51")},
	{name: "DW_LLE_GNU_*", s: LocationLists{Format: DebugLocDWO}, bytes: `
		02 00 02 0100 50
		03 01 10000000 0200 7000
		01 01
		09 01 02
		03 03 10000000 0000
		00`,
		want: lines("0 0x1000-0x2010 50", "6 0x2000-0x2010 7000", "21 dead ")},
	{name: "DW_LLE_GNU_*, big-endian", s: LocationLists{Format: DebugLocDWO, Order: BigEndian}, bytes: `
		03 01 00000010 0002 7000
		00`,
		want: lines("0 0x2000-0x2010 7000")},

	// What is wrong is said with its place.
	{name: "no section", want: "sec: offset 0x0: a location list is expected, the section has 0 bytes"},
	{name: "after the section", bytes: "00", offset: 1, want: "sec: offset 0x1: a location list is expected, the section has 1 bytes"},
	{name: "far after the section", bytes: "00", offset: 1 << 63, want: "sec: offset 0x8000000000000000: a location list is expected, the section has 1 bytes"},
	{name: "address size", s: LocationLists{AddressSize: 9}, bytes: "00", want: "sec: offset 0x0: address size 9, 1 to 8 expected"},
	{name: "no end", bytes: "04 00 01 00", want: lines("0 0x100-0x101 ", "sec: offset 0x4: an entry is expected, the section ends without DW_LLE_end_of_list")},
	{name: "an unknown kind", bytes: "0a", want: "sec: offset 0x0: an entry of kind 0x0a, DW_LLE_* expected"},
	{name: "a kind that split DWARF 4 does not have", s: LocationLists{Format: DebugLocDWO}, bytes: "04 00 01 0000 00", want: "sec: offset 0x0: an entry of kind 0x04, DW_LLE_* expected"},
	{name: "an operand cut off", bytes: "04 00 80", want: "sec: offset 0x0: DW_LLE_offset_pair: operand 2: LEB128 is cut off"},
	{name: "an address cut off", bytes: "06 000000", want: "sec: offset 0x0: DW_LLE_base_address: operand 1: 8 bytes expected, 3 are left"},
	{name: "a long operand", bytes: "04 00 ffffffffffffffffff02 00", want: "sec: offset 0x0: DW_LLE_offset_pair: operand 2: unsigned LEB128 exceeds 64 bits"},
	{name: "an expression cut off", bytes: "05 02 50", want: "sec: offset 0x0: DW_LLE_default_location: expression of 2 bytes, 1 are left"},
	{name: "an expression of any length", bytes: "05 ffffffffffffffffff01", want: "sec: offset 0x0: DW_LLE_default_location: expression of 18446744073709551615 bytes, 0 are left"},
	{name: "a length cut off", bytes: "05", want: "sec: offset 0x0: DW_LLE_default_location: length of the expression: operand 1: LEB128 is cut off"},
	{name: "a range that ends before it starts", bytes: "04 02 01 00 00", want: "sec: offset 0x0: DW_LLE_offset_pair: range ends at 0x101, before its start 0x102"},
	{name: "one behind a range that ends before it starts", bytes: "04 02 01 00  04 02 03 00  00", want: lines("sec: offset 0x0: DW_LLE_offset_pair: range ends at 0x101, before its start 0x102", "4 0x102-0x103 ")},
	{name: "a range past the last address", bytes: "08 00ffffffffffffff 8002 00 00", want: "sec: offset 0x0: DW_LLE_start_length: range of 0x100 bytes from 0xffffffffffffff00, the last address is 0xffffffffffffffff"},
	{name: "an address index", bytes: "03 04 01 00 00", want: "sec: offset 0x0: address index 4: .debug_addr has 4 entries"},
	{name: "an index of a base address", bytes: "01 04 00", want: "sec: offset 0x0: address index 4: .debug_addr has 4 entries"},
	{name: "an index of an end", bytes: "02 00 04 00 00", want: "sec: offset 0x0: address index 4: .debug_addr has 4 entries"},
	{name: ".debug_loc cut off", s: LocationLists{Format: DebugLoc}, bytes: "00", want: "sec: offset 0x0: addresses of an entry: operand 1: 8 bytes expected, 1 are left"},
	{name: ".debug_loc without an end", s: LocationLists{Format: DebugLoc, AddressSize: 4}, bytes: "01000000 02000000 0000", want: lines("0 0x101-0x102 ", "sec: offset 0xa: addresses of an entry: operand 1: 4 bytes expected, 0 are left")},
	{name: ".debug_loc, expression cut off", s: LocationLists{Format: DebugLoc, AddressSize: 4}, bytes: "01000000 02000000 0300 50", want: "sec: offset 0x0: DW_LLE_offset_pair: expression of 3 bytes, 1 are left"},
}

func TestEntriesOfLocationLists(t *testing.T) {
	for _, c := range listCases {
		t.Run(c.name, func(t *testing.T) {
			c.s.Section, c.s.Data = "sec", unhex(t, c.bytes)
			if diff := cmp.Diff(c.want, listText(&c.s, c.offset, 0x100, testAddrx)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryKindOfEntryHasACase(t *testing.T) {
	seen := map[ListEntryKind]bool{ListEnd: true, ListBaseAddress: true, ListBaseAddressx: true, ListViewPair: true}
	for _, c := range listCases {
		c.s.Data = unhex(t, c.bytes)
		for e, err := range c.s.Entries(c.offset, 0x100, testAddrx) {
			if err == nil {
				seen[e.Kind] = true
			}
		}
	}
	for k := range listOperands {
		if !seen[ListEntryKind(k)] {
			t.Errorf("%v has no case", ListEntryKind(k))
		}
	}
	if got := ListEntryKind(0x7f).String(); got != "DW_LLE_0x7f" {
		t.Error(got)
	}
}

func TestAddressIndexWithoutAddressesNamesWhatIsMissing(t *testing.T) {
	s := LocationLists{Section: ".debug_loclists", Data: unhex(t, "03 00 01 00 00")}
	_, err := s.At(0, 0x1000, 0, nil)
	var e *ListError
	if !errors.As(err, &e) || e.Kind != Evaluation || !errors.Is(err, ErrNoContext) {
		t.Errorf("%v", err)
	}
}

func TestListsAreBounded(t *testing.T) {
	long := LocationLists{Data: append(make([]byte, 0), strings.Repeat("\x05\x00", maxListMatches+1)...)}
	long.Data = append(long.Data, 0)
	if _, err := long.At(0, 0, 0, nil); !errors.Is(err, ErrLimit) {
		t.Errorf("many default entries: %v", err)
	}
	many := LocationLists{Data: []byte(strings.Repeat("\x09\x00\x00", maxListEntries+1) + "\x00")}
	if _, err := many.At(0, 0, 0, nil); !errors.Is(err, ErrLimit) {
		t.Errorf("many entries: %v", err)
	}
}

// The list of the tests of matching: 0x100 to 0x110 in r0, 0x108 to 0x120 in
// memory, a default in r2, 0x130 to 0x130 (nothing) in r3.
const matchingList = "04 00 10 01 50 | 04 08 20 02 7110 | 05 01 52 | 04 30 30 01 53 | 00"

func TestAtGivesAllEntriesThatMatch(t *testing.T) {
	s := LocationLists{Data: unhex(t, strings.ReplaceAll(matchingList, "|", ""))}
	noDefault := LocationLists{Data: unhex(t, "04 00 10 01 50 00")}
	dropped := LocationLists{Data: unhex(t, "06 ffffffffffffffff 04 01 10 01 50 00")}
	inverted := LocationLists{Data: unhex(t, "04 20 10 01 51 04 00 10 01 50 00")}
	if _, err := inverted.At(0, 0x110, 0x100, nil); !errors.Is(err, errInverted) {
		t.Errorf("nothing matches but a range that ends before it starts: %v", err)
	}
	for _, c := range []struct {
		section string
		s       *LocationLists
		pc      uint64
		want    []string
	}{
		{"A.2.5.5: bounded, its first address", &s, 0x100, []string{"50"}},
		{"A.2.5.5: overlapping ranges", &s, 0x108, []string{"50", "7110"}},
		{"A.2.5.5: the end is the first address past the range", &s, 0x110, []string{"7110"}},
		{"A.2.5.5: default where no bounded entry applies", &s, 0x120, []string{"52"}},
		{"A.2.5.5: before every range", &s, 0xff, []string{"52"}},
		{"DWARF 5, 2.6.2: a range of no bytes", &s, 0x130, []string{"52"}},
		{"code that the linker dropped", &dropped, 5, nil},
		{"behind a range that ends before it starts", &inverted, 0x108, []string{"50"}},
		{"A.2.5.5: no entry matches", &noDefault, 0x110, nil},
	} {
		exprs, err := c.s.At(0, c.pc, 0x100, nil)
		var got []string
		for _, e := range exprs {
			got = append(got, hex.EncodeToString(e))
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %s %v", c.section, diff, err)
		}
	}
}

// A listContext has a program location.
type listContext struct {
	*testMachine
	pc uint64
}

func (c listContext) ProgramLocation() (uint64, error) { return c.pc, nil }

func TestEvaluateListUnitesThePlaces(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	m.scope = noScope
	m.setRegister(1, 0x4000)
	m.object = memoryAt(0, 0x10)
	m.addrs = []uint64{0x1000}
	for _, c := range []struct {
		section, list string
		pc, bias      uint64
		want          string
	}{
		{"A.2.5.5: one entry", matchingList, 0x100, 0, "register 0"},
		{"A.2.5.5: two entries", matchingList, 0x108, 0, "register 0 | memory 0x4010"},
		{"A.2.5.5: the default entry", matchingList, 0x120, 0, "register 2"},
		{"A.2.5.5: no entry", "00", 0x100, 0, "undefined"},
		{"A.2.5.5: an entry with an address index", "03 00 10 01 50 00", 0x1004, 0, "register 0"},
		{"the load bias", matchingList, 0x7108, 0x7000, "register 0 | memory 0x4010"},
		{"the load bias of DW_OP_addr", "04 00 10 09 030050000000000000 00", 0x7108, 0x7000, "memory 0xc000"},
		{"DWARF 5, 2.6.1.1.4: an expression without operations", "04 00 10 00 00", 0x100, 0, "undefined"},
		{"an incomplete composite becomes complete", "04 00 10 03 509304 00", 0x100, 0, "composite {32: register 0}"},
	} {
		s := LocationLists{Data: unhex(t, strings.ReplaceAll(c.list, "|", ""))}
		e := Evaluator{LoadBias: c.bias}
		l, err := e.EvaluateList(t.Context(), &s, 0, 0x100, listContext{m, c.pc})
		if err != nil || l.String() != c.want {
			t.Errorf("%s: %v %v, %s expected", c.section, l, err, c.want)
		}
		if e.nesting != 0 {
			t.Fatalf("%d evaluations are left under way", e.nesting)
		}
	}
}

func TestEvaluateListFails(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	m.object = memoryAt(0, 0x10)
	for _, c := range []struct {
		section, list string
		ctx           Context
		limits        Limits
		kind          ErrorKind
		offset        uint64
		err           error
		reason        string
	}{
		{section: "A.2.5.5: no program location", list: matchingList, ctx: m, kind: Evaluation, err: ErrNoContext, reason: "program location"},
		{section: "A.2.5.5: the object is unspecified", list: "04 00 10 01 97 00", kind: Evaluation, err: ErrNoContext, reason: ".debug_loclists: offset 0x0: evaluation error: offset 0: DW_OP_push_object_address: object"},
		{section: "A.2.5.5: the stack is empty", list: "04 00 10 01 12 00", kind: IllFormed, err: ErrStackUnderflow, reason: "ill-formed expression: offset 0: DW_OP_dup"},
		{section: "of several entries, the second one", list: "04 00 10 01 50 04 00 10 01 ff 00", kind: IllFormed, offset: 5, reason: "offset 0x5: ill-formed expression: offset 0: opcode 0xff"},
		{section: "the list", list: "0a", kind: IllFormed, reason: "kind 0x0a"},
		{section: "steps are those of all entries", list: "04 00 10 03 969630 04 00 10 03 969630 00", limits: Limits{Steps: 5}, kind: Evaluation, offset: 7, err: ErrLimit, reason: "too many operations"},
	} {
		s := LocationLists{Section: ".debug_loclists", Data: unhex(t, strings.ReplaceAll(c.list, "|", ""))}
		ctx := c.ctx
		if ctx == nil {
			ctx = listContext{m, 0x104}
		}
		e := Evaluator{Limits: c.limits}
		_, err := e.EvaluateList(t.Context(), &s, 0, 0x100, ctx)
		var le *ListError
		if !errors.As(err, &le) || le.Kind != c.kind || le.Offset != c.offset || !strings.Contains(err.Error(), c.reason) || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %#v %v", c.section, le, err)
		}
		if err != nil && kindOf(err) != c.kind {
			t.Errorf("%s: the kind of a list within an evaluation is %v", c.section, kindOf(err))
		}
		if e.nesting != 0 {
			t.Fatalf("%d evaluations are left under way", e.nesting)
		}
	}
}

// TestListsKeepAContextThatFollowsEntries dereferences an implicit pointer in a
// list's expression.
func TestListsKeepAContextThatFollowsEntries(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	m.entries = map[uint64]Location{0x40: RegisterLocation(3, noScope)}
	s := LocationLists{Data: unhex(t, "04 00 10 08 a0 40000000 00 9606 00")}
	var e Evaluator
	l, err := e.EvaluateList(t.Context(), &s, 0, 0x100, listContext{m, 0x104})
	if err != nil || l.String() != "register 3" {
		t.Errorf("%v %v", l, err)
	}
}

func TestHeaderAndIndexOfLoclists(t *testing.T) {
	const (
		entries = "04 00 10 01 50 00 | 04 20 30 01 51 00"
		small   = "1c000000 0500 08 00 02000000 08000000 0e000000 " + entries
		large   = "ffffffff 0000000000000024 0005 04 00 00000002 0000000000000010 0000000000000016 " + entries
	)
	for _, c := range []struct {
		name, bytes string
		s           LocationLists
		want        ListHeader
	}{
		{"32-bit", small, LocationLists{}, ListHeader{0, 5, 8, 4, 2, 12, 32}},
		{"64-bit, big-endian", large, LocationLists{OffsetSize: 8, Order: BigEndian}, ListHeader{0, 5, 4, 8, 2, 20, 48}},
	} {
		c.s.Data = unhex(t, strings.ReplaceAll(c.bytes, "|", ""))
		h, err := c.s.Header(0)
		if diff := cmp.Diff(c.want, h); diff != "" || err != nil {
			t.Errorf("%s: %s %v", c.name, diff, err)
			continue
		}
		c.s.AddressSize = h.AddressSize
		for index, want := range []string{"50", "51"} {
			offset, err := c.s.Indexed(h.Base, uint64(index))
			if err != nil {
				t.Errorf("%s: list %d: %v", c.name, index, err)
				continue
			}
			got := listText(&c.s, offset, 0, nil)
			if !strings.HasSuffix(got, want) || strings.Contains(got, "\n") {
				t.Errorf("%s: list %d at %d: %s", c.name, index, offset, got)
			}
		}
		if _, err := c.s.Indexed(h.Base, 2); err == nil || !strings.Contains(err.Error(), "the table has 2 offsets") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestBadHeadersAndIndexesAreErrors(t *testing.T) {
	for _, c := range []struct {
		bytes  string
		offset uint64
		reason string
	}{
		{"", 1, "offset 0x1: header: the section has 0 bytes"},
		{"080000", 0, "header: 4 bytes expected, 3 are left"},
		{"f0ffffff 0500", 0, "length 0xfffffff0 is reserved"},
		{"ffffffff 00", 0, "8 bytes expected, 1 are left"},
		{"ffffffff ffffffffffffffff 00", 0, "length of 18446744073709551615 bytes, 1 are left"},
		{"09000000 0500 08 00 00000000", 0, "length of 9 bytes, 8 are left"},
		{"04000000 0500 08 00 00000000", 0, "4 bytes expected, 0 are left"},
		{"08000000 0400 08 00 00000000", 0, "version 4, 5 expected"},
		{"08000000 0500 09 00 00000000", 0, "address size 9"},
		{"08000000 0500 08 04 00000000", 0, "segment selectors of 4 bytes"},
		{"08000000 0500 08 00 01000000", 0, "1 offsets of 4 bytes, 0 bytes are left"},
	} {
		s := LocationLists{Section: "sec", Data: unhex(t, c.bytes)}
		var e *ListError
		if _, err := s.Header(c.offset); !errors.As(err, &e) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, %s expected", c.bytes, err, c.reason)
		}
	}
	for _, c := range []struct {
		bytes       string
		size        int
		base, index uint64
		reason      string
	}{
		{"00", 3, 12, 0, "offset size 3"},
		{"00", 4, 12, 0, "the section has 1 bytes"},
		{"00000000", 4, 4, 0, "after a header"},
		{"0000000000000000 01000000", 4, 12, 0, "the section ends after 0 bytes of the table"},
		{"0000000000000000 ffffffff 00000000", 4, 12, 1, "the section ends after 4 bytes of the table"},
		{"0000000000000000 01000000 04000000", 4, 12, 0, "offset 0x4, 4 bytes are left"},
		{"0000000000000000 01000000 04000000", 4, 12, 1 << 62, "the table has 1 offsets"},
	} {
		s := LocationLists{Section: "sec", Data: unhex(t, c.bytes), OffsetSize: c.size}
		if _, err := s.Indexed(c.base, c.index); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, %s expected", c.bytes, err, c.reason)
		}
	}
}

func FuzzLocationLists(f *testing.F) {
	for _, c := range listCases {
		f.Add(unhex(f, c.bytes), uint8(c.s.Format), uint8(c.s.AddressSize), c.s.Order == BigEndian, c.offset, uint64(0x104))
	}
	f.Fuzz(func(t *testing.T, data []byte, format, size uint8, big bool, offset, pc uint64) {
		s := LocationLists{
			Section: "sec", Data: data, Format: ListFormat(format % 3), AddressSize: int(size % 10), Order: fuzzOrder(big),
			OffsetSize: []int{0, 4, 8}[format/3%3],
		}
		last, count := offset, 0
		for e, err := range s.Entries(offset, 0x100, testAddrx) {
			if err != nil {
				mustBeListError(t, err)
				break
			}
			if count > 0 && e.Offset <= last || e.Offset < last || e.Offset+uint64(len(e.Expr)) > uint64(len(data)) {
				t.Fatalf("entry %+v after 0x%x", e, last)
			}
			if !e.IsDead && (e.Start > e.End || e.IsDefault() && e.End != 0) {
				t.Fatalf("entry %+v", e)
			}
			last = e.Offset
			count++
		}
		exprs, err := s.At(offset, pc, 0x100, testAddrx)
		if err != nil {
			mustBeListError(t, err)
		}
		if len(exprs) > count {
			t.Fatalf("%d of %d entries match", len(exprs), count)
		}
		m := newTestMachine(s.Order, 64)
		e := Evaluator{Order: s.Order, Limits: Limits{Steps: 2000, Depth: 50, Parts: 100}}
		if l, err := e.EvaluateList(t.Context(), &s, offset, 0x100, listContext{m, pc}); err != nil {
			mustBeListError(t, err)
		} else if len(exprs) == 0 && !l.IsUndefined() {
			t.Fatalf("no entry matches, and the result is %v", l)
		}
		if e.nesting != 0 {
			t.Fatalf("%d evaluations are left under way", e.nesting)
		}
		if h, err := s.Header(offset); err != nil {
			mustBeListError(t, err)
		} else if h.Base > h.End || h.End > uint64(len(data)) {
			t.Fatalf("header %+v of %d bytes", h, len(data))
		}
		if list, err := s.Indexed(offset, pc); err != nil {
			mustBeListError(t, err)
		} else if list > uint64(len(data)) {
			t.Fatalf("a list at 0x%x of %d bytes", list, len(data))
		}
	})
}

func mustBeListError(t *testing.T, err error) {
	t.Helper()
	var e *ListError
	if !errors.As(err, &e) || e.Err == nil {
		t.Fatalf("%v", err)
	}
}
