// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"
	"testing"
)

// benchContext answers from fields, as a frame of a stack would.
type benchContext struct {
	NoContext
	registers [17]uint64
	cfa       Location
	base      Location
}

func (c *benchContext) SpaceBits(AddressSpace) (uint32, bool)  { return 64, true }
func (c *benchContext) RegisterBits(reg uint64) (uint32, bool) { return 64, reg < 17 }
func (c *benchContext) RegisterValue(_ context.Context, reg uint64) (uint64, error) {
	return c.registers[reg], nil
}
func (c *benchContext) CFA() (Location, error)                        { return c.cfa, nil }
func (c *benchContext) FrameBase(_ context.Context) (Location, error) { return c.base, nil }
func (c *benchContext) ReadMemory(_ context.Context, _ AddressSpace, _ Scope, _ uint64, dst []byte) error {
	for i := range dst {
		dst[i] = byte(i)
	}
	return nil
}

func newBenchContext() *benchContext {
	c := &benchContext{cfa: MemoryLocation(0, 0x7ffe1000), base: MemoryLocation(0, 0x7ffe1000)}
	for i := range c.registers {
		c.registers[i] = 0x7ffe0000 + uint64(i)
	}
	return c
}

// pltCFA is the CFA that linkers give to the PLT of x86-64.
var pltCFA = []byte{0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}

// hotExpressions are evaluated for every frame or variable, and must not
// allocate.
var hotExpressions = []struct {
	name string
	expr []byte
	want Kind
}{
	{"breg", []byte{0x77, 0x10}, LocationKind},
	{"fbreg", []byte{0x91, 0x6c}, LocationKind},
	{"call_frame_cfa", []byte{0x9c}, LocationKind},
	{"plt cfa", pltCFA, LocationKind},
	{"breg deref", []byte{0x77, 0x10, 0x06}, LocationKind},
	{"stack_value", []byte{0x77, 0x10, 0x9f}, LocationKind},
	{"value of breg", []byte{0x77, 0x10}, ValueKind},
}

func TestHotExpressionsDoNotAllocate(t *testing.T) {
	ctx := newBenchContext()
	for _, h := range hotExpressions {
		t.Run(h.name, func(t *testing.T) {
			var e Evaluator
			var err error
			allocs := testing.AllocsPerRun(100, func() {
				if h.want == ValueKind {
					_, err = e.Value(t.Context(), h.expr, ctx)
				} else {
					_, err = e.Location(t.Context(), h.expr, ctx)
				}
				if err != nil {
					t.Fatal(err)
				}
			})
			if allocs != 0 {
				t.Errorf("%v allocations", allocs)
			}
			allocs = testing.AllocsPerRun(100, func() { _, err = e.Evaluate(t.Context(), h.expr, ctx, h.want, LocationEntry(ctx.cfa)) })
			if err != nil || allocs != 0 {
				t.Errorf("Evaluate with an initial stack: %v allocations, error %v", allocs, err)
			}
		})
	}
}

func TestReadingAndOffsetsDoNotAllocate(t *testing.T) {
	ctx := newBenchContext()
	m := newTestMachine(LittleEndian, 64)
	m.setMemory(0, 0x10, make([]byte, 32)...)
	var buffer [8]byte
	for _, l := range []Location{MemoryLocation(0, 0x10), RegisterLocation(40, noScope), ImplicitUint64(5, 64, LittleEndian)} {
		allocs := testing.AllocsPerRun(100, func() {
			if err := l.Read(t.Context(), m, buffer[:], 64); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Offset(8); err != nil {
				t.Fatal(err)
			}
			l := ImplicitUint64(7, 64, BigEndian)
			if err := l.Read(t.Context(), ctx, buffer[:], 64); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%v: %v allocations", l, allocs)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	ctx := newBenchContext()
	for _, h := range hotExpressions {
		b.Run(h.name, func(b *testing.B) {
			var e Evaluator
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if h.want == ValueKind {
					_, err = e.Value(b.Context(), h.expr, ctx)
				} else {
					_, err = e.Location(b.Context(), h.expr, ctx)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// selectLanes selects from two registers of 64 lanes of 32 bits, and onePiece
// takes one of them.
var (
	selectLanes = []byte{0x90, 40, 0x90, 41, 0x0e, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xe9, 0x0c, 32, 64}
	onePiece    = []byte{0x90, 40, 0x93, 4}
)

// A wideContext has registers of 64 lanes.
type wideContext struct{ benchContext }

func (c *wideContext) RegisterBits(uint64) (uint32, bool) { return 64 * 32, true }
func (c *wideContext) Register(_ context.Context, reg uint64) (Location, error) {
	return RegisterLocation(reg, Scope{}), nil
}

func (c *wideContext) ReadRegister(_ context.Context, _ uint64, _ Scope, dst []byte, bitOffset, _ uint64) error {
	for i := range dst {
		dst[i] = byte(bitOffset/8) + byte(i)
	}
	return nil
}

func BenchmarkComposites(b *testing.B) {
	for name, code := range map[string][]byte{"select 64 lanes": selectLanes, "one piece": onePiece} {
		b.Run(name, func(b *testing.B) {
			e := Evaluator{Dialect: Canonical}
			ctx := &wideContext{}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Location(b.Context(), code, ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	e := Evaluator{Dialect: Canonical}
	ctx := &wideContext{}
	for name, code := range map[string][]byte{"read 64 lanes": selectLanes, "read one piece": onePiece} {
		l, err := e.Location(b.Context(), code, ctx)
		if err != nil {
			b.Fatal(err)
		}
		size, _ := l.Place(0).StorageBits()
		buffer := make([]byte, size/8)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Read(b.Context(), ctx, buffer, size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
