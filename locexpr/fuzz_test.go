package locexpr

import (
	"errors"
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
		f.Add(assemble(f, d, int(bits+7)/8, c.order, c.text), uint8(bits), d == DWARF5, c.order == BigEndian)
	}
}

func fuzzDialect(standard bool) *Dialect {
	if standard {
		return DWARF5
	}
	return Canonical
}

func fuzzOrder(big bool) ByteOrder {
	if big {
		return BigEndian
	}
	return LittleEndian
}

func FuzzDecode(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, code []byte, bits uint8, standard, big bool) {
		d, size, order := fuzzDialect(standard), int(bits)/8, fuzzOrder(big)
		end := 0
		for in, err := range Decode(code, d, size, order) {
			if err != nil {
				var fail *Error
				if !errors.As(err, &fail) || fail.Kind != IllFormed || fail.Offset != end {
					t.Fatalf("after offset %d: %v", end, err)
				}
				end = len(code)
				break
			}
			if in.Offset != end || in.Size < 1 || in.Op == nil || in.Op.eval == nil {
				t.Fatalf("after offset %d: %+v", end, in)
			}
			end += in.Size
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

func (c fuzzContext) ReadMemory(_ AddressSpace, _ Scope, address uint64, dst []byte) error {
	for i := range dst {
		dst[i] = byte(address) + byte(i)
	}
	return nil
}

func (c fuzzContext) WriteMemory(AddressSpace, Scope, uint64, []byte) error { return nil }

func (c fuzzContext) EntryValue(expr []byte) (Value, error) { return c.e.EntryValue(expr, c) }

func FuzzEvaluate(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, code []byte, bits uint8, standard, big bool) {
		order := fuzzOrder(big)
		bits = max(bits%65, 8)
		m := newTestMachine(order, uint32(bits))
		m.cfa, m.base, m.object, m.tls = memoryAt(5, 0x80), memoryAt(0, 0x80), memoryAt(3, 0x10), 0x40
		m.addrs = []uint64{1, 2}
		m.entries = map[uint64]Location{0x40: MemoryLocation(0, 0x20)}
		e := Evaluator{
			Dialect: fuzzDialect(standard), AddressBits: uint32(bits), Order: order,
			Limits: Limits{Steps: 2000, Depth: 50, Parts: 100},
		}
		ctx := fuzzContext{m, &e}
		for _, want := range []Kind{AnyKind, ValueKind, LocationKind} {
			got, err := e.Evaluate(code, ctx, want, LocationEntry(*m.cfa))
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
				if v := got.Value(); v.Uint64()&^lowMask(uint32(bits)) != 0 {
					t.Fatalf("%v of %d bits", v, bits)
				}
				continue
			}
			l := got.Location()
			if l.isIncomplete() {
				t.Fatalf("incomplete: %v", l)
			}
			_ = l.String()
			var buffer [16]byte
			if l.Read(ctx, buffer[:], 77) == nil {
				_ = l.Write(ctx, buffer[:], 77)
			}
		}
		if e.nesting != 0 {
			t.Fatalf("%d evaluations are left under way", e.nesting)
		}
	})
}
