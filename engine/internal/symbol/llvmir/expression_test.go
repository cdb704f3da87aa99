// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/locexpr"
)

// testContext is a process in which the byte at an address is its low 8 bits, and
// value N was 0x100+N on entry to the function.
type testContext struct{ locexpr.NoContext }

func (testContext) ReadMemory(_ context.Context, _ locexpr.AddressSpace, _ locexpr.Scope, address uint64, b []byte) error {
	for i := range b {
		b[i] = byte(address + uint64(i))
	}
	return nil
}

func (testContext) SpaceBits(locexpr.AddressSpace) (uint32, bool) { return 64, true }

func (testContext) EntryValue(_ context.Context, expr []byte) (locexpr.Value, error) {
	for in, err := range locexpr.Decode(expr, locexpr.Canonical, 8, locexpr.LittleEndian) {
		if err != nil {
			return locexpr.Value{}, err
		}
		var register uint64
		if _, err := fmt.Sscanf(in.Op.Name, "DW_OP_reg%d", &register); err != nil {
			register = in.Operands[0]
		}
		return locexpr.GenericValue(0x100 + register), nil
	}
	return locexpr.Value{}, fmt.Errorf("an empty block")
}

func (testContext) BaseType(offset uint64) (*locexpr.BaseType, error) {
	bits, encoding := offset>>8, uint8(offset)
	if bits == 0 || bits > symbol.MaxIRTypeBits || encoding == 0 {
		return nil, fmt.Errorf("no type at %#x", offset)
	}
	return &locexpr.BaseType{Encoding: encoding, Bits: uint32(bits)}, nil
}

// recordOf is the only record of a function that has it.
func recordOf(t *testing.T, line string) DebugRecord {
	t.Helper()
	m := parse(t, `define void @f(i64 %a, i64 %b) {
  `+line+`
  ret void, !dbg !2
}
!0 = distinct !DISubprogram(name: "f")
!1 = !DILocalVariable(name: "v", scope: !0)
!2 = !DILocation(line: 1, scope: !0)
!3 = !{}
`)
	for d, err := range m.functions[0].DebugRecords() {
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return d
	}
	t.Fatalf("%s: no record", line)
	return DebugRecord{}
}

func evaluate(d *DebugRecord, values ...uint64) (locexpr.Location, error) {
	entries := make([]locexpr.Entry, len(values))
	for i, v := range values {
		entries[i] = locexpr.ValueEntry(locexpr.GenericValue(v))
	}
	e := locexpr.Evaluator{Dialect: locexpr.Canonical}
	return e.Location(context.Background(), d.Operation, testContext{}, entries...)
}

// What a record says of a variable, evaluated by locexpr: the bytes of the
// variable, little-endian.
func TestExpressionsAreEvaluated(t *testing.T) {
	tests := []struct {
		record  string
		values  []uint64
		bits    uint64
		want    string
		address bool
	}{
		// The value itself, and where it is.
		{"#dbg_value(i64 %a, !1, !DIExpression(), !2)", []uint64{0x1234}, 32, "34120000", false},
		{"#dbg_declare(ptr %a, !1, !DIExpression(), !2)", []uint64{0x20}, 32, "20212223", true},
		{"call void @llvm.dbg.addr(metadata ptr %a, metadata !1, metadata !DIExpression()), !dbg !2", []uint64{0x20}, 16, "2021", true},
		{"#dbg_declare_value(i64 %a, !1, !DIExpression(), !2)", []uint64{7}, 8, "07", false},
		{"#dbg_assign(i64 %a, !1, !DIExpression(), !3, ptr %b, !DIExpression(), !2)", []uint64{9}, 8, "09", false},
		// Arithmetic.
		{"#dbg_value(i64 %a, !1, !DIExpression(DW_OP_plus_uconst, 8, DW_OP_stack_value), !2)", []uint64{1}, 64, "0900000000000000", false},
		{"#dbg_value(i64 %a, !1, !DIExpression(DW_OP_plus_uconst, 8), !2)", []uint64{1}, 64, "0900000000000000", false},
		{"#dbg_value(i64 %a, !1, !DIExpression(DW_OP_constu, 3, DW_OP_minus, DW_OP_stack_value), !2)", []uint64{1}, 64, "feffffffffffffff", false},
		{"#dbg_value(i64 %a, !1, !DIExpression(DW_OP_consts, -2, DW_OP_mul, DW_OP_lit5, DW_OP_swap, DW_OP_xor, DW_OP_stack_value), !2)", []uint64{3}, 8, "ff", false},
		{"#dbg_value(i64 %a, !1, !DIExpression(DW_OP_dup, DW_OP_neg, DW_OP_over, DW_OP_not, DW_OP_and, DW_OP_or, DW_OP_stack_value), !2)", []uint64{4}, 8, "fc", false},
		{"#dbg_value(i64 %a, !1, !DIExpression(DW_OP_constu, 18446744073709551615, DW_OP_and, DW_OP_stack_value), !2)", []uint64{4}, 8, "04", false},
		// Memory: the last DW_OP_deref of a value says that the variable is there.
		{"#dbg_value(ptr %a, !1, !DIExpression(DW_OP_deref), !2)", []uint64{0x30}, 128, "303132333435363738393a3b3c3d3e3f", true},
		{"#dbg_value(ptr %a, !1, !DIExpression(DW_OP_plus_uconst, 2, DW_OP_deref), !2)", []uint64{0x30}, 16, "3233", true},
		{"#dbg_value(ptr %a, !1, !DIExpression(DW_OP_deref, DW_OP_plus_uconst, 1, DW_OP_stack_value), !2)", []uint64{0}, 64, "0101020304050607", false},
		{"#dbg_value(ptr %a, !1, !DIExpression(DW_OP_deref_size, 1, DW_OP_stack_value), !2)", []uint64{0x41}, 16, "4100", false},
		{"#dbg_declare(ptr %a, !1, !DIExpression(DW_OP_plus_uconst, 4), !2)", []uint64{0x20}, 16, "2425", true},
		{"#dbg_declare(ptr %a, !1, !DIExpression(DW_OP_deref), !2)", []uint64{0}, 8, "00", true}, // at 0x0706050403020100
		// DW_OP_LLVM_convert, also before arithmetic in other types.
		{"#dbg_value(i8 %a, !1, !DIExpression(DW_OP_LLVM_convert, 8, DW_ATE_signed, DW_OP_LLVM_convert, 32, DW_ATE_signed, DW_OP_stack_value), !2)", []uint64{0xfe}, 32, "feffffff", false},
		{"#dbg_value(i8 %a, !1, !DIExpression(DW_OP_LLVM_convert, 8, DW_ATE_unsigned, DW_OP_LLVM_convert, 32, DW_ATE_unsigned, DW_OP_stack_value), !2)", []uint64{0x1fe}, 32, "fe000000", false},
		{"#dbg_value(i8 %a, !1, !DIExpression(DW_OP_LLVM_convert, 8, 5, DW_OP_LLVM_convert, 64, 5, DW_OP_plus_uconst, 3, DW_OP_constu, 2, DW_OP_mul, DW_OP_stack_value), !2)", []uint64{0xff}, 64, "0400000000000000", false},
		{"#dbg_value(i64 %a, !1, !DIExpression(DW_OP_LLVM_convert, 64, DW_ATE_signed, DW_OP_LLVM_convert, 32, DW_ATE_float, DW_OP_stack_value), !2)", []uint64{3}, 32, "00004040", false},
		// DW_OP_LLVM_arg: any of several values, any number of times.
		{"#dbg_value(!DIArgList(i64 %a, i64 %b), !1, !DIExpression(DW_OP_LLVM_arg, 0, DW_OP_LLVM_arg, 1, DW_OP_minus, DW_OP_stack_value), !2)", []uint64{7, 5}, 8, "02", false},
		{"#dbg_value(!DIArgList(i64 %a, i64 %b), !1, !DIExpression(DW_OP_LLVM_arg, 1, DW_OP_LLVM_arg, 0, DW_OP_minus, DW_OP_LLVM_arg, 1, DW_OP_mul, DW_OP_stack_value), !2)", []uint64{7, 5}, 8, "f6", false},
		{"#dbg_value(!DIArgList(i64 %a), !1, !DIExpression(DW_OP_LLVM_arg, 0, DW_OP_deref), !2)", []uint64{0x44}, 16, "4445", true},
		// DW_OP_LLVM_entry_value: of value N, register N in the caller.
		{"#dbg_value(i64 %a, !1, !DIExpression(DW_OP_LLVM_entry_value, 1), !2)", []uint64{7}, 16, "0001", false},
		{"#dbg_value(i64 %a, !1, !DIExpression(DW_OP_LLVM_entry_value, 1, DW_OP_plus_uconst, 2, DW_OP_stack_value), !2)", []uint64{7}, 16, "0201", false},
		{"#dbg_value(!DIArgList(i64 %a, i64 %b), !1, !DIExpression(DW_OP_LLVM_arg, 1, DW_OP_LLVM_entry_value, 1, DW_OP_LLVM_arg, 0, DW_OP_plus, DW_OP_stack_value), !2)", []uint64{7, 8}, 16, "0801", false},
		// DW_OP_LLVM_tag_offset is no part of the location.
		{"#dbg_declare(ptr %a, !1, !DIExpression(DW_OP_LLVM_tag_offset, 16), !2)", []uint64{0x20}, 8, "20", true},
		// Bits of a value, and of memory.
		{"#dbg_value(i64 %a, !1, !DIExpression(DW_OP_LLVM_extract_bits_zext, 4, 3, DW_OP_stack_value), !2)", []uint64{0xd5}, 8, "05", false},
		{"#dbg_value(i64 %a, !1, !DIExpression(DW_OP_LLVM_extract_bits_sext, 4, 3, DW_OP_stack_value), !2)", []uint64{0xd5}, 16, "fdff", false},
		{"#dbg_value(i64 %a, !1, !DIExpression(DW_OP_LLVM_extract_bits_sext, 0, 64, DW_OP_stack_value), !2)", []uint64{0xd5}, 8, "d5", false},
		{"#dbg_declare(ptr %a, !1, !DIExpression(DW_OP_LLVM_extract_bits_zext, 4, 8), !2)", []uint64{0x20}, 8, "12", false}, // of 0x2120
		// The forms of older versions: operands of plus and minus, pieces by offset.
		{"call void @llvm.dbg.value(metadata i64 %a, i64 0, metadata !1, metadata !MDExpression(DW_OP_plus, 8)), !dbg !2", []uint64{1}, 8, "09", false},
		{"call void @llvm.dbg.value(metadata i64 %a, i64 0, metadata !1, metadata !DIExpression(DW_OP_minus, 3, DW_OP_stack_value)), !dbg !2", []uint64{9}, 8, "06", false},
		{"call void @llvm.dbg.declare(metadata !{i64* %a}, metadata !1), !dbg !2", []uint64{0x60}, 8, "60", true},
		{"call void @llvm.dbg.value(metadata !{i64 %a}, i64 0, metadata !1), !dbg !2", []uint64{0x61}, 8, "61", false},
	}
	for _, test := range tests {
		d := recordOf(t, test.record)
		if d.Problem != "" || d.Fragment != nil || d.IsAddress != test.address {
			t.Errorf("%s: problem %q, fragment %v, address %v", test.record, d.Problem, d.Fragment, d.IsAddress)
			continue
		}
		l, err := evaluate(&d, test.values...)
		if err != nil {
			t.Errorf("%s: %v", test.record, err)
			continue
		}
		got := make([]byte, test.bits/8)
		if err := l.Read(t.Context(), testContext{}, got, test.bits); err != nil || hex.EncodeToString(got) != test.want {
			t.Errorf("%s of %#x: %x, %v, want %s; %s", test.record, test.values, got, err, test.want, locexpr.Format(d.Operation, locexpr.Canonical, 8, locexpr.LittleEndian))
		}
		if _, _, memory := l.MemoryAddress(); memory != test.address {
			t.Errorf("%s: %v", test.record, l)
		}
	}
}

func TestADeclarationsDerefLoadsTheAddress(t *testing.T) {
	d := recordOf(t, "#dbg_declare(ptr %a, !1, !DIExpression(DW_OP_deref), !2)")
	l, err := evaluate(&d, 0x10)
	if _, address, ok := l.MemoryAddress(); err != nil || !ok || address != 0x1716151413121110 {
		t.Errorf("%v, %v", l, err)
	}
}

// A fragment's location is a composite, in which what comes before the part is
// undefined.
func TestFragmentsAreParts(t *testing.T) {
	tests := []struct {
		record       string
		offset, size uint64
		value        uint64
		want         string // the part
	}{
		{"#dbg_value(i32 %a, !1, !DIExpression(DW_OP_LLVM_fragment, 0, 32), !2)", 0, 32, 0x11223344, "44332211"},
		{"#dbg_value(i32 %a, !1, !DIExpression(DW_OP_LLVM_fragment, 32, 16), !2)", 32, 16, 0x11223344, "4433"},
		{"#dbg_value(i32 %a, !1, !DIExpression(DW_OP_plus_uconst, 1, DW_OP_stack_value, DW_OP_LLVM_fragment, 64, 8), !2)", 64, 8, 0x41, "42"},
		{"#dbg_value(ptr %a, !1, !DIExpression(DW_OP_deref, DW_OP_LLVM_fragment, 8, 24), !2)", 8, 24, 0x50, "505152"},
		{"#dbg_declare(ptr %a, !1, !DIExpression(DW_OP_plus_uconst, 2, DW_OP_LLVM_fragment, 16, 16), !2)", 16, 16, 0x50, "5253"},
		// LLVM 3.7 to 3.9 in bits, and before that in bytes.
		{"call void @llvm.dbg.value(metadata i64 %a, i64 0, metadata !1, metadata !DIExpression(DW_OP_bit_piece, 32, 32)), !dbg !2", 32, 32, 5, "05000000"},
		{"call void @llvm.dbg.value(metadata i64 %a, i64 0, metadata !1, metadata !MDExpression(DW_OP_piece, 4, 2)), !dbg !2", 32, 16, 5, "0500"},
	}
	for _, test := range tests {
		d := recordOf(t, test.record)
		if d.Problem != "" || d.Fragment == nil || *d.Fragment != (Fragment{test.offset, test.size}) {
			t.Errorf("%s: problem %q, fragment %v", test.record, d.Problem, d.Fragment)
			continue
		}
		l, err := evaluate(&d, test.value)
		if err != nil {
			t.Errorf("%s: %v", test.record, err)
			continue
		}
		part, err := l.Offset(int64(test.offset))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, test.size/8)
		if err := part.Read(t.Context(), testContext{}, got, test.size); err != nil || hex.EncodeToString(got) != test.want {
			t.Errorf("%s: the part is %x, %v, want %s", test.record, got, err, test.want)
		}
		if test.offset > 0 {
			if err := l.Read(t.Context(), testContext{}, make([]byte, 1), 1); err == nil {
				t.Errorf("%s: what comes before the part can be read", test.record)
			}
		}
	}
}

// Where an expression cannot be translated the record says so, and says nothing
// else.
func TestExpressionsThatHaveNoMeaning(t *testing.T) {
	tests := []struct{ expression, problem string }{
		{"DW_OP_regx, 3", "DW_OP_regx has no equivalent"},
		{"DW_OP_breg7, 3", "DW_OP_breg7 has no equivalent"},
		{"DW_OP_LLVM_implicit_pointer", "no equivalent"},
		{"DW_OP_unheard", "no equivalent"},
		{"DW_OP_deref, DIOpArg(0, ptr)", "an operation is expected"},
		{"7, 8", "an operation is expected"},
		{"DW_OP_plus", "needs 2 values, 1 are there"},
		{"DW_OP_drop", "there is no value"},
		{"DW_OP_drop, DW_OP_deref", "needs 1 values, 0 are there"},
		{"DW_OP_plus_uconst", "a number is expected"},
		{"DW_OP_plus_uconst, DW_OP_deref", "a number is expected"},
		{"DW_OP_constu, 99999999999999999999", "a number is expected"},
		{"DW_OP_const1u, 256", "more than 8 bits"},
		{"DW_OP_LLVM_arg, 1", "there are 1 values"},
		{"DW_OP_LLVM_entry_value, 2", "1 operation expected"},
		{"DW_OP_plus_uconst, 1, DW_OP_LLVM_entry_value, 1", "expected at the beginning"},
		{"DW_OP_LLVM_convert, 0, DW_ATE_signed", "a type of 1 to"},
		{"DW_OP_LLVM_convert, 70000, DW_ATE_signed", "a type of 1 to"},
		{"DW_OP_LLVM_convert, 32, DW_ATE_unheard", "a number is expected"},
		{"DW_OP_LLVM_fragment, 0, 0", "an offset and a size are expected"},
		{"DW_OP_LLVM_fragment, 18446744073709551615, 8", "an offset and a size are expected"},
		{"DW_OP_LLVM_fragment, 0, 8, DW_OP_deref", "behind a fragment"},
		{"DW_OP_stack_value, DW_OP_deref", "behind DW_OP_stack_value"},
		{"DW_OP_LLVM_extract_bits_zext, 60, 8", "bits of 64 are expected"},
	}
	for _, test := range tests {
		d := recordOf(t, "#dbg_value(i64 %a, !1, !DIExpression("+test.expression+"), !2)")
		if !strings.Contains(d.Problem, test.problem) || d.Operation != nil {
			t.Errorf("%s: problem %q, want %q; %x", test.expression, d.Problem, test.problem, d.Operation)
		}
	}
	old := recordOf(t, "call void @llvm.dbg.value(metadata i64 %a, i64 4, metadata !1, metadata !DIExpression()), !dbg !2")
	if !strings.Contains(old.Problem, "offset 4") {
		t.Errorf("a value of a part: problem %q", old.Problem)
	}
}

func TestValuesThatAreNotKnown(t *testing.T) {
	for value, killed := range map[string]bool{
		"i32 undef": true, "ptr poison": true, "!3": true, "!{}": true, "!DIArgList()": true, "!DIArgList(i32 %a, i32 poison)": true,
		"i32 0": false, "i1 true": false, "ptr null": false, "ptr @f": false, "<2 x i32> <i32 1, i32 undef>": false,
	} {
		d := recordOf(t, "#dbg_value("+value+", !1, !DIExpression(), !2)")
		if d.IsKilled != killed {
			t.Errorf("%s: killed is %v", value, d.IsKilled)
		}
		if !killed && (len(d.Values) != 1 || d.Values[0] != value) {
			t.Errorf("%s: values %q", value, d.Values)
		}
	}
}
