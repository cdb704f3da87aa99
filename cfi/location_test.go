// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/unwindd/unwindd/locexpr"
)

// A frame is a context with registers: 0 to 16 of 64 bits as in x86-64, 64 of
// 32 bits, 65 of 128. Space 6 has 32 bits, the default space 64. Register 3 of
// the frame is in memory, the others are where they are.
type frame struct {
	locexpr.NoContext
	registers map[uint64]uint64
}

func (f *frame) Scope() locexpr.Scope { return locexpr.Scope{Thread: 9, Frame: 2, Lane: -1} }

func (f *frame) RegisterBits(reg uint64) (uint32, bool) {
	switch {
	case reg <= 16:
		return 64, true
	case reg == 64:
		return 32, true
	case reg == 65:
		return 128, true
	}
	return 0, false
}

func (f *frame) SpaceBits(space locexpr.AddressSpace) (uint32, bool) {
	switch space {
	case 0:
		return 64, true
	case 6:
		return 32, true
	}
	return 0, false
}

func (f *frame) RegisterValue(_ context.Context, reg uint64) (uint64, error) {
	v, ok := f.registers[reg]
	if !ok {
		return 0, fmt.Errorf("register %d: %w", reg, locexpr.ErrNoContext)
	}
	return v, nil
}

func (f *frame) Register(_ context.Context, reg uint64) (locexpr.Location, error) {
	if reg == 3 {
		return locexpr.MemoryLocation(0, 0x9000), nil
	}
	return locexpr.RegisterLocation(reg, f.Scope()), nil
}

func (f *frame) ReadRegister(_ context.Context, reg uint64, _ locexpr.Scope, dst []byte, bitOffset, bits uint64) error {
	var buf [16]byte
	binary.LittleEndian.PutUint64(buf[:], f.registers[reg])
	copy(dst, buf[bitOffset/8:(bitOffset+bits+7)/8])
	return nil
}

// ReadMemory finds at every address that address.
func (f *frame) ReadMemory(_ context.Context, _ locexpr.AddressSpace, _ locexpr.Scope, address uint64, dst []byte) error {
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], address)
	copy(dst, buf[:])
	return nil
}

// ThreadLanes is that of a wave.
func (f *frame) ThreadLanes() uint32 { return 32 }

func newFrame() *frame {
	return &frame{registers: map[uint64]uint64{3: 0x33, 6: 0x7f00, 7: 0x7fff0000, 64: 0x100, 65: 0x6500}}
}

func TestCFARuleLocation(t *testing.T) {
	tests := []struct {
		name string
		rule CFARule
		want string
		err  error
	}{
		{"no rule", CFARule{}, "", ErrNoCFA},
		{"register and offset", CFARule{Kind: CFARegister, Register: 7, Offset: 16}, "memory 0x7fff0010", nil},
		{"negative offset", CFARule{Kind: CFARegister, Register: 6, Offset: -0x10}, "memory 0x7ef0", nil},
		{"the address wraps", CFARule{Kind: CFARegister, Register: 6, Offset: -0x8000}, "memory 0xffffffffffffff00", nil},
		{"in a space of 32 bits", CFARule{Kind: CFARegister, Register: 64, Offset: -0x200, Space: 6}, "memory 6:0xffffff00", nil},
		{"the low bits of a register", CFARule{Kind: CFARegister, Register: 65, Offset: 4}, "memory 0x6504", nil},
		{"register too small", CFARule{Kind: CFARegister, Register: 64}, "", ErrRegisterSize},
		{"unknown space", CFARule{Kind: CFARegister, Register: 7, Space: 5}, "", ErrAddressSpace},
		{"register without value", CFARule{Kind: CFARegister, Register: 1}, "", locexpr.ErrNoContext},
		{"expression", CFARule{Kind: CFAExpression, Expr: []byte{0x77, 8}}, "memory 0x7fff0008", nil},
		{"expression that dereferences", CFARule{Kind: CFAExpression, Expr: []byte{0x77, 8, 0x06}}, "memory 0x7fff0008", nil},
		{"expression that is a register", CFARule{Kind: CFAExpression, Expr: []byte{0x57}}, "", ErrNotMemory},
		{"expression that is implicit", CFARule{Kind: CFAExpression, Expr: []byte{0x38, 0x9f}}, "", ErrNotMemory},
		{"expression that CFI must not use", CFARule{Kind: CFAExpression, Expr: []byte{0x9c}}, "", locexpr.ErrNotInCFI},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ev := &locexpr.Evaluator{AddressBits: 64}
			ctx := newFrame()
			l, err := tt.rule.Location(t.Context(), ev, ctx)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if err != nil {
				return
			}
			if l.String() != tt.want {
				t.Errorf("%v, want %s", l, tt.want)
			}
			if l.Place(0).Scope != ctx.Scope() {
				t.Errorf("scope %+v, want the frame's", l.Place(0).Scope)
			}
			if ev.CFI {
				t.Error("the evaluator stays restricted")
			}
		})
	}
}

func TestRuleLocation(t *testing.T) {
	memory := locexpr.MemoryLocation
	tests := []struct {
		name   string
		rule   Rule
		column uint64
		cfa    locexpr.Location
		want   locexpr.Location
		err    error
	}{
		{"unspecified", Rule{}, 3, memory(0, 0x1000), locexpr.Location{}, ErrNoRule},
		{"architectural", Rule{Kind: Architectural}, 3, memory(0, 0x1000), locexpr.Location{}, ErrNoRule},
		{"undefined", Rule{Kind: Undefined}, 3, memory(0, 0x1000), locexpr.UndefinedLocation(), nil},
		{"same value, of a register that the callee's frame saved", Rule{Kind: SameValue}, 3, memory(0, 0x1000), memory(0, 0x9000), nil},
		{"same value, of a register that is itself", Rule{Kind: SameValue}, 12, memory(0, 0x1000), locexpr.RegisterLocation(12, newFrame().Scope()), nil},
		{"offset", Rule{Kind: Offset, Offset: -8}, 16, memory(0, 0x1000), memory(0, 0xff8), nil},
		{"offset in the space of the CFA", Rule{Kind: Offset, Offset: 4}, 16, memory(6, 0x1000), memory(6, 0x1004), nil},
		{"offset before the storage", Rule{Kind: Offset, Offset: -8}, 16, memory(0, 4), locexpr.Location{}, locexpr.ErrOutOfBounds},
		{"offset of 2^61 bytes", Rule{Kind: Offset, Offset: 1 << 61}, 16, memory(0, 4), locexpr.Location{}, ErrOverflow},
		{"val_offset", Rule{Kind: ValOffset, Offset: 16}, 7, memory(0, 0x1000), locexpr.ImplicitUint64(0x1010, 64, 0), nil},
		{"val_offset per lane", Rule{Kind: ValOffsetPerLane, Offset: 0x40}, 64, memory(6, 0x1000), locexpr.ImplicitUint64(0x1040/32, 32, 0), nil},
		{"val_offset per lane, with a rest", Rule{Kind: ValOffsetPerLane}, 64, memory(6, 0x1010), locexpr.Location{}, ErrLanes},
		{"val_offset of 32 bits", Rule{Kind: ValOffset, Offset: 16}, 64, memory(6, 0x1000), locexpr.ImplicitUint64(0x1010, 32, 0), nil},
		{"val_offset of a column that is no register", Rule{Kind: ValOffset}, 99, memory(6, 0x1000), locexpr.ImplicitUint64(0x1000, 32, 0), nil},
		{"val_offset of another size", Rule{Kind: ValOffset}, 7, memory(6, 0x1000), locexpr.Location{}, ErrRegisterSize},
		{"val_offset past a space of 32 bits", Rule{Kind: ValOffset, Offset: 16}, 64, memory(6, 0xfffffff8), locexpr.Location{}, ErrOverflow},
		{"val_offset in an unknown space", Rule{Kind: ValOffset}, 7, memory(5, 0), locexpr.Location{}, ErrAddressSpace},
		{"val_offset from a CFA that is no memory", Rule{Kind: ValOffset}, 7, locexpr.RegisterLocation(1, locexpr.Scope{}), locexpr.Location{}, ErrNotMemory},
		{"register", Rule{Kind: Register, Register: 12}, 16, memory(0, 0x1000), locexpr.RegisterLocation(12, newFrame().Scope()), nil},
		{"register that the callee's frame saved", Rule{Kind: Register, Register: 3}, 16, memory(0, 0x1000), memory(0, 0x9000), nil},
		{"register of another size", Rule{Kind: Register, Register: 64}, 16, memory(0, 0x1000), locexpr.Location{}, ErrRegisterSize},
		{"expression", Rule{Kind: Expression, Expr: []byte{0x76, 8}}, 3, memory(0, 0x1000), memory(0, 0x7f08).WithScope(newFrame().Scope()), nil},
		{"expression from the CFA", Rule{Kind: Expression, Expr: []byte{0x23, 0x10}}, 3, memory(0, 0x1000), memory(0, 0x1010).WithScope(newFrame().Scope()), nil},
		{"expression that is empty is the CFA", Rule{Kind: Expression}, 3, memory(6, 0x1000), memory(6, 0x1000), nil},
		{"expression that is a register", Rule{Kind: Expression, Expr: []byte{0x5c}}, 3, memory(0, 0x1000), locexpr.RegisterLocation(12, newFrame().Scope()), nil},
		{"expression that CFI must not use", Rule{Kind: Expression, Expr: []byte{0x9c}}, 3, memory(0, 0x1000), locexpr.Location{}, locexpr.ErrNotInCFI},
		{"val_expression", Rule{Kind: ValExpression, Expr: []byte{0x76, 8}}, 3, memory(0, 0x1000), locexpr.ImplicitUint64(0x7f08, 64, 0), nil},
		{"val_expression from the CFA", Rule{Kind: ValExpression, Expr: []byte{0x38, 0x1c}}, 7, memory(0, 0x1000), locexpr.ImplicitUint64(0xff8, 64, 0), nil},
		{"val_expression of another size", Rule{Kind: ValExpression, Expr: []byte{0x38}}, 64, memory(0, 0x1000), locexpr.Location{}, ErrRegisterSize},
		{"val_expression that is ill-formed", Rule{Kind: ValExpression, Expr: []byte{0x13, 0x13}}, 3, memory(0, 0x1000), locexpr.Location{}, locexpr.ErrStackUnderflow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ev := &locexpr.Evaluator{AddressBits: 64}
			l, err := tt.rule.Location(t.Context(), ev, newFrame(), tt.column, tt.cfa)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if err == nil && !l.Equal(tt.want) {
				t.Errorf("%v, want %v", l, tt.want)
			}
			if ev.CFI {
				t.Error("the evaluator stays restricted")
			}
		})
	}
}

func TestRulesOfOrdinaryCodeDoNotAllocate(t *testing.T) {
	ev := &locexpr.Evaluator{AddressBits: 64}
	ctx := newFrame()
	var lc locexpr.Context = ctx
	rules := []Rule{{Kind: Offset, Offset: -16}, {Kind: ValOffset}, {Kind: SameValue}, {Kind: Register, Register: 12}, {Kind: Undefined},
		{Kind: Expression, Expr: []byte{0x76, 8}}, {Kind: ValExpression, Expr: []byte{0x76, 8}}}
	cfas := []CFARule{{Kind: CFARegister, Register: 7, Offset: 8}, {Kind: CFAExpression, Expr: []byte{0x77, 8}}}
	var sink locexpr.Location
	if n := testing.AllocsPerRun(100, func() {
		for _, c := range cfas {
			cfa, err := c.Location(t.Context(), ev, lc)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rules {
				if sink, err = r.Location(t.Context(), ev, lc, 7, cfa); err != nil {
					t.Fatal(err)
				}
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
	_ = sink
}
