// SPDX-License-Identifier: Apache-2.0

package pdbtypes

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/oracle"
)

// lambda are the names of lambdas, which both formats make up.
var lambda = regexp.MustCompile(`<?lambda[^,>]*>?|\(lambda at [^)]*\)|'lambda[0-9]*'`)

// cast are the types before numbers of enumerations among a template's arguments.
var cast = regexp.MustCompile(`\([\w:]*\)(\d)`)

// plainName is a name without blanks, whose arguments are written as in CodeView.
func plainName(name string) string {
	name = cast.ReplaceAllString(name, "$1")
	name = regexp.MustCompile(`\b(\d+)U?L*\b`).ReplaceAllString(name, "$1")
	for _, x := range [][2]string{{"true", "1"}, {"false", "0"}} {
		name = regexp.MustCompile(`\b`+x[0]+`\b`).ReplaceAllString(name, x[1])
	}
	name = strings.NewReplacer(" ", "", "`anonymousnamespace'", "(anonymousnamespace)", "`anonymous namespace'", "(anonymousnamespace)").Replace(name)
	return lambda.ReplaceAllString(name, "lambda")
}

// shapeOf describes a type.
func shapeOf(t testing.TB, typ *dwarf.Type, depth int) string {
	plain, err := typ.Plain()
	if err != nil {
		t.Fatal(err)
	}
	element := func(inside int) string {
		e, err := plain.Element()
		if err != nil {
			t.Fatal(err)
		}
		return shapeOf(t, e, inside)
	}
	switch plain.Kind {
	case dwarf.KindBase:
		if plain.Name == "long double" || plain.Size == 16 && strings.HasPrefix(plain.Name, "unsigned") {
			return "16 bytes"
		}
		kind := map[uint8]string{dw.ATESigned: "signed", dw.ATESignedChar: "signed", dw.ATEFloat: "float", dw.ATEBoolean: "bool"}[plain.Base.Encoding]
		return fmt.Sprintf("%s%d", kind, plain.Base.Bits)
	case dwarf.KindPointer, dwarf.KindReference, dwarf.KindRvalueReference:
		return fmt.Sprintf("%d(%s)", plain.Kind, element(depth+2))
	case dwarf.KindMemberPointer:
		e, err := plain.Element()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("member %t", e.Kind == dwarf.KindSubroutine)
	case dwarf.KindArray:
		list, err := plain.Dimensions()
		if err != nil {
			t.Fatal(err)
		}
		text := element(depth)
		for i := range list {
			n, _ := list[i].Elements()
			text += fmt.Sprintf("[%d]", n)
		}
		if text == "8[16]" {
			return "16 bytes"
		}
		return text
	case dwarf.KindEnumeration:
		list, err := plain.Enumerators()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("enum %s %d %v", plainName(plain.QualifiedName()), plain.Size, list)
	case dwarf.KindStructure, dwarf.KindUnion:
		name := plainName(plain.QualifiedName())
		if depth > 4 {
			return name
		}
		return name + partsOf(t, plain.Complete(), depth)
	case dwarf.KindSubroutine:
		return "function"
	}
	return fmt.Sprintf("kind %d", plain.Kind)
}

// partsOf describes the members of a type; those of unions without a name are its own.
func partsOf(t testing.TB, typ *dwarf.Type, depth int) string {
	var list []string
	var add func(typ *dwarf.Type, bits int64)
	add = func(typ *dwarf.Type, bits int64) {
		p, err := typ.Parts()
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Members {
			m := &p.Members[i]
			switch {
			case m.IsArtificial:
			case m.Role == dwarf.DataMember && m.Name == "":
				add(m.Type, bits+m.Bits)
			case m.At != nil:
				list = append(list, fmt.Sprintf("virtual base %s", plainName(m.Type.QualifiedName())))
			default:
				list = append(list, fmt.Sprintf("%s %s@%d:%d", m.Name, shapeOf(t, m.Type, depth+1), bits+m.Bits, m.FieldBits))
			}
		}
	}
	add(typ, 0)
	slices.Sort(list)
	return fmt.Sprintf("%d{%s}", typ.Size, strings.Join(list, "; "))
}

// variablesOf are the variables of a function with their types, from all its blocks.
func variablesOf(t testing.TB, e dwarf.Entry, isOfPDB bool) (list []string) {
	for c, err := range e.Children() {
		if err != nil {
			t.Fatal(err)
		}
		switch c.Tag() {
		case dw.TagLexicalBlock, dw.TagInlinedSubroutine:
			list = append(list, variablesOf(t, c, isOfPDB)...)
		case dw.TagVariable, dw.TagFormalParameter:
			typ, err := c.ValueType()
			if err != nil {
				t.Fatal(err)
			}
			if isOfPDB && strings.HasPrefix(c.Name(), "byvalue") { // LLVM writes a reference for one that is passed in memory
				if plain, err := typ.Plain(); err == nil && plain.Kind == dwarf.KindReference {
					typ, _ = plain.Element()
				}
			}
			if c.Name() == "lambda" { // whose type only CodeView names
				continue
			}
			list = append(list, fmt.Sprintf("%t %s: %s", c.Tag() == dw.TagFormalParameter, c.Name(), shapeOf(t, typ, 0)))
		}
	}
	return list
}

// The variables and types of a program are those that the same compiler writes as DWARF.
func TestVariablesAndTypesAreThoseOfDWARF(t *testing.T) {
	oracle.All(t)
	source, err := filepath.Abs("testdata/library.cc")
	if err != nil {
		t.Fatal(err)
	}
	compile := []string{"clang++-22", "--target=x86_64-w64-mingw32", "-std=c++20", "-O0", "-fstandalone-debug", "-fuse-ld=lld", "-static", source}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
		append(slices.Clone(compile), "-gcodeview", "-g", "-Wl,-s", "-Wl,--pdb=a.pdb", "-o", "a.exe"),
		append(slices.Clone(compile), "-gdwarf-5", "-o", "b.exe"),
	}}.Make(t)
	data, err := os.ReadFile(filepath.Join(dir, "a.pdb"))
	if err != nil {
		t.Fatal(err)
	}
	translated, _, functions := open(t, data)
	o, err := object.Open(filepath.Join(dir, "b.exe"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.Close() }()
	written, err := dwarf.New(o)
	if err != nil {
		t.Fatal(err)
	}
	compared, variables := 0, 0
	if err := o.EachSymbol(func(s *object.Symbol) {
		own, ok := functions[s.Name]
		if !ok || !strings.Contains(s.Name, "shown") {
			return
		}
		want := functionVariables(t, written, s.Address, false)
		got := functionVariables(t, translated, own, true)
		compared++
		variables += len(want)
		slices.Sort(want)
		slices.Sort(got)
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				t.Errorf("%s:\n%v\nexpected\n%v", s.Name, at(got, i), at(want, i))
				break
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if compared < 3 || variables < 40 {
		t.Errorf("%d functions with %d variables were compared, expected at least 3 and 40", compared, variables)
	}
	t.Logf("%d functions with %d variables", compared, variables)
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}

func functionVariables(t testing.TB, r *dwarf.Reader, address uint64, isOfPDB bool) []string {
	e, err := r.Function(address)
	if err != nil || e.IsZero() {
		t.Fatalf("%#x: %v, %v", address, e, err)
	}
	return variablesOf(t, e, isOfPDB)
}
