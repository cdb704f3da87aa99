// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unwindd/unwindd/sdk"
)

func disassembled(t *testing.T, req *sdk.DisassembleRequest) *sdk.DisassembleAnswer {
	t.Helper()
	answer, err := New().Disassemble(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(Description(), req); err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestDisassemble writes what is known of instructions of gfx90a, and words that are none.
func TestDisassemble(t *testing.T) {
	var code []byte
	for _, w := range []uint32{
		0xbf8c0070,             // s_waitcnt
		0x7e040280,             // v_mov_b32 v2, 0
		0x8004ff04, 0xfffffe30, // s_add_u32 s4, s4, literal
		0xbe9e1e04,             // s_swappc_b64 s[30:31], s[4:5]
		0xbe801d1e,             // s_setpc_b64 s[30:31]
		0xbf880002,             // s_cbranch_execz
		0xbf82fffe,             // s_branch
		0xbe862001,             // s_and_saveexec_b64 s[6:7], ...
		0xd3d8401a, 0x18000102, // v_accvgpr_read_b32
		0xdc5c0000, 0x02000000, // flat_load_dwordx4 v[2:5]
		0xbf810000, // s_endpgm
		0xbfff0000, // no instruction
	} {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	answer := disassembled(t, &sdk.DisassembleRequest{Address: 0x1000, Code: append(code, 1, 2), Processor: "GFX90A:xnack+", Lanes: 64})
	var got []string
	for _, in := range answer.Instructions {
		got = append(got, fmt.Sprintf("%#x %d %s", in.Address, in.Size, in.Text))
	}
	want := []string{
		"0x1000 4 .long 0xbf8c0070  // writes no register",
		"0x1004 4 .long 0x7e040280  // writes v2",
		"0x1008 8 .long 0x8004ff04, 0xfffffe30  // writes s4, scc",
		"0x1010 4 .long 0xbe9e1e04  // calls the address in s[4:5], writes s[30:31]",
		"0x1014 4 .long 0xbe801d1e  // jumps to the address in s[30:31]",
		"0x1018 4 .long 0xbf880002  // jumps to 0x1024 if EXEC is 0",
		"0x101c 4 .long 0xbf82fffe  // jumps to 0x1018",
		"0x1020 4 .long 0xbe862001  // writes s[6:7], exec, scc",
		"0x1024 8 .long 0xd3d8401a, 0x18000102  // writes v26",
		"0x102c 8 .long 0xdc5c0000, 0x02000000  // writes v[2:5]",
		"0x1034 4 .long 0xbf810000  // ends the wave",
		"0x1038 4 .long 0xbfff0000  // no instruction that is known",
		"0x103c 2 .byte 0x01, 0x02  // no instruction that is known",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(sdk.LLVMTarget{Triple: "amdgcn-amd-amdhsa", CPU: "gfx90a"}, answer.LLVM); d != "" {
		t.Errorf("LLVM's target (-want +got): %s", d)
	}
}

// TestDisassembleForWaves: LLVM is told the wave size where it is not the usual one.
func TestDisassembleForWaves(t *testing.T) {
	for _, c := range []struct {
		processor string
		lanes     uint32
		features  string
	}{
		{"gfx900", 0, ""}, {"gfx900", 64, ""}, {"gfx900", 32, ""}, // gfx9 has waves of 64 only
		{"gfx1030", 0, ""}, {"gfx1030", 32, ""}, {"gfx1030", 64, "+wavefrontsize64"},
		{"gfx1201", 64, "+wavefrontsize64"}, {"gfx11-generic", 7, ""},
	} {
		a := disassembled(t, &sdk.DisassembleRequest{Processor: c.processor, Lanes: c.lanes, Code: []byte{0, 0, 0x80, 0xbf}})
		if a.LLVM.Features != c.features || a.LLVM.CPU != c.processor {
			t.Errorf("%s of %d lanes: %+v, expected features %q", c.processor, c.lanes, a.LLVM, c.features)
		}
	}
	for _, processor := range []string{"", "gfx803", "gfx9999"} {
		if a, err := New().Disassemble(context.Background(), &sdk.DisassembleRequest{Processor: processor, Code: make([]byte, 4)}); err == nil {
			t.Errorf("%q: %+v", processor, a)
		}
	}
}

func FuzzDisassemble(f *testing.F) {
	f.Add([]byte("\x70\x00\x8c\xbf\x04\x1e\x9e\xbe"), "gfx90a", uint32(64))
	f.Add([]byte("\x00\x00\x70\xdc\x0a\x00\x00\x00\x01"), "gfx1201", uint32(32))
	f.Fuzz(func(t *testing.T, code []byte, processor string, lanes uint32) {
		req := &sdk.DisassembleRequest{Address: 1 << 63, Code: code, Processor: processor, Lanes: lanes}
		answer, err := New().Disassemble(context.Background(), req)
		if err != nil {
			return
		}
		if err := answer.Validate(Description(), req); err != nil {
			t.Fatal(err)
		}
		at := req.Address
		for _, in := range answer.Instructions {
			if in.Address != at || in.Text == "" {
				t.Fatalf("%+v at %#x", in, at)
			}
			at += uint64(in.Size)
		}
		if at != req.Address+uint64(len(code)) {
			t.Errorf("%d of %d bytes", at-req.Address, len(code))
		}
	})
}
