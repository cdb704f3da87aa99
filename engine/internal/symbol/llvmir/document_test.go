// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/oracle"
)

// Tests against the document that introduced the specialized nodes, LLVM
// r232566: "docs: Update LangRef and SourceLevelDebugging".

func parse(t testing.TB, text string) *Module {
	t.Helper()
	m, err := Parse("test.ll", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func parseFile(t testing.TB, name string) *Module {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

// placeText is a position as short text: "foo 2:9 in !4".
func placeText(p *symbol.Position) string {
	var parts []string
	for i, f := range p.Frames {
		if p.Scopes[i] == "" {
			parts = append(parts, "-")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s:%d:%d in %s", f.Function, f.File, f.Line, f.Column, p.Scopes[i]))
	}
	return strings.Join(parts, " < ")
}

func places(m *Module) []string {
	var list []string
	for p := range m.Positions() {
		list = append(list, fmt.Sprintf("%s+%d %s", p.Function, p.Instruction, placeText(&p)))
	}
	return list
}

func variableTexts(m *Module) []string {
	var list []string
	for _, v := range m.Variables() {
		text := fmt.Sprintf("%s %s in %s of %s, line %d", v.Name, v.Type, v.Scope, v.Function, v.Line)
		for _, r := range v.Ranges {
			text += fmt.Sprintf("; %s+%d-%d %s", r.Function, r.Start, r.End, strings.Join(r.Values, " "))
		}
		list = append(list, text)
	}
	return list
}

// The example of "Object lifetimes and scoping": X and Y are of the function, Z
// of the block within it.
func TestTheDocumentsFunctionFoo(t *testing.T) {
	want := []string{
		"foo+0 -", "foo+1 -", "foo+2 -",
		"foo+3 foo /src/t.c:2:9 in !4", "foo+4 foo /src/t.c:3:9 in !4", "foo+5 foo /src/t.c:5:11 in !18", "foo+6 foo /src/t.c:6:11 in !18",
		"foo+7 foo /src/t.c:6:9 in !18", "foo+8 foo /src/t.c:8:9 in !4", "foo+9 foo /src/t.c:8:7 in !4", "foo+10 foo /src/t.c:9:3 in !4",
	}
	variables := []string{
		"X int in !4 of foo, line 2; foo+1-11 TYPE %X",
		"Y int in !4 of foo, line 3; foo+2-11 TYPE %Y",
		"Z int in !18 of foo, line 5; foo+5-8 TYPE %Z",
	}
	withTypes := func(typ string, replace ...string) []string {
		var list []string
		for _, v := range variables {
			list = append(list, strings.NewReplacer(append(replace, "TYPE", typ)...).Replace(v))
		}
		return list
	}
	for _, name := range []string{"foo.ll", "foo37.ll"} {
		m := parseFile(t, name)
		if diff := cmp.Diff(want, places(m)); diff != "" {
			t.Errorf("%s: positions (-want +got):\n%s", name, diff)
		}
		typ := map[string]string{"foo.ll": "ptr", "foo37.ll": "i32*"}[name]
		if diff := cmp.Diff(withTypes(typ), variableTexts(m)); diff != "" {
			t.Errorf("%s: variables (-want +got):\n%s", name, diff)
		}
		if p := m.Problems(); len(p) > 0 {
			t.Errorf("%s: problems %q", name, p)
		}
	}
	// The form before has no columns, and other numbers.
	m := parseFile(t, "foo34.ll")
	old := []string{
		"foo+0 -", "foo+1 -", "foo+2 -",
		"foo+3 foo /src/t.c:2:0 in !4", "foo+4 foo /src/t.c:3:0 in !4", "foo+5 foo /src/t.c:5:0 in !16", "foo+6 foo /src/t.c:6:0 in !16",
		"foo+7 foo /src/t.c:6:0 in !16", "foo+8 foo /src/t.c:8:0 in !4", "foo+9 foo /src/t.c:8:0 in !4", "foo+10 foo /src/t.c:9:0 in !4",
	}
	if diff := cmp.Diff(old, places(m)); diff != "" {
		t.Errorf("foo34.ll: positions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(withTypes("i32*", "!18", "!16"), variableTexts(m)); diff != "" {
		t.Errorf("foo34.ll: variables (-want +got):\n%s", diff)
	}
}

// The descriptors of LLVM 3.6, strings with zero bytes in them.
func TestDescriptorsInStrings(t *testing.T) {
	m := parseFile(t, "main36.ll")
	want := map[uint64]string{
		0:  `!DICompileUnit(language: 12, producer: "clang version 3.6.0 ", isOptimized: false, flags: "", runtimeVersion: 0, splitDebugFilename: "", emissionKind: 1, file: !1, enums: !2, retainedTypes: !2, subprograms: !2, globals: !3, imports: !2)`,
		4:  `!DIGlobalVariable(name: "MyGlobal", displayName: "MyGlobal", linkageName: "", line: 1, isLocal: false, isDefinition: true, scope: null, file: !5, type: !6, variable: i32* @MyGlobal, declaration: null)`,
		5:  `!DIFile(file: !1)`,
		6:  `!DIBasicType(tag: DW_TAG_base_type, name: "int", line: 0, size: 32, align: 32, offset: 0, flags: 0, encoding: DW_ATE_signed, file: null, scope: null)`,
		7:  `!DISubprogram(name: "main", displayName: "main", linkageName: "", line: 1, isLocal: false, isDefinition: true, virtuality: 0, virtualIndex: 0, flags: 256, isOptimized: false, scopeLine: 1, file: !1, scope: !5, type: !8, containingType: null, function: i32 (i32, i8**)* @main, templateParams: null, declaration: null, variables: !2)`,
		8:  `!DISubroutineType(name: "", line: 0, size: 0, align: 0, offset: 0, flags: 0, runtimeLang: 0, file: null, scope: null, baseType: null, types: !9, vtableHolder: null, templateParams: null, identifier: null)`,
		10: `!DIDerivedType(tag: DW_TAG_pointer_type, name: "", line: 0, size: 64, align: 64, offset: 0, flags: 0, file: null, scope: null, baseType: !11)`,
		13: `!DICompositeType(tag: DW_TAG_array_type, name: "", line: 0, size: 160, align: 32, offset: 0, flags: 0, runtimeLang: 0, file: null, scope: null, baseType: !6, elements: !14, vtableHolder: null, templateParams: null, identifier: null)`,
		15: `!DISubrange(lowerBound: 0, upperBound: 4)`,
		18: `!DIEnumerator(name: "RED", value: 7)`,
		19: `!DILexicalBlock(line: 3, column: 4, uniqueID: 0, file: !1, scope: !7)`,
		20: `!DILocalVariable(tag: DW_TAG_auto_variable, name: "n", line: 3, flags: 0, scope: !19, file: !5, type: !13)`,
		21: `!DILocalVariable(tag: DW_TAG_arg_variable, name: "argc", arg: 1, line: 1, flags: 0, scope: !7, file: !5, type: !6)`,
		28: `!DILexicalBlockFile(discriminator: 0, file: !29, scope: !19)`,
	}
	described := map[string]bool{}
	for id, text := range want {
		n, err := m.Node(id)
		if err != nil || n.String() != text {
			t.Errorf("!%d:\n got %s, %v\nwant %s", id, n.String(), err, text)
		}
		described[n.Kind] = true
	}
	for tag, l := range layouts {
		if !described[l.kind] {
			t.Errorf("no descriptor with tag %#x is a %s here", tag, l.kind)
		}
	}
	wantPlaces := []string{
		"main+0 -", "main+1 main /src/foo.c:3:9 in !19", "main+2 main /src/foo.inc:4:5 in !28", "main+3 main /src/foo.c:5:3 in !7",
	}
	if diff := cmp.Diff(wantPlaces, places(m)); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	wantVariables := []string{
		"MyGlobal int in  of , line 1; +0-0 @MyGlobal",
		"n int[5] in !19 of main, line 3; main+1-3 i32* %n",
		"argc int in !7 of main, line 1; main+2-3 i32 %argc; main+3-4 i32 %half",
	}
	if diff := cmp.Diff(wantVariables, variableTexts(m)); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// The line of a local variable has 24 bits, the number of its argument 8.
func TestLinesAndArgumentsInOneNumber(t *testing.T) {
	m := parse(t, `!0 = metadata !{metadata !"0x101\00v\0050401648\000", null, null, null}
!1 = metadata !{i32 786689, null, metadata !"v", null, i32 50401648, null, i32 0, i32 0}
`)
	for id := range uint64(2) {
		n, err := m.Node(id)
		line, argument := n.Field("line"), n.Field("arg")
		if err != nil || n.Kind != "DILocalVariable" || line.Text != "70000" || argument.Text != "3" {
			t.Errorf("!%d is %s, %v", id, n.String(), err)
		}
	}
}

func TestNodesArePrintedAsLLVMPrintsThem(t *testing.T) {
	const text = `!0 = distinct !{!0, !"gr\C3\B6\C3\9Fe \22\7F\\ ~", null, i32 7, !{}, !DIExpression(DW_OP_deref), i8* null}`
	n, err := parse(t, text+"\n").Node(0)
	if got := n.ID + " = " + n.String(); err != nil || got != text {
		t.Errorf("%s, %v, want %s", got, err, text)
	}
}

// examples are the document's, and where the difference that it is does not show
// one, one in its spelling. Fields are those that must be read.
var examples = []struct {
	text   string // of node !0
	kind   string
	fields map[string]string
}{
	{`!MDCompileUnit(language: DW_LANG_C99, file: !1, producer: "clang", isOptimized: true, flags: "-O2", runtimeVersion: 2, splitDebugFilename: "abc.debug", emissionKind: 1, enums: !2, retainedTypes: !3, subprograms: !4, globals: !5, imports: !6)`,
		"DICompileUnit", map[string]string{"language": "DW_LANG_C99", "file": "!1", "isOptimized": "true", "splitDebugFilename": `"abc.debug"`, "imports": "!6"}},
	{`!MDFile(filename: "path/to/file", directory: "/path/to/dir")`,
		"DIFile", map[string]string{"filename": `"path/to/file"`, "directory": `"/path/to/dir"`}},
	{`!MDLocation(line: 2900, column: 42, scope: !1, inlinedAt: !2)`,
		"DILocation", map[string]string{"line": "2900", "column": "42", "scope": "!1", "inlinedAt": "!2"}},
	{"!MDBasicType(name: \"unsigned char\", size: 8, align: 8,\nencoding: DW_ATE_unsigned_char)",
		"DIBasicType", map[string]string{"name": `"unsigned char"`, "size": "8", "align": "8", "encoding": "DW_ATE_unsigned_char"}},
	{`!MDBasicType(tag: DW_TAG_unspecified_type, name: "decltype(nullptr)")`,
		"DIBasicType", map[string]string{"tag": "DW_TAG_unspecified_type", "name": `"decltype(nullptr)"`}},
	{`!BasicType(name: "char", size: 8, align: 8, DW_ATE_signed_char)`, // as the document has it
		"BasicType", map[string]string{"name": `"char"`, "align": "8", "": "DW_ATE_signed_char"}},
	{`!MDSubroutineType(types: !{null, !0, !1}) ; void (int, char)`,
		"DISubroutineType", map[string]string{"types": "!{null, !0, !1}"}},
	{"!MDDerivedType(tag: DW_TAG_pointer_type, baseType: !0, size: 32,\nalign: 32)",
		"DIDerivedType", map[string]string{"tag": "DW_TAG_pointer_type", "baseType": "!0", "size": "32", "align": "32"}},
	{"!MDCompositeType(tag: DW_TAG_enumeration_type, name: \"Enum\", file: !12,\nline: 2, size: 32, align: 32, identifier: \"_M4Enum\",\nelements: !{!0, !1, !2})",
		"DICompositeType", map[string]string{"tag": "DW_TAG_enumeration_type", "identifier": `"_M4Enum"`, "elements": "!{!0, !1, !2}"}},
	{`!MDSubrange(count: 5, lowerBound: 1) ; array counting from 1`,
		"DISubrange", map[string]string{"count": "5", "lowerBound": "1"}},
	{`!MDSubrange(count: -1) ; empty array.`,
		"DISubrange", map[string]string{"count": "-1"}},
	{`!MDEnumerator(name: "SixKind", value: 7)`,
		"DIEnumerator", map[string]string{"name": `"SixKind"`, "value": "7"}},
	{`!MDTemplateTypeParameter(name: "Ty", type: !1)`,
		"DITemplateTypeParameter", map[string]string{"name": `"Ty"`, "type": "!1"}},
	{`!MDTemplateValueParameter(name: "Ty", type: !1, value: i32 7)`,
		"DITemplateValueParameter", map[string]string{"type": "!1", "value": "i32 7"}},
	{`!MDNamespace(name: "outer", scope: !0, file: !1, line: 7)`,
		"DINamespace", map[string]string{"name": `"outer"`, "scope": "!0", "line": "7"}},
	{"!MDGlobalVariable(name: \"MyGlobal\", scope: !0, file: !1, line: 1,\ntype: !5, isLocal: false, isDefinition: true,\nvariable: i32* @MyGlobal)",
		"DIGlobalVariable", map[string]string{"isLocal": "false", "isDefinition": "true", "variable": "i32* @MyGlobal"}},
	{"!MDSubprogram(name: \"main\", scope: !1, file: !1, line: 1, type: !5,\nisLocal: false, isDefinition: true, scopeLine: 1,\nflags: DIFlagPrototyped, isOptimized: false,\nfunction: i32 (i32, i8**)* @main, variables: !2)",
		"DISubprogram", map[string]string{"flags": "DIFlagPrototyped", "scopeLine": "1", "function": "i32 (i32, i8**)* @main", "variables": "!2"}},
	{`distinct !MDLexicalBlock(scope: !1, file: !2, line: 7, column: 35)`,
		"DILexicalBlock", map[string]string{"scope": "!1", "file": "!2", "line": "7", "column": "35"}},
	{`!MDLexicalBlockFile(scope: !0, file: !1, discriminator: 3)`,
		"DILexicalBlockFile", map[string]string{"scope": "!0", "file": "!1", "discriminator": "3"}},
	{`!MDLocalVariable(tag: DW_TAG_arg_variable, name: "this", arg: 0, scope: !3, file: !2, line: 7, type: !3, flags: DIFlagArtificial, inlinedAt: !4)`,
		"DILocalVariable", map[string]string{"tag": "DW_TAG_arg_variable", "arg": "0", "flags": "DIFlagArtificial", "inlinedAt": "!4"}},
	{`!MDExpression(DW_OP_deref, DW_OP_bit_piece, 3, 7)`,
		"DIExpression", map[string]string{"": "DW_OP_deref"}},
	{`!MDObjCProperty(name: "side", file: !1, line: 7, setter: "putSide:", getter: "theSide", attributes: 7, type: !2)`,
		"DIObjCProperty", map[string]string{"setter": `"putSide:"`, "getter": `"theSide"`, "attributes": "7"}},
	{`!MDImportedEntity(tag: DW_TAG_imported_module, name: "std", scope: !0, entity: !1, line: 7)`,
		"DIImportedEntity", map[string]string{"tag": "DW_TAG_imported_module", "entity": "!1"}},
}

func TestTheDocumentsExamplesOfEveryKind(t *testing.T) {
	shown := map[string]bool{}
	for _, e := range examples {
		shown[e.kind] = true
		for _, spelling := range []string{"!MD", "!DI"} {
			m := parse(t, "!0 = "+strings.Replace(e.text, "!MD", spelling, 1)+"\n!1 = !{}\n")
			n, err := m.Node(0)
			if err != nil || n.Kind != e.kind || n.ID != "!0" || n.IsDistinct != strings.HasPrefix(e.text, "distinct") {
				t.Errorf("%s: %s, %v", e.text, n.String(), err)
			}
			for name, want := range e.fields {
				if v := n.Field(name); v.String() != want {
					t.Errorf("%s: %s is %s, want %s", e.text, name, v.String(), want)
				}
			}
			if _, err := m.Node(1); err != nil {
				t.Errorf("%s: what follows: %v", e.text, err)
			}
		}
	}
	for _, k := range Kinds {
		if k.Was != "" && !shown[k.Name] {
			t.Errorf("%s has no example", k.Was)
		}
	}
}

// documentText is the document, which lies beside the checkout.
func documentText(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(oracle.Beside(t, "seeds/llvm-debug-metadata-langref-change.txt")[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every kind, every field of an example and every tag of the document is in the
// tables.
func TestTheTablesHaveWhatTheDocumentNames(t *testing.T) {
	text := documentText(t)
	kinds := map[string]*Kind{}
	for i := range Kinds {
		kinds[Kinds[i].Was] = &Kinds[i]
	}
	found := 0
	for _, name := range regexp.MustCompile(`\bMD[A-Z][A-Za-z]+`).FindAllString(text, -1) {
		if found++; kinds[name] == nil {
			t.Errorf("%s is not in the table", name)
		}
	}
	if found < 40 {
		t.Errorf("the document names a kind %d times, expected more", found)
	}
	// The lines begin with the numbers of the lines before and after the change.
	text = regexp.MustCompile(`(?m)^[0-9]+ ?`).ReplaceAllString(text, "")
	fields := 0
	for _, node := range regexp.MustCompile(`!(MD[A-Za-z]+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)`).FindAllStringSubmatch(text, -1) {
		for _, field := range regexp.MustCompile(`([a-zA-Z]+):`).FindAllStringSubmatch(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(node[2], ""), -1) {
			if fields++; !slices.Contains(strings.Fields(kinds[node[1]].Fields), field[1]) {
				t.Errorf("%s of %s is not in the table", field[1], node[1])
			}
		}
	}
	if fields < 100 {
		t.Errorf("%d fields in the document's examples, expected more", fields)
	}
	for _, tag := range regexp.MustCompile(`(DW_TAG_[a-z_]+) = ([0-9]+)`).FindAllStringSubmatch(text, -1) {
		var number dw.Tag
		fmt.Sscan(tag[2], &number)
		if tag[1] != "DW_TAG_user_base" && (layouts[number] == nil || tagWord(number) != tag[1] && number != dw.TagSubroutineType) {
			t.Errorf("%s, %d, is not in the tables", tag[1], number)
		}
	}
}

// The document is a difference of two texts, in which a line has its number in the
// old one, in the new one, or both, and no indentation. The example is read from
// it as it stands there: the old one with lines that are no LLVM IR.
func TestTheExampleAsItStandsInTheDocument(t *testing.T) {
	sides := [2]strings.Builder{}
	inSide := func(side, number int) bool {
		return side == 0 && number >= 695 && number <= 774 || side == 1 && number >= 232 && number <= 285
	}
	for _, line := range strings.Split(documentText(t), "\n") {
		found := regexp.MustCompile(`^([0-9]{3})([0-9]{3})?( .*|)$`).FindStringSubmatch(line)
		if found == nil {
			continue
		}
		var first, second int
		fmt.Sscan(found[1], &first)
		second = first
		if found[2] != "" {
			fmt.Sscan(found[2], &second)
		}
		for side, number := range []int{first, second} {
			if inSide(side, number) {
				sides[side].WriteString(strings.TrimPrefix(found[3], " ") + "\n")
			}
		}
	}
	for side, want := range [][]string{{
		"foo+0 -", "foo+1 -", "foo+2 -", "foo+3 foo /private/tmp/t.c:2:0 in !4", "foo+4 foo /private/tmp/t.c:3:0 in !4",
		"foo+5 foo /private/tmp/t.c:5:0 in !16", "foo+6 foo /private/tmp/t.c:6:0 in !16", "foo+7 foo /private/tmp/t.c:6:0 in !16",
		"foo+8 foo /private/tmp/t.c:8:0 in !4", "foo+9 foo /private/tmp/t.c:8:0 in !4", "foo+10 foo /private/tmp/t.c:9:0 in !4",
	}, {
		"foo+0 -", "foo+1 -", "foo+2 -", "foo+3 foo /dev/stdin:2:9 in !4", "foo+4 foo /dev/stdin:3:9 in !4",
		"foo+5 foo /dev/stdin:5:11 in !18", "foo+6 foo /dev/stdin:6:11 in !18", "foo+7 foo /dev/stdin:6:9 in !18",
		"foo+8 foo /dev/stdin:8:9 in !4", "foo+9 foo /dev/stdin:8:7 in !4", "foo+10 foo /dev/stdin:9:3 in !4",
	}} {
		// Other parts of the document have lines of these numbers too.
		_, text, _ := strings.Cut(sides[side].String(), "define void @foo()")
		m := parse(t, "define void @foo()"+text)
		if diff := cmp.Diff(want, places(m)); diff != "" {
			t.Errorf("side %d: positions (-want +got):\n%s", side, diff)
		}
		if got := variableTexts(m); len(got) != 3 || !strings.HasPrefix(got[2], "Z int in !1") || !strings.HasSuffix(got[2], "; foo+5-8 i32* %Z") {
			t.Errorf("side %d: variables %q", side, got)
		}
		if p := m.Problems(); len(p) > 0 {
			t.Errorf("side %d: problems %q", side, p)
		}
	}
}
