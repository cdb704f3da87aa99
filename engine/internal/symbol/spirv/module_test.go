// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/internal/oracle"
)

// everything is all that a module says, as text.
func everything(m *Module) string {
	var b strings.Builder
	for r := range m.Records() {
		fmt.Fprintln(&b, r)
	}
	for p := range m.Positions() {
		fmt.Fprintln(&b, p)
	}
	fmt.Fprintln(&b, m.Variables(), m.Macros(), m.Sources())
	return b.String()
}

// sets are the modules of testdata that have every instruction of a set.
var setModules = []string{"debuginfo.spvasm", "opencl.spvasm", "shader.spvasm"}

func TestBothByteOrdersSayTheSame(t *testing.T) {
	for _, name := range setModules {
		data := assemble(t, source(t, name))
		little := everything(parse(t, name, data))
		big := everything(parse(t, name, module(words(data), binary.BigEndian)))
		if little != big {
			t.Errorf("%s says something else in big-endian order", name)
		}
	}
}

// references calls f with every operand of every debug record that is an ID of
// another record or of a string: the instruction and the word.
func references(m *Module, list [][]uint32, f func(r *Record, i, word int)) {
	at := uint32(headerWords)
	for i := range list {
		if r := m.recordAt(at); r != nil {
			for n := range r.Operands {
				if p, ok := r.parameter(n); ok && (p.Kind == Ref || p.Kind == EnumeratorPairs) {
					f(r, i, 5+n)
				}
			}
		}
		at += uint32(len(list[i]))
	}
}

// DebugInfoNone may stand wherever something refers to another instruction
// (DebugInfo, chapter 2).
func TestDebugInfoNoneAnywhere(t *testing.T) {
	for _, name := range setModules {
		w := words(assemble(t, source(t, name)))
		m := parse(t, name, module(w, binary.LittleEndian))
		none := m.records[slices.IndexFunc(m.records, func(r Record) bool { return r.Op == DebugInfoNone })].ID
		list := instructions(w)
		replaced := 0
		references(m, list, func(r *Record, i, word int) {
			changed := slices.Clone(list)
			changed[i] = slices.Clone(list[i])
			if changed[i][word] == none {
				return
			}
			changed[i][word] = none
			replaced++
			got := parse(t, fmt.Sprintf("%s, %s without operand %d", name, r.Layout.Name, word-5), module(join(w, changed), binary.LittleEndian))
			_ = everything(got)
			if r.Op == DebugScope && word == 5 { // the scope
				p, err := got.Find(fmt.Sprint(r.Offset+uint32(len(list[i]))+uint32(len(list[i+1]))), false)
				if err != nil || p.Scopes[0] != "" {
					t.Errorf("%s: a scope of DebugInfoNone is %q, %v", name, p.Scopes, err)
				}
			}
		})
		if replaced < 150 {
			t.Errorf("%s: %d references, expected 150 or more", name, replaced)
		}
	}
}

// An instruction can be removed if what referred to it refers to DebugInfoNone
// (DebugInfo, chapter 2). What is said of the rest stays.
func TestInstructionsRemoved(t *testing.T) {
	for _, name := range setModules {
		w := words(assemble(t, source(t, name)))
		m := parse(t, name, module(w, binary.LittleEndian))
		none := m.records[slices.IndexFunc(m.records, func(r Record) bool { return r.Op == DebugInfoNone })].ID
		list := instructions(w)
		chains := chainsByResult(m)
		for n := range m.records {
			removed := &m.records[n]
			if removed.Op == DebugInfoNone || removed.Op == DebugSource && name == "shader.spvasm" {
				continue // DebugSourceContinued goes with its DebugSource
			}
			var changed [][]uint32
			at := uint32(headerWords)
			for _, i := range list {
				if at != removed.Offset {
					changed = append(changed, slices.Clone(i))
				} else {
					changed = append(changed, nil)
				}
				at += uint32(len(i))
			}
			references(m, list, func(_ *Record, i, word int) {
				if changed[i] != nil && changed[i][word] == removed.ID {
					changed[i][word] = none
				}
			})
			got := parse(t, fmt.Sprintf("%s without %s", name, removed.Layout.Name), module(join(w, changed), binary.LittleEndian))
			if len(got.records) != len(m.records)-1 {
				t.Fatalf("%s without %s: %d records, expected %d", name, removed.Layout.Name, len(got.records), len(m.records)-1)
			}
			switch removed.Op {
			case DebugFunction, DebugLexicalBlock, DebugLexicalBlockDiscriminator, DebugScope, DebugNoScope, DebugInlinedAt, DebugLine, DebugNoLine,
				DebugSourceContinued, DebugSource:
				continue // what follows comes from elsewhere
			}
			if diff := cmp.Diff(chains, chainsByResult(got)); diff != "" {
				t.Errorf("%s without %s:\n%s", name, removed.Layout.Name, diff)
			}
		}
		// All of them at once.
		bare := slices.DeleteFunc(slices.Clone(list), func(i []uint32) bool {
			op := i[0] & 0xffff
			return op == opExtInst && m.sets[i[3]] != nil || op == opLine || op == opNoLine
		})
		got := parse(t, name+" without debug information", module(join(w, bare), binary.LittleEndian))
		for p := range got.Positions() {
			if len(p.Frames) != 1 || p.Frames[0].Line != 0 || p.Scopes[0] != "" || p.Frames[0].Function != "scale" {
				t.Errorf("%s without debug information: %v", name, p)
			}
		}
		if v := got.Variables(); len(v) != 0 {
			t.Errorf("%s without debug information has variables %v", name, v)
		}
	}
}

// chainsByResult are the chains of the instructions that have a result and are no
// records.
func chainsByResult(m *Module) map[string]string {
	chains := map[string]string{}
	for p := range m.Positions() {
		at := uint32(p.Offset)
		op, _ := m.instruction(at)
		if place := resultAt(op); place != 0 && op != opExtInst {
			chains[idText(m.words[at+uint32(place)])] = chain(&p)
		}
	}
	return chains
}

// What is said of a place ends with the block (DebugInfo, 4.7).
func TestPlacesEndWithTheBlock(t *testing.T) {
	for name, c := range map[string]struct{ body, expected string }{
		"branch": {`
          %l = OpLabel
         %s1 = OpExtInst %void %dbg DebugScope %d_f
               OpLine %file 3 4
          %x = OpIAdd %int %p0 %c1
               OpBranch %m
          %m = OpLabel
          %y = OpIAdd %int %p0 %c1
               OpReturn`, "?|?|-|-|f 3:4|f 3:4|?|?|?|?"},
		"another scope": {`
          %l = OpLabel
         %s1 = OpExtInst %void %dbg DebugScope %d_f
               OpLine %file 3 4
          %x = OpIAdd %int %p0 %c1
         %s2 = OpExtInst %void %dbg DebugScope %d_f %at
          %y = OpIAdd %int %p0 %c1
         %s3 = OpExtInst %void %dbg DebugNoScope
               OpReturn`, "?|?|-|-|f 3:4|-|f 3:4 < f 9|-|? 3:4|?"},
		"no line": {`
          %l = OpLabel
         %s1 = OpExtInst %void %dbg DebugScope %d_f
               OpLine %file 3 4
          %x = OpIAdd %int %p0 %c1
               OpNoLine
               OpReturn`, "?|?|-|-|f 3:4|-|f|?"},
	} {
		m := parseText(t, functionText("", c.body))
		var got []string
		for p := range m.Positions() {
			if op, _ := m.instruction(uint32(p.Offset)); m.setsPlace(op, uint32(p.Offset)) {
				got = append(got, "-")
				if chain(&p) != "?" {
					t.Errorf("%s: +%d says a place and has %s", name, p.Instruction, chain(&p))
				}
				continue
			}
			got = append(got, chain(&p))
		}
		if text := strings.Join(got, "|"); text != c.expected {
			t.Errorf("%s:\n%s, expected\n%s", name, text, c.expected)
		}
	}
	// A block that ends with an instruction that is not known has an end too.
	w := words(assemble(t, functionText("", "%l = OpLabel\n%s1 = OpExtInst %void %dbg DebugScope %d_f\nOpLine %file 3 4\nOpUnreachable\n%m = OpLabel\nOpReturn")))
	for at := headerWords; at < len(w); at += int(w[at] >> 16) {
		if w[at]&0xffff == 255 {
			w[at] = 1<<16 | 9999
		}
	}
	for p := range parse(t, "unknown", module(w, binary.LittleEndian)).Positions() {
		if c := chain(&p); p.Instruction == 4 && c != "f 3:4" || p.Instruction > 4 && c != "?" {
			t.Errorf("a block without a known end: +%d %s", p.Instruction, c)
		}
	}
	// A line before a function holds until its first block ends.
	text := strings.Replace(functionText("", "%l = OpLabel\nOpBranch %m\n%m = OpLabel\nOpReturn"), "%f = OpFunction", "OpLine %file 5 6\n%f = OpFunction", 1)
	m := parseText(t, text)
	var got []string
	for p := range m.Positions() {
		got = append(got, chain(&p))
	}
	if s := strings.Join(got, "|"); s != "? 5:6|? 5:6|? 5:6|?|?|?" {
		t.Errorf("a line before a function: %s", s)
	}
}

// A cycle of parents or of calls is said, and ends.
func TestCycles(t *testing.T) {
	w := words(assemble(t, source(t, "debuginfo.spvasm")))
	m := parse(t, "debuginfo", module(w, binary.LittleEndian))
	id := func(op Op, n int) uint32 {
		for i := range m.records {
			if m.records[i].Op == op {
				if n == 0 {
					return m.records[i].ID
				}
				n--
			}
		}
		t.Fatalf("no record %d", op)
		return 0
	}
	for _, c := range []struct {
		op       Op
		n, word  int
		to       uint32
		expected string
	}{
		{DebugLexicalBlock, 1, 8, id(DebugLexicalBlockDiscriminator, 0), "is around itself"},
		{DebugInlinedAt, 1, 7, id(DebugInlinedAt, 1), "was inlined into itself"},
		{DebugTypePointer, 0, 5, id(DebugTypePointer, 0), ""},
		{DebugTypeComposite, 1, 13, id(DebugTypeComposite, 1), "DebugTypeComposite: Members is"},
		{DebugInlinedVariable, 0, 5, id(DebugInlinedVariable, 0), ""},
		{DebugExpression, 1, 5, id(DebugExpression, 1), "DebugExpression: Operations is"},
		{DebugMacroUndef, 0, 7, id(DebugMacroUndef, 0), ""},
	} {
		changed := slices.Clone(w)
		changed[int(m.records[m.byID[id(c.op, c.n)]].Offset)+c.word] = c.to
		got, err := Read("cycle", module(changed, binary.LittleEndian))
		if err != nil {
			t.Fatal(err)
		}
		_ = everything(got)
		for i := range got.records {
			_ = got.TypeName(got.records[i].ID)
		}
		problems := strings.Join(got.Problems(), "\n")
		if c.expected == "" && problems != "" || !strings.Contains(problems, c.expected) {
			t.Errorf("%s: problems %q, expected %q", got.records[0].Set.Layout(c.op).Name, problems, c.expected)
		}
	}
}

// Calls that are inlined into each other more than any compiler does are cut.
func TestDeepCallsAreCut(t *testing.T) {
	w := words(assemble(t, functionText("", "%l = OpLabel\nOpReturn")))
	m := parse(t, "deep", module(w, binary.LittleEndian))
	call := m.records[slices.IndexFunc(m.records, func(r Record) bool { return r.Op == DebugInlinedAt })]
	list := instructions(w)
	set, scope := m.words[call.Offset+3], call.Operands[1]
	header := slices.Clone(w[:headerWords])
	const deep = 3 * maxChain
	header[3] += deep + 1
	end := slices.IndexFunc(list, func(i []uint32) bool { return i[0]&0xffff == opFunction })
	changed := slices.Clone(list[:end])
	last := call.ID
	for n := range uint32(deep) {
		changed = append(changed, []uint32{8<<16 | opExtInst, m.words[call.Offset+1], w[3] + n, set, uint32(DebugInlinedAt), n + 1, scope, last})
		last = w[3] + n
	}
	// The scope stands behind the label.
	for _, i := range list[end:] {
		changed = append(changed, i)
		if i[0]&0xffff == opLabel {
			changed = append(changed, []uint32{7<<16 | opExtInst, m.words[call.Offset+1], w[3] + deep, set, uint32(DebugScope), scope, last})
		}
	}
	got, err := Read("deep", module(join(header, changed), binary.LittleEndian))
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for p := range got.Positions() {
		most = max(most, len(p.Frames))
	}
	if most > maxChain+1 || most < 2 {
		t.Errorf("%d frames at a position, expected at most %d", most, maxChain+1)
	}
	if p := strings.Join(got.Problems(), "\n"); !strings.Contains(p, "deep") {
		t.Errorf("problems %q", p)
	}
}

// What is wrong is said with its word and what was expected, and the rest is read.
func TestBadModules(t *testing.T) {
	good := words(assemble(t, source(t, "debuginfo.spvasm")))
	m := parse(t, "good", module(good, binary.LittleEndian))
	at := func(op Op) int {
		return int(m.records[slices.IndexFunc(m.records, func(r Record) bool { return r.Op == op })].Offset)
	}
	basic := at(DebugTypeBasic)
	class := 0 // a DebugTypeComposite with members
	for i := range m.records {
		if r := &m.records[i]; r.Op == DebugTypeComposite && len(r.rest("Members")) > 0 {
			class = int(r.Offset)
		}
	}
	for name, c := range map[string]struct {
		change   func(w []uint32) []uint32
		expected string
		records  int // fewer than there were
	}{
		"an instruction of length 0": {func(w []uint32) []uint32 { w[basic] &= 0xffff; return w }, "length 0, expected 1 or more words", len(m.records) - 2},
		"an instruction longer than the module": {
			func(w []uint32) []uint32 { w[basic] |= 0xffff << 16; return w },
			fmt.Sprintf("word 0x%x: instruction 12 of 65535 words, expected at most the %d that are left", basic, len(good)-basic), len(m.records) - 2,
		},
		"a module that is cut":           {func(w []uint32) []uint32 { return w[:basic+3] }, "expected at most the 3 that are left", len(m.records) - 2},
		"a result above the bound":       {func(w []uint32) []uint32 { w[basic+2] = 0x7fffffff; return w }, "result %2147483647, expected an ID from 1 to the bound of", 0},
		"a result that is the bound":     {func(w []uint32) []uint32 { w[basic+2] = w[3]; return w }, "expected an ID from 1 to the bound of", 0},
		"a result of 0":                  {func(w []uint32) []uint32 { w[basic+2] = 0; return w }, "result %0, expected an ID", 0},
		"a result that is there":         {func(w []uint32) []uint32 { w[basic+2] = w[at(DebugTypePointer)+2]; return w }, "which is defined at word", 0},
		"4.5: a result that is not void": {func(w []uint32) []uint32 { w[basic+1] = w[basic+2]; return w }, "DebugTypeBasic: the result type is %", 0},
		"4.5: the parent of a class": {
			func(w []uint32) []uint32 { w[at(DebugTypeComposite)+10] = w[basic+2]; return w },
			"DebugTypeBasic, expected DebugCompilationUnit, DebugFunction, DebugLexicalBlock, DebugTypeComposite", 0,
		},
		"4.5: a member of a class": {
			func(w []uint32) []uint32 { w[class+13] = w[basic+2]; return w },
			"DebugTypeComposite: Members is %", 0,
		},
		"4.5: the parent of a variable": {
			func(w []uint32) []uint32 { w[at(DebugGlobalVariable)+10] = w[basic+2]; return w },
			"DebugGlobalVariable: Parent is %", 0,
		},
		"4.9: what is declared":      {func(w []uint32) []uint32 { w[at(DebugDeclare)+5] = w[basic+2]; return w }, "DebugDeclare: LocalVariable is %", 0},
		"4.9: where it is declared":  {func(w []uint32) []uint32 { w[at(DebugDeclare)+6] = w[basic+2]; return w }, "DebugTypeBasic, expected OpVariable", 0},
		"4.9: by what it is located": {func(w []uint32) []uint32 { w[at(DebugDeclare)+7] = w[basic+2]; return w }, "DebugTypeBasic, expected DebugExpression", 0},
		"4.9: what has a value":      {func(w []uint32) []uint32 { w[at(DebugValue)+5] = w[basic+2]; return w }, "DebugValue: LocalVariable is %", 0},
		"a reference above":          {func(w []uint32) []uint32 { w[basic+5] = 0xffffffff; return w }, "DebugTypeBasic: Name is %4294967295, expected an ID", 0},
		"a reference to nothing":     {func(w []uint32) []uint32 { w[3] += 5; w[basic+5] = w[3] - 1; return w }, "which is not defined", 0},
		"a bound of 1":               {func(w []uint32) []uint32 { w[3] = 1; return w }, "bound of 1", len(m.records)},
		"an instruction of no set":   {func(w []uint32) []uint32 { w[basic+4] = 77; return w }, "instruction 77 of DebugInfo, which has none of that number", 0},
		"an operand too few":         {func(w []uint32) []uint32 { return cut(w, basic, 7) }, "DebugTypeBasic with 2 operands, expected 3 or more", 0},
		"no operands and no number":  {func(w []uint32) []uint32 { return cut(w, basic, 3) }, "instruction 12 of 3 words, expected at least 5", 1},
		"a string without an end":    {func(w []uint32) []uint32 { return noEnd(w) }, "string without an end", 0},
		"a function without an end":  {func(w []uint32) []uint32 { return w[:len(w)-1] }, "expected OpFunctionEnd before", 0},
		"an end without a function":  {func(w []uint32) []uint32 { return append(w, 1<<16|opFunctionEnd) }, "OpFunctionEnd outside of a function", 0},
		"an operand more than there": {func(w []uint32) []uint32 { return longer(w, basic) }, "DebugTypeBasic with 4 operands, expected at most 3", 0},
	} {
		got, err := Read("bad", module(c.change(slices.Clone(good)), binary.LittleEndian))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = everything(got)
		if p := strings.Join(got.Problems(), "\n"); !strings.Contains(p, c.expected) || !strings.HasPrefix(p, "bad: word 0x") {
			t.Errorf("%s: problems %q, expected %q", name, p, c.expected)
		}
		if len(got.records) != len(m.records)-c.records {
			t.Errorf("%s: %d records, expected %d", name, len(got.records), len(m.records)-c.records)
		}
	}
	for name, data := range map[string][]byte{"nothing": nil, "other magic": []byte("\x7fELF\x02\x01\x01\x00"), "a header that is cut": module(good[:4], binary.LittleEndian)} {
		if _, err := Read("bad", data); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	got, err := Read("bad", append(module(good, binary.LittleEndian), 1, 2))
	if err != nil || len(got.Problems()) != 1 || !strings.Contains(got.Problems()[0], "2 bytes behind the last word") {
		t.Errorf("bytes behind the last word: %v, %v", got.Problems(), err)
	}
}

// cut makes the instruction at a word n words long.
func cut(w []uint32, at, n int) []uint32 {
	length := int(w[at] >> 16)
	w[at] = uint32(n)<<16 | w[at]&0xffff
	return slices.Delete(w, at+n, at+length)
}

func longer(w []uint32, at int) []uint32 {
	end := at + int(w[at]>>16)
	w[at] += 1 << 16
	return slices.Insert(w, end, w[end-1])
}

// noEnd takes the zero off the first OpString.
func noEnd(w []uint32) []uint32 {
	for at := headerWords; ; at += int(w[at] >> 16) {
		if w[at]&0xffff == opString {
			for i := at + 2; i < at+int(w[at]>>16); i++ {
				w[i] |= 0x01010101
			}
			return w
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	w := []uint32{magic, 0x10400, 0, 10, 0}
	for range 5 * maxProblems {
		w = append(w, 2<<16|opTypeVoid, 100)
	}
	m, err := Read("many", module(w, binary.LittleEndian))
	if err != nil {
		t.Fatal(err)
	}
	if p := m.Problems(); len(p) != maxProblems+1 || p[maxProblems] != fmt.Sprintf("many: and %d more problems", 4*maxProblems) {
		t.Errorf("%d problems, the last one %q", len(p), p[len(p)-1])
	}
}

func TestPositionsByText(t *testing.T) {
	m := parseText(t, source(t, "debuginfo.spvasm"))
	var all []symbol.Position
	for p := range m.Positions() {
		all = append(all, p)
	}
	// Every instruction is found by its number, by each of its words and by its
	// result.
	for i, p := range all {
		texts := []string{fmt.Sprintf("scale+%d", i), fmt.Sprintf("scale+0x%x", i), fmt.Sprint(p.Offset), fmt.Sprintf("0x%x", p.Offset)}
		op, end := m.instruction(uint32(p.Offset))
		texts = append(texts, fmt.Sprint(end-1), fmt.Sprintf("%s+%d", idText(m.functions[0].id), i))
		if place := resultAt(op); place != 0 {
			texts = append(texts, idText(m.words[p.Offset+uint64(place)]))
		}
		for _, text := range texts {
			got, err := m.Find(text, false)
			if err != nil {
				t.Errorf("%s: %v", text, err)
			} else if diff := cmp.Diff(p, got); diff != "" {
				t.Errorf("%s:\n%s", text, diff)
			}
		}
		if got, err := m.Find(fmt.Sprintf("%x", p.Offset), true); err != nil || got.Instruction != i {
			t.Errorf("hexadecimal %x: %+v, %v", p.Offset, got, err)
		}
	}
	if p, err := m.Find("scale", false); err != nil || p.Instruction != 0 {
		t.Errorf("scale: %v, %v", p, err)
	}
	for text, expected := range map[string]string{
		fmt.Sprintf("scale+%d", len(all)): fmt.Sprintf("function scale has instructions 0 to %d", len(all)-1),
		"%4":                              "is in no function", // not an instruction of one
		"%9999":                           "%9999 is not the result of an instruction",
		"0":                               "word 0x0 is in no function",
		"99999":                           "expected one of the",
		"nobody+3":                        "expected FUNCTION+INSTRUCTION",
		"":                                "expected FUNCTION+INSTRUCTION",
		"%":                               "expected FUNCTION+INSTRUCTION",
	} {
		if p, err := m.Find(text, false); err == nil || !strings.Contains(err.Error(), expected) {
			t.Errorf("%q: %v, %v, expected %q", text, p, err, expected)
		}
	}
}

// Functions have names of their own, so that a position is of one of them.
func TestNamesOfFunctions(t *testing.T) {
	for _, path := range oracle.Beside(t, "corpus/spirv/*.spv") {
		m := parse(t, path, read(t, path))
		seen := map[string]bool{}
		for i := range m.functions {
			name := m.functions[i].name
			if seen[name] || name == "" {
				t.Errorf("%s: function %q comes again", path, name)
			}
			seen[name] = true
			if f := m.findFunction(name); f != &m.functions[i] {
				t.Errorf("%s: %q finds another function", path, name)
			}
		}
		if strings.Contains(path, "s.comp") {
			if p, err := m.Find("inl1+3", false); err != nil || p.Function != "inl1(i1;" {
				t.Errorf("%s: inl1 finds %v, %v", path, p, err)
			}
		}
	}
}

// In a long function a position is looked up from the middle of it, and is that
// of the walk from its beginning.
func TestPositionsOfALongFunction(t *testing.T) {
	var body strings.Builder
	body.WriteString("%l = OpLabel\n%s = OpExtInst %void %dbg DebugScope %d_f\n")
	for i := range 5 * markEvery / 3 {
		fmt.Fprintf(&body, "OpLine %%file %d 1\n%%x%d = OpIAdd %%int %%p0 %%c1\n", i+1, i)
		if i%100 == 99 {
			fmt.Fprintf(&body, "OpBranch %%l%d\n%%l%d = OpLabel\n%%s%d = OpExtInst %%void %%dbg DebugScope %%d_f %%at\n", i, i, i)
		}
	}
	body.WriteString("OpReturn\n")
	m := parseText(t, functionText("", body.String()))
	if n := len(m.functions[0].marks); n < 4 {
		t.Errorf("%d walks are kept", n)
	}
	for p := range m.Positions() {
		for _, text := range []string{fmt.Sprintf("f+%d", p.Instruction), fmt.Sprint(p.Offset)} {
			got, err := m.Find(text, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p, got); diff != "" {
				t.Fatalf("%s:\n%s", text, diff)
			}
		}
	}
}
