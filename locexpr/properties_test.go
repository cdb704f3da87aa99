// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/unwindd/unwindd/internal/dw"
)

// builder writes expressions of the canonical dialect.
type builder struct{ code []byte }

func (b *builder) op(name string, operands ...uint64) {
	_, e, ok := Canonical.Lookup(name)
	if !ok {
		panic(name)
	}
	b.code = append(b.code, e.Opcode)
	if e.User != 0 {
		b.code = binary.AppendUvarint(b.code, e.User)
	}
	for _, v := range operands {
		b.code = binary.AppendUvarint(b.code, v)
	}
}

// pick pushes a copy of an entry; index is below 128.
func (b *builder) pick(index int) { b.op("pick", uint64(index)) }

// bitOffset adds to the offset of the top entry.
func (b *builder) bitOffset(n uint64) {
	b.op("constu", n)
	b.op("LLVM_bit_offset")
}

// sameBits fails unless two locations have the same n bits, or both none.
func sameBits(r *rapid.T, m Machine, a, b Location, n uint64) {
	x, y := make([]byte, byteCount(n)), make([]byte, byteCount(n))
	errA, errB := a.Read(context.Background(), m, x, n), b.Read(context.Background(), m, y, n)
	if (errA == nil) != (errB == nil) || errA == nil && !bytes.Equal(x, y) {
		r.Fatalf("%d bits of\n%v: %x, error %v\n%v: %x, error %v", n, a, x, errA, b, y, errB)
	}
}

// readable draws a location of at least n bits, some of which may be undefined.
// On a big-endian machine it is a composite: DW_OP_bit_piece counts from the other
// end of a register or a value, and these tests take the order of the storage.
func (w *writable) readable(r *rapid.T, n uint64) Location {
	l := w.anyReadable(r, n)
	if w.m.order == BigEndian {
		return CompositeLocation([]Part{{n, l}})
	}
	return l
}

func (w *writable) anyReadable(r *rapid.T, n uint64) Location {
	switch rapid.SampledFrom([]string{"writable", "writable", "undefined", "implicit"}).Draw(r, "readable") {
	case "undefined":
		return UndefinedLocation()
	case "implicit":
		size := int(byteCount(n)) + 1
		return ImplicitLocation(rapid.SliceOfN(rapid.Byte(), size, size).Draw(r, "bytes"))
	}
	return w.draw(r, n, 2)
}

func TestSelectBitPieceEqualsItsDefinitionByPieces(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		order := ByteOrder(rapid.IntRange(0, 1).Draw(r, "order"))
		w := writable{m: newTestMachine(order, 64), address: 0x1000, reg: 40}
		size, count := rapid.Uint64Range(1, 40).Draw(r, "size"), rapid.Uint64Range(1, 64).Draw(r, "count")
		mask := rapid.Uint64().Draw(r, "mask")
		// One more bit, so that the last offset is within the storage.
		l := []Location{w.readable(r, size*count+1), w.readable(r, size*count+1)}
		initial := []Entry{LocationEntry(l[0]), LocationEntry(l[1])}

		var once, pieces builder
		once.op("constu", mask)
		once.op("LLVM_select_bit_piece", size, count)
		for n := range count {
			index := 1 - int(mask>>n&1)
			if n > 0 {
				index++ // the composite is on top
			}
			pieces.pick(index)
			pieces.bitOffset(n * size)
			pieces.op("bit_piece", size, 0)
		}
		pieces.op("LLVM_piece_end")
		e := Evaluator{Dialect: Canonical, Order: order}
		got, err := e.Location(t.Context(), once.code, w.m, initial...)
		if err != nil {
			r.Fatal(err)
		}
		want, err := e.Location(t.Context(), pieces.code, w.m, initial...)
		if err != nil {
			r.Fatal(err)
		}
		if !got.Equal(want) {
			r.Fatalf("got %v\nwant %v", got, want)
		}
		sameBits(r, w.m, got, want, size*count)

		// A lane, or any other bits of it.
		from := rapid.Uint64Range(0, size*count-1).Draw(r, "from")
		n := rapid.Uint64Range(1, size*count-from).Draw(r, "bits")
		if got, err = got.Offset(int64(from)); err == nil {
			want, err = want.Offset(int64(from))
		}
		if err != nil {
			r.Fatal(err)
		}
		sameBits(r, w.m, got, want, n)
	})
}

// remainingBits is rbss(L), by the definition in A.2.5.4.4.6.
func remainingBits(m *testMachine, l Location) *big.Int {
	var least *big.Int
	for i := range l.NumPlaces() {
		p := l.Place(i)
		var size *big.Int
		switch p.Storage {
		case Undefined:
			continue
		case Memory:
			bits, _ := m.SpaceBits(p.Space)
			size = new(big.Int).Lsh(big.NewInt(8), uint(bits))
			size.Sub(size, new(big.Int).Lsh(new(big.Int).SetUint64(p.Address), 3))
		case Register:
			bits, _ := m.RegisterBits(p.Register)
			size = big.NewInt(int64(bits))
		default:
			bits, _ := p.StorageBits()
			size = new(big.Int).SetUint64(bits)
		}
		size.Sub(size, new(big.Int).SetUint64(p.BitOffset))
		if least == nil || size.Cmp(least) < 0 {
			least = size
		}
	}
	if most := new(big.Int).SetUint64(endless); least == nil || least.Cmp(most) > 0 {
		return most
	}
	return least
}

func TestOverlayEqualsItsDefinitionByPieces(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		order := ByteOrder(rapid.IntRange(0, 1).Draw(r, "order"))
		w := writable{m: newTestMachine(order, 64), address: 0x1000, reg: 40}
		n := rapid.Uint64Range(1, 200).Draw(r, "bits")
		base := w.readable(r, n)
		offset := rapid.Uint64Range(0, n).Draw(r, "offset")
		size := rapid.Uint64Range(0, n-offset).Draw(r, "size")
		unit, name := uint64(1), "LLVM_bit_overlay"
		if rapid.Bool().Draw(r, "bytes") {
			unit, name = 8, "LLVM_overlay"
			offset, size = offset/8*8, size/8*8
		}
		all := remainingBits(w.m, base).Uint64()
		if rapid.Bool().Draw(r, "whole") && all < 1000 && all%unit == 0 {
			offset, size = 0, all
		}
		over := w.readable(r, max(size, 1))
		initial := []Entry{LocationEntry(base), LocationEntry(over)}

		var once, pieces builder
		once.op("constu", offset/unit)
		once.op("constu", size/unit)
		once.op(name)
		switch {
		case size == 0:
			pieces.pick(1)
		case offset == 0 && size == all:
			pieces.pick(0)
		default:
			part := 0
			if offset != 0 {
				pieces.pick(1)
				pieces.op("bit_piece", offset, 0)
				part = 1
			}
			pieces.pick(part)
			pieces.op("bit_piece", size, 0)
			if all > offset+size {
				pieces.pick(2)
				pieces.op("bit_piece", all-offset-size, offset+size)
			}
			pieces.op("LLVM_piece_end")
		}
		e := Evaluator{Dialect: Canonical, Order: order}
		got, err := e.Location(t.Context(), once.code, w.m, initial...)
		if err != nil {
			r.Fatal(err)
		}
		want, err := e.Location(t.Context(), pieces.code, w.m, initial...)
		if err != nil {
			r.Fatal(err)
		}
		if !got.Equal(want) {
			r.Fatalf("got %v\nwant %v", got, want)
		}
		sameBits(r, w.m, got, want, min(n, all))
	})
}

// regroup draws another composite with the same bits as one of parts.
func regroup(r *rapid.T, parts []Part) Location {
	var out []Part
	for _, p := range parts {
		// A part in two, or within a composite of its own past other bits.
		switch rapid.IntRange(0, 3).Draw(r, "part") {
		case 0:
			if p.Bits < 2 {
				out = append(out, p)
				continue
			}
			k := rapid.Uint64Range(1, p.Bits-1).Draw(r, "split")
			rest, err := p.Location.Offset(int64(k))
			if err != nil {
				r.Fatal(err)
			}
			out = append(out, Part{k, p.Location}, Part{p.Bits - k, rest})
		case 1:
			k := rapid.Uint64Range(0, 9).Draw(r, "before")
			within, err := CompositeLocation([]Part{{Bits: k}, p, {Bits: 3}}).Offset(int64(k))
			if err != nil {
				r.Fatal(err)
			}
			out = append(out, Part{p.Bits, within})
		case 2:
			out = append(out, Part{0, RegisterLocation(1, noScope)}, p)
		default:
			out = append(out, p)
		}
	}
	if len(out) > 1 && rapid.Bool().Draw(r, "group") {
		first := rapid.IntRange(1, len(out)-1).Draw(r, "at")
		group := CompositeLocation(out[:first])
		size, _ := group.Place(0).StorageBits()
		if size > 0 {
			out = append([]Part{{size, group}}, out[first:]...)
		}
	}
	return CompositeLocation(out)
}

func TestEvaluationDoesNotDependOnHowACompositeWasBuilt(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		order := ByteOrder(rapid.IntRange(0, 1).Draw(r, "order"))
		w := writable{m: newTestMachine(order, 64), address: 0x1000, reg: 40}
		var parts []Part
		total := uint64(0)
		for range rapid.IntRange(1, 5).Draw(r, "parts") {
			n := rapid.Uint64Range(1, 60).Draw(r, "bits")
			parts = append(parts, Part{n, w.readable(r, n)})
			total += n
		}
		plain, other := CompositeLocation(parts), regroup(r, parts)

		// The same, part by part, from an expression.
		var build builder
		var initial []Entry
		for i := range parts {
			initial = append(initial, LocationEntry(parts[i].Location))
		}
		for i := range parts {
			index := len(parts) - 1 - i
			if i > 0 {
				index++
			}
			build.pick(index)
			build.op("bit_piece", parts[i].Bits, 0)
		}
		e := Evaluator{Dialect: Canonical, Order: order}
		built, err := e.Location(t.Context(), build.code, w.m, initial...)
		if err != nil {
			r.Fatal(err)
		}

		// What is done with it: any operations that keep locations.
		var code builder
		left := total
		for range rapid.IntRange(0, 3).Draw(r, "operations") {
			switch rapid.IntRange(0, 4).Draw(r, "operation") {
			case 0:
				k := rapid.Uint64Range(0, left-1).Draw(r, "offset")
				code.bitOffset(k)
				left -= k
			case 1:
				k := rapid.Uint64Range(1, left).Draw(r, "piece")
				code.op("bit_piece", k, 0)
				code.op("LLVM_piece_end")
				left = k
			case 2:
				k := rapid.Uint64Range(1, left).Draw(r, "element")
				code.op("LLVM_extend", k, 2)
				left = 2 * k
			case 3:
				offset := rapid.Uint64Range(0, left-1).Draw(r, "at")
				k := rapid.Uint64Range(0, min(left-offset, 64)).Draw(r, "overlay")
				code.op("reg3")
				code.op("constu", offset)
				code.op("constu", k)
				code.op("LLVM_bit_overlay")
			default:
				k := rapid.Uint64Range(1, left).Draw(r, "element")
				code.op("dup")
				code.op("constu", rapid.Uint64().Draw(r, "mask"))
				count := min(left/k, 64) // bits of the mask
				code.op("LLVM_select_bit_piece", k, count)
				left = count * k
			}
		}
		var results []Location
		for _, l := range []Location{plain, other, built} {
			result, err := e.Location(t.Context(), code.code, w.m, LocationEntry(l))
			if err != nil {
				r.Fatalf("%v: %v", l, err)
			}
			results = append(results, result)
		}
		from := rapid.Uint64Range(0, left-1).Draw(r, "from")
		n := rapid.Uint64Range(1, left-from).Draw(r, "count")
		for i, l := range results {
			if results[i], err = l.Offset(int64(from)); err != nil {
				r.Fatalf("%v by %d: %v", l, from, err)
			}
		}
		sameBits(r, w.m, results[0], results[1], n)
		sameBits(r, w.m, results[0], results[2], n)
	})
}

func TestTraceSaysWhatEachOperationDid(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	m.callees = map[EntryRef]Callee{{0x30, true}: {Kind: CalleeExpression, Expr: []byte{0x12, 0x22}}}
	var steps []Step
	e := Evaluator{Dialect: Canonical, Names: stepNames{}, Trace: func(s Step) { steps = append(steps, s) }}
	m.entry = func(expr []byte) (Value, error) { return e.EntryValue(t.Context(), expr, m) }
	code := assemble(t, Canonical, 8, LittleEndian, "entry_value { reg3 }; call2 0x30; regx 3; bra 1; nop; drop")
	m.setRegister(3, 5)
	if _, err := e.Evaluate(t.Context(), code, m, AnyKind); err == nil {
		t.Fatal("a register is no condition")
	}
	var got strings.Builder
	for _, s := range steps {
		got.WriteString(strings.Repeat(" ", s.Depth))
		got.WriteString(s.Op + ": " + strings.Join(s.Stack, ", ") + "\n")
	}
	want := ` DW_OP_reg3: register 3
DW_OP_entry_value { DW_OP_reg3 }: 0x5
 DW_OP_dup: 0x5, 0x5
 DW_OP_plus: 0xa
DW_OP_call2 0x30: 0xa
DW_OP_regx three: 0xa, register 3
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
	if steps[0].Offset != 0 || steps[5].Offset != 6 {
		t.Errorf("got offsets %d and %d", steps[0].Offset, steps[5].Offset)
	}
}

// stepNames calls register 3 three.
type stepNames struct{}

func (stepNames) Register(name string) (uint64, bool) { return 3, name == "three" }
func (stepNames) RegisterName(number uint64) (string, bool) {
	return "three", number == 3
}
func (stepNames) Space(string) (AddressSpace, bool)     { return 0, false }
func (stepNames) SpaceName(AddressSpace) (string, bool) { return "", false }

func TestDialectByName(t *testing.T) {
	for _, d := range Dialects {
		if got, ok := DialectByName(strings.ToUpper(d.Name)); got != d || !ok {
			t.Errorf("%s: got %v, %v", d, got, ok)
		}
	}
	if d, ok := DialectByName("gnu"); ok {
		t.Errorf("got %v", d)
	}
}

// TestTheWireHasEveryOperation keeps the canonical dialect complete, and its
// numbers apart.
func TestTheWireHasEveryOperation(t *testing.T) {
	for name := range byName() {
		if _, _, ok := Canonical.Lookup(name); !ok {
			t.Errorf("%s has no canonical encoding", name)
		}
	}
	numbers := map[uint64]string{}
	for _, v := range vendorRows {
		if other, ok := numbers[v.user]; ok || v.user == 0 || v.op.Name == "" {
			t.Errorf("%s has canonical number 0x%x, and so has %q", v.op.Name, v.user, other)
		}
		numbers[v.user] = v.op.Name
	}
	if len(numbers) != len(dw.VendorOps) {
		t.Errorf("%d operations of vendors, expected %d", len(numbers), len(dw.VendorOps))
	}
}

func TestAnUninitializedResultIsMarked(t *testing.T) {
	var e Evaluator
	for text, want := range map[string]bool{"lit3; GNU_uninit": true, "lit3": false, "addr 3; GNU_uninit": true} {
		got, err := e.Evaluate(t.Context(), assemble(t, DWARF5, 8, LittleEndian, text), NoContext{}, AnyKind)
		if err != nil || got.IsUninitialized() != want {
			t.Errorf("%s: got %v, error %v", text, got.IsUninitialized(), err)
		}
	}
}

func TestErrorsOfTheContextKeepTheirKind(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	m.callees = map[EntryRef]Callee{{1, true}: {Kind: CalleeExpression, Expr: []byte{0x22}}, {2, true}: {Kind: 7}}
	e := Evaluator{}
	for text, want := range map[string]ErrorKind{
		"call2 1": IllFormed, "call2 2": Evaluation, "call2 3": IllFormed, "const_type 0x77 00": IllFormed, "LLVM_push_iteration": Evaluation,
	} {
		e.Dialect = Canonical
		_, err := e.Evaluate(t.Context(), assemble(t, Canonical, 8, LittleEndian, text), m, AnyKind)
		var fail *Error
		if !errors.As(err, &fail) || fail.Kind != want {
			t.Errorf("%s: got error %v, want %v", text, err, want)
		}
	}
}
