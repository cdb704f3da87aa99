// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/locexpr"
)

// TestTypedExpressions evaluates what ROCm's operations are translated to: the bytes of the
// variable, or why there are none.
func TestTypedExpressions(t *testing.T) {
	for _, c := range []struct {
		record  string // "declare X" or "value X" of the operations X, or of !DIArgList with two values
		values  []uint64
		bits    uint64
		want    string
		address bool
	}{
		{"declare DIOpArg(0, ptr), DIOpDeref(i32)", []uint64{0x20}, 32, "20212223", true},
		{"declare DIOpArg(0, ptr addrspace(5)), DIOpDeref(i32)", []uint64{0x20}, 32, "20212223", true},
		{"declare DIOpReferrer(i32 addrspace(5)*), DIOpDeref(i32)", []uint64{0x20}, 32, "20212223", true},
		{"value DIOpArg(0, i32)", []uint64{0x1234}, 32, "34120000", false},
		{"value DIOpArg(0, ptr), DIOpDeref(ptr), DIOpDeref(i16)", []uint64{0}, 8, "00", true},
		{"value DIOpArg(0, ptr), DIOpDeref(i32), DIOpRead()", []uint64{0x20}, 32, "20212223", false},
		{"value DIOpArg(0, ptr), DIOpDeref(i64), DIOpConstant(i64 2), DIOpByteOffset(i32)", []uint64{0x20}, 32, "22232425", true},
		{"value DIOpArg(0, ptr), DIOpDeref(i64), DIOpConstant(i64 24), DIOpBitOffset(i32)", []uint64{0x20}, 32, "23242526", true},
		{"value DIOpArg(0, i32), DIOpConstant(i32 2), DIOpByteOffset(i8)", []uint64{0x11223344}, 8, "22", false},
		{"value DIOpArg(0, i32), DIOpConstant(i32 12), DIOpBitOffset(i8)", []uint64{0x11223344}, 8, "23", false},
		{"value DIOpConstant(i32 -2)", []uint64{0}, 32, "feffffff", false},
		{"value DIOpConstant(i1 true)", []uint64{0}, 8, "01", false},
		{"value DIOpArg(0, i32), DIOpConstant(i32 3), DIOpAdd()", []uint64{4}, 8, "07", false},
		{"value DIOpArg(0, i32), DIOpConstant(i32 3), DIOpSub()", []uint64{4}, 8, "01", false},
		{"value DIOpArg(0, i32), DIOpConstant(i32 3), DIOpMul()", []uint64{4}, 8, "0c", false},
		{"value DIOpArg(0, i32), DIOpConstant(i32 2), DIOpDiv()", []uint64{0xfffffff8}, 32, "fcffffff", false},
		{"value DIOpArg(0, i32), DIOpConstant(i32 3), DIOpMod()", []uint64{8}, 8, "02", false},
		{"value DIOpArg(0, i32), DIOpConstant(i32 1), DIOpLShr()", []uint64{0xffff_fffffffe}, 64, "ffffff7f00000000", false},
		{"value DIOpArg(0, i8), DIOpConstant(i8 1), DIOpAShr()", []uint64{0x80}, 8, "c0", false},
		{"value DIOpArg(0, i32), DIOpConstant(i32 4), DIOpShl(), DIOpConstant(i32 255), DIOpAnd(), DIOpConstant(i32 1), DIOpOr(), DIOpConstant(i32 3), DIOpXor()", []uint64{0x12}, 16, "2200", false},
		{"value DIOpArg(0, ptr), DIOpDeref(i16), DIOpArg(0, ptr), DIOpDeref(i16), DIOpAdd()", []uint64{0x20}, 16, "4042", false},
		{"value DIOpArg(0, i64), DIOpConvert(i8), DIOpConvert(i32)", []uint64{0x1fe}, 32, "fe000000", false},
		{"value DIOpArg(0, i8), DIOpSExt(i32)", []uint64{0x1fe}, 32, "feffffff", false},
		{"value DIOpArg(0, i8), DIOpZExt(i32)", []uint64{0x1fe}, 32, "fe000000", false},
		{"value DIOpArg(0, float), DIOpReinterpret(i32)", []uint64{0x3f800000}, 32, "0000803f", false},
		{"value DIOpArg(0, i32), DIOpAddrOf(5), DIOpDeref(i32)", []uint64{9}, 8, "09", false},
		{"value DIOpArg(0, ptr), DIOpDeref(i32), DIOpAddrOf(5), DIOpDeref(i32)", []uint64{0x20}, 8, "20", true},
		{"value DIOpArg(1, i32), DIOpArg(0, i32), DIOpSub()", []uint64{3, 7}, 8, "04", false},
		{"value DIOpArg(1, ptr), DIOpDeref(i32)", []uint64{3, 0x30}, 8, "30", true},
		{"value DIOpArg(0, i16), DIOpArg(1, ptr), DIOpDeref(i16), DIOpComposite(2, i32)", []uint64{0x1234, 0x30}, 32, "34123031", false},
		{"value DIOpArg(0, i8), DIOpConstant(i8 5), DIOpArg(1, i16), DIOpComposite(3, <4 x i8>)", []uint64{0x12, 0x3456}, 32, "12055634", false},
		{"value DIOpArg(0, i8), DIOpExtend(4)", []uint64{0x7}, 32, "07070707", false},
		{"value DIOpConstant(i8 1), DIOpExtend(4), DIOpConstant(i8 2), DIOpExtend(4), DIOpArg(0, i8), DIOpSelect()", []uint64{5}, 32, "02010201", false},
		{"value DIOpArg(0, i16), DIOpFragment(16, 16)", []uint64{0x1234}, 32, "", false},
	} {
		kind, operations, _ := strings.Cut(c.record, " ")
		value := "ptr %a"
		if len(c.values) > 1 {
			value = "!DIArgList(i64 %a, i64 %b)"
		}
		d := recordOf(t, "#dbg_"+kind+"("+value+", !1, !DIExpression("+operations+"), !2)")
		if d.Problem != "" {
			t.Errorf("%s: %s", c.record, d.Problem)
			continue
		}
		l, err := evaluate(&d, c.values...)
		if err != nil {
			t.Errorf("%s: %v", c.record, err)
			continue
		}
		if d.Fragment != nil {
			if *d.Fragment != (Fragment{16, 16}) {
				t.Errorf("%s: fragment %+v", c.record, d.Fragment)
			}
			continue
		}
		if isMemory := l.Place(0).Storage == locexpr.Memory; d.IsAddress != c.address || isMemory != c.address {
			t.Errorf("%s: an address: %v, %v", c.record, d.IsAddress, l)
		}
		got := make([]byte, c.bits/8)
		err = l.Read(t.Context(), testContext{}, got, c.bits)
		if err != nil || hex.EncodeToString(got) != c.want {
			t.Errorf("%s: %x, %v, expected %s", c.record, got, err, c.want)
		}
	}
}

// TestTypedExpressionsThatHaveNoMeaning says why an operation is not translated, in the
// module's problems, too.
func TestTypedExpressionsThatHaveNoMeaning(t *testing.T) {
	for operations, want := range map[string]string{
		"DIOpUnknown()":                    "DIOpUnknown: it has no equivalent",
		"DIOpArg(1, i32)":                  "argument 1: there are 1 values",
		"DIOpArg(0)":                       "1 arguments, expected 2",
		"DIOpAdd()":                        "it needs 2 entries, 0 are there",
		"DIOpArg(0, i32), DIOpArg(0, i32)": "2 entries are left",
		"DIOpArg(0, i32), DIOpDeref(i32)":  "a value of type i32, expected a pointer",
		"DIOpArg(0, i32), DIOpAddrOf(5)":   "a pointer to what is in no memory",
		"DIOpArg(0, i32), DIOpAddrOf(5), DIOpConstant(i32 1), DIOpAdd()":  "it has no equivalent for what is not in memory",
		"DIOpArg(0, float), DIOpConvert(double)":                          "only integers",
		"DIOpArg(0, float), DIOpArg(0, float), DIOpAdd()":                 "only integers",
		"DIOpArg(0, i32), DIOpReinterpret(i64)":                           "which has another size",
		"DIOpArg(0, i32), DIOpConstant(i32 3), DIOpByteOffset(i16)":       "by 24 bits into i32",
		"DIOpArg(0, i32), DIOpPushLane(i32), DIOpByteOffset(i16)":         "only bytes of memory",
		"DIOpArg(0, %t), DIOpComposite(1, i32)":                           "whose size is not known",
		"DIOpArg(0, i32), DIOpComposite(1, i64)":                          "parts of 32 bits, expected 64",
		"DIOpArg(0, i32), DIOpComposite(2, i64)":                          "of 2 entries: all 1 are expected",
		"DIOpArg(0, i32), DIOpFragment(0, 8), DIOpRead()":                 "DIOpRead behind a fragment",
		"DIOpConstant(float 1.0)":                                         "a constant",
		"DIOpArg(0, i32), DW_OP_deref":                                    "an operation is expected",
		"DIOpArg(0, i32), DIOpExtend(0)":                                  "0 times a i32",
		"DIOpArg(0, i8), DIOpArg(0, i8), DIOpArg(0, i8), DIOpSelect()":    "two vectors of one type",
		"DIOpPoisoned(i32), DIOpConstant(i32 1), DIOpAdd()":               "no equivalent",
		"DIOpArg(0, i32), DIOpConstant(i32 undef), DIOpComposite(1, i32)": "of 1 entries",
	} {
		d := recordOf(t, "#dbg_value(ptr %a, !1, !DIExpression("+operations+"), !2)")
		if !strings.Contains(d.Problem, want) || d.Operation != nil {
			t.Errorf("%s: %q, expected %q", operations, d.Problem, want)
		}
	}
}

// TestLifetimes reads the records of older ROCm, and says which are not read.
func TestLifetimes(t *testing.T) {
	m := parse(t, `define void @f(i64 %a) {
  call void @llvm.dbg.def(metadata !5, metadata ptr addrspace(5) %x), !dbg !2
  %1 = add i64 %a, 1, !dbg !2
  call void @llvm.dbg.kill(metadata !5), !dbg !2
  %2 = add i64 %a, 2, !dbg !2
  call void @llvm.dbg.def(metadata !6, metadata i32 undef), !dbg !2
  %3 = add i64 %a, 3, !dbg !2
  call void @llvm.dbg.def(metadata !7, metadata i32 undef), !dbg !2
  call void @llvm.dbg.strange(metadata !7), !dbg !2
  #dbg_odd(i64 %a, !1, !2)
  call void @llvm.dbg.def(metadata !8, metadata i64 %a), !dbg !2
  ret void, !dbg !2
}
@g = global i32 0, !dbg.def !9
!0 = distinct !DISubprogram(name: "f")
!1 = !DILocalVariable(name: "v", scope: !0)
!2 = !DILocation(line: 1, scope: !0)
!3 = !DILocalVariable(name: "w", scope: !0)
!4 = !DIExpr(DIOpReferrer(ptr addrspace(5)), DIOpDeref(i32))
!5 = distinct !DILifetime(object: !1, location: !4)
!6 = distinct !DILifetime(object: !1, location: !DIExpr(DIOpConstant(i32 7)))
!7 = distinct !DILifetime(object: !9, location: !4)
!8 = distinct !DILifetime(object: !3, location: !DIExpr(DIOpArg(0, i64)), argObjects: !{!9})
!9 = distinct !DIFragment()
!10 = distinct !DILifetime(object: !3, location: !4)
`)
	var got []string
	for _, v := range m.Variables() {
		for _, r := range v.Ranges {
			got = append(got, fmt.Sprintf("%s %d-%d address %v %q %x %s", v.Name, r.Start, r.End, r.IsAddress, r.Values[0], r.Expression, r.Problem))
		}
	}
	want := []string{
		`v 0-1 address true "ptr addrspace(5) %x"  `, `v 2-4 address false "i32 undef" 10079f `,
		`w 3-4 address false "i64 %a"  the lifetime refers to other objects`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("ranges\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	problems := strings.Join(m.Problems(), "\n")
	for _, want := range []string{
		"the lifetime !7 of a DIFragment is not read", "the lifetime !10, which no llvm.dbg.def begins, is not read",
		"a kind that is not known is not read: \"call void @llvm.dbg.strange", "#dbg_odd", "the fragment of a global variable is not read",
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("no %q among the problems:\n%s", want, problems)
		}
	}
}
