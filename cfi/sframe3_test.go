// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/leb128"
)

// sframe3Files are what testdata/sframe3/make.sh makes, and the numbers of the stack
// pointer, the frame pointer and the return address there.
var sframe3Files = []struct {
	name       string
	sp, fp, ra uint64
	pcs        int // with rows
}{
	{"x86_64", 7, 6, 16, 400},
	{"aarch64", 31, 29, 30, 300},
	{"s390x", 15, 11, 14, 60},
	{"s390x-c", 15, 11, 14, 500},
}

// readelfRow is a row, or the head of an FDE, in readelf's listing of an .sframe.
var readelfRow = regexp.MustCompile(`(?m)^ +(?:([0-9a-f]{16})  (RA undefined|\(?(?:sp|fp|r\d+)[+-]\d+\)?) *(\S+)? *(\S+)?|func idx \[\d+\]: pc = (\S+), size = (\d+) bytes(.*)) *$`)

// readelfSFrame3 lists an .sframe as readelf of binutils 2.47 does, in the form of
// sframe3List.
func readelfSFrame3(t *testing.T, name string) (list []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "sframe3", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range readelfRow.FindAllStringSubmatch(string(b), -1) {
		switch {
		case m[5] != "":
			list = append(list, fmt.Sprintf("%s %s%s", m[5], m[6], strings.TrimSpace(m[7])))
		case m[2] == "RA undefined":
			list = append(list, "0x"+strings.TrimLeft(m[1], "0")+" outermost")
		default:
			ra := m[4]
			if strings.HasPrefix(ra, "f") || strings.HasPrefix(ra, "U") {
				ra = "u" // by the header
			}
			list = append(list, fmt.Sprintf("0x%s %s %s %s", strings.TrimLeft(m[1], "0"), m[2], m[3], ra))
		}
	}
	return list
}

// flexText is DW_OP_bregx and what it names, in readelf's words.
func flexText(t *testing.T, expr []byte, register func(uint64) string) string {
	t.Helper()
	n, next, err := leb128.Unsigned(expr, 1)
	offset, _, err2 := leb128.Signed(expr, next)
	if err != nil || err2 != nil || expr[0] != dw.OpBregx {
		t.Fatalf("% x, %v, %v", expr, err, err2)
	}
	return fmt.Sprintf("%s%+d", register(n), offset)
}

func TestSFrame3EqualsReadelf(t *testing.T) {
	for _, c := range sframe3Files {
		t.Run(c.name, func(t *testing.T) {
			table := newSFrame(t, sframeSection(t, filepath.Join("testdata", "sframe3", c.name+".elf")))
			register := func(n uint64) string {
				switch n {
				case c.sp:
					return "sp"
				case c.fp:
					return "fp"
				}
				return fmt.Sprintf("r%d", n)
			}
			rule := func(r Rule) string {
				switch r.Kind {
				case SameValue:
					return "u"
				case Offset:
					return fmt.Sprintf("c%+d", r.Offset)
				case Register:
					return register(r.Register) + "+0"
				case Expression:
					return "(" + flexText(t, r.Expr, register) + ")"
				}
				return fmt.Sprint(r)
			}
			var got []string
			for f, err := range table.FDEs() {
				if err != nil {
					t.Fatal(err)
				}
				attributes := ""
				switch {
				case f.BKey:
					attributes = ", pauth = B key"
				case f.isFlexible:
					attributes = `, attr = "F"`
				case f.SignalFrame:
					attributes = `, attr = "S"`
				}
				got = append(got, fmt.Sprintf("%#x %d%s", f.Start, f.End-f.Start, attributes))
				err := f.Rows(func(r *Row) bool {
					if r.CFA.Kind == NoCFA {
						got = append(got, fmt.Sprintf("%#x outermost", r.Start))
						return true
					}
					cfa := fmt.Sprintf("%s%+d", register(r.CFA.Register), r.CFA.Offset)
					if r.CFA.Kind == CFAExpression {
						cfa = "(" + flexText(t, r.CFA.Expr, register) + ")"
					}
					fp, _ := r.Rule(c.fp)
					ra, _ := r.Rule(c.ra)
					address := rule(ra)
					if c.name == "x86_64" && address == "c-8" {
						address = "u"
					}
					if r.WindowSave {
						address += "[s]"
					}
					if r.SignalFrame != f.SignalFrame {
						t.Errorf("the row at %#x is a signal frame's: %v", r.Start, r.SignalFrame)
					}
					got = append(got, fmt.Sprintf("%#x %s %s %s", r.Start, cfa, rule(fp), address))
					return true
				})
				if err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(readelfSFrame3(t, c.name), got); diff != "" {
				t.Errorf("(-readelf +got):\n%s", diff)
			}
			if len(table.Problems()) > 0 {
				t.Errorf("problems %v", table.Problems())
			}
			checkSFrame(t, table)
		})
	}
}

// The assembler made both sections of the same directives.
func TestSFrame3EqualsEHFrame(t *testing.T) {
	for _, c := range sframe3Files {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join("testdata", "sframe3", c.name+".elf")
			table := newSFrame(t, sframeSection(t, path))
			eh, _ := elfTable(t, path, ".eh_frame")
			pcs := 0
			var got, want Row
			for f, err := range eh.FDEs() {
				if err != nil {
					t.Fatal(err)
				}
				for pc := f.Start; pc < f.End; pc++ {
					s, err := table.FDE(pc)
					if err == nil {
						err = s.RowAt(pc, &got)
					}
					if err == nil {
						err = f.RowAt(pc, &want)
					}
					if err != nil {
						t.Fatal(err)
					}
					pcs++
					if r, _ := want.Rule(c.ra); r.Kind == Undefined {
						if ra, _ := got.Rule(c.ra); ra.Kind != Undefined || got.CFA.Kind != NoCFA {
							t.Fatalf("%#x: %s, expected an outermost frame", pc, text(&got))
						}
						continue
					}
					same := got.CFA.Kind == want.CFA.Kind && got.CFA.Register == want.CFA.Register && got.CFA.Offset == want.CFA.Offset &&
						got.SignalFrame == want.SignalFrame && got.WindowSave == want.WindowSave
					for _, column := range []uint64{c.fp, c.ra} {
						w, ok := want.Rule(column)
						if !ok {
							w.Kind = SameValue
						}
						g, _ := got.Rule(column)
						same = same && g.Kind == w.Kind && g.Register == w.Register && g.Offset == w.Offset
					}
					if !same {
						t.Fatalf("%#x:\n.eh_frame %s\n.sframe   %s", pc, text(&want), text(&got))
					}
				}
			}
			if pcs < c.pcs {
				t.Errorf("%d PCs compared, expected %d or more", pcs, c.pcs)
			}
			t.Logf("%d PCs agree", pcs)
		})
	}
}

// TestSFrame3DataWords has the pairs of flexible FDEs that the assembler does not write,
// and those that are none.
func TestSFrame3DataWords(t *testing.T) {
	const (
		rbp = 6<<3 | flexRegister
		r10 = 10<<3 | flexRegister
	)
	for _, c := range []struct {
		name string
		spec sframeSpec
		want []string
	}{
		{"a CFA alone", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, kind: 1, n: 1, fres: []byte{0, 4, r10, 8}}}},
			[]string{"1000-1004 10+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8"}},
		{"a return address that is a value, a frame pointer in memory", sframeSpec{fdes: []sfdeSpec{
			{start: 0x1000, size: 4, kind: 1, n: 1, fres: []byte{0, 12, r10, 8, rbp, 4, r10 | flexDeref, 0xf8}}}},
			[]string{"1000-1004 10+8 3:u 6:expr:920a78 7:v+0" + lostAMD64 + " 16:valexpr:920604"}},
		{"values that count from the CFA", sframeSpec{fdes: []sfdeSpec{
			{start: 0x1000, size: 4, kind: 1, n: 1, fres: []byte{0, 12, rbp | flexDeref, 8, flexDeref, 0xf0, 0x80, 4}}}},
			[]string{"1000-1004 expr:92060806 3:u 6:v+4 7:v+0" + lostAMD64 + " 16:c-16"}},
		{"words of 2 bytes, a register above 31", sframeSpec{fdes: []sfdeSpec{
			{start: 0x1000, size: 4, kind: 1, n: 1, fres: []byte{0, 0x28, 0x81, 0xff, 8, 0, 0, 0, 0x13, 0x04}}}},
			[]string{".sframe+0x31: malformed SFrame section: data words [-127 8 0 1043]: not pairs for the CFA, the return address and the frame pointer, the first of a register"}},
		{"a register whose number takes all of a byte", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, kind: 1, n: 1, fres: []byte{0, 4, 0xf9, 8}}}},
			[]string{"1000-1004 31+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8"}},
		{"a CFA that counts from the CFA", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, kind: 1, n: 1, fres: []byte{0, 4, flexDeref, 8}}}},
			[]string{".sframe+0x31: malformed SFrame section: data words [2 8]: not pairs for the CFA, the return address and the frame pointer, the first of a register"}},
		{"no CFA", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, kind: 1, n: 1, fres: []byte{0, 2, 0}}}},
			[]string{".sframe+0x31: malformed SFrame section: data words [0]: not pairs for the CFA, the return address and the frame pointer, the first of a register"}},
		{"half a pair", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, kind: 1, n: 1, fres: []byte{0, 6, r10, 8, 2}}}},
			[]string{".sframe+0x31: malformed SFrame section: data words [81 8 2]: not pairs for the CFA, the return address and the frame pointer, the first of a register"}},
		{"a bit that is not used", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, kind: 1, n: 1, fres: []byte{0, 4, r10 | flexUnused, 8}}}},
			[]string{".sframe+0x31: malformed SFrame section: data words [85 8]: not pairs for the CFA, the return address and the frame pointer, the first of a register"}},
		{"seven words", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, kind: 1, n: 1, fres: []byte{0, 14, 0, 0, 0, 0, 0, 0, 0}}}},
			[]string{".sframe+0x31: malformed SFrame section: info word 0xe of an FRE"}},
		{"an FDE type that is not known", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, kind: 2}}},
			[]string{".sframe+0x2e: malformed SFrame section: info word 0x200 of an FDE"}},
		{"a bit of an FDE that is not used", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, info: 0x40}}},
			[]string{".sframe+0x2e: malformed SFrame section: info word 0x40 of an FDE"}},
		{"an attribute that is cut", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, offset: 1}}},
			[]string{".sframe+0x28: data ends early: 5 bytes of an FDE's attribute at 0x1 of 0x5"}},
		{"more FREs than there are bytes", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, n: 3, fres: []byte{0, 2, 8}}}},
			[]string{".sframe+0x24: data ends early: 3 FREs at 0x5 of 0x8"}},
		{"a flexible FDE without FREs has no row", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 4, kind: 1}}}, nil},
		{"an FDE without FREs is outermost, a row without words too, whatever its other bits", sframeSpec{fdes: []sfdeSpec{
			{start: 0x1000, size: 4}, {start: 0x1004, size: 4, n: 1, fres: []byte{0, 1}}}},
			[]string{"1000-1004 none 16:u", "1004-1008 none 16:u"}},
		{"code far away, both ways", sframeSpec{flags: 5, address: 1 << 40, fdes: []sfdeSpec{
			{start: 0x1000, size: 4, n: 1, fres: []byte{0, 3, 8}}, {start: 1 << 50, size: 4, n: 1, fres: []byte{0, 3, 8}}}},
			[]string{"1000-1004 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8", "4000000000000-4000000000004 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8"}},
		{"blocks that repeat", sframeSpec{fdes: []sfdeSpec{{start: 0x1000, size: 8, info: 0x10, block: 4, n: 1, fres: []byte{0, 3, 8}}}},
			[]string{"1000-1004 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8", "1004-1008 7+8 3:u 6:s 7:v+0" + lostAMD64 + " 16:c-8"}},
		{"an odd offset is no register on s390x", sframeSpec{abi: 4, fdes: []sfdeSpec{{start: 0x1000, size: 2, n: 1, fres: []byte{0, 7, 0, 0xd1, 0xb9}}}},
			[]string{"1000-1002 15+160 6:u 7:u 8:u 9:u 10:u 11:c-71 12:u 13:u 14:c-47 15:v-160" + lostS390X}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spec.version = 3
			table := newSFrame(t, c.spec.section())
			if diff := cmp.Diff(c.want, sframeRows(table)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			checkSFrame(t, table)
		})
	}
}

func TestSFrame3FlagOfVersion2(t *testing.T) {
	if _, err := NewSFrame(sframeSpec{version: 3, flags: 2}.section()); !errors.Is(err, ErrSFrame) {
		t.Errorf("%v, want %v", err, ErrSFrame)
	}
}
