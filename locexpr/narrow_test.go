// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"math/big"
	"testing"
)

// narrowMachine has registers that differ in where they have smaller objects.
type narrowMachine struct{ *testMachine }

func (narrowMachine) NarrowIn(reg uint64) Narrow {
	return map[uint64]Narrow{4: NarrowHigh, 5: NarrowConverted}[reg]
}

func TestObjectsSmallerThanWhatTheyAreIn(t *testing.T) {
	m := newTestMachine(BigEndian, 64)
	m.places = map[uint64]Location{6: MemoryLocation(0, 0x100)}
	for _, c := range []struct {
		order ByteOrder
		text  string
		bits  uint64
		want  string
	}{
		{BigEndian, "reg3", 8, "register 3 +56 bits"},
		{BigEndian, "reg3", 64, "register 3"},
		{BigEndian, "reg3", 128, "register 3"},
		{BigEndian, "reg3; lit4; LLVM_offset", 16, "register 3 +32 bits"}, // another operation's
		{BigEndian, "reg4", 32, "register 4"},
		{BigEndian, "reg5", 32, "register 5 +32 bits"},
		{BigEndian, "reg6", 16, "memory 0x106"}, // saved by a callee
		{BigEndian, "lit5; stack_value", 32, "implicit 0000000000000005 +32 bits"},
		{BigEndian, "implicit_value 01020304", 16, "implicit 01020304"}, // the object's own bytes
		{BigEndian, "reg6; piece 4; reg3; piece 4", 64, "composite {32: memory 0x104; 32: register 3 +32 bits}"},
		{BigEndian, "reg4; piece 4", 32, "composite {32: register 4}"},
		{BigEndian, "addr 0x200", 16, "memory 0x200"},
		{LittleEndian, "reg3", 8, "register 3"},
		{LittleEndian, "reg6", 16, "memory 0x100"},
		{LittleEndian, "lit5; stack_value", 32, "implicit 0500000000000000"},
	} {
		m.order = c.order
		code, err := Parse(c.text, TextOptions{Dialect: Canonical, Order: c.order})
		if err != nil {
			t.Fatal(err)
		}
		e := Evaluator{Dialect: Canonical, Order: c.order}
		l, err := e.Location(t.Context(), code, narrowMachine{m})
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if got := l.Object(c.bits, c.order).String(); got != c.want {
			t.Errorf("%v, %d bits of %s: %s, expected %s", c.order, c.bits, c.text, got, c.want)
		}
		if got := l.ConvertedBits(); (got == 64) != (c.text == "reg5") {
			t.Errorf("%s: converted of %d bits", c.text, got)
		}
	}
}

// TestDoubleDoubleIsTwoNumbers reads and writes 1 + 2^-100, the larger part first in memory
// in both byte orders.
func TestDoubleDoubleIsTwoNumbers(t *testing.T) {
	typ := &BaseType{Name: "long double", Encoding: EncodingFloat, Bits: 128, Format: FloatDoubleDouble}
	want := new(big.Float).SetPrec(107).SetInt64(1)
	want.Add(want, new(big.Float).SetMantExp(big.NewFloat(1), -100))
	for order, bytes := range map[ByteOrder][]byte{
		BigEndian:    {0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x39, 0xb0, 0, 0, 0, 0, 0, 0},
		LittleEndian: {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0xb0, 0x39},
	} {
		v, err := ValueOf(typ, bytes, order)
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := v.Float(); !ok || f.Cmp(want) != 0 {
			t.Errorf("%v: %v, expected %v", order, f, want)
		}
		if got := string(v.Bytes(order)); got != string(bytes) {
			t.Errorf("%v: % x, expected % x", order, got, bytes)
		}
		negative, err := computeFloat(negOp, typ, v, v)
		if err != nil {
			t.Fatal(err)
		}
		if f, _ := negative.Float(); f.Cmp(new(big.Float).Neg(want)) != 0 {
			t.Errorf("%v: -%v is %v", order, want, f)
		}
		double, err := computeFloat(addOp, typ, v, v)
		if err != nil {
			t.Fatal(err)
		}
		if f, _ := double.Float(); f.Cmp(new(big.Float).Add(want, want)) != 0 {
			t.Errorf("%v: twice %v is %v", order, want, f)
		}
	}
}
