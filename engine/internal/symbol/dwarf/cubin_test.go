// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
)

// openCubin opens a file of testdata/cubin, whose sections of code are given addresses.
func openCubin(t testing.TB, name string) (*object.Object, *Reader) {
	t.Helper()
	o := openObject(t, "testdata/cubin/"+name)
	laid, err := o.LaidOut()
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(laid)
	if err != nil {
		t.Fatal(err)
	}
	return laid, r
}

// lineChainAt is the chain of lines at an address, innermost first, as the files of answers have it.
func lineChainAt(t testing.TB, r *Reader, address uint64) string {
	t.Helper()
	frames, err := r.Frames(nil, address)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for i := range frames {
		if frames[i].Inlined != (i < len(frames)-1) {
			t.Errorf("%#x: frame %d of %d is inlined: %v", address, i, len(frames), frames[i].Inlined)
		}
		list = append(list, fmt.Sprintf("%s:%d", frames[i].File, frames[i].Line))
	}
	return strings.Join(list, " <- ")
}

// Every instruction has the line and the inlined calls that nvdisasm prints.
func TestLinesOfCubinsAreThoseOfNvdisasm(t *testing.T) {
	for _, name := range []string{"sum75", "sum120"} {
		t.Run(name, func(t *testing.T) {
			laid, r := openCubin(t, name+".cubin")
			compared, chain := 0, ""
			var section *object.Section
			next := uint64(0)
			upTo := func(end uint64) {
				for ; section != nil && next < end; next += 16 {
					compared++
					if got := lineChainAt(t, r, section.Address+next); got != chain {
						t.Errorf("%s+%#x: %q, nvdisasm has %q", section.Name, next, got, chain)
					}
				}
			}
			for line := range strings.Lines(string(mustRead(t, "testdata/cubin/"+name+".txt"))) {
				offset, rest, isRow := strings.Cut(strings.TrimSpace(line), " ")
				if !isRow {
					if section != nil {
						upTo(section.Size)
					}
					if section, next = laid.Section(offset), 0; section == nil {
						t.Fatalf("no section %s", offset)
					}
					continue
				}
				var at uint64
				if _, err := fmt.Sscanf(offset, "%x", &at); err != nil {
					t.Fatal(err)
				}
				upTo(at)
				chain = rest
			}
			upTo(section.Size)
			if problems := r.Problems(); compared < 100 || len(problems) > 0 {
				t.Errorf("%d instructions compared, problems %q", compared, problems)
			}
		})
	}
}

// inlinedCall is the opcode that says which row has the call, and where the name is.
func inlinedCall(context, name byte) []byte { return []byte{0, 3, lneInlinedCall, context, name} }

// Chains that have no end, or lead out of the table, leave the innermost function and a function
// without a position, and are said.
func TestInlinedCallsThatLeadNowhereAreSaid(t *testing.T) {
	row := []byte{lnsCopy, lnsAdvancePC, 4}
	for _, test := range []struct {
		name, want, problem string
		program             [][]byte
	}{
		{"a row that is its own call", "a.c:1 <- :0", "do not end within 256", [][]byte{inlinedCall(1, 0), row}},
		{"rows in a circle", "a.c:1 <- :0", "do not end within 256", [][]byte{inlinedCall(2, 0), row, inlinedCall(1, 0), row}},
		{"a row that is not there", "a.c:1 <- :0", "row 9 is the call of row at 0x1000, the sequence has 1 rows", [][]byte{inlinedCall(9, 0), row}},
		{"a name that is not there", "a.c:1 <- a.c:2", ".debug_str: offset 0x7f: a string is expected", [][]byte{{lnsAdvanceLine, 1, lnsCopy, lnsAdvanceLine, 127}, inlinedCall(1, 127), row}},
		{"operands that do not fit", "a.c:1", "", [][]byte{{0, 4, lneInlinedCall, 1, 0, 0}, row}},
		{"operands that are cut", "a.c:1", "", [][]byte{{0, 2, lneInlinedCall, 1}, row}},
		{"a name alone", "a.c:1", "", [][]byte{{0, 2, lneSetFunctionName, 1}, row}},
		{"a sequence that begins", "a.c:1", "", [][]byte{inlinedCall(1, 0), {0, 1, lneEndSequence}, setAddress(0x1000), row}},
		{"rows that are not in order", "a.c:1 <- a.c:3", "", [][]byte{setAddress(0x1010), {lnsAdvanceLine, 2}, row, setAddress(0x1000), {lnsAdvanceLine, 126}, inlinedCall(1, 0), row, setAddress(0x1020)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			program := setAddress(0x1000)
			for _, p := range test.program {
				program = append(program, p...)
			}
			program = append(program, 0, 1, lneEndSequence)
			r := &Reader{main: &file{object: openObject(t, "testdata/small4"), sections: sections{line: lineProgram(1, 1, program...), str: []byte("callee\x00")}}}
			r.main.reader = r
			if got := lineChainAt(t, r, 0x1000); got != test.want {
				t.Errorf("%q, expected %q", got, test.want)
			}
			problems := strings.Join(r.Problems(), "\n")
			if !strings.Contains(problems, test.problem) || test.problem == "" && problems != "" {
				t.Errorf("problems %q, expected %q", problems, test.problem)
			}
		})
	}
}

// inlinedNamesAt are the names of the functions that were inlined at an offset of a section.
func inlinedNamesAt(t *testing.T, o *object.Object, r *Reader, section string, offset uint64) string {
	t.Helper()
	frames, err := r.Frames(nil, o.Section(section).Address+offset)
	if err != nil || len(frames) == 0 {
		t.Fatalf("%d frames, %v", len(frames), err)
	}
	var list []string
	for i := range frames[:len(frames)-1] {
		list = append(list, frames[i].Function)
	}
	return strings.Join(list, " <- ")
}

// nvlink joins .debug_str and leaves where the names of a table begin as it was.
func TestNamesOfInlinedCallsAreFoundInJoinedTables(t *testing.T) {
	laid, r := openCubin(t, "joined90.cubin")
	for section, want := range map[string]string{".text._Z4oncePii": "square(int) <- both(int, int)", ".text._Z5thirdPii": "int clamp<int>(int, int)"} {
		offset := map[string]uint64{".text._Z4oncePii": 0xb0, ".text._Z5thirdPii": 0xf0}[section]
		if got := inlinedNamesAt(t, laid, r, section, offset); got != want {
			t.Errorf("%s+%#x: %q, expected %q", section, offset, got, want)
		}
	}
	if p := r.Problems(); len(p) > 0 {
		t.Errorf("problems %q", p)
	}
	// With another string behind them it is not known which are whose.
	_, r = openCubin(t, "joined90.cubin")
	r.main.str = append(r.main.str[:len(r.main.str):len(r.main.str)], "other\x00"...)
	if got := inlinedNamesAt(t, laid, r, ".text._Z5thirdPii", 0xf0); got != "" {
		t.Errorf("%q, expected no name", got)
	}
	if p := strings.Join(r.Problems(), "\n"); !strings.Contains(p, "2 tables have names from offset 0 of .debug_str on, which a linker joined") {
		t.Errorf("problems %q", p)
	}
}

// Each row has the lines of PTX that its code was made from, of the text that its file has.
func TestLinesOfPTXAreOfTheFilesOwnText(t *testing.T) {
	laid, _ := openCubin(t, "joined90.cubin")
	p, err := NewPTX(laid)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	start := laid.Section(".text._Z5thirdPii").Address
	if err := p.EachRow(start+0xe0, start+0x110, func(r PTXRow) {
		got = append(got, fmt.Sprintf("%#x-%#x %d %s", r.Start-start, r.End-start, r.Line, r.Text))
	}); err != nil {
		t.Fatal(err)
	}
	want := "0xe0-0xf0 56 mad.lo.s32 \t%r3, %r1, %r1, 1;|0xf0-0x100 58 selp.b32 \t%r4, 7, %r3, %p1;|0x100-0x110 60 add.s32 \t%r5, %r2, %r4;"
	if text := strings.Join(got, "|"); text != want || len(p.Problems()) > 0 {
		t.Errorf("%q, expected %q; problems %q", text, want, p.Problems())
	}
	if _, err := NewPTX(openObject(t, "testdata/small4")); !errors.Is(err, ErrNoPTX) {
		t.Errorf("%v, expected %v", err, ErrNoPTX)
	}
}

// FuzzPTX reads hostile tables and texts of PTX.
func FuzzPTX(f *testing.F) {
	laid, _ := openCubin(f, "joined90.cubin")
	for _, s := range laid.Sections() {
		if data, err := s.Data(); err == nil && s.Name == ptxLines {
			f.Add(data, []byte("one\x00two\x00"))
		}
	}
	f.Fuzz(func(t *testing.T, lines, text []byte) {
		file := &file{object: laid, lineName: ptxLines, sections: sections{line: lines}}
		p := &PTX{lines: &Reader{main: file}, texts: map[string][][]byte{ptxText: bytes.Split(text, []byte{0})}}
		file.reader = p.lines
		last := uint64(0)
		if err := p.EachRow(0, 1<<20, func(r PTXRow) {
			if r.Start < last || r.End <= r.Start || r.End > 1<<20 {
				t.Errorf("row from %#x to %#x behind %#x", r.Start, r.End, last)
			}
			last = r.End
		}); err != nil {
			t.Log(err)
		}
	})
}

// Tables that say nothing keep no memory, however many there are.
func TestEmptyTablesTakeNoMemory(t *testing.T) {
	empty := lineProgram(1, 1)
	f := &file{object: openObject(t, "testdata/small4"), sections: sections{line: bytes.Repeat(empty, 1<<14)}}
	r := &Reader{main: f}
	f.reader = r
	if frames, err := r.Frames(nil, 0x1000); err != nil || len(frames) > 0 {
		t.Errorf("%v, %v", frames, err)
	}
	if n := len(f.lineTables.tables); n > 0 || r.MemorySize() > 1<<16 {
		t.Errorf("%d tables and %d bytes are kept of %d bytes", n, r.MemorySize(), len(f.line))
	}
}
