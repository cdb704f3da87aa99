// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// steppingContext counts steps of the evaluator whenever a register is read, as
// a context does that evaluates other expressions for it.
type steppingContext struct {
	*testMachine
	e *Evaluator
}

func (c steppingContext) RegisterValue(_ context.Context, reg uint64) (uint64, error) {
	if reg == 31 {
		return 0, errors.New("register 31 was not saved")
	}
	if _, err := c.e.Value(context.Background(), []byte{0x30, 0x31, 0x22}, c.testMachine); err != nil {
		return 0, err
	}
	return c.testMachine.RegisterValue(context.Background(), reg)
}

// A trace is taken of every operation's own function, so evaluations with and
// without one are two ways to the same.
func TestQuickOperationsDoWhatTheOperationsDo(t *testing.T) {
	var names []string
	for i := range DWARF5.tables().operations {
		if op := &DWARF5.tables().operations[i]; op.quick != notQuick {
			names = append(names, op.Name)
		}
	}
	if len(names) != 32+32+16 {
		t.Fatalf("%d quick operations: %v", len(names), names)
	}
	quick := rapid.OneOf(rapid.SampledFrom(names), rapid.SampledFrom(names[:16]), rapid.SampledFrom([]string{"DW_OP_breg7", "DW_OP_breg7", "DW_OP_breg7", "DW_OP_breg31"}))
	others := rapid.SampledFrom([]string{"dup", "drop", "swap", "reg3", "neg", "div", "nop", "stack_value", "addr", "const8s", "convert", "fbreg", "0x01"})
	number := rapid.OneOf(rapid.Uint64Range(0, 0x40), rapid.SampledFrom([]uint64{0x7f, 0x80, 0xff, 1 << 40, 1<<63 - 1, 1 << 63, ^uint64(0)}))
	rapid.Check(t, func(r *rapid.T) {
		bits := rapid.SampledFrom([]uint32{8, 16, 24, 32, 33, 64}).Draw(r, "bits")
		m := newTestMachine(LittleEndian, bits)
		m.base = memoryAt(0, 0x80)
		e := Evaluator{
			AddressBits: bits, CFI: rapid.Bool().Draw(r, "CFI"),
			Limits: Limits{Steps: rapid.IntRange(0, 60).Draw(r, "steps"), Depth: rapid.IntRange(0, 8).Draw(r, "depth")},
		}
		ctx := steppingContext{m, &e}
		encodings := parser{TextOptions: TextOptions{AddressSize: int(bits+7) / 8}}
		var code []byte
		for range rapid.IntRange(1, 25).Draw(r, "operations") {
			name := quick.Draw(r, "quick")
			if rapid.IntRange(0, 3).Draw(r, "kind") == 0 {
				name = others.Draw(r, "other")
			}
			op, encoding, ok := DWARF5.Lookup(name)
			if !ok {
				code = append(code, 0x01) // no operation has this opcode
				continue
			}
			code = append(code, encoding.Opcode)
			for _, kind := range op.Operands {
				if kind == NoOperand {
					break
				}
				operand, err := encodings.encodingOf(kind)
				if err != nil {
					r.Fatal(err)
				}
				code = operand.append(code, number.Draw(r, "operand"), LittleEndian)
			}
		}
		code = code[:len(code)-rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(r, "cut")]
		var initial []Entry
		for range rapid.IntRange(0, 3).Draw(r, "initial") {
			initial = append(initial, rapid.SampledFrom([]Entry{
				g(1), g(^uint64(0)), ValueEntry(TypedValue(baseTypes[0x11], 5)), LocationEntry(MemoryLocation(0, 0x40)),
				LocationEntry(MemoryLocation(3, 0x40)), LocationEntry(RegisterLocation(4, m.scope)),
			}).Draw(r, "entry"))
		}
		want := rapid.SampledFrom([]Kind{AnyKind, ValueKind, LocationKind}).Draw(r, "want")
		run := func() string {
			result, err := e.Evaluate(t.Context(), code, ctx, want, initial...)
			return fmt.Sprintf("%v, error %v, %d steps left", result, err, e.steps)
		}
		got := run()
		e.Trace = func(Step) {}
		if traced := run(); got != traced {
			r.Fatalf("% x with %v: %s; traced: %s", code, initial, got, traced)
		}
	})
}
