// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/locexpr"
)

// functionText is a module of one function of the source function f, with local
// variables a, b and c, and with expressions.
func functionText(records, body string) string {
	return `
               OpCapability Addresses
               OpCapability Linkage
               OpCapability Kernel
          %1 = OpExtInstImport "OpenCL.std"
        %dbg = OpExtInstImport "OpenCL.DebugInfo.100"
               OpMemoryModel Physical64 OpenCL
       %file = OpString "f.cl"
      %empty = OpString ""
        %n_f = OpString "f"
        %n_a = OpString "a"
        %n_b = OpString "b"
        %n_c = OpString "c"
      %n_int = OpString "int"
               OpName %f "f"
        %int = OpTypeInt 32 0
       %void = OpTypeVoid
       %bool = OpTypeBool
         %fn = OpTypeFunction %void %int
        %ptr = OpTypePointer Function %int
         %c0 = OpConstant %int 0
         %c1 = OpConstant %int 1
        %c32 = OpConstant %int 32
      %undef = OpUndef %int
       %none = OpExtInst %void %dbg DebugInfoNone
        %src = OpExtInst %void %dbg DebugSource %file
         %cu = OpExtInst %void %dbg DebugCompilationUnit 1 4 %src OpenCL_C
      %t_int = OpExtInst %void %dbg DebugTypeBasic %n_int %c32 Signed
        %t_f = OpExtInst %void %dbg DebugTypeFunction None %void %t_int
        %d_f = OpExtInst %void %dbg DebugFunction %n_f %t_f %src 1 1 %cu %empty None 1 %f
         %at = OpExtInst %void %dbg DebugInlinedAt 9 %d_f
       %e_no = OpExtInst %void %dbg DebugExpression
          %a = OpExtInst %void %dbg DebugLocalVariable %n_a %t_int %src 1 2 %d_f None
          %b = OpExtInst %void %dbg DebugLocalVariable %n_b %t_int %src 1 3 %d_f None
          %c = OpExtInst %void %dbg DebugLocalVariable %n_c %t_int %src 1 4 %d_f None
          %e = OpExtInst %void %dbg DebugExpression
` + records + `
          %f = OpFunction %void None %fn
         %p0 = OpFunctionParameter %int
` + body + `
               OpFunctionEnd
`
}

// rangesOf is where each variable is, as text with the numbers of the result IDs
// replaced by the index of their instruction, or "p" for others.
func rangesOf(m *Module) []string {
	index := map[string]int{}
	for p := range m.Positions() {
		op, end := m.instruction(uint32(p.Offset))
		if at := resultAt(op); at != 0 && uint32(at) < end-uint32(p.Offset) {
			index[idText(m.words[p.Offset+uint64(at)])] = p.Instruction
		}
	}
	list := []string{}
	for _, v := range m.Variables() {
		for _, r := range v.Ranges {
			kind, value := "value", "constant"
			if r.IsAddress {
				kind = "address"
			}
			if i, ok := index[r.Values[0]]; ok {
				value = fmt.Sprintf("+%d", i)
			}
			text := fmt.Sprintf("%s +%d to +%d %s %s", v.Name, r.Start, r.End, kind, value)
			if v.InlinedAt != "" {
				text += " inlined"
			}
			if len(r.Members) > 0 {
				text += " member " + strings.Join(r.Members, ".")
			}
			list = append(list, text)
		}
	}
	return list
}

func TestWhereVariablesAre(t *testing.T) {
	for _, c := range []struct {
		name, records, body string
		expected            []string
	}{
		{"a value holds until the next one", "", `
          %l = OpLabel                                         ; 1
         %v1 = OpExtInst %void %dbg DebugValue %a %p0 %e_no ; 2
         %x  = OpIAdd %int %p0 %c1
         %v2 = OpExtInst %void %dbg DebugValue %a %x %e_no ; 4
         %v3 = OpExtInst %void %dbg DebugValue %b %c0 %e_no ; 5
               OpReturn`, []string{"a +2 to +4 value +0", "a +4 to +7 value +3", "b +5 to +7 value constant"}},
		{"a value that is undefined ends the one before", "", `
          %l = OpLabel
         %v1 = OpExtInst %void %dbg DebugValue %a %p0 %e_no ; 2
         %v2 = OpExtInst %void %dbg DebugValue %a %undef %e_no ; 3
         %v3 = OpExtInst %void %dbg DebugValue %b %p0 %e_no ; 4
         %v4 = OpExtInst %void %dbg DebugValue %b %none %e_no ; 5
               OpReturn`, []string{"a +2 to +3 value +0", "b +4 to +5 value +0"}},
		{"a declaration holds to the end of the function", "", `
          %l = OpLabel                                         ; 1
        %var = OpVariable %ptr Function                        ; 2
         %d1 = OpExtInst %void %dbg DebugDeclare %a %var %e_no ; 3
               OpBranch %m
          %m = OpLabel
               OpReturn`, []string{"a +3 to +8 address +2"}},
		{"where ways join, what all of them agree on holds", "", `
          %l = OpLabel                                         ; 1
         %v1 = OpExtInst %void %dbg DebugValue %a %p0 %e_no ; 2
         %v2 = OpExtInst %void %dbg DebugValue %b %p0 %e_no ; 3
         %is = OpIEqual %bool %p0 %c0                          ; 4
               OpBranchConditional %is %yes %no                ; 5
        %yes = OpLabel                                         ; 6
         %v3 = OpExtInst %void %dbg DebugValue %b %c0 %e_no ; 7
               OpBranch %end                                   ; 8
         %no = OpLabel                                         ; 9
               OpBranch %end                                   ; 10
        %end = OpLabel                                         ; 11
               OpReturn`, []string{"a +2 to +13 value +0", "b +3 to +7 value +0", "b +7 to +9 value constant", "b +9 to +11 value +0"}},
		{"around a loop, what the loop does not change holds", "", `
          %l = OpLabel                                         ; 1
         %v1 = OpExtInst %void %dbg DebugValue %a %p0 %e_no ; 2
         %v2 = OpExtInst %void %dbg DebugValue %b %c0 %e_no ; 3
               OpBranch %head                                  ; 4
       %head = OpLabel                                         ; 5
        %phi = OpPhi %int %c0 %l %inc %head                    ; 6
         %v3 = OpExtInst %void %dbg DebugValue %c %phi %e_no ; 7
        %inc = OpIAdd %int %phi %c1                            ; 8
         %v4 = OpExtInst %void %dbg DebugValue %b %inc %e_no ; 9
         %is = OpIEqual %bool %inc %p0                         ; 10
               OpBranchConditional %is %end %head              ; 11
        %end = OpLabel                                         ; 12
               OpReturn`, []string{
			"a +2 to +14 value +0", "b +3 to +5 value constant", "b +9 to +14 value +8", "c +7 to +14 value +6",
		}},
		{"a value that a loop computes again is another one", "", `
          %l = OpLabel                                         ; 1
               OpBranch %head                                  ; 2
       %head = OpLabel                                         ; 3
        %inc = OpIAdd %int %p0 %c1                             ; 4
         %is = OpIEqual %bool %inc %p0                         ; 5
         %v1 = OpExtInst %void %dbg DebugValue %a %inc %e_no ; 6
               OpBranchConditional %is %end %head              ; 7
        %end = OpLabel                                         ; 8
               OpReturn`, []string{"a +6 to +10 value +4"}},
		{"a switch goes to all of its targets", "", `
          %l = OpLabel                                         ; 1
         %v1 = OpExtInst %void %dbg DebugValue %a %p0 %e_no ; 2
               OpSwitch %p0 %one 7 %two                        ; 3
        %one = OpLabel                                         ; 4
               OpReturn                                        ; 5
        %two = OpLabel                                         ; 6
               OpReturn`, []string{"a +2 to +8 value +0"}},
		{"members and fragments replace each other where they overlap", `
         %o1 = OpExtInst %void %dbg DebugOperation Fragment 0 16
         %o2 = OpExtInst %void %dbg DebugOperation Fragment 16 16
         %e1 = OpExtInst %void %dbg DebugExpression %o1
         %e2 = OpExtInst %void %dbg DebugExpression %o2`, `
          %l = OpLabel                                         ; 1
         %v1 = OpExtInst %void %dbg DebugValue %a %p0 %e1      ; 2
         %v2 = OpExtInst %void %dbg DebugValue %a %p0 %e2      ; 3
         %v3 = OpExtInst %void %dbg DebugValue %a %c0 %e1      ; 4
         %v4 = OpExtInst %void %dbg DebugValue %b %p0 %e_no %c0   ; 5
         %v5 = OpExtInst %void %dbg DebugValue %b %p0 %e_no %c1   ; 6
         %v6 = OpExtInst %void %dbg DebugValue %b %p0 %e_no %c0   ; 7
         %v7 = OpExtInst %void %dbg DebugValue %b %c0 %e_no ; 8
               OpReturn`, []string{
			"a +2 to +4 value +0", "a +3 to +10 value +0", "a +4 to +10 value constant",
			"b +5 to +7 value +0 member 0", "b +6 to +8 value +0 member 1", "b +7 to +8 value +0 member 0", "b +8 to +10 value constant",
		}},
		{"a variable of a call that was inlined is another one", "", `
          %l = OpLabel                                         ; 1
         %v1 = OpExtInst %void %dbg DebugValue %a %p0 %e_no ; 2
         %s1 = OpExtInst %void %dbg DebugScope %d_f %at        ; 3
         %v2 = OpExtInst %void %dbg DebugValue %a %c0 %e_no ; 4
               OpReturn`, []string{"a +2 to +6 value +0", "a +4 to +6 value constant inlined"}},
	} {
		m := parseText(t, functionText(c.records, c.body))
		if diff := cmp.Diff(c.expected, rangesOf(m)); diff != "" {
			t.Errorf("%s (-expected +read):\n%s", c.name, diff)
		}
	}
}

// memory is a machine with 16 bytes of memory at address 0x1000.
type memory struct{ locexpr.NoContext }

func (memory) ReadMemory(_ context.Context, _ locexpr.AddressSpace, _ locexpr.Scope, address uint64, dst []byte) error {
	for i := range dst {
		dst[i] = byte(address + uint64(i) - 0x1000 + 1)
	}
	return nil
}

func (memory) SpaceBits(locexpr.AddressSpace) (uint32, bool) { return 64, true }

func (memory) BaseType(offset uint64) (*locexpr.BaseType, error) {
	bits, encoding := offset>>8, uint8(offset)
	if bits == 0 || bits > symbol.MaxIRTypeBits || encoding == 0 {
		return nil, fmt.Errorf("no type %d", offset)
	}
	return &locexpr.BaseType{Encoding: encoding, Bits: uint32(bits)}, nil
}

// expressionOf translates a DebugExpression of operations.
func expressionOf(t *testing.T, address bool, operations ...[]uint32) ([]byte, bool, error) {
	t.Helper()
	// An OpenCL.DebugInfo.100 module of nothing else.
	w := []uint32{magic, 0x10400, 0, 1000, 0}
	name := words(append([]byte("OpenCL.DebugInfo.100"), 0, 0, 0, 0))
	w = append(append(w, uint32(len(name)+2)<<16|opExtInstImport, 1), name...)
	w = append(w, 2<<16|opTypeVoid, 2)
	expression := []uint32{opExtInst, 2, 3, 1, uint32(DebugExpression)}
	for i, o := range operations {
		id := uint32(10 + i)
		w = append(append(w, uint32(5+len(o))<<16|opExtInst, 2, id, 1, uint32(DebugOperation)), o...)
		expression = append(expression, id)
	}
	expression[0] |= uint32(len(expression)) << 16
	m, err := Read("expression", module(append(w, expression...), binary.LittleEndian))
	if err != nil {
		t.Fatal(err)
	}
	return m.Expression(m.find(3), address)
}

// Expressions are evaluated with an address or a value on the stack, 0x1000, as
// they are said to begin. The byte at 0x1000 is 1, the next one 2, and so on.
func TestExpressionsAreEvaluated(t *testing.T) {
	for _, c := range []struct {
		name       string
		address    bool
		operations [][]uint32
		text       string
		want       uint64
		memory     bool
	}{
		{"an address", true, nil, "", 0x0807060504030201, true},
		{"an address, Deref", true, [][]uint32{{0}}, "DW_OP_deref", 0x0908070605040302, true},
		{"an address, PlusUconst", true, [][]uint32{{3, 2}}, "DW_OP_plus_uconst 2", 0x0a09080706050403, true},
		{"an address, StackValue", true, [][]uint32{{3, 2}, {7}}, "DW_OP_plus_uconst 2; DW_OP_stack_value", 0x1002, false},
		{"an address, Fragment", true, [][]uint32{{9, 0, 16}}, "DW_OP_bit_piece 16 0", 0x0201, true},
		{"a value", false, nil, "DW_OP_stack_value", 0x1000, false},
		{"a value, Deref", false, [][]uint32{{0}}, "", 0x0807060504030201, true},
		{"a value, PlusUconst, Deref", false, [][]uint32{{3, 2}, {0}}, "DW_OP_plus_uconst 2", 0x0a09080706050403, true},
		{"a value, Deref, PlusUconst", false, [][]uint32{{0}, {3, 2}}, "DW_OP_deref; DW_OP_plus_uconst 2; DW_OP_stack_value", 0x0807060504030203, false},
		{"Constu, Minus", false, [][]uint32{{8, 0x10}, {2}}, "DW_OP_constu 16; DW_OP_minus; DW_OP_stack_value", 0xff0, false},
		{"Constu, Plus", false, [][]uint32{{8, 0x10}, {1}}, "DW_OP_constu 16; DW_OP_plus; DW_OP_stack_value", 0x1010, false},
		{"Constu, Swap, Minus", false, [][]uint32{{8, 0x3000}, {5}, {2}}, "DW_OP_constu 12288; DW_OP_swap; DW_OP_minus; DW_OP_stack_value", 0x2000, false},
		{"Constu, Swap, Xderef", false, [][]uint32{{8, 0}, {5}, {6}}, "DW_OP_constu 0; DW_OP_swap; DW_OP_xderef; DW_OP_stack_value", 0x0807060504030201, false},
		{"Constu, Shl, StackValue", false, [][]uint32{{8, 1}, {34}, {7}}, "DW_OP_constu 1; DW_OP_shl; DW_OP_stack_value", 0x2000, false},
		{"Const1s", false, [][]uint32{{13, 0xffffffff}, {1}}, "DW_OP_const1s -1; DW_OP_plus; DW_OP_stack_value", 0xfff, false},
		{"Convert", false, [][]uint32{{10, 8, 6}, {10, 64, 6}}, "DW_OP_convert 0x807; DW_OP_convert 0x4007; DW_OP_stack_value", 0, false},
		{"BitPiece", false, [][]uint32{{4, 16, 8}}, "DW_OP_stack_value; DW_OP_bit_piece 16 8", 0x10, false},
		{"Deref, BitPiece", false, [][]uint32{{0}, {4, 16, 8}}, "DW_OP_bit_piece 16 8", 0x0302, true},
		{"Fragment", false, [][]uint32{{9, 0, 16}}, "DW_OP_stack_value; DW_OP_bit_piece 16 0", 0x1000, false},
		{"Deref, Fragment", false, [][]uint32{{0}, {9, 0, 16}}, "DW_OP_bit_piece 16 0", 0x0201, true},
	} {
		expr, inMemory, err := expressionOf(t, c.address, c.operations...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if text := locexpr.FormatText(expr, locexpr.TextOptions{Dialect: locexpr.Canonical}); text != c.text || inMemory != c.memory {
			t.Errorf("%s: %s, in memory: %v; expected %s, %v", c.name, text, inMemory, c.text, c.memory)
		}
		full, err := locexpr.Parse("constu 0x1000", locexpr.TextOptions{Dialect: locexpr.Canonical})
		if err != nil {
			t.Fatal(err)
		}
		e := &locexpr.Evaluator{Dialect: locexpr.Canonical}
		if got, err := evaluated(e, append(full, expr...)); err != nil || got != c.want {
			t.Errorf("%s: 0x%x, %v, expected 0x%x", c.name, got, err, c.want)
		}
	}
}

// evaluated is what is at the location that an expression yields: 8 bytes, or 2 of
// a composite.
func evaluated(e *locexpr.Evaluator, expr []byte) (uint64, error) {
	l, err := e.Location(context.Background(), expr, memory{})
	if err != nil {
		return 0, err
	}
	dst := make([]byte, 8)
	bits := uint64(64)
	if l.Place(0).Storage == locexpr.Composite {
		bits = 16
	}
	err = l.Read(context.Background(), memory{}, dst[:bits/8], bits)
	return binary.LittleEndian.Uint64(dst), err
}

// A fragment of a variable is a composite whose other bits are undefined.
func TestFragmentsAreParts(t *testing.T) {
	expr, _, err := expressionOf(t, true, []uint32{3, 2}, []uint32{9, 8, 16})
	if err != nil {
		t.Fatal(err)
	}
	full, _ := locexpr.Parse("constu 0x1000", locexpr.TextOptions{Dialect: locexpr.Canonical})
	e := &locexpr.Evaluator{Dialect: locexpr.Canonical}
	l, err := e.Location(t.Context(), append(full, expr...), memory{})
	if err != nil {
		t.Fatal(err)
	}
	var b [3]byte
	if err := l.Read(t.Context(), memory{}, b[:], 24); err == nil {
		t.Errorf("the bits before a fragment are read as %x, expected them to be undefined", b)
	}
	part, err := l.Offset(8)
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Read(t.Context(), memory{}, b[:2], 16); err != nil || b[0] != 3 || b[1] != 4 {
		t.Errorf("the fragment is % x, %v, expected 03 04", b[:2], err)
	}
}

// Every operation is either translated or refused with a reason.
func TestEveryOperation(t *testing.T) {
	operations := operations()
	if len(operations) != 168 {
		t.Errorf("%d operations, expected 0 to 167", len(operations))
	}
	for code, o := range operations {
		words := []uint32{uint32(code)}
		for range o.operands {
			words = append(words, 8)
		}
		if o.how == convert {
			words[2] = 4
		}
		_, _, err := expressionOf(t, true, words)
		if (err == nil) != (o.how != refused) {
			t.Errorf("%d %s: %v", code, o.name, err)
		}
		if _, _, err := expressionOf(t, true, append(words, 1)); err == nil {
			t.Errorf("%s with an operand too many: no error", o.name)
		}
	}
	for name, expr := range map[string][][]uint32{
		"a number that is none":     {{168}},
		"Fragment not at the end":   {{9, 0, 8}, {0}},
		"Convert to no base type":   {{10, 32, 0}},
		"Convert to too many bits":  {{10, 1 << 20, 6}},
		"DebugOperation of nothing": {{}},
	} {
		if got, _, err := expressionOf(t, false, expr...); err == nil {
			t.Errorf("%s: %x, expected an error", name, got)
		}
	}
}
