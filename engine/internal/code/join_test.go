// SPDX-License-Identifier: Apache-2.0

package code

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol/llvmir"
	"github.com/unwindd/unwindd/engine/trace"
)

// joinIR has functions that call each other, one line each. The metadata of a
// function F is !F0, and a line L of it !FL.
const joinIR = `
define void @kernel() !dbg !10 {
  call void @once(), !dbg !12
  call void @twice(), !dbg !13
  call void @twice(), !dbg !14
  call void @kept(), !dbg !15
  call void @round(), !dbg !16
  call void @same(), !dbg !17
  call void @same(), !dbg !17
  call void @left() noinline, !dbg !18
  call void @nowhere()
  call void %f(ptr @kept), !dbg !18
  ret void, !dbg !19
}
define internal void @once() !dbg !20 {
  call void @leaf(), !dbg !22
  add i32 1, 1, !dbg !23
  ret void
}
define internal void @leaf() !dbg !30 {
  add i32 1, 1, !dbg !33
  add i32 1, 1, !dbg !34
  ret void
}
define internal void @twice() !dbg !40 {
  add i32 1, 1, !dbg !43
  ret void
}
define internal void @kept() #7 !dbg !50 {
  call void @leaf2(), !dbg !52
  add i32 1, 1, !dbg !53
  ret void
}
define internal void @leaf2() !dbg !60 {
  add i32 1, 1, !dbg !63
  ret void
}
define internal void @round() !dbg !70 {
  call void @round(), !dbg !72
  add i32 1, 1, !dbg !73
  ret void
}
define internal void @same() !dbg !80 {
  add i32 1, 1, !dbg !83
  ret void
}
define internal void @left() !dbg !90 {
  add i32 1, 1, !dbg !93
  ret void
}
define internal void @nowhere() !dbg !100 {
  add i32 1, 1, !dbg !103
  ret void
}
define void @optimized() !dbg !110 {
  add i32 1, 1, !dbg !114
  add i32 1, 1, !dbg !116
  ret void
}
attributes #7 = { nounwind noinline }
!0 = !DIFile(filename: "a.cl", directory: "/src", source: "text of a.cl")
!1 = distinct !DICompileUnit(language: DW_LANG_C99, file: !0)
!12 = !DILocation(line: 2, column: 5, scope: !10)
!13 = !DILocation(line: 3, scope: !10)
!14 = !DILocation(line: 4, scope: !10)
!15 = !DILocation(line: 5, scope: !10)
!16 = !DILocation(line: 6, scope: !10)
!17 = !DILocation(line: 7, scope: !10)
!18 = !DILocation(line: 8, scope: !10)
!19 = !DILocation(line: 9, scope: !10)
!22 = !DILocation(line: 22, scope: !20)
!23 = !DILocation(line: 33, column: 9, scope: !20)
!33 = !DILocation(line: 33, column: 3, scope: !30)
!34 = !DILocation(line: 34, scope: !30)
!43 = !DILocation(line: 43, scope: !40)
!52 = !DILocation(line: 52, scope: !50)
!53 = !DILocation(line: 53, scope: !50)
!63 = !DILocation(line: 63, scope: !60)
!72 = !DILocation(line: 72, scope: !70)
!73 = !DILocation(line: 73, scope: !70)
!83 = !DILocation(line: 83, scope: !80)
!93 = !DILocation(line: 93, scope: !90)
!103 = !DILocation(line: 103, scope: !100)
!113 = distinct !DILocation(line: 12, scope: !110)
!114 = !DILocation(line: 34, scope: !30, inlinedAt: !113)
!115 = distinct !DILocation(line: 13, scope: !110)
!116 = !DILocation(line: 43, scope: !40, inlinedAt: !113)
!117 = !DILocation(line: 43, scope: !40, inlinedAt: !115)
`

func joinOf(t *testing.T, text string) *sourceJoin {
	t.Helper()
	for i, name := range []string{"kernel", "once", "leaf", "twice", "kept", "leaf2", "round", "same", "left", "nowhere", "optimized"} {
		text += fmt.Sprintf("!%d = distinct !DISubprogram(name: \"%s\", scope: !0, file: !0, line: %d, unit: !1)\n", 10*(i+1), name, 10*i)
	}
	ir, err := llvmir.Read("k.ll", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	j, err := newJoin(ir)
	if err != nil || len(ir.Problems()) > 0 {
		t.Fatal(err, ir.Problems())
	}
	return j
}

func TestOneWayOfCallsIsAChain(t *testing.T) {
	j := joinOf(t, joinIR)
	for _, c := range []struct {
		why          string
		function     string
		line, column int
		want         string // names and lines, innermost first; "": no chain
	}{
		{"a function that calls once", "kernel", 34, 0, "leaf:34 once:22 kernel:2"},
		{"from the middle", "once", 34, 0, "leaf:34 once:22"},
		{"its own line", "kernel", 9, 0, ""},
		{"two functions have the line", "kernel", 33, 0, ""},
		{"and the column of one", "kernel", 33, 3, "leaf:33 once:22 kernel:2"},
		{"and that of the other", "kernel", 33, 9, "once:33 kernel:2"},
		{"and a column of neither", "kernel", 33, 4, ""},
		{"two calls", "kernel", 43, 0, ""},
		{"two calls at one place", "kernel", 83, 0, "same:83 kernel:7"},
		{"a function that is not inlined", "kernel", 53, 0, ""},
		{"one that is called from there", "kernel", 63, 0, ""},
		{"one that is called from there, there", "kept", 63, 0, "leaf2:63 kept:52"},
		{"a call that is not inlined", "kernel", 93, 0, ""},
		{"a call without a position", "kernel", 103, 0, ""},
		{"a function that calls itself", "kernel", 73, 0, ""},
		{"itself", "round", 73, 0, ""},
		{"a line of nothing", "kernel", 1000, 0, ""},
		{"an unknown function", "other", 34, 0, ""},
		{"an IR in which it is inlined", "optimized", 34, 0, "leaf:34 optimized:12"},
		{"in which it is inlined once", "optimized", 43, 0, "twice:43 optimized:12"},
	} {
		physical := trace.Symbol{
			Function: "name of " + c.function, LinkageName: c.function, Start: 16, HasStart: true,
			File: "/src/./a.cl", Line: c.line, Column: c.column, Discriminator: 3,
		}
		chain, _ := j.chain(&physical)
		var got []string
		for i, f := range chain {
			got = append(got, fmt.Sprintf("%s:%d", strings.TrimPrefix(f.Function, "name of "), f.Line))
			if last := i == len(chain)-1; f.Inlined == last || f.HasStart != last || !f.ScopeBySource || f.Source != "text of a.cl" || f.Discriminator != 0 != (i == 0) {
				t.Errorf("%s: %+v", c.why, f)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, expected %q", c.why, got, c.want)
		}
		physical.File = "/other/a.cl"
		if chain, _ := j.chain(&physical); chain != nil {
			t.Errorf("%s: a chain of another file", c.why)
		}
	}
	// The same line, inlined at two places.
	j = joinOf(t, strings.Replace(joinIR, "ret void\n}\nattributes", "add i32 1, 1, !dbg !117\nret void\n}\nattributes", 1))
	if chain, _ := j.chain(&trace.Symbol{Function: "optimized", File: "/src/a.cl", Line: 43}); chain != nil {
		t.Errorf("of two inlined calls: %s", show(chain))
	}
}

// A chain of functions of which each calls the next one twice has more ways than
// can be looked at one by one. Many positions of a line are none.
func TestJoinsAreBounded(t *testing.T) {
	var b strings.Builder
	const depth = 4000
	for i := range depth {
		fmt.Fprintf(&b, "define void @f%d() !dbg !%d {\n  call void @f%d(), !dbg !%d\n  call void @f%d(), !dbg !%d\n  ret void, !dbg !%d\n}\n",
			i, 10*i+10, i+1, 10*i+11, i+1, 10*i+12, 10*i+11)
		fmt.Fprintf(&b, "!%d = distinct !DISubprogram(name: \"f%d\", file: !0, unit: !1)\n", 10*i+10, i)
		fmt.Fprintf(&b, "!%d = !DILocation(line: %d, scope: !%d)\n!%d = !DILocation(line: 1, scope: !%d)\n", 10*i+11, i+2, 10*i+10, 10*i+12, 10*i+10)
	}
	fmt.Fprintf(&b, "!0 = !DIFile(filename: \"/a.cl\", directory: \"\")\n!1 = distinct !DICompileUnit(language: DW_LANG_C99, file: !0)\n")
	ir, err := llvmir.Read("k.ll", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	j, err := newJoin(ir)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []int{1, 2, depth / 2, depth} {
		if chain, spent := j.chain(&trace.Symbol{Function: "f0", File: "/a.cl", Line: line}); chain != nil || spent {
			t.Errorf("line %d: %d frames, spent %v", line, len(chain), spent)
		}
	}
	j.work = depth
	if chain, spent := j.chain(&trace.Symbol{Function: "f1", File: "/a.cl", Line: depth}); chain != nil || !spent {
		t.Errorf("without work left: %d frames, spent %v", len(chain), spent)
	}
}

// show is a chain in a line.
func show(f []trace.Symbol) string {
	var b strings.Builder
	for i := range f {
		fmt.Fprintf(&b, "%s %s:%d:%d inlined %v, ", f[i].Function, filepath.Base(f[i].File), f[i].Line, f[i].Column, f[i].Inlined)
	}
	return b.String()
}
