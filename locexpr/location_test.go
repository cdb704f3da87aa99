// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"bytes"
	"errors"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPlacesAndAddresses(t *testing.T) {
	var zero Location
	if !zero.IsUndefined() || zero.NumPlaces() != 1 || !zero.Equal(UndefinedLocation()) || !zero.Equal(UnionLocation()) {
		t.Error("the zero Location is not undefined")
	}
	both := UnionLocation(MemoryLocation(3, 8), UndefinedLocation())
	if both.NumPlaces() != 2 || both.IsUndefined() || both.Place(1).Storage != Undefined {
		t.Errorf("got %v", both)
	}
	if _, _, ok := both.MemoryAddress(); ok {
		t.Error("two places have one address")
	}
	moved, err := MemoryLocation(3, 8).Offset(20)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := moved.MemoryAddress(); ok {
		t.Errorf("%v is a byte address", moved)
	}
	if moved, err = moved.Offset(4); err != nil {
		t.Fatal(err)
	}
	if space, address, ok := moved.MemoryAddress(); space != 3 || address != 11 || !ok {
		t.Errorf("got %d:%d, %v", space, address, ok)
	}
	if place := moved.WithScope(Scope{Thread: 1, Lane: 4}).Place(0); place.Scope != (Scope{Thread: 1, Lane: 4}) {
		t.Errorf("got scope %+v", place.Scope)
	}
	if place := MemoryLocation(0, 1).Place(0); place.Scope.Lane != -1 {
		t.Errorf("got lane %d for a location made without context", place.Scope.Lane)
	}
}

func TestOffsetStaysWithinStorage(t *testing.T) {
	for _, c := range []struct {
		l    Location
		bits int64
		want string // "": out of bounds
	}{
		{MemoryLocation(0, 8), -64, "memory 0x0"},
		{MemoryLocation(0, 8), -65, ""},
		{MemoryLocation(0, 8), -63, "memory 0x0 +1 bits"},
		{MemoryLocation(0, ^uint64(0)), 7, "memory 0xffffffffffffffff +7 bits"},
		{MemoryLocation(0, ^uint64(0)), 8, ""},
		{RegisterLocation(1, noScope), 8, "register 1 +8 bits"},
		{RegisterLocation(1, noScope), -1, ""},
		{ImplicitLocation([]byte{1, 2}), 15, "implicit 0102 +15 bits"},
		{ImplicitLocation([]byte{1, 2}), 16, ""},
		{ImplicitUint64(5, 3, LittleEndian), 3, ""},
		{CompositeLocation([]Part{{Bits: 9}}), 8, "composite {9: undefined} +8 bits"},
		{CompositeLocation([]Part{{Bits: 9}}), 9, ""},
		{UndefinedLocation(), -5, "undefined"},
		{UnionLocation(ImplicitLocation([]byte{1, 2}), ImplicitLocation([]byte{1})), 8, ""},
	} {
		got, err := c.l.Offset(c.bits)
		switch {
		case c.want == "" && !errors.Is(err, ErrOutOfBounds):
			t.Errorf("%v by %d: got %v, error %v", c.l, c.bits, got, err)
		case c.want != "" && (err != nil || got.String() != c.want):
			t.Errorf("%v by %d: got %v, error %v, want %s", c.l, c.bits, got, err, c.want)
		}
	}
}

func TestOffsetDoesNotChangeTheOriginal(t *testing.T) {
	l := UnionLocation(MemoryLocation(0, 8), MemoryLocation(0, 16))
	if _, err := l.Offset(8); err != nil {
		t.Fatal(err)
	}
	if got := l.String(); got != "memory 0x8 | memory 0x10" {
		t.Errorf("got %s", got)
	}
}

func TestImplicitStorageHasTheBytesOfItsValue(t *testing.T) {
	for _, c := range []struct {
		v     uint64
		bits  uint32
		order ByteOrder
		want  []byte
	}{
		{0x1234, 64, LittleEndian, []byte{0x34, 0x12, 0, 0, 0, 0, 0, 0}},
		{0x1234, 64, BigEndian, []byte{0, 0, 0, 0, 0, 0, 0x12, 0x34}},
		{0x1234, 16, BigEndian, []byte{0x12, 0x34}},
		{0xff1234, 12, LittleEndian, []byte{0x34, 0x02}},
		{0xff1234, 12, BigEndian, []byte{0x23, 0x40}},
		{1, 1, BigEndian, []byte{0x80}},
	} {
		l := ImplicitUint64(c.v, c.bits, c.order)
		if diff := cmp.Diff(c.want, l.Place(0).ImplicitBytes()); diff != "" {
			t.Errorf("0x%x of %d bits, %v: %s", c.v, c.bits, c.order, diff)
		}
		a := access{m: NoContext{}, order: c.order}
		got, err := a.readUint(&l, c.bits, make([]byte, 8))
		if err != nil || got != c.v&lowMask(c.bits) {
			t.Errorf("0x%x of %d bits, %v: read back 0x%x, error %v", c.v, c.bits, c.order, got, err)
		}
	}
}

func TestWriteReachesEveryPlaceOrNone(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	m.setMemory(0, 0x10, make([]byte, 16)...)
	both := UnionLocation(MemoryLocation(0, 0x10), RegisterLocation(3, noScope))
	if err := both.Write(t.Context(), m, []byte{1, 2, 3, 4}, 32); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		one := Location{place: both.Place(i)}
		var got [4]byte
		if err := one.Read(t.Context(), m, got[:], 32); err != nil || got != [4]byte{1, 2, 3, 4} {
			t.Errorf("%v: got %v, error %v", one, got, err)
		}
	}
	for _, c := range []struct {
		l    Location
		want error
	}{
		{ImplicitLocation([]byte{1, 2, 3, 4}), ErrReadOnly},
		{UndefinedLocation(), ErrUndefined},
		{RegisterLocation(33, noScope), ErrOutOfBounds}, // 32 bits, 40 are written
	} {
		l := UnionLocation(MemoryLocation(0, 0x18), c.l)
		if err := l.Write(t.Context(), m, []byte{9, 9, 9, 9, 9}, 40); !errors.Is(err, c.want) {
			t.Errorf("%v: got error %v, want %v", l, err, c.want)
		}
		if b := m.memory[memoryKey{address: 0x18}]; b != 0 {
			t.Errorf("%v: the first place was written", l)
		}
	}
}

func TestAReadIsIndependentOfPartsThatItDoesNotTouch(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	l := CompositeLocation([]Part{
		{Bits: 8, Location: ImplicitLocation([]byte{0xab})},
		{Bits: 8, Location: MemoryLocation(0, 0x999)}, // not there
		{Bits: 8, Location: UndefinedLocation()},
	})
	var got [3]byte
	if err := l.Read(t.Context(), m, got[:1], 8); err != nil || got[0] != 0xab {
		t.Errorf("got %v, error %v", got, err)
	}
	if err := l.Read(t.Context(), m, got[:], 16); err == nil {
		t.Error("memory that is not there was read")
	}
	if err := l.Read(t.Context(), m, make([]byte, 4), 25); !errors.Is(err, ErrOutOfBounds) {
		t.Errorf("got error %v", err)
	}
	last, err := l.Offset(16)
	if err != nil {
		t.Fatal(err)
	}
	if err := last.Read(t.Context(), m, got[:], 8); !errors.Is(err, ErrUndefined) {
		t.Errorf("got error %v", err)
	}
}

func TestAccessesThatWouldNotEndAreCutShort(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	// Each level holds the one below it in two places that cannot be read.
	l := UnionLocation(UndefinedLocation(), UndefinedLocation())
	for range 60 {
		c := CompositeLocation([]Part{{Bits: 8, Location: l}})
		l = UnionLocation(c, c)
	}
	if err := l.Read(t.Context(), m, make([]byte, 1), 8); err == nil {
		t.Error("undefined storage was read")
	}
	for range maxNesting {
		l = CompositeLocation([]Part{{Bits: 8, Location: l}})
	}
	if err := l.Read(t.Context(), m, make([]byte, 1), 8); !errors.Is(err, ErrLimit) {
		t.Errorf("got error %v", err)
	}
	if err := l.Write(t.Context(), m, make([]byte, 1), 8); !errors.Is(err, ErrLimit) {
		t.Errorf("got error %v", err)
	}
	if len(l.String()) > 1000 {
		t.Error("text of a deep location is long")
	}
}

func TestBuffersThatAreTooSmallAreErrors(t *testing.T) {
	m := newTestMachine(LittleEndian, 64)
	l := RegisterLocation(1, noScope)
	if err := l.Read(t.Context(), m, make([]byte, 1), 9); err == nil {
		t.Error("9 bits were read into a byte")
	}
	if err := l.Write(t.Context(), m, make([]byte, 1), 9); err == nil {
		t.Error("9 bits were written from a byte")
	}
}

// bitsOf returns the stream b as a big integer whose bit i is bit i of the
// stream, which is the plainest form to compare with.
func bitsOf(b []byte, n uint64, order ByteOrder) *big.Int {
	v := new(big.Int)
	for i := range n {
		bit := b[i/8] >> (i % 8) & 1
		if order == BigEndian {
			bit = b[i/8] >> (7 - i%8) & 1
		}
		v.SetBit(v, int(i), uint(bit))
	}
	return v
}

func TestCopyBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := ByteOrder(rapid.IntRange(0, 1).Draw(t, "order"))
		src := rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "src")
		dst := rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "dst")
		srcBit := rapid.Uint64Range(0, uint64(len(src))*8).Draw(t, "srcBit")
		dstBit := rapid.Uint64Range(0, uint64(len(dst))*8).Draw(t, "dstBit")
		n := rapid.Uint64Range(0, min(uint64(len(src))*8-srcBit, uint64(len(dst))*8-dstBit)).Draw(t, "n")
		want := bitsOf(dst, uint64(len(dst))*8, order)
		from := bitsOf(src, uint64(len(src))*8, order)
		for i := range n {
			want.SetBit(want, int(dstBit+i), from.Bit(int(srcBit+i)))
		}
		copyBits(dst, dstBit, src, srcBit, n, order)
		if got := bitsOf(dst, uint64(len(dst))*8, order); got.Cmp(want) != 0 {
			t.Fatalf("got %x, want %x", got, want)
		}
	})
}

// writable draws a location of at least n bits whose storage no other one that
// was drawn shares, with composites nested up to depth, and several places.
type writable struct {
	m       *testMachine
	address uint64
	reg     uint64
}

func (w *writable) draw(t *rapid.T, n uint64, depth int) Location {
	places := 1
	if depth > 0 {
		places = rapid.IntRange(1, 2).Draw(t, "places")
	}
	var all []Location
	for range places {
		all = append(all, w.place(t, n, depth))
	}
	return UnionLocation(all...)
}

func (w *writable) place(t *rapid.T, n uint64, depth int) Location {
	skip := rapid.Uint64Range(0, 20).Draw(t, "skip")
	var l Location
	kind := rapid.SampledFrom([]string{"memory", "register", "composite", "composite"}).Draw(t, "kind")
	if depth == 0 && kind == "composite" || kind == "register" && (w.reg >= 42 || n+skip > 256) {
		kind = "memory"
	}
	switch kind {
	case "memory":
		space := rapid.SampledFrom([]AddressSpace{0, 3, 5}).Draw(t, "space")
		l = MemoryLocation(space, w.address).WithScope(w.m.scope)
		count := byteCount(skip + n)
		for i := range count {
			w.m.setMemory(space, w.address+i, byte(i*37))
		}
		w.address += count
	case "register":
		l = RegisterLocation(w.reg, w.m.scope)
		w.reg++
	case "composite":
		var parts []Part
		for left := n + skip; ; {
			size := rapid.Uint64Range(0, left).Draw(t, "size")
			if len(parts) > 4 {
				size = left
			}
			part := Part{Bits: size, Location: UndefinedLocation()}
			if size > 0 {
				part.Location = w.draw(t, size, depth-1)
			}
			parts = append(parts, part)
			if left -= size; left == 0 {
				break
			}
		}
		l = CompositeLocation(parts)
	}
	if skip > 0 || n > 0 && kind == "composite" {
		moved, err := l.Offset(int64(skip))
		if err != nil {
			t.Fatalf("%v by %d: %v", l, skip, err)
		}
		l = moved
	}
	return l
}

func TestReadAfterWriteGivesWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := ByteOrder(rapid.IntRange(0, 1).Draw(t, "order"))
		w := writable{m: newTestMachine(order, 64), address: 0x1000, reg: 40}
		n := rapid.Uint64Range(1, 200).Draw(t, "bits")
		l := w.draw(t, n, 3)
		value := rapid.SliceOfN(rapid.Byte(), int(byteCount(n)), int(byteCount(n))).Draw(t, "value")
		clearPadding(value, n, order)
		if err := l.Write(t.Context(), w.m, value, n); err != nil {
			t.Fatalf("%v: %v", l, err)
		}
		got := make([]byte, len(value))
		if err := l.Read(t.Context(), w.m, got, n); err != nil {
			t.Fatalf("%v: %v", l, err)
		}
		if !bytes.Equal(got, value) {
			t.Fatalf("%v: got %x, want %x", l, got, value)
		}
		// Every place has the value, and every part of it is a substring.
		for i := range l.NumPlaces() {
			one := Location{place: l.Place(i)}
			skip := rapid.Uint64Range(0, n-1).Draw(t, "skip")
			k := rapid.Uint64Range(1, n-skip).Draw(t, "count")
			part, err := one.Offset(int64(skip))
			if err != nil {
				t.Fatalf("%v by %d: %v", one, skip, err)
			}
			clear(got)
			if err := part.Read(t.Context(), w.m, got, k); err != nil {
				t.Fatalf("%v: %v", part, err)
			}
			want := make([]byte, len(value))
			copyBits(want, 0, value, skip, k, order)
			if !bytes.Equal(got, want) {
				t.Fatalf("%v, %d bits from %d: got %x, want %x", one, k, skip, got, want)
			}
		}
	})
}

func TestOffsetsCompose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := writable{m: newTestMachine(LittleEndian, 64), address: 0x1000, reg: 40}
		l := w.draw(t, 300, 2)
		a := rapid.Int64Range(0, 299).Draw(t, "a")
		b := rapid.Int64Range(-a, 299-a).Draw(t, "b")
		first, err := l.Offset(a)
		if err != nil {
			t.Fatal(err)
		}
		second, err := first.Offset(b)
		if err != nil {
			t.Fatal(err)
		}
		once, err := l.Offset(a + b)
		if err != nil {
			t.Fatal(err)
		}
		if !second.Equal(once) {
			t.Fatalf("%v by %d and %d: got %v, want %v", l, a, b, second, once)
		}
	})
}
