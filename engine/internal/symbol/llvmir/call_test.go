// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCallsNameWhatTheyCall(t *testing.T) {
	m, err := Parse("k.ll", []byte(`
define void @caller(ptr %p) #0 {
  call void @plain()
  %a = tail call fastcc noundef { i32, ptr } @"quoted name"(ptr @plain, i32 1) #2
  %b = call i32 (ptr, ...) @noinline_group(ptr @plain), !dbg !0
  musttail call addrspace(1) void @word() noinline
  call void @plain() #1
  call void bitcast (ptr @plain to ptr)()
  call void %p(ptr @plain)
  call void @declared()
  call void @plain() [ "deopt"(ptr @word) ]
  call void @llvm.dbg.value(metadata ptr @plain, metadata !0, metadata !0)
  invoke void @optnone() to label %x unwind label %x
x:
  store ptr @plain, ptr %p
  ret void
}
declare void @declared()
define void @plain() #2 { ret void }
define { i32, ptr } @"quoted name"(ptr, i32) { unreachable }
define i32 @noinline_group(ptr, ...) local_unnamed_addr #1 prefix { i32 } { i32 1 } { ret i32 0 }
define void @word() noinline { ret void }
define void @optnone() optnone #2 { ret void }
attributes #0 = { "a"="noinline" }
attributes #1 = { nounwind
  noinline "x"="y" }
attributes #2 = { nounwind "noinline" }
attributes #3
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for c := range m.Calls() {
		got = append(got, fmt.Sprintf("%d %s %v", c.Instruction, c.Callee, c.NeverInlined))
		if c.Function != "caller" || len(c.Frames) != 1 || c.Frames[0].Function != "caller" {
			t.Errorf("%+v", c)
		}
	}
	want := []string{
		"0 plain false", "1 quoted name false", "2 noinline_group true", "3 word true", "4 plain true", "8 plain false", "9 optnone true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
