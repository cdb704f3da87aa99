// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/unwindd/unwindd/locexpr"

	"github.com/google/go-cmp/cmp"
	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

func TestArchitecture(t *testing.T) { archtest.Test(t, New()) }

func TestDescriptionIsValid(t *testing.T) {
	if err := Description().Validate(); err != nil {
		t.Fatal(err)
	}
}

// Numbers of AADWARF64, 4.1.
func TestRegisterNumbers(t *testing.T) {
	d := Description()
	for name, number := range map[string]uint32{
		"x0": 0, "w0": 0, "x28": 28, "w28": 28, "x29": 29, "fp": 29, "x30": 30, "lr": 30, "sp": 31, "wsp": 31, "pc": 32,
		"elr_mode": 33, "ra_sign_state": 34, "tpidrro_el0": 35, "tpidr_el0": 36, "tpidr_el3": 39, "vg": 46, "ffr": 47,
		"p0": 48, "p15": 63, "v0": 64, "q0": 64, "v31": 95, "q31": 95, "z0": 96, "z31": 127,
		"cpsr": cpsr, "pstate": cpsr, "fpcr": fpcr, "pauth_cmask": pauthCmask,
	} {
		if info, ok := d.RegisterByName(name); !ok || info.Number != number {
			t.Errorf("%s: number %d, %v, expected %d", name, info.Number, ok, number)
		}
	}
}

func TestDefaultRules(t *testing.T) {
	want := map[uint32]cfi.Rule{
		x19: {Kind: cfi.SameValue}, x28: {Kind: cfi.SameValue}, x29: {Kind: cfi.SameValue}, x30: {Kind: cfi.SameValue},
		v8: {Kind: cfi.SameValue}, v8 + 7: {Kind: cfi.SameValue},
		x0: {Kind: cfi.Undefined}, x19 - 1: {Kind: cfi.Undefined}, v0: {Kind: cfi.Undefined}, v8 + 8: {Kind: cfi.Undefined},
		sp: {Kind: cfi.ValOffset}, tpidrEL0: {Kind: cfi.SameValue}, vg: {Kind: cfi.SameValue},
	}
	for _, preserved := range []bool{true, false} {
		got := make(map[uint32]cfi.Rule)
		for _, r := range defaultRules(preserved) {
			if _, ok := want[uint32(r.Column)]; ok {
				got[uint32(r.Column)] = r.Rule
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("preserved %v (-want +got):\n%s", preserved, diff)
		}
		for _, r := range [...]uint32{x19, x28, x29, v8, v8 + 7} {
			want[r] = cfi.Rule{Kind: cfi.Undefined}
		}
	}
}

// decodeSet decodes a record of n bytes in which the two bytes at offset o are o.
func decodeSet(t *testing.T, source sdk.RegisterSource, owner string, typ uint32, n int) *sdk.Registers {
	t.Helper()
	set := Description().RegisterSet(source, owner, typ)
	if set == nil {
		t.Fatalf("no register set for %d %s %#x", source, owner, typ)
	}
	record := make([]byte, n)
	for i := 0; i+1 < n; i += 2 {
		binary.LittleEndian.PutUint16(record[i:], uint16(i))
	}
	var r sdk.Registers
	set.Decode(record, &r)
	return &r
}

// Every register begins with the bytes at the offset that the record has for it:
// struct elf_prstatus, user_fpsimd_state, the notes of Linux, CONTEXT.
func TestRegisterSetsAreLaidOutAsTheirRecords(t *testing.T) {
	cases := map[string]struct {
		source  sdk.RegisterSource
		owner   string
		typ     uint32
		size    int
		offsets map[uint32]uint16
		sizes   map[uint32]int
	}{
		"prstatus": {sdk.CoreNote, "CORE", 1, 392,
			map[uint32]uint16{x0: 112, x19: 264, x29: 344, x30: 352, sp: 360, pc: 368, cpsr: 376}, map[uint32]int{pc: 8}},
		"fpregset": {sdk.CoreNote, "CORE", 2, 528,
			map[uint32]uint16{v0: 0, v0 + 31: 496, fpsr: 512, fpcr: 516}, map[uint32]int{v0: 16, fpsr: 4}},
		"tls":      {sdk.CoreNote, "LINUX", 0x401, 16, map[uint32]uint16{tpidrEL0: 0, tpidr2: 8}, nil},
		"pac mask": {sdk.CoreNote, "LINUX", 0x406, 16, map[uint32]uint16{pauthDmask: 0, pauthCmask: 8}, nil},
		"sve":      {sdk.CoreNote, "LINUX", 0x405, 544, map[uint32]uint16{sveLength: 8}, map[uint32]int{sveLength: 2}},
		"za":       {sdk.CoreNote, "LINUX", 0x40c, 16, map[uint32]uint16{zaLength: 8}, nil},
		"gcs":      {sdk.CoreNote, "LINUX", 0x410, 24, map[uint32]uint16{gcspr: 16}, nil},
		"context": {sdk.MinidumpContext, "", 912, 912,
			map[uint32]uint16{cpsr: 4, x0: 8, x29: 240, x30: 248, sp: 256, pc: 264, v0: 272, v0 + 31: 768, fpcr: 784, fpsr: 788},
			map[uint32]int{cpsr: 4}},
		"old context": {sdk.MinidumpContext, "", 796, 796,
			map[uint32]uint16{x0: 8, x30: 248, sp: 256, pc: 264, cpsr: 272, fpsr: 276, fpcr: 280, v0: 284, v0 + 31: 780}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := decodeSet(t, c.source, c.owner, c.typ, c.size)
			for r, offset := range c.offsets {
				if b, ok := got.Get(r); !ok || binary.LittleEndian.Uint16(b) != offset {
					t.Errorf("register %d: %x, %v, expected what is at %d", r, b, ok, offset)
				}
			}
			for r, size := range c.sizes {
				if b, _ := got.Get(r); len(b) != size {
					t.Errorf("register %d has %d bytes, expected %d", r, len(b), size)
				}
			}
		})
	}
}

func TestPerfRegistersFollowTheBitsOfTheMask(t *testing.T) {
	set := Description().RegisterSet(sdk.PerfSample, "", 0)
	mask := uint64(1<<29 | 1<<30 | 1<<31 | 1<<32 | 1<<46)
	record := make([]byte, 5*8)
	for i := range 5 {
		binary.LittleEndian.PutUint64(record[8*i:], uint64(100+i))
	}
	var got sdk.Registers
	set.DecodeSample(mask, record, &got)
	for r, want := range map[uint32]uint64{x29: 100, x30: 101, sp: 102, pc: 103, vg: 104} {
		if v, ok := got.Uint64(r, sdk.LittleEndian); !ok || v != want {
			t.Errorf("register %d: %d, %v, expected %d", r, v, ok, want)
		}
	}
	if _, ok := got.Get(x0); ok {
		t.Error("x0 is there, whose bit is not set")
	}
}

func TestBindThreads(t *testing.T) {
	word := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
	var plain, signed, sampled, vectors, without sdk.Registers
	plain.Set(pc, word(0x1234))
	signed.Set(pc, word(0x1234))
	signed.Set(pauthCmask, word(0x7f8<<48))
	signed.Set(sveLength, []byte{32, 0})
	sampled.Set(pc, word(0x1234))
	sampled.Set(vg, word(2))
	vectors.Set(pc, word(0x1234))
	vectors.Set(vg, word(2))
	vectors.Set(z0, make([]byte, 16))
	without.Set(sp, word(8))
	req := &sdk.BindThreadsRequest{Threads: []sdk.ThreadState{{Registers: plain}, {Registers: signed}, {Registers: sampled}, {Registers: vectors}, {Registers: without}}}
	answer, err := New().BindThreads(context.Background(), nil, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(Description(), req); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		mask uint64
		bits uint32 // of z0
	}{{0x7f << 48, 0}, {0x7f8 << 48, 256}, {0x7f << 48, 0}, {0x7f << 48, 128}} {
		b := answer.Threads[i]
		bits := uint32(0)
		for _, w := range b.Widths {
			if w.First == z0 {
				bits = w.Bits
			}
		}
		if b.PC != 0x1234 || b.Lanes != 1 || b.Problem != "" || b.ReturnAddressMask != want.mask || bits != want.bits {
			t.Errorf("thread %d: %+v, expected mask %#x and vectors of %d bits", i, b, want.mask, want.bits)
		}
	}
	if b := answer.Threads[4]; b.Problem == "" {
		t.Errorf("no problem without pc: %+v", b)
	}
}

// A length that no processor has says nothing about the registers.
func TestVectorLengthsAreChecked(t *testing.T) {
	for _, length := range []uint16{0, 8, 17, 272, 0xffff} {
		var r sdk.Registers
		r.Set(sveLength, binary.LittleEndian.AppendUint16(nil, length))
		if w := vectorWidths(&r); w != nil {
			t.Errorf("%d bytes: %+v", length, w)
		}
	}
}

// TestLongDoubleIsBinary128 has the format of AAPCS64 (table 3), and no other machine's.
func TestLongDoubleIsBinary128(t *testing.T) {
	for _, name := range []string{"long double", "_Float128"} {
		if f := Description().FloatFormat(&locexpr.BaseType{Name: name, Encoding: locexpr.EncodingFloat, Bits: 128}); f != locexpr.FloatBinary128 {
			t.Errorf("%s: format %d", name, f)
		}
	}
}
