// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/unwindd/unwindd/locexpr"
)

// The state that both sides evaluate in: 17 registers, and a CFA that is the
// frame base too.
const (
	stackPointer = 0x7ffe0ff0
	pc           = 0x40102b // lit15; and gives 11: the PLT's comparison is true
	cfa          = 0x7ffe1000
)

func register(number int) uint64 {
	switch number {
	case 7:
		return stackPointer
	case 16:
		return pc
	}
	return 0x1000 + uint64(number)
}

// frame is that state as locexpr asks for it.
type frame struct {
	locexpr.NoContext
	registers [17]uint64
	cfa       locexpr.Location
}

func (f *frame) SpaceBits(locexpr.AddressSpace) (uint32, bool)       { return 64, true }
func (f *frame) RegisterBits(reg uint64) (uint32, bool)              { return 64, reg < 17 }
func (f *frame) CFA() (locexpr.Location, error)                      { return f.cfa, nil }
func (f *frame) FrameBase(context.Context) (locexpr.Location, error) { return f.cfa, nil }
func (f *frame) RegisterValue(_ context.Context, reg uint64) (uint64, error) {
	return f.registers[reg], nil
}

func newFrame() *frame {
	f := &frame{cfa: locexpr.MemoryLocation(locexpr.DefaultSpace, cfa)}
	for i := range f.registers {
		f.registers[i] = register(i)
	}
	return f
}

func newRegisters() op.DwarfRegisters {
	registers := make([]*op.DwarfRegister, 17)
	for i := range registers {
		registers[i] = op.DwarfRegisterFromUint64(register(i))
	}
	r := op.NewDwarfRegisters(0, registers, binary.LittleEndian, 16, 7, 6, 0)
	r.CFA, r.FrameBase = cfa, cfa
	return *r
}

// expressions are those that are evaluated for each frame or variable.
var expressions = []struct {
	name, text string
	want       uint64
}{
	{"plt_cfa", "breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus", stackPointer + 8 + 8},
	{"breg", "breg7 16", stackPointer + 16},
	{"fbreg", "fbreg -20", cfa - 20},
	{"call_frame_cfa", "call_frame_cfa", cfa},
}

func parse(t testing.TB, text string) []byte {
	t.Helper()
	expr, err := locexpr.Parse(text, locexpr.TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return expr
}

func TestExpressionsGiveTheSame(t *testing.T) {
	f, registers := newFrame(), newRegisters()
	var e locexpr.Evaluator
	for _, x := range expressions {
		expr := parse(t, x.text)
		l, err := e.Location(t.Context(), expr, f)
		if err != nil {
			t.Fatal(err)
		}
		if _, address, ok := l.MemoryAddress(); !ok || address != x.want {
			t.Errorf("%s: unwindd: %v, 0x%x expected", x.name, l, x.want)
		}
		address, _, err := op.ExecuteStackProgram(registers, expr, 8, nil)
		if err != nil || uint64(address) != x.want {
			t.Errorf("%s: delve: 0x%x %v, 0x%x expected", x.name, address, err, x.want)
		}
	}
}

func BenchmarkExpression(b *testing.B) {
	for _, x := range expressions {
		expr := parse(b, x.text)
		b.Run(x.name+"/delve", func(b *testing.B) {
			registers := newRegisters()
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := op.ExecuteStackProgram(registers, expr, 8, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(x.name+"/unwindd", func(b *testing.B) {
			var e locexpr.Evaluator
			f := newFrame()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Location(b.Context(), expr, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
