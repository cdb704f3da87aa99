// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ofSet is a module whose set of debug information is called name. What another
// import calls "new" belongs to that set too: spirv-as takes instructions of a set
// that it does not know by their numbers.
func ofSet(w []uint32, name string) []uint32 {
	var list [][]uint32
	var own, added uint32
	for _, i := range instructions(w) {
		if i[0]&0xffff == opExtInstImport {
			switch text := strings.TrimRight(string(module(i[2:], binary.LittleEndian)), "\x00"); {
			case text == "NonSemantic.new":
				added = i[1]
				continue
			case strings.Contains(text, "DebugInfo"):
				own = i[1]
				b := append([]byte(name), make([]byte, 4-len(name)%4)...)
				i = append([]uint32{0, own}, words(b)...)
				i[0] = uint32(len(i))<<16 | opExtInstImport
			}
		}
		if i[0]&0xffff == opExtInst && added != 0 && i[3] == added {
			i = slices.Clone(i)
			i[3] = own
		}
		list = append(list, i)
	}
	return join(w, list)
}

// allSaid is what records say, without IDs and offsets.
func allSaid(m *Module) []string {
	var list []string
	for i := range m.records {
		list = append(list, said(m, &m.records[i]))
	}
	return list
}

// A version that is not known is read as one that is, and that is said.
func TestVersionsOfSets(t *testing.T) {
	const shader = "NonSemantic.Shader.DebugInfo"
	for _, c := range []struct{ file, name, readAs string }{
		{"shader.spvasm", shader + ".101", ""},
		{"shader.spvasm", shader + ".200", ""},
		{"shader.spvasm", shader + ".102", shader + ".101"},
		{"shader.spvasm", shader + ".199", shader + ".101"},
		{"shader.spvasm", shader + ".201", shader + ".200"},
		{"shader.spvasm", shader + ".99", shader + ".200"},
		{"shader.spvasm", shader + ".99999999999999999999", shader + ".200"},
		{"shader.spvasm", shader + ".next", shader + ".200"},
		{"shader.spvasm", shader, shader + ".200"},
		{"shader.spvasm", "NonSemantic.Vulkan.DebugInfo.100", shader + ".100"},
		{"shader.spvasm", "NonSemantic.Kernel.DebugInfo.100", shader + ".200"},
		{"opencl.spvasm", "OpenCL.DebugInfo.101", "OpenCL.DebugInfo.100"},
		{"opencl.spvasm", "OpenCL.DebugInfo", "OpenCL.DebugInfo.100"},
		{"opencl.spvasm", "SPIRV.debug.2", "SPIRV.debug"},
		{"debuginfo.spvasm", "DebugInfo.2", "DebugInfo"},
	} {
		w := words(assemble(t, source(t, c.file)))
		expected := parse(t, c.file, module(w, binary.LittleEndian))
		m, err := Read(c.name, module(ofSet(w, c.name), binary.LittleEndian))
		if err != nil {
			t.Fatal(err)
		}
		problems := []string{}
		if c.readAs != "" {
			at := uint32(0)
			for id := range m.sets {
				at = m.defs[id]
			}
			problems = []string{fmt.Sprintf("%s: word 0x%x: the set %q is of a version that is not known, and read as %s", c.name, at, c.name, c.readAs)}
		}
		if diff := cmp.Diff(problems, append([]string{}, m.Problems()...)); diff != "" {
			t.Errorf("%s: problems (-expected +read):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(allSaid(expected), allSaid(m)); diff != "" || len(m.records) == 0 {
			t.Errorf("%s: records (-of %s +read):\n%s", c.name, c.file, diff)
		}
		if diff := cmp.Diff(chainsByResult(expected), chainsByResult(m)); diff != "" {
			t.Errorf("%s: positions (-of %s +read):\n%s", c.name, c.file, diff)
		}
	}
}

// The modules of compilers say the same under the name of any version.
func TestVersionsOfCompiledModules(t *testing.T) {
	for name, data := range compiled(t) {
		m := parse(t, name, data)
		if len(m.records) == 0 || !m.records[0].Set.HasConstants {
			continue
		}
		for _, version := range []string{"101", "102", "200", "300"} {
			got, err := Read(name, module(ofSet(words(data), "NonSemantic.Shader.DebugInfo."+version), binary.LittleEndian))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(allSaid(m), allSaid(got)); diff != "" {
				t.Errorf("%s as %s: records\n%s", name, version, diff)
			}
			if diff := cmp.Diff(chainsByResult(m), chainsByResult(got)); diff != "" {
				t.Errorf("%s as %s: positions\n%s", name, version, diff)
			}
		}
	}
}

// A set of another kind is said where it is of debug information.
func TestSetsThatAreNotRead(t *testing.T) {
	w := words(assemble(t, source(t, "shader.spvasm")))
	for name, expected := range map[string]string{
		"NonSemantic.Graph.DebugInfo.1":        `the set "NonSemantic.Graph.DebugInfo.1" is not known, its debug information is not read; expected DebugInfo, SPIRV.debug, `,
		"DebugInfoOfAnother":                   `the set "DebugInfoOfAnother" is not known`,
		"NonSemantic.ClspvReflection.5":        "",
		"NonSemantic.DebugPrintf":              "",
		"DebugInfo" + strings.Repeat("x", 200): `xxx..." is not known`,
	} {
		m, err := Read("set", module(ofSet(w, name), binary.LittleEndian))
		if err != nil {
			t.Fatal(err)
		}
		problems := strings.Join(m.Problems(), "\n")
		if !strings.Contains(problems, expected) || expected == "" && problems != "" || len(m.records) != 0 {
			t.Errorf("%s: %d records, problems %q, expected %q", name, len(m.records), problems, expected)
		}
	}
}

// An operand more than known loses nothing. Where the version is not known it is
// said once for each instruction.
func TestAnOperandMore(t *testing.T) {
	w := words(assemble(t, source(t, "shader.spvasm")))
	m := parse(t, "shader.spvasm", module(w, binary.LittleEndian))
	// It is an ID that no operand could be.
	list := instructions(w)
	longer := func(name string) *Module {
		changed := slices.Clone(list)
		at := uint32(headerWords)
		for i := range list {
			if r := m.recordAt(at); r != nil && r.Layout.most() >= 0 {
				for len(changed[i])-5 <= r.Layout.most() {
					changed[i] = append(slices.Clone(changed[i]), m.records[0].ID) // DebugInfoNone
					changed[i][0] += 1 << 16
				}
			}
			at += uint32(len(list[i]))
		}
		got, err := Read(name, module(ofSet(join(w, changed), name), binary.LittleEndian))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	plain := func(m *Module) []string {
		var out []string
		for _, text := range allSaid(m) {
			text, _, _ = strings.Cut(text, " Unexpected=")
			for strings.HasSuffix(text, "=DebugInfoNone") { // an operand that may be absent
				text = text[:strings.LastIndexByte(text, ' ')]
			}
			out = append(out, text)
		}
		return out
	}
	for name, once := range map[string]bool{"NonSemantic.Shader.DebugInfo.100": false, "NonSemantic.Shader.DebugInfo.102": true, "NonSemantic.Shader.DebugInfo.200": false} {
		got := longer(name)
		if name != "NonSemantic.Shader.DebugInfo.200" {
			if diff := cmp.Diff(plain(m), plain(got)); diff != "" {
				t.Errorf("%s: records with an operand more\n%s", name, diff)
			}
		}
		if diff := cmp.Diff(chainsByResult(m), chainsByResult(got)); diff != "" {
			t.Errorf("%s: positions with operands more\n%s", name, diff)
		}
		instructions := map[string]int{}
		for _, p := range got.Problems() {
			if i := strings.Index(p, " with "); i > 0 {
				instructions[p[strings.LastIndexByte(p[:i], ' ')+1:i]]++
			}
		}
		most := slices.Max(slices.Collect(maps.Values(instructions)))
		if len(instructions) < 10 || once != (most == 1) {
			t.Errorf("%s: problems of %v", name, instructions)
		}
	}
}

// versionText is shader.spvasm with other records, and further ones behind them.
func versionText(t testing.TB, change map[string]string, add string) string {
	t.Helper()
	text := source(t, "shader.spvasm")
	for from, to := range change {
		if strings.Count(text, from) != 1 {
			t.Fatalf("%d times %q, expected once", strings.Count(text, from), from)
		}
		text = strings.Replace(text, from, to, 1)
	}
	text = strings.Replace(text, "        %dbg = ", "        %new = OpExtInstImport \"NonSemantic.new\"\n        %dbg = ", 1)
	return strings.Replace(text, "      %scale = OpFunction", add+"      %scale = OpFunction", 1)
}

// shader101 has what version 101 added.
func shader101(t testing.TB) []uint32 {
	text := versionText(t, map[string]string{
		"%dbg DebugTypeBasic %n_float %c32 %k3 %k0":        "%new 2 %n_float %k16 %k3 %k0 %k0",
		"      %table = OpVariable":                        "%k4214 = OpConstant %int 4214\n%spec = OpSpecConstant %int 8\n      %table = OpVariable",
		"%dbg DebugFunction %n_outer %t_fn %src %k7 %k5 %": "%dbg DebugFunction %n_outer %t_mat2 %src %k7 %k5 %",
		"       %t_fn = OpExtInst %void %dbg DebugTypeFunction": `
		      %t_fp8 = OpExtInst %void %new 2 %n_real %k8 %k3 %k0 %k4214
		     %t_long = OpExtInst %void %new 109 %t_fp8 %k16
		     %t_spec = OpExtInst %void %new 109 %t_float %spec
		      %t_coop = OpExtInst %void %new 110 %t_float %k3 %k16 %k8 %k2
		      %t_mat2 = OpExtInst %void %new 110 %t_float %k3 %spec %k8 %k99
		       %t_fn = OpExtInst %void %dbg DebugTypeFunction`,
		"        %k9 = ": "        %k99 = OpConstant %int 99\n        %k9 = ",
	}, "")
	return ofSet(words(assemble(t, text)), "NonSemantic.Shader.DebugInfo.101")
}

func TestVersion101(t *testing.T) {
	m := parse(t, "101", module(shader101(t), binary.LittleEndian))
	got := allSaid(m)
	for _, record := range []string{
		`DebugTypeBasic Name="float" Size="16" Encoding="Float" Flags="None" FPEncoding="BFloat16KHR"`,
		`DebugTypeBasic Name="int" Size="32" Encoding="Signed" Flags="None"`,
		`DebugTypeBasic Name="real" Size="8" Encoding="Float" Flags="None" FPEncoding="Float8E4M3EXT"`,
		`DebugTypeVectorIdEXT ComponentType=DebugTypeBasic:real ComponentCount="16"`,
		`DebugTypeVectorIdEXT ComponentType=DebugTypeBasic:float ComponentCount=Op50`,
		`DebugTypeCooperativeMatrixKHR ComponentType=DebugTypeBasic:float Scope="Subgroup" Rows="16" Columns="8" Use="MatrixAccumulatorKHR"`,
		`DebugTypeCooperativeMatrixKHR ComponentType=DebugTypeBasic:float Scope="Subgroup" Rows=Op50 Columns="8" Use="99"`,
	} {
		if !slices.Contains(got, record) {
			t.Errorf("no record\n%s\nin\n%s", record, strings.Join(got, "\n"))
		}
	}
	expectTypes(t, m, map[Op][]string{
		DebugTypeVectorIdEXT:          {"real16", "float?"},
		DebugTypeCooperativeMatrixKHR: {"coopmat<float, Subgroup, 16, 8, MatrixAccumulatorKHR>", "coopmat<float, Subgroup, ?, 8, 99>"},
	})
}

// expectTypes holds the names of a module's types against others.
func expectTypes(t *testing.T, m *Module, expected map[Op][]string) {
	t.Helper()
	got := map[Op][]string{}
	for i := range m.records {
		if r := &m.records[i]; expected[r.Op] != nil {
			got[r.Op] = append(got[r.Op], m.TypeName(r.ID))
		}
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("types (-expected +read):\n%s", diff)
	}
}

// shader200 has what the LLVM/SPIR-V translator's version 200 has.
func shader200(t testing.TB) []uint32 {
	text := versionText(t, map[string]string{
		"%dbg DebugSource %file %text":                                      "%new 35 %file %k0 %ident %text",
		"%dbg DebugCompilationUnit %k65536 %k4 %src %k4":                    "%new 1 %k65536 %k4 %src %k208 %n_vec",
		"%dbg DebugLexicalBlock %src %k3 %k1 %cu %n_geo":                    "%new 21 %src %k3 %k1 %cu %n_geo %true",
		"%dbg DebugInlinedAt %k8 %f_scale":                                  "%new 25 %k8 %k21 %f_scale",
		"%dbg DebugInlinedAt %k7 %b_disc %call_1":                           "%new 25 %k7 %k35 %b_disc %call_1",
		"%dbg DebugFunction %n_outer %t_fn %src %k7 %k5 %cu %empty %k8 %k7": "%new 20 %n_outer %t_fn %src %k7 %k5 %cu %empty %k8 %k7 %none %n_inner",
		"%t_const = OpExtInst": "%r_25 = OpExtInst %void %new 201 %k2 %k6 %none\n%r_7 = OpExtInst %void %new 201 %none %none %k7 %k4\n" +
			"%r_no = OpExtInst %void %new 201 %none %e_der0 %none\n%t_const = OpExtInst",
		"%dbg DebugTypeArray %t_const %c2 %c5":                     "%new 5 %t_const %r_25 %r_7 %r_no",
		"        %src = OpExtInst":                                 "%e_der0 = OpExtInst %void %dbg DebugExpression\n        %src = OpExtInst",
		"%k515 = OpConstant":                                       "%k208 = OpConstant %int 208\n%k262144 = OpConstant %int 262144\n%k515 = OpConstant",
		"DebugTypeMember %n_d %t_arr %src %k4 %k110 %c32 %c64 %k3": "DebugTypeMember %n_d %t_arr %src %k4 %k110 %c32 %c64 %k262144",
	}, `
     %module = OpExtInst %void %new 200 %n_geo %src %k1 %cu %v_limit %empty %empty %k1
      %t_dyn = OpExtInst %void %new 202 %t_float %e_der %v_n %none %none %r_25 %r_no
      %t_str = OpExtInst %void %new 203 %n_vec %none %none %c32 %none
`)
	w := words(assemble(t, text))
	// The translator writes the numbers of arguments as literals.
	for at := headerWords; at < len(w); at += int(w[at] >> 16) {
		if w[at]&0xffff == opExtInst && Op(w[at+4]) == DebugLocalVariable && w[at]>>16 == 13 {
			w[at+12] = 1
		}
	}
	return ofSet(w, "NonSemantic.Shader.DebugInfo.200")
}

func TestVersion200(t *testing.T) {
	m := parse(t, "200", module(shader200(t), binary.LittleEndian))
	got := allSaid(m)
	for _, record := range []string{
		`DebugCompilationUnit Version="65536" DWARFVersion="4" Source=DebugSource Language="Fortran2008" Producer="vec"`,
		`DebugSource File="/src/scale.cl" ChecksumKind="MD5" ChecksumValue="c0ffee" Text="#define LIMIT(x) ((x)+1)\n"`,
		`DebugLexicalBlock Source=DebugSource Line="3" Column="1" Parent=DebugCompilationUnit Name="geo" InlineNamespace=Op41`,
		`DebugInlinedAt Line="8" Column="21" Scope=DebugFunction:scale`,
		`DebugInlinedAt Line="7" Column="35" Scope=DebugLexicalBlockDiscriminator Inlined=DebugInlinedAt`,
		`DebugFunction Name="outer" Type=DebugTypeFunction Source=DebugSource Line="7" Column="5" Parent=DebugCompilationUnit LinkageName=""` +
			` Flags="FlagIsDefinition" ScopeLine="7" Declaration=DebugInfoNone TargetFunctionName="inner"`,
		`DebugTypeSubrange LowerBound="2" UpperBound="6" Count=DebugInfoNone`,
		`DebugTypeSubrange LowerBound=DebugInfoNone UpperBound=DebugInfoNone Count="7" Stride="4"`,
		`DebugTypeArray BaseType=DebugTypeQualifier ComponentCounts=DebugTypeSubrange ComponentCounts=DebugTypeSubrange ComponentCounts=DebugTypeSubrange`,
		`DebugModule Name="geo" Source=DebugSource Line="1" Parent=DebugCompilationUnit ConfigurationMacros="((x)+1)" IncludePath="" APINotesFile="" IsDeclaration="1"`,
		`DebugTypeArrayDynamic BaseType=DebugTypeBasic:float DataLocation=DebugExpression Associated=DebugLocalVariable:n Allocated=DebugInfoNone Rank=DebugInfoNone` +
			` ComponentCounts=DebugTypeSubrange ComponentCounts=DebugTypeSubrange`,
		`DebugTypeString Name="vec" BaseType=DebugInfoNone DataLocation=DebugInfoNone Size="32" LengthAddress=DebugInfoNone`,
		`DebugLocalVariable Name="n" Type=DebugTypeQualifier Source=DebugSource Line="8" Column="16" Parent=DebugFunction:scale Flags="None" ArgNumber=1`,
		`DebugTypeMember Name="d" Type=DebugTypeArray Source=DebugSource Line="4" Column="110" Offset="32" Size="64" Flags="FlagBitField"`,
	} {
		if !slices.Contains(got, record) {
			t.Errorf("no record\n%s\nin\n%s", record, strings.Join(got, "\n"))
		}
	}
	expectTypes(t, m, map[Op][]string{
		DebugTypeArray: {"const int[5][7][]"}, DebugTypeArrayDynamic: {"float[5][]"}, DebugTypeString: {"vec"},
	})
	// Calls have columns.
	var chains []string
	for p := range m.Positions() {
		if c := chain(&p); len(p.Frames) > 1 && p.Frames[0].Line != 0 && !slices.Contains(chains, c) {
			chains = append(chains, c)
		}
	}
	if diff := cmp.Diff([]string{"outer 7:35 < scale 8:21", "inner 6:32 < outer 7:35 < scale 8:21"}, chains); diff != "" {
		t.Errorf("chains (-expected +read):\n%s", diff)
	}
	if s := m.Sources()[0]; s.Checksum != "MD5:c0ffee" || s.Text != "#define LIMIT(x) ((x)+1)\n#undef LIMIT\n" {
		t.Errorf("source %+v", s)
	}
	for _, v := range m.Variables() {
		if v.Name == "n" && v.Argument != 1 {
			t.Errorf("argument %d, expected 1", v.Argument)
		}
	}
}
