// SPDX-License-Identifier: Apache-2.0

package visaasm

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// text is a kernel with a subroutine, and a function: index and line of each
// instruction stand in its operand.
const text = `.version 4.1
.kernel "k"

/// VISA Predefined Variables
.decl V0032 v_type=G type=d num_elts=8 align=hword
.function "_main_0"

_main_0:
    or i1
    FILE "/src/a.cl"
    LOC 13
    LOC 0
    LOC 14
    mul i6 // 14
label_7:
    FILE "/src/b.h"
    add i9
    LOC 3
    add i11                                                                      /// $11
    add i20                                                                      /// $20
.function "sub_1"
sub_1:
    ret i22                                                                      /// $22

.version 4.1
.global_function "f"
.function "f_0"
f_0:
    FILE "/src/a.cl"
    LOC 7
    ret i3
`

func TestInstructionsHaveTheFileAndLineBeforeThem(t *testing.T) {
	m, err := Read("k", []byte(text))
	if err != nil || len(m.Problems()) > 0 {
		t.Fatal(err, m.Problems())
	}
	k, f := m.Unit("k"), m.Unit("f")
	if len(m.Units()) != 2 || k == nil || f == nil || m.Unit("sub_1") != nil {
		t.Fatalf("%+v", m.Units())
	}
	if k.Len != 23 || f.Len != 4 {
		t.Errorf("%d and %d indexes, expected 23 and 4", k.Len, f.Len)
	}
	for _, c := range []struct {
		unit  *Unit
		index uint32
		want  Position
	}{
		{k, 0, Position{"_main_0", true, "", 0}},
		{k, 1, Position{"_main_0", true, "", 0}},
		{k, 6, Position{"_main_0", true, "/src/a.cl", 14}},
		{k, 7, Position{"_main_0", true, "/src/a.cl", 14}},
		{k, 9, Position{"_main_0", true, "/src/b.h", 0}}, // the line is that of another file
		{k, 11, Position{"_main_0", true, "/src/b.h", 3}},
		{k, 20, Position{"_main_0", true, "/src/b.h", 3}},
		{k, 21, Position{"sub_1", false, "", 0}},
		{k, 22, Position{"sub_1", false, "", 0}},
		{f, 3, Position{"f_0", true, "/src/a.cl", 7}},
	} {
		if got, ok := c.unit.At(c.index); !ok || got != c.want {
			t.Errorf("%s %d: %+v %v, expected %+v", c.unit.Name, c.index, got, ok, c.want)
		}
	}
	if got, ok := k.At(k.Len); ok {
		t.Errorf("behind the last: %+v", got)
	}
}

func TestWhatIsNoAssemblyIsAnError(t *testing.T) {
	for _, data := range []string{"", "\n// .version 4.1", ".versions 4", ".version", ".version x", "define void @f() {", "\x03\x02\x23\x07"} {
		if m, err := Read("k", []byte(data)); err == nil {
			t.Errorf("%q: %+v", data, m)
		}
	}
}

// A unit in which something is wrong has no positions; the others keep theirs.
func TestBadLinesCostTheirUnit(t *testing.T) {
	for _, c := range []struct{ was, is, problem string }{
		{"LOC 13", "LOC x", `k: line 11: LOC "x", expected the number of a line`},
		{"LOC 13", "LOC", `k: line 11: LOC "", expected the number of a line`},
		{"LOC 13", "LOC 4294967296", `k: line 11: LOC "4294967296", expected the number of a line`},
		{`"/src/b.h"`, `/src/b.h`, "k: line 16: FILE: expected a path in quotes of at most 65536 bytes"},
		{`"/src/b.h"`, `"` + strings.Repeat("x", 1<<16) + `"`, "k: line 16: FILE: expected a path in quotes of at most 65536 bytes"},
		{"$20", "$11", "k: line 20: instruction 11, expected at least 12"},
		{"$22", "$4294967295", "k: line 23: index 4294967295, expected at most 4294967295"},
		{`.function "_main_0"`, "", "k: line 8: an instruction before the first .function"},
		{`.function "sub_1"`, ".function", "k: line 21: .function: expected a name in quotes"},
		{`.kernel "k"`, ".kernel k", "k: line 2: .kernel: expected one name of the unit, in quotes"},
		{`.function "_main_0"`, ".kernel \"l\"", "k: line 6: .kernel: expected one name of the unit, in quotes"},
	} {
		m, err := Read("k", []byte(strings.Replace(text, c.was, c.is, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{c.problem}, m.Problems()); diff != "" {
			t.Error(diff)
		}
		for i, u := range m.Units() {
			if _, ok := u.At(0); ok != (i == 1) {
				t.Errorf("%s: unit %d has a position: %v", c.problem, i, ok)
			}
		}
	}
}

func TestUnitsOfOneNameAreNotToldApart(t *testing.T) {
	m, err := Read("k", []byte(text+text))
	if err != nil || len(m.Units()) != 4 || m.Unit("k") != nil {
		t.Errorf("%v, %+v", err, m)
	}
}

// The compiler numbers the instructions that become code. Counting gives the same
// numbers.
func TestIndexesAreThoseOfTheCompiler(t *testing.T) {
	oracle.Tools(t, "ocloc")
	source, err := filepath.Abs("../../../testdata/visa/inline.cl")
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`(?m) +/// \$([0-9]+)$`)
	for _, options := range []string{"-g -cl-opt-disable", "-g"} {
		dir := t.TempDir()
		oracle.With{Dir: dir, Env: []string{"IGC_ShaderDumpEnable=1", "IGC_DumpToCustomDir=" + dir + "/"}}.Run(t, "ocloc", "compile", "-file", source, "-device", "tgllp", "-options", options, "-out_dir", filepath.Join(dir, "out"))
		files, err := filepath.Glob(filepath.Join(dir, "*.visaasm"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			numbers := number.FindAllSubmatch(data, -1)
			last, err := strconv.Atoi(string(numbers[len(numbers)-1][1]))
			if err != nil {
				t.Fatal(err)
			}
			with, err := Read("k", data)
			if err != nil || len(with.Problems()) > 0 {
				t.Fatal(err, with.Problems())
			}
			without, err := Read("k", number.ReplaceAll(data, nil))
			if err != nil || len(without.Problems()) > 0 {
				t.Fatal(err, without.Problems())
			}
			a, b := with.Units()[0], without.Units()[0]
			if len(with.Units()) != 1 || len(without.Units()) != 1 || a.Name == "" || a.Len != uint32(last+1) || len(numbers) < 10 {
				t.Errorf("%s: %q with indexes up to %d, expected %d", path, a.Name, a.Len, last+1)
			}
			if fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("%s: counted %v, the compiler has %v", path, b, a)
			}
		}
	}
}

// FuzzRead reads texts and asks for every position: nothing may panic, and what
// is said must be consistent.
func FuzzRead(f *testing.F) {
	f.Add([]byte(text))
	f.Add([]byte(text + text))
	f.Add([]byte(".version 3.6\n.function \"\"\n.function \"f\"\nx: /// $4294967294\ny:\nz:\n"))
	f.Add([]byte(".version 4\n.function \"f\"\nFILE \"\nFILE\nLOC 1 /// $2\nFILE \"a\"b\"\nLOC -1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read("x", data)
		if (err == nil) != Is("x", data) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		for i := range m.Units() {
			u := &m.Units()[i]
			if len(u.places) > len(data) {
				t.Fatalf("%d places of %d bytes", len(u.places), len(data))
			}
			for j, p := range u.places {
				if j > 0 && p.index <= u.places[j-1].index || p.index >= u.Len {
					t.Fatalf("place %d: %+v of %d", j, p, u.Len)
				}
				if got, ok := u.At(p.index); !ok || got != p.Position {
					t.Fatalf("at %d: %+v %v, expected %+v", p.index, got, ok, p.Position)
				}
			}
			if _, ok := u.At(u.Len); ok {
				t.Fatal("a position behind the last one")
			}
		}
	})
}
