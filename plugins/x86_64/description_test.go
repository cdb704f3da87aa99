// SPDX-License-Identifier: Apache-2.0

package x86_64

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

func TestArchitecture(t *testing.T) {
	code := []byte{0x55, 0x48, 0x89, 0xe5, 0xe8, 0x00, 0x00, 0x00, 0x00, 0x5d, 0xc3} // push rbp; mov rbp, rsp; call; pop rbp; ret
	archtest.Test(t, New(), archtest.Options{Code: code})
}

func TestDescriptionIsValid(t *testing.T) {
	if err := Description().Validate(); err != nil {
		t.Fatal(err)
	}
}

// Numbers of the psABI, figure 3.36.
func TestRegisterNumbers(t *testing.T) {
	d := Description()
	for name, number := range map[string]uint32{
		"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7, "r8": 8, "r15": 15, "rip": 16,
		"xmm0": 17, "xmm15": 32, "st0": 33, "st7": 40, "mm0": 41, "mm7": 48, "rflags": 49,
		"es": 50, "cs": 51, "ss": 52, "ds": 53, "fs": 54, "gs": 55, "fs.base": 58, "gs.base": 59, "tr": 62, "ldtr": 63,
		"mxcsr": 64, "fcw": 65, "fsw": 66, "xmm16": 67, "xmm31": 82, "k0": 118, "k7": 125, "r16": 130, "r31": 145,
	} {
		if info, ok := d.RegisterByName(name); !ok || info.Number != number {
			t.Errorf("%s: number %d, %v, expected %d", name, info.Number, ok, number)
		}
	}
}

func TestDefaultRules(t *testing.T) {
	want := map[uint32]cfi.Rule{
		rbx: {Kind: cfi.SameValue}, rbp: {Kind: cfi.SameValue}, r12: {Kind: cfi.SameValue}, r15: {Kind: cfi.SameValue},
		rax: {Kind: cfi.Undefined}, r11: {Kind: cfi.Undefined}, xmm0: {Kind: cfi.Undefined}, xmm16 + 15: {Kind: cfi.Undefined},
		rsp: {Kind: cfi.ValOffset}, fsBase: {Kind: cfi.SameValue},
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
		for _, r := range calleeSaved {
			want[r] = cfi.Rule{Kind: cfi.Undefined}
		}
		delete(want, r13)
		delete(want, r14)
	}
}

// decodeSet decodes a record of n bytes in which the word at offset o is o.
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

// Every register begins with the bytes at the offset that the record has for
// it: struct elf_prstatus, user_fpregs_struct, the XSAVE area, CONTEXT.
func TestRegisterSetsAreLaidOutAsTheirRecords(t *testing.T) {
	cases := map[string]struct {
		source  sdk.RegisterSource
		owner   string
		typ     uint32
		size    int
		offsets map[uint32]uint16
		sizes   map[uint32]int
	}{
		"prstatus": {sdk.CoreNote, "CORE", 1, 336,
			map[uint32]uint16{r15: 112, rbp: 144, rbx: 152, r11: 160, rax: 192, rdi: 224, rip: 240, cs: 248, rflags: 256,
				rsp: 264, ss: 272, fsBase: 280, gsBase: 288, ds: 296, gs: 320},
			map[uint32]int{rip: 8, cs: 2, rflags: 8}},
		"fpregset": {sdk.CoreNote, "CORE", 2, 512,
			map[uint32]uint16{fcw: 0, fsw: 2, mxcsr: 24, st0: 32, st0 + 7: 144, xmm0: 160, xmm0 + 15: 400},
			map[uint32]int{st0: 10, xmm0: 16, mxcsr: 4}},
		"xstate": {sdk.CoreNote, "LINUX", 0x202, 2440,
			map[uint32]uint16{fcw: 0, xmm0: 160, xmm0 + 15: 400},
			map[uint32]int{xmm0: 32, xmm0 + 15: 32}},
		"context": {sdk.MinidumpContext, "", 1232, 1232,
			map[uint32]uint16{cs: 0x38, ss: 0x42, rflags: 0x44, rax: 0x78, rsp: 0x98, rbp: 0xa0, r15: 0xf0, rip: 0xf8,
				fcw: 0x100, mxcsr: 0x118, st0: 0x120, xmm0: 0x1a0, xmm0 + 15: 0x290},
			map[uint32]int{rflags: 4, cs: 2}},
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

func TestXstateAddsTheHighHalvesOfYmm(t *testing.T) {
	got := decodeSet(t, sdk.CoreNote, "LINUX", ntX86Xstate, 832)
	b, ok := got.Get(xmm0 + 3)
	if !ok || len(b) != 32 || binary.LittleEndian.Uint16(b) != 208 || binary.LittleEndian.Uint16(b[16:]) != 576+48 {
		t.Errorf("ymm3: %x, %v", b, ok)
	}
	short := decodeSet(t, sdk.CoreNote, "LINUX", ntX86Xstate, 576)
	if b, _ := short.Get(xmm0); len(b) != 16 {
		t.Errorf("xmm0 of a record without AVX has %d bytes", len(b))
	}
}

func TestPerfRegistersFollowTheBitsOfTheMask(t *testing.T) {
	set := Description().RegisterSet(sdk.PerfSample, "", 0)
	// ip, bp, r15 and both halves of xmm1.
	mask := uint64(1<<8 | 1<<6 | 1<<23 | 1<<34 | 1<<35)
	record := make([]byte, 5*8)
	for i := range 5 {
		binary.LittleEndian.PutUint64(record[8*i:], uint64(100+i))
	}
	var got sdk.Registers
	set.DecodeSample(mask, record, &got)
	for r, want := range map[uint32]uint64{rbp: 100, rip: 101, r15: 102} {
		if v, ok := got.Uint64(r, sdk.LittleEndian); !ok || v != want {
			t.Errorf("register %d: %d, %v, expected %d", r, v, ok, want)
		}
	}
	if b, ok := got.Get(xmm0 + 1); !ok || len(b) != 16 || b[0] != 103 || b[8] != 104 {
		t.Errorf("xmm1: %x, %v", b, ok)
	}
	if _, ok := got.Get(rax); ok {
		t.Error("rax is there, whose bit is not set")
	}
}

func TestBindThreads(t *testing.T) {
	var with, without sdk.Registers
	with.Set(rip, []byte{1, 2, 3, 4, 5, 6, 7, 0})
	without.Set(rsp, make([]byte, 8))
	req := &sdk.BindThreadsRequest{Threads: []sdk.ThreadState{{Registers: with}, {Registers: without}}}
	answer, err := New().BindThreads(context.Background(), nil, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(Description(), req); err != nil {
		t.Fatal(err)
	}
	if b := answer.Threads[0]; b.PC != 0x07060504030201 || b.Lanes != 1 || b.Problem != "" {
		t.Errorf("%+v", b)
	}
	if b := answer.Threads[1]; b.Problem == "" {
		t.Errorf("no problem without rip: %+v", b)
	}
}

// TestFormatsOf16Bytes tells x87's numbers from binary128 by the names of their types.
func TestFormatsOf16Bytes(t *testing.T) {
	for name, want := range map[string]locexpr.FloatFormat{
		"long double": locexpr.FloatExtended, "_Float64x": locexpr.FloatExtended, "real": locexpr.FloatExtended, "long_long_float": locexpr.FloatExtended,
		"real(kind=10)": locexpr.FloatExtended, "__float128": locexpr.FloatBinary128, "_Float128": locexpr.FloatBinary128, "f128": locexpr.FloatBinary128, "real(kind=16)": locexpr.FloatBinary128,
	} {
		if f := Description().FloatFormat(&locexpr.BaseType{Name: name, Encoding: locexpr.EncodingFloat, Bits: 128}); f != want {
			t.Errorf("%s: format %d, expected %d", name, f, want)
		}
	}
}
