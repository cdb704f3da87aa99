// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

const small = "../dwarf/testdata/small5"

// basic leaves out what frames have of declarations, which symbols do not change.
func basic(frames []trace.Symbol) []trace.Symbol {
	for i := range frames {
		f := &frames[i]
		f.Name, f.StartFile, f.StartLine, f.CompDir = "", "", 0, ""
		if f.Inlined {
			f.Start, f.HasStart = 0, false
		}
	}
	return frames
}

func TestSymbolsGiveWhatDWARFLacks(t *testing.T) {
	const file = "/src/small.cc"
	inlined := trace.Symbol{Function: "outer::mix", File: file, Line: 11, Column: 3, Inlined: true}
	tests := []struct {
		address uint64
		want    []trace.Symbol
	}{
		// C linkage in a namespace: DWARF has no linkage name, the symbol is it.
		{0x4000b0, []trace.Symbol{inlined, {
			Function: "outer::c_name", LinkageName: "c_name", Start: 0x4000b0, HasStart: true, File: file, Line: 14, Column: 68}}},
		{0x4000d0, []trace.Symbol{{
			Function: "outer::work(int)", LinkageName: "_ZN5outer4workEi", Start: 0x4000d0, HasStart: true, File: file, Line: 18, Column: 21}}},
		{0x3fffff, nil},
	}
	r := New(open(t, small), nil)
	for _, test := range tests {
		got, err := r.Frames(nil, test.address)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, basic(got)); diff != "" {
			t.Errorf("%#x: %s", test.address, diff)
		}
	}
	if p := r.Problems(); len(p) != 0 {
		t.Errorf("problems: %q", p)
	}
}

// damaged returns small with the bytes of a section overwritten from an offset on.
func damaged(t *testing.T, section string, from uint64) *object.Object {
	t.Helper()
	data, err := os.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	s := f.Section(section)
	for i := s.Offset + from; i < s.Offset+s.Size; i++ {
		data[i] = 0x6e
	}
	o, err := object.New("damaged", data)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestDamagedDWARFDegradesToSymbolsAndSaysWhy(t *testing.T) {
	tests := []struct {
		section string
		from    uint64
		problem string
	}{
		{".debug_info", 0, ".debug_info: unit at 0x0"},
		{".debug_info", 12, ".debug_info: unit at 0x0"},
		{".debug_info", 0x60, ".debug_info: unit at 0x0"}, // behind the unit's own entry
		{".debug_abbrev", 12, ".debug_"},
		{".debug_line", 12, ".debug_line: table at 0x0"},
	}
	want := []trace.Symbol{{Function: "outer::work(int)", LinkageName: "_ZN5outer4workEi", Start: 0x4000d0, HasStart: true}}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.section, test.from), func(t *testing.T) {
			r := New(damaged(t, test.section, test.from), nil)
			got, err := r.Frames(nil, 0x4000d1)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, basic(got)); diff != "" {
				t.Error(diff)
			}
			r.Frames(nil, 0x4000d2)
			p := r.Problems()
			if len(p) != 1 || !strings.Contains(p[0], test.problem) || !strings.Contains(p[0], "damaged") {
				t.Errorf("problems %q, want one that says %q", p, test.problem)
			}
		})
	}
}

func TestADebugFileWithoutDWARFLeavesTheObjectsOwn(t *testing.T) {
	empty := make([]byte, 64)
	copy(empty, "\x7fELF\x02\x01\x01")
	debug, err := object.New("empty.debug", empty)
	if err != nil {
		t.Fatal(err)
	}
	frames, err := New(open(t, small), debug).Frames(nil, 0x4000b0)
	if err != nil || len(frames) != 2 {
		t.Errorf("frames %+v, error %v, want two", frames, err)
	}
}

func TestPiecesThatTheCompilerCutAreNamedByTheirSymbols(t *testing.T) {
	path := compileShapes(t, "g++", "-O2", "-g")
	o := open(t, path)
	r := New(o, nil)
	symbols, err := o.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range symbols {
		for _, suffix := range []string{".cold", ".constprop.0", ".isra.0"} {
			if s.Type != elf.STT_FUNC || !strings.HasSuffix(s.Name, suffix) {
				continue
			}
			seen[suffix] = true
			for _, a := range []uint64{s.Address, s.Address + s.Size - 1} {
				frames, err := r.Frames(nil, a)
				if err != nil || len(frames) == 0 {
					t.Fatalf("%s: frames %+v, error %v", s.Name, frames, err)
				}
				f := frames[len(frames)-1]
				if f.LinkageName != s.Name || f.Start != s.Address || !strings.Contains(f.Function, "("+suffix) || f.Line == 0 {
					t.Errorf("%#x: %+v, want %s at %#x", a, f, s.Name, s.Address)
				}
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("the subject has only %v: the test says little", seen)
	}
}

func TestGoChainsEqualLLVMSymbolizer(t *testing.T) {
	oracle.Tools(t, "llvm-symbolizer-22")
	dir := t.TempDir()
	source := "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(1) }\n"
	for name, text := range map[string]string{"main.go": source, "go.mod": "module small\n"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	oracle.With{Dir: dir}.Run(t, "go", "build", "-o", "small", ".")
	classes := checkChains(t, dir+"/small", open(t, dir+"/small"), nil)
	t.Log(classes)
	if classes[same] != 2000 {
		t.Errorf("%v, want all the same", classes)
	}
}

func TestResolverIsSafeForConcurrentUse(t *testing.T) {
	r := New(open(t, small), nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for a := uint64(0x4000a0); a < 0x400160; a++ {
				r.Frames(nil, a)
				r.Function(a)
				r.Problems()
			}
		})
	}
	wg.Wait()
}

func TestPlainIsTheLastComponent(t *testing.T) {
	tests := []struct{ name, want string }{
		{"f", "f"},
		{"a::b::f", "f"},
		{"f<a::b>", "f"},
		{"a<b::c>::f<d>", "f"},
		{"(anonymous namespace)::f", "f"},
		{"a::operator()", "operator()"},
		{"a::operator<", "operator<"},
		{"my_operator<int>", "my_operator"},
		{"", ""},
		{"a::", ""},
		{"<<>", ""},
	}
	for _, test := range tests {
		if got := plain(test.name); got != test.want {
			t.Errorf("plain(%q) = %q, want %q", test.name, got, test.want)
		}
	}
}
