// SPDX-License-Identifier: Apache-2.0

package isa

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

const objdump = "llvm-objdump-22"

// A listed instruction is a line of llvm-objdump.
type listed struct {
	address  uint64
	size     int
	mnemonic string   // without its encoding
	suffix   string   // the encoding
	operands []string // as they are written, modifiers with the last one
	text     string
}

var (
	listing  = regexp.MustCompile(`(?m)^\t(\S.*?)\s*// ([0-9A-F]+): ([0-9A-F]{8}(?: [0-9A-F]{8})*)`)
	encoded  = regexp.MustCompile(`^(.*?)(_e64_dpp|_e32|_e64|_dpp|_sdwa)?$`)
	register = regexp.MustCompile(`^(v|a|s|ttmp)(?:(\d+)|\[(\d+):(\d+)\])(?:\.[lh])?$`)
)

// list disassembles a file.
func list(t testing.TB, path string, args ...string) []listed {
	t.Helper()
	out, err := exec.Command(objdump, append(args, "-d", path)...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", objdump, path, err)
	}
	return parseListing(t, string(out))
}

func parseListing(t testing.TB, out string) []listed {
	t.Helper()
	var all []listed
	for _, m := range listing.FindAllStringSubmatch(out, -1) {
		l := listed{text: m[1], size: 4 * len(strings.Fields(m[3]))}
		var err error
		if l.address, err = strconv.ParseUint(m[2], 16, 64); err != nil {
			t.Fatal(err)
		}
		name, rest, _ := strings.Cut(l.text, " ")
		parts := encoded.FindStringSubmatch(name)
		l.mnemonic, l.suffix, l.operands = parts[1], parts[2], splitOperands(rest)
		all = append(all, l)
	}
	return all
}

// splitOperands splits at commas that are in no brackets.
func splitOperands(s string) []string {
	var list []string
	depth, start := 0, 0
	for i, c := range s {
		switch c {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case ',':
			if depth == 0 {
				list = append(list, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	if last := strings.TrimSpace(s[start:]); last != "" {
		list = append(list, last)
	}
	return list
}

// A checker compares Decode with the disassembler for one target.
type checker struct {
	target              Target
	processor           string
	compared, different int
	full                int // compared with their operands
	written             int // registers that the disassembler says are written
	failed              map[string]string
	symbols             func(name string) (address uint64, ok bool)
}

func newChecker(t testing.TB, processor string, lanes uint32) *checker {
	t.Helper()
	target, err := NewTarget(processor, lanes)
	if err != nil {
		t.Fatal(err)
	}
	return &checker{target: target, processor: processor, failed: map[string]string{}}
}

// report fails the test with the first instruction of each kind that differs.
func (c *checker) report(t testing.TB) {
	t.Helper()
	names := make([]string, 0, len(c.failed))
	for name := range c.failed {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		if i == 25 {
			t.Errorf("and %d more", len(names)-i)
			break
		}
		t.Errorf("%s: %s", c.processor, c.failed[name])
	}
}

// check compares one instruction, whose bytes begin code.
func (c *checker) check(code []byte, l *listed) {
	fail := func(format string, args ...any) {
		c.different++
		if _, ok := c.failed[l.mnemonic]; !ok {
			c.failed[l.mnemonic] = fmt.Sprintf("%s %q: ", hex.EncodeToString(code[:min(len(code), 20)]), l.text) + fmt.Sprintf(format, args...)
		}
	}
	in, err := c.target.Decode(code, l.address)
	c.compared++
	switch {
	case err != nil:
		fail("%v", err)
		return
	case int(in.Size) != l.size:
		fail("%d bytes, of %s %d", in.Size, objdump, l.size)
		return
	}
	if short, err := c.target.Decode(code[:l.size-1], l.address); !errors.Is(err, ErrTruncated) && short.Size == in.Size {
		fail("cut short: %+v, %v", short, err)
	}
	if want := flowOf(l); in.Flow != want {
		fail("flow %d, expected %d", in.Flow, want)
	}
	op, known := operation(l)
	if op != in.Op && (known || in.Op != Other) {
		fail("operation %d, expected %d", in.Op, op)
		return
	}
	for _, half := range strings.Split(l.text, " :: ") {
		h := *l
		if half != l.text {
			name, rest, _ := strings.Cut(half, " ")
			h.mnemonic, h.operands = name, splitOperands(rest)
		}
		for _, d := range destinations(&h, c.processor) {
			k, regs := registers(c.processor, d)
			for _, r := range regs {
				c.written++
				if k == Scalar && !in.Writes.HasScalar(Reg(r)) || k != Scalar && !in.Writes.HasVector(k, r) {
					fail("%s is written, not among %+v", d, in.Writes)
				}
			}
		}
	}
	if in.Op != Other {
		c.full++
		if problem := c.operands(&in, l); problem != "" {
			fail("%s: %+v", problem, in)
		}
	}
}

// registers are those of an operand's text; none for what is no register.
func registers(processor, s string) (Kind, []uint16) {
	named := map[string][]uint16{
		"vcc": {uint16(VCCLo), uint16(VCCHi)}, "vcc_lo": {uint16(VCCLo)}, "vcc_hi": {uint16(VCCHi)},
		"exec": {uint16(ExecLo), uint16(ExecHi)}, "exec_lo": {uint16(ExecLo)}, "exec_hi": {uint16(ExecHi)},
		"m0": {uint16(M0)}, "src_scc": {uint16(SCC)},
		"flat_scratch": {uint16(FlatScratchLo), uint16(FlatScratchHi)}, "flat_scratch_lo": {uint16(FlatScratchLo)}, "flat_scratch_hi": {uint16(FlatScratchHi)},
		"xnack_mask": {uint16(XNACKMaskLo), uint16(XNACKMaskHi)}, "xnack_mask_lo": {uint16(XNACKMaskLo)}, "xnack_mask_hi": {uint16(XNACKMaskHi)},
	}
	s, _, _ = strings.Cut(s, " ")
	if list, ok := named[s]; ok {
		return Scalar, list
	}
	m := register.FindStringSubmatch(s)
	if m == nil {
		return None, nil
	}
	first, _ := strconv.Atoi(m[2] + m[3])
	last := first
	if m[4] != "" {
		last, _ = strconv.Atoi(m[4])
	}
	k := map[string]Kind{"v": VGPR, "a": AGPR, "s": Scalar, "ttmp": Scalar}[m[1]]
	var list []uint16
	for r := first; r <= last; r++ {
		n := r
		switch {
		case m[1] == "ttmp":
			n += int(TTMP0)
		case m[1] == "s" && r >= 102 && strings.HasPrefix(processor, "gfx9"): // other names of these
			n += int(FlatScratchLo) - 102
		}
		list = append(list, uint16(n))
	}
	return k, list
}

var (
	writesNothing = regexp.MustCompile(`^(s_(cmp|bitcmp|set_?(pc|reg|gpr|prio|halt|kill|vskip|inst)|wait|barrier|nop|sleep|sendmsg$|sendmsghalt|trap|endpgm|c?branch|icache|dcache|inst|prefetch|` +
		`buffer_prefetch|atc|version|code|delay|clause|incperf|decperf|ttrace|rfe|denorm|round|gl1|wakeup|alloc|singleuse|monitor|subvector|sched)|` +
		`v_(nop|pipeflush|clrexcp|mfma_ld)|exp|(buffer|global)_(wb|inv|gl|prefetch)|ds_gws|ds_nop|global_load_lds|buffer_load_lds|s_set_vgpr|s_(rfe|add_pc|wakeup|monitor))|_store|ds_write_|ds_write2|_async_to_lds|^flat_prefetch|^tensor_`)
	writesLDS   = regexp.MustCompile(`^ds_(read|load|swizzle|permute|bpermute|append|consume|ordered|bvh)|_rtn|ds_(sub|cond_sub)_clamp_rtn`)
	writesTwo   = regexp.MustCompile(`^v_(swap|permlane\d+_swap)|^ds_bvh`)
	writesCarry = regexp.MustCompile(`^v_(add|sub|subrev|addc|subb|subbrev)_co|^v_div_scale|^v_mad_(co_)?[ui]64`)
)

// destinations are the operands that an instruction writes.
func destinations(l *listed, processor string) []string {
	ops := l.operands
	mn := l.mnemonic
	switch {
	case len(ops) == 0, writesNothing.MatchString(mn), strings.Contains(l.text, " lds"):
		return nil
	case strings.HasPrefix(mn, "v_cmpx") && !strings.HasPrefix(processor, "gfx9"):
		return nil
	case strings.HasPrefix(mn, "ds_") && !writesLDS.MatchString(mn):
		return nil
	case strings.Contains(mn, "atomic") && !strings.HasPrefix(mn, "image_") && !strings.HasPrefix(mn, "ds_"):
		if !strings.Contains(l.text, " glc") && !strings.Contains(l.text, " sc0") && !strings.Contains(l.text, "RETURN") {
			return nil
		}
		return ops[:1]
	case strings.HasPrefix(mn, "image_bvh_dual"), strings.HasPrefix(mn, "image_bvh8"):
		address := splitOperands(strings.TrimSuffix(strings.TrimPrefix(ops[1], "["), "]"))
		return []string{ops[0], address[2], address[3]}
	case writesTwo.MatchString(mn), writesCarry.MatchString(mn) && len(ops) > 3:
		return ops[:2]
	}
	return ops[:1]
}

// flowOf is what a mnemonic says about control.
func flowOf(l *listed) Flow {
	switch mnemonic := l.mnemonic; mnemonic {
	case "s_add_pc_i64":
		if _, err := strconv.ParseInt(l.operands[0], 0, 64); err == nil {
			return Branch
		}
		if l.operands[0] == "null" {
			return Branch
		}
		return Fork
	case "s_branch":
		return Branch
	case "s_setpc_b64", "s_rfe_b64", "s_rfe_restore_b64", "s_set_pc_i64", "s_rfe_i64":
		return Indirect
	case "s_call_b64", "s_call_i64":
		return Call
	case "s_swappc_b64", "s_swap_pc_i64":
		return IndirectCall
	case "s_cbranch_g_fork", "s_cbranch_i_fork", "s_cbranch_join":
		return Fork
	case "s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done", "s_code_end":
		return End
	}
	if strings.HasPrefix(l.mnemonic, "s_cbranch") || strings.HasPrefix(l.mnemonic, "s_subvector_loop") {
		return CondBranch
	}
	return Next
}

// mnemonics are the operations that matter by every name that they have.
var mnemonics = func() map[string]Op {
	m := map[string]Op{
		"s_mov_b32": SMovB32, "s_movk_i32": SMovB32, "s_mov_b64": SMovB64, "s_cmov_b32": SCmovB32, "s_cmovk_i32": SCmovB32, "s_cmov_b64": SCmovB64,
		"s_sext_i32_i16": SSextI16, "s_addk_i32": SAddI32, "s_addk_co_i32": SAddI32, "s_addc_u32": SAddcU32, "s_subb_u32": SSubbU32,
		"s_add_co_ci_u32": SAddcU32, "s_sub_co_ci_u32": SSubbU32, "s_add_nc_u64": SAddU64, "s_sub_nc_u64": SSubU64, "s_mul_i32": SMulI32, "s_mulk_i32": SMulI32,
		"s_ashr_i32": SAshrI32, "s_ashr_i64": SAshrI64, "s_getpc_b64": SGetpc, "s_setpc_b64": SSetpc, "s_swappc_b64": SSwappc,
		"s_get_pc_i64": SGetpc, "s_set_pc_i64": SSetpc, "s_swap_pc_i64": SSwappc, "s_call_i64": SCall, "s_rfe_i64": SRfe, "s_add_pc_i64": SAddPC,
		"s_rfe_b64": SRfe, "s_rfe_restore_b64": SRfe, "s_call_b64": SCall, "s_branch": SBranch, "s_cbranch_scc0": SCbranchSCC0, "s_cbranch_scc1": SCbranchSCC1,
		"s_cbranch_vccz": SCbranchVCCZ, "s_cbranch_vccnz": SCbranchVCCNZ, "s_cbranch_execz": SCbranchEXECZ, "s_cbranch_execnz": SCbranchEXECNZ,
		"s_cbranch_cdbgsys": SCbranchOther, "s_cbranch_cdbguser": SCbranchOther, "s_cbranch_cdbgsys_or_user": SCbranchOther,
		"s_cbranch_cdbgsys_and_user": SCbranchOther, "s_subvector_loop_begin": SCbranchOther, "s_subvector_loop_end": SCbranchOther,
		"s_cbranch_g_fork": SFork, "s_cbranch_i_fork": SFork, "s_cbranch_join": SFork, "s_endpgm": SEndpgm, "s_endpgm_saved": SEndpgm, "s_endpgm_ordered_ps_done": SEndpgm,
		"s_code_end": SCodeEnd, "s_trap": STrap, "s_setreg_b32": SSetreg, "s_setreg_imm32_b32": SSetreg, "s_getreg_b32": SGetreg, "s_nop": SNop,
		"s_set_gpr_idx_on": SSetGPRIdx, "s_set_gpr_idx_off": SGPRIdxOff, "s_set_gpr_idx_mode": SSetGPRIdx, "s_set_gpr_idx_idx": SSetGPRIdx, "s_setvskip": SSetVskip, "s_set_vgpr_msb": SSetVGPRMSB,
		"v_writelane_b32": VWritelane, "v_readlane_b32": VReadlane, "v_readfirstlane_b32": VReadfirst,
		"v_mov_b32": VMovB32, "v_mov_b64": VMovB64, "v_accvgpr_read_b32": VMovB32, "v_accvgpr_write_b32": VMovB32, "v_accvgpr_mov_b32": VMovB32,
	}
	add := func(op Op, format string, names ...string) {
		for _, name := range names {
			m[fmt.Sprintf(format, name)] = op
		}
	}
	for _, o := range []struct {
		narrow, wide, saveexec, wrexec Op
		names                          []string
	}{
		{SAndB32, SAndB64, SAndSaveexec, Other, []string{"and"}},
		{SOrB32, SOrB64, SOrSaveexec, Other, []string{"or"}},
		{SXorB32, SXorB64, SXorSaveexec, Other, []string{"xor"}},
		{SAndn2B32, SAndn2B64, SAndn2Saveexec, SAndn2Wrexec, []string{"andn2", "and_not1"}},
		{SOrn2B32, SOrn2B64, SOrn2Saveexec, Other, []string{"orn2", "or_not1"}},
		{SNandB32, SNandB64, SNandSaveexec, Other, []string{"nand"}},
		{SNorB32, SNorB64, SNorSaveexec, Other, []string{"nor"}},
		{SXnorB32, SXnorB64, SXnorSaveexec, Other, []string{"xnor"}},
		{Other, Other, SAndn1Saveexec, SAndn1Wrexec, []string{"andn1", "and_not0"}},
		{Other, Other, SOrn1Saveexec, Other, []string{"orn1", "or_not0"}},
		{SLshlB32, SLshlB64, Other, Other, []string{"lshl"}},
		{SLshrB32, SLshrB64, Other, Other, []string{"lshr"}},
		{SNotB32, SNotB64, Other, Other, []string{"not"}},
		{SCselectB32, SCselectB64, Other, Other, []string{"cselect"}},
	} {
		add(o.narrow, "s_%s_b32", o.names...)
		add(o.wide, "s_%s_b64", o.names...)
		for _, bits := range []string{"b32", "b64"} {
			add(o.saveexec, "s_%s_saveexec_"+bits, o.names...)
			add(o.wrexec, "s_%s_wrexec_"+bits, o.names...)
		}
	}
	add(SAddU32, "s_%s_u32", "add", "add_co")
	add(SSubU32, "s_%s_u32", "sub", "sub_co")
	add(SAddI32, "s_%s_i32", "add", "add_co")
	add(SSubI32, "s_%s_i32", "sub", "sub_co")
	loads := []string{"ubyte", "sbyte", "ushort", "sshort", "dword", "dwordx2", "dwordx3", "dwordx4", "u8", "i8", "u16", "i16", "b32", "b64", "b96", "b128"}
	stores := []string{"byte", "short", "dword", "dwordx2", "dwordx3", "dwordx4", "b8", "b16", "b32", "b64", "b96", "b128"}
	add(BufferLoad, "buffer_load_%s", loads...)
	add(BufferStore, "buffer_store_%s", stores...)
	add(ScratchLoad, "scratch_load_%s", loads...)
	add(ScratchStore, "scratch_store_%s", stores...)
	return m
}()

// operation is the Op of a mnemonic, and whether it must be that. What a move
// does is not all that matters if it changes its source on the way.
func operation(l *listed) (Op, bool) {
	op := mnemonics[l.mnemonic]
	switch {
	case strings.HasPrefix(l.mnemonic, "v_cmpx_"):
		op = VCmpx
	case strings.HasPrefix(l.mnemonic, "v_cmp_"):
		op = VCmp
	}
	switch {
	case strings.Contains(l.text, " lds"):
		return Other, true
	case l.suffix == "_sdwa", strings.HasSuffix(l.suffix, "_dpp"):
		return Other, true
	case (op == VMovB32 || op == VMovB64) && l.suffix == "_e64" && strings.ContainsAny(strings.TrimPrefix(l.text, l.mnemonic), "-|:ncmd"):
		return op, false
	}
	return op, true
}

// operands compares the operands of an instruction that matters; what is wrong,
// or nothing.
func (c *checker) operands(in *Inst, l *listed) string {
	want := func(list ...Operand) string {
		for i, o := range list {
			if i >= len(l.operands) {
				return fmt.Sprintf("has operand %d", i)
			}
			if problem := c.same(o, l.operands[i], l); problem != "" {
				return fmt.Sprintf("operand %d, %s", i, problem)
			}
		}
		return ""
	}
	switch in.Op {
	case SEndpgm, SCodeEnd, SFork, SNop, STrap, SSetGPRIdx, SGPRIdxOff:
		return ""
	case SSetVskip, SSetVGPRMSB, SAddPC:
		return want(in.Src[0])
	case VCmp, VCmpx:
		if in.Dst.Kind == None { // EXEC alone is written
			return ""
		}
		// The tool writes a mask of 32 lanes where it is not told of 64.
		mask := in.Dst
		if _, regs := registers(c.processor, l.operands[0]); len(regs) == 1 {
			mask.Width, mask.Reg = 1, mask.Reg|regs[0]&uint16(in.Dst.Width-1)
		}
		return want(mask)
	case SBranch, SCbranchSCC0, SCbranchSCC1, SCbranchVCCZ, SCbranchVCCNZ, SCbranchEXECZ, SCbranchEXECNZ, SCbranchOther, SCall:
		last := l.operands[len(l.operands)-1]
		target, ok := c.symbols(last)
		if !ok {
			n, err := strconv.ParseInt(last, 0, 32)
			if err != nil {
				return err.Error()
			}
			target = l.address + 4 + uint64(4*int64(int16(n)))
		}
		if in.Target != target {
			return fmt.Sprintf("target %#x, expected %#x", in.Target, target)
		}
		if in.Op == SCall {
			return want(in.Dst)
		}
		return ""
	case SSetpc, SRfe:
		return want(in.Src[0])
	case SGetpc, SGetreg:
		return want(in.Dst)
	case SSetreg:
		return c.same(in.Src[0], l.operands[1], l)
	case SAddI32, SMulI32:
		if strings.Contains(l.mnemonic, "k_") {
			return want(in.Dst, in.Src[1])
		}
	case BufferLoad, BufferStore:
		data := in.Dst
		if in.Op == BufferStore {
			data = in.Src[0]
		}
		return cmpOr(want(data, in.VAddr, in.Base, in.SOffset), c.offset(in, l))
	case ScratchLoad:
		return cmpOr(want(in.Dst, in.VAddr, in.Base), c.offset(in, l))
	case ScratchStore:
		return cmpOr(want(in.VAddr, in.Src[0], in.Base), c.offset(in, l))
	}
	if in.Src[1].Kind != None {
		return want(in.Dst, in.Src[0], in.Src[1])
	}
	return want(in.Dst, in.Src[0])
}

func cmpOr(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

var offsets = regexp.MustCompile(` offset:(-?\w+)`)

// offset compares the offset of a memory operation, and how many bytes it has.
func (c *checker) offset(in *Inst, l *listed) string {
	want := int64(0)
	if m := offsets.FindStringSubmatch(l.text); m != nil {
		want, _ = strconv.ParseInt(m[1], 0, 32)
	}
	if int64(in.Offset) != want {
		return fmt.Sprintf("offset %d, expected %d", in.Offset, want)
	}
	if in.IsIndexed != strings.Contains(l.text, " idxen") {
		return "an index"
	}
	size := map[string]uint8{
		"byte": 1, "b8": 1, "u8": 1, "i8": 1, "short": 2, "b16": 2, "u16": 2, "i16": 2, "dword": 4, "b32": 4,
		"dwordx2": 8, "b64": 8, "dwordx3": 12, "b96": 12, "dwordx4": 16, "b128": 16,
	}
	name := l.mnemonic[strings.LastIndex(l.mnemonic, "_")+1:]
	if name != "dword" && (strings.HasPrefix(name, "u") || strings.HasPrefix(name, "s")) && len(name) > 3 && name != "short" {
		name = name[1:]
	}
	if in.Bytes != size[name] {
		return fmt.Sprintf("%d bytes, expected %d", in.Bytes, size[name])
	}
	return ""
}

// same compares an operand with its text.
func (c *checker) same(o Operand, text string, l *listed) string {
	text, _, _ = strings.Cut(text, " ")
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "lit64("), "lit("), ")")
	k, regs := registers(c.processor, text)
	bad := fmt.Sprintf("%+v, expected %s", o, text)
	switch o.Kind {
	case None:
		if text != "off" {
			return bad
		}
	case Scalar, VGPR, AGPR:
		if text == "null" && o.Kind == Scalar && Reg(o.Reg) == Null {
			return ""
		}
		width := len(regs)
		if strings.Contains(l.text, " tfe") && o == (Operand{Kind: o.Kind, Reg: o.Reg, Width: o.Width}) && width == int(o.Width)+1 {
			width-- // the last one gets the status
		}
		if k != o.Kind || width != int(o.Width) || regs[0] != o.Reg {
			return bad
		}
	case Constant:
		if text == "null" {
			if o.Value != 0 {
				return bad
			}
			return ""
		}
		if u, err := strconv.ParseUint(text, 0, 64); err == nil && u > math.MaxInt64 {
			text = strconv.FormatInt(int64(u), 10)
		}
		if n, err := strconv.ParseInt(text, 0, 64); err == nil {
			mask := int64(math.MaxUint32)
			if strings.Contains(l.mnemonic, "k_") {
				mask = math.MaxUint16
			}
			if n&mask != o.Value&mask {
				return bad
			}
			if n < 0 && n != o.Value {
				return bad
			}
			return ""
		}
		f, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
			return bad
		case o.Width == 2 && math.Abs(math.Float64frombits(uint64(o.Value))-f) > 1e-8:
			return bad
		case o.Width == 1 && math.Abs(float64(math.Float32frombits(uint32(o.Value)))-f) > 1e-8:
			return bad
		}
	case Machine:
		if !strings.HasPrefix(text, "src_") && text != "lds_direct" && regs == nil {
			return bad
		}
	}
	return ""
}

// checkObject compares every instruction of an object.
func (c *checker) checkObject(t testing.TB, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	data, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	c.symbols = func(name string) (uint64, bool) {
		i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == name })
		if i < 0 {
			return 0, false
		}
		return symbols[i].Value, true
	}
	for _, l := range list(t, path) {
		c.check(data[l.address-text.Addr:], &l)
	}
}

// lanesOf is the wave size that compilers take for a processor.
func lanesOf(processor string) uint32 {
	if strings.HasPrefix(processor, "gfx9") {
		return 64
	}
	return 32
}

// TestEveryInstructionOfCompiledObjects compiles the sources of the plugin's
// fixtures, not optimized and optimized, and compares what the compiler wrote
// with llvm-objdump.
func TestEveryInstructionOfCompiledObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("asks other tools for much")
	}
	oracle.Tools(t, "clang-22", "ld.lld-22", objdump)
	dir := t.TempDir()
	for _, processor := range []string{"gfx900", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250", "gfx1251"} {
		c := newChecker(t, processor, lanesOf(processor))
		for _, level := range []string{"-O0", "-O2"} {
			for _, source := range []string{"amd_k.cl", "amd_h.hip", "isa/testdata/spills.cl"} {
				out := filepath.Join(dir, "object")
				args := []string{"-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-mcpu=" + processor, "-nogpulib"}
				path := filepath.Join("../testdata", source)
				if filepath.Ext(source) == ".hip" {
					args = []string{"-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "--offload-arch=" + processor, "-nogpuinc", "-nogpulib"}
				} else if strings.HasPrefix(source, "isa/") {
					path = strings.TrimPrefix(source, "isa/")
				}
				if b, err := exec.Command("clang-22", append(args, level, "-o", out, path)...).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", source, err, b)
				}
				c.checkObject(t, out)
			}
		}
		c.report(t)
		t.Logf("%s: %d instructions compared, %d with their operands, %d registers written, %d differ", processor, c.compared, c.full, c.written, c.different)
		if c.compared < 1000 || c.full < 200 {
			t.Errorf("%s: only %d instructions, %d with their operands", processor, c.compared, c.full)
		}
	}
}

// TestEveryInstructionOfTheFixtures is the same for the plugin's objects.
func TestEveryInstructionOfTheFixtures(t *testing.T) {
	oracle.Tools(t, objdump)
	for _, name := range []string{"amd_h.gfx90a.cfi.co", "amd_h.gfx90a.co", "amd_k.gfx1100.co"} {
		processor := strings.Split(name, ".")[1]
		c := newChecker(t, processor, lanesOf(processor))
		c.checkObject(t, filepath.Join("../testdata", name))
		c.report(t)
		if c.compared < 100 {
			t.Errorf("%s: only %d instructions", name, c.compared)
		}
	}
}

// A sampleTarget is one that random code is disassembled for.
type sampleTarget struct {
	processor string
	lanes     uint32
	attribute string
}

var sampleTargets = []sampleTarget{
	{"gfx900", 64, ""}, {"gfx906", 64, ""}, {"gfx908", 64, ""}, {"gfx90a", 64, ""}, {"gfx942", 64, ""}, {"gfx950", 64, ""},
	{"gfx1010", 32, ""}, {"gfx1013", 64, "-wavesize32,+wavesize64"}, {"gfx1030", 32, ""}, {"gfx1030", 64, "-wavesize32,+wavesize64"},
	{"gfx1100", 32, ""}, {"gfx1100", 64, "-wavesize32,+wavesize64"}, {"gfx1150", 32, ""},
	{"gfx1200", 32, ""}, {"gfx1200", 64, "-wavesize32,+wavesize64,+real-true16"},
	{"gfx1250", 32, ""}, {"gfx1251", 32, ""},
}

const sampleSize = 24

// sample is code that is random but for the format, and for fields that are more
// often zero or what says that more words follow.
func sample(r *rand.Rand, m *machine, formats []uint16) []byte {
	var w [sampleSize / 4]uint32
	for i := range w {
		w[i] = r.Uint32()
		for b := range 4 {
			if r.IntN(3) == 0 {
				w[i] &^= 0xff << (8 * b)
			}
		}
	}
	w[0] = w[0]&0x7fffff | uint32(formats[r.IntN(len(formats))])<<23
	special := []uint32{249, 250, 233, 234, 255, 124, 125, 126, 106, 253, 240, 248, 128, 0x100}
	if r.IntN(6) == 0 {
		w[0] = w[0]&^0x1ff | special[r.IntN(len(special))]
	}
	if r.IntN(6) == 0 {
		w[1] = w[1]&^0x1ff | special[r.IntN(len(special))]
	}
	if m.hasSDWA && w[0]&0x1ff == srcSDWA { // of vector registers
		w[1] &^= 1<<23 | 1<<31
	}
	if l := m.byTop[w[0]>>23]; l.soffset.bits == 8 { // a register, or zero
		w[1] = w[1]&0xffffff | []uint32{128, 32, 33, 0, 124}[r.IntN(5)]<<24
	}
	b := make([]byte, 0, sampleSize)
	for _, x := range w {
		b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
	}
	return b
}

// topBits are what the upper nine bits of first words may be, so that each
// format has its share.
func topBits(m *machine) []uint16 {
	var list []uint16
	share := map[format]int{vop3: 60, vop3p: 30, ds: 20, flat: 30, mimg: 30, vsample: 20, smem: 12, mubuf: 20, vop1: 12, sop1: 12, vopd: 12}
	for i := range m.byTop {
		l := m.byTop[i]
		if l == nil || i > int(l.first) {
			continue
		}
		n := share[l.format]
		for j := range max(n, 8) {
			list = append(list, l.first+uint16(j)%(l.last-l.first+1))
		}
		if l.format == vop2 {
			for j := l.first; j <= l.last; j += 2 {
				list = append(list, j)
			}
		}
		if l.format == sop2 || l.format == sopk {
			for j := l.first; j <= l.last; j++ {
				list = append(list, j)
			}
		}
	}
	return list
}

// disassembleSamples gives each sample's first instruction, if it has one. The
// disassembler crashes on some words: these are found by halves, and have none.
func disassembleSamples(t *testing.T, s sampleTarget, samples [][]byte, path string) ([]listed, int) {
	t.Helper()
	var b strings.Builder
	b.WriteString(".text\n")
	for i, code := range samples {
		fmt.Fprintf(&b, "f%d:\n", i)
		for at := 0; at < len(code); at += 8 {
			fmt.Fprintf(&b, ".quad %#x\n", binary.LittleEndian.Uint64(code[at:]))
		}
	}
	cmd := exec.Command("llvm-mc-22", "-triple=amdgcn-amd-amdhsa", "-mcpu="+s.processor, "-filetype=obj", "-o", path, "-")
	cmd.Stdin = strings.NewReader(b.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out[:min(len(out), 500)])
	}
	args := []string{"-d", "-z"}
	if s.attribute != "" {
		args = append(args, "--mattr="+s.attribute)
	}
	cmd = exec.Command(objdump, append(args, path)...)
	cmd.Env = append(os.Environ(), "LLVM_DISABLE_SYMBOLIZATION=1") // of its own crashes, which takes long
	out, err := cmd.Output()
	if err != nil {
		if len(samples) == 1 {
			return make([]listed, 1), 1
		}
		half := len(samples) / 2
		first, n := disassembleSamples(t, s, samples[:half], path)
		second, k := disassembleSamples(t, s, samples[half:], path)
		return append(first, second...), n + k
	}
	all := make([]listed, len(samples))
	for _, l := range parseListing(t, string(out)) {
		if i := l.address / sampleSize; l.address%sampleSize == 0 && i < uint64(len(all)) && l.mnemonic != ".long" {
			all[i] = l
		}
	}
	return all, 0
}

// TestRandomCode compares code that nobody wrote. What the disassembler itself
// calls invalid does not count, nor do operations of another generation that it
// takes for ones of this. Words that follow where there are none are not asked
// about: its assembler takes none, and it crashes on many.
func TestRandomCode(t *testing.T) {
	if testing.Short() {
		t.Skip("asks other tools for much")
	}
	oracle.Tools(t, "llvm-mc-22", objdump)
	batches, size := 3, 500
	if proof.IsRequested() {
		batches = 40
	}
	path := filepath.Join(t.TempDir(), "object")
	for _, s := range sampleTargets {
		c := newChecker(t, s.processor, s.lanes)
		m := c.target.machine
		r := rand.New(rand.NewPCG(uint64(len(s.processor)), uint64(s.lanes)))
		tops := topBits(m)
		c.symbols = func(name string) (uint64, bool) {
			n, err := strconv.ParseUint(strings.TrimPrefix(name, "f"), 10, 64)
			return n * sampleSize, err == nil && strings.HasPrefix(name, "f")
		}
		crashes, unknown, invalid, lenient := 0, 0, 0, 0
		for range batches {
			samples := make([][]byte, size)
			for i := range samples {
				for {
					samples[i] = sample(r, m, tops)
					if _, err := c.target.Decode(samples[i], 0); err == nil || !strings.Contains(err.Error(), "cannot have") {
						break
					}
				}
			}
			all, n := disassembleSamples(t, s, samples, path)
			crashes += n
			for i := range all {
				l, code := &all[i], samples[i]
				_, err := c.target.Decode(code, l.address)
				switch {
				case l.mnemonic == "":
					unknown++
					if err == nil {
						lenient++
					}
				case strings.Contains(l.text, "/*Invalid"), l.mnemonic == "v_illegal", err != nil && strings.Contains(err.Error(), "writes no register"):
					invalid++
				case !m.isUnified && strings.HasPrefix(s.processor, "gfx90") && strings.Contains(l.text, "atomic") && code[3]>>2 == 0xdc>>2 && code[6]>>7 != 0:
					invalid++ // that bit is of the next generation
				case strings.HasPrefix(s.processor, "gfx12") && strings.HasPrefix(l.mnemonic, "v_") && code[3]>>2 == 0xd0>>2:
					invalid++
				default:
					c.check(code, l)
				}
			}
		}
		c.report(t)
		t.Logf("%s, %d lanes: %d instructions compared, %d with their operands, %d registers written, %d differ; not compared: %d that %s does not know (%d of them known here), %d with invalid operands, %d that it crashes on",
			s.processor, s.lanes, c.compared, c.full, c.written, c.different, unknown, objdump, lenient, invalid, crashes)
		if c.compared < batches*size/4 {
			t.Errorf("%s: only %d instructions", s.processor, c.compared)
		}
	}
}

// operandWords are operands, in the words of an instruction, that many operations take:
// registers that begin pairs and fours, literals of both sizes, and fields that are zero
// or name no register.
var operandWords = [][3]uint32{
	{}, {0x00000406, 0x0a060402, 4}, {0x0000010c, 0x0a000402, 0x7c7c0c08}, {0x00001108, 0x0a000002, 0x7c7c7c7c}, {0x0000007c, 0x0400010c | 0x10e<<9 | 0x110<<18, 4},
	{0x0000007c, 6<<23 | 8, 4}, {0x0000007c, 1<<20 | 6<<23 | 8, 4}, {0x00000002, 8<<9 | 6, 4}, {0x00004008, 0x1a000100 | 0x128<<9 | 0x140<<18, 0xbfb00000},
	{0x00000104, 0x00080102, 0x0a00000c}, {0x00000104, 0x00000101, 0x0a00000c}, {0x00000082, 0xf8000000, 0}, {0x00000001, 0x7c000000, 0x0c100800}, {0x001000fe, 0x40302010, 0x50403020},
	{0x001000ff, 0x40302010, 0x50403020}, {0x0000fe04, 0x40302010, 0x50403020}, {0x00000106, 0x040000fe | 0x10e<<9 | 0x110<<18, 0x40302010}, {0x00000106, 0x040000ff | 0x10e<<9 | 0x110<<18, 0x40302010},
	{0x00020000, 0x0a000002, 0x06000000}, {0x0000000a, 0x00000104, 0}, {0x0000000a, 0x00020904, 0xcc330008},
}

// numbered is code for every number that an operation of a layout may have.
func numbered(l *layout) (samples [][]byte) {
	set := func(w *words, f field, n uint32) {
		mask := uint32(1)<<f.bits - 1
		w[f.first/32] = w[f.first/32]&^(mask<<(f.first%32)) | n&mask<<(f.first%32)
	}
	segments := []uint32{0}
	if l.segment.bits != 0 {
		segments = []uint32{0, 1, 2}
	}
	for n := range uint32(1) << (l.op.bits + l.opHigh.bits) {
		for _, segment := range segments {
			for _, o := range operandWords {
				w := words{o[0] | uint32(l.first)<<23, o[1], o[2], 0x04020100}
				set(&w, l.op, n)
				set(&w, l.opHigh, n>>l.op.bits)
				set(&w, l.segment, segment)
				b := make([]byte, 0, sampleSize)
				for _, x := range w {
					b = binary.LittleEndian.AppendUint32(b, x)
				}
				samples = append(samples, binary.LittleEndian.AppendUint32(b, 0))
			}
		}
	}
	return samples
}

// TestEveryNumber compares the operations of gfx1250 under every number that a format
// has room for: none is missing that the disassembler knows. A double instruction of
// three words has no literal, but the disassembler takes one from the instruction's own
// words; those are not compared.
func TestEveryNumber(t *testing.T) {
	if testing.Short() {
		t.Skip("asks other tools for much")
	}
	oracle.Tools(t, "llvm-mc-22", objdump)
	path := filepath.Join(t.TempDir(), "object")
	s := sampleTarget{"gfx1250", 32, ""}
	c := newChecker(t, s.processor, s.lanes)
	c.symbols = func(string) (uint64, bool) { return 0, false }
	seen, unknown := map[string]bool{}, 0
	var last *layout
	for _, l := range c.target.machine.byTop {
		if l == nil || l == last {
			continue
		}
		last = l
		samples := numbered(l)
		all, _ := disassembleSamples(t, s, samples, path)
		for i := range all {
			a := &all[i]
			a.address = 0
			if _, err := c.target.Decode(samples[i], 0); a.mnemonic == "" || a.mnemonic == "v_illegal" || strings.Contains(a.text, "/*Invalid") ||
				l.format == vopd3 && err != nil && strings.Contains(err.Error(), "cannot have") {
				unknown++
				continue
			}
			seen[a.mnemonic] = true
			c.check(samples[i], a)
		}
	}
	c.report(t)
	t.Logf("%s: %d operations, %d instructions compared, %d with their operands, %d registers written, %d differ; %d not compared, which %s does not know or take",
		s.processor, len(seen), c.compared, c.full, c.written, c.different, unknown, objdump)
	if len(seen) < 1300 {
		t.Errorf("only %d operations", len(seen))
	}
}
