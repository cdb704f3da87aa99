// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// said is a record with every ID replaced by what it stands for: a string, a
// number, another record by its kind and name, or an instruction.
func said(m *Module, r *Record) string {
	plain := m.plain(r)
	parts := []string{plain.Kind}
	for _, o := range plain.Operands {
		value := fmt.Sprint(o.Value)
		switch {
		case o.HasText:
			value = fmt.Sprintf("%q", o.Text)
		case strings.HasPrefix(value, "%"):
			var id uint32
			fmt.Sscanf(value, "%%%d", &id)
			if i, ok := m.byID[id]; ok {
				value = m.records[i].Layout.Name
				if name := m.stringOf(&m.records[i], "Name"); name != "" {
					value += ":" + name
				}
			} else {
				value = fmt.Sprintf("Op%d", m.opcode(id))
			}
		}
		parts = append(parts, o.Name+"="+value)
	}
	return strings.Join(parts, " ")
}

// debugInfoRecords are those of testdata/debuginfo.spvasm, by the number of
// their instruction; chapter 4 says what each operand is.
var debugInfoRecords = map[Op][]string{
	DebugInfoNone:        {`DebugInfoNone`},
	DebugCompilationUnit: {`DebugCompilationUnit Source="/src/scale.cl" Version=65536 DWARFVersion=4`},
	DebugTypeBasic: {
		`DebugTypeBasic Name="int" Size="32" Encoding=Signed`,
		`DebugTypeBasic Name="float" Size="32" Encoding=Float`,
	},
	DebugTypePointer: {
		`DebugTypePointer BaseType=DebugTypeBasic:int StorageClass=CrossWorkgroup Flags=None`,
		`DebugTypePointer BaseType=DebugTypeBasic:int StorageClass=Generic Flags=FlagLValueReference`,
	},
	DebugTypeQualifier: {
		`DebugTypeQualifier BaseType=DebugTypeBasic:int TypeQualifier=ConstType`,
		`DebugTypeQualifier BaseType=DebugTypePointer TypeQualifier=VolatileType`,
	},
	DebugTypeArray:  {`DebugTypeArray BaseType=DebugTypeQualifier ComponentCounts="2" ComponentCounts="5"`},
	DebugTypeVector: {`DebugTypeVector BaseType=DebugTypeBasic:float ComponentCount=4`},
	DebugTypedef:    {`DebugTypedef Name="real" BaseType=DebugTypeBasic:float Source="/src/scale.cl" Line=3 Column=31 Parent=DebugLexicalBlock:geo`},
	DebugTypeFunction: {
		`DebugTypeFunction ReturnType=DebugTypeBasic:int ParameterTypes=DebugTypeBasic:int`,
		`DebugTypeFunction ReturnType=Op19 ParameterTypes=DebugTypeBasic:int`,
	},
	DebugTypeEnum: {
		`DebugTypeEnum Name="Color" UnderlyingType=DebugInfoNone Source="/src/scale.cl" Line=5 Column=6 Parent=DebugCompilationUnit Size="32" Flags=None` +
			` Value="0" Name="RED" Value="5" Name="GREEN"`,
	},
	DebugTypeComposite: {
		`DebugTypeComposite Name="Base" Tag=Structure Source="/src/scale.cl" Line=4 Column=70 Parent=DebugCompilationUnit Size="32" Flags=FlagFwdDecl`,
		`DebugTypeComposite Name="Box" Tag=Structure Source="/src/scale.cl" Line=4 Column=60 Parent=DebugCompilationUnit Size="64" Flags=None` +
			` Members=DebugTypeInheritance Members=DebugTypeMember:k Members=DebugTypeMember:d`,
		`DebugTypeComposite Name="@image2d_t" Tag=Class Source="/src/scale.cl" Line=0 Column=0 Parent=DebugCompilationUnit Size=DebugInfoNone Flags=None`,
	},
	DebugTypeMember: {
		`DebugTypeMember Name="k" Type=DebugTypeQualifier Source="/src/scale.cl" Line=4 Column=100 Parent=DebugTypeComposite:Box Offset="0" Size="32"` +
			` Flags=FlagIsPublic|FlagStaticMember Value="7"`,
		`DebugTypeMember Name="d" Type=DebugTypeArray Source="/src/scale.cl" Line=4 Column=110 Parent=DebugTypeComposite:Box Offset="32" Size="64" Flags=FlagIsPublic`,
	},
	DebugTypeInheritance: {`DebugTypeInheritance Child=DebugTypeComposite:Box Parent=DebugTypeComposite:Base Offset="0" Size="32" Flags=FlagIsPublic`},
	DebugTypePtrToMember: {`DebugTypePtrToMember MemberType=DebugTypeBasic:int Parent=DebugTypeComposite:Box`},
	DebugTypeTemplate: {
		`DebugTypeTemplate Target=DebugTypeComposite:Box Parameters=DebugTypeTemplateParameter:T Parameters=DebugTypeTemplateParameter:N` +
			` Parameters=DebugTypeTemplateTemplateParameter:C Parameters=DebugTypeTemplateParameterPack:Ts`,
	},
	DebugTypeTemplateParameter: {
		`DebugTypeTemplateParameter Name="T" ActualType=DebugTypeBasic:int Value=DebugInfoNone Source="/src/scale.cl" Line=4 Column=11`,
		`DebugTypeTemplateParameter Name="N" ActualType=DebugTypeBasic:int Value="2" Source="/src/scale.cl" Line=4 Column=23`,
	},
	DebugTypeTemplateTemplateParameter: {`DebugTypeTemplateTemplateParameter Name="C" TemplateName="vec" Source="/src/scale.cl" Line=4 Column=30`},
	DebugTypeTemplateParameterPack: {
		`DebugTypeTemplateParameterPack Name="Ts" Source="/src/scale.cl" Line=4 Column=45 TemplateParameters=DebugTypeTemplateParameter:T` +
			` TemplateParameters=DebugTypeTemplateParameter:N`,
	},
	DebugGlobalVariable: {
		`DebugGlobalVariable Name="table" Type=DebugTypeComposite:Box Source="/src/scale.cl" Line=9 Column=5 Parent=DebugCompilationUnit LinkageName=""` +
			` Variable=Op59 Flags=FlagIsDefinition StaticMemberDeclaration=DebugTypeMember:k`,
	},
	DebugFunctionDeclaration: {
		`DebugFunctionDeclaration Name="inner" Type=DebugTypeFunction Source="/src/scale.cl" Line=6 Column=5 Parent=DebugLexicalBlock:geo` +
			` LinkageName="_Z5inneri" Flags=FlagPrototyped`,
	},
	DebugFunction: {
		`DebugFunction Name="inner" Type=DebugTypeFunction Source="/src/scale.cl" Line=6 Column=5 Parent=DebugLexicalBlock:geo LinkageName="_Z5inneri"` +
			` Flags=FlagIsDefinition|FlagPrototyped ScopeLine=6 Function=DebugInfoNone Declaration=DebugFunctionDeclaration:inner`,
		`DebugFunction Name="outer" Type=DebugTypeFunction Source="/src/scale.cl" Line=7 Column=5 Parent=DebugCompilationUnit LinkageName=""` +
			` Flags=FlagIsDefinition ScopeLine=7 Function=DebugInfoNone`,
		`DebugFunction Name="scale" Type=DebugTypeFunction Source="/src/scale.cl" Line=8 Column=6 Parent=DebugCompilationUnit LinkageName=""` +
			` Flags=FlagIsDefinition ScopeLine=8 Function=Op54`,
	},
	DebugLexicalBlock: {
		`DebugLexicalBlock Source="/src/scale.cl" Line=3 Column=1 Parent=DebugCompilationUnit Name="geo"`,
		`DebugLexicalBlock Source="/src/scale.cl" Line=7 Column=27 Parent=DebugFunction:outer`,
	},
	DebugLexicalBlockDiscriminator: {`DebugLexicalBlockDiscriminator Source="/src/scale.cl" Discriminator=3 Parent=DebugLexicalBlock`},
	DebugScope: {
		`DebugScope Scope=DebugFunction:scale`,
		`DebugScope Scope=DebugLexicalBlockDiscriminator InlinedAt=DebugInlinedAt`,
		`DebugScope Scope=DebugFunction:inner InlinedAt=DebugInlinedAt`,
		`DebugScope Scope=DebugFunction:scale`,
	},
	DebugNoScope: {`DebugNoScope`},
	DebugInlinedAt: {
		`DebugInlinedAt Line=8 Scope=DebugFunction:scale`,
		`DebugInlinedAt Line=7 Scope=DebugLexicalBlockDiscriminator Inlined=DebugInlinedAt`,
	},
	DebugLocalVariable: {
		`DebugLocalVariable Name="x" Type=DebugTypeBasic:int Source="/src/scale.cl" Line=6 Column=15 Parent=DebugFunction:inner ArgNumber=1`,
		`DebugLocalVariable Name="y" Type=DebugTypeBasic:int Source="/src/scale.cl" Line=6 Column=24 Parent=DebugFunction:inner`,
		`DebugLocalVariable Name="a" Type=DebugTypeQualifier Source="/src/scale.cl" Line=7 Column=15 Parent=DebugFunction:outer ArgNumber=1`,
		`DebugLocalVariable Name="n" Type=DebugTypeQualifier Source="/src/scale.cl" Line=8 Column=16 Parent=DebugFunction:scale ArgNumber=1`,
	},
	DebugInlinedVariable: {`DebugInlinedVariable Variable=DebugLocalVariable:x Inlined=DebugInlinedAt`},
	DebugDeclare:         {`DebugDeclare LocalVariable=DebugLocalVariable:n Variable=Op59 Expression=DebugExpression`},
	DebugValue: {
		`DebugValue LocalVariable=DebugLocalVariable:a Value=Op55 Expression=DebugExpression`,
		`DebugValue LocalVariable=DebugInlinedVariable Value=Op128 Expression=DebugExpression`,
	},
	DebugOperation: {
		`DebugOperation OpCode=Deref`,
		`DebugOperation OpCode=PlusUconst Operands=8`,
		`DebugOperation OpCode=BitPiece Operands=16 Operands=0`,
	},
	DebugExpression: {
		`DebugExpression`,
		`DebugExpression Operations=DebugOperation Operations=DebugOperation`,
		`DebugExpression Operations=DebugOperation`,
	},
	DebugMacroDef:   {`DebugMacroDef Source="/src/scale.cl" Line=1 Name="LIMIT(x)" Value="((x)+1)"`},
	DebugMacroUndef: {`DebugMacroUndef Source="/src/scale.cl" Line=2 Macro=DebugMacroDef:LIMIT(x)`},
}

func TestEveryInstructionOfDebugInfo(t *testing.T) {
	m := parseText(t, source(t, "debuginfo.spvasm"))
	got := map[Op][]string{}
	for i := range m.records {
		got[m.records[i].Op] = append(got[m.records[i].Op], said(m, &m.records[i]))
	}
	for op := DebugInfoNone; op <= DebugMacroUndef; op++ {
		if len(debugInfoRecords[op]) == 0 {
			t.Errorf("instruction %d of DebugInfo, %s, has no test", op, setByName("DebugInfo").Layout(op).Name)
		}
		if diff := cmp.Diff(debugInfoRecords[op], got[op]); diff != "" {
			t.Errorf("instruction %d (-expected +read):\n%s", op, diff)
		}
	}
	if ops := setByName("DebugInfo").Ops(); len(ops) != 34 || ops[33] != DebugMacroUndef {
		t.Errorf("DebugInfo has the instructions %v, expected 0 to 33", ops)
	}
}

// otherRecords are what the modules of the other sets have otherwise than that of
// DebugInfo.
var otherRecords = map[string][]string{
	"opencl.spvasm": {
		`DebugCompilationUnit Version=65536 DWARFVersion=4 Source=DebugSource Language=OpenCL_CPP`,
		`DebugTypeFunction Flags=None ReturnType=Op19 ParameterTypes=DebugTypeBasic:int`,
		`DebugTypeComposite Name="@image2d_t" Tag=Class Source=DebugSource Line=0 Column=0 Parent=DebugCompilationUnit LinkageName="" Size=DebugInfoNone Flags=None`,
		`DebugLocalVariable Name="x" Type=DebugTypeBasic:int Source=DebugSource Line=6 Column=15 Parent=DebugFunction:inner Flags=None ArgNumber=1`,
		`DebugValue LocalVariable=DebugLocalVariable:a Value=Op55 Expression=DebugExpression Indexes="0"`,
		`DebugOperation OpCode=Fragment Operands=8 Operands=16`,
		`DebugImportedEntity Name="geo" Tag=ImportedModule Source=DebugSource Entity=DebugLexicalBlock:geo Line=8 Column=1 Parent=DebugCompilationUnit`,
		`DebugSource File="/src/scale.cl" Text="//__CSK_MD5:00112233445566778899aabbccddeeff"`,
		`DebugModuleINTEL Name="geo" Source=DebugSource Parent=DebugCompilationUnit Line=1 ConfigurationMacros="((x)+1)" IncludePath="" APINotesFile="" IsDeclaration=1`,
	},
	"shader.spvasm": {
		`DebugCompilationUnit Version="65536" DWARFVersion="4" Source=DebugSource Language="OpenCL_CPP"`,
		`DebugTypeBasic Name="float" Size="32" Encoding="Float" Flags="None"`,
		`DebugTypePointer BaseType=DebugTypeBasic:int StorageClass="Generic" Flags="FlagLValueReference"`,
		`DebugTypeMember Name="k" Type=DebugTypeQualifier Source=DebugSource Line="4" Column="100" Offset="0" Size="32" Flags="FlagIsPublic|FlagStaticMember" Value="7"`,
		`DebugTypeInheritance Parent=DebugTypeComposite:Base Offset="0" Size="32" Flags="FlagIsPublic"`,
		`DebugFunction Name="inner" Type=DebugTypeFunction Source=DebugSource Line="6" Column="5" Parent=DebugLexicalBlock:geo LinkageName="_Z5inneri"` +
			` Flags="FlagIsDefinition|FlagPrototyped" ScopeLine="6" Declaration=DebugFunctionDeclaration:inner`,
		`DebugOperation OpCode="Fragment" Operands="8" Operands="16"`,
		`DebugFunctionDefinition Function=DebugFunction:scale Definition=Op54`,
		`DebugSourceContinued Text="#undef LIMIT\n"`,
		`DebugLine Source=DebugSource LineStart="7" LineEnd="7" ColumnStart="35" ColumnEnd="35"`,
		`DebugNoLine`,
		`DebugBuildIdentifier Identifier="c0ffee" Flags="IdentifierPossibleDuplicates"`,
		`DebugStoragePath Path="/src/scale.cl"`,
		`DebugEntryPoint EntryPoint=DebugFunction:scale CompilationUnit=DebugCompilationUnit CompilerSignature="c0ffee" CommandLineArguments=""`,
		`DebugTypeMatrix VectorType=DebugTypeVector VectorCount="3" ColumnMajor=Op41`,
	},
}

func TestEveryInstructionOfTheOtherSets(t *testing.T) {
	for name, expected := range otherRecords {
		m := parseText(t, source(t, name))
		var got []string
		seen := map[Op]bool{}
		for i := range m.records {
			got = append(got, said(m, &m.records[i]))
			seen[m.records[i].Op] = true
		}
		for _, record := range expected {
			if !slices.Contains(got, record) {
				t.Errorf("%s has no record\n%s\nin\n%s", name, record, strings.Join(got, "\n"))
			}
		}
		for _, op := range m.records[0].Set.Ops() {
			if !seen[op] {
				t.Errorf("%s has no %s, instruction %d of %s", name, m.records[0].Set.Layout(op).Name, op, m.records[0].Set.Name)
			}
		}
	}
}

// The sets say the same in the same words: the same chains of calls, variables,
// macros and text of the source.
func TestSetsAgree(t *testing.T) {
	expected := []string{"scale 8:21", "outer 7:35 < scale 8", "inner 6:32 < outer 7 < scale 8", "? 6:32", "?", "scale 8:31", "?"}
	inlined := map[string]string{
		"debuginfo.spvasm": `DebugInlinedAt Line=7 Scope=DebugLexicalBlockDiscriminator Inlined=DebugInlinedAt`,
		"opencl.spvasm":    `DebugInlinedAt Line=7 Scope=DebugLexicalBlockDiscriminator Inlined=DebugInlinedAt`,
		"shader.spvasm":    `DebugInlinedAt Line="7" Scope=DebugLexicalBlockDiscriminator Inlined=DebugInlinedAt`,
	}
	for _, name := range setModules {
		m := parseText(t, source(t, name))
		var chains []string
		for p := range m.Positions() {
			op, _ := m.instruction(uint32(p.Offset))
			if r := m.recordAt(uint32(p.Offset)); r != nil && r.Op == DebugFunctionDefinition {
				continue
			}
			if m.setsPlace(op, uint32(p.Offset)) || op == opLabel || op == opVariable || op == opFunctionParameter {
				continue
			}
			if c := chain(&p); len(chains) == 0 || chains[len(chains)-1] != c {
				chains = append(chains, c)
			}
			for i, f := range p.Frames {
				if f.Line != 0 && f.File != "/src/scale.cl" {
					t.Errorf("%s+%d: file %q", name, p.Instruction, f.File)
				}
				if inlined := i < len(p.Frames)-1; f.Inlined != inlined {
					t.Errorf("%s+%d: frame %d of %d is inlined: %v", name, p.Instruction, i, len(p.Frames), f.Inlined)
				}
				if f.Name == "outer" && f.Discriminator != 3 {
					t.Errorf("%s+%d: discriminator %d, expected 3", name, p.Instruction, f.Discriminator)
				}
			}
		}
		if diff := cmp.Diff(expected, chains); diff != "" {
			t.Errorf("%s: chains (-expected +read):\n%s", name, diff)
		}
		var variables []string
		for _, v := range m.Variables() {
			text := fmt.Sprintf("%s %s %d:%d %s %d", v.Type, v.Name, v.Line, v.Column, v.Function, v.Argument)
			for _, r := range v.Ranges {
				text += fmt.Sprintf(" %s %v", r.Function, r.IsAddress)
				if v.InlinedAt != "" {
					text += " inlined at " + said(m, m.find(number(t, v.InlinedAt)))
				}
			}
			variables = append(variables, text)
		}
		if diff := cmp.Diff([]string{
			"Box table 9:5  0  true", "int x 6:15 inner 1 scale false inlined at " + inlined[name],
			"int y 6:24 inner 0", "const int a 7:15 outer 1 scale false", "int* volatile n 8:16 scale 1 scale true",
		}, variables); diff != "" {
			t.Errorf("%s: variables (-expected +read):\n%s", name, diff)
		}
		macros := m.Macros()
		for i := range macros {
			macros[i].ID = ""
		}
		if diff := cmp.Diff([]symbol.Macro{
			{Name: "LIMIT(x)", Value: "((x)+1)", File: "/src/scale.cl", Line: 1},
			{Name: "LIMIT(x)", File: "/src/scale.cl", Line: 2, IsUndef: true},
		}, macros); diff != "" {
			t.Errorf("%s: macros (-expected +read):\n%s", name, diff)
		}
		if s := m.Sources()[0]; s.Path != "/src/scale.cl" || s.Text != "#define LIMIT(x) ((x)+1)\n#undef LIMIT\n" || !s.HasText {
			t.Errorf("%s: source %+v", name, s)
		}
		if s := m.Sources()[0]; name == "opencl.spvasm" && s.Checksum != "MD5:00112233445566778899aabbccddeeff" {
			t.Errorf("%s: checksum %q", name, s.Checksum)
		}
	}
}

func TestTypeNames(t *testing.T) {
	m := parseText(t, source(t, "debuginfo.spvasm"))
	var got []string
	for i := range m.records {
		r := &m.records[i]
		if name := m.TypeName(r.ID); strings.HasPrefix(r.Layout.Name, "DebugType") && !strings.HasPrefix(r.Layout.Name, "DebugTypeTemplateP") {
			got = append(got, fmt.Sprintf("%s %v", name, m.IsOpaque(r)))
		}
	}
	expected := []string{
		"int false", "float false", "int* false", "int& false", "const int false", "int* volatile false", "const int[2][5] false", "float4 false",
		"real false", "int(int) false", "void(int) false", "Color false", "Base false", "const int false", "const int[2][5] false", "? false", "Box false",
		"int Box::* false", "? false", "Box false", "image2d_t true",
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("types (-expected +named):\n%s", diff)
	}
}

// number is the ID of a text.
func number(t *testing.T, text string) (id uint32) {
	t.Helper()
	if _, err := fmt.Sscanf(text, "%%%d", &id); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return id
}

func TestChecksumsOfSources(t *testing.T) {
	for text, expected := range map[string][2]string{
		"":                            {"", ""},
		"int x;\n":                    {"int x;\n", ""},
		"//__CSK_MD5:00ff":            {"", "MD5:00ff"},
		"//__CSK_SHA1:00ff\nint x;\n": {"int x;\n", "SHA1:00ff"},
	} {
		if rest, checksum := cutChecksum(text); rest != expected[0] || checksum != expected[1] {
			t.Errorf("%q: %q and %q, expected %q", text, rest, checksum, expected)
		}
	}
}

// The text that a compiler embeds has the lines of the file.
func TestEmbeddedTextIsTheFile(t *testing.T) {
	list := compiled(t)
	for _, name := range []string{"shader.comp", "calls.comp", "calls.comp.lines"} {
		m := parse(t, name, list[name])
		if s := m.Sources(); len(s) == 0 || s[0].Text != source(t, strings.TrimSuffix(name, ".lines")) {
			t.Errorf("%s: sources %+v, expected the file", name, s)
		}
	}
	for text, expected := range map[string]string{
		"#line 1\nx": "#line 1\nx", "// OpModuleProcessed a\nx": "// OpModuleProcessed a\nx", "// OpModuleProcessed a\n#line 1\nx": "x", "": "",
	} {
		if got := cutPreamble(text); got != expected {
			t.Errorf("%q: %q, expected %q", text, got, expected)
		}
	}
}
