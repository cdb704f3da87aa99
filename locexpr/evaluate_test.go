// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// A nestingContext evaluates its frame base with the evaluator that asks for
// it, as an engine would.
type nestingContext struct {
	*testMachine
	e    *Evaluator
	base []byte
}

func (c nestingContext) FrameBase(_ context.Context) (Location, error) {
	return c.e.Location(context.Background(), c.base, c)
}

func TestAContextMayUseTheEvaluatorThatAsksIt(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	m.setRegister(6, 0x7000)
	var e Evaluator
	c := nestingContext{testMachine: m, e: &e, base: assemble(t, DWARF5, 8, LittleEndian, "lit9; breg6 16")}
	l, err := e.Location(t.Context(), assemble(t, DWARF5, 8, LittleEndian, "lit3; fbreg 4; plus"), c)
	if err != nil {
		t.Fatal(err)
	}
	if l.String() != "memory 0x7017" {
		t.Errorf("got %v", l)
	}
	c.base = assemble(t, DWARF5, 8, LittleEndian, "fbreg 0")
	for range 3 {
		if _, err := e.Location(t.Context(), c.base, c); !errors.Is(err, ErrLimit) {
			t.Errorf("got error %v for a frame base in terms of itself", err)
		}
	}
	if e.nesting != 0 {
		t.Errorf("%d evaluations are left under way", e.nesting)
	}
}

type panickingContext struct{ NoContext }

func (panickingContext) CFA() (Location, error) { panic("a fault on a mapped page") }

func TestAPanicOfTheContextLeavesTheEvaluatorUsable(t *testing.T) {
	var e Evaluator
	for range 2 * defaultLimits.Nesting {
		func() {
			defer func() {
				if recover() == nil {
					t.Fatal("the panic is gone")
				}
			}()
			_, _ = e.Location(t.Context(), []byte{0x9c}, panickingContext{})
		}()
	}
	if v, err := e.Value(t.Context(), []byte{0x35}, NoContext{}); err != nil || v.Uint64() != 5 {
		t.Errorf("got %v, error %v", v, err)
	}
}

func TestEntryValueReadsTheRegisterOfTheLastOperation(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	m.setRegister(5, 0x1234)
	m.setRegister(33, 0xfedcba98)
	m.places = map[uint64]Location{6: MemoryLocation(0, 0x50)}
	m.setMemory(0, 0x50, 8, 7, 6, 5, 4, 3, 2, 1)
	for _, c := range []struct {
		text string
		want uint64
		kind ErrorKind
		fail string
	}{
		{"reg5", 0x1234, 0, ""},
		{"regx 33", 0xfedcba98, 0, ""},
		{"reg6", 0x0102030405060708, 0, ""},
		{"reg5; deref", 0x1234, 0, ""},
		{"lit7", 7, 0, ""},
		{"breg5 1", 0, IllFormed, "no DW_OP_reg*"},
		{"reg5; nop", 0, IllFormed, "no DW_OP_reg*"},
		{"reg5; breg5 1", 0, IllFormed, "no DW_OP_reg*"},
		{"", 0, IllFormed, "the stack is empty"},
		{"regx 99", 0, Evaluation, "no register 99"},
	} {
		var e Evaluator
		v, err := e.EntryValue(t.Context(), assemble(t, DWARF5, 8, LittleEndian, c.text), m)
		if c.fail == "" {
			if err != nil || v.Uint64() != c.want || v.Bits() != 64 {
				t.Errorf("%s: got %v, error %v, want 0x%x", c.text, v, err, c.want)
			}
			continue
		}
		var fail *Error
		if !errors.As(err, &fail) || fail.Kind != c.kind || !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%s: got %v, error %v, want %v with %q", c.text, v, err, c.kind, c.fail)
		}
	}
}

func TestLoadBiasMovesAddressesOnly(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	m.addrs = []uint64{0x40}
	e := Evaluator{LoadBias: 0x1000}
	for text, want := range map[string]string{
		"addr 0x10": "memory 0x1010", "addrx 0": "memory 0x1040", "constx 0": "0x40", "lit4": "0x4",
	} {
		got, err := e.Evaluate(t.Context(), assemble(t, DWARF5, 8, LittleEndian, text), m, AnyKind)
		if err != nil || got.String() != want {
			t.Errorf("%s: got %v, error %v, want %s", text, got, err, want)
		}
	}
}

func TestLocationsAreBoundToTheContextThatMadeThem(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	m.setMemory(5, 0x10, 0xaa) // of lane 2
	e := Evaluator{Dialect: Canonical}
	l, err := e.Location(t.Context(), assemble(t, Canonical, 8, LittleEndian, "lit16; lit5; LLVM_form_aspace_address"), m)
	if err != nil {
		t.Fatal(err)
	}
	m.scope.Lane = 1
	m.setMemory(5, 0x10, 0xbb)
	v, err := e.Value(t.Context(), assemble(t, Canonical, 8, LittleEndian, "deref_size 1"), m, LocationEntry(l))
	if err != nil || v.Uint64() != 0xaa {
		t.Errorf("got %v, error %v: not lane 2's", v, err)
	}
	if l, err = e.Location(t.Context(), []byte{0x31}, m); err != nil || l.Place(0).Scope != m.scope {
		t.Errorf("got scope %+v, error %v", l.Place(0).Scope, err)
	}
}

func TestImplicitPointerIsNoNumber(t *testing.T) {
	var e Evaluator
	code := assemble(t, DWARF5, 8, LittleEndian, "implicit_pointer 0x40 2; deref")
	if v, err := e.Value(t.Context(), code, NoContext{}); !errors.Is(err, ErrImplicitPointer) {
		t.Errorf("got %v, error %v", v, err)
	}
	entry, err := e.Evaluate(t.Context(), code, NoContext{}, ValueKind)
	if err != nil {
		t.Fatal(err)
	}
	l, ok := entry.Value().ImplicitPointer()
	if !ok {
		t.Fatalf("got %v", entry)
	}
	if dieOffset, displacement, ok := l.Place(0).ImplicitPointer(); dieOffset != 0x40 || displacement != 2 || !ok {
		t.Errorf("got 0x%x%+d", dieOffset, displacement)
	}
	code = assemble(t, DWARF5, 8, LittleEndian, "implicit_pointer 0x40 2; piece 3; implicit_pointer 0x40 2; bit_piece 40 24")
	whole, err := e.Evaluate(t.Context(), code, NoContext{}, AnyKind)
	if err != nil {
		t.Fatal(err)
	}
	if entry, err = e.Evaluate(t.Context(), []byte{0x06}, NoContext{}, AnyKind, whole); err != nil || entry.String() != "implicit-pointer 0x40+2" {
		t.Errorf("in order: got %v, error %v", entry, err)
	}
	swapped := CompositeLocation([]Part{whole.Location().Place(0).Parts()[1], whole.Location().Place(0).Parts()[0]})
	if entry, err = e.Evaluate(t.Context(), []byte{0x06}, NoContext{}, AnyKind, LocationEntry(swapped)); !errors.Is(err, ErrImplicitPointer) {
		t.Errorf("out of order: got %v, error %v", entry, err)
	}
}

func TestBranchTargetsAreFoundAnewForEveryExpression(t *testing.T) {
	var e Evaluator
	for text, want := range map[string]uint64{
		"lit1; skip 1; lit2; lit3; plus":            4,
		"lit1; skip 2; const1u 2; lit3; plus":       4,
		"lit1; skip 3; const2u 2; lit3; plus; nop":  4,
		"lit1; lit2; skip 1; plus; lit4; nop; plus": 6,
	} {
		v, err := e.Value(t.Context(), assemble(t, DWARF5, 8, LittleEndian, text), NoContext{})
		if err != nil || v.Uint64() != want {
			t.Errorf("%s: got %v, error %v, want %d", text, v, err, want)
		}
	}
}

func TestAddressBitsOutOfRangeAreAnError(t *testing.T) {
	for _, bits := range []uint32{1, 7, 65, 1 << 31} {
		e := Evaluator{AddressBits: bits}
		if v, err := e.Value(t.Context(), []byte{0x31}, NoContext{}); err == nil {
			t.Errorf("%d bits: got %v", bits, v)
		}
	}
}

func TestOffsetSizeIsThatOfTheFormat(t *testing.T) {
	e := Evaluator{OffsetSize: 8}
	l, err := e.Location(t.Context(), []byte{0xa0, 1, 2, 0, 0, 3, 0, 0, 0, 5}, NoContext{})
	if err != nil || l.String() != "implicit-pointer 0x300000201+5" {
		t.Errorf("got %v, error %v", l, err)
	}
	e.OffsetSize = 3
	if l, err = e.Location(t.Context(), []byte{0xa0, 1, 2, 0, 0, 3, 0, 0, 0, 5}, NoContext{}); err == nil {
		t.Errorf("got %v", l)
	}
}

func TestExtendChecksItsEncodings(t *testing.T) {
	old, err := DWARF5.Extend("old", []Encoding{
		{Opcode: 0xe1, Name: "DW_OP_LLVM_form_aspace_address"},
		{Opcode: 0xe4, Name: "DW_OP_LLVM_offset_uconst"},
		{Opcode: 0xe9, User: 200, Name: "DW_OP_LLVM_offset"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := Format([]byte{0x31, 0xe4, 8, 0xe0, 0xe9, 0xc8, 1}, old, 8, LittleEndian); got != "DW_OP_lit1; DW_OP_LLVM_offset_uconst 8; DW_OP_GNU_push_tls_address; DW_OP_LLVM_offset" {
		t.Errorf("got %s", got)
	}
	if got := Format([]byte{0xe4, 8}, DWARF5, 8, LittleEndian); !strings.Contains(got, "0xe4 is no operation") {
		t.Errorf("the base has changed: %s", got)
	}
	if _, e, ok := old.Lookup("llvm_OFFSET"); !ok || e.User != 200 {
		t.Errorf("got %+v, %v", e, ok)
	}
	for _, c := range []struct {
		encodings []Encoding
		reason    string
	}{
		{[]Encoding{{Opcode: 0xe1, Name: "DW_OP_what"}}, "no operation"},
		{[]Encoding{{Opcode: 0x31, Name: "DW_OP_plus"}}, "0xe0 to 0xff"},
		{[]Encoding{{Opcode: 0xe8, User: 1, Name: "DW_OP_plus"}}, "0xe9 expected"},
		{[]Encoding{{Opcode: 0xe1, Name: "DW_OP_plus"}, {Opcode: 0xe1, Name: "DW_OP_minus"}}, "both"},
		{[]Encoding{{Opcode: 0xe9, Name: "DW_OP_plus"}, {Opcode: 0xe9, User: 1, Name: "DW_OP_minus"}}, "both"},
		{[]Encoding{{Opcode: 0xe9, User: 1, Name: "DW_OP_minus"}, {Opcode: 0xe9, Name: "DW_OP_plus"}}, "both"},
	} {
		if d, err := DWARF5.Extend("bad", c.encodings); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%+v: got %v, error %v, want %q", c.encodings, d, err, c.reason)
		}
	}
	replaced, err := Canonical.Extend("replaced", []Encoding{{Opcode: 0xe9, Name: "DW_OP_plus"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := Format([]byte{0xe9, 0xe9}, replaced, 8, LittleEndian); got != "DW_OP_plus; DW_OP_plus" {
		t.Errorf("got %s", got)
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		code []byte
		want string
	}{
		{nil, ""},
		{pltCFA, "DW_OP_breg7 8; DW_OP_breg16 0; DW_OP_lit15; DW_OP_and; DW_OP_lit11; DW_OP_ge; DW_OP_lit3; DW_OP_shl; DW_OP_plus"},
		{[]byte{0x03, 0x10, 0x20, 0, 0, 0, 0, 0, 0}, "DW_OP_addr 0x2010"},
		{[]byte{0x9e, 4, 0x2a, 0, 0, 1}, "DW_OP_implicit_value 2a000001"},
		{[]byte{0x9e, 0, 0xa3, 0}, "DW_OP_implicit_value {}; DW_OP_entry_value {}"},
		{[]byte{0xa3, 1, 0x55, 0x9f}, "DW_OP_entry_value { DW_OP_reg5 }; DW_OP_stack_value"},
		{[]byte{0x2f, 0xfd, 0xff}, "DW_OP_skip -3"},
		{[]byte{0x9d, 3, 5}, "DW_OP_bit_piece 3 5"},
		{[]byte{0x31, 0xff, 1}, "DW_OP_lit1; <ill-formed expression: offset 1: opcode 0xff is no operation of dialect dwarf5: ff01>"},
	} {
		if got := Format(c.code, DWARF5, 8, LittleEndian); got != c.want {
			t.Errorf("%x: got %s, want %s", c.code, got, c.want)
		}
	}
	deep := []byte{0x30}
	for len(deep) < 100 {
		deep = append([]byte{0xa3, byte(len(deep))}, deep...)
	}
	if got := Format(deep, DWARF5, 8, LittleEndian); strings.Count(got, "{") != textNesting {
		t.Errorf("got %s", got)
	}
}

func TestLoopsInEvaluationsWithinEachOtherShareTheirSteps(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	var e Evaluator
	calls := 0
	m.entry = func(expr []byte) (Value, error) {
		calls++
		return e.EntryValue(t.Context(), expr, m)
	}
	code := []byte{0x30} // lit0
	for range 20 {
		// entry_value { code }; drop; skip to the start
		code = append([]byte{0xa3, byte(len(code))}, code...)
		code = append(code, 0x13, 0x2f, byte(-len(code)-4), 0xff)
	}
	if v, err := e.Value(t.Context(), code, m); !errors.Is(err, ErrLimit) {
		t.Errorf("got %v, error %v", v, err)
	}
	if limit := defaultLimits.Steps / entryValueSteps; calls > limit {
		t.Errorf("%d calls of the context, at most %d expected", calls, limit)
	}
}

func TestWorkThatIsNoOperationIsBounded(t *testing.T) {
	var e Evaluator
	large := binary.AppendUvarint([]byte{0x9e}, 1<<20)
	large = append(large, make([]byte, 1<<20)...)
	large = append(large, 0x9f) // not reached
	if l, err := e.Location(t.Context(), large, NoContext{}); !errors.Is(err, ErrLimit) {
		t.Errorf("got %d places, error %v", l.NumPlaces(), err)
	}
	long := append([]byte{0x2f, 0, 0}, make([]byte, 2<<20)...)
	for i := range long[3:] {
		long[3+i] = 0x96
	}
	if l, err := e.Location(t.Context(), long, NoContext{}); !errors.Is(err, ErrLimit) {
		t.Errorf("got %v, error %v", l, err)
	}
}

func TestNoContextNamesWhatIsMissing(t *testing.T) {
	var e Evaluator
	for text, element := range map[string]string{
		"lit1; deref":                        "memory",
		"reg3":                               "call frame",
		"breg3 0":                            "call frame",
		"call_frame_cfa":                     "CFA",
		"fbreg 0":                            "frame base",
		"push_object_address":                "object",
		"lit0; form_tls_address":             "thread-local",
		"addrx 0":                            "compilation unit",
		"constx 0":                           "compilation unit",
		"entry_value { reg5 }":               "calling frame",
		"implicit_pointer 0 0; deref; deref": "compilation unit",
		"call2 0":                            "compilation unit",
		"call4 0":                            "compilation unit",
		"call_ref 0":                         "compilation unit",
		"const_type 1 00":                    "compilation unit",
		"regval_type 1 1":                    "compilation unit",
		"lit1; convert 1":                    "compilation unit",
		"LLVM_push_lane":                     "lane",
		"LLVM_push_iteration":                "iteration",
		"LLVM_call_frame_entry_reg 0":        "call frame",
		"GNU_parameter_ref 0":                "calling frame",
		"GNU_variable_value 0":               "compilation unit",
		"GNU_encoded_addr 0x1b 0":            "base of encoded addresses",
	} {
		e.Dialect = Canonical
		got, err := e.Evaluate(t.Context(), assemble(t, Canonical, 8, LittleEndian, text), NoContext{}, AnyKind)
		var fail *Error
		if !errors.Is(err, ErrNoContext) || !errors.As(err, &fail) || fail.Kind != Evaluation || !strings.Contains(err.Error(), element) {
			t.Errorf("%s: got %v, error %v, want %s", text, got, err, element)
		}
	}
}
