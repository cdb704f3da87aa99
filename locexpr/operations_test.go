// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// aCase is an expression with its result. The text is for the canonical
// dialect, or for that of the case.
type aCase struct {
	section string
	text    string
	initial []Entry
	want    Kind
	result  string // "0x..." for a value, else the text of a location
	kind    ErrorKind
	err     error  // what the error wraps
	reason  string // what the error says, for those that wrap nothing special
	offset  int    // of the operation at fault
	failed  bool   // set by bad

	bits    uint32
	order   ByteOrder
	cfi     bool
	dialect *Dialect
	limits  Limits
	setup   func(*testMachine)
	steps   []string // the stack after every operation
}

// The ways in which a case may fail.
func (c aCase) illFormed(offset int, reason string) aCase {
	c.failed, c.kind, c.offset, c.reason = true, IllFormed, offset, reason
	return c
}

func (c aCase) evaluation(offset int, reason string) aCase {
	c.failed, c.kind, c.offset, c.reason = true, Evaluation, offset, reason
	return c
}

func (c aCase) because(err error) aCase {
	c.err = err
	return c
}

func (c aCase) is(result string) aCase          { c.result = result; return c }
func (c aCase) as(k Kind) aCase                 { c.want = k; return c }
func (c aCase) on(entries ...Entry) aCase       { c.initial = entries; return c }
func (c aCase) withBits(bits uint32) aCase      { c.bits = bits; return c }
func (c aCase) inDialect(d *Dialect) aCase      { c.dialect = d; return c }
func (c aCase) big() aCase                      { c.order = BigEndian; return c }
func (c aCase) inCFI() aCase                    { c.cfi = true; return c }
func (c aCase) limited(l Limits) aCase          { c.limits = l; return c }
func (c aCase) with(f func(*testMachine)) aCase { c.setup = f; return c }

// shows has the stack after every operation, the top entry last.
func (c aCase) shows(steps ...string) aCase { c.steps = steps; return c }

func expr(section, text string) aCase { return aCase{section: section, text: text} }

func g(v uint64) Entry { return ValueEntry(GenericValue(v)) }

// filled is c with its defaults.
func (c aCase) filled() aCase {
	if c.bits == 0 {
		c.bits = 64
	}
	if c.dialect == nil {
		c.dialect = Canonical
	}
	return c
}

// code returns the bytes of the expression, its dialect, and its address size.
func (c aCase) code(t testing.TB) (code []byte, d *Dialect, addressSize int) {
	t.Helper()
	c = c.filled()
	addressSize = int(c.bits+7) / 8
	return assemble(t, c.dialect, addressSize, c.order, c.text), c.dialect, addressSize
}

func (c aCase) run(t *testing.T) {
	t.Helper()
	c = c.filled()
	m := newTestMachine(c.order, c.bits)
	if c.setup != nil {
		c.setup(m)
	}
	e := Evaluator{Dialect: c.dialect, AddressBits: c.bits, Order: c.order, CFI: c.cfi, Limits: c.limits}
	code, _, _ := c.code(t)
	var steps []string
	if c.steps != nil {
		e.Trace = func(s Step) {
			if s.Depth == 0 {
				steps = append(steps, strings.Join(s.Stack, ", "))
			}
		}
	}
	got, err := e.Evaluate(t.Context(), code, m, c.want, c.initial...)
	if diff := cmp.Diff(c.steps, steps); diff != "" {
		t.Errorf("stack after each step (-want +got):\n%s", diff)
	}
	// A trace changes how operations are executed, and nothing else. The trace of
	// what ends at a limit alone takes a minute under the race detector.
	if !testing.Short() || !errors.Is(err, ErrLimit) {
		e.Trace = func(Step) {}
		traced, tracedErr := e.Evaluate(t.Context(), code, m, c.want, c.initial...)
		if got.String() != traced.String() || fmt.Sprint(err) != fmt.Sprint(tracedErr) {
			t.Errorf("got %v, error %v; traced %v, error %v", got, err, traced, tracedErr)
		}
	}
	if !c.failed {
		if err != nil {
			t.Fatalf("%v", err)
		}
		if got.String() != c.result {
			t.Errorf("got %v, want %v", got, c.result)
		}
		return
	}
	var fail *Error
	if !errors.As(err, &fail) {
		t.Fatalf("got %v, error %v; want an *Error", got, err)
	}
	if fail.Kind != c.kind || fail.Offset != c.offset {
		t.Errorf("got %v at offset %d, want %v at %d: %v", fail.Kind, fail.Offset, c.kind, c.offset, err)
	}
	if c.err != nil && !errors.Is(err, c.err) {
		t.Errorf("got error %v, want one that wraps %v", err, c.err)
	}
	if !strings.Contains(err.Error(), c.reason) {
		t.Errorf("got error %v, want %q in it", err, c.reason)
	}
}

func memoryAt(space AddressSpace, address uint64) *Location {
	l := MemoryLocation(space, address)
	return &l
}

// registers sets registers 0, 1, ... to values.
func registers(values ...uint64) func(*testMachine) {
	return func(m *testMachine) {
		for i, v := range values {
			m.setRegister(uint64(i), v)
		}
	}
}

func bytesAt(space AddressSpace, address uint64, bytes ...byte) func(*testMachine) {
	return func(m *testMachine) { m.setMemory(space, address, bytes...) }
}

const minus1 = ^uint64(0)

var cases = []aCase{
	// Results and conversions.
	expr("A.2.5.4", "").as(LocationKind).is("undefined"),
	expr("A.2.5.4", "").is("undefined"),
	expr("A.2.5.4", "").as(ValueKind).illFormed(0, "the stack is empty"),
	expr("A.2.5.4", "").on(g(5)).is("0x5"),
	expr("A.2.5.4", "").on(g(5), g(6)).is("0x6"),
	expr("A.2.5.4", "").on(g(0x1_0000_0005)).withBits(32).is("0x5"),
	expr("A.2.5.4.4.3", "lit7").as(LocationKind).is("memory 0x7"),
	expr("A.2.5.4.4.3", "addr 0x1000").as(ValueKind).is("0x1000"),
	expr("A.2.5.4.4.3", "reg3").as(ValueKind).illFormed(1, "register 3 is no byte address"),
	expr("A.2.5.4.4.3", "").on(LocationEntry(MemoryLocation(3, 16))).as(ValueKind).illFormed(0, "no byte address of the default"),
	expr("A.2.5.4.4.3", "lit4; LLVM_bit_offset").on(LocationEntry(MemoryLocation(0, 16))).as(ValueKind).illFormed(3, "no byte address"),
	expr("A.2.5.4.4.3", "").on(LocationEntry(UnionLocation(MemoryLocation(0, 16), MemoryLocation(0, 16)))).as(ValueKind).illFormed(0, "no byte address"),
	expr("A.2.5.4.4.3", "lit1; plus").on(LocationEntry(MemoryLocation(0, 16))).is("0x11"),
	expr("A.2.5.4", "reg0; lit1; plus").illFormed(2, "a value is needed"),
	expr("A.2.5.4", "LLVM_undefined; lit1; plus").illFormed(3, "a value is needed"),

	// Literals.
	expr("A.2.5.4.3.1", "lit0").is("0x0"),
	expr("A.2.5.4.3.1", "lit31").is("0x1f"),
	expr("A.2.5.4.3.1", "const1u 255").is("0xff"),
	expr("A.2.5.4.3.1", "const1s -1").is("0xffffffffffffffff"),
	expr("A.2.5.4.3.1", "const2u 65535").is("0xffff"),
	expr("A.2.5.4.3.1", "const2s -2").is("0xfffffffffffffffe"),
	expr("A.2.5.4.3.1", "const4u 0xfffffffe").is("0xfffffffe"),
	expr("A.2.5.4.3.1", "const4s -2").is("0xfffffffffffffffe"),
	expr("A.2.5.4.3.1", "const4s -2").withBits(32).is("0xfffffffe"),
	expr("A.2.5.4.3.1", "const8u 0x123456789abcdef0").is("0x123456789abcdef0"),
	expr("A.2.5.4.3.1", "const8u 0x123456789abcdef0").withBits(32).is("0x9abcdef0"),
	expr("A.2.5.4.3.1", "const8u 0x123456789abcdef0").big().is("0x123456789abcdef0"),
	expr("A.2.5.4.3.1", "const8s -3").is("0xfffffffffffffffd"),
	expr("A.2.5.4.3.1", "constu 300").is("0x12c"),
	expr("A.2.5.4.3.1", "constu 300").withBits(8).is("0x2c"),
	expr("A.2.5.4.3.1", "consts -300").is("0xfffffffffffffed4"),
	expr("A.2.5.4.3.1", "constx 1").with(func(m *testMachine) { m.addrs = []uint64{1, 0x99} }).is("0x99"),
	expr("A.2.5.4.3.1", "constx 2").with(func(m *testMachine) { m.addrs = []uint64{1, 0x99} }).evaluation(0, "entry 2 is wanted"),

	// The stack.
	expr("A.2.5.4.1", "lit5; dup; plus").is("0xa"),
	expr("A.2.5.4.1", "lit5; lit6; drop").is("0x5"),
	expr("A.2.5.4.1", "lit5; lit6; over").is("0x5"),
	expr("A.2.5.4.1", "lit5; lit6; lit7; pick 2").is("0x5"),
	expr("A.2.5.4.1", "lit5; lit6; lit7; pick 0").is("0x7"),
	expr("A.2.5.4.1", "lit5; lit6; swap").is("0x5"),
	expr("A.2.5.4.1", "lit5; lit6; swap; drop").is("0x6"),
	expr("A.2.5.4.1 (DWARF 5, D.1.2)", "rot").on(g(0), g(29), g(17)).is("0x1d"),
	expr("A.2.5.4.1 (DWARF 5, D.1.2)", "rot; drop").on(g(0), g(29), g(17)).is("0x0"),
	expr("A.2.5.4.1 (DWARF 5, D.1.2)", "rot; drop; drop").on(g(0), g(29), g(17)).is("0x11"),
	expr("A.2.5.4.1", "reg3; lit1; swap").is("register 3"),
	expr("A.2.5.4.1", "reg3; dup; piece 4; drop").illFormed(4, "incomplete composite"),
	expr("A.2.5.4.1", "piece 4; dup").illFormed(2, "incomplete composite"),
	expr("A.2.5.4.1", "piece 4; lit0; over").illFormed(3, "incomplete composite"),
	expr("A.2.5.4.1", "piece 4; lit0; pick 1").illFormed(3, "incomplete composite"),
	expr("A.2.5.4.1", "piece 4; lit0; swap").illFormed(3, "incomplete composite"),
	expr("A.2.5.4.1", "piece 4; lit0; lit0; rot").illFormed(4, "incomplete composite"),
	expr("stack underflow", "dup").illFormed(0, "0 entries, 1 needed").because(ErrStackUnderflow),
	expr("stack underflow", "drop").illFormed(0, "").because(ErrStackUnderflow),
	expr("stack underflow", "lit1; over").illFormed(1, "").because(ErrStackUnderflow),
	expr("stack underflow", "lit1; swap").illFormed(1, "").because(ErrStackUnderflow),
	expr("stack underflow", "lit1; lit1; rot").illFormed(2, "").because(ErrStackUnderflow),
	expr("stack underflow", "lit1; pick 1").illFormed(1, "").because(ErrStackUnderflow),
	expr("stack underflow", "lit1; plus").illFormed(1, "1 entries, 2 needed").because(ErrStackUnderflow),
	expr("stack underflow", "plus").illFormed(0, "").because(ErrStackUnderflow),
	expr("stack underflow", "neg").illFormed(0, "").because(ErrStackUnderflow),
	expr("stack underflow", "deref").illFormed(0, "").because(ErrStackUnderflow),
	expr("stack underflow", "lit1; xderef").illFormed(1, "").because(ErrStackUnderflow),
	expr("stack underflow", "bra 0").illFormed(0, "").because(ErrStackUnderflow),
	expr("stack underflow", "stack_value").illFormed(0, "").because(ErrStackUnderflow),
	expr("stack underflow", "LLVM_offset_uconst 1").illFormed(0, "").because(ErrStackUnderflow),
	expr("stack underflow", "lit1; LLVM_offset").illFormed(1, "").because(ErrStackUnderflow),
	expr("stack underflow", "lit3; LLVM_form_aspace_address").illFormed(1, "").because(ErrStackUnderflow),

	// Arithmetic.
	expr("DWARF 5, 2.5.1.4", "abs").on(g(minus1)).is("0x1"),
	expr("DWARF 5, 2.5.1.4", "abs").on(g(0x80)).withBits(8).is("0x80"),
	expr("DWARF 5, 2.5.1.4", "abs").on(g(5)).is("0x5"),
	expr("DWARF 5, 2.5.1.4", "and").on(g(0xf0), g(0x3c)).is("0x30"),
	expr("DWARF 5, 2.5.1.4", "or").on(g(0xf0), g(0x3c)).is("0xfc"),
	expr("DWARF 5, 2.5.1.4", "xor").on(g(0xf0), g(0x3c)).is("0xcc"),
	expr("DWARF 5, 2.5.1.4", "not").on(g(0xf0)).withBits(16).is("0xff0f"),
	expr("DWARF 5, 2.5.1.4", "neg").on(g(1)).withBits(32).is("0xffffffff"),
	expr("DWARF 5, 2.5.1.4", "div").on(g(7), g(2)).is("0x3"),
	expr("DWARF 5, 2.5.1.4: signed", "div").on(g(minus1-6), g(2)).is("0xfffffffffffffffd"),
	expr("DWARF 5, 2.5.1.4: signed", "div").on(g(0xfffffff9), g(2)).withBits(32).is("0xfffffffd"),
	expr("DWARF 5, 2.5.1.4", "div").on(g(1<<63), g(minus1)).is("0x8000000000000000"),
	expr("division by zero", "div").on(g(1), g(0)).evaluation(0, "").because(ErrDivisionByZero),
	expr("DWARF 5, 2.5.1.4: unsigned", "mod").on(g(minus1), g(10)).is("0x5"),
	expr("DWARF 5, 2.5.1.4: unsigned", "mod").on(g(7), g(minus1)).is("0x7"),
	expr("division by zero", "lit1; lit0; mod").evaluation(2, "").because(ErrDivisionByZero),
	expr("DWARF 5, 2.5.1.4", "minus").on(g(5), g(7)).is("0xfffffffffffffffe"),
	expr("DWARF 5, 2.5.1.4", "mul").on(g(1<<33), g(1<<31+1)).is("0x200000000"),
	expr("DWARF 5, 2.5.1.4", "plus").on(g(minus1), g(2)).is("0x1"),
	expr("DWARF 5, 2.5.1.4", "plus").on(g(0xffffffff), g(2)).withBits(32).is("0x1"),
	expr("DWARF 5, 2.5.1.4", "plus_uconst 300").on(g(1)).is("0x12d"),
	expr("DWARF 5, 2.5.1.4", "shl").on(g(3), g(4)).is("0x30"),
	expr("DWARF 5, 2.5.1.4", "shl").on(g(3), g(64)).is("0x0"),
	expr("DWARF 5, 2.5.1.4", "shl").on(g(3), g(31)).withBits(32).is("0x80000000"),
	expr("DWARF 5, 2.5.1.4", "shr").on(g(minus1), g(60)).is("0xf"),
	expr("DWARF 5, 2.5.1.4", "shr").on(g(minus1), g(minus1)).is("0x0"),
	expr("DWARF 5, 2.5.1.4", "shra").on(g(0xffffffffffffff00), g(4)).is("0xfffffffffffffff0"),
	expr("DWARF 5, 2.5.1.4", "shra").on(g(0x80000000), g(40)).withBits(32).is("0xffffffff"),

	// Control flow; comparison is signed.
	expr("DWARF 5, 2.5.1.5", "lt").on(g(minus1), g(0)).is("0x1"),
	expr("DWARF 5, 2.5.1.5", "lt").on(g(0xffffffff), g(0)).withBits(32).is("0x1"),
	expr("DWARF 5, 2.5.1.5", "lt").on(g(0xffffffff), g(0)).is("0x0"),
	expr("DWARF 5, 2.5.1.5", "le").on(g(4), g(4)).is("0x1"),
	expr("DWARF 5, 2.5.1.5", "le").on(g(5), g(4)).is("0x0"),
	expr("DWARF 5, 2.5.1.5", "ge").on(g(0), g(minus1)).is("0x1"),
	expr("DWARF 5, 2.5.1.5", "ge").on(g(3), g(4)).is("0x0"),
	expr("DWARF 5, 2.5.1.5", "gt").on(g(4), g(4)).is("0x0"),
	expr("DWARF 5, 2.5.1.5", "gt").on(g(5), g(4)).is("0x1"),
	expr("DWARF 5, 2.5.1.5", "eq").on(g(4), g(4)).is("0x1"),
	expr("DWARF 5, 2.5.1.5", "eq").on(g(4), LocationEntry(MemoryLocation(0, 4))).is("0x1"),
	expr("DWARF 5, 2.5.1.5", "ne").on(g(4), g(4)).is("0x0"),
	expr("DWARF 5, 2.5.1.5", "ne").on(g(4), g(5)).is("0x1"),
	expr("A.2.5.4.2", "nop; lit1; nop").is("0x1"),
	expr("A.2.5.4.2", "lit1; skip 1; lit2").is("0x1"),
	expr("A.2.5.4.2: to the end", "lit1; skip 0").is("0x1"),
	expr("A.2.5.4.2", "lit1; skip 2; lit2").illFormed(1, "branch to offset 6 of an expression of 5 bytes"),
	expr("A.2.5.4.2", "lit1; skip -5").illFormed(1, "branch to offset -1"),
	expr("A.2.5.4.2: not at the start of an operation", "skip 1; const1u 0x96").illFormed(0, "where no operation starts"),
	expr("A.2.5.4.2", "lit1; bra 1; lit2; lit3").is("0x3"),
	expr("A.2.5.4.2", "lit0; bra 1; lit2; nop").is("0x2"),
	expr("A.2.5.4.2", "lit0; lit1; bra 1; lit2").is("0x0"),
	expr("A.2.5.4.2: not taken", "lit0; bra 100; lit2").is("0x2"),
	expr("A.2.5.4.2: not taken", "lit0; bra -100; lit2").is("0x2"),
	expr("A.2.5.4.2: not taken", "lit0; bra 1; const2u 5").is("0x5"),
	expr("A.2.5.4.2: taken", "lit1; bra 100; lit2").illFormed(1, "branch to offset 104 of an expression of 5 bytes"),
	expr("A.2.5.4.2: past one that is not taken", "lit1; bra 4; lit0; bra 100; lit7").is("0x7"),
	expr("A.2.5.4.2: a loop", "lit0; lit5; swap; over; plus; swap; lit1; minus; dup; bra -10; drop").is("0xf"),
	expr("A.2.5.4.2", "skip -3").evaluation(0, "too many operations").because(ErrLimit),
	expr("A.2.5.4.2", "skip -3").limited(Limits{Steps: 3}).evaluation(0, "too many operations").because(ErrLimit),
	expr("limits", "nop; nop; nop").limited(Limits{Steps: 3}).is("undefined"),
	expr("limits", "lit0; lit0; lit0").limited(Limits{Depth: 2}).evaluation(2, "more than 2 entries").because(ErrLimit),
	expr("limits", "lit0; dup; skip -4").evaluation(1, "more than 1024 entries").because(ErrLimit),

	// Decoding.
	expr("undecodable", "lit1; 0x02").illFormed(1, "opcode 0x02 is no operation of dialect canonical"),
	expr("undecodable", "lit1; 0xff").illFormed(1, "opcode 0xff"),
	expr("undecodable", "0xe97f").illFormed(0, "opcode 0xe9 0x7f is no operation"),
	expr("undecodable", "0xe9").illFormed(0, "LEB128 is cut off"),
	expr("undecodable", "0x0c0102").illFormed(0, "operand 1: 4 bytes expected, 2 are left"),
	expr("undecodable", "0x03010203").illFormed(0, "8 bytes expected, 3 are left"),
	expr("undecodable", "0x1080").illFormed(0, "LEB128 is cut off"),
	expr("undecodable", "0x10ffffffffffffffffff02").illFormed(0, "exceeds 64 bits"),
	expr("undecodable", "0x11ffffffffffffffffff02").illFormed(0, "exceeds 64 bits"),
	expr("undecodable", "0x9e0501020304").illFormed(0, "block of 5 bytes, 4 are left"),
	expr("undecodable", "0x9effffffffffffffffff01").illFormed(0, "block of 18446744073709551615 bytes"),
	expr("padded LEB128", "0x10ff80808080808080808000").is("0x7f"),
	expr("padded LEB128", "0x11ffffffffffffffffffff7f").is("0xffffffffffffffff"),
	expr("LEB128 of 64 bits", "0x10ffffffffffffffffff01").is("0xffffffffffffffff"),
	expr("LEB128 of 64 bits", "0x118080808080808080807f").is("0x8000000000000000"),

	// Memory locations.
	expr("A.2.5.4.4.3", "addr 0x1234").is("memory 0x1234"),
	expr("A.2.5.4.4.3", "addr 0x1234").withBits(16).big().is("memory 0x1234"),
	expr("A.2.5.4.4.3", "addrx 0").with(func(m *testMachine) { m.addrs = []uint64{0x40} }).is("memory 0x40"),
	expr("A.2.5.4.4.3", "lit16; lit3; LLVM_form_aspace_address").is("memory 3:0x10"),
	expr("A.2.5.4.4.3: cut to the space", "const8u 0x100000010; lit3; LLVM_form_aspace_address").is("memory 3:0x10"),
	expr("A.2.5.4.4.3", "lit16; lit0; LLVM_form_aspace_address").is("memory 0x10"),
	expr("A.2.5.4.4.3", "lit16; lit4; LLVM_form_aspace_address").illFormed(2, "no address space 4"),
	expr("A.2.5.4.4.3", "reg1; lit3; LLVM_form_aspace_address").illFormed(2, "a value is needed"),
	expr("A.2.5.4.4.3", "lit8; form_tls_address").with(func(m *testMachine) { m.tls = 0x9000 }).is("memory 0x9008"),
	expr("A.2.5.4.4.3", "lit8; form_tls_address").evaluation(1, "thread-local").because(ErrNoContext),
	expr("A.2.5.4.4.3", "call_frame_cfa").with(func(m *testMachine) { m.cfa = memoryAt(5, 0x80) }).is("memory 5:0x80"),
	expr("A.2.5.4.4.3", "lit0; call_frame_cfa").evaluation(1, "CFA").because(ErrNoContext),
	expr("A.2.5.4.4.3", "fbreg -8").with(func(m *testMachine) { m.base = memoryAt(0, 0x80) }).is("memory 0x78"),
	expr("A.2.5.4.4.3", "fbreg 8").with(func(m *testMachine) { m.base = memoryAt(5, 0x80) }).is("memory 5:0x88"),
	expr("A.2.5.4.4.3", "fbreg -16").with(func(m *testMachine) { m.base = memoryAt(0, 8) }).evaluation(0, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.3", "fbreg 0").evaluation(0, "frame base").because(ErrNoContext),
	expr("A.3.3.5: a register as frame base", "fbreg 16").with(func(m *testMachine) {
		l := RegisterLocation(6, m.scope)
		m.base = &l
		m.setRegister(6, 0x7000)
	}).is("memory 0x7010"),
	expr("A.3.3.5", "fbreg 16").with(func(m *testMachine) {
		l := ImplicitLocation([]byte{1})
		m.base = &l
	}).illFormed(0, "frame base is implicit 01"),
	expr("A.2.5.4.4.3", "breg3 -8").with(registers(0, 0, 0, 0x100)).is("memory 0xf8"),
	expr("A.2.5.4.4.3: modulo the address size", "breg0 -8").with(registers(4)).withBits(32).is("memory 0xfffffffc"),
	expr("A.2.5.4.4.3", "breg31 1").with(func(m *testMachine) { m.setRegister(31, 2) }).is("memory 0x3"),
	expr("A.2.5.4.4.3", "bregx 31 300").with(func(m *testMachine) { m.setRegister(31, 2) }).is("memory 0x12e"),
	expr("A.2.5.4.4.3: register smaller than an address", "bregx 32 0").evaluation(0, "64 bits of register 32 of 32 bits").because(ErrOutOfBounds),
	expr("A.2.5.4.4.3: register larger than an address", "bregx 40 0").with(func(m *testMachine) { m.registers[40][0] = 9 }).is("memory 0x8786858483828109"),
	expr("A.2.5.4.4.3: its low bits", "bregx 40 0").with(func(m *testMachine) { m.registers[40][31] = 9 }).big().is("memory 0x98999a9b9c9d9e09"),
	expr("A.2.5.4.4.3: register larger than an address, saved", "bregx 40 1").with(func(m *testMachine) {
		m.places = map[uint64]Location{40: MemoryLocation(0, 0x50)}
		m.setMemory(0, 0x50, 1, 2, 0, 0, 0, 0, 0, 0)
	}).is("memory 0x202"),
	expr("A.2.5.4.4.3", "bregx 99 0").evaluation(0, "no register 99"),
	expr("A.2.5.4.4.3", "lit5; LLVM_aspace_bregx 33 16").with(func(m *testMachine) { m.setRegister(33, 0x40) }).is("memory 5:0x50"),
	expr("A.2.5.4.4.3", "lit0; LLVM_aspace_bregx 1 16").with(registers(0, 0x40)).is("memory 0x50"),
	expr("A.2.5.4.4.3", "lit5; LLVM_aspace_bregx 1 16").with(registers(0, 0x900000040)).is("memory 5:0x50"),
	expr("A.2.5.4.4.3: modulo the address size", "lit5; LLVM_aspace_bregx 33 -1").with(func(m *testMachine) { m.setRegister(33, 0) }).is("memory 5:0xffffffff"),
	expr("A.2.5.4.4.3", "lit7; LLVM_aspace_bregx 33 16").illFormed(1, "no address space 7"),
	expr("A.2.5.4.4.1", "push_object_address").with(func(m *testMachine) { m.object = memoryAt(3, 1) }).is("memory 3:0x1"),
	expr("A.2.5.4.4.1", "push_object_address").evaluation(0, "object").because(ErrNoContext),

	// Offsets.
	expr("A.2.5.4.4.1", "lit16; LLVM_offset_uconst 8").as(LocationKind).is("memory 0x18"),
	expr("A.2.5.4.4.1", "addr 16; consts -8; LLVM_offset").is("memory 0x8"),
	expr("A.2.5.4.4.1", "addr 16; consts -17; LLVM_offset").evaluation(11, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.1", "addr 0xfffffffffffffff8; LLVM_offset_uconst 8").evaluation(9, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.1", "const4u 0xfffffff8; lit3; LLVM_form_aspace_address; LLVM_offset_uconst 8").evaluation(8, "the last one of the address space is 0xffffffff").because(ErrOutOfBounds),
	expr("A.2.5.4.4.1", "const4u 0xfffffff8; lit3; LLVM_form_aspace_address; LLVM_offset_uconst 7").is("memory 3:0xffffffff"),
	expr("A.2.5.4.4.1", "regx 40; LLVM_offset_uconst 20").is("register 40 +160 bits"),
	expr("A.2.5.4.4.1", "regx 40; LLVM_offset_uconst 31; lit7; LLVM_bit_offset").is("register 40 +255 bits"),
	expr("A.2.5.4.4.1", "regx 40; LLVM_offset_uconst 32").evaluation(2, "bit 256 of register storage of 256 bits").because(ErrOutOfBounds),
	expr("A.2.5.4.4.1", "reg0; const1s -1; LLVM_bit_offset").evaluation(3, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.1", "reg0; const8s -0x8000000000000000; LLVM_offset").evaluation(10, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.1", "reg0; const8s 0x7fffffffffffffff; LLVM_offset").evaluation(10, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.1", "addr 1; const8s 0x7fffffffffffffff; LLVM_offset").is("memory 0x8000000000000000"),
	expr("A.2.5.4.4.1", "addr 0x8000000000000000; const8s -0x8000000000000000; LLVM_offset").is("memory 0x0"),
	expr("A.2.5.4.4.1", "addr 16; lit13; LLVM_bit_offset").is("memory 0x11 +5 bits"),
	expr("A.2.5.4.4.1", "addr 16; lit13; LLVM_bit_offset; lit11; LLVM_bit_offset").is("memory 0x13"),
	expr("A.2.5.4.4.1", "addr 16; lit13; LLVM_bit_offset; const1s -6; LLVM_bit_offset").is("memory 0x10 +7 bits"),
	expr("A.2.5.4.4.2", "LLVM_undefined; LLVM_offset_uconst 5").is("undefined"),
	expr("A.2.5.4.4.1", "implicit_value 01020304; LLVM_offset_uconst 3").is("implicit 01020304 +24 bits"),
	expr("A.2.5.4.4.1", "implicit_value 01020304; LLVM_offset_uconst 4").evaluation(6, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.1: every place", "LLVM_offset_uconst 4").on(LocationEntry(UnionLocation(MemoryLocation(0, 16), RegisterLocation(3, noScope)))).is("memory 0x14 | register 3 +32 bits"),
	expr("A.2.5.4.4.6", "reg0; piece 4; LLVM_offset_uconst 1").illFormed(3, "incomplete composite"),

	// Registers.
	expr("A.2.5.4.4.4", "reg0").is("register 0"),
	expr("A.2.5.4.4.4", "reg31").is("register 31"),
	expr("A.2.5.4.4.4", "regx 40").is("register 40"),
	expr("A.2.5.4.4.4: by call frame information", "reg3").with(func(m *testMachine) {
		m.places = map[uint64]Location{3: MemoryLocation(0, 0x7000)}
	}).is("memory 0x7000"),
	expr("A.2.5.4.4.4", "regx 99").evaluation(0, "no register 99"),

	// Reading.
	expr("A.2.5.4.3.4", "lit16; deref").with(bytesAt(0, 16, 1, 2, 3, 4, 5, 6, 7, 8)).is("0x807060504030201"),
	expr("A.2.5.4.3.4", "lit16; deref").with(bytesAt(0, 16, 1, 2, 3, 4, 5, 6, 7, 8)).big().is("0x102030405060708"),
	expr("A.2.5.4.3.4", "lit16; deref").with(bytesAt(0, 16, 1, 2, 3, 4)).withBits(32).is("0x4030201"),
	expr("A.2.5.4.3.4", "lit16; deref_size 2").with(bytesAt(0, 16, 1, 0xff)).is("0xff01"),
	expr("A.2.5.4.3.4", "lit16; deref_size 2").with(bytesAt(0, 16, 1, 0xff)).big().is("0x1ff"),
	expr("A.2.5.4.3.4: cut to the generic type", "lit16; deref_size 16").with(bytesAt(0, 16, 1, 2, 3, 4)).withBits(32).is("0x4030201"),
	expr("A.2.5.4.3.4", "lit16; deref_size 0").is("0x0"),
	expr("A.2.5.4.3.4", "lit16; deref").evaluation(1, "no memory at 0:0x10"),
	expr("A.2.5.4.3.4", "const8s -4; deref").evaluation(9, "").because(ErrOutOfBounds),
	expr("A.2.5.4.3.4", "reg3; deref").with(registers(0, 0, 0, 0x1234)).is("0x1234"),
	expr("A.2.5.4.3.4", "reg3; deref").with(registers(0, 0, 0, 0x1234)).big().is("0x1234"),
	expr("A.2.5.4.3.4", "regx 33; deref").evaluation(2, "64 bits from bit 0 of register 33 of 32 bits").because(ErrOutOfBounds),
	expr("A.2.5.4.3.4", "regx 33; deref_size 4").with(func(m *testMachine) { m.setRegister(33, 0xdeadbeef) }).is("0xdeadbeef"),
	expr("A.2.5.4.3.4", "regx 40; LLVM_offset_uconst 20; deref_size 4").is("0x97969594"),
	expr("A.2.5.4.3.4", "LLVM_undefined; deref").evaluation(2, "").because(ErrUndefined),
	expr("A.2.5.4.3.4", "implicit_value 0102030405060708; deref").is("0x807060504030201"),
	expr("A.2.5.4.3.4", "implicit_value 0102; deref").evaluation(4, "").because(ErrOutOfBounds),
	expr("A.2.5.4.3.4", "const1u 77; stack_value; deref").is("0x4d"),
	expr("A.2.5.4.3.4", "const1u 77; stack_value; deref").big().is("0x4d"),
	expr("A.2.5.4.3.4", "const1u 77; stack_value; deref").withBits(12).big().is("0x4d"),
	expr("A.2.5.4.3.4", "lit16; lit4; LLVM_bit_offset; deref_size 1").with(bytesAt(0, 16, 0x12, 0x34)).is("0x41"),
	expr("A.2.5.4.3.4", "lit16; lit4; LLVM_bit_offset; deref_size 1").with(bytesAt(0, 16, 0x12, 0x34)).big().is("0x23"),
	expr("A.2.5.4.3.4", "lit3; lit16; xderef").with(bytesAt(3, 16, 1, 2, 3, 4, 5, 6, 7, 8)).is("0x807060504030201"),
	expr("A.2.5.4.3.4", "lit3; lit16; xderef_size 1").with(bytesAt(3, 16, 0xfe)).is("0xfe"),
	expr("A.2.5.4.3.4", "lit5; lit16; xderef_size 1").with(bytesAt(5, 16, 0xfe)).is("0xfe"),
	expr("A.2.5.4.3.4", "lit9; lit16; xderef_size 1").illFormed(2, "no address space 9"),
	expr("A.2.5.4.3.4", "piece 4; deref").illFormed(2, "incomplete composite"),
	expr("A.2.5.3: any place will do", "deref_size 1").on(LocationEntry(UnionLocation(UndefinedLocation(), MemoryLocation(0, 64), MemoryLocation(0, 16)))).with(bytesAt(0, 16, 3)).is("0x3"),

	// Entry values.
	expr("A.2.5.4.3.4", "entry_value { reg5 }").with(func(m *testMachine) {
		m.entry = func(b []byte) (Value, error) { return GenericValue(uint64(b[0])), nil }
	}).is("0x55"),
	expr("A.2.5.4.3.4", "GNU_entry_value { reg5 }; lit1; plus").inDialect(DWARF5).with(func(m *testMachine) {
		m.entry = func(b []byte) (Value, error) { return GenericValue(uint64(b[0])), nil }
	}).is("0x56"),
	expr("A.2.5.4.3.4", "entry_value { reg5 }").evaluation(0, "calling frame").because(ErrNoContext),
	expr("A.2.5.4.3.4", "entry_value { reg5 }").with(func(m *testMachine) {
		m.entry = func([]byte) (Value, error) { return Value{}, &Error{Kind: IllFormed, Err: errors.New("inner")} }
	}).illFormed(0, "inner"),
	expr("GNU", "lit8; GNU_push_tls_address").inDialect(DWARF5).with(func(m *testMachine) { m.tls = 0x9000 }).is("memory 0x9008"),
	expr("GNU", "GNU_addr_index 0").inDialect(DWARF5).with(func(m *testMachine) { m.addrs = []uint64{0x40} }).is("memory 0x40"),
	expr("GNU", "GNU_const_index 0").inDialect(DWARF5).with(func(m *testMachine) { m.addrs = []uint64{0x40} }).is("0x40"),

	// Implicit locations.
	expr("A.2.5.4.4.5", "implicit_value 0102030405060708090a").is("implicit 0102030405060708090a"),
	expr("A.2.5.4.4.5", "implicit_value 010203").is("implicit 010203"),
	expr("A.2.5.4.4.5", "0x9e00").is("implicit "),
	expr("A.2.5.4.4.5", "lit5; stack_value").is("implicit 0500000000000000"),
	expr("A.2.5.4.4.5", "lit5; stack_value").withBits(32).big().is("implicit 00000005"),
	expr("A.2.5.4.4.5: not the end of the expression", "lit5; stack_value; deref; lit1; plus").is("0x6"),
	expr("A.2.5.4.4.5", "reg0; stack_value").illFormed(1, "a value is needed"),
	expr("A.2.5.4.4.5", "addr 8; stack_value").is("implicit 0800000000000000"),
	expr("A.2.5.4.4.5", "lit5; stack_value; lit5; plus").illFormed(3, "a value is needed"),

	// Implicit pointers.
	expr("A.2.5.4.4.5", "implicit_pointer 0x40 -2").is("implicit-pointer 0x40-2"),
	expr("A.2.5.4.4.5", "implicit_pointer 0x40 2; deref").is("implicit-pointer 0x40+2"),
	expr("A.2.5.4.4.5", "implicit_pointer 0x40 2; deref").as(LocationKind).with(func(m *testMachine) {
		m.entries = map[uint64]Location{0x40: MemoryLocation(0, 0x100)}
	}).is("memory 0x102"),
	expr("A.2.5.4.4.5", "implicit_pointer 0x40 2; deref; deref_size 1").with(func(m *testMachine) {
		m.entries = map[uint64]Location{0x40: ImplicitLocation([]byte{1, 2, 3})}
	}).is("0x3"),
	expr("A.2.5.4.4.5", "implicit_pointer 0x40 2; deref; lit0; LLVM_form_aspace_address").with(func(m *testMachine) {
		m.entries = map[uint64]Location{0x40: RegisterLocation(3, m.scope)}
	}).is("register 3 +16 bits"),
	expr("A.2.5.4.4.5", "implicit_pointer 0x40 2; deref; lit3; LLVM_form_aspace_address").evaluation(8, "it points into address space 0").because(ErrImplicitPointer),
	expr("A.2.5.4.4.5", "implicit_pointer 0x40 2; deref; stack_value").is("implicit-pointer 0x40+2"),
	expr("A.2.5.4.4.5", "implicit_pointer 0x40 2; deref; lit1; plus").evaluation(8, "").because(ErrImplicitPointer),
	expr("A.2.5.4.4.5", "implicit_pointer 0x40 2; deref_size 4").evaluation(6, "").because(ErrImplicitPointer),
	expr("A.2.5.4.4.5", "implicit_pointer 0x40 2; LLVM_offset_uconst 4; deref_size 4").evaluation(9, "").because(ErrImplicitPointer),
	expr("A.2.5.4.4.5", "GNU_implicit_pointer 0x40 2").inDialect(DWARF5).is("implicit-pointer 0x40+2"),
	expr("A.2.5.4.4.5: in parts, in order", "implicit_pointer 0x40 2; piece 3; implicit_pointer 0x40 2; bit_piece 40 24").is(
		"composite {24: implicit-pointer 0x40+2; 40: implicit-pointer 0x40+2 +24 bits}"),

	// Composites.
	expr("A.2.5.4.4.6", "piece 4").is("composite {32: undefined}"),
	expr("A.2.5.4.4.6", "piece 4; piece 2").is("composite {32: undefined; 16: undefined}"),
	expr("A.2.5.4.4.6", "reg3; piece 4; piece 2; breg0 16; piece 2").with(registers(0x100)).is(
		"composite {32: register 3; 16: undefined; 16: memory 0x110}"),
	expr("A.2.5.4.4.6", "lit4; piece 1").is("composite {8: memory 0x4}"),
	expr("A.2.5.4.4.6", "reg3; bit_piece 3 5; bit_piece 9 0").is("composite {3: register 3 +5 bits; 9: undefined}"),
	expr("A.2.5.4.4.6", "addr 16; bit_piece 3 13").is("composite {3: memory 0x11 +5 bits}"),
	expr("A.2.5.4.4.6", "reg3; bit_piece 3 64").evaluation(1, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.6: bits outside the storage", "reg3; bit_piece 3 62").illFormed(1, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.6: bits outside the storage", "reg3; piece 9").illFormed(1, "part of 72 bits of register 3").because(ErrOutOfBounds),
	expr("A.2.5.4.4.6: bits outside the storage", "implicit_value 0102; piece 3").illFormed(4, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.6: bits outside the storage", "const8s -3; piece 4").illFormed(9, "").because(ErrOutOfBounds).withBits(60),
	expr("A.2.5.4.4.6", "const8s -3; piece 3").is("composite {24: memory 0xfffffffffffffffd}"),
	expr("A.2.5.4.4.6: bits outside the storage", "const8s -3; piece 4").illFormed(9, "").because(ErrOutOfBounds),
	// Values that gdb has for such variables of s390x.
	expr("DWARF 5, 2.6.1.2: the least significant bits", "const4u 0x11223344; stack_value; bit_piece 16 0; LLVM_piece_end; deref_size 2").big().is("0x3344"),
	expr("DWARF 5, 2.6.1.2: the least significant bits", "const4u 0x11223344; stack_value; bit_piece 16 8; LLVM_piece_end; deref_size 2").big().is("0x2233"),
	expr("DWARF 5, 2.6.1.2: the ABI's part", "const4u 0x11223344; stack_value; piece 2; LLVM_piece_end; deref_size 2").big().is("0x3344"),
	expr("DWARF 5, 2.6.1.2: two parts", "const4u 0x11223344; stack_value; bit_piece 16 16; const4u 0x11223344; stack_value; bit_piece 16 0; LLVM_piece_end; deref_size 4").big().is("0x11223344"),
	expr("DWARF 5, 2.6.1.2: from the least significant bit end", "reg3; bit_piece 16 0; LLVM_piece_end; deref_size 2").with(registers(0, 0, 0, 0x0011223344556677)).big().is("0x6677"),
	expr("DWARF 5, 2.6.1.2: from the least significant bit end", "reg3; bit_piece 16 8; LLVM_piece_end; deref_size 2").with(registers(0, 0, 0, 0x0011223344556677)).big().is("0x5566"),
	expr("DWARF 5, 2.6.1.2: from the least significant bit end", "reg3; bit_piece 12 4; reg3; bit_piece 4 0; LLVM_piece_end; deref_size 2").with(registers(0, 0, 0, 0x0011223344556677)).big().is("0x6677"),
	expr("DWARF 5, 2.6.1.2: the ABI's part", "reg3; piece 4; reg4; piece 4; LLVM_piece_end; deref").with(registers(0, 0, 0, 0x0011223344556677, 0x8899aabbccddeeff)).big().is("0x44556677ccddeeff"),
	expr("DWARF 5, 2.6.1.2: the direction of the target", "lit16; bit_piece 16 8; LLVM_piece_end; deref_size 2").with(bytesAt(0, 16, 0x12, 0x34, 0x56, 0x78)).big().is("0x3456"),
	expr("DWARF 5, 2.6.1.2: the direction of the target", "lit16; bit_piece 12 4; lit16; bit_piece 4 0; LLVM_piece_end; deref_size 2").with(bytesAt(0, 16, 0x12, 0x34, 0x56, 0x78)).big().is("0x2341"),
	// gdb takes the first bytes of these, against the text.
	expr("DWARF 5, 2.6.1.2: the least significant bits", "implicit_value 0102030405060708; bit_piece 16 0").big().is("composite {16: implicit 0102030405060708 +48 bits}"),
	expr("DWARF 5, 2.6.1.2: the whole value", "implicit_value 0102; bit_piece 16 0").big().is("composite {16: implicit 0102}"),
	expr("DWARF 5, 2.6.1.2", "const4u 0x11223344; stack_value; bit_piece 16 0").big().is("composite {16: implicit 0000000011223344 +48 bits}"),
	expr("DWARF 5, 2.6.1.2", "const4u 0x11223344; stack_value; bit_piece 16 0").big().withBits(32).is("composite {16: implicit 11223344 +16 bits}"),
	expr("DWARF 5, 2.6.1.2", "const4u 0x11223344; stack_value; bit_piece 16 0").is("composite {16: implicit 4433221100000000}"),
	expr("DWARF 5, 2.6.1.2: bits outside the value", "lit1; stack_value; bit_piece 16 56").big().illFormed(2, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.6: another operation's offset", "reg3; LLVM_offset_uconst 2; piece 2").big().is("composite {16: register 3 +16 bits}"),
	expr("A.2.5.4.4.6: of a composite", "bit_piece 4 8").on(LocationEntry(CompositeLocation([]Part{{Bits: 16, Location: RegisterLocation(3, noScope)}}))).big().is(
		"composite {4: composite {16: register 3} +8 bits}"),
	expr("A.2.5.4.4.6: the base, with the overlay on it", "reg3; reg4; lit16; lit8; LLVM_bit_overlay").big().is(
		"composite {16: register 3; 8: register 4; 40: register 3 +24 bits}"),
	expr("230524.1, 3.12", "composite").is("composite {}"),
	expr("230524.1, 3.12", "composite; reg3; piece 4; reg10; piece 2").is("composite {32: register 3; 16: register 10}"),
	expr("230524.1, 3.12: what is below stays", "reg3; piece 4; composite; reg4; piece 1; LLVM_piece_end").illFormed(8, "an incomplete composite location is needed, found composite {8: register 4}"),
	expr("230524.1, 3.12: in a composite", "composite; composite; reg4; piece 1; reg5; piece 1; piece 2").is("composite {16: composite {8: register 4; 8: register 5}}"),
	expr("230524.1, 3.12: undefined pieces", "composite; piece 4; LLVM_undefined; piece 2").is("composite {32: undefined; 16: undefined}"),
	expr("230524.1, 3.12: any operation takes it", "composite; reg3; piece 4; reg4; piece 4; lit5; LLVM_offset").is("composite {32: register 3; 32: register 4} +40 bits"),
	expr("230524.1, 3.12: any operation takes it", "composite; reg3; piece 1; deref_size 1").with(registers(0, 0, 0, 0x1234)).is("0x34"),
	expr("230524.1, 3.12: of copies each has its own", "composite; reg3; piece 1; dup; reg4; piece 1; swap; reg5; piece 1").is("composite {8: register 3; 8: register 5}"),
	expr("230524.1, 3.12: of copies each has its own", "composite; reg3; piece 1; dup; reg4; piece 1; swap; reg5; piece 1; drop").is("composite {8: register 3; 8: register 4}"),
	expr("230524.1, 3.12: empty", "composite; lit0; LLVM_offset").evaluation(3, "").because(ErrOutOfBounds),
	expr("limits", "composite; piece 1; skip -5").evaluation(2, "more than 4096 parts").because(ErrLimit),
	expr("A.2.5.4.4.6: converted at the end only", "reg3; piece 4; lit1; plus").illFormed(4, "a value is needed"),
	expr("A.2.5.4.4.6: other entries below", "lit9; reg3; piece 4").is("composite {32: register 3}"),
	expr("A.2.5.4.4.6", "reg3; piece 0; reg4; piece 8").is("composite {0: register 3; 64: register 4}"),
	expr("A.2.5.4.4.6", "reg3; piece 4").as(ValueKind).illFormed(3, "composite"),
	expr("A.2.5.4.4.6: complete composites nest", "bit_piece 4 8; reg1; piece 1").on(LocationEntry(CompositeLocation([]Part{{Bits: 16, Location: RegisterLocation(3, noScope)}}))).is(
		"composite {4: composite {16: register 3} +8 bits; 8: register 1}"),
	expr("limits", "piece 1; piece 1; piece 1").limited(Limits{Parts: 2}).evaluation(4, "more than 2 parts").because(ErrLimit),
	expr("limits", "piece 1; skip -5").evaluation(0, "more than 4096 parts").because(ErrLimit),
	expr("limits", "piece 0x7fffffffffffffff").evaluation(0, "").because(ErrLimit),
	expr("A.2.5.4.4.6", "addr 16; bit_piece 0xfffffffffffffff0 0").is("composite {18446744073709551600: memory 0x10}"),
	expr("limits", "addr 16; bit_piece 0xfffffffffffffff8 0").evaluation(9, "").because(ErrLimit),
	expr("limits", "bit_piece 0xffffffffffffffff 0; bit_piece 1 0").evaluation(12, "2^64 bits").because(ErrLimit),
	expr("limits", "piece 1").limited(Limits{Nesting: 1}).on(LocationEntry(CompositeLocation([]Part{{Bits: 16, Location: RegisterLocation(3, noScope)}}))).evaluation(0, "nested deeper than 1").because(ErrLimit),

	// The whole expressions of the documents and of compilers.
	expr("x86-64 PLT", "breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus").inDialect(DWARF5).as(LocationKind).with(func(m *testMachine) {
		m.setRegister(7, 0x7000)
		m.setRegister(16, 0x40102b)
	}).is("memory 0x7010"),
	expr("x86-64 PLT", "breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus").inDialect(DWARF5).as(LocationKind).with(func(m *testMachine) {
		m.setRegister(7, 0x7000)
		m.setRegister(16, 0x401020)
	}).is("memory 0x7008"),
	expr("Location descriptions on the stack, 4.3.1", "regx 40; LLVM_offset_uconst 20").is("register 40 +160 bits"),
	expr("Location descriptions on the stack, 4.3.5", "reg3; const1u 20; LLVM_bit_offset").is("register 3 +20 bits"),
	expr("AMDGPU, flat scratch", "regx 33; deref_size 4; lit6; shl; lit5; LLVM_form_aspace_address").with(func(m *testMachine) { m.setRegister(33, 3) }).is("memory 5:0xc0"),
	expr("a CFA below a masked spill", "regx 40; swap; LLVM_offset_uconst 16").on(LocationEntry(MemoryLocation(5, 0x40))).is("memory 5:0x50"),

	// Call frame information.
	expr("A.6.4.2", "fbreg 0").inCFI().illFormed(0, "DW_OP_fbreg").because(ErrNotInCFI),
	expr("A.6.4.2", "addrx 0").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "constx 0").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "lit1; call_frame_cfa").inCFI().illFormed(1, "").because(ErrNotInCFI),
	expr("A.6.4.2", "entry_value { reg5 }").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "GNU_entry_value { reg5 }").inDialect(DWARF5).inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "implicit_pointer 0 0").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "push_object_address").inCFI().illFormed(0, "").because(ErrNotInCFI),
	expr("A.6.4.2", "lit1; LLVM_offset_uconst 1").inCFI().is("memory 0x2"),
}

// TestFormatAndDecodeAgree assembles the text of every case again.
func TestFormatAndDecodeAgree(t *testing.T) {
	for _, c := range documents() {
		d, bits := c.dialect, c.bits
		if d == nil {
			d = Canonical
		}
		if bits == 0 {
			bits = 64
		}
		size := int(bits+7) / 8
		code := assemble(t, d, size, c.order, c.text)
		text := Format(code, d, size, c.order)
		if strings.Contains(text, "<") || strings.Contains(c.text, "0x9e") || strings.Contains(c.text, "; 0x") || strings.HasPrefix(c.text, "0x") {
			continue
		}
		if diff := cmp.Diff(code, assemble(t, d, size, c.order, text)); diff != "" {
			t.Errorf("%s: formatted as %s: %s", c.text, text, diff)
		}
	}
}
