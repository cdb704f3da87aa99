// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// metadata is what the functions of these tests refer to: !1 is a variable of
// the function, !3 one of a block, !5 one of a call that was inlined.
const metadata = `
!0 = distinct !DISubprogram(name: "f", file: !9, line: 1)
!1 = !DILocalVariable(name: "v", scope: !0)
!2 = !DILocation(line: 2, scope: !0)
!3 = !DILocalVariable(name: "inner", scope: !4)
!4 = distinct !DILexicalBlock(scope: !0, line: 3)
!5 = !DILocalVariable(name: "called", scope: !6)
!6 = distinct !DISubprogram(name: "g", file: !9, line: 7)
!7 = !DILocation(line: 8, scope: !6, inlinedAt: !8)
!8 = distinct !DILocation(line: 4, scope: !4)
!9 = !DIFile(filename: "f.c", directory: "/src")
!10 = !DILocation(line: 3, scope: !4)
`

// rangesOf are the ranges of the variables of a module, with their values.
func rangesOf(m *Module) map[string][]string {
	ranges := map[string][]string{}
	for _, v := range m.Variables() {
		for _, r := range v.Ranges {
			ranges[v.Name] = append(ranges[v.Name], fmt.Sprintf("%d-%d %s", r.Start, r.End, strings.Join(r.Values, " ")))
		}
	}
	return ranges
}

func TestRangesOfVariables(t *testing.T) {
	tests := []struct {
		name, body string
		want       map[string][]string
	}{
		{"a value holds until the next one", `
  #dbg_value(i32 1, !1, !DIExpression(), !2)
  %x = add i32 %a, 1, !dbg !2
  #dbg_value(i32 %x, !1, !DIExpression(), !2)
  ret i32 %x, !dbg !2`,
			map[string][]string{"v": {"0-1 i32 1", "1-2 i32 %x"}}},
		{"an unknown value ends the one before", `
  #dbg_value(i32 1, !1, !DIExpression(), !2)
  %x = add i32 %a, 1, !dbg !2
  #dbg_value(i32 poison, !1, !DIExpression(), !2)
  ret i32 %x, !dbg !2`,
			map[string][]string{"v": {"0-1 i32 1"}}},
		{"a value holds behind a branch on both sides", `
  #dbg_value(i32 1, !1, !DIExpression(), !2)
  br i1 %c, label %l, label %r, !dbg !2
l:
  br label %end, !dbg !2
r:
  br label %end, !dbg !2
end:
  ret i32 0, !dbg !2`,
			map[string][]string{"v": {"0-4 i32 1"}}},
		{"where different values meet there is none", `
  #dbg_value(i32 1, !1, !DIExpression(), !2)
  br i1 %c, label %l, label %r, !dbg !2
l:
  #dbg_value(i32 2, !1, !DIExpression(), !2)
  br label %end, !dbg !2
r:
  br label %end, !dbg !2
end:
  ret i32 0, !dbg !2`,
			map[string][]string{"v": {"0-1 i32 1", "1-2 i32 2", "2-3 i32 1"}}},
		{"a value that only one path brings is none", `
  br i1 %c, label %l, label %end, !dbg !2
l:
  #dbg_value(i32 2, !1, !DIExpression(), !2)
  br label %end, !dbg !2
end:
  ret i32 0, !dbg !2`,
			map[string][]string{"v": {"1-2 i32 2"}}},
		{"a value holds through a loop that does not change it", `
  #dbg_value(i32 1, !1, !DIExpression(), !2)
  br label %loop, !dbg !2
loop:
  %i = phi i32 [ 0, %0 ], [ %n, %loop ], !dbg !2
  %n = add i32 %i, 1, !dbg !2
  br i1 %c, label %loop, label %end, !dbg !2
end:
  ret i32 0, !dbg !2`,
			map[string][]string{"v": {"0-5 i32 1"}}},
		{"a value ends where it is computed again", `
  br label %loop, !dbg !2
loop:
  %i = phi i32 [ 0, %0 ], [ %n, %loop ], !dbg !2
  %n = add i32 %i, 1, !dbg !2
  #dbg_value(i32 %n, !1, !DIExpression(), !2)
  br i1 %c, label %loop, label %end, !dbg !2
end:
  ret i32 0, !dbg !2`,
			map[string][]string{"v": {"3-5 i32 %n"}}},
		{"a value of the round before holds until it is computed again", `
  #dbg_value(i32 0, !1, !DIExpression(), !2)
  br label %loop, !dbg !2
loop:
  %i = phi i32 [ 0, %0 ], [ %n, %loop ], !dbg !2
  br label %more, !dbg !2
more:
  %n = add i32 %i, 1, !dbg !2
  #dbg_value(i32 %i, !1, !DIExpression(), !2)
  br i1 %c, label %loop, label %end, !dbg !2
end:
  ret i32 0, !dbg !2`,
			map[string][]string{"v": {"0-1 i32 0", "4-6 i32 %i"}}},
		{"a value that is not computed yet is none", `
  #dbg_value(i32 %x, !1, !DIExpression(), !2)
  %x = add i32 %a, 1, !dbg !2
  ret i32 %x, !dbg !2`,
			map[string][]string{}},
		{"a value that only one path computes is none behind", `
  br i1 %c, label %l, label %end, !dbg !2
l:
  %x = add i32 %a, 1, !dbg !2
  #dbg_value(i32 %x, !1, !DIExpression(), !2)
  br label %end, !dbg !2
end:
  #dbg_value(i32 %x, !1, !DIExpression(), !2)
  ret i32 0, !dbg !2`,
			map[string][]string{"v": {"2-3 i32 %x"}}},
		{"every side of a switch, and of an invoke", `
  #dbg_value(i32 1, !1, !DIExpression(), !2)
  switch i32 %a, label %end [
    i32 1, label %one
    i32 2, label %two
  ], !dbg !2
one:
  #dbg_value(i32 2, !1, !DIExpression(), !2)
  %r = invoke i32 @g()
          to label %two unwind label %pad, !dbg !2
two:
  br label %end, !dbg !2
pad:
  %p = landingpad { ptr, i32 }
          cleanup, !dbg !2
  resume { ptr, i32 } %p, !dbg !2
end:
  ret i32 0, !dbg !2`,
			map[string][]string{"v": {"0-1 i32 1", "1-2 i32 2", "3-5 i32 2"}}},
		{"a declaration holds from where its address is there", `
  %p = alloca i32, align 4, !dbg !2
  #dbg_declare(ptr %p, !1, !DIExpression(), !2)
  br i1 %c, label %l, label %end, !dbg !2
l:
  %q = alloca i32, align 4, !dbg !10
  br label %end, !dbg !10
end:
  #dbg_declare(ptr %q, !3, !DIExpression(), !10)
  ret i32 0, !dbg !10`,
			map[string][]string{"v": {"1-5 ptr %p"}, "inner": {"3-4 ptr %q"}}},
		{"a variable holds in its scope only", `
  #dbg_value(i32 1, !3, !DIExpression(), !10)
  #dbg_value(i32 2, !5, !DIExpression(), !7)
  %x = add i32 %a, 1, !dbg !2
  %y = add i32 %a, 2, !dbg !10
  %z = add i32 %a, 3, !dbg !7
  %w = add i32 %a, 4
  ret i32 %x, !dbg !2`,
			map[string][]string{"inner": {"1-3 i32 1"}, "called": {"2-3 i32 2"}}},
		{"the function's own variables hold at instructions without a position", `
  #dbg_value(i32 1, !1, !DIExpression(), !2)
  %w = add i32 %a, 4
  ret i32 %w, !dbg !2`,
			map[string][]string{"v": {"0-2 i32 1"}}},
		{"parts do not end each other", `
  #dbg_value(i32 1, !1, !DIExpression(DW_OP_LLVM_fragment, 0, 32), !2)
  #dbg_value(i32 2, !1, !DIExpression(DW_OP_LLVM_fragment, 32, 32), !2)
  %x = add i32 %a, 1, !dbg !2
  #dbg_value(i32 3, !1, !DIExpression(DW_OP_LLVM_fragment, 0, 32), !2)
  %y = add i32 %a, 1, !dbg !2
  #dbg_value(i64 4, !1, !DIExpression(), !2)
  %z = add i32 %a, 1, !dbg !2
  #dbg_value(i32 5, !1, !DIExpression(DW_OP_LLVM_fragment, 32, 32), !2)
  ret i32 %x, !dbg !2`,
			map[string][]string{"v": {"0-1 i32 1", "0-2 i32 2", "1-2 i32 3", "2-3 i64 4", "3-4 i32 5"}}},
		{"blocks without labels are numbered, as old versions did in comments", `
  #dbg_value(i32 1, !1, !DIExpression(), !2)
  br i1 %c, label %1, label %3, !dbg !2
; <label>:1
  %2 = add i32 %a, 1, !dbg !2
  ret i32 %2, !dbg !2
; <label>:3
  #dbg_value(i32 2, !1, !DIExpression(), !2)
  ret i32 0, !dbg !2`,
			map[string][]string{"v": {"0-3 i32 1", "3-4 i32 2"}}},
		{"a branch to a block that is not there lets values hold in their blocks only", `
  #dbg_value(i32 1, !1, !DIExpression(), !2)
  br i1 %c, label %l, label %gone, !dbg !2
l:
  ret i32 0, !dbg !2`,
			map[string][]string{"v": {"0-1 i32 1"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := parse(t, "define i32 @f(i32 %a, i1 %c) !dbg !0 {"+test.body+"\n}\n"+metadata)
			if diff := cmp.Diff(test.want, rangesOf(m)); diff != "" {
				t.Errorf("ranges (-want +got):\n%s", diff)
			}
			if p := m.Problems(); len(p) > 0 {
				t.Errorf("problems: %q", p)
			}
		})
	}
}

// A record that cannot be read ends what holds of its variable, and of any
// variable where that is not known either.
func TestRecordsThatCannotBeReadEndValues(t *testing.T) {
	for _, record := range []string{
		"#dbg_value(i32 3, !1, !9, !2)", "#dbg_value(i32 3, !1, !DIExpression(), !99)", "#dbg_value(, !1, !DIExpression(), !2)",
		"call void @llvm.dbg.value(metadata i32 3, metadata !1, metadata !DIExpression())",
	} {
		m := parse(t, "define i32 @f(i32 %a) !dbg !0 {\n #dbg_value(i32 1, !1, !DIExpression(), !2)\n %x = add i32 %a, 1, !dbg !2\n "+
			record+"\n ret i32 0, !dbg !2\n}\n"+metadata)
		want := map[string][]string{"v": {"0-1 i32 1"}}
		if diff := cmp.Diff(want, rangesOf(m)); diff != "" || len(m.Problems()) != 1 {
			t.Errorf("%s: ranges (-want +got):\n%s, problems %q", record, diff, m.Problems())
		}
	}
}

// A claim is what a range says at an instruction.
type claim struct {
	variable variableKey
	values   string
	bytes    string
}

// Functions are walked from block to block as chance has it, and the records that
// were executed last are kept. What the ranges say must be among them at every
// instruction.
func TestRangesHoldOnEveryWalk(t *testing.T) {
	claimed, executed := 0, 0
	eachSample(t, func(t *testing.T, _ *sample, m *Module) {
		random := rand.New(rand.NewPCG(1, 2))
		for i := range m.functions {
			f := &m.functions[i]
			left := maxSteps
			claims := map[int][]claim{}
			spans, _ := f.scopeSpans(&left)
			for k, r := range collect(f) {
				for _, one := range r {
					for at := one.Start; at < one.End; at++ {
						claims[at] = append(claims[at], claim{k, strings.Join(one.Values, " "), string(one.Expression)})
					}
				}
			}
			c, e := walk(t, f, newFlow(f, &left), claims, spans, random)
			claimed, executed = claimed+c, executed+e
		}
	})
	t.Logf("%d values in scope, of %d that were executed", claimed, executed)
	if claimed < 10000 || claimed < executed*3/4 {
		t.Errorf("%d of %d are too few", claimed, executed)
	}
}

// walk walks through a function, and returns how many records hold by the ranges,
// and how many do by what was executed.
func walk(t *testing.T, f *Function, w *flow, claims map[int][]claim, spans map[scopePlace][]span, random *rand.Rand) (claimed, executed int) {
	t.Helper()
	var records []DebugRecord
	for d, err := range f.DebugRecords() {
		if err != nil {
			t.Fatal(err)
		}
		if d.Variable != 0 && d.Kind != LabelRecord && d.Kind != UnknownRecord {
			records = append(records, d)
		}
	}
	next := make([][]int32, len(f.blocks))
	for to, list := range w.preds {
		for _, from := range list {
			next[from] = append(next[from], int32(to))
		}
	}
	inScope := func(d *DebugRecord, at int32) bool {
		n, _ := f.module.open(d.Variable)
		scope := n.Field("scope")
		return len(intersect(spans[scopePlace{f.module.ref(&scope), d.inlinedAt}], []span{{at, at + 1}})) > 0
	}
	for range 4 {
		block := int32(0)
		var active []*DebugRecord
		defined := map[string]bool{}
		for range 60 {
			for at := f.blocks[block].first; at < w.end(int(block)); at++ {
				for i := range records {
					d := &records[i]
					if int32(d.Before) != at || d.Kind == DeclareRecord {
						continue
					}
					active = slices.DeleteFunc(active, func(a *DebugRecord) bool {
						return a.Variable == d.Variable && a.inlinedAt == d.inlinedAt && a.Fragment.overlaps(d.Fragment)
					})
					if !d.IsKilled && !slices.ContainsFunc(d.names, func(name string) bool { _, ok := w.results[name]; return ok && !defined[name] }) {
						active = append(active, d)
					}
				}
				holds := map[claim]bool{}
				for i := range records { // declarations hold once their values are there
					if d := &records[i]; d.Kind == DeclareRecord && !d.IsKilled && !slices.ContainsFunc(d.names, func(name string) bool { _, ok := w.results[name]; return ok && !defined[name] }) {
						holds[claim{variableKey{d.Variable, d.inlinedAt}, strings.Join(d.Values, " "), string(d.Operation)}] = true
						if inScope(d, at) {
							executed++
						}
					}
				}
				for _, d := range active {
					holds[claim{variableKey{d.Variable, d.inlinedAt}, strings.Join(d.Values, " "), string(d.Operation)}] = true
					if inScope(d, at) {
						executed++
					}
				}
				for _, c := range claims[int(at)] {
					claimed++
					if !holds[c] {
						t.Fatalf("%s+%d: %s holds by the ranges, and was not executed", f.Name(), at, c.values)
					}
				}
				if result := f.Instruction(int(at)).Result; result != "" {
					defined[result] = true
					active = slices.DeleteFunc(active, func(a *DebugRecord) bool { return slices.Contains(a.names, result) })
				}
			}
			if len(next[block]) == 0 {
				break
			}
			block = next[block][random.IntN(len(next[block]))]
		}
	}
	return claimed, executed
}

// collect are the ranges of a function.
func collect(f *Function) map[variableKey][]symbol.VariableRange {
	left := maxSteps
	ranges := map[variableKey][]symbol.VariableRange{}
	f.ranges(&left, func(k variableKey, r symbol.VariableRange) { ranges[k] = append(ranges[k], r) })
	return ranges
}
