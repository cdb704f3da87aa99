// SPDX-License-Identifier: Apache-2.0

package symtab

import (
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

const (
	global = elf.STB_GLOBAL
	weak   = elf.STB_WEAK
	local  = elf.STB_LOCAL
)

func function(name string, start, size uint64, binding elf.SymBind) candidate {
	return candidate{start: start, end: start + size, limit: 0x10000, name: name, binding: binding, typed: true}
}

func notype(name string, start, size uint64) candidate {
	c := function(name, start, size, global)
	c.typed = false
	return c
}

func TestTheNameOfSeveralIsTheOneThatUsersWrite(t *testing.T) {
	tests := []struct {
		name       string
		candidates []candidate
		want       string
	}{
		{"global before local", []candidate{function("_IO_puts", 0, 8, global), function("aa", 0, 8, local)}, "_IO_puts"},
		{"weak before local", []candidate{function("local", 0, 8, local), function("_weak", 0, 8, weak)}, "_weak"},
		{"fewer underscores before binding", []candidate{function("__poll", 0, 8, global), function("poll", 0, 8, weak)}, "poll"},
		{"global before weak", []candidate{function("b", 0, 8, global), function("a", 0, 8, weak)}, "b"},
		{"shorter", []candidate{function("memcpy_generic", 0, 8, global), function("memcpy", 0, 8, global)}, "memcpy"},
		{"by letter last", []candidate{function("index", 0, 8, global), function("aaaaa", 0, 8, global)}, "aaaaa"},
		{"function before label", []candidate{notype("a", 0, 8), function("__long", 0, 8, local)}, "__long"},
		{"with a size before without", []candidate{function("a", 0, 0, global), function("__long", 0, 8, local)}, "__long"},
		{"raise", []candidate{function("__GI_raise", 0, 8, local), function("raise", 0, 8, global), function("gsignal", 0, 8, weak)}, "raise"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for range 2 {
				s, ok := build(append([]candidate(nil), test.candidates...)).Function(4)
				if !ok || s.Name != test.want {
					t.Errorf("name %q, want %q", s.Name, test.want)
				}
				// The order of the table does not matter.
				for i, j := 0, len(test.candidates)-1; i < j; i, j = i+1, j-1 {
					test.candidates[i], test.candidates[j] = test.candidates[j], test.candidates[i]
				}
			}
		})
	}
}

func TestFunctionIsTheNearestThatHoldsTheAddress(t *testing.T) {
	table := build([]candidate{
		function("outer", 0x100, 0x100, global),
		function("inner", 0x140, 0x10, local),
		notype("label", 0x160, 0),
		function("prefix", 0x100, 0x8, local), // another name of outer's beginning, and a lesser one
		function("_whole", 0x80, 0x40, local),
		function("beginning", 0x80, 0x8, global),
		function("after", 0x200, 0x10, global),
		function("open", 0x300, 0, global),
		function("next", 0x340, 0x10, global),
		{start: 0x400, end: 0x400, limit: 0x440, name: "last", typed: true},
		{start: 0x500, end: 0x500, name: "nowhere", typed: true},
	})
	tests := []struct {
		address uint64
		want    string
		bounds  [2]uint64
	}{
		{0x7f, "", [2]uint64{}},
		{0x80, "beginning", [2]uint64{0x80, 0x88}},
		{0x88, "_whole", [2]uint64{0x80, 0xc0}},
		{0xff, "", [2]uint64{}},
		{0x100, "outer", [2]uint64{0x100, 0x200}},
		{0x108, "outer", [2]uint64{0x100, 0x200}},
		{0x140, "inner", [2]uint64{0x140, 0x150}},
		{0x150, "outer", [2]uint64{0x100, 0x200}},
		{0x168, "outer", [2]uint64{0x100, 0x200}},
		{0x1ff, "outer", [2]uint64{0x100, 0x200}},
		{0x20f, "after", [2]uint64{0x200, 0x210}},
		{0x210, "", [2]uint64{}},
		{0x33f, "open", [2]uint64{0x300, 0x300}},
		{0x340, "next", [2]uint64{0x340, 0x350}},
		{0x350, "", [2]uint64{}},
		{0x43f, "last", [2]uint64{0x400, 0x400}},
		{0x440, "", [2]uint64{}},
		{0x501, "", [2]uint64{}},
		{^uint64(0), "", [2]uint64{}},
	}
	for _, test := range tests {
		s, ok := table.Function(test.address)
		if ok != (test.want != "") || s.Name != test.want || [2]uint64{s.Start, s.End} != test.bounds {
			t.Errorf("%#x: %+v, want %q %#x", test.address, s, test.want, test.bounds)
		}
		frames, err := table.Frames(nil, test.address)
		if err != nil || (len(frames) == 1) != ok || ok && (frames[0].Function != test.want || frames[0].Start != test.bounds[0] || !frames[0].HasStart) {
			t.Errorf("%#x: frames %+v, error %v", test.address, frames, err)
		}
	}
}

// find against its definition, over random functions that have sizes.
func TestFindEqualsASearchOfAll(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		list := make([]candidate, random.IntN(9))
		for i := range list {
			list[i] = function(fmt.Sprint("f", i), random.Uint64N(16), 1+random.Uint64N(10), global)
		}
		table := build(append([]candidate(nil), list...))
		for a := range uint64(30) {
			var want *candidate
			for i := range list {
				c := &list[i]
				if c.start > a || a >= c.end {
					continue
				}
				if want == nil || c.start > want.start || c.start == want.start && better(c, want) < 0 {
					want = c
				}
			}
			got := table.find(a)
			switch {
			case want == nil && got == nil:
			case want == nil || got == nil || got.start != want.start:
				t.Fatalf("%d in %+v: %+v, want %+v", a, list, got, want)
			}
		}
	}
}

func TestDeepNestingIsFoundAndBounded(t *testing.T) {
	var list []candidate
	const n = 20000
	for i := range uint64(n) {
		list = append(list, function("f", i, 2*(n-i), global))
	}
	table := build(list)
	if s, ok := table.Function(n - 1); !ok || s.Start != n-1 {
		t.Errorf("%+v, want the innermost", s)
	}
	if s, ok := table.Function(n + 100); !ok || s.Start != n-101 {
		t.Errorf("%+v, want the one 101 levels out", s)
	}
	// Beyond the bound nothing is said, rather than something wrong.
	if s, ok := table.Function(2*n - 1); ok {
		t.Errorf("%+v, want none", s)
	}
}

func TestFunctionsAreSortedAndNamedOnce(t *testing.T) {
	table := build([]candidate{
		function("b@@V2", 0x20, 8, global), function("_b", 0x20, 8, weak), function("a", 0x10, 8, local),
	})
	want := []symbol.Symbol{{Name: "a", Start: 0x10, End: 0x18}, {Name: "b", Start: 0x20, End: 0x28}}
	if diff := cmp.Diff(want, table.Functions()); diff != "" {
		t.Error(diff)
	}
}

func TestFramesAreDemangled(t *testing.T) {
	c := function("_ZN1n1fEi@@V", 0x10, 8, local)
	c.file = "f.cc"
	frames, err := build([]candidate{c}).Frames(nil, 0x12)
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.Symbol{{Function: "n::f(int)", LinkageName: "_ZN1n1fEi", Start: 0x10, HasStart: true, File: "f.cc"}}
	if diff := cmp.Diff(want, frames); diff != "" {
		t.Error(diff)
	}
}

func openObject(t testing.TB, path string) *object.Object {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

const assembly = `
	.text
	.globl first
	.type first, @function
first:	nop
label:	nop
	nop
	.size first, .-first
	.type chosen, @gnu_indirect_function
	.globl chosen
chosen:	nop
	.size chosen, .-chosen
untyped:
	nop
	.globl exported
	.type exported, @function
	.set exported, second
	.type second, @function
second:	nop
	.size second, .-second
	.size exported, .-second
	.data
	.type object, @object
object:	.quad 0
	.size object, 8
data_label: .quad 0
`

// assembled links a shared object of the assembly.
func assembled(t testing.TB) (dir, path string) {
	t.Helper()
	oracle.Tools(t, "gcc", "objcopy", "nm")
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.s"), []byte(assembly), 0o644); err != nil {
		t.Fatal(err)
	}
	oracle.With{Dir: dir}.Run(t, "gcc", "-shared", "-nostdlib", "-o", "a.so", "a.s")
	return dir, filepath.Join(dir, "a.so")
}

func names(t *Table) string {
	var list []string
	for _, s := range t.Functions() {
		list = append(list, fmt.Sprintf("%s+%d", s.Name, s.End-s.Start))
	}
	return strings.Join(list, " ")
}

func TestTablesOfAnObjectAndItsDebugFile(t *testing.T) {
	dir, path := assembled(t)
	oracle.With{Dir: dir}.Run(t, "objcopy", "--only-keep-debug", "a.so", "a.debug")
	oracle.With{Dir: dir}.Run(t, "objcopy", "--strip-all", "a.so", "stripped.so")
	all := "first+3 chosen+1 untyped+0 exported+1"
	dynamic := "first+3 chosen+1 exported+1"
	tests := []struct {
		name  string
		files []string
		want  string
	}{
		{"whole", []string{"a.so"}, all},
		{"stripped", []string{"stripped.so"}, dynamic},
		{"stripped and debug file", []string{"stripped.so", "a.debug"}, all},
		{"debug file first", []string{"a.debug", "stripped.so"}, all},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var objects []*object.Object
			for _, f := range test.files {
				objects = append(objects, openObject(t, filepath.Join(dir, f)))
			}
			table, err := New(append(objects, nil)...)
			if err != nil {
				t.Fatal(err)
			}
			if got := names(table); got != test.want {
				t.Errorf("functions %s, want %s", got, test.want)
			}
		})
	}
	_ = path
}

func TestMiniDebugInfoGivesTheFunctionsThatDynsymLacks(t *testing.T) {
	dir, _ := assembled(t)
	oracle.Tools(t, "xz")
	oracle.With{Dir: dir}.Run(t, "objcopy", "--strip-all", "a.so", "mini.so")
	oracle.With{Dir: dir}.Run(t, "objcopy", "-S", "--keep-symbol=untyped", "--remove-section", ".data", "a.so", "minidebug")
	oracle.With{Dir: dir}.Run(t, "xz", "-k", "minidebug")
	oracle.With{Dir: dir}.Run(t, "objcopy", "--add-section", ".gnu_debugdata=minidebug.xz", "mini.so")
	table, err := New(openObject(t, filepath.Join(dir, "mini.so")))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(table), "first+3 chosen+1 untyped+0 exported+1"; got != want {
		t.Errorf("functions %s, want %s", got, want)
	}
}

func TestADamagedMiniDebugInfoIsAnErrorAndTheRestIsRead(t *testing.T) {
	dir, _ := assembled(t)
	if err := os.WriteFile(filepath.Join(dir, "bad"), []byte("no xz"), 0o644); err != nil {
		t.Fatal(err)
	}
	oracle.With{Dir: dir}.Run(t, "objcopy", "--add-section", ".gnu_debugdata=bad", "a.so", "bad.so")
	table, err := New(openObject(t, filepath.Join(dir, "bad.so")))
	if err == nil || !strings.Contains(err.Error(), ".gnu_debugdata") {
		t.Errorf("error %v, want one that names .gnu_debugdata", err)
	}
	if table == nil || !strings.Contains(names(table), "first") {
		t.Errorf("the other symbols are missing")
	}
}

func TestAnObjectWithoutSymbolsHasAnEmptyTable(t *testing.T) {
	data := make([]byte, 64)
	copy(data, "\x7fELF\x02\x01\x01")
	o, err := object.New("empty", data)
	if err != nil {
		t.Fatal(err)
	}
	table, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := table.Function(1); ok || len(table.Functions()) != 0 {
		t.Error("functions in an object without symbols")
	}
}

func FuzzTable(f *testing.F) {
	for _, path := range []string{"../dwarf/testdata/small5", "../dwarf/testdata/small4"} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := object.New("fuzz", data)
		if err != nil {
			return
		}
		table, _ := New(o)
		for _, s := range table.Functions() {
			if s.End < s.Start {
				t.Fatalf("%+v ends before it starts", s)
			}
			got, ok := table.Function(s.Start)
			if s.End > s.Start && (!ok || got.Start != s.Start) {
				t.Fatalf("%+v is not found at its start: %+v", s, got)
			}
			table.Frames(nil, s.Start+1)
		}
	})
}

func BenchmarkFunction(b *testing.B) {
	var list []candidate
	for i := range uint64(100000) {
		list = append(list, function("f", i*16, 16, global))
	}
	table := build(list)
	var a uint64
	for b.Loop() {
		a = (a*6364136223846793005 + 1442695040888963407)
		table.find(a % 1600000)
	}
}

// Each kernel of a zebin has such a symbol besides its own.
func TestTheEntryOfAKernelIsNoFunction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kernel.o")
	source := ".text\n.type k, @function\nk: nop\n.type _entry, @function\n_entry: nop\n.size _entry, .-_entry\n.size k, .-k\n"
	oracle.With{Input: source}.Run(t, "gcc", "-c", "-x", "assembler", "-o", path, "-")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for machine, want := range map[byte]string{62: "_entry", machineIntelGT: "k"} {
		b[18] = machine
		o, err := object.New(path, b)
		if err != nil {
			t.Fatal(err)
		}
		table, err := New(o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := table.Function(1); !ok || s.Name != want {
			t.Errorf("machine %d: %+v, expected %s", machine, s, want)
		}
	}
}
