// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// testMachine is a small architecture with all its state in maps.
//
// Registers 0 to 31 have the size of the generic type, 32 to 39 have 32 bits,
// 40 and 41 have 256. Address spaces are 0, 3 (32 bits) and 5 (32 bits, an
// instance for each lane).
type testMachine struct {
	NoContext
	order     ByteOrder
	bits      uint32
	scope     Scope
	memory    map[memoryKey]byte
	registers map[uint64][]byte
	places    map[uint64]Location // of registers, as call frame information would say
	cfa, base *Location
	object    *Location
	addrs     []uint64
	tls       uint64
	entries   map[uint64]Location
	entry     func(expr []byte) (Value, error)

	lanes      uint64 // by DW_AT_LLVM_lanes
	iteration  [2]uint64
	saved      map[uint64]Location // registers on entry to the subprogram
	callees    map[EntryRef]Callee
	parameters map[uint64]Value
	variables  map[uint64]Value
	largest    uint32 // address space
	circular   bool   // call frame information
}

// baseTypes are the types of the test unit, by their offsets.
var baseTypes = map[uint64]*BaseType{
	0x10: {Name: "generic"}, // stands for the generic type
	0x11: {Name: "int", Encoding: EncodingSigned, Bits: 32},
	0x12: {Name: "unsigned", Encoding: EncodingUnsigned, Bits: 32},
	0x13: {Name: "signed char", Encoding: EncodingSignedChar, Bits: 8},
	0x14: {Name: "unsigned char", Encoding: EncodingUnsignedChar, Bits: 8},
	0x15: {Name: "bool", Encoding: EncodingBoolean, Bits: 8},
	0x16: {Name: "long", Encoding: EncodingSigned, Bits: 64},
	0x17: {Name: "unsigned long", Encoding: EncodingUnsigned, Bits: 64},
	0x18: {Name: "address", Encoding: EncodingAddress, Bits: 64},
	0x19: {Name: "char32_t", Encoding: EncodingUTF, Bits: 32},
	0x1a: {Name: "i128", Encoding: EncodingSigned, Bits: 128},
	0x1b: {Name: "u128", Encoding: EncodingUnsigned, Bits: 128},
	0x1c: {Name: "u5", Encoding: EncodingUnsigned, Bits: 5},
	0x1d: {Name: "i5", Encoding: EncodingSigned, Bits: 5},
	0x1e: {Name: "be32", Encoding: EncodingUnsigned, Bits: 32, Endianity: EndBig},
	0x20: {Name: "half", Encoding: EncodingFloat, Bits: 16},
	0x21: {Name: "float", Encoding: EncodingFloat, Bits: 32},
	0x22: {Name: "double", Encoding: EncodingFloat, Bits: 64},
	0x23: {Name: "x87", Encoding: EncodingFloat, Bits: 80},
	0x24: {Name: "long double", Encoding: EncodingFloat, Bits: 128},
	0x25: {Name: "_Float128", Encoding: EncodingFloat, Bits: 128},
	0x26: {Name: "complex", Encoding: EncodingComplexFloat, Bits: 64},
	0x28: {Name: "u8x4", Encoding: EncodingUnsigned, Bits: 8, Elements: 4},
	0x29: {Name: "floatx4", Encoding: EncodingFloat, Bits: 32, Elements: 4},
	0x2a: {Name: "u32x8", Encoding: EncodingUnsigned, Bits: 32, Elements: 8},
	0x2b: {Name: "u5x3", Encoding: EncodingUnsigned, Bits: 5, Elements: 3},
	0x2c: {Name: "i8x4", Encoding: EncodingSigned, Bits: 8, Elements: 4},
	0x2e: {Name: "huge", Encoding: EncodingUnsigned, Bits: maxTypeBits + 8},
	0x2f: {Name: "void", Encoding: EncodingUnsigned},
}

func (m *testMachine) BaseType(offset uint64) (*BaseType, error) {
	t, ok := baseTypes[offset]
	switch {
	case !ok:
		return nil, IllFormedError(fmt.Errorf("no base type at 0x%x", offset))
	case t.Name == "generic":
		return nil, nil
	}
	return t, nil
}

func (m *testMachine) Lane() (lane, lanes uint64, err error) {
	if m.scope.Lane < 0 {
		return 0, 0, noContext("lane")
	}
	return uint64(m.scope.Lane), m.lanes, nil
}

func (m *testMachine) Iteration(_ context.Context) (iteration, iterations uint64, err error) {
	if m.iteration == [2]uint64{} {
		return 0, 0, noContext("iteration")
	}
	return m.iteration[0], m.iteration[1], nil
}

func (m *testMachine) CallFrameEntryRegister(_ context.Context, reg uint64) (Location, error) {
	if m.circular {
		return Location{}, IllFormedError(fmt.Errorf("register %d depends on itself", reg))
	}
	l, ok := m.saved[reg]
	if !ok {
		return Location{}, noContext("call frame")
	}
	return l, nil
}

func (m *testMachine) CallEntry(_ context.Context, ref EntryRef) (Callee, error) {
	c, ok := m.callees[ref]
	if !ok {
		return Callee{}, IllFormedError(fmt.Errorf("no entry at 0x%x", ref.Offset))
	}
	return c, nil
}

func (m *testMachine) ParameterValue(_ context.Context, offset uint64) (Value, error) {
	v, ok := m.parameters[offset]
	if !ok {
		return Value{}, noContext(callerElement)
	}
	return v, nil
}

func (m *testMachine) VariableValue(_ context.Context, entry uint64) (Value, error) {
	v, ok := m.variables[entry]
	if !ok {
		return Value{}, noContext(unitElement)
	}
	return v, nil
}

func (m *testMachine) EncodedBase(application uint8, offset int) (uint64, error) {
	return uint64(application)<<16 + uint64(offset), nil
}

func (m *testMachine) LargestSpaceBits() uint32 {
	if m.largest == 0 {
		return 64
	}
	return m.largest
}

type memoryKey struct {
	space   AddressSpace
	lane    int32
	address uint64
}

func newTestMachine(order ByteOrder, bits uint32) *testMachine {
	m := &testMachine{
		order: order, bits: bits, scope: Scope{Thread: 7, Lane: 2},
		memory: map[memoryKey]byte{}, registers: map[uint64][]byte{},
	}
	for reg := uint64(0); reg < 42; reg++ {
		size, ok := m.RegisterBits(reg)
		if !ok {
			continue
		}
		value := make([]byte, byteCount(uint64(size)))
		for i := range value {
			value[i] = byte(reg<<4) + byte(i)
		}
		m.registers[reg] = value
	}
	return m
}

func (m *testMachine) key(space AddressSpace, scope Scope, address uint64) memoryKey {
	k := memoryKey{space: space, address: address}
	if space == 5 {
		k.lane = scope.Lane
	}
	return k
}

func (m *testMachine) ReadMemory(_ context.Context, space AddressSpace, scope Scope, address uint64, dst []byte) error {
	for i := range dst {
		b, ok := m.memory[m.key(space, scope, address+uint64(i))]
		if !ok {
			return fmt.Errorf("no memory at %d:0x%x", space, address+uint64(i))
		}
		dst[i] = b
	}
	return nil
}

func (m *testMachine) WriteMemory(_ context.Context, space AddressSpace, scope Scope, address uint64, src []byte) error {
	for i := range src {
		m.memory[m.key(space, scope, address+uint64(i))] = src[i]
	}
	return nil
}

func (m *testMachine) ReadRegister(_ context.Context, reg uint64, _ Scope, dst []byte, bitOffset, bits uint64) error {
	clear(dst)
	copyBits(dst, 0, m.registers[reg], bitOffset, bits, m.order)
	return nil
}

func (m *testMachine) WriteRegister(_ context.Context, reg uint64, _ Scope, src []byte, bitOffset, bits uint64) error {
	copyBits(m.registers[reg], bitOffset, src, 0, bits, m.order)
	return nil
}

func (m *testMachine) RegisterBits(reg uint64) (uint32, bool) {
	switch {
	case reg < 32:
		return m.bits, true
	case reg < 40:
		return 32, true
	case reg < 42:
		return 256, true
	}
	return 0, false
}

func (m *testMachine) SpaceBits(space AddressSpace) (uint32, bool) {
	switch space {
	case 0:
		return m.bits, true
	case 3, 5:
		return 32, true
	}
	return 0, false
}

func (m *testMachine) ByteOrder() ByteOrder { return m.order }
func (m *testMachine) Scope() Scope         { return m.scope }

func (m *testMachine) Register(_ context.Context, reg uint64) (Location, error) {
	if l, ok := m.places[reg]; ok {
		return l, nil
	}
	if _, ok := m.RegisterBits(reg); !ok {
		return Location{}, fmt.Errorf("no register %d", reg)
	}
	return RegisterLocation(reg, m.scope), nil
}

func (m *testMachine) RegisterValue(_ context.Context, reg uint64) (uint64, error) {
	l, err := m.Register(context.Background(), reg)
	if err != nil {
		return 0, err
	}
	size, _ := m.RegisterBits(reg)
	a := access{m: m, order: m.order}
	return a.readUint(&l, size, make([]byte, 8))
}

func (m *testMachine) setRegister(reg, v uint64) {
	size, _ := m.RegisterBits(reg)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], packStream(v, size, m.order))
	copy(m.registers[reg], b[:])
}

func (m *testMachine) setMemory(space AddressSpace, address uint64, bytes ...byte) {
	if err := m.WriteMemory(context.Background(), space, m.scope, address, bytes); err != nil {
		panic(err)
	}
}

func optional(l *Location, element string) (Location, error) {
	if l == nil {
		return Location{}, noContext(element)
	}
	return *l, nil
}

func (m *testMachine) CFA() (Location, error) { return optional(m.cfa, "CFA") }
func (m *testMachine) FrameBase(_ context.Context) (Location, error) {
	return optional(m.base, "frame base")
}
func (m *testMachine) Object(_ context.Context) (Location, error) {
	return optional(m.object, "object")
}

func (m *testMachine) TLS(_ context.Context, offset uint64) (Location, error) {
	if m.tls == 0 {
		return Location{}, noContext("thread-local storage of a thread")
	}
	return MemoryLocation(DefaultSpace, m.tls+offset).WithScope(m.scope), nil
}

func (m *testMachine) Addrx(index uint64) (uint64, error) {
	if index >= uint64(len(m.addrs)) {
		return 0, fmt.Errorf(".debug_addr has %d entries, entry %d is wanted", len(m.addrs), index)
	}
	return m.addrs[index], nil
}

func (m *testMachine) EntryValue(_ context.Context, expr []byte) (Value, error) {
	if m.entry == nil {
		return Value{}, noContext(callerElement)
	}
	return m.entry(expr)
}

func (m *testMachine) EntryLocation(_ context.Context, entry uint64) (Location, error) {
	l, ok := m.entries[entry]
	if !ok {
		return Location{}, fmt.Errorf("no location at .debug_info 0x%x", entry)
	}
	return l, nil
}

// assemble is the inverse of Format. A word that starts with "0x" and has no
// operation is taken as bytes.
func assemble(t testing.TB, d *Dialect, addressSize int, order ByteOrder, text string) []byte {
	t.Helper()
	var out []byte
	fixed := func(v uint64, size int) {
		for i := range size {
			shift := 8 * i
			if order == BigEndian {
				shift = 8 * (size - 1 - i)
			}
			out = append(out, byte(v>>shift))
		}
	}
	for text = strings.TrimSpace(text); text != ""; {
		var statement string
		if open := strings.IndexByte(text, '{'); open >= 0 && !strings.Contains(text[:open], ";") {
			end, depth := open, 0
			for ; end < len(text); end++ {
				if text[end] == '{' {
					depth++
				} else if text[end] == '}' {
					if depth--; depth == 0 {
						break
					}
				}
			}
			statement = text[:end+1]
			text = strings.TrimLeft(text[end+1:], "; ")
			name := strings.Fields(statement)[0]
			_, e, ok := d.Lookup(name)
			if !ok {
				t.Fatalf("no operation %q", name)
			}
			inner := assemble(t, d, addressSize, order, statement[open+1:end])
			out = append(out, e.Opcode)
			out = binary.AppendUvarint(out, uint64(len(inner)))
			out = append(out, inner...)
			continue
		}
		statement, text, _ = strings.Cut(text, ";")
		text = strings.TrimSpace(text)
		words := strings.Fields(statement)
		if raw, ok := strings.CutPrefix(words[0], "0x"); ok {
			b, err := hex.DecodeString(raw)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, b...)
			continue
		}
		op, e, ok := d.Lookup(words[0])
		if !ok {
			t.Fatalf("no operation %q", words[0])
		}
		out = append(out, e.Opcode)
		if e.User != 0 {
			out = binary.AppendUvarint(out, e.User)
		}
		for i, kind := range op.Operands {
			if kind == NoOperand {
				break
			}
			word := words[1+i]
			if kind == EncodedPointer {
				var err error
				if kind, err = encodedKind(out[len(out)-1]); err != nil {
					t.Fatal(err)
				}
			}
			if kind == Block || kind == Block1 {
				b, err := hex.DecodeString(strings.Trim(word, "{}"))
				if err != nil {
					t.Fatal(err)
				}
				out = binary.AppendUvarint(out, uint64(len(b))) // one byte, for the blocks of tests
				out = append(out, b...)
				continue
			}
			v, err := strconv.ParseUint(word, 0, 64)
			if err != nil {
				var s int64
				if s, err = strconv.ParseInt(word, 0, 64); err != nil {
					t.Fatal(err)
				}
				v = uint64(s)
			}
			switch kind {
			case ULEB, RegisterNum, TypeOffset:
				out = binary.AppendUvarint(out, v)
			case SLEB:
				out = appendSLEB(out, int64(v))
			case Address:
				fixed(v, addressSize)
			case EntryOffset:
				fixed(v, 4)
			default:
				fixed(v, int(fixedSize[kind]))
			}
		}
	}
	return out
}

func appendSLEB(out []byte, v int64) []byte {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
