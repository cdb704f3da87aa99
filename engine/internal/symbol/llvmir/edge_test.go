// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// readAll asks a module for everything.
func readAll(m *Module) (positions []symbol.Position) {
	for range m.Records() {
	}
	for p := range m.Positions() {
		positions = append(positions, p)
	}
	for range m.Calls() {
	}
	m.Variables()
	m.Sources()
	m.Macros()
	return positions
}

// The chains of inlined.c, by hand: inl is called on line 3, column 80.
func TestChainsOfInlinedCalls(t *testing.T) {
	m := parseFile(t, "inlined.ll")
	const f, file = "f ", "/src/ir_a.c:"
	want := []string{
		f + file + "3:60 in !31", f + file + "3:42 in !28", f + file + "3:0 in !14", f + file + "3:117 in !14", "-", "-", "-",
		f + file + "3:87 in !30", f + file + "3:89 in !30",
		"inl " + file + "2:44 in !45 < f " + file + "3:80 in !30", "inl " + file + "2:60 in !45 < f " + file + "3:80 in !30",
		f + file + "3:99 in !30", f + file + "3:112 in !30", f + file + "3:112 in !30", f + file + "3:66 in !31",
		f + file + "3:60 in !31", f + file + "3:42 in !28",
	}
	var got []string
	for p := range m.Positions() {
		got = append(got, placeText(&p))
		for i, frame := range p.Frames {
			if frame.Inlined != (i < len(p.Frames)-1) || frame.StartFile != "/src/ir_a.c" || frame.StartLine == 0 {
				t.Errorf("+%d: frame %d is %+v", p.Instruction, i, frame)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
}

func TestNamesAreDemangledAndQualified(t *testing.T) {
	m := parse(t, `
define void @_ZN1a1fEi() !dbg !0 { ret void, !dbg !7 }
define void @g() { ret void }
define void @_Z1gv() { ret void }
!0 = distinct !DISubprogram(name: "f", linkageName: "_ZN1a1fEi", file: !9, line: 3)
!1 = distinct !DISubprogram(name: "m", scope: !2)
!2 = !DICompositeType(tag: DW_TAG_structure_type, name: "S", scope: !3, identifier: "_ZTS1S")
!3 = !DINamespace(scope: !4)
!4 = !DINamespace(name: "n", scope: !9)
!5 = !DILocation(line: 1, scope: !1, inlinedAt: !6)
!6 = distinct !DILocation(line: 2, scope: !8, inlinedAt: !10)
!7 = !DILocation(line: 4, scope: !11, inlinedAt: !5)
!8 = distinct !DISubprogram(name: "d", scope: !"_ZTS1S", declaration: !12)
!9 = !DIFile(filename: "a.cc", directory: "/src", source: "text")
!10 = distinct !DILocation(line: 5, scope: !0)
!11 = distinct !DISubprogram(name: "o", scope: !"_ZTS1S")
!12 = !DISubprogram(name: "d", linkageName: "\01_ZN1S1dEv")
`)
	var got []string
	for p := range m.Positions() {
		var names []string
		for _, f := range p.Frames {
			names = append(names, f.Function+"/"+f.LinkageName+"/"+f.Name)
		}
		got = append(got, p.Function+": "+strings.Join(names, " "))
	}
	want := []string{
		"_ZN1a1fEi: n::(anonymous namespace)::S::o//o n::(anonymous namespace)::S::m//m S::d()/_ZN1S1dEv/d a::f(int)/_ZN1a1fEi/f",
		"g: g//", "_Z1gv: g()/_Z1gv/",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// Without any one of its nodes a module has the same positions, but for those
// that need the node: they are not there, and none is another one.
func TestWithoutANodePositionsAreTheSameOrMissing(t *testing.T) {
	for _, name := range []string{"inlined.ll", "foo37.ll", "main36.ll"} {
		whole := parseFile(t, name)
		want := readAll(whole)
		missing := 0
		for i, n := range whole.nodes {
			end := len(whole.source)
			if i+1 < len(whole.nodes) && whole.nodes[i+1].def > n.def {
				end = int(whole.nodes[i+1].def)
			}
			// The lines stay, so that they have their numbers.
			text := bytes.Clone(whole.source)
			for k := int(n.def); k < end; k++ {
				if text[k] != '\n' {
					text[k] = ' '
				}
			}
			m := parse(t, string(text))
			got := readAll(m)
			if len(got) != len(want) {
				t.Fatalf("%s without !%d: %d positions, want %d", name, n.id, len(got), len(want))
			}
			for k := range got {
				a, b := chainOnly(&got[k]), chainOnly(&want[k])
				switch {
				case a == b:
				case a == "":
					missing++
					if len(m.Problems()) == 0 {
						t.Errorf("%s without !%d: no problem is told", name, n.id)
					}
				default:
					t.Errorf("%s without !%d: +%d is %q, want %q", name, n.id, k, a, b)
				}
			}
		}
		if missing == 0 {
			t.Errorf("%s: no node was needed", name)
		}
	}
}

// chainOnly is a position without what names and files add to it.
func chainOnly(p *symbol.Position) string {
	var parts []string
	for i, f := range p.Frames {
		if p.Scopes[i] != "" {
			parts = append(parts, fmt.Sprintf("%d:%d in %s", f.Line, f.Column, p.Scopes[i]))
		}
	}
	return strings.Join(parts, " < ")
}

// A text that ends anywhere has the instructions before that, in their places.
func TestCutTextsHaveWhatIsLeft(t *testing.T) {
	whole := parseFile(t, "inlined.ll")
	text := whole.source
	full := whole.functions[0].instructions
	for end := 0; end < len(text); end += 3 {
		m, err := Parse("cut.ll", text[:end])
		if err != nil {
			continue
		}
		readAll(m)
		for i := range m.functions {
			got := m.functions[i].instructions
			if len(got) > len(full) {
				t.Fatalf("cut at %d: %d instructions", end, len(got))
			}
			for k := range got {
				if got[k].start != full[k].start {
					t.Fatalf("cut at %d: instruction %d begins at %d, want %d", end, k, got[k].start, full[k].start)
				}
			}
		}
		if end > int(whole.functions[0].start)+200 && end < int(whole.functions[0].end) && len(m.Problems()) == 0 {
			t.Fatalf("cut at %d: no problem is told", end)
		}
	}
}

// Metadata may lead back to itself.
func TestCyclesEnd(t *testing.T) {
	tests := map[string]string{
		"a location inlined into itself":    "!1 = distinct !DILocation(line: 1, scope: !0, inlinedAt: !1)",
		"two calls inlined into each other": "!1 = distinct !DILocation(line: 1, scope: !0, inlinedAt: !2)\n!2 = distinct !DILocation(line: 1, scope: !0, inlinedAt: !1)",
		"a block around itself":             "!1 = !DILocation(line: 1, scope: !2)\n!2 = distinct !DILexicalBlock(scope: !2, line: 1)",
		"blocks around each other":          "!1 = !DILocation(line: 1, scope: !2)\n!2 = distinct !DILexicalBlock(scope: !3, line: 1)\n!3 = distinct !DILexicalBlock(scope: !2, line: 1)",
		"a location as its own scope":       "!1 = !DILocation(line: 1, scope: !1)",
		"a tuple that is a location":        "!1 = !{i32 1, i32 2, !1, !1}",
	}
	for name, text := range tests {
		m := parse(t, "define void @f() !dbg !0 {\n #dbg_value(i32 1, !9, !DIExpression(), !1)\n ret void, !dbg !1\n}\n!0 = distinct !DISubprogram(name: \"f\")\n!9 = !DILocalVariable(name: \"v\", scope: !0)\n"+text)
		got := readAll(m)
		if len(got) != 1 || got[0].Scopes[0] != "" || len(got[0].Frames) != 1 || got[0].Frames[0].Name != "f" {
			t.Errorf("%s: %+v", name, got)
		}
		if len(m.Problems()) == 0 {
			t.Errorf("%s: no problem is told", name)
		}
	}
	// Types, files, names and tuples.
	m := parse(t, `
@g = global i32 0, !dbg !5
define void @f() !dbg !0 { ret void, !dbg !6 }
!0 = distinct !DISubprogram(name: "f", scope: !1, file: !2, declaration: !0)
!1 = !DINamespace(name: "n", scope: !1)
!2 = !DIFile(file: !2)
!3 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !3)
!4 = !{!4, !{!4}}
!5 = !DIGlobalVariable(name: "g", scope: !4, type: !3)
!6 = !DILocation(line: 1, scope: !0)
!7 = !DILocalVariable(name: "x", scope: !0, type: !8)
!8 = !DISubroutineType(types: !9)
!9 = !{!8, !8, !8, !8, !8, !8, !8, !8}
!10 = !DILocalVariable(name: "y", scope: !0, type: !11)
!11 = !DICompositeType(tag: DW_TAG_array_type, baseType: !11, elements: !9)
`)
	if got := readAll(m); len(got) != 1 || !strings.HasPrefix(got[0].Frames[0].Function, "n::n::") {
		t.Errorf("%+v", got)
	}
}

// What is wrong is told with its line, and what is around it is read.
func TestWhatCannotBeReadIsTold(t *testing.T) {
	const node = "\n!0 = distinct !DISubprogram(name: \"f\")\n!1 = !DILocation(line: 7, scope: !0)\n"
	tests := []struct {
		name, text, problem string
		located             int // instructions with a position
	}{
		{"a location that is not defined", "define void @f() {\n  ret void, !dbg !99\n}" + node, "line 2 (offset", 0},
		{"a location that is something else", "define void @f() {\n  ret void, !dbg !0\n}" + node, "a location is expected, found a DISubprogram", 0},
		{"a location without a scope", "define void @f() {\n  ret void, !dbg !5\n}" + node + "!5 = !DILocation(line: 1, scope: !98)", "the scope of the location is not defined", 0},
		{"a call that is not defined", "define void @f() {\n  ret void, !dbg !5\n}" + node + "!5 = !DILocation(line: 1, scope: !0, inlinedAt: !98)", "that the location was inlined with is not defined", 0},
		{"a scope that is a type", "define void @f() {\n  ret void, !dbg !5\n}" + node + "!5 = !DILocation(line: 1, scope: !6)\n!6 = !DIBasicType(name: \"int\")", "the scope !6 is a DIBasicType", 0},
		{"a function without an end, before another", "define void @f() {\n  ret void, !dbg !1\ndefine void @g() {\n  ret void, !dbg !1\n}" + node, `the function "@f" does not end before this line`, 2},
		{"a function without an end, before metadata", "define void @f() {\n  ret void, !dbg !1" + node, `the function "@f" does not end`, 1},
		{"a function without an end", node + "define void @f() {\n  ret void, !dbg !1\n", `the function "@f" does not end`, 1},
		{"a function without a body", "define void @f()" + node, "the body of a function is expected", 0},
		{"a function without parameters", "define void @f {\n ret void\n}" + node, "the parameters of a function are expected", 0},
		{"a bracket that is not closed", "define void @f() {\n  call void @g(i32 1\n  ret void, !dbg !1\n}" + node, "\")\" expected", 0},
		{"a bracket that closes another", "define void @f() {\n  call void @g(i32 1]\n  ret void, !dbg !1\n}" + node, "')' expected, found ']'", 1},
		{"a node without an end", "!5 = !{!1, !0\ndefine void @f() {\n  ret void, !dbg !1\n}" + node, "the bracket '{' is not closed", 1},
		{"a node that is nothing", "!5 = 7\ndefine void @f() {\n  ret void, !dbg !1\n}" + node, "a node is expected behind \"!5\" =", 1},
		{"a node that is there twice", "define void @f() {\n  ret void, !dbg !1\n}" + node + "!1 = !DILocation(line: 8, scope: !0)\n", "node !1 is defined a second time", 1},
		{"a number that is too large", "define void @f() {\n  ret void, !dbg !1\n}" + node + "!4294967296 = !{}\n", "at most 4294967295 expected", 1},
		{"a reference that is too large", "define void @f() {\n  ret void, !dbg !99999999999999999999\n}" + node, "the location is not defined", 0},
		{"a line that is no instruction", "define void @f() {\nwhatever this is\n  ret void, !dbg !1\n}" + node, "an instruction is expected, found \"whatever\"", 1},
		{"a record that is not a record", "define void @f() {\n  #dbg_value\n  ret void, !dbg !1\n}" + node, "the arguments of a debug record are expected", 1},
		{"a record without a variable", "define void @f() {\n  #dbg_value(i32 1, !0, !DIExpression(), !1)\n  ret void, !dbg !1\n}" + node, "a variable is expected, found \"!0\"", 1},
		{"a record with too little", "define void @f() {\n  #dbg_value(!1)\n  ret void, !dbg !1\n}" + node, "a value and a variable are expected", 1},
		{"a node within a bracket that is missing", "define void @f() {\n  ret void, !dbg !1\n}" + node + "!5 = !DIFoo(a: !{!1)\n!6 = !{}\n", "'}' expected, found ')'", 1},
		{"a node with a member too few", "define void @f() {\n  ret void, !dbg !1\n}" + node + "!5 = !DIFoo(a: , b: 1)\n", "a value expected, found \",\"", 1},
		{"nodes within nodes", "define void @f() {\n  ret void, !dbg !1\n}" + node + "!5 = " + strings.Repeat("!{", 100) + strings.Repeat("}", 100) + "\n", "nodes within 64 nodes", 1},
		{"brackets within brackets", "define void @f() {\n  ret void, !dbg !1\n}" + node + "!5 = " + strings.Repeat("!{", 1000) + strings.Repeat("}", 1000) + "\n", "brackets within 256 brackets", 1},
	}
	for _, test := range tests {
		m, err := Parse("test.ll", []byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		located := 0
		for _, p := range readAll(m) {
			if p.Scopes[0] != "" {
				located++
				if p.Frames[0].Line != 7 {
					t.Errorf("%s: line %d", test.name, p.Frames[0].Line)
				}
			}
		}
		problems := strings.Join(m.Problems(), "\n")
		if !strings.Contains(problems, strings.ReplaceAll(test.problem, `")"`, `')'`)) || !strings.Contains(problems, "test.ll: line ") {
			t.Errorf("%s: problems %s\nwant %s", test.name, problems, test.problem)
		}
		if located != test.located {
			t.Errorf("%s: %d instructions have positions, want %d", test.name, located, test.located)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	m := parse(t, "define void @f() {\n"+strings.Repeat("  fence acquire, !dbg !7\n", 1000)+"}\n")
	readAll(m)
	list := m.Problems()
	if len(list) != maxProblems+1 || !strings.Contains(list[maxProblems], "problems more") {
		t.Errorf("%d problems, the last is %q", len(list), list[len(list)-1])
	}
}

// LLVM lets an instruction go over lines, and several stand on one.
func TestInstructionsNeedNoLines(t *testing.T) {
	m := parse(t, `define { i32, i32 } @"odd name"({ i32 } %s, i32 (i32)* %f) prefix { i8, i8 } { i8 1, i8 2 } personality ptr @p {
entry: %x = add
 i32 1 , ; add i32 2
 2 %y = getelementptr inbounds ({ i32 }, ptr @g, i32 0) %z = tail call i32 @h(i32 add (i32 1, i32 2), ptr getelementptr inbounds (i8, ptr @g, i64 1))
 %w = atomicrmw volatile add ptr @g, i32 1 seq_cst store i32 add nuw (i32 ptrtoint (ptr @g to i32), i32 1), ptr @g
 call void @llvm.dbg.value(metadata i32 0, metadata !0, metadata !DIExpression()) musttail call fastcc void asm sideeffect "ret void; %x = {", ""()
 invoke void @h() to label %next unwind label %"pad 1" next: switch i32 %x, label %done [ i32 0, label %done i32 1, label %done ]
"pad 1": %l = landingpad { ptr, i32 } cleanup catch ptr null filter [1 x ptr] [ptr @g] resume { ptr, i32 } %l
done: call void @"llvm.dbg.value"(metadata i32 0) %"quoted = 1" = select i1 icmp eq (i32 1, i32 2), i32 1, i32 2 ret { i32, i32 } { i32 1, i32 2 }
 uselistorder i32 1, { 1, 0 }
}
!0 = !{}
`)
	if len(m.functions) != 1 || m.functions[0].Name() != "odd name" {
		t.Fatalf("%d functions", len(m.functions))
	}
	f := &m.functions[0]
	var got []string
	for in := range f.Instructions() {
		got = append(got, strings.TrimSpace(in.Result+" "+in.Opcode))
	}
	want := []string{
		"x add", "y getelementptr", "z call", "w atomicrmw", "store", "call", "invoke", "switch", "l landingpad", "resume",
		"quoted = 1 select", "ret",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instructions (-want +got):\n%s", diff)
	}
	if len(f.records) != 2 || f.records[0].before != 5 || f.records[1].before != 10 {
		t.Errorf("records %+v", f.records)
	}
	if len(f.blocks) != 4 || len(m.Problems()) > 0 {
		t.Errorf("%d blocks, problems %q", len(f.blocks), m.Problems())
	}
}

func TestFind(t *testing.T) {
	m := parse(t, `define void @f(i32 %a) !dbg !0 {
  %x = add i32 %a, 1, !dbg !1
  %1 = add i32 %a, 1, !dbg !2
  ret void
}
define void @"g+1%x"() {
  %x = add i32 0, 1
  %"a b" = add i32 0, 1
  ret void
}
define void @_ZN1n1hEi() !dbg !3 { ret void }
define void @_ZN1n1kEv() !dbg !4 { ret void }
define void @_ZN1o1kEv() !dbg !5 { ret void }
!0 = distinct !DISubprogram(name: "f")
!1 = !DILocation(line: 7, scope: !0)
!2 = !DILocation(line: 8, scope: !0)
!3 = distinct !DISubprogram(name: "h", linkageName: "_ZN1n1hEi")
!4 = distinct !DISubprogram(name: "k", linkageName: "_ZN1n1kEv")
!5 = distinct !DISubprogram(name: "k", linkageName: "_ZN1o1kEv")
`)
	tests := []struct {
		text  string
		hex   bool
		want  string
		error string
	}{
		{"f", false, "f+0", ""}, {"@f", false, "f+0", ""}, {"f+1", false, "f+1", ""}, {"f+0x2", false, "f+2", ""}, {"f%x", false, "f+0", ""}, {"@f%1", false, "f+1", ""},
		{"%1", false, "f+1", ""}, {"%a b", false, "g+1%x+1", ""}, {`%"a b"`, false, "g+1%x+1", ""},
		{"g+1%x", false, "g+1%x+0", ""}, {"g+1%x+2", false, "g+1%x+2", ""}, {"g+1%x%x", false, "g+1%x+0", ""}, {`@"g+1%x"+1`, false, "g+1%x+1", ""},
		{"3", false, "f+1", ""}, {"0x9", false, "g+1%x+2", ""}, {"9", true, "g+1%x+2", ""},
		{"%x", false, "", "several functions have a result %x: expected FUNCTION%x"},
		{"%nothing", false, "", "no instruction has the result %nothing"},
		{"f%nothing", false, "", "no instruction of f has the result %nothing"},
		{"f+3", false, "", "f has 3 instructions"}, {"f+-1", false, "", "the number of an instruction is expected behind f+"}, {"f+", false, "", "the number of an instruction is expected"},
		{"f+99999999999999999999", false, "", "the number of an instruction is expected"},
		{"h", false, "_ZN1n1hEi+0", ""}, {"n::h(int)+0", false, "_ZN1n1hEi+0", ""}, {"o::k()", false, "_ZN1o1kEv+0", ""},
		{"k", false, "", "a function, FUNCTION+INSTRUCTION"}, {"j+1", false, "", "a function, FUNCTION+INSTRUCTION"}, {"", false, "", "a function"},
		{"1", false, "", "no instruction begins on line 1"}, {"0", false, "", "no instruction begins on line 0"}, {"1000000", false, "", "no instruction begins"},
	}
	for _, test := range tests {
		p, err := m.Find(test.text, test.hex)
		switch {
		case test.error != "":
			if err == nil || !strings.Contains(err.Error(), test.error) {
				t.Errorf("%q: %v, want %q", test.text, err, test.error)
			}
		case err != nil:
			t.Errorf("%q: %v", test.text, err)
		default:
			if got := fmt.Sprintf("%s+%d", p.Function, p.Instruction); got != test.want {
				t.Errorf("%q is %s, want %s", test.text, got, test.want)
			}
		}
	}
}

func TestIsToldByNameOrBeginning(t *testing.T) {
	for text, want := range map[string]bool{
		"; ModuleID = 'x'\n": true, "source_filename = \"x\"": true, "; comment\ntarget triple = \"x\"": true, "define void @f() {": true,
		"!0 = !{}": true, "%struct.S = type { i32 }": true, "@g = global i32 0": true, "@media print": false, "100% = all": false, "!llvm.dbg.cu = !{}": true, "target practice": false, "hello": false, "": false, "\x7fELF": false, "BC\xc0\xde": true, "BC\xc0": false, "# a": false,
	} {
		if got := Is("file", []byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if !Is("a.ll", nil) {
		t.Error("a.ll is not told by its name")
	}
	if _, err := Parse("a.ll", []byte("hello, world\n")); err == nil || !strings.Contains(err.Error(), "a.ll: no LLVM IR") {
		t.Errorf("a text of something else: %v", err)
	}
}

func TestSourcesMacrosAndTypes(t *testing.T) {
	m := parse(t, `
!0 = distinct !DISubprogram(name: "f", file: !1)
!1 = !DIFile(filename: "a\5Cb.c", directory: "/src/", checksumkind: CSK_MD5, checksum: "00ff", source: "int x;\0A")
!2 = !DIFile(filename: "C:\\w\\b.c", directory: "C:\\src")
!3 = !DIFile(filename: "b.c", directory: "C:\\src")
!4 = !DIMacroFile(file: !1, nodes: !5)
!5 = !{!6, !7}
!6 = !DIMacro(type: DW_MACINFO_define, line: 3, name: "MAX(a,b)", value: "((a)>(b))")
!7 = !DIMacro(type: DW_MACINFO_undef, line: 4, name: "MAX")
!8 = !DIMacro(type: DW_MACINFO_define, name: "NDEBUG")
!10 = !DIBasicType(name: "char", size: 8, encoding: DW_ATE_signed_char)
!11 = !DIDerivedType(tag: DW_TAG_const_type, baseType: !10)
!12 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !11)
!13 = !DIDerivedType(tag: DW_TAG_const_type, baseType: !12)
!14 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: null)
!15 = !DIDerivedType(tag: DW_TAG_typedef, name: "text", baseType: !12)
!16 = !DICompositeType(tag: DW_TAG_array_type, baseType: !15, elements: !{!17, !18})
!17 = !DISubrange(count: 3)
!18 = !DISubrange(count: !0)
!19 = !DISubroutineType(types: !{null, !12, null})
!20 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !19)
!21 = !DIDerivedType(tag: DW_TAG_reference_type, baseType: !14)
!30 = !DILocalVariable(name: "a", scope: !0, type: !13)
!31 = !DILocalVariable(name: "b", scope: !0, type: !14)
!32 = !DILocalVariable(name: "c", scope: !0, type: !16)
!33 = !DILocalVariable(name: "d", scope: !0, type: !20)
!34 = !DILocalVariable(name: "e", scope: !0, type: !21)
!35 = !DILocalVariable(name: "f", scope: !0)
`)
	sources := []symbol.SourceFile{
		{ID: "!1", Path: `/src/a\b.c`, Checksum: "MD5:00ff", Text: "int x;\n", HasText: true}, {ID: "!2", Path: `C:\w\b.c`}, {ID: "!3", Path: `C:\src\b.c`},
	}
	if diff := cmp.Diff(sources, m.Sources()); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	macros := []symbol.Macro{
		{ID: "!6", Name: "MAX(a,b)", Value: "((a)>(b))", File: `/src/a\b.c`, Line: 3},
		{ID: "!7", Name: "MAX", File: `/src/a\b.c`, Line: 4, IsUndef: true}, {ID: "!8", Name: "NDEBUG"},
	}
	if diff := cmp.Diff(macros, m.Macros()); diff != "" {
		t.Errorf("macros (-want +got):\n%s", diff)
	}
	types := map[string]string{}
	for _, v := range m.Variables() {
		types[v.Name] = v.Type
	}
	want := map[string]string{"a": "const char* const", "b": "void*", "c": "text[3][]", "d": "void(const char*, ...)*", "e": "void*&", "f": ""}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

func TestGlobalVariables(t *testing.T) {
	m := parse(t, `
@a = global i32 0, align 4, !dbg !0
@b = internal constant [2 x i8] c"!d", section "x", !dbg !2, !type !9
@c = global i32 0, !dbg !5
@d = external global i32
!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "a", linkageName: "_Z1a", line: 3)
!2 = !DIGlobalVariableExpression(var: !3, expr: !DIExpression(DW_OP_plus_uconst, 4))
!3 = distinct !DIGlobalVariable(name: "b")
!4 = !DIGlobalVariableExpression(var: !6, expr: !DIExpression(DW_OP_constu, 7, DW_OP_stack_value))
!5 = !DIGlobalVariable(name: "c")
!6 = distinct !DIGlobalVariable(name: "k")
!7 = !DIGlobalVariableExpression(var: !8, expr: !DIExpression())
!8 = distinct !DIGlobalVariable(name: "gone")
!9 = !{}
`)
	var got []string
	for _, v := range m.Variables() {
		text := v.Name + v.LinkageName
		for _, r := range v.Ranges {
			text += fmt.Sprintf(" %v %q %x %s", r.IsAddress, r.Values, r.Expression, r.Problem)
		}
		got = append(got, text)
	}
	want := []string{`a_Z1a true ["@a"]  `, `b true ["@b"] 2304 `, `c true ["@c"]  `, `k false [] 10079f `, "gone"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}
