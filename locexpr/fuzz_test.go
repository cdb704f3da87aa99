// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func addSeeds(f *testing.F) {
	for _, c := range documents() {
		d, bits := c.dialect, c.bits
		if d == nil {
			d = Canonical
		}
		if bits == 0 {
			bits = 64
		}
		f.Add(assemble(f, d, int(bits+7)/8, c.order, c.text), uint8(bits), uint8(slices.Index(Dialects, d)), c.order == BigEndian)
	}
}

func fuzzDialect(number uint8) *Dialect { return Dialects[int(number)%len(Dialects)] }

func fuzzOrder(big bool) ByteOrder {
	if big {
		return BigEndian
	}
	return LittleEndian
}

func FuzzDecode(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, code []byte, bits, dialect uint8, big bool) {
		d, size, order := fuzzDialect(dialect), int(bits)/8, fuzzOrder(big)
		end := 0
		for instruction, err := range Decode(code, d, size, order) {
			if err != nil {
				var fail *Error
				if !errors.As(err, &fail) || fail.Kind != IllFormed || fail.Offset != end {
					t.Fatalf("after offset %d: %v", end, err)
				}
				end = len(code)
				break
			}
			if instruction.Offset != end || instruction.Size < 1 || instruction.Op == nil || instruction.Op.eval == nil {
				t.Fatalf("after offset %d: %+v", end, instruction)
			}
			end += instruction.Size
		}
		if end != len(code) {
			t.Fatalf("%d of %d bytes decoded", end, len(code))
		}
		Format(code, d, size, order)
	})
}

// A fuzzContext has every element, and memory everywhere.
type fuzzContext struct {
	*testMachine
	e *Evaluator
}

func (c fuzzContext) ReadMemory(_ context.Context, _ AddressSpace, _ Scope, address uint64, dst []byte) error {
	for i := range dst {
		dst[i] = byte(address) + byte(i)
	}
	return nil
}

func (c fuzzContext) WriteMemory(context.Context, AddressSpace, Scope, uint64, []byte) error {
	return nil
}

func (c fuzzContext) EntryValue(_ context.Context, expr []byte) (Value, error) {
	return c.e.EntryValue(context.Background(), expr, c)
}

func FuzzEvaluate(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, code []byte, bits, dialect uint8, big bool) {
		order := fuzzOrder(big)
		bits = max(bits%65, 8)
		m := newTestMachine(order, uint32(bits))
		m.cfa, m.base, m.object, m.tls = memoryAt(5, 0x80), memoryAt(0, 0x80), memoryAt(3, 0x10), 0x40
		m.addrs = []uint64{1, 2}
		m.entries = map[uint64]Location{0x40: MemoryLocation(0, 0x20)}
		m.lanes, m.iteration = 8, [2]uint64{1, 4}
		m.saved = map[uint64]Location{3: MemoryLocation(0, 8), 33: RegisterLocation(33, m.scope)}
		m.parameters = map[uint64]Value{0x44: TypedValue(baseTypes[0x22], 7)}
		m.variables = map[uint64]Value{0x44: TypedValue(baseTypes[0x1a], 7)}
		e := Evaluator{
			Dialect: fuzzDialect(dialect), AddressBits: uint32(bits), Order: order,
			Limits: Limits{Steps: 2000, Depth: 50, Parts: 100},
		}
		m.callees = map[EntryRef]Callee{
			{0x30, true}:  {Kind: CalleeExpression, Expr: code},
			{0x31, true}:  {Kind: CalleeExpression, Expr: []byte{0x12, 0x22}},
			{0x30, false}: {Kind: CalleeLocation, Location: UnionLocation(MemoryLocation(0, 8), RegisterLocation(3, m.scope))},
		}
		ctx := fuzzContext{m, &e}
		for _, want := range []Kind{AnyKind, ValueKind, LocationKind} {
			got, err := e.Evaluate(t.Context(), code, ctx, want, LocationEntry(*m.cfa))
			if err != nil {
				var fail *Error
				if !errors.As(err, &fail) || fail.Offset < 0 || fail.Offset > len(code) {
					t.Fatalf("%v", err)
				}
				continue
			}
			if want == ValueKind && got.IsLocation() || want == LocationKind && !got.IsLocation() {
				t.Fatalf("kind %d is wanted, got %v", want, got)
			}
			if !got.IsLocation() {
				v := got.Value()
				size := v.Bits()
				if v.Type() == nil && size != uint64(bits) || v.Big().BitLen() > int(size) || size < 64 && v.Uint64()>>size != 0 {
					t.Fatalf("%v of %d bits", v, size)
				}
				if _, isPointer := v.ImplicitPointer(); !isPointer {
					back, err := ValueOf(v.Type(), v.Bytes(order), order)
					if v.Type() != nil && (err != nil || back.Hex() != v.Hex()) {
						t.Fatalf("%v comes back as %v, error %v", v, back, err)
					}
				}
				continue
			}
			l := got.Location()
			if l.isIncomplete() {
				t.Fatalf("incomplete: %v", l)
			}
			_ = l.String()
			var buffer [16]byte
			if l.Read(t.Context(), ctx, buffer[:], 77) == nil {
				_ = l.Write(t.Context(), ctx, buffer[:], 77)
			}
		}
		if e.nesting != 0 {
			t.Fatalf("%d evaluations are left under way", e.nesting)
		}
	})
}
