// SPDX-License-Identifier: Apache-2.0

package pdbtypes

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/symbol/pdb"
	"github.com/unwindd/unwindd/internal/dw"
)

// fixture is the PDB file of testdata/locals.cc.
func fixture(t testing.TB) []byte {
	t.Helper()
	packed, err := os.ReadFile("testdata/locals.pdb.gz")
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// open opens a file at 0x400000, and returns the addresses of its functions by name.
func open(t testing.TB, data []byte) (*dwarf.Reader, *pdb.File, map[string]uint64) {
	t.Helper()
	f, err := pdb.New("locals.pdb", data, 0x400000)
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]uint64{}
	for _, s := range f.Functions() {
		functions[s.Name] = s.Start
	}
	return New(f, func(err error) { t.Errorf("a problem: %v", err) }), f, functions
}

// variablesAt lists the variables at an address, a scope with its tag and name before its own.
func variablesAt(t testing.TB, r *dwarf.Reader, address uint64) (list []string) {
	t.Helper()
	scopes, err := r.Scopes(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scopes {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s", strings.TrimPrefix(s.Tag().String(), "DW_TAG_"), s.Name())))
		for v, err := range s.Variables() {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, "  "+describe(t, v, address))
		}
	}
	return list
}

// describe describes a variable: "parameter int x: 7724".
func describe(t testing.TB, v dwarf.Entry, address uint64) string {
	t.Helper()
	typ, err := v.ValueType()
	if err != nil {
		t.Fatal(err)
	}
	text := typ.String() + " " + v.Name()
	if v.Tag() == dw.TagFormalParameter {
		text = "parameter " + text
	}
	if n, ok, err := v.Number(dw.AttrConstValue); ok && err == nil {
		text += fmt.Sprintf(" = %d", n)
	}
	l, err := v.Placed()
	if err != nil {
		t.Fatal(err)
	}
	if l == nil {
		return text
	}
	places, err := l.At(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		text += fmt.Sprintf(" %x", p)
	}
	return text
}

func TestVariablesOfFunctionsAreInTheirScopes(t *testing.T) {
	r, _, functions := open(t, fixture(t))
	unoptimized := functions["?unoptimized@@YAHHPEBDAEAUPoint@space@@PEAUUnknown@@P8Base@@EAAHXZPEQ4@H@Z"]
	optimized := functions["?optimized@@YAHHUPair@@@Z"]
	for _, x := range []struct {
		address uint64
		want    []string
	}{
		{unoptimized + 0x8f, []string{
			"lexical_block",
			"  __int64 number 7710",
			"subprogram unoptimized",
			"  parameter int number 7704",
			"  parameter const char * text 7728",
			"  parameter space::Point & point 7730",
			"  parameter Unknown * unknown 7738",
			"  parameter int (Base::*)(void) method 77b001",
			"  parameter int Base::* member 77b801",
			"  int [2][3] matrix 77d000",
			"  Bits bits 77f000",
			"  Number u 770c",
			"  Color color 7701",
			"  Plain plain 7708",
			"  Array<int *,2> array 77c000",
			"  Virtual * object 7720",
			"  void (*)(int, ...) function 7718",
			"  wchar_t wide 7702",
		}},
		{optimized + 5, []string{
			"inlined_subroutine doubled", "  parameter int value 52", "  int twice 50",
			"subprogram optimized", "  parameter int argument 52", "  parameter Pair pair 7100", "  const int nine = 9", "  int before",
		}},
		{optimized + 0x1e, []string{ // LLVM writes a constant for i, which has that value but once
			"lexical_block", "  int i",
			"subprogram optimized", "  parameter int argument", "  parameter Pair pair 7100", "  const int nine = 9", "  int before 50",
		}},
		{0x400000, nil},
	} {
		if diff := cmp.Diff(x.want, variablesAt(t, r, x.address)); diff != "" {
			t.Errorf("%#x: %s", x.address, diff)
		}
	}
}

// behindVariables moves the record of each function's frame behind its variables, where Microsoft's
// compiler has it, and returns how many were moved.
func behindVariables(data []byte) (moved int) {
	le := binary.LittleEndian
	for at := 0; at+4 < len(data); at++ {
		size := 2 + int(le.Uint16(data[at:]))
		if size != 32 || le.Uint16(data[at+2:]) != symFrameProc {
			continue
		}
		end := at + size
		for depth := 0; end+4 < len(data); end += 2 + int(le.Uint16(data[end:])) {
			switch le.Uint16(data[end+2:]) {
			case symBlock, symInlineSite:
				depth++
			case symEnd, symProcIDEnd, symInlineSiteEnd:
				depth--
			}
			if depth < 0 {
				break
			}
		}
		record := bytes.Clone(data[at : at+size])
		copy(data[at:], data[at+size:end])
		copy(data[end-size:], record)
		moved++
		at = end
	}
	return moved
}

func TestFrameIsKnownBeforeTheRecordThatDescribesIt(t *testing.T) {
	data := fixture(t)
	r, _, functions := open(t, data)
	moved := bytes.Clone(data)
	if n := behindVariables(moved); n < 2 {
		t.Fatalf("%d records of frames were moved, expected more", n)
	}
	other, _, _ := open(t, moved)
	address := functions["?unoptimized@@YAHHPEBDAEAUPoint@space@@PEAUUnknown@@P8Base@@EAAHXZPEQ4@H@Z"] + 0x8f
	if diff := cmp.Diff(variablesAt(t, r, address), variablesAt(t, other, address)); diff != "" {
		t.Error(diff)
	}
}

// TestVariablesThatAreWrittenTwiceAreOne has the record of a place by a register behind the records of
// the same variable, as Microsoft's compiler writes them.
func TestVariablesThatAreWrittenTwiceAreOne(t *testing.T) {
	w := &functionWriter{unit: &unit{}, placed: map[variableName]bool{{"argc", 0x74}: true}}
	if err := w.single("argc", 0x74, []byte{dw.OpReg0}, true); err != nil || w.variable != nil || len(w.out.Info) > 0 {
		t.Errorf("%v: a variable was written twice", err)
	}
}

// parts describes a type by its parts.
func parts(t testing.TB, typ *dwarf.Type) (list []string) {
	t.Helper()
	p, err := typ.Complete().Parts()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range p.Arguments {
		argument, err := a.ValueType()
		if err != nil {
			t.Fatal(err)
		}
		n, _, _ := a.Number(dw.AttrConstValue)
		list = append(list, fmt.Sprintf("argument %s %d", argument, n))
	}
	for i := range p.Members {
		m := &p.Members[i]
		text := fmt.Sprintf("%s %s at %d", m.Type, m.Name, m.Bits)
		if m.FieldBits > 0 {
			text += fmt.Sprintf(" bits %d", m.FieldBits)
		}
		if m.At != nil {
			text += fmt.Sprintf(" by %x", m.At.Expr)
		}
		list = append(list, text)
	}
	for _, s := range p.Statics {
		list = append(list, "static "+s.Name())
	}
	for _, s := range p.Types {
		list = append(list, "type "+s.Name())
	}
	return list
}

func TestTypesHaveTheirParts(t *testing.T) {
	r, _, _ := open(t, fixture(t))
	for name, want := range map[string][]string{
		"Bits":           {"unsigned int a at 0 bits 3", "int b at 3 bits 5", "unsigned __int64 c at 64 bits 40"},
		"Number":         {"int i at 0", "float f at 0"},
		"Base":           {"void (**)(void) __vfptr at 0", "int base at 64"},
		"Virtual":        {"Base  at 0 by 230012062304940422", "int own at 64"},
		"space::Point":   {"double x at 0", "double y at 64", "space::Point::Inside in at 128", "static count", "type Inside"},
		"Array<int *,2>": {"argument int * 0", "argument void 2", "int *[2] list at 0"},
	} {
		list, err := r.TypesNamed(name)
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %d types, %v", name, len(list), err)
			continue
		}
		typ, err := list[0].AsType()
		if err != nil {
			t.Fatal(err)
		}
		if got := parts(t, typ); !slices.Equal(got, want) {
			t.Errorf("%s has %q, expected %q", name, got, want)
		}
	}
}

func TestEnumerationsHaveTheirValues(t *testing.T) {
	r, _, _ := open(t, fixture(t))
	for name, want := range map[string][]dwarf.Enumerator{
		"Color": {{Name: "red"}, {Name: "green", Value: 200}},
		"Plain": {{Name: "minus", Value: 1<<64 - 3}, {Name: "plus", Value: 100000}},
	} {
		list, err := r.TypesNamed(name)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d types, %v", name, len(list), err)
		}
		typ, err := list[0].AsType()
		if err != nil {
			t.Fatal(err)
		}
		got, err := typ.Enumerators()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %v (%v), expected %v", name, got, err, want)
		}
	}
}

func TestGlobalsAreFoundByTheirNamesWithScopesOrWithout(t *testing.T) {
	r, f, _ := open(t, fixture(t))
	addresses := map[string]uint64{}
	if err := f.Data(func(name string, address, _ uint64) { addresses[name] = address }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"sink": "sink", "hidden": "space::hidden", "space::hidden": "space::hidden", "count": "space::Point::count", "nothing": ""} {
		list, err := r.Globals(name)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range list {
			got = e.QualifiedName()
			if address, ok := e.StaticAddress(); !ok || address != addresses[got] {
				t.Errorf("%s is at %#x, expected %#x", got, address, addresses[got])
			}
		}
		if got != want {
			t.Errorf("%s is %q, expected %q", name, got, want)
		}
	}
}

func TestPlacesOfPartsArePutTogether(t *testing.T) {
	part := func(at, size uint64, expr byte) *place {
		return &place{isPart: true, start: at, size: size, expr: []byte{expr}}
	}
	for _, x := range []struct {
		parts []*place
		want  string
	}{
		{[]*place{part(8, 8, dw.OpReg0), part(0, 4, dw.OpReg0+1)}, "51930493045093" + "08"},
		{[]*place{part(4, 8, dw.OpReg0)}, "930450930893" + "04"},
		{[]*place{part(0, 8, dw.OpReg0), part(4, 4, dw.OpReg0+1)}, "50930451930493" + "08"},
		{[]*place{part(16, 8, dw.OpReg0)}, ""},
		{[]*place{{expr: []byte{dw.OpReg0}}, part(4, 4, dw.OpReg0+1)}, "50"},
	} {
		if got := fmt.Sprintf("%x", joinParts(x.parts, 16)); got != x.want {
			t.Errorf("%+v are at %s, expected %s", x.parts, got, x.want)
		}
	}
}

func TestSpelledTypesAreDissected(t *testing.T) {
	for spelled, want := range map[string]string{
		"int": "int", "const int": "int const", "int const ": "int const", "S *": "S pointer", "char const *const": "char const pointer const",
		"const char *": "char const pointer", "struct S &": "S reference", "S &&": "S rvalue_reference", "constant": "constant", "int *const *": "int pointer const pointer",
	} {
		core, around := dissect(spelled)
		for _, tag := range around {
			core += " " + strings.TrimSuffix(strings.TrimPrefix(tag.String(), "DW_TAG_"), "_type")
		}
		if core != want {
			t.Errorf("%q is %q, expected %q", spelled, core, want)
		}
	}
}

// visit reads all that is known of a file.
func visit(r *dwarf.Reader, f *pdb.File) {
	for _, s := range f.Functions() {
		for _, address := range []uint64{s.Start, (s.Start + s.End) / 2} {
			scopes, err := r.Scopes(address)
			if err != nil {
				continue
			}
			for _, scope := range scopes {
				for v, err := range scope.Variables() {
					if err != nil {
						break
					}
					visitVariable(v, address)
				}
			}
		}
	}
	for _, name := range []string{"sink", "hidden", "count"} {
		list, _ := r.Globals(name)
		for _, e := range list {
			visitVariable(e, 0)
		}
	}
}

func visitVariable(v dwarf.Entry, address uint64) {
	if l, err := v.Placed(); err == nil && l != nil {
		_, _ = l.At(address)
	}
	v.Size()
	t, err := v.ValueType()
	if err != nil {
		return
	}
	_ = t.String()
	for range 4 {
		_, _ = t.Enumerators()
		if p, err := t.Complete().Parts(); err == nil {
			for i := range p.Members {
				if m := p.Members[i].Type; m != nil {
					_ = m.String()
				}
			}
		}
		_, _ = t.Dimensions()
		if t, err = t.Element(); err != nil {
			return
		}
	}
}

func FuzzVariables(f *testing.F) {
	whole := fixture(f)
	f.Add(uint32(0x3000), []byte{0xff, 0xff, 0xff, 0xff}, uint32(0x8000), []byte{0})
	f.Add(uint32(0x6010), []byte{0x11, 0x11}, uint32(0x9004), []byte{0x80})
	f.Fuzz(func(_ *testing.T, at uint32, patch []byte, other uint32, second []byte) {
		data := slices.Clone(whole)
		copy(data[int(at)%len(data):], patch[:min(len(patch), 64)])
		copy(data[int(other)%len(data):], second[:min(len(second), 64)])
		p, err := pdb.New("locals.pdb", data, 0x400000)
		if err != nil {
			return
		}
		if r := New(p, func(error) {}); r != nil {
			visit(r, p)
		}
	})
}
