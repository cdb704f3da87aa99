// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/locexpr"
)

// What the forms before LLVM 3.7 may have beyond the document's members.

// appended are descriptors with a member more at the end, and a header field more
// where there is a header.
func appended(text string) string {
	text = regexp.MustCompile(`(?m)^(!\d+ = (?:metadata )?!\{i32 786\d+.*)\}`).ReplaceAllString(text, `$1, i32 99}`)
	text = regexp.MustCompile(`(?m)^(!\d+ = (?:metadata )?!\{(?:metadata )?!"0x[^"]*")(.*)\}`).ReplaceAllString(text, `$1$2, i32 99}`)
	return regexp.MustCompile(`(?m)^(!\d+ = (?:metadata )?!\{(?:metadata )?!"0x(?:[0-9a-f]{1,2}|10[01])(?:\\00[^"]*)?)"`).ReplaceAllString(text, `$1\00more"`)
}

// The document lets information be appended to any descriptor: nothing that was
// known is lost by it.
func TestInformationThatIsAppended(t *testing.T) {
	for _, name := range []string{"foo34.ll", "main36.ll", "old32.ll", "block34.ll", "expression36.ll"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		changed := appended(string(text))
		if name == "block34.ll" { // what is behind the operations would be one of them
			changed = strings.Replace(changed, "i64 2, i32 99}", "i64 2}", 1)
		}
		a, b := parse(t, string(text)), parse(t, changed)
		descriptors := 0
		for n, err := range a.Nodes() {
			if err != nil || n.Kind == "MDTuple" || n.Kind == "DILocation" {
				continue
			}
			descriptors++
			var id uint64
			for _, digit := range n.ID[1:] {
				id = id*10 + uint64(digit-'0')
			}
			more, err := b.Node(id)
			if err != nil || more.Kind != n.Kind {
				t.Errorf("%s: %s is %s, and a %s with more: %v", name, n.ID, n.Kind, more.Kind, err)
				continue
			}
			for _, f := range n.Fields {
				got := more.Field(f.Name)
				isNumbered := f.Name == "uniqueID" || f.Name == "discriminator" || n.Kind == "DIExpression"
				if f.Value.String() != got.String() && !isNumbered {
					t.Errorf("%s: %s of %s is %s, with more %s", name, f.Name, n.ID, f.Value.String(), got.String())
				}
			}
		}
		if descriptors < 5 {
			t.Errorf("%s has %d descriptors", name, descriptors)
		}
		if diff := cmp.Diff(places(a), places(b)); diff != "" {
			t.Errorf("%s: positions (-without +with more):\n%s", name, diff)
		}
		if diff := cmp.Diff(variableTexts(a), variableTexts(b)); diff != "" {
			t.Errorf("%s: variables (-without +with more):\n%s", name, diff)
		}
		if p := b.Problems(); len(p) > 0 {
			t.Errorf("%s: problems %q", name, p)
		}
	}
	m := parseFile(t, "appended34.ll")
	if diff := cmp.Diff([]string{"foo+0 foo /p/t.c:2:3 in !4", "foo+1 foo /p/t.c:2:3 in !4"}, places(m)); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"blk int in !4 of foo, line 1; foo+0-2 i8* %a"}, variableTexts(m)); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// rangeTexts are the ranges of a module's variables with their expressions.
func rangeTexts(m *Module) []string {
	var list []string
	for _, v := range m.Variables() {
		for _, r := range v.Ranges {
			text := v.Name + " " + strings.Join(r.Values, " ")
			if r.IsAddress {
				text += " address"
			}
			text += " {" + locexpr.FormatText(r.Expression, locexpr.TextOptions{Dialect: locexpr.Canonical}) + "}"
			if r.Problem != "" {
				text += " " + r.Problem
			}
			list = append(list, text)
		}
	}
	return list
}

// Operations are numbers in DW_TAG_expression and behind the members of a local
// variable ("Complex Expressions").
func TestExpressionsOfNumbers(t *testing.T) {
	block, expression := string(readTestdata(t, "block34.ll")), string(readTestdata(t, "expression36.ll"))
	const (
		members = "i64 1, i64 8, i64 2}"
		header  = `!15 = !{!"0x102\006"}`
		plain   = "i8* %a address {}"
		x       = "X i32* %X address {}"
	)
	for name, c := range map[string]struct {
		text, from, to string
		want           []string
	}{
		"plus and deref of a variable": {block, members, members, []string{"blk i8* %a address {DW_OP_plus_uconst 8; DW_OP_deref}"}},
		"deref and plus":               {block, members, "i64 2, i64 1, i64 24}", []string{"blk i8* %a address {DW_OP_deref; DW_OP_plus_uconst 24}"}},
		"in a tuple, of LLVM 3.5":      {block, members, "metadata !20}\n!20 = metadata !{i64 1, i64 32}", []string{"blk i8* %a address {DW_OP_plus_uconst 32}"}},
		"another tuple":                {block, members, "metadata !20}\n!20 = metadata !{i64 7, i64 32}", []string{"blk " + plain}},
		"an operand is missing":        {block, members, "i64 2, i64 1}", []string{"blk " + plain}},
		"no operation":                 {block, members, "i64 3, i64 1}", []string{"blk " + plain}},
		"appended numbers":             {block, members, "i32 1, i32 8}", []string{"blk " + plain}},
		"nothing appended":             {block, ", " + members, "}", []string{"blk " + plain}},
		"deref of a value":             {expression, header, header, []string{x, "a i32 %a address {}"}},
		"nothing":                      {expression, header, `!15 = !{!"0x102"}`, []string{x, "a i32 %a {DW_OP_stack_value}"}},
		"an empty tuple":               {expression, header, `!15 = !{}`, []string{x, "a i32 %a {DW_OP_stack_value}"}},
		"plus of a value":              {expression, header, `!15 = !{!"0x102\0034\008\006"}`, []string{x, "a i32 %a address {DW_OP_plus_uconst 8}"}},
		"a piece in bytes":             {expression, header, `!15 = !{!"0x102\00147\000\004"}`, []string{x, "a i32 %a {DW_OP_stack_value; DW_OP_bit_piece 32 0}"}},
		"a piece in bits":              {expression, header, `!15 = !{!"0x102\00157\000\0016"}`, []string{x, "a i32 %a {DW_OP_stack_value; DW_OP_bit_piece 16 0}"}},
		"the tag as a number":          {expression, header, `!15 = metadata !{i32 786690, i64 34, i64 4, i64 6}`, []string{x, "a i32 %a address {DW_OP_plus_uconst 4}"}},
		"an unknown number":            {expression, header, `!15 = !{!"0x102\00250"}`, []string{x, "a i32 %a {} an operation is expected, found \"250\""}},
		"an operand that is missing":   {expression, header, `!15 = !{!"0x102\0034"}`, []string{x, "a i32 %a {} DW_OP_plus needs 2 values, 1 are there"}},
		"a value that is an address":   {expression, header + " ; DW_OP_deref", `!15 = !{!"0x102"}`, []string{x, "a i32 %a {DW_OP_stack_value}"}},
		"an indirect variable":         {strings.Replace(expression, `a\0016777217\000"`, `a\0016777217\008192"`, 1), header, `!15 = !{!"0x102"}`, []string{x, "a i32 %a address {}"}},
	} {
		if !strings.Contains(c.text, c.from) {
			t.Fatalf("%s: no %q", name, c.from)
		}
		m := parse(t, strings.Replace(c.text, c.from, c.to, 1))
		if diff := cmp.Diff(c.want, rangeTexts(m)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// LLVM 3.2 wrote the members in another order, and LLVM 3.5 a discriminator with a
// block.
func TestOlderOrdersOfMembers(t *testing.T) {
	m := parseFile(t, "old32.ll")
	if diff := cmp.Diff([]string{
		"foo+0 -", "foo+1 foo /t/t.c:2:7 in !8", "foo+2 foo /t/t.c:3:3 in !4", "foo+3 foo /t/t.c:3:3 in !4",
	}, places(m)); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"X int* in !8 of foo, line 2; foo+1-2 i32* %X", "a int in !4 of foo, line 1; foo+1-4 i32 %a", "g int in  of , line 9; +0-0 @g",
	}, variableTexts(m)); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	for id, want := range map[uint64]string{
		0: `!DICompileUnit(language: 12, filename: "t.c", directory: "/t", producer: "clang version 3.2", isMain: true, isOptimized: false, flags: "", runtimeVersion: 0, enums: !2, retainedTypes: !2, subprograms: !3, globals: !20)`,
		5: `!DIFile(filename: "t.c", directory: "/t", null)`,
	} {
		if n, err := m.Node(id); err != nil || n.String() != want {
			t.Errorf("!%d:\n got %s, %v\nwant %s", id, n.String(), err, want)
		}
	}
	for text, want := range map[string]string{
		`!{i32 786443, metadata !1, metadata !2, i32 51, i32 3, i32 5, i32 6}`: "!DILexicalBlock(file: !1, scope: !2, line: 51, column: 3, discriminator: 5, uniqueID: 6)",
		`!{i32 786443, metadata !1, metadata !2, i32 5}`:                       "!DILexicalBlockFile(file: !1, scope: !2, discriminator: 5)",
		`!{i32 786443, metadata !1, i32 2, i32 3}`:                             "!DILexicalBlock(scope: !1, line: 2, column: 3)",
		`!{i32 786473, i32 5}`:                                                 "!{i32 786473, i32 5}", // no descriptor of a file has this
		`!{i32 786478, i32 5, i32 6}`:                                          "!{i32 786478, i32 5, i32 6}",
	} {
		if n, err := parse(t, "!0 = "+text+"\n").Node(0); err != nil || n.String() != want {
			t.Errorf("%s is %s, %v, want %s", text, n.String(), err, want)
		}
	}
}

// The document says that a subrange has its high value, LLVM 3.6 writes a count
// for it. The size of the array tells which it is.
func TestBoundsOfArraysInStrings(t *testing.T) {
	for text, want := range map[string]string{
		`size 160, 0x21\000\004`: "int[5]", `size 128, 0x21\000\004`: "int[4]", `size 0, 0x21\000\004`: "int[5]", `size 32, 0x21\000\001`: "int[1]",
		`size 0, 0x21\000\00-1`: "int[]", `size 64, 0x21\000\001`: "int[2]", `size 0, 0x21\000\000`: "int[1]",
	} {
		size, subrange, _ := strings.Cut(strings.TrimPrefix(text, "size "), ", ")
		m := parse(t, `!0 = !{!"0x100\00v\001\000", null, null, !1}
!1 = !{!"0x1\00\000\00`+size+`\0032\000\000\000", null, null, !2, !3, null, null, null}
!2 = !{!"0x24\00int\000\0032\0032\000\000\005", null, null}
!3 = !{!4}
!4 = !{!"`+subrange+`"}
`)
		if got := m.Variables()[0].Type; got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// Bitcode is told, and what makes text of it.
func TestBitcode(t *testing.T) {
	for _, data := range []string{"BC\xc0\xde\x35\x14\x00\x00", "\xde\xc0\x17\x0b\x00\x00\x00\x00\x14\x00\x00\x00"} {
		for _, name := range []string{"kernel.bc", "kernel.ll", "a section"} {
			if _, err := Read(name, []byte(data)); !Is(name, []byte(data)) || !errors.Is(err, ErrBitcode) || !strings.Contains(err.Error(), name+": LLVM bitcode") || !strings.Contains(err.Error(), "llvm-dis") {
				t.Errorf("%s of %q: %v", name, data, err)
			}
		}
	}
	if Is("kernel", []byte("BC")) || IsBitcode([]byte("BCPL")) {
		t.Error("a text that begins with BC is taken for bitcode")
	}
}
