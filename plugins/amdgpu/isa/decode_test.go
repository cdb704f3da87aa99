// SPDX-License-Identifier: Apache-2.0

package isa

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func target(t testing.TB, processor string, lanes uint32) Target {
	t.Helper()
	target, err := NewTarget(processor, lanes)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// code is the bytes of an instruction given as its words.
func code(words ...uint32) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func decode(t testing.TB, processor string, lanes uint32, words ...uint32) Inst {
	t.Helper()
	in, err := target(t, processor, lanes).Decode(code(words...), 0x1000)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		processor string
		lanes     uint32
		want      string
	}{
		{"gfx90a:sramecc+:xnack-", 64, ""},
		{"GFX1030", 32, ""},
		{"gfx1030", 64, ""},
		{"gfx11-generic", 32, ""},
		{"gfx90a", 32, "waves of 32 lanes"},
		{"gfx1100", 16, "waves of 16 lanes"},
		{"gfx803", 64, "expected one of gfx9 to gfx12"},
		{"gfx1250", 32, ""},
		{"gfx1251:xnack+", 32, ""},
		{"gfx1250", 64, "waves of 64 lanes"},
		{"gfx1310", 32, "expected one of gfx9 to gfx12"},
		{"", 64, "expected one of gfx9 to gfx12"},
	} {
		got, err := NewTarget(c.processor, c.lanes)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.processor, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %+v, %v", c.processor, got, err)
		}
	}
	if _, err := (Target{}).Decode(code(0xbf810000), 0); !errors.Is(err, ErrUnknown) {
		t.Errorf("no target: %v", err)
	}
}

func TestWhatIsNoInstruction(t *testing.T) {
	for _, c := range []struct {
		processor string
		code      []byte
		want      error
	}{
		{"gfx90a", nil, ErrTruncated},
		{"gfx90a", []byte{0, 0, 0x80}, ErrTruncated},
		{"gfx90a", code(0xbe8000ff), ErrTruncated},                               // s_mov_b32 with a literal
		{"gfx90a", code(0xe0700004), ErrTruncated},                               // buffer_store_dword
		{"gfx1030", code(0xf0800f0c, 0x00820005), ErrTruncated},                  // image_sample with addresses that follow
		{"gfx90a", code(0xfc000000), ErrUnknown},                                 // no format
		{"gfx90a", code(0xbe80ff00), ErrUnknown},                                 // s_mov_b32's format, no operation
		{"gfx1100", code(0xdc030000, 0, 0), ErrUnknown},                          // no segment of FLAT
		{"gfx90a", code(0xd1d60001, 0x040e04ff, 0x12345678), ErrUnknown},         // v_med3_f32 with a literal
		{"gfx90a", code(0xe0700004, 0xff000500, 0x12345678, 0), ErrUnknown},      // a buffer's offset that is a literal
		{"gfx90a", code(0xd0c200ff, 0x00020300), ErrUnknown},                     // a comparison that writes to no register
		{"gfx90a", code(0x7e0000fa, 0), ErrUnknown},                              // v_nop with a word about lanes
		{"gfx942", code(0xf0800f00, 0x00820005), ErrUnknown},                     // images
		{"gfx1030", code(0xc0020000, 0), ErrUnknown},                             // gfx9's SMEM
		{"gfx90a", code(0xf4040000, 0xfa000000), ErrUnknown},                     // gfx10's
		{"gfx1200", code(0xdc500000, 0x007f0001, 0, 0), ErrUnknown},              // gfx11's FLAT
		{"gfx1100", code(0xee050000, 0, 0), ErrUnknown},                          // gfx12's
		{"gfx1200", append(code(0xed05007c, 0x00020005), 1, 2, 3), ErrTruncated}, // scratch_load_dword
	} {
		lanes := uint32(64)
		in, err := target(t, c.processor, lanes).Decode(c.code, 0x40)
		if !errors.Is(err, c.want) {
			t.Errorf("%s %x: %+v, %v, expected %v", c.processor, c.code, in, err, c.want)
		}
	}
}

// scalars lists the scalar registers among the writes.
func scalars(w *Writes) []Reg {
	var list []Reg
	w.EachScalar(func(r Reg) { list = append(list, r) })
	return list
}

func TestWrites(t *testing.T) {
	for _, c := range []struct {
		name, processor string
		lanes           uint32
		words           []uint32
		scalars         []Reg
		vectors         []Span
		all             bool
	}{
		{name: "s_or_saveexec_b64 s[4:5], -1", processor: "gfx90a", lanes: 64, words: []uint32{0xbe8421c1}, scalars: []Reg{4, 5, ExecLo, ExecHi, SCC}},
		{name: "s_or_saveexec_b32 s0, -1", processor: "gfx1030", lanes: 32, words: []uint32{0xbe803dc1}, scalars: []Reg{0, ExecLo, SCC}},
		{name: "s_mov_b32 m0, s0, the register's number of gfx9", processor: "gfx90a", lanes: 64, words: []uint32{0xbefc0000}, scalars: []Reg{M0}},
		{name: "s_mov_b32 m0, s0, its number of gfx11", processor: "gfx1100", lanes: 32, words: []uint32{0xbefd0000}, scalars: []Reg{M0}},
		{name: "s_mov_b32 null, s0", processor: "gfx1100", lanes: 32, words: []uint32{0xbefc0000}},
		{name: "s_mov_b64 flat_scratch, s[0:1]", processor: "gfx900", lanes: 64, words: []uint32{0xbee60100}, scalars: []Reg{FlatScratchLo, FlatScratchHi}},
		{name: "s_mov_b64 s[102:103], s[0:1], which are registers like others from gfx10 on", processor: "gfx1030", lanes: 32, words: []uint32{0xbee60400}, scalars: []Reg{102, 103}},
		{name: "s_setreg_b32 hwreg(HW_REG_FLAT_SCR_LO), s0", processor: "gfx1030", lanes: 32, words: []uint32{0xb980f814}, scalars: []Reg{FlatScratchLo}},
		{name: "s_setreg_b32 hwreg(HW_REG_MODE), s0", processor: "gfx1030", lanes: 32, words: []uint32{0xb980f801}},
		{name: "v_add_co_u32_e32 v0, vcc, v1, v2", processor: "gfx90a", lanes: 64, words: []uint32{0x32000501}, scalars: []Reg{VCCLo, VCCHi}, vectors: []Span{{VGPR, 1, 0}}},
		{name: "v_add_co_ci_u32_e32 v0, vcc_lo, v1, v2, vcc_lo", processor: "gfx1030", lanes: 32, words: []uint32{0x50000501}, scalars: []Reg{VCCLo}, vectors: []Span{{VGPR, 1, 0}}},
		{name: "v_cmp_eq_u32_sdwa s[6:7], v1, v2", processor: "gfx900", lanes: 64, words: []uint32{0x7d9404f9, 0x06068601}, scalars: []Reg{6, 7}},
		{name: "v_cmpx_eq_u32_e32 v1, v2", processor: "gfx1030", lanes: 32, words: []uint32{0x7da40501}, scalars: []Reg{ExecLo}},
		{name: "v_writelane_b32 v40, s30, 0", processor: "gfx90a", lanes: 64, words: []uint32{0xd28a0028, 0x0001001e}, vectors: []Span{{VGPR, 1, 40}}, all: true},
		{name: "v_mfma_f32_32x32x1f32 a[0:31], v0, v1, 0", processor: "gfx908", lanes: 64, words: []uint32{0xd3c00000, 0x02020300}, vectors: []Span{{AGPR, 32, 0}}, all: true},
		{name: "v_mfma_f32_32x32x1f32 v[0:31], v0, v1, 0", processor: "gfx90a", lanes: 64, words: []uint32{0xd3c00000, 0x02020300}, vectors: []Span{{VGPR, 32, 0}}, all: true},
		{name: "v_mfma_scale_f32_32x32x64_f8f6f4 a[0:15], ..., of 16 bytes", processor: "gfx950", lanes: 64, words: []uint32{0xd3ac0000, 0x00022b14, 0xd3ae8800, 0x04020904}, vectors: []Span{{AGPR, 16, 0}}, all: true},
		{name: "v_swap_b32 v1, v2", processor: "gfx90a", lanes: 64, words: []uint32{0x7e02a302}, vectors: []Span{{VGPR, 1, 1}, {VGPR, 1, 2}}},
		{name: "v_dual_mov_b32 v4, v5 :: v_dual_mov_b32 v7, v8", processor: "gfx1100", lanes: 32, words: []uint32{0xca100105, 0x04060108}, vectors: []Span{{VGPR, 1, 4}, {VGPR, 1, 7}}},
		{name: "v_mov_b16_e32 v3.h, v1.l", processor: "gfx1100", lanes: 32, words: []uint32{0x7f063901}, vectors: []Span{{VGPR, 1, 3}}},
		{name: "flat_atomic_add v[0:1], v2", processor: "gfx90a", lanes: 64, words: []uint32{0xdd080000, 0x00000200}},
		{name: "flat_atomic_add v3, v[0:1], v2 glc", processor: "gfx90a", lanes: 64, words: []uint32{0xdd090000, 0x03000200}, vectors: []Span{{VGPR, 1, 3}}},
		{name: "buffer_load_dword off, s[8:11], s3 lds", processor: "gfx900", lanes: 64, words: []uint32{0xe0510000, 0x03020000}},
		{name: "buffer_load_dword v5, ... tfe", processor: "gfx1030", lanes: 32, words: []uint32{0xe0300000, 0x80820500}, vectors: []Span{{VGPR, 2, 5}}},
		{name: "buffer_load_dword a5, ..., whose bit is that of tfe elsewhere", processor: "gfx90a", lanes: 64, words: []uint32{0xe0500004, 0x80810500}, vectors: []Span{{AGPR, 1, 5}}},
		{name: "image_load v[0:3], ... dmask:0xf", processor: "gfx1030", lanes: 32, words: []uint32{0xf0000f00, 0x00020005}, vectors: []Span{{VGPR, 4, 0}}},
		{name: "image_sample v[0:1], ... dmask:0xf d16", processor: "gfx1100", lanes: 32, words: []uint32{0xf06e0f00, 0x10020005}, vectors: []Span{{VGPR, 2, 0}}},
		{name: "image_bvh_dual_intersect_ray v[0:9], [v[0:1], v[11:12], v[3:5], v[6:8], v[9:10]]", processor: "gfx1200", lanes: 32, words: []uint32{0xd3e00010, 0x09000000, 0x06030b00}, vectors: []Span{{VGPR, 10, 0}, {VGPR, 3, 3}, {VGPR, 3, 6}}},
	} {
		in := decode(t, c.processor, c.lanes, c.words...)
		want := Writes{IsOfAllLanes: c.all}
		copy(want.Vectors[:], c.vectors)
		got := in.Writes
		if list := scalars(&got); !slices.Equal(list, c.scalars) {
			t.Errorf("%s: writes scalars %d, expected %d", c.name, list, c.scalars)
		}
		got.Scalars = want.Scalars
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if int(in.Size) != 4*len(c.words) {
			t.Errorf("%s: %d bytes", c.name, in.Size)
		}
		if exec := slices.Contains(c.scalars, ExecLo); in.Writes.HasExec() != exec {
			t.Errorf("%s: writes EXEC: %t", c.name, in.Writes.HasExec())
		}
	}
}

func TestWritesThatOnlyTheMachineKnows(t *testing.T) {
	in := decode(t, "gfx90a", 64, 0xbe842c00) // s_movreld_b32 s4, s0
	if !in.Writes.HasUnknownScalars || !in.Writes.HasScalar(77) || in.Writes.HasScalar(ExecLo) || in.Writes.HasScalar(SCC) || !in.Writes.HasScalar(FlatScratchHi) || !slices.Equal(scalars(&in.Writes), []Reg{4, 5}) {
		t.Errorf("s_movreld_b32: %+v", in.Writes)
	}
	in = decode(t, "gfx1030", 32, 0x7e088501) // v_movreld_b32_e32 v4, v1
	if !in.Writes.HasUnknownVectors || !in.Writes.HasVector(VGPR, 200) {
		t.Errorf("v_movreld_b32: %+v", in.Writes)
	}
}

func constant(width uint8, value int64) Operand {
	return Operand{Kind: Constant, Width: width, Value: value}
}

func sgprs(first Reg, width uint8) Operand {
	return Operand{Kind: Scalar, Width: width, Reg: uint16(first)}
}

func vgprs(first uint16, width uint8) Operand { return Operand{Kind: VGPR, Width: width, Reg: first} }

func TestOperands(t *testing.T) {
	agpr := Operand{Kind: AGPR, Width: 1, Reg: 7}
	for _, c := range []struct {
		name, processor string
		lanes           uint32
		words           []uint32
		want            Inst
	}{
		{"s_mov_b32 s0, 0xfffffffe", "gfx90a", 64, []uint32{0xbe8000ff, 0xfffffffe}, Inst{Op: SMovB32, Dst: sgprs(0, 1), Src: [2]Operand{constant(1, -2)}}},
		{"s_mov_b64 s[0:1], 0xfffffffe", "gfx90a", 64, []uint32{0xbe8001ff, 0xfffffffe}, Inst{Op: SMovB64, Dst: sgprs(0, 2), Src: [2]Operand{constant(2, 0xfffffffe)}}},
		{"s_mov_b64 exec, -1", "gfx90a", 64, []uint32{0xbefe01c1}, Inst{Op: SMovB64, Dst: sgprs(ExecLo, 2), Src: [2]Operand{constant(2, -1)}}},
		{"s_mov_b64 s[0:1], -4.0", "gfx90a", 64, []uint32{0xbe8001f7}, Inst{Op: SMovB64, Dst: sgprs(0, 2), Src: [2]Operand{constant(2, int64(math.Float64bits(-4)))}}},
		{"s_mov_b32 s0, -4.0", "gfx90a", 64, []uint32{0xbe8000f7}, Inst{Op: SMovB32, Dst: sgprs(0, 1), Src: [2]Operand{constant(1, int64(int32(math.Float32bits(-4))))}}},
		{"s_ashr_i64 s[0:1], 0xfffffffe, 64", "gfx90a", 64, []uint32{0x9080c0ff, 0xfffffffe}, Inst{Op: SAshrI64, Dst: sgprs(0, 2), Src: [2]Operand{constant(2, -2), constant(1, 64)}}},
		{"s_movk_i32 s0, 0x8000", "gfx90a", 64, []uint32{0xb0008000}, Inst{Op: SMovB32, Dst: sgprs(0, 1), Src: [2]Operand{constant(1, -0x8000)}}},
		{"s_addk_i32 s32, 0xfc00", "gfx90a", 64, []uint32{0xb720fc00}, Inst{Op: SAddI32, Dst: sgprs(32, 1), Src: [2]Operand{sgprs(32, 1), constant(1, -0x400)}}},
		{"s_lshl_b64 s[0:1], s[2:3], s4", "gfx90a", 64, []uint32{0x8e800402}, Inst{Op: SLshlB64, Dst: sgprs(0, 2), Src: [2]Operand{sgprs(2, 2), sgprs(4, 1)}}},
		{"s_setreg_imm32_b32 hwreg(HW_REG_MODE), 5", "gfx90a", 64, []uint32{0xba00f801, 5}, Inst{Op: SSetreg, Src: [2]Operand{constant(1, 5), constant(1, 0xf801)}}},
		{"s_mov_b32 s0, null", "gfx1030", 32, []uint32{0xbe80037d}, Inst{Op: SMovB32, Dst: sgprs(0, 1), Src: [2]Operand{constant(1, 0)}}},
		{"s_mov_b32 s0, src_shared_base", "gfx1030", 32, []uint32{0xbe8003eb}, Inst{Op: SMovB32, Dst: sgprs(0, 1), Src: [2]Operand{{Kind: Machine, Width: 1}}}},
		{"v_writelane_b32 v40, s30, m0", "gfx90a", 64, []uint32{0xd28a0028, 0x0000f81e}, Inst{Op: VWritelane, Dst: vgprs(40, 1), Src: [2]Operand{sgprs(30, 1), sgprs(M0, 1)}}},
		{"v_readlane_b32 s31, v40, 1", "gfx1100", 32, []uint32{0xd760001f, 0x00010328}, Inst{Op: VReadlane, Dst: sgprs(31, 1), Src: [2]Operand{vgprs(40, 1), constant(1, 1)}}},
		{"v_accvgpr_write_b32 a7, v3", "gfx908", 64, []uint32{0xd3d94007, 0x18000103}, Inst{Op: VMovB32, Dst: agpr, Src: [2]Operand{vgprs(3, 1)}}},
		{"v_accvgpr_read_b32 v3, a7", "gfx90a", 64, []uint32{0xd3d84003, 0x18000107}, Inst{Op: VMovB32, Dst: vgprs(3, 1), Src: [2]Operand{agpr}}},
		{"v_mov_b32_e64 v0, v1, which an omod changes", "gfx90a", 64, []uint32{0xd1410000, 0x08000101}, Inst{Op: Other}},
		{"v_mov_b32_dpp v0, v1 row_shr:1", "gfx90a", 64, []uint32{0x7e0002fa, 0xff011101}, Inst{Op: Other}},
		{"buffer_store_dword v5, off, s[0:3], s32 offset:4", "gfx90a", 64, []uint32{0xe0700004, 0x20000500}, Inst{Op: BufferStore, Bytes: 4, Src: [2]Operand{vgprs(5, 1)}, Base: sgprs(0, 4), SOffset: sgprs(32, 1), Offset: 4}},
		{"buffer_load_dword v5, v[9:10], s[4:7], s33 idxen offen offset:4095", "gfx900", 64, []uint32{0xe0503fff, 0x21010509}, Inst{Op: BufferLoad, Bytes: 4, Dst: vgprs(5, 1), VAddr: vgprs(9, 2), Base: sgprs(4, 4), SOffset: sgprs(33, 1), Offset: 4095, IsIndexed: true}},
		{"buffer_store_b32 v5, off, s[0:3], s32 offset:4", "gfx1200", 32, []uint32{0xc4068020, 0x00800005, 0x00000400}, Inst{Op: BufferStore, Bytes: 4, Src: [2]Operand{vgprs(5, 1)}, Base: sgprs(0, 4), SOffset: sgprs(32, 1), Offset: 4}},
		{"scratch_load_dword v5, v1, off offset:-4", "gfx900", 64, []uint32{0xdc505ffc, 0x057f0001}, Inst{Op: ScratchLoad, Bytes: 4, Dst: vgprs(5, 1), VAddr: vgprs(1, 1), Offset: -4}},
		{"scratch_load_dword v5, v3, s2 offset:-8", "gfx942", 64, []uint32{0xdc507ff8, 0x05020003}, Inst{Op: ScratchLoad, Bytes: 4, Dst: vgprs(5, 1), VAddr: vgprs(3, 1), Base: sgprs(2, 1), Offset: -8}},
		{"scratch_load_dword v5, off, off offset:16", "gfx942", 64, []uint32{0xdc504010, 0x057f0000}, Inst{Op: ScratchLoad, Bytes: 4, Dst: vgprs(5, 1), Offset: 16}},
		{"scratch_store_dword off, v5, s2 offset:-16", "gfx1030", 32, []uint32{0xdc705ff0 &^ 0x1000, 0x00020500}, Inst{Op: ScratchStore, Bytes: 4, Src: [2]Operand{vgprs(5, 1)}, Base: sgprs(2, 1), Offset: -16}},
		{"scratch_load_dword v5, off, off offset:16", "gfx1030", 32, []uint32{0xdc304010, 0x057f0000}, Inst{Op: ScratchLoad, Bytes: 4, Dst: vgprs(5, 1), Offset: 16}},
		{"scratch_load_dword v5, v1, off offset:-4", "gfx1030", 32, []uint32{0xdc304ffc, 0x057d0001}, Inst{Op: ScratchLoad, Bytes: 4, Dst: vgprs(5, 1), VAddr: vgprs(1, 1), Offset: -4}},
		{"scratch_store_b32 v3, v5, s2 offset:-16", "gfx1100", 32, []uint32{0xdc691ff0, 0x00820503}, Inst{Op: ScratchStore, Bytes: 4, Src: [2]Operand{vgprs(5, 1)}, VAddr: vgprs(3, 1), Base: sgprs(2, 1), Offset: -16}},
		{"scratch_store_b32 v3, v5, s2 offset:-16", "gfx1200", 32, []uint32{0xed068002, 0x02820000, 0xfffff003}, Inst{Op: ScratchStore, Bytes: 4, Src: [2]Operand{vgprs(5, 1)}, VAddr: vgprs(3, 1), Base: sgprs(2, 1), Offset: -16}},
	} {
		got := decode(t, c.processor, c.lanes, c.words...)
		got.Writes, c.want.Size = Writes{}, uint8(4*len(c.words))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s of %s: %s", c.name, c.processor, diff)
		}
	}
}

func TestControl(t *testing.T) {
	for _, c := range []struct {
		name   string
		word   uint32
		pc     uint64
		op     Op
		flow   Flow
		target uint64
		dst    Operand
		src    Operand
	}{
		{"s_branch backward", 0xbf82fff0, 0x1000, SBranch, Branch, 0x1004 - 64, Operand{}, Operand{}},
		{"s_branch before zero wraps around", 0xbf828000, 0, SBranch, Branch, 1<<64 - 0x1fffc, Operand{}, Operand{}},
		{"s_cbranch_execz", 0xbf880001, 0x1000, SCbranchEXECZ, CondBranch, 0x1008, Operand{}, Operand{}},
		{"s_setpc_b64 s[30:31]", 0xbe801d1e, 0x1000, SSetpc, Indirect, 0, Operand{}, sgprs(30, 2)},
		{"s_swappc_b64 s[30:31], s[4:5]", 0xbe9e1e04, 0x1000, SSwappc, IndirectCall, 0, sgprs(30, 2), sgprs(4, 2)},
		{"s_call_b64 s[30:31], 4", 0xba9e0004, 0x1000, SCall, Call, 0x1014, sgprs(30, 2), Operand{}},
		{"s_getpc_b64 s[4:5]", 0xbe841c00, 0x1000, SGetpc, Next, 0, sgprs(4, 2), Operand{}},
		{"s_endpgm", 0xbf810000, 0x1000, SEndpgm, End, 0, Operand{}, Operand{}},
		{"s_cbranch_join s[0:1]", 0xbe802e00, 0x1000, SFork, Fork, 0, Operand{}, Operand{}},
		{"s_waitcnt", 0xbf8c0070, 0x1000, Other, Next, 0, Operand{}, Operand{}},
	} {
		in, err := target(t, "gfx90a", 64).Decode(code(c.word), c.pc)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if in.Op != c.op || in.Flow != c.flow || in.Target != c.target || in.Dst != c.dst {
			t.Errorf("%s: %+v", c.name, in)
		}
		if c.src.Kind != None && in.Src[0] != c.src {
			t.Errorf("%s: from %+v, expected %+v", c.name, in.Src[0], c.src)
		}
	}
}

// TestEveryOperationHasANumber finds operations that no generation has.
func TestEveryOperationHasANumber(t *testing.T) {
	have := [opCount + 1]bool{VCmp: true, VCmpx: true} // known by their format: see comparison
	for _, table := range tables {
		for _, rows := range table {
			for i := range rows {
				have[rows[i].op] = true
			}
		}
	}
	for op, ok := range have {
		if !ok {
			t.Errorf("no generation has operation %d", op)
		}
	}
}

// TestTablesSayEachOperationOnce holds the tables to what makes them readable: there
// is one row for all operations that write alike, and no number of a generation is
// listed twice, or where its base or a shorter form says the same already.
func TestTablesSayEachOperationOnce(t *testing.T) {
	for _, table := range tables {
		for f, rows := range table {
			seen := map[entry]bool{}
			for i := range rows {
				e := rows[i].entry()
				if seen[e] || rows[i].numbers == (numbers{}) {
					t.Errorf("format %d: %+v has two rows, or no number", f, e)
				}
				seen[e] = true
			}
		}
	}
	for g := gfx9; g < generations; g++ {
		var base, short machine
		base.enter(lineage[g].base)
		short.enter(g)
		clear(short.entries[vop3])
		short.inLongForm(lineage[g].family.vop1InVOP3)
		listed := map[[2]uint32]bool{}
		for _, table := range tables {
			for f, rows := range table {
				for i := range rows {
					e := rows[i].entry()
					rows[i].numbers.each(g, func(n uint32) {
						key := [2]uint32{uint32(f), n}
						if listed[key] || base.entries[f][n] == e || format(f) == vop3 && short.entries[vop3][n] != (entry{}) {
							t.Errorf("generation %d, format %d: %#x is listed twice", g, f, n)
						}
						listed[key] = true
					})
				}
			}
		}
	}
}

// textSection is the code of a fixture.
func textSection(t testing.TB, name string) []byte {
	t.Helper()
	f, err := elf.Open("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := f.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	b := textSection(t, "amd_h.gfx90a.co")
	target := target(t, "gfx90a", 64)
	if n := testing.AllocsPerRun(5, func() {
		for at := 0; at < 0x200; {
			in, err := target.Decode(b[at:], uint64(at))
			if err != nil {
				t.Fatal(err)
			}
			at += int(in.Size)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct {
		name, processor string
		lanes           uint32
	}{{"amd_h.gfx90a.co", "gfx90a", 64}, {"amd_k.gfx1100.co", "gfx1100", 32}} {
		b.Run(c.processor, func(b *testing.B) {
			code, target := textSection(b, c.name), target(b, c.processor, c.lanes)
			b.ReportAllocs()
			for at, i := 0, 0; i < b.N; i++ {
				in, err := target.Decode(code[at:], uint64(at))
				if err != nil { // what fills the room between functions
					at = 0
					continue
				}
				if at += int(in.Size); at >= len(code)-20 {
					at = 0
				}
			}
		})
	}
}

// FuzzDecode: any bytes give an instruction that lies within them, the same one
// if nothing follows, or an error of the two kinds.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"be8421c1", "be8000fffffffffe", "e070000420000500", "f0800f0c0082000512345678", "d3ac000000022b14d3ae880004020904",
		"d70000010001020300000000", "ca10010504060108", "ed06800202820000fffff003", "7e0002faff011101", "d3e000100900000006030b00",
	} {
		b, err := hex.DecodeString(seed)
		if err != nil {
			f.Fatal(err)
		}
		for i := 0; i+4 <= len(b); i += 4 {
			slices.Reverse(b[i : i+4])
		}
		for i := range sampleTargets {
			f.Add(uint8(i), uint64(0x1000), b)
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, pc uint64, b []byte) {
		s := sampleTargets[int(n)%len(sampleTargets)]
		target := target(t, s.processor, s.lanes)
		in, err := target.Decode(b, pc)
		if err != nil {
			if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrUnknown) {
				t.Errorf("%v", err)
			}
			return
		}
		if in.Size < 4 || in.Size > 20 || in.Size%4 != 0 || int(in.Size) > len(b) {
			t.Fatalf("%d bytes of %d", in.Size, len(b))
		}
		again, err := target.Decode(b[:in.Size], pc)
		if err != nil || again != in {
			t.Errorf("%+v, without what follows %+v, %v", in, again, err)
		}
	})
}
