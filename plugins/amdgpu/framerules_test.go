// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

const codeStart = 0x1000

// assemble returns the code of a program and where its labels are.
func assemble(t testing.TB, processor, text string, options ...string) ([]byte, map[string]uint64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "code.o")
	cmd := exec.Command(oracle.Tool(t, "llvm-mc-22"), append([]string{"-triple", "amdgcn-amd-amdhsa", "-mcpu=" + processor, "-filetype=obj", "-o", path}, options...)...)
	cmd.Stdin = strings.NewReader(".text\n" + text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code, err := f.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]uint64{}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		labels[s.Name] = codeStart + s.Value
	}
	return code, labels
}

// program is an object with some code at codeStart.
func program(processor string, data []byte) *objectCode {
	return &objectCode{
		processor: processorNamed(processor), isLoaded: true, code: code{{codeStart, data}}, steps: maxSteps,
		read: map[machineKey]*functions{}, failed: map[uint64]string{},
	}
}

// rowText is what a row says, a line each: the CFA first.
func rowText(row *cfi.Row, lanes uint32) map[string]string {
	names := Description().Names(lanes)
	text := func(expr []byte) string {
		return strings.NewReplacer("DW_OP_LLVM_", "", "DW_OP_", "").Replace(
			locexpr.FormatText(expr, locexpr.TextOptions{Dialect: locexpr.Canonical, Names: names}))
	}
	register := func(n uint64) string {
		name, _ := names.RegisterName(n)
		return name
	}
	out := map[string]string{"CFA": text(row.CFA.Expr)}
	if row.CFA.Kind == cfi.CFARegister {
		out["CFA"] = fmt.Sprintf("%s%+d in %d", register(row.CFA.Register), row.CFA.Offset, row.CFA.Space)
	}
	for _, r := range row.Rules {
		var s string
		switch r.Rule.Kind {
		case cfi.Undefined:
			s = "undefined"
		case cfi.Register:
			s = register(r.Rule.Register)
		case cfi.Offset:
			s = fmt.Sprintf("CFA%+d", r.Rule.Offset)
		case cfi.ValOffsetPerLane:
			s = "a lane's CFA"
		default:
			s = text(r.Rule.Expr)
		}
		out[register(r.Column)] = s
	}
	return out
}

const (
	inS30  = "regx SGPR30; piece 4; regx SGPR31; piece 4"
	active = "; call_frame_entry_reg EXEC; deref_size 8; select_bit_piece 32 64"
	masked = "; call_frame_entry_reg EXEC; deref_size 4; select_bit_piece 32 32"
)

// framePrograms are functions f, with what holds at labels: "" of a register
// says that there is no rule.
var framePrograms = []struct {
	name, processor, code string
	want                  map[string]map[string]string
}{
	{"pointers kept in VCC", "gfx90a", `
f:	s_mov_b32 vcc_lo, s33
	s_mov_b32 vcc_hi, s32
	s_mov_b32 s33, 0
both:	s_mov_b32 s32, 0
high:	s_mov_b32 s32, vcc_hi
	s_mov_b32 s33, vcc_lo
end:	s_setpc_b64 s[30:31]
`, map[string]map[string]string{
		"both": {"CFA": "SGPR32+0 in 6", "SGPR33": "regx VCC", "VCC": "undefined"},
		"high": {"CFA": "regx VCC; offset_uconst 4; deref_size 4; lit6; form_aspace_address", "SGPR33": "regx VCC"},
		"end":  {"CFA": "SGPR32+0 in 6", "SGPR33": ""},
	}},
	{"a pointer kept in the half of VCC that has no number", "gfx1030", `
f:	s_mov_b32 vcc_hi, s33
	s_mov_b32 s33, s32
lost:	s_mov_b32 s33, vcc_hi
end:	s_setpc_b64 s[30:31]
`, map[string]map[string]string{
		"lost": {"CFA": "SGPR33+0 in 6", "SGPR33": "undefined"},
		"end":  {"CFA": "SGPR32+0 in 6", "SGPR33": ""},
	}},
	{"conditions in conditions, of which each leaves its other part apart", "gfx1030", `
f:	v_cmp_eq_u32_e64 s4, v0, v1
	s_and_b32 s4, exec_lo, s4
	s_xor_b32 s20, s4, exec_lo
	s_mov_b32 exec_lo, s4
	v_cmp_eq_u32_e64 s4, v0, v2
	s_and_b32 s4, exec_lo, s4
	s_xor_b32 vcc_lo, s4, exec_lo
	s_mov_b32 exec_lo, s4
two:	v_cmp_eq_u32_e64 s4, v0, v3
	s_and_b32 s4, exec_lo, s4
	s_xor_b32 s22, s4, exec_lo
	s_mov_b32 exec_lo, s4
	v_cmp_eq_u32_e64 s4, v0, v4
	s_and_b32 s4, exec_lo, s4
	s_xor_b32 s23, s4, exec_lo
	s_mov_b32 exec_lo, s4
four:	s_or_b32 exec_lo, exec_lo, s23
	s_or_b32 exec_lo, exec_lo, s22
	s_or_b32 exec_lo, exec_lo, vcc_lo
	s_or_b32 exec_lo, exec_lo, s20
end:	s_setpc_b64 s[30:31]
`, map[string]map[string]string{
		"two": {"EXEC": "regx SGPR20; deref_size 4; regx EXEC; deref_size 4; or; regx VCC; deref_size 4; or; stack_value; piece 4"},
		"four": {"EXEC": "regx SGPR20; deref_size 4; regx VCC; deref_size 4; or; regx SGPR22; deref_size 4; or; " +
			"regx EXEC; deref_size 4; or; regx SGPR23; deref_size 4; or; stack_value; piece 4"},
		"end": {"EXEC": ""},
	}},
	{"a frame of buffer instructions", "gfx90a", `
f:	s_mov_b32 s4, s33
moved:	s_mov_b32 s33, s32
	s_or_saveexec_b64 s[6:7], -1
all:	buffer_store_dword v41, off, s[0:3], s33 offset:12
	s_mov_b64 exec, s[6:7]
	v_writelane_b32 v41, s4, 4
	v_writelane_b32 v41, s30, 0
	buffer_store_dword v40, off, s[0:3], s33 offset:8
	v_writelane_b32 v41, s31, 1
	v_mov_b32_e32 v40, v0
	v_writelane_b32 v41, s34, 2
	s_addk_i32 s32, 0x800
	s_mov_b32 s34, 1
call:	s_swappc_b64 s[30:31], s[8:9]
after:	buffer_load_dword v40, off, s[0:3], s33 offset:8
	v_readlane_b32 s34, v41, 2
	v_readlane_b32 s31, v41, 1
	v_readlane_b32 s30, v41, 0
	s_mov_b32 s32, s33
	v_readlane_b32 s4, v41, 4
	s_or_saveexec_b64 s[6:7], -1
	buffer_load_dword v41, off, s[0:3], s33 offset:12
	s_mov_b64 exec, s[6:7]
	s_mov_b32 s33, s4
end:	s_setpc_b64 s[30:31]
`, map[string]map[string]string{
		"f":     {"CFA": "SGPR32+0 in 6", "PC": inS30, "SGPR33": "", "VGPR40": "", "VGPR41": "", "EXEC": "", "SGPR4": "undefined", "VGPR0": "regx VGPR0; undefined" + active, "SGPR0": ""},
		"moved": {"CFA": "SGPR32+0 in 6", "SGPR33": ""},
		"all":   {"CFA": "SGPR33+0 in 6", "SGPR33": "SGPR4", "EXEC": "regx SGPR6; piece 4; regx SGPR7; piece 4"},
		"call": {
			"CFA": "SGPR33+0 in 6", "PC": "regx VGPR41; piece 4; regx VGPR41; offset_uconst 4; piece 4", "EXEC": "",
			"SGPR33": "regx VGPR41; offset_uconst 16", "SGPR34": "regx VGPR41; offset_uconst 8", "SGPR35": "",
			"VGPR40": "regx VGPR40; pick 1; offset_uconst 512" + active, "VGPR41": "CFA+768", "VGPR42": "", "VGPR48": "regx VGPR48; undefined" + active,
		},
		"after": {"SGPR34": "regx VGPR41; offset_uconst 8", "SGPR40": "undefined", "VGPR41": "CFA+768"},
		"end":   {"CFA": "SGPR32+0 in 6", "PC": inS30, "SGPR33": "", "SGPR34": "", "VGPR40": "", "VGPR41": "", "EXEC": ""},
	}},
	{"a frame of scratch instructions", "gfx1100", `
f:	s_mov_b32 s0, s33
	s_mov_b32 s33, s32
	s_or_saveexec_b32 s1, -1
	scratch_store_b32 off, v43, s33 offset:12
	s_mov_b32 exec_lo, s1
	s_add_i32 s32, s32, 32
	v_writelane_b32 v43, s30, 0
	v_writelane_b32 v43, s31, 1
call:	s_swappc_b64 s[30:31], s[2:3]
	s_endpgm
`, map[string]map[string]string{
		"f":    {"CFA": "regx SGPR32; deref_size 4; lit5; shl; lit6; form_aspace_address", "SGPR32": "a lane's CFA", "SGPR0": "undefined"},
		"call": {"CFA": "regx SGPR33; deref_size 4; lit5; shl; lit6; form_aspace_address", "VGPR43": "CFA+384", "PC": "regx VGPR43; piece 4; regx VGPR43; offset_uconst 4; piece 4", "VGPR0": "regx VGPR0; undefined" + masked},
	}},
	{"registers of other banks", "gfx1250", `
f:	v_writelane_b32 v40, s30, 0
	v_writelane_b32 v40, s31, 1
	s_set_vgpr_msb 0x40
	v_writelane_b32 v40, s33, 0
	s_set_vgpr_msb 0x4080
	v_writelane_b32 v41, s34, 0
	v_mov_b32_e32 v40, v1
	v_dual_mov_b32 v42, v2 :: v_dual_mov_b32 v43, v3
	s_set_vgpr_msb 0x8000
	s_mov_b32 s33, 0
	s_mov_b32 s34, 0
	s_mov_b64 s[30:31], 0
other:	s_nop 0
	s_set_vgpr_msb 1
	v_readlane_b32 s33, v40, 0
	s_set_vgpr_msb 0x100
read:	s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 4, 4), 0
	s_cbranch_scc1 joined
	s_set_vgpr_msb 0x80
joined:	v_mov_b32_e32 v41, v1
lost:	s_swap_pc_i64 s[4:5], s[2:3]
called:	s_setreg_b32 hwreg(HW_REG_WAVE_MODE), s6
	s_cbranch_execz end
	v_mov_b32_e32 v40, v1
end:	s_endpgm
`, map[string]map[string]string{
		"other":  {"PC": "regx VGPR40; piece 4; regx VGPR40; offset_uconst 4; piece 4", "SGPR33": "regx VGPR296", "SGPR34": "regx VGPR553"},
		"read":   {"SGPR33": ""},
		"lost":   {"PC": "regx VGPR40; piece 4; regx VGPR40; offset_uconst 4; piece 4", "SGPR33": "", "SGPR34": "undefined", "VGPR41": "regx VGPR41; undefined" + masked},
		"called": {"PC": "regx VGPR40; piece 4; regx VGPR40; offset_uconst 4; piece 4"},
		"end":    {"": "the code shows no register, lane or private memory that holds the return address here"},
	}},
	{"a condition with another way", "gfx90a", `
f:	v_cmp_lt_i32_e32 vcc, 0, v0
	s_and_saveexec_b64 s[4:5], vcc
	s_xor_b64 s[6:7], exec, s[4:5]
	s_mov_b64 s[4:5], 0
	s_cbranch_execz other
	v_add_u32_e32 v1, 1, v1
then:	v_add_u32_e32 v1, 1, v1
other:	s_andn2_saveexec_b64 s[4:5], s[6:7]
else:	v_add_u32_e32 v40, 1, v1
	s_or_b64 exec, exec, s[4:5]
end:	s_setpc_b64 s[30:31]
`, map[string]map[string]string{
		"then": {"EXEC": "regx SGPR6; deref_size 4; regx EXEC; deref_size 4; or; stack_value; piece 4; regx SGPR7; deref_size 4; regx EXEC; offset_uconst 4; deref_size 4; or; stack_value; piece 4"},
		"else": {"EXEC": "regx EXEC; deref_size 4; regx SGPR4; deref_size 4; or; stack_value; piece 4; regx EXEC; offset_uconst 4; deref_size 4; regx SGPR5; deref_size 4; or; stack_value; piece 4"},
		"end":  {"EXEC": "", "VGPR40": "regx VGPR40; undefined" + active, "VCC": "undefined", "PC": inS30},
	}},
	{"a loop that lanes leave", "gfx1030", `
f:	s_mov_b32 s4, 0
loop:	v_cmp_lt_i32_e32 vcc_lo, 0, v0
	s_or_b32 s4, vcc_lo, s4
	s_andn2_b32 exec_lo, exec_lo, s4
in:	s_cbranch_execnz loop
	s_or_b32 exec_lo, exec_lo, s4
end:	s_setpc_b64 s[30:31]
`, map[string]map[string]string{
		"in":  {"EXEC": "regx SGPR4; deref_size 4; regx EXEC; deref_size 4; or; stack_value; piece 4"},
		"end": {"EXEC": "", "PC": inS30},
	}},
	{"a loop that carries end", "gfx1030", `
f:	s_mov_b32 s4, 0
loop:	v_add_co_u32 v1, s5, v1, 1
	s_or_b32 s4, s5, s4
	s_andn2_b32 exec_lo, exec_lo, s4
	s_cbranch_execnz loop
	s_or_b32 exec_lo, exec_lo, s4
end:	v_mov_b32_e32 v40, 0
	s_setpc_b64 s[30:31]
`, map[string]map[string]string{
		"end": {"EXEC": "", "PC": inS30, "VGPR1": "regx VGPR1; undefined" + masked},
	}},
	{"ways that disagree", "gfx90a", `
f:	s_cbranch_scc0 right
	s_mov_b32 s34, 1
	s_mov_b32 s4, s35
	s_mov_b32 s35, 2
	s_branch both
right:	s_mov_b32 s5, s35
	s_mov_b32 s35, 3
both:	s_nop 0
	s_mov_b32 s30, s4
lost:	s_nop 0
	s_endpgm
`, map[string]map[string]string{
		"both": {"SGPR34": "undefined", "SGPR35": "undefined", "PC": inS30},
		"lost": {"": reasonReturn},
	}},
	{"a callee that saves nothing", "gfx90a", `
f:	s_mov_b64 s[8:9], s[30:31]
	s_getpc_b64 s[4:5]
from:	s_add_u32 s4, s4, callee-from
	s_addc_u32 s5, s5, 0
call:	s_swappc_b64 s[30:31], s[4:5]
after:	s_mov_b64 s[30:31], s[8:9]
	s_setpc_b64 s[30:31]
callee:	v_mov_b32_e32 v40, 0
	s_mov_b32 s34, 0
	s_setpc_b64 s[30:31]
`, map[string]map[string]string{
		"call":  {"PC": "regx SGPR8; piece 4; regx SGPR9; piece 4", "SGPR34": "", "VGPR40": ""},
		"after": {"PC": "regx SGPR8; piece 4; regx SGPR9; piece 4", "SGPR34": "undefined", "SGPR35": "", "VGPR40": "regx VGPR40; undefined" + active, "VGPR48": ""},
	}},
	{"a callee that is not known", "gfx90a", `
f:	s_mov_b64 s[8:9], s[30:31]
	s_mov_b64 s[36:37], s[30:31]
call:	s_swappc_b64 s[30:31], s[4:5]
after:	s_endpgm
`, map[string]map[string]string{
		"call":  {"PC": "regx SGPR36; piece 4; regx SGPR37; piece 4"},
		"after": {"PC": "regx SGPR36; piece 4; regx SGPR37; piece 4", "SGPR34": "", "SGPR8": "undefined"},
	}},
	{"a jump in the place of a call", "gfx90a", `
f:	s_mov_b32 s34, 1
	s_getpc_b64 s[4:5]
from:	s_add_u32 s4, s4, next-from
	s_addc_u32 s5, s5, 0
jump:	s_setpc_b64 s[4:5]
	s_nop 0
next:	s_nop 0
	s_setpc_b64 s[30:31]
`, map[string]map[string]string{
		"jump": {"PC": inS30, "SGPR34": "undefined"},
		"next": {"PC": inS30, "SGPR34": "undefined"},
	}},
	{"a stack pointer that is aligned", "gfx90a", `
f:	s_add_i32 s33, s32, 0x7c0
	s_and_b32 s33, s33, 0xfffff800
	s_mov_b32 s34, s32
	s_add_i32 s32, s33, 0x800
	buffer_store_dword v40, off, s[0:3], s33 offset:4
	v_mov_b32_e32 v40, 0
in:	s_nop 0
	s_endpgm
`, map[string]map[string]string{
		"in": {"CFA": "SGPR34+0 in 6", "VGPR40": "regx VGPR40; regx SGPR33; deref_size 4; lit6; form_aspace_address; offset_uconst 256" + active},
	}},
	{"memory above the stack pointer", "gfx90a", `
f:	buffer_store_dword v40, off, s[0:3], s32
	v_mov_b32_e32 v40, 0
before:	s_mov_b64 s[36:37], s[30:31]
	s_swappc_b64 s[30:31], s[4:5]
after:	s_endpgm
`, map[string]map[string]string{
		"before": {"VGPR40": "regx VGPR40; pick 1" + active},
		"after":  {"VGPR40": "regx VGPR40; undefined" + active},
	}},
	{"accumulation registers", "gfx90a", `
f:	v_accvgpr_write_b32 a0, v40
	v_mov_b32_e32 v40, 0
in:	v_accvgpr_read_b32 v40, a0
end:	s_setpc_b64 s[30:31]
`, map[string]map[string]string{
		"in":  {"VGPR40": "regx VGPR40; regx AGPR0" + active, "AGPR0": "regx AGPR0; undefined" + active},
		"end": {"VGPR40": ""},
	}},
	{"a vector register that an index selects", "gfx900", `
f:	v_writelane_b32 v60, s30, 0
	v_writelane_b32 v60, s31, 1
	s_mov_b32 s30, 0
	s_set_gpr_idx_on s4, gpr_idx(DST)
	v_mov_b32_e32 v8, v0
	s_set_gpr_idx_off
far:	v_mov_b32_e32 v9, v0
	s_set_gpr_idx_on s4, gpr_idx(DST)
	v_mov_b32_e32 v30, v0
	s_set_gpr_idx_off
near:	s_endpgm
`, map[string]map[string]string{
		"far":  {"PC": "regx VGPR60; piece 4; regx SGPR31; piece 4", "VGPR39": "regx VGPR39; undefined" + active},
		"near": {"PC": "regx VGPR60; piece 4; regx SGPR31; piece 4", "VGPR59": "regx VGPR59; undefined" + active, "VGPR61": ""},
	}},
	{"an array beside registers that are preserved", "gfx1030", `
f:	buffer_store_dword v40, off, s[0:3], s32
	s_mov_b32 m0, s4
	v_movreld_b32_e32 v48, v0
end:	s_endpgm
`, map[string]map[string]string{
		"end": {"VGPR48": "regx VGPR48; undefined" + masked, "VGPR55": "regx VGPR55; undefined" + masked, "VGPR47": "", "VGPR56": "", "VGPR64": ""},
	}},
	{"scalar registers in memory of single lanes", "gfx90a", `
f:	s_mov_b64 s[16:17], exec
	s_mov_b64 exec, 3
	buffer_store_dword v5, off, s[0:3], s32 offset:8
	v_writelane_b32 v5, s30, 0
	v_writelane_b32 v5, s31, 1
lanes:	buffer_store_dword v5, off, s[0:3], s32
	buffer_load_dword v5, off, s[0:3], s32 offset:8
	s_mov_b64 exec, s[16:17]
	s_mov_b64 s[30:31], 0
saved:	s_nop 0
	s_mov_b64 exec, 3
	buffer_load_dword v6, off, s[0:3], s32
	v_readlane_b32 s30, v6, 0
	v_readlane_b32 s31, v6, 1
	s_mov_b64 exec, s[16:17]
end:	s_setpc_b64 s[30:31]
`, map[string]map[string]string{
		"lanes": {"EXEC": "regx SGPR16; piece 4; regx SGPR17; piece 4", "VGPR5": "undefined", "PC": inS30},
		"saved": {"PC": "dup; piece 4; pick 1; offset_uconst 4; piece 4", "VGPR5": "regx VGPR5; undefined" + active},
		"end":   {"PC": inS30, "VGPR5": "regx VGPR5; undefined" + active, "VGPR6": "undefined"},
	}},
	{"accumulation registers that other code spoils", "gfx90a", `
f:	s_mov_b32 s33, s32
	v_writelane_b32 v40, s30, 0
	v_writelane_b32 v40, s31, 1
	s_swappc_b64 s[30:31], s[8:9]
after:	s_endpgm
other:	s_or_saveexec_b64 s[26:27], -1
	v_accvgpr_write_b32 a1, v13
	v_accvgpr_write_b32 a40, v13
	s_mov_b64 exec, s[26:27]
	v_accvgpr_write_b32 a3, v13
	s_setpc_b64 s[30:31]
`, map[string]map[string]string{
		"after": {"AGPR1": "undefined", "AGPR3": "regx AGPR3; undefined" + active, "AGPR40": ""},
	}},
	{"a scalar register in memory of the active lanes", "gfx90a", `
f:	v_mov_b32_e32 v5, s33
	buffer_store_dword v5, off, s[0:3], s32 offset:4
	s_mov_b32 s33, s32
	v_mov_b32_e32 v5, 0
saved:	s_mov_b64 exec, 0
gone:	s_endpgm
`, map[string]map[string]string{
		"saved": {"SGPR33": "call_frame_entry_reg EXEC; deref_size 8; dup; bra 6; drop; undefined; skip 27; lit0; over; over; shr; lit1; and; bra 5; plus_uconst 1; skip -13; swap; drop; pick 1; offset_uconst 256; swap; lit2; shl; offset"},
		"gone":  {"SGPR33": "undefined"},
	}},
}

// TestFrameRules reads functions whose rows are known.
func TestFrameRules(t *testing.T) {
	for _, c := range framePrograms {
		t.Run(c.name, func(t *testing.T) {
			data, labels := assemble(t, c.processor, c.code)
			o := program(c.processor, data)
			lanes := o.processor.lanes[0]
			for label, want := range c.want {
				got := o.frameRules(context.Background(), nil, 1, &sdk.CodeRange{
					PC: labels[label], Start: labels["f"], Code: data, Bounded: true, Exact: true,
				})
				if got.Reason != want[""] {
					t.Errorf("%s: reason %q, expected %q", label, got.Reason, want[""])
				}
				i := slices.IndexFunc(got.Rows, func(r cfi.Row) bool { return labels[label] >= r.Start && labels[label] < r.End })
				if i < 0 {
					if want[""] == "" {
						t.Errorf("%s: no row", label)
					}
					continue
				}
				text := rowText(&got.Rows[i], lanes)
				for name, rule := range want {
					if text[name] != rule {
						t.Errorf("%s: %s is %q, expected %q", label, name, text[name], rule)
					}
				}
			}
		})
	}
}

// TestFrameRulesOfJumpedTo reads functions that others jump to in the place of a
// call: what these changed before is not the caller's.
func TestFrameRulesOfJumpedTo(t *testing.T) {
	jump := func(n int, to string) string {
		return fmt.Sprintf("s_getpc_b64 s[4:5]\nfrom%d: s_add_u32 s4, s4, %s-from%d\ns_addc_u32 s5, s5, 0\ns_setpc_b64 s[4:5]\n", n, to, n)
	}
	call := strings.ReplaceAll(jump(3, "third"), "s_setpc_b64", "s_swappc_b64 s[30:31],")
	const undefined = "; undefined" + active
	chain := "first: v_mov_b32_e32 v3, 0\ns_mov_b32 s34, 1\n" + jump(1, "second") +
		"second: v_mov_b32_e32 v4, 0\n" + jump(2, "third") +
		"third: v_mov_b32_e32 v5, 0\ns_setpc_b64 s[30:31]\nend: s_nop 0\n"
	wild := chain + "wild: s_mov_b64 s[6:7], s[8:9]\ns_setpc_b64 s[6:7]\n"
	for _, c := range []struct {
		name, code, label, end string
		want                   map[string]string
	}{
		{"first", chain, "first", "second", map[string]string{"VGPR6": "", "SGPR34": "", "SGPR8": ""}},
		{"second", chain, "second", "third", map[string]string{"VGPR3": "regx VGPR3" + undefined, "VGPR6": "", "SGPR34": "undefined", "SGPR4": "undefined"}},
		{"third", chain, "third", "end", map[string]string{
			"CFA": "SGPR32+0 in 6", "PC": inS30, "VGPR3": "regx VGPR3" + undefined, "VGPR4": "regx VGPR4" + undefined, "VGPR6": "",
			"VGPR40": "", "SGPR34": "undefined", "SGPR35": "", "SGPR33": "", "SGPR0": "", "SGPR8": "",
		}},
		{"any that a pointer may lead to", wild, "first", "second", map[string]string{
			"CFA": "SGPR32+0 in 6", "PC": inS30, "VGPR3": "regx VGPR3" + undefined, "VGPR40": "", "SGPR34": "", "SGPR33": "", "SGPR0": "", "SGPR8": "undefined",
		}},
		{"from where nobody knows", call + "s_branch third\n" + chain, "third", "end", map[string]string{
			"CFA": "SGPR32+0 in 6", "PC": inS30, "VGPR40": "regx VGPR40" + undefined, "SGPR35": "undefined", "SGPR33": "", "SGPR0": "",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, labels := assemble(t, "gfx90a", "f: "+c.code)
			o := program("gfx90a", data)
			o.starts = []uint64{labels["first"], labels["second"], labels["third"]}
			got := o.frameRules(context.Background(), nil, 1, &sdk.CodeRange{
				PC: labels[c.label], Start: labels[c.label], Code: data[labels[c.label]-codeStart : labels[c.end]-codeStart], Bounded: true, Exact: true,
			})
			if got.Reason != "" || len(got.Rows) == 0 {
				t.Fatalf("%d rows, reason %q", len(got.Rows), got.Reason)
			}
			text := rowText(&got.Rows[0], 64)
			for name, rule := range c.want {
				if text[name] != rule {
					t.Errorf("%s is %q, expected %q", name, text[name], rule)
				}
			}
		})
	}
}

// TestFrameRulesOfParts reads a part of a function that another part jumps to,
// and code whose bounds nobody says: what leads there from a call is found.
func TestFrameRulesOfParts(t *testing.T) {
	data, labels := assemble(t, "gfx90a", `
caller:	s_mov_b64 s[36:37], s[30:31]
	s_getpc_b64 s[4:5]
from:	s_add_u32 s4, s4, f-from
	s_addc_u32 s5, s5, 0
	s_swappc_b64 s[30:31], s[4:5]
	s_setpc_b64 s[36:37]
f:	s_mov_b32 s34, s33
	s_mov_b32 s33, s32
	s_cbranch_scc0 cold
back:	s_mov_b32 s33, s34
	s_setpc_b64 s[30:31]
alone:	s_nop 0
	s_endpgm
cold:	s_mov_b32 s35, 0
in:	s_branch back
end:	s_endpgm
`)
	ask := func(label, start, end string, bounded bool) (string, map[string]string) {
		t.Helper()
		r := &sdk.CodeRange{PC: labels[label], Start: labels[start], Code: data[labels[start]-codeStart : labels[end]-codeStart], Bounded: bounded, Exact: true}
		got := program("gfx90a", data).frameRules(context.Background(), nil, 1, r)
		for i := range got.Rows {
			if row := &got.Rows[i]; row.Start < r.Start || row.End > r.Start+uint64(len(r.Code)) {
				t.Errorf("%s: a row of %#x to %#x", label, row.Start, row.End)
			} else if r.PC >= row.Start && r.PC < row.End {
				return got.Reason, rowText(row, 64)
			}
		}
		return got.Reason, nil
	}
	for _, bounded := range []bool{true, false} {
		reason, row := ask("in", "cold", "end", bounded)
		if reason != "" || row["CFA"] != "SGPR33+0 in 6" || row["SGPR33"] != "SGPR34" || row["SGPR35"] != "undefined" || row["PC"] != inS30 {
			t.Errorf("a part, bounded %v: %q, %v", bounded, reason, row)
		}
	}
	if reason, row := ask("back", "caller", "end", false); reason != "" || row["SGPR33"] != "SGPR34" {
		t.Errorf("without bounds: %q, %v", reason, row)
	}
	if reason, row := ask("alone", "caller", "end", false); reason == "" || row != nil {
		t.Errorf("what nothing leads to: %q, %v", reason, row)
	}
}

// TestFrameRulesOfHostileCode reads code that is long, or full of branches.
func TestFrameRulesOfHostileCode(t *testing.T) {
	repeat := func(n int, words ...uint32) []byte {
		b := make([]byte, 0, 4*n*len(words))
		for range n {
			for _, w := range words {
				b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
			}
		}
		return b
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"no instructions":           {repeat(1<<10, 0xffffffff), ""},
		"branches to the next":      {repeat(1<<16, 0xbf840000), "a function with more than 16384 branches"},
		"branches far back":         {repeat(1<<13, 0xbf848000, 0xbf850001), ""},
		"calls of what follows":     {repeat(1<<9, 0xbe841c00, 0x8004ff04, 8, 0x82058005, 0xbe9e1e04), ""},
		"a function of a megabyte":  {repeat(1<<18, 0xbe840021), ""},
		"other lanes of a register": {repeat(1<<14, 0xd28a000a, 0x0001001e, 0xbe8422c1, 0x88fe047e), ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := program("gfx90a", c.data)
			r := o.frameRules(context.Background(), nil, 1, &sdk.CodeRange{PC: codeStart, Start: codeStart, Code: c.data, Bounded: true})
			if c.want != "" && r.Reason != c.want {
				t.Errorf("%d rows, reason %q, expected %q", len(r.Rows), r.Reason, c.want)
			}
			if len(r.Rows) > len(c.data) {
				t.Errorf("%d rows of %d bytes", len(r.Rows), len(c.data))
			}
		})
	}
}

// TestFrameRulesAreAskedOfObjects reads the functions of a compiled object, by
// the calls that the engine makes; and what cannot be read has a reason.
func TestFrameRulesAreAskedOfObjects(t *testing.T) {
	o := readObject(t, "testdata/amd_h.gfx90a.co")
	a := New()
	e := sections{data: o.data}
	if _, err := a.OpenObject(context.Background(), e, &o.req); err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open("testdata/amd_h.gfx90a.co")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	text := f.Section(".text")
	req := &sdk.FrameRulesRequest{Object: 1}
	for _, s := range symbols {
		if s.Info&0xf == symbolFunc && s.Size > 0 {
			code := o.data[".text"][s.Value-text.Addr:][:s.Size]
			req.Functions = append(req.Functions, sdk.CodeRange{PC: s.Value, Start: s.Value, Code: code, Bounded: true, Name: s.Name})
		}
	}
	known := len(req.Functions)
	first := req.Functions[0]
	outside, elsewhere := first, first
	outside.PC--
	elsewhere.Code, elsewhere.Bounded = slices.Clone(first.Code), false // not the object's
	elsewhere.Code[0] ^= 1
	req.Functions = append(req.Functions, outside, elsewhere)
	answer, err := a.FrameRules(context.Background(), e, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(Description(), req); err != nil {
		t.Fatal(err)
	}
	if known < 3 {
		t.Fatalf("%d functions", known)
	}
	for i, r := range answer.Functions {
		switch {
		case i >= known && (len(r.Rows) > 0 || r.Reason == ""):
			t.Errorf("%d rows, reason %q, expected a reason alone", len(r.Rows), r.Reason)
		case i < known && (len(r.Rows) == 0 || r.Reason != "" || !r.Complete):
			t.Errorf("%s: %d rows, reason %q", req.Functions[i].Name, len(r.Rows), r.Reason)
		}
	}
	answer, err = a.FrameRules(context.Background(), e, &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{first}})
	if err != nil || answer.Functions[0].Reason == "" {
		t.Errorf("%+v, %v, expected a reason: the code is in no object", answer, err)
	}
}

// stopping is an engine during whose call the caller gives up.
type stopping struct {
	sections
	stop context.CancelFunc
}

func (s stopping) ReadSection(ctx context.Context, object uint64, name string) ([]byte, error) {
	s.stop()
	return nil, ctx.Err()
}

// TestCodeIsReadAgainAfterACallThatWasGivenUp: what a call could not read for want of
// time is no reason for the next to know less.
func TestCodeIsReadAgainAfterACallThatWasGivenUp(t *testing.T) {
	o := readObject(t, "testdata/amd_h.gfx90a.co")
	a := New()
	e := sections{data: o.data}
	if _, err := a.OpenObject(context.Background(), e, &o.req); err != nil {
		t.Fatal(err)
	}
	code := a.(architecture).objects.find(1)
	req := &sdk.FrameRulesRequest{Object: 1, Functions: []sdk.CodeRange{{
		PC: code.sections[0].Address, Start: code.sections[0].Address, Code: o.data[".text"][:64], Bounded: true,
	}}}
	ctx, stop := context.WithCancel(context.Background())
	if answer, err := a.FrameRules(ctx, stopping{e, stop}, req); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", answer, err)
	}
	if _, err := a.FrameRules(context.Background(), e, req); err != nil || len(code.code) == 0 {
		t.Errorf("%v, %d sections of code, expected them to be read", err, len(code.code))
	}
}

// TestCodeForAnUnknownProcessorIsOneGap: that is so for every PC of it.
func TestCodeForAnUnknownProcessorIsOneGap(t *testing.T) {
	a := New()
	object := &sdk.OpenObjectRequest{Object: 1, Machine: 62, Processor: "gfx90a"} // of another machine
	if _, err := a.OpenObject(context.Background(), sections{}, object); err != nil {
		t.Fatal(err)
	}
	code := sdk.CodeRange{PC: codeStart + 4, Start: codeStart, Code: make([]byte, 8), Bounded: true}
	answer, err := a.FrameRules(context.Background(), sections{}, &sdk.FrameRulesRequest{Object: 1, Functions: []sdk.CodeRange{code}})
	if err != nil {
		t.Fatal(err)
	}
	want := sdk.FrameRules{Gaps: []sdk.RowGap{{Start: codeStart, End: codeStart + 8, Reason: unknownProcessor}}, Reason: unknownProcessor, Complete: true}
	if d := cmp.Diff(want, answer.Functions[0]); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestObjectsAreForgottenByUse opens more objects than are remembered: one that is
// asked about stays, and another is named when it has gone.
func TestObjectsAreForgottenByUse(t *testing.T) {
	o := readObject(t, "testdata/amd_h.gfx90a.co")
	a := New()
	e := sections{data: o.data}
	open := func(handle uint64) {
		t.Helper()
		req := o.req
		req.Object = handle
		if _, err := a.OpenObject(context.Background(), e, &req); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(handle uint64) error {
		_, err := a.FrameRules(context.Background(), e, &sdk.FrameRulesRequest{Object: handle})
		return err
	}
	if err := ask(1); !errors.Is(err, sdk.ErrObjectNotOpen) {
		t.Errorf("before it was opened: %v", err)
	}
	for handle := uint64(1); handle <= maxObjects; handle++ {
		open(handle)
	}
	if err := ask(1); err != nil {
		t.Errorf("after %d objects: %v", maxObjects, err)
	}
	open(maxObjects + 1)
	open(maxObjects + 1) // is one object
	for handle, want := range map[uint64]string{1: "", 2: "object 0x2: ", 3: "", maxObjects: "", maxObjects + 1: ""} {
		switch err := ask(handle); {
		case want == "" && err != nil:
			t.Errorf("object %d: %v", handle, err)
		case want != "" && (!errors.Is(err, sdk.ErrObjectNotOpen) || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("object %d: %v", handle, err)
		}
	}
	if err := ask(0); err != nil {
		t.Errorf("code in no object: %v", err)
	}
}

// TestGapsAndRowsAreAllOfAFunction: what no row covers has the same reason in a gap
// as in the answer about a PC there.
func TestGapsAndRowsAreAllOfAFunction(t *testing.T) {
	const (
		notHere  = "the code of the function does not lead here"
		noReturn = reasonReturn
	)
	for _, c := range []struct {
		name, code string
		gaps       []string // label, reason
		rows       int
	}{
		{"every instruction is reached", `
f:	s_mov_b32 s4, 0
	s_setpc_b64 s[30:31]
end:
`, nil, 1},
		{"code that nothing leads to", `
f:	s_mov_b32 s4, 0
	s_branch after
dead:	s_mov_b32 s5, 0
	s_add_u32 s32, s32, 0x400
after:	s_setpc_b64 s[30:31]
tail:	s_nop 0
	s_nop 1
end:
`, []string{"dead", notHere, "tail", notHere}, 2},
		{"a return address that is lost, beside code that nothing leads to", `
f:	s_mov_b64 s[30:31], 0
lost:	s_mov_b32 s4, 0
	s_nop 0
	s_endpgm
dead:	s_nop 0
end:
`, []string{"lost", noReturn, "dead", notHere}, 1},
		{"code that nothing leads to, between such without a return address", `
f:	s_mov_b64 s[30:31], 0
lost:	s_branch after
dead:	s_nop 0
after:	s_nop 0
	s_endpgm
end:
`, []string{"lost", noReturn, "dead", notHere, "after", noReturn}, 1},
		{"code that cannot be read", `
f:	s_mov_b32 s4, 0
	s_cbranch_scc1 bad
	s_setpc_b64 s[30:31]
bad:	.long 0xffffffff
	s_nop 0
end:
`, []string{"bad", "the code does not lead here as far as it can be read: there is no instruction at 0x100c"}, 1},
		{"a branch into an instruction", `
f:	s_cbranch_scc1 1
	s_mov_b32 s0, 0xbe800080
	s_add_u32 s32, s32, 0x400
	s_mov_b32 s5, 0
	s_sub_u32 s32, s32, 0x400
	s_setpc_b64 s[30:31]
end:
`, []string{"f", "a branch leads to 0x1008, into the middle of an instruction"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, labels := assemble(t, "gfx90a", c.code)
			o := program("gfx90a", data)
			var want []string
			for i := 0; i < len(c.gaps); i += 2 {
				want = append(want, fmt.Sprintf("%#x %s", labels[c.gaps[i]], c.gaps[i+1]))
			}
			for pc := uint64(codeStart); pc < codeStart+uint64(len(data)); pc++ {
				r := sdk.CodeRange{PC: pc, Start: codeStart, Code: data, Bounded: true}
				rules := o.frameRules(context.Background(), nil, 1, &r)
				answer := &sdk.FrameRulesAnswer{Functions: []sdk.FrameRules{rules}}
				if err := answer.Validate(Description(), &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{r}}); err != nil {
					t.Fatal(err)
				}
				var got []string
				reason, covered := "", 0
				for _, g := range rules.Gaps {
					got = append(got, fmt.Sprintf("%#x %s", g.Start, g.Reason))
					covered += int(g.End - g.Start)
					if pc >= g.Start && pc < g.End {
						reason = g.Reason
					}
				}
				for _, row := range rules.Rows {
					covered += int(row.End - row.Start)
				}
				if !slices.Equal(got, want) || covered != len(data) || len(rules.Rows) < c.rows || rules.Reason != reason || !rules.Complete {
					t.Fatalf("%#x: %d rows, reason %q, %d of %d bytes, gaps %q,\nexpected %q", pc, len(rules.Rows), rules.Reason, covered, len(data), got, want)
				}
				r.Bounded = false
				if rules := o.frameRules(context.Background(), nil, 1, &r); len(rules.Gaps) > 0 {
					t.Fatalf("%#x: gaps %v of code that may be several functions", pc, rules.Gaps)
				}
			}
		})
	}
}

// FuzzFrameRules: any bytes give a valid answer, and the same one twice.
func FuzzFrameRules(f *testing.F) {
	file, err := os.ReadFile("testdata/amd_k.gfx1100.co")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file[0x600:0xa00], uint16(0), uint8(5))
	for _, c := range framePrograms[:8] {
		data, _ := assemble(f, c.processor, c.code)
		f.Add(data, uint16(8), uint8(0))
	}
	names := []string{"gfx90a", "gfx900", "gfx942", "gfx1030", "gfx1010", "gfx1100", "gfx1201", "gfx1250"}
	f.Fuzz(func(t *testing.T, data []byte, at uint16, which uint8) {
		if len(data) == 0 || len(data) > 1<<14 {
			return
		}
		req := &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{{PC: codeStart + uint64(at), Start: codeStart, Code: data, Bounded: true}}}
		ask := func() sdk.FrameRules {
			o := program(names[int(which)%len(names)], data)
			o.steps = 1 << 15 // many executions find more than long ones
			return o.frameRules(context.Background(), nil, 1, &req.Functions[0])
		}
		first := ask()
		if first.Complete {
			covered := 0
			for _, row := range first.Rows {
				covered += int(row.End - row.Start)
			}
			for _, g := range first.Gaps {
				covered += int(g.End - g.Start)
			}
			if covered != len(data) {
				t.Fatalf("rows and gaps are of %d bytes, expected %d", covered, len(data))
			}
		}
		answer := &sdk.FrameRulesAnswer{Functions: []sdk.FrameRules{first}}
		if err := answer.Validate(Description(), req); err != nil {
			t.Fatal(err)
		}
		for i := range first.Rows {
			for _, r := range first.Rows[i].Rules {
				if r.Rule.Kind != cfi.Expression {
					continue
				}
				for _, err := range locexpr.Decode(r.Rule.Expr, locexpr.Canonical, 8, locexpr.LittleEndian) {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		second := ask()
		if !slices.Equal(first.Gaps, second.Gaps) {
			t.Fatalf("gaps %v, then %v", first.Gaps, second.Gaps)
		}
		if len(first.Rows) != len(second.Rows) || first.Reason != second.Reason {
			t.Fatalf("%d rows, %q, then %d, %q", len(first.Rows), first.Reason, len(second.Rows), second.Reason)
		}
		for i := range first.Rows {
			if a, b := fmt.Sprint(first.Rows[i]), fmt.Sprint(second.Rows[i]); a != b {
				t.Fatalf("%s, then %s", a, b)
			}
		}
	})
}

// BenchmarkFrameRules reads a function of some instructions of which nothing is known.
func BenchmarkFrameRules(b *testing.B) {
	p := &framePrograms[0]
	data, labels := assemble(b, p.processor, p.code)
	r := &sdk.CodeRange{PC: labels["f"], Start: labels["f"], Code: data, Bounded: true, Exact: true}
	for b.Loop() {
		if got := program(p.processor, data).frameRules(context.Background(), nil, 1, r); got.Reason != "" {
			b.Fatal(got.Reason)
		}
	}
}

// TestManyMasksAreTooManySteps reads code in which more masks are told apart than in
// any compiled function: that takes longer than an instruction should, and is
// counted as more of them.
func TestManyMasksAreTooManySteps(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const masks, first = 24, 40
	var text strings.Builder
	pair := func(i int) string { return fmt.Sprintf("s[%d:%d]", first+2*(i%masks), first+2*(i%masks)+1) }
	text.WriteString("f:\n")
	for i := range masks {
		fmt.Fprintf(&text, "v_cmp_eq_u32_e64 %s, v0, v1\ns_or_b64 %s, %s, vcc\n", pair(i), pair(i), pair(i))
	}
	for i := range 4000 {
		fmt.Fprintf(&text, "v_cmp_eq_u32_e64 %s, v0, v1\ns_xor_b64 s[4:5], %s, %s\n", pair(i), pair(i), pair(i+3))
	}
	text.WriteString("s_endpgm\n")
	data, labels := assemble(t, "gfx90a", text.String())
	got := program("gfx90a", data).frameRules(context.Background(), nil, 1, &sdk.CodeRange{
		PC: labels["f"], Start: labels["f"], Code: data, Bounded: true, Exact: true,
	})
	if got.Reason != codeflow.ErrSteps.Error() {
		t.Errorf("%d rows, reason %q, expected %q", len(got.Rows), got.Reason, codeflow.ErrSteps)
	}
}

// TestFunctionsWithoutBoundsAreReadOnce asks for each instruction of an object without
// symbols: reading a function takes long, and thousands of waves may be in it.
func TestFunctionsWithoutBoundsAreReadOnce(t *testing.T) {
	text := readObject(t, "testdata/amd_h.gfx90a.co")
	section := text.section(".text")
	o := program("gfx90a", text.data[".text"])
	o.code[0].start = section.Address
	found := 0
	for pc := section.Address; pc < section.Address+section.Size; pc += 4 {
		r := sdk.CodeRange{PC: pc, Start: section.Address, Code: text.data[".text"]}
		rules := o.frameRules(context.Background(), nil, 1, &r)
		if slices.ContainsFunc(rules.Rows, func(row cfi.Row) bool { return pc >= row.Start && pc < row.End }) {
			found++
		}
	}
	visited := 0
	for _, fs := range o.read {
		visited += fs.visited
	}
	if found < 80 || visited > 16 {
		t.Errorf("rows at %d instructions, functions were followed %d times, expected once or twice each", found, visited)
	}
}
