// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"os"
	"path/filepath"
	"testing"
)

// Any text is read to its end, without a panic and in bounded time. What is found
// is consistent: instructions are in order and within the text.
func FuzzModule(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.ll")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("define i32 @f(i32 %a, i1 %c) !dbg !0 {\n  #dbg_value(!DIArgList(i32 %a, i32 1), !1, !DIExpression(DW_OP_LLVM_arg, 0, DW_OP_LLVM_arg, 1, DW_OP_plus, DW_OP_LLVM_convert, 8, DW_ATE_signed, DW_OP_stack_value, DW_OP_LLVM_fragment, 8, 8), !2)\n  br i1 %c, label %l, label %r, !dbg !2\nl:\n  ret i32 0\nr:\n  ret i32 1\n}" + metadata))
	f.Add([]byte("define i32 @f(i32 %a) !dbg !0 {\n  #dbg_value(!DIArgList(i32 %a, ptr %p), !1, !DIExpression(DIOpArg(0, i16), DIOpArg(1, ptr addrspace(5)), DIOpDeref(i16), DIOpComposite(2, i32)), !2)\n" +
		"  call void @llvm.dbg.def(metadata !8, metadata ptr %p), !dbg !2\n  ret i32 0\n}\n!8 = distinct !DILifetime(object: !1, location: !DIExpr(DIOpReferrer(ptr), DIOpDeref(i8), DIOpExtend(4)))" + metadata))
	f.Fuzz(func(t *testing.T, text []byte) {
		Is("", text)
		m, err := Parse("fuzz.ll", text)
		if err != nil {
			return
		}
		readAll(m)
		last := uint32(0)
		for i := range m.functions {
			fn := &m.functions[i]
			for k, in := range fn.instructions {
				if in.start < last || in.end < in.start || int(in.end) > len(text) {
					t.Fatalf("instruction %d of function %d is at %d to %d, behind %d, of %d", k, i, in.start, in.end, last, len(text))
				}
				last = in.end
			}
			for range fn.DebugRecords() {
			}
			if n := len(fn.instructions); n > 0 {
				if _, err := m.Find(fn.Name()+"+0", false); err != nil && fn.Name() != "" {
					if other, ok := m.Function(fn.Name()); ok && other == fn {
						t.Fatalf("%q+0: %v", fn.Name(), err)
					}
				}
			}
		}
		m.Find(string(text[:min(len(text), 20)]), false)
		m.Find("%0", false)
		for range m.Nodes() {
		}
	})
}
