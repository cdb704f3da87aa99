// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/dw"
)

// documents has every row: an expression of each operation, error and worked
// example of the documents, with the section that it comes from.
func documents() []aCase {
	return slices.Concat(cases, typeCases, heterogeneousCases, vendorCases, examples)
}

func TestDocuments(t *testing.T) {
	for i, c := range documents() {
		name := fmt.Sprintf("%03d %s: %s", i, c.section, c.text)
		t.Run(name, func(t *testing.T) { c.run(t) })
	}
}

// TestEveryOpcodeHasARow keeps the table complete: in every dialect, every
// opcode stands in a row that succeeds. A row for one of DW_OP_lit<N>, reg<N>
// and breg<N> is one for all of them.
func TestEveryOpcodeHasARow(t *testing.T) {
	family := func(name string) string {
		for _, f := range []string{"DW_OP_lit", "DW_OP_reg", "DW_OP_breg"} {
			if strings.TrimRight(name, "0123456789") == f {
				return f
			}
		}
		return name
	}
	used := map[string]bool{}
	for _, c := range documents() {
		if c.failed {
			continue
		}
		code, d, size := c.code(t)
		for instruction, err := range Decode(code, d, size, c.order) {
			if err != nil {
				break
			}
			used[family(instruction.Op.Name)] = true
		}
	}
	for _, d := range Dialects {
		check := func(opcode int, number uint64, op *Operation) {
			if op.Name != "" && !op.isPrefix() && !used[family(op.Name)] {
				t.Errorf("dialect %s: 0x%02x 0x%x: %s has no row", d, opcode, number, op.Name)
			}
		}
		for opcode := range d.tables().operations {
			check(opcode, 0, &d.tables().operations[opcode])
		}
		for number, op := range d.tables().user {
			check(dw.OpLLVMUser, number, op)
		}
	}
}

// lanes has lane 2 of 8.
func lanes(m *testMachine) { m.lanes = 8 }

func all(f ...func(*testMachine)) func(*testMachine) {
	return func(m *testMachine) {
		for i := range f {
			f[i](m)
		}
	}
}

func callee(ref EntryRef, c Callee) func(*testMachine) {
	return func(m *testMachine) { m.callees = map[EntryRef]Callee{ref: c} }
}

// unitContext is a context with another compilation unit.
type unitContext struct {
	*testMachine
	addr uint64
}

func (c unitContext) Addrx(uint64) (uint64, error) { return c.addr, nil }

var heterogeneousCases = []aCase{
	// Calls.
	expr("A.2.5.4.2", "lit5; call2 0x30; lit1; plus").with(callee(EntryRef{0x30, true}, Callee{Kind: CalleeExpression, Expr: []byte{0x12, 0x22}})).is("0xb").
		shows("0x5", "0xa", "0xa, 0x1", "0xb"),
	expr("A.2.5.4.2", "lit5; lit3; call4 0x12345678").with(callee(EntryRef{0x12345678, true}, Callee{Kind: CalleeExpression, Expr: []byte{0x1c}})).is("0x2"),
	expr("A.2.5.4.2", "call_ref 0x30").with(callee(EntryRef{0x30, false}, Callee{Kind: CalleeExpression, Expr: []byte{0x53}})).is("register 3"),
	expr("A.2.5.4.2: a branch within the callee", "lit1; call2 0x30; lit2; plus").with(callee(EntryRef{0x30, true}, Callee{Kind: CalleeExpression, Expr: []byte{0x2f, 1, 0, 0x13, 0x12}})).is("0x3"),
	expr("A.2.5.4.2: a branch out of the callee", "lit1; call2 0x30; nop").with(callee(EntryRef{0x30, true}, Callee{Kind: CalleeExpression, Expr: []byte{0x2f, 1, 0}})).illFormed(1, "DW_OP_skip: branch to offset 4"),
	expr("A.2.5.4.2: in the callee's compilation unit", "addrx 0; call2 0x30; addrx 0").with(func(m *testMachine) {
		m.addrs = []uint64{1}
		m.callees = map[EntryRef]Callee{{0x30, true}: {Kind: CalleeExpression, Expr: []byte{0xa1, 0}, Context: unitContext{m, 2}}}
	}).is("memory 0x1").shows("memory 0x1", "memory 0x1, memory 0x2", "memory 0x1, memory 0x2, memory 0x1"),
	expr("A.2.5.4.2: in the callee's DWARF format", "call_ref 0x30").with(callee(EntryRef{0x30, false}, Callee{
		Kind: CalleeExpression, Expr: []byte{0xa0, 1, 0, 0, 0, 2, 0, 0, 0, 3}, OffsetSize: 8,
	})).is("implicit-pointer 0x200000001+3"),
	expr("A.2.5.4.2: in the callee's dialect", "call_ref 0x30").with(callee(EntryRef{0x30, false}, Callee{Kind: CalleeExpression, Expr: []byte{0xe7}, Dialect: LLVMLegacy})).is("undefined"),
	expr("A.2.5.4.2: a location list", "lit1; call2 0x30; LLVM_offset_uconst 4").with(callee(EntryRef{0x30, true}, Callee{
		Kind: CalleeLocation, Location: UnionLocation(MemoryLocation(0, 16), RegisterLocation(3, noScope)),
	})).is("memory 0x14 | register 3 +32 bits"),
	expr("A.2.5.4.2: DW_AT_const_value", "call2 0x30").with(callee(EntryRef{0x30, true}, Callee{Kind: CalleeLocation, Location: ImplicitLocation([]byte{1, 2})})).is("implicit 0102"),
	expr("A.2.5.4.2: no effect", "lit7; call2 0x30").with(callee(EntryRef{0x30, true}, Callee{})).is("0x7"),
	expr("A.2.5.4.2", "call2 0x31").illFormed(0, "no entry at 0x31"),
	expr("A.2.5.4.4.6: an incomplete composite is not completed by the end of a callee", "call2 0x30; reg4; piece 8").with(callee(EntryRef{0x30, true}, Callee{
		Kind: CalleeExpression, Expr: []byte{0x53, 0x93, 4},
	})).is("composite {32: register 3; 64: register 4}").shows("incomplete composite {32: register 3}", "incomplete composite {32: register 3}, register 4", "incomplete composite {32: register 3; 64: register 4}"),
	expr("limits: calls of itself", "call2 0x30").with(callee(EntryRef{0x30, true}, Callee{Kind: CalleeExpression, Expr: []byte{0x98, 0x30, 0}})).evaluation(0, "").because(ErrLimit),

	// The lane and the iteration.
	expr("A.2.5.4.3.1", "LLVM_push_lane").with(lanes).is("0x2"),
	expr("A.2.5.4.3.1", "LLVM_push_lane").with(func(m *testMachine) { m.lanes = 2 }).illFormed(0, "lane 2 of 2"),
	expr("A.2.5.1", "LLVM_push_lane").with(func(m *testMachine) { m.scope.Lane = -1 }).evaluation(0, "lane").because(ErrNoContext),
	expr("A.2.5.4.3.1", "LLVM_push_iteration").with(func(m *testMachine) { m.iteration = [2]uint64{3, 8} }).is("0x3"),
	expr("A.2.5.4.3.1", "LLVM_push_iteration").with(func(m *testMachine) { m.iteration = [2]uint64{8, 8} }).illFormed(0, "iteration 8 of 8"),
	expr("A.2.5.1", "LLVM_push_iteration").evaluation(0, "iteration").because(ErrNoContext),
	expr("A.2.5.4.0", "LLVM_nop; lit1; LLVM_nop").is("0x1"),
	expr("A.2.5.4.0: number 0 is reserved", "0xe900").illFormed(0, "opcode 0xe9 0x0 is no operation"),

	// Registers on entry.
	expr("A.2.5.4.4.1", "LLVM_call_frame_entry_reg 3").with(func(m *testMachine) { m.saved = map[uint64]Location{3: MemoryLocation(5, 0x10)} }).is("memory 5:0x10"),
	expr("A.2.5.4.4.1: undefined", "LLVM_call_frame_entry_reg 3").with(func(m *testMachine) { m.saved = map[uint64]Location{3: {}} }).is("undefined"),
	expr("A.2.5.4.4.1: same value", "LLVM_call_frame_entry_reg 3").with(func(m *testMachine) { m.saved = map[uint64]Location{3: RegisterLocation(3, m.scope)} }).is("register 3"),
	expr("A.2.5.1", "LLVM_call_frame_entry_reg 3").evaluation(0, "call frame").because(ErrNoContext),

	// Undefined locations.
	expr("A.2.5.4.4.2", "LLVM_undefined").is("undefined"),
	expr("A.2.5.4.4.2", "LLVM_undefined; const1u 200; LLVM_bit_offset").is("undefined"),
	expr("A.2.5.4.4.2", "LLVM_undefined; const1s -200; LLVM_offset").is("undefined"),
	expr("A.2.5.4.4.2: parts of any size and offset", "LLVM_undefined; bit_piece 1000 77").is("composite {1000: undefined}"),
	expr("A.2.5.4.3.4", "reg3; piece 4; piece 4; LLVM_piece_end; deref").evaluation(7, "").because(ErrUndefined),

	// Implicit pointers into other address spaces.
	expr("A.2.5.4.4.5", "lit3; LLVM_aspace_implicit_pointer 0x40 -2").is("implicit-pointer 0x40-2"),
	expr("A.2.5.4.4.5: of that space's size", "lit3; LLVM_aspace_implicit_pointer 0x40 2; deref_size 4").is("implicit-pointer 0x40+2"),
	expr("A.2.5.4.4.5", "lit3; LLVM_aspace_implicit_pointer 0x40 2; deref").evaluation(8, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.5: the same address space", "lit3; LLVM_aspace_implicit_pointer 0x40 2; deref_size 4; lit3; LLVM_form_aspace_address").with(func(m *testMachine) {
		m.entries = map[uint64]Location{0x40: MemoryLocation(3, 0x100)}
	}).is("memory 3:0x102"),
	expr("A.2.5.4.4.5: another address space", "lit3; LLVM_aspace_implicit_pointer 0x40 2; deref_size 4; lit5; LLVM_form_aspace_address").evaluation(11, "points into address space 3").because(ErrImplicitPointer),
	expr("A.2.5.4.4.5: not converted", "lit3; LLVM_aspace_implicit_pointer 0x40 2; deref_size 4").as(LocationKind).illFormed(10, "does not convert"),
	expr("A.2.5.4.4.5", "lit3; LLVM_aspace_implicit_pointer 0x40 2; deref_size 4; stack_value").is("implicit-pointer 0x40+2"),
	expr("A.2.5.4.4.5: address space not defined", "lit9; LLVM_aspace_implicit_pointer 0x40 2").illFormed(1, "no address space 9"),
	expr("A.2.5.4.4.5: neither attribute", "implicit_pointer 0x41 2; deref; deref").evaluation(7, "no location at .debug_info 0x41"),
	expr("A.2.5.4.4.5: accessed otherwise", "implicit_pointer 0x40 2; deref; neg").evaluation(7, "").because(ErrImplicitPointer),
	expr("A.2.5.4.4.5: accessed otherwise", "implicit_pointer 0x40 2; deref; dup; eq").evaluation(8, "").because(ErrImplicitPointer),
	expr("A.2.5.4.4.5: accessed otherwise", "implicit_pointer 0x40 2; deref; bra 0").evaluation(7, "").because(ErrImplicitPointer),
	expr("A.2.5.4.4.5: accessed otherwise", "implicit_pointer 0x40 2; deref; convert 0x17").evaluation(7, "").because(ErrImplicitPointer),
	expr("A.2.5.4.4.5: the operations of the stack do not access it", "implicit_pointer 0x40 2; deref; dup; lit1; swap; drop; drop").is("implicit-pointer 0x40+2"),
	expr("A.2.5.4.4.5: bits of it with others", "implicit_pointer 0x40 2; piece 8; reg3; piece 8; LLVM_piece_end; LLVM_offset_uconst 4; deref").evaluation(16, "").because(ErrImplicitPointer),
	expr("A.2.5.4.4.5: retrieved as a type", "implicit_pointer 0x40 2; deref_type 8 0x17").is("implicit-pointer 0x40+2"),

	// Complete composites.
	expr("A.2.5.4.4.6", "reg3; piece 4; LLVM_piece_end; dup").is("composite {32: register 3}"),
	expr("A.2.5.4.4.6", "reg3; piece 4; LLVM_piece_end; LLVM_offset_uconst 2").is("composite {32: register 3} +16 bits"),
	expr("A.2.5.4.4.6", "reg3; piece 4; LLVM_piece_end; piece 2; reg4; piece 2").is("composite {16: composite {32: register 3}; 16: register 4}"),
	expr("A.2.5.4.4.6", "reg3; LLVM_piece_end").illFormed(1, "an incomplete composite location is needed, found register 3"),
	expr("A.2.5.4.4.6", "lit3; LLVM_piece_end").illFormed(1, "an incomplete composite location is needed, found 0x3"),
	expr("A.2.5.4.4.6", "piece 4; LLVM_piece_end; LLVM_piece_end").illFormed(4, "an incomplete composite location is needed"),
	expr("stack underflow", "LLVM_piece_end").illFormed(0, "").because(ErrStackUnderflow),
	expr("A.2.5.4.4.6: no location", "const_type 0x11 01000000; piece 4").illFormed(7, "does not convert"),
	expr("A.2.5.4.4.6: an incomplete one where a location is required", "piece 4; LLVM_undefined; lit1; LLVM_select_bit_piece 8 1").illFormed(5, "incomplete composite"),
	expr("A.2.5.4.4.6: larger than the largest address space", "LLVM_undefined; LLVM_extend 0x800000001 1").with(func(m *testMachine) { m.largest = 32 }).illFormed(2, "the largest address space has 34359738368"),
	expr("A.2.5.4.4.6: as large as the largest address space", "LLVM_undefined; LLVM_extend 0x400000000 2").with(func(m *testMachine) { m.largest = 32 }).is("composite {17179869184: undefined; 17179869184: undefined}"),

	// Vectors of parts.
	expr("A.2.5.4.4.6", "reg3; LLVM_extend 16 3").is("composite {16: register 3; 16: register 3; 16: register 3}"),
	expr("A.2.5.4.4.6", "reg3; LLVM_extend 16 0").illFormed(1, "0 parts of 16 bits"),
	expr("A.2.5.4.4.6", "reg3; LLVM_extend 0 3").illFormed(1, "3 parts of 0 bits"),
	expr("A.2.5.4.4.6: bits outside the storage", "reg3; LLVM_extend 65 3").illFormed(1, "part of 65 bits of register 3").because(ErrOutOfBounds),
	expr("A.2.5.4.4.6", "const_type 0x11 01000000; LLVM_extend 16 3").illFormed(7, "does not convert"),
	expr("limits", "reg3; LLVM_extend 8 4097").evaluation(1, "more than 4096 parts").because(ErrLimit),
	expr("limits", "reg3; LLVM_extend 8 0xffffffffffffffff").evaluation(1, "more than 4096 parts").because(ErrLimit),
	expr("limits", "LLVM_undefined; LLVM_extend 0xffffffffffffffff 2").evaluation(2, "2^64 bits").because(ErrLimit),
	expr("A.2.5.4.4.6", "regx 40; regx 41; const1u 5; LLVM_select_bit_piece 32 3").is("composite {32: register 41; 32: register 40 +32 bits; 32: register 41 +64 bits}"),
	expr("A.2.5.4.4.6: other entries below", "lit1; regx 40; regx 41; lit0; LLVM_select_bit_piece 32 1; drop").is("0x1"),
	expr("A.2.5.4.4.6", "LLVM_undefined; regx 41; const1u 2; LLVM_select_bit_piece 32 2").is("composite {32: undefined; 32: register 41 +32 bits}"),
	expr("A.2.5.4.4.6", "regx 40; regx 41; lit1; LLVM_select_bit_piece 0 3").illFormed(5, "3 parts of 0 bits"),
	expr("A.2.5.4.4.6", "regx 40; regx 41; lit1; LLVM_select_bit_piece 32 0").illFormed(5, "0 parts of 32 bits"),
	expr("A.2.5.4.4.6: the mask is too small", "regx 40; regx 41; lit1; LLVM_select_bit_piece 1 65").illFormed(5, "65 parts are selected by a mask of 64 bits"),
	expr("A.2.5.4.4.6: the mask is too small", "regx 40; regx 41; const_type 0x14 01; LLVM_select_bit_piece 1 9").illFormed(8, "9 parts are selected by a mask of 8 bits"),
	expr("A.2.5.4.4.6: a wide mask", "LLVM_undefined; regx 41; const_type 0x1b 00000000000000000100000000000000; LLVM_select_bit_piece 1 65; const1u 64; LLVM_bit_offset").is(
		"composite {" + strings.Repeat("1: undefined; ", 64) + "1: register 41 +64 bits} +64 bits"),
	expr("A.2.5.4.4.6: a mask that is no integer", "regx 40; regx 41; const_type 0x21 00000000; LLVM_select_bit_piece 1 1").illFormed(11, "an integral type is needed").because(ErrType),
	expr("A.2.5.4.4.1: an offset past the storage", "regx 40; reg3; lit7; LLVM_select_bit_piece 32 3").evaluation(4, "part 2: outside").because(ErrOutOfBounds),
	expr("A.2.5.4.4.6: bits outside the storage", "regx 40; reg3; lit7; LLVM_select_bit_piece 48 2").illFormed(4, "part 1").because(ErrOutOfBounds),
	expr("stack underflow", "reg3; lit1; LLVM_select_bit_piece 8 1").illFormed(2, "").because(ErrStackUnderflow),

	// Overlays.
	expr("A.2.5.4.4.6", "regx 40; reg3; lit4; lit8; LLVM_overlay").is("composite {32: register 40; 64: register 3; 160: register 40 +96 bits}"),
	expr("A.2.5.4.4.6: at the start", "regx 40; reg3; lit0; lit8; LLVM_overlay").is("composite {64: register 3; 192: register 40 +64 bits}"),
	expr("A.2.5.4.4.6: at the end", "regx 40; reg3; const1u 24; lit8; LLVM_overlay").is("composite {192: register 40; 64: register 3}"),
	expr("A.2.5.4.4.6", "regx 40; reg3; lit5; lit7; LLVM_bit_overlay").is("composite {5: register 40; 7: register 3; 244: register 40 +12 bits}"),
	expr("A.2.5.4.4.6: from an offset", "regx 40; LLVM_offset_uconst 16; reg3; lit4; lit8; LLVM_overlay").is("composite {32: register 40 +128 bits; 64: register 3; 32: register 40 +224 bits}"),
	expr("A.2.5.4.4.6: of size 0", "regx 40; reg3; lit5; lit0; LLVM_overlay").is("register 40"),
	expr("A.2.5.4.4.6: of everything", "reg3; regx 40; lit0; lit8; LLVM_overlay").is("register 40"),
	expr("A.2.5.4.4.6", "reg3; reg4; lit5; lit4; LLVM_overlay").illFormed(4, "overlay of 32 bits from bit 40 on, the base has 64").because(ErrOutOfBounds),
	expr("A.2.5.4.4.6", "reg3; reg4; lit9; lit0; LLVM_overlay").illFormed(4, "the base has 64").because(ErrOutOfBounds),
	expr("A.2.5.4.4.6", "reg3; reg4; lit0; const1s -1; LLVM_overlay").illFormed(5, "size of the overlay is negative"),
	expr("A.2.5.4.4.6", "reg3; reg4; const1s -1; lit1; LLVM_bit_overlay").illFormed(5, "offset of the overlay is negative"),
	expr("A.2.5.4.4.6", "reg3; reg4; const_type 0x11 ffffffff; lit1; LLVM_bit_overlay").illFormed(10, "offset of the overlay is negative"),
	expr("A.2.5.4.4.6", "reg3; reg4; const8u 0x2000000000000001; lit1; LLVM_overlay").illFormed(12, "exceeds every storage").because(ErrOutOfBounds),
	expr("A.2.5.4.4.6: bits outside the storage of the overlay", "regx 40; reg4; lit0; const1u 9; LLVM_overlay").illFormed(6, "part of 72 bits of register 4").because(ErrOutOfBounds),
	expr("A.2.5.4.4.6: the smallest place counts", "reg4; lit0; const1u 9; LLVM_overlay").on(LocationEntry(UnionLocation(RegisterLocation(40, noScope), RegisterLocation(3, noScope)))).
		illFormed(4, "the base has 64").because(ErrOutOfBounds),
	expr("A.2.5.4.4.6: on every place", "reg4; lit0; lit4; LLVM_overlay").on(LocationEntry(UnionLocation(RegisterLocation(5, noScope), RegisterLocation(3, noScope)))).
		is("composite {32: register 4; 32: register 5 +32 bits | register 3 +32 bits}"),
	expr("A.2.5.4.4.6: on the undefined storage", "LLVM_undefined; reg4; lit1; lit1; LLVM_overlay; LLVM_offset_uconst 1; deref_size 1").with(func(m *testMachine) { m.setRegister(4, 0x77) }).is("0x77"),
	expr("A.2.5.4.4.6", "regx 99; reg3; lit4; lit8; LLVM_overlay").with(func(m *testMachine) { m.places = map[uint64]Location{99: RegisterLocation(99, m.scope)} }).
		evaluation(5, "the size of register 99 is not known"),
	expr("stack underflow", "reg3; lit1; lit1; LLVM_overlay").illFormed(3, "").because(ErrStackUnderflow),

	// Call frame information.
	expr("A.6.4.2", "call2 0").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "call4 0").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "call_ref 0").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "const_type 0x11 00000000").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "convert 0").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "deref_type 4 0x11").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "regval_type 3 0x11").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "reinterpret 0x11").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "xderef_type 4 0x11").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "LLVM_push_lane").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "LLVM_push_iteration").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "LLVM_call_frame_entry_reg 3; LLVM_offset_uconst 1").inCFI().with(func(m *testMachine) { m.saved = map[uint64]Location{3: RegisterLocation(3, m.scope)} }).is("register 3 +8 bits"),
	expr("A.6.4.2: circular", "lit1; LLVM_call_frame_entry_reg 3").inCFI().with(func(m *testMachine) { m.circular = true }).illFormed(1, "register 3 depends on itself"),
}

var vendorCases = []aCase{
	// GNU.
	expr("GNU", "reg3; GNU_uninit").inDialect(DWARF5).is("register 3"),
	expr("GNU", "reg3; GNU_uninit; nop").inDialect(DWARF5).illFormed(1, "not the last operation"),
	expr("GNU", "GNU_const_type 0x11 ffffffff").inDialect(DWARF5).is("0xffffffff (int)"),
	expr("GNU", "GNU_regval_type 3 0x11").inDialect(DWARF5).with(registers(0, 0, 0, 0x1_0000_0005)).is("0x5 (int)"),
	expr("GNU", "lit16; GNU_deref_type 1 0x13").inDialect(DWARF5).with(bytesAt(0, 16, 0xfe)).is("0xfe (signed char)"),
	expr("GNU", "lit5; GNU_convert 0x11").inDialect(DWARF5).is("0x5 (int)"),
	expr("GNU", "lit5; GNU_reinterpret 0x16").inDialect(DWARF5).is("0x5 (long)"),
	expr("GNU", "GNU_parameter_ref 0x44; lit1; plus").inDialect(DWARF5).with(func(m *testMachine) { m.parameters = map[uint64]Value{0x44: GenericValue(8)} }).is("0x9"),
	expr("GNU", "GNU_parameter_ref 0x44").inDialect(DWARF5).evaluation(0, "calling frame").because(ErrNoContext),
	expr("GNU", "GNU_variable_value 0x44").inDialect(DWARF5).with(func(m *testMachine) { m.variables = map[uint64]Value{0x44: TypedValue(baseTypes[0x11], 8)} }).is("0x8 (int)"),
	expr("GNU", "GNU_variable_value 0x44").inDialect(DWARF5).evaluation(0, "compilation unit").because(ErrNoContext),
	expr("GNU; LSB 10.5.1", "GNU_encoded_addr 0x00 0x1234").inDialect(DWARF5).is("memory 0x1234"),
	expr("GNU; LSB 10.5.1", "GNU_encoded_addr 0x0b -16").inDialect(DWARF5).is("memory 0xfffffffffffffff0"),
	expr("GNU; LSB 10.5.1", "lit1; GNU_encoded_addr 0x1b -16").inDialect(DWARF5).is("memory 0xffff3"),
	expr("GNU; LSB 10.5.1", "GNU_encoded_addr 0x80 16").inDialect(DWARF5).with(bytesAt(0, 16, 1, 2, 0, 0, 0, 0, 0, 0)).is("0x201"),
	expr("GNU; LSB 10.5.1", "0xf1ff00").inDialect(DWARF5).illFormed(0, "pointer encoding 0xff is not known"),
	expr("GNU; LSB 10.5.1", "0xf10500").inDialect(DWARF5).illFormed(0, "pointer encoding 0x05 is not known"),
	expr("GNU; LSB 10.5.1", "0xf103ff").inDialect(DWARF5).illFormed(0, "4 bytes expected, 1 are left"),

	// Intel.
	expr("Intel", "const2u 40; INTEL_regs").inDialect(Intel).is("register 40"),
	expr("Intel", "const1s -1; INTEL_regs").inDialect(Intel).evaluation(2, "no register"),
	expr("Intel", "const_type 0x11 ffffffff; INTEL_regs").inDialect(Intel).illFormed(7, "a number from 0"),
	expr("Intel", "regx 40; const1u 160; const1u 32; INTEL_push_bit_piece_stack").inDialect(Intel).is("0x97969594").
		shows("register 40", "register 40, 0xa0", "register 40, 0xa0, 0x20", "0x97969594"),
	expr("Intel", "regx 40; const1u 4; const1u 8; INTEL_push_bit_piece_stack").inDialect(Intel).is("0x18"),
	expr("Intel", "regx 40; lit0; const1u 128; INTEL_push_bit_piece_stack").inDialect(Intel).is("0x8f8e8d8c8b8a89888786858483828180 (unsigned 128)"),
	expr("Intel", "regx 40; const1u 160; const1u 97; INTEL_push_bit_piece_stack").inDialect(Intel).evaluation(6, "97 bits from bit 160").because(ErrOutOfBounds),
	expr("Intel", "regx 40; lit0; const4u 0x10001; INTEL_push_bit_piece_stack").inDialect(Intel).evaluation(8, "").because(ErrLimit),
	expr("Intel", "regx 40; lit0; lit0; INTEL_push_bit_piece_stack").inDialect(Intel).is("0x0"),
	expr("Intel", "INTEL_push_simd_lane").inDialect(Intel).is("0x2"),
	expr("Intel", "INTEL_push_simd_lane").inDialect(Intel).inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("Intel", "reg3; lit4; INTEL_piece_stack; reg4; lit2; INTEL_piece_stack").inDialect(Intel).is("composite {32: register 3; 16: register 4}"),
	expr("Intel", "regx 40; INTEL_push_simd_lane; lit5; shl; const1u 32; INTEL_bit_piece_stack").inDialect(Intel).is("composite {32: register 40 +64 bits}"),
	expr("Intel", "const1u 40; const1u 128; INTEL_regval_bits 64").inDialect(Intel).is("0x9796959493929190"),
	expr("Intel", "const1u 40; const1u 128; INTEL_regval_bits 32; lit1; plus").inDialect(Intel).is("0x93929191"),
	expr("Intel", "const1u 40; const1u 200; INTEL_regval_bits 64").inDialect(Intel).evaluation(4, "").because(ErrOutOfBounds),
	expr("Intel: on the wire", "const1u 40; const1u 128; INTEL_regval_bits 32").is("0x93929190"),

	// The encoding before DW_OP_LLVM_user.
	expr("AMDGPU, one-byte opcodes", "lit16; lit3; 0xe1; 0xe408").inDialect(LLVMLegacy).is("memory 3:0x18"),
	expr("AMDGPU, one-byte opcodes", "regx 40; 0xe2; 0xe3").inDialect(LLVMLegacy).with(lanes).is("register 40 +16 bits"),
	expr("AMDGPU, one-byte opcodes", "reg3; lit4; 0xe5").inDialect(LLVMLegacy).is("register 3 +4 bits"),
	expr("AMDGPU, one-byte opcodes", "0xe611").inDialect(LLVMLegacy).with(func(m *testMachine) { m.saved = map[uint64]Location{17: RegisterLocation(17, m.scope)} }).is("register 17"),
	expr("AMDGPU, one-byte opcodes", "0xe7").inDialect(LLVMLegacy).is("undefined"),
	expr("AMDGPU, one-byte opcodes", "lit5; 0xe82110").inDialect(LLVMLegacy).with(func(m *testMachine) { m.setRegister(33, 0x40) }).is("memory 5:0x50"),
	expr("AMDGPU, one-byte opcodes", "lit3; 0xe94000000002").inDialect(LLVMLegacy).is("implicit-pointer 0x40+2"),
	expr("AMDGPU, one-byte opcodes", "reg3; piece 4; 0xea; 0xeb1002").inDialect(LLVMLegacy).is("composite {16: composite {32: register 3}; 16: composite {32: register 3}}"),
	expr("AMDGPU, one-byte opcodes", "regx 40; regx 41; lit2; 0xec2002").inDialect(LLVMLegacy).is("composite {32: register 40; 32: register 41 +32 bits}"),
	expr("AMDGPU, user opcodes", "0x30e901e903").inDialect(LLVMUser).is("0x2"),
	expr("AMDGPU, user opcodes", "0xe940").inDialect(LLVMUser).illFormed(0, "opcode 0xe9 0x40 is no operation of dialect llvm-user"),
}

var examples = []aCase{
	// Location descriptions on the stack, sections 3 and 4.
	expr("Locations 3.2.1 dynamic array size", "regval_type 0 0x10; deref").as(ValueKind).with(all(registers(0x1000), bytesAt(0, 0x1000, 7, 0, 0, 0, 0, 0, 0, 0))).
		is("0x7").shows("0x1000", "0x7"),
	expr("Locations 3.2.2 variable in register", "regx 0").as(LocationKind).is("register 0").shows("register 0"),
	expr("Locations 3.2.3 variable in memory", "regval_type 0 0x10; plus_uconst 0x10").as(LocationKind).with(registers(0x1000)).is("memory 0x1010").shows("0x1000", "0x1010"),
	expr("Locations 3.2.4 variable across locations", "regx 3; piece 4; piece 2; bregx 0 0x10; piece 2").as(LocationKind).with(registers(0x1000)).
		is("composite {32: register 3; 16: undefined; 16: memory 0x1010}").
		shows("register 3", "incomplete composite {32: register 3}", "incomplete composite {32: register 3; 16: undefined}",
			"incomplete composite {32: register 3; 16: undefined}, memory 0x1010", "incomplete composite {32: register 3; 16: undefined; 16: memory 0x1010}"),
	expr("Locations 3.2.5 offsetting a composite with plus", "regx 3; piece 4; piece 2; bregx 0 0x10; piece 2; plus_uconst 5").as(LocationKind).with(registers(0x1000)).
		illFormed(11, "a value is needed, a composite location").
		shows("register 3", "incomplete composite {32: register 3}", "incomplete composite {32: register 3; 16: undefined}",
			"incomplete composite {32: register 3; 16: undefined}, memory 0x1010", "incomplete composite {32: register 3; 16: undefined; 16: memory 0x1010}"),
	expr("Locations 3.2.5 another composite", "piece 1; bregx 0 0x10; piece 2").as(LocationKind).with(registers(0x1000)).is("composite {8: undefined; 16: memory 0x1010}"),
	expr("Locations 3.2.5 and 4.2 offsetting a composite", "regx 3; piece 4; piece 2; bregx 0 0x10; piece 2; LLVM_piece_end; LLVM_offset_uconst 5; LLVM_offset_uconst 1; deref_size 2").
		with(all(registers(0x1000), bytesAt(0, 0x1010, 0x34, 0x12))).is("0x1234"),
	expr("Locations 3.2.6 pointer to member, DWARF 5", "plus").as(LocationKind).on(g(4), LocationEntry(MemoryLocation(0, 0xff00))).is("memory 0xff04").shows("0xff04"),
	expr("Locations 3.2.6 pointer to member, DWARF 5", "plus").as(LocationKind).on(g(4), LocationEntry(RegisterLocation(5, noScope))).illFormed(0, "a value is needed, register 5"),
	expr("Locations 3.2.6 pointer to member", "swap; LLVM_offset").as(LocationKind).on(g(4), LocationEntry(RegisterLocation(5, noScope))).is("register 5 +32 bits").
		shows("register 5, 0x4", "register 5 +32 bits"),
	expr("Locations 3.2.6 pointer to member", "swap; LLVM_offset").as(LocationKind).on(g(0), LocationEntry(MemoryLocation(0, 0xff00))).is("memory 0xff00"),
	expr("Locations 3.2.7 virtual base class, DWARF 5", "dup; deref; lit24; minus; deref; plus").as(LocationKind).on(LocationEntry(MemoryLocation(0, 0x5000))).with(virtualBase).is("memory 0x5008").
		shows("memory 0x5000, memory 0x5000", "memory 0x5000, 0x6000", "memory 0x5000, 0x6000, 0x18", "memory 0x5000, 0x5fe8", "memory 0x5000, 0x8", "0x5008"),
	expr("Locations 3.2.7 virtual base class", "dup; deref; lit24; minus; deref; LLVM_offset").as(LocationKind).on(LocationEntry(elidedObject)).with(virtualBase).
		is("composite {64: implicit 0060000000000000; 8: implicit 2a00000000000000; 56: undefined} +64 bits"),
	expr("Locations 3.2.7 virtual base class", "dup; deref; lit24; minus; deref; LLVM_offset; deref_size 1").on(LocationEntry(elidedObject)).with(virtualBase).is("0x2a"),
	expr("Locations 3.2.7 virtual base class, DWARF 5", "dup; deref; lit24; minus; deref; plus").as(LocationKind).on(LocationEntry(elidedObject)).with(virtualBase).illFormed(5, "a value is needed"),
	expr("Locations 4.3.1 spilled to part of a vector register", "regx 40; LLVM_offset_uconst 20").as(LocationKind).is("register 40 +160 bits").shows("register 40", "register 40 +160 bits"),
	expr("Locations 4.3.1 spilled to part of a vector register", "regx 40; LLVM_offset_uconst 20; deref_size 4").is("0x97969594"),
	expr("Locations 4.3.2 across vector registers", "regx 40; LLVM_push_lane; constu 4; mul; LLVM_offset; piece 4; regx 41; LLVM_push_lane; constu 4; mul; LLVM_offset; piece 4").
		as(LocationKind).with(lanes).is("composite {32: register 40 +64 bits; 32: register 41 +64 bits}").
		shows("register 40", "register 40, 0x2", "register 40, 0x2, 0x4", "register 40, 0x8", "register 40 +64 bits",
			"incomplete composite {32: register 40 +64 bits}",
			"incomplete composite {32: register 40 +64 bits}, register 41",
			"incomplete composite {32: register 40 +64 bits}, register 41, 0x2",
			"incomplete composite {32: register 40 +64 bits}, register 41, 0x2, 0x4",
			"incomplete composite {32: register 40 +64 bits}, register 41, 0x8",
			"incomplete composite {32: register 40 +64 bits}, register 41 +64 bits",
			"incomplete composite {32: register 40 +64 bits; 32: register 41 +64 bits}"),
	expr("Locations 4.3.3 across kinds of locations", "regx 40; LLVM_push_lane; constu 4; mul; LLVM_offset; piece 4; addr 0xbeef; piece 2; constu 0xf00d; stack_value; piece 2; LLVM_piece_end").
		as(LocationKind).with(lanes).is("composite {32: register 40 +64 bits; 16: memory 0xbeef; 16: implicit 0df0000000000000}").
		shows("register 40", "register 40, 0x2", "register 40, 0x2, 0x4", "register 40, 0x8", "register 40 +64 bits",
			"incomplete composite {32: register 40 +64 bits}",
			"incomplete composite {32: register 40 +64 bits}, memory 0xbeef",
			"incomplete composite {32: register 40 +64 bits; 16: memory 0xbeef}",
			"incomplete composite {32: register 40 +64 bits; 16: memory 0xbeef}, 0xf00d",
			"incomplete composite {32: register 40 +64 bits; 16: memory 0xbeef}, implicit 0df0000000000000",
			"incomplete composite {32: register 40 +64 bits; 16: memory 0xbeef; 16: implicit 0df0000000000000}",
			"composite {32: register 40 +64 bits; 16: memory 0xbeef; 16: implicit 0df0000000000000}"),
	expr("Locations 4.3.4 address spaces", "regval_type 0 0x10; constu 5; LLVM_form_aspace_address; LLVM_offset_uconst 0x10").as(LocationKind).with(registers(0x1000)).
		is("memory 5:0x1010").shows("0x1000", "0x1000, 0x5", "memory 5:0x1000", "memory 5:0x1010"),
	expr("Locations 4.3.5 bit offsets", "regx 3; constu 20; LLVM_bit_offset").as(LocationKind).is("register 3 +20 bits").shows("register 3", "register 3, 0x14", "register 3 +20 bits"),
	expr("Locations 4.6 lanes' program locations", "addr 0x100; LLVM_extend 64 4; addr 0x200; LLVM_extend 64 4; regx 32; deref_size 4; LLVM_select_bit_piece 64 4").
		with(func(m *testMachine) { m.setRegister(32, 0b0110) }).is("composite {" +
		"64: " + four("memory 0x100") + "; 64: " + four("memory 0x200") + " +64 bits; 64: " + four("memory 0x200") + " +128 bits; 64: " + four("memory 0x100") + " +192 bits}"),
	expr("Locations 4.7 more than one place", "LLVM_offset_uconst 2; deref_size 1").on(LocationEntry(UnionLocation(MemoryLocation(0, 0x10), RegisterLocation(3, noScope)))).
		with(all(registers(0, 0, 0, 0x332211), bytesAt(0, 0x12, 0x33))).is("0x33"),

	// The heterogeneous extension.
	expr("A.2.20 overlay of a promoted array slice", "breg0 0; reg2; breg1 0; lit4; mul; lit4; LLVM_overlay").as(LocationKind).with(registers(0x1000, 3, 0xabcd)).
		is("composite {96: memory 0x1000; 32: register 2; 18446744073709551472: memory 0x1010}").
		shows("memory 0x1000", "memory 0x1000, register 2", "memory 0x1000, register 2, memory 0x3", "memory 0x1000, register 2, memory 0x3, 0x4",
			"memory 0x1000, register 2, 0xc", "memory 0x1000, register 2, 0xc, 0x4",
			"composite {96: memory 0x1000; 32: register 2; 18446744073709551472: memory 0x1010}"),
	expr("A.2.20 overlay of a promoted array slice", "breg0 0; reg2; breg1 0; lit4; mul; lit4; LLVM_overlay; LLVM_offset_uconst 10; deref").
		with(all(registers(0x1000, 3, 0xabcd), bytesAt(0, 0x100a, 1, 2), bytesAt(0, 0x1010, 3, 4))).is("0x4030000abcd0201"),
	expr("A.2.20 overlay of a promoted array slice, 32-bit addresses", "breg0 0; reg2; breg1 0; lit4; mul; lit4; LLVM_overlay").withBits(32).with(registers(0x1000, 0, 1)).
		is("composite {32: register 2; 34359705568: memory 0x1004}"),
	expr("A.D.1.3", "LLVM_offset_uconst 4").on(LocationEntry(RegisterLocation(3, noScope))).is("register 3 +32 bits"),
	expr("A.D.1.3", "entry_value { reg5 }; LLVM_offset_uconst 16").with(func(m *testMachine) {
		m.entry = func([]byte) (Value, error) { return GenericValue(0x100), nil }
	}).as(LocationKind).is("memory 0x110").shows("0x100", "memory 0x110"),
	expr("A.D.2.1 Fortran array, DW_AT_associated", "push_object_address; lit8; LLVM_offset; deref; lit1; and").with(all(descriptor, bytesAt(3, 0x18, 3, 0, 0, 0, 0, 0, 0, 0))).is("0x1").
		shows("memory 3:0x10", "memory 3:0x10, 0x8", "memory 3:0x18", "0x3", "0x3, 0x1", "0x1"),
	expr("A.D.2.1 Fortran array, DW_AT_data_location", "push_object_address; lit0; LLVM_offset; deref").as(LocationKind).with(all(descriptor, bytesAt(3, 0x10, 0, 0x20, 0, 0, 0, 0, 0, 0))).is("memory 0x2000"),
	expr("A.D.2.3 assumed rank, DW_AT_lower_bound", "lit24; mul; lit16; plus; push_object_address; swap; LLVM_offset; lit8; LLVM_offset; deref").on(g(1)).
		with(all(descriptor, bytesAt(3, 0x40, 9, 0, 0, 0, 0, 0, 0, 0))).is("0x9").
		shows("0x1, 0x18", "0x18", "0x18, 0x10", "0x28", "0x28, memory 3:0x10", "memory 3:0x10, 0x28", "memory 3:0x38", "memory 3:0x38, 0x8", "memory 3:0x40", "0x9"),
	expr("A.D.2.6 Ada record", "lit8; LLVM_offset").as(LocationKind).on(LocationEntry(*memoryAt(5, 0x20))).is("memory 5:0x28"),
	expr("AMDGPU, a masked vector spill", "regx 40; swap; LLVM_offset_uconst 16; LLVM_call_frame_entry_reg 33; deref_size 4; LLVM_select_bit_piece 32 4").inDialect(LLVMUser).inCFI().
		on(LocationEntry(MemoryLocation(5, 0x40))).with(func(m *testMachine) {
		m.saved = map[uint64]Location{33: RegisterLocation(33, m.scope)}
		m.setRegister(33, 0b1010)
	}).is("composite {32: register 40; 32: memory 5:0x54; 32: register 40 +64 bits; 32: memory 5:0x5c}"),
}

func four(part string) string {
	return "composite {64: " + part + "; 64: " + part + "; 64: " + part + "; 64: " + part + "}"
}

// virtualBase has a virtual function table at 0x6000 whose vbase_offset is 8,
// and an object of the class at 0x5000.
func virtualBase(m *testMachine) {
	m.setMemory(0, 0x5000, 0, 0x60, 0, 0, 0, 0, 0, 0)
	m.setMemory(0, 0x5fe8, 8, 0, 0, 0, 0, 0, 0, 0)
}

// elidedObject is that object where the compiler has elided its storage.
var elidedObject = CompositeLocation([]Part{
	{Bits: 64, Location: ImplicitUint64(0x6000, 64, LittleEndian)},
	{Bits: 8, Location: ImplicitUint64(42, 64, LittleEndian)},
	{Bits: 56},
})

func descriptor(m *testMachine) { m.object = memoryAt(3, 0x10) }
