// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRegistersSetKeepsOrderAndValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Registers
		model := map[uint32]string{}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) struct {
			n uint32
			v []byte
		} {
			return struct {
				n uint32
				v []byte
			}{rapid.Uint32Range(0, 20).Draw(t, "number"), rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "value")}
		}), 0, 40).Draw(t, "steps")
		for _, s := range steps {
			r.Set(s.n, s.v)
			model[s.n] = string(s.v)
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		if want := slices.Sorted(maps.Keys(model)); !slices.Equal(r.Numbers, want) {
			t.Fatalf("numbers %v, want %v", r.Numbers, want)
		}
		for n := range uint32(22) {
			got, ok := r.Get(n)
			want, wantOK := model[n]
			if ok != wantOK || string(got) != want {
				t.Fatalf("register %d: %x %v, want %x %v", n, got, ok, want, wantOK)
			}
		}
	})
}

func TestRegistersUint64(t *testing.T) {
	var r Registers
	r.Set(1, []byte{1, 2, 3})
	r.Set(2, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	r.Set(3, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	r.Set(4, nil)
	for _, c := range []struct {
		number uint32
		order  ByteOrder
		want   uint64
		ok     bool
	}{
		{1, LittleEndian, 0x030201, true},
		{1, BigEndian, 0x010203, true},
		{2, LittleEndian, 0x0807060504030201, true},
		{2, BigEndian, 0x0102030405060708, true},
		{3, LittleEndian, 0, false},
		{4, LittleEndian, 0, false},
		{5, LittleEndian, 0, false},
	} {
		got, ok := r.Uint64(c.number, c.order)
		if got != c.want || ok != c.ok {
			t.Errorf("register %d order %d: %#x %v, want %#x %v", c.number, c.order, got, ok, c.want, c.ok)
		}
	}
}

func TestRegistersOfHostileShapeDoNotPanic(t *testing.T) {
	for _, r := range []Registers{
		{Numbers: []uint32{1}},
		{Numbers: []uint32{1}, Offsets: []uint32{0}},
		{Numbers: []uint32{1}, Offsets: []uint32{5, 2}, Data: []byte{1, 2}},
		{Numbers: []uint32{1}, Offsets: []uint32{0, 9}, Data: []byte{1}},
		{Numbers: []uint32{2, 1}, Offsets: []uint32{0, 1, 2}, Data: []byte{1, 2}},
		{Numbers: []uint32{1, 1}, Offsets: []uint32{0, 1, 2}, Data: []byte{1, 2}},
		{Numbers: []uint32{NoRegister}, Offsets: []uint32{0, 1}, Data: []byte{1}},
		{Numbers: []uint32{1}, Offsets: []uint32{1, 1}, Data: []byte{1}},
		{Offsets: []uint32{3}},
		{Data: []byte{3}},
	} {
		if r.Validate() == nil {
			t.Errorf("%v is valid", r)
		}
		for n := range uint32(4) {
			r.Get(n)
			c := r.Clone()
			c.Set(n, []byte{1, 2, 3, 4})
		}
	}
}

func TestDecodeRegisterSet(t *testing.T) {
	set := RegisterSet{Fields: []RegisterField{
		{Offset: 4, Size: 4, Register: 2},
		{Offset: 0, Size: 4, Register: 1},
		{Offset: 8, Size: 2, Register: 1, RegisterOffset: 4}, // a piece
		{Offset: 10, Size: 2, Register: 3, RegisterOffset: 2},
		{Offset: 12, Size: 4, Register: 4},
	}}
	record := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	var r Registers
	r.Set(2, []byte{0xa, 0xb, 0xc, 0xd, 0xe, 0xf}) // longer than what the record has
	set.Decode(record, &r)
	var want Registers
	want.Set(1, []byte{0, 1, 2, 3, 8, 9})
	want.Set(2, []byte{4, 5, 6, 7, 0xe, 0xf})
	// Register 3 would have unknown bytes, register 4 ends past the record.
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

func TestDecodePerfSample(t *testing.T) {
	set := RegisterSet{Source: PerfSample, Fields: []RegisterField{
		{Offset: 0, Size: 8, Register: 0},
		{Offset: 3, Size: 8, Register: 7},
		{Offset: 63, Size: 4, Register: 1},
		{Offset: 5, Size: 8, Register: 5},
	}}
	record := make([]byte, 24)
	record[0], record[8], record[16] = 1, 2, 3
	var r, want Registers
	set.DecodeSample(1<<0|1<<3|1<<63, record, &r)
	want.Set(0, record[0:8])
	want.Set(7, record[8:16])
	want.Set(1, record[16:20])
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	r = Registers{}
	set.DecodeSample(1<<0|1<<3|1<<63, record[:23], &r)
	if _, ok := r.Get(1); ok {
		t.Error("a register past the end of the sample was decoded")
	}
}
