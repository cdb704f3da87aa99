// SPDX-License-Identifier: Apache-2.0

package gcn

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

var errUnknown = errors.New("the instruction is not known here")

// operandsOf checks that an instruction has n operands and only the named
// modifiers.
func (ins *Instruction) operandsOf(n int, modifiers ...string) error {
	if len(ins.operands) != n {
		return fmt.Errorf("%d operands, expected %d", len(ins.operands), n)
	}
	known := " " + strings.Join(modifiers, " ") + " "
	for m := range ins.modifiers {
		if !strings.Contains(known, " "+m+" ") {
			return fmt.Errorf("modifier %s is not known here", m)
		}
	}
	for m := range ins.lists {
		if !strings.Contains(known, " "+m+" ") {
			return fmt.Errorf("modifier %s is not known here", m)
		}
	}
	return nil
}

// scalarOp is a scalar operation of two operands: a result, and the scalar
// condition code, which does not change where set is false.
type scalarOp struct {
	a, b, out int // sizes in bits
	do        func(a, b uint64, scc bool) (r uint64, code bool)
	keeps     bool // the condition code stays
}

func signed32(v uint64) int64 { return int64(int32(uint32(v))) } //nolint:gosec // two's complement

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// truncate cuts a number to a size in bits.
func truncate(v uint64, width int) uint64 {
	if width == 64 {
		return v
	}
	return v & (1<<width - 1)
}

// logic returns an operation whose condition code is set where the result is
// not 0.
func logic(width int, f func(a, b uint64) uint64) scalarOp {
	return scalarOp{a: width, b: width, out: width, do: func(a, b uint64, _ bool) (uint64, bool) {
		r := truncate(f(a, b), width)
		return r, r != 0
	}}
}

// shift returns such an operation whose second operand is a count.
func shift(width int, f func(a uint64, n uint64) uint64) scalarOp {
	op := logic(width, func(a, b uint64) uint64 { return f(a, b&uint64(width-1)) }) //nolint:gosec // 31 or 63
	op.b = 32
	return op
}

// wideOp returns an operation of 64 bits that keeps the condition code.
func wideOp(f func(a, b uint64) uint64) scalarOp {
	return scalarOp{a: 64, b: 64, out: 64, keeps: true, do: func(a, b uint64, _ bool) (uint64, bool) { return f(a, b), false }}
}

// plainOp returns an operation of 32 bits that keeps the condition code.
func plainOp(f func(a, b uint64) uint64) scalarOp {
	return scalarOp{a: 32, b: 32, out: 32, keeps: true, do: func(a, b uint64, _ bool) (uint64, bool) { return f(a, b), false }}
}

// lesser returns an operation that chooses an operand; the code is set where it is
// the first.
func lesser(first func(a, b uint64) bool) scalarOp {
	return scalarOp{a: 32, b: 32, out: 32, do: func(a, b uint64, _ bool) (uint64, bool) {
		if first(a, b) {
			return a, true
		}
		return b, false
	}}
}

// overflow returns an addition or subtraction whose code is set where the
// signed result overflows.
func overflow(f func(a, b int64) int64) scalarOp {
	return scalarOp{a: 32, b: 32, out: 32, do: func(a, b uint64, _ bool) (uint64, bool) {
		r := f(signed32(a), signed32(b))
		return uint64(r), r != int64(int32(r)) //nolint:gosec // two's complement
	}}
}

// carry returns an operation whose code is set where the unsigned result
// overflows.
func carry(f func(a, b, code uint64) uint64) scalarOp {
	return scalarOp{a: 32, b: 32, out: 32, do: func(a, b uint64, scc bool) (uint64, bool) {
		r := f(a, b, bit(scc))
		return r, r>>32 != 0
	}}
}

// leading counts the bits above the highest one; all ones where there is none.
func leading(v uint64, width int) uint64 {
	if v == 0 {
		return 0xffff_ffff
	}
	return uint64(width - bits.Len64(v)) //nolint:gosec // not negative
}

// trailing counts the bits below the lowest one.
func trailing(v uint64) uint64 {
	if v == 0 {
		return 0xffff_ffff
	}
	return uint64(bits.TrailingZeros64(v)) //nolint:gosec // not negative
}

// signBits counts the bits that equal the sign bit, from the top.
func signBits(v uint64) uint64 {
	x := uint32(v) //nolint:gosec // 32 bits
	if int32(x) < 0 {
		x = ^x
	}
	if x == 0 {
		return 0xffff_ffff
	}
	return uint64(bits.LeadingZeros32(x)) //nolint:gosec // not negative
}

// field returns the bits from offset on, in the encoding of s_bfe.
func field(v, offset, width uint64, size int, signed bool) uint64 {
	if width == 0 {
		return 0
	}
	v = truncate(v, size) >> offset
	if width >= uint64(size) { //nolint:gosec // positive
		width = uint64(size) //nolint:gosec // positive
	}
	if width == 64 {
		return v
	}
	v &= 1<<width - 1
	if signed && v>>(width-1) != 0 {
		v |= ^uint64(0) << width
	}
	return v
}

var scalarOps = map[string]scalarOp{
	"s_add_u32":       carry(func(a, b, _ uint64) uint64 { return a + b }),
	"s_addc_u32":      carry(func(a, b, c uint64) uint64 { return a + b + c }),
	"s_sub_u32":       carry(func(a, b, _ uint64) uint64 { return a - b }),
	"s_subb_u32":      carry(func(a, b, c uint64) uint64 { return a - b - c }),
	"s_add_i32":       overflow(func(a, b int64) int64 { return a + b }),
	"s_sub_i32":       overflow(func(a, b int64) int64 { return a - b }),
	"s_addk_i32":      overflow(func(a, b int64) int64 { return a + int64(int16(b)) }), //nolint:gosec // 16 bits in the instruction
	"s_add_nc_u64":    wideOp(func(a, b uint64) uint64 { return a + b }),
	"s_sub_nc_u64":    wideOp(func(a, b uint64) uint64 { return a - b }),
	"s_mul_u64":       wideOp(func(a, b uint64) uint64 { return a * b }),
	"s_lshl1_add_u32": carry(func(a, b, _ uint64) uint64 { return a<<1 + b }),
	"s_lshl2_add_u32": carry(func(a, b, _ uint64) uint64 { return a<<2 + b }),
	"s_lshl3_add_u32": carry(func(a, b, _ uint64) uint64 { return a<<3 + b }),
	"s_lshl4_add_u32": carry(func(a, b, _ uint64) uint64 { return a<<4 + b }),
	"s_min_i32":       lesser(func(a, b uint64) bool { return signed32(a) < signed32(b) }),
	"s_max_i32":       lesser(func(a, b uint64) bool { return signed32(a) >= signed32(b) }),
	"s_min_u32":       lesser(func(a, b uint64) bool { return a < b }),
	"s_max_u32":       lesser(func(a, b uint64) bool { return a >= b }),
	"s_mul_i32":       plainOp(func(a, b uint64) uint64 { return a * b }),
	"s_mulk_i32":      plainOp(func(a, b uint64) uint64 { return a * uint64(int64(int16(b))) }), //nolint:gosec // 16 bits in the instruction
	"s_mul_hi_u32":    plainOp(func(a, b uint64) uint64 { return a * b >> 32 }),
	"s_mul_hi_i32":    plainOp(func(a, b uint64) uint64 { return uint64(signed32(a) * signed32(b) >> 32) }), //nolint:gosec // two's complement
	"s_bfm_b32":       plainOp(func(a, b uint64) uint64 { return (1<<(a&31) - 1) << (b & 31) }),
	"s_pack_ll_b32_b16": plainOp(func(a, b uint64) uint64 {
		return a&0xffff | b<<16
	}),
	"s_absdiff_i32": logic(32, func(a, b uint64) uint64 {
		return uint64(max(signed32(a)-signed32(b), signed32(b)-signed32(a))) //nolint:gosec // two's complement
	}),
	"s_lshl_b32": shift(32, func(a, n uint64) uint64 { return a << n }),
	"s_lshl_b64": shift(64, func(a, n uint64) uint64 { return a << n }),
	"s_lshr_b32": shift(32, func(a, n uint64) uint64 { return a >> n }),
	"s_lshr_b64": shift(64, func(a, n uint64) uint64 { return a >> n }),
	"s_ashr_i32": shift(32, func(a, n uint64) uint64 { return uint64(signed32(a) >> n) }), //nolint:gosec // two's complement
	"s_ashr_i64": shift(64, func(a, n uint64) uint64 { return uint64(int64(a) >> n) }),    //nolint:gosec // two's complement
	"s_bfe_u32":  logic(32, func(a, b uint64) uint64 { return field(a, b&31, b>>16&127, 32, false) }),
	"s_bfe_i32":  logic(32, func(a, b uint64) uint64 { return field(a, b&31, b>>16&127, 32, true) }),
	"s_bfe_u64": {a: 64, b: 32, out: 64, do: func(a, b uint64, _ bool) (uint64, bool) {
		r := field(a, b&63, b>>16&127, 64, false)
		return r, r != 0
	}},
}

// logicOps are the logical operations, of 32 and 64 bits, by the words in their
// names, in s_NAME_saveexec too.
var logicOps = map[string]func(a, b uint64) uint64{
	"and": func(a, b uint64) uint64 { return a & b }, "or": func(a, b uint64) uint64 { return a | b },
	"xor": func(a, b uint64) uint64 { return a ^ b }, "andn2": func(a, b uint64) uint64 { return a &^ b },
	"and_not1": func(a, b uint64) uint64 { return a &^ b }, "orn2": func(a, b uint64) uint64 { return a | ^b },
	"or_not1": func(a, b uint64) uint64 { return a | ^b }, "nand": func(a, b uint64) uint64 { return ^(a & b) },
	"nor": func(a, b uint64) uint64 { return ^(a | b) }, "xnor": func(a, b uint64) uint64 { return ^(a ^ b) },
	"andn1": func(a, b uint64) uint64 { return b &^ a }, "and_not0": func(a, b uint64) uint64 { return b &^ a },
	"orn1": func(a, b uint64) uint64 { return b | ^a }, "or_not0": func(a, b uint64) uint64 { return b | ^a },
}

// unaryOp is a scalar operation of one operand.
type unaryOp struct {
	source, out int
	do          func(a uint64) uint64
	code        bool // the condition code is set where the result is not 0
}

var unaryOps = map[string]unaryOp{
	"s_mov_b32":       {32, 32, func(a uint64) uint64 { return a }, false},
	"s_mov_b64":       {64, 64, func(a uint64) uint64 { return a }, false},
	"s_movk_i32":      {32, 32, func(a uint64) uint64 { return uint64(int64(int16(a))) }, false}, //nolint:gosec // 16 bits in the instruction
	"s_not_b32":       {32, 32, func(a uint64) uint64 { return ^a & 0xffff_ffff }, true},
	"s_not_b64":       {64, 64, func(a uint64) uint64 { return ^a }, true},
	"s_brev_b32":      {32, 32, func(a uint64) uint64 { return uint64(bits.Reverse32(uint32(a))) }, false}, //nolint:gosec // 32 bits
	"s_bcnt1_i32_b32": {32, 32, func(a uint64) uint64 { return uint64(bits.OnesCount64(a)) }, true},        //nolint:gosec // not negative
	"s_bcnt1_i32_b64": {64, 32, func(a uint64) uint64 { return uint64(bits.OnesCount64(a)) }, true},        //nolint:gosec // not negative
	"s_ff1_i32_b32":   {32, 32, trailing, false},
	"s_ff1_i32_b64":   {64, 32, trailing, false},
	"s_ctz_i32_b32":   {32, 32, trailing, false},
	"s_ctz_i32_b64":   {64, 32, trailing, false},
	"s_flbit_i32_b32": {32, 32, func(a uint64) uint64 { return leading(a, 32) }, false},
	"s_clz_i32_u32":   {32, 32, func(a uint64) uint64 { return leading(a, 32) }, false},
	"s_flbit_i32_b64": {64, 32, func(a uint64) uint64 { return leading(a, 64) }, false},
	"s_clz_i32_u64":   {64, 32, func(a uint64) uint64 { return leading(a, 64) }, false},
	"s_flbit_i32":     {32, 32, signBits, false},
	"s_cls_i32":       {32, 32, signBits, false},
	"s_sext_i32_i8":   {32, 32, func(a uint64) uint64 { return uint64(int64(int8(a))) }, false},                //nolint:gosec // 8 bits
	"s_sext_i32_i16":  {32, 32, func(a uint64) uint64 { return uint64(int64(int16(a))) }, false},               //nolint:gosec // 16 bits
	"s_abs_i32":       {32, 32, func(a uint64) uint64 { return uint64(max(signed32(a), -signed32(a))) }, true}, //nolint:gosec // two's complement
}

// orders compare numbers by their type; 2: they have no order.
var orders = map[string]struct {
	width   int
	compare func(a, b uint64) int
}{
	"i16": {16, func(a, b uint64) int { return cmp.Compare(int16(a), int16(b)) }},   //nolint:gosec // two's complement
	"u16": {16, func(a, b uint64) int { return cmp.Compare(uint16(a), uint16(b)) }}, //nolint:gosec // 16 bits
	"i32": {32, func(a, b uint64) int { return cmp.Compare(signed32(a), signed32(b)) }},
	"u32": {32, cmp.Compare[uint64]},
	"i64": {64, func(a, b uint64) int { return cmp.Compare(int64(a), int64(b)) }}, //nolint:gosec // two's complement
	"u64": {64, cmp.Compare[uint64]},
	"f32": {32, func(a, b uint64) int {
		x, y := f32(a), f32(b)
		if x != x || y != y {
			return 2
		}
		return cmp.Compare(x, y)
	}},
}

// relations are the orders for which a comparison is true.
var relations = map[string][]int{"eq": {0}, "ne": {-1, 1}, "lg": {-1, 1}, "lt": {-1}, "gt": {1}, "le": {-1, 0}, "ge": {0, 1}}

// comparison returns a comparison by its name and type.
func comparison(relation, kind string) (f func(a, b uint64) bool, width int, err error) {
	order, ok := orders[kind]
	if !ok {
		return nil, 0, fmt.Errorf("comparison of %s: %w", kind, errUnknown)
	}
	accepted, isNot := relations[relation], false
	if accepted == nil && kind == "f32" { // true without an order, too
		accepted, isNot = relations[strings.TrimPrefix(relation, "n")], true
	}
	if accepted == nil {
		return nil, 0, fmt.Errorf("comparison %s: %w", relation, errUnknown)
	}
	return func(a, b uint64) bool { return slices.Contains(accepted, order.compare(a, b)) != isNot }, order.width, nil
}

// compileScalar makes a scalar instruction executable.
func compileScalar(ins *Instruction) (func(*State) error, error) {
	if op, ok := scalarOps[ins.name]; ok {
		return ins.scalarOp(op)
	}
	if op, ok := unaryOps[ins.name]; ok {
		return ins.unaryOp(op)
	}
	name := strings.TrimPrefix(ins.name, "s_")
	if op, ok := laneOps["v_"+name]; ok && strings.Contains(name, "_f32") { // from gfx11.5 on
		if len(op.sources) == 1 {
			return ins.unaryOp(unaryOp{32, 32, func(a uint64) uint64 { return op.do(a, 0, 0) }, false})
		}
		return ins.scalarOp(plainOp(func(a, b uint64) uint64 { return op.do(a, b, 0) }))
	}
	index := strings.LastIndexByte(name, '_')
	if index < 0 {
		return ins.scalarOther()
	}
	verb, kind := name[:index], name[index+1:]
	width := 32
	if kind == "b64" || kind == "u64" || kind == "i64" {
		width = 64
	}
	if f := logicOps[verb]; f != nil && (kind == "b32" || kind == "b64") {
		return ins.scalarOp(logic(width, f))
	}
	if v, ok := strings.CutSuffix(verb, "_saveexec"); ok && logicOps[v] != nil {
		return ins.saveExec(logicOps[v], width)
	}
	if r, ok := strings.CutPrefix(verb, "cmp_"); ok {
		return ins.scalarCompare(r, kind, false)
	}
	if r, ok := strings.CutPrefix(verb, "cmpk_"); ok {
		return ins.scalarCompare(r, kind, true)
	}
	if strings.HasPrefix(ins.name, "s_load_") {
		return ins.scalarLoad()
	}
	return ins.scalarOther()
}

func (ins *Instruction) scalarOp(op scalarOp) (func(*State) error, error) {
	if strings.HasSuffix(ins.name, "k_i32") && len(ins.operands) == 2 {
		ins.operands = []Operand{ins.operands[0], ins.operands[0], ins.operands[1]}
	}
	if err := ins.operandsOf(3); err != nil {
		return nil, err
	}
	dst, x, y := &ins.operands[0], &ins.operands[1], &ins.operands[2]
	return func(s *State) error {
		a, err := s.readScalar(x, op.a)
		if err != nil {
			return err
		}
		b, err := s.readScalar(y, op.b)
		if err != nil {
			return err
		}
		r, code := op.do(a, b, s.scc)
		if !op.keeps {
			s.scc = code
		}
		return s.writeScalar(dst, truncate(r, op.out), op.out)
	}, nil
}

func (ins *Instruction) unaryOp(op unaryOp) (func(*State) error, error) {
	if err := ins.operandsOf(2); err != nil {
		return nil, err
	}
	dst, x := &ins.operands[0], &ins.operands[1]
	return func(s *State) error {
		a, err := s.readScalar(x, op.source)
		if err != nil {
			return err
		}
		r := truncate(op.do(a), op.out)
		if op.code {
			s.scc = r != 0
		}
		return s.writeScalar(dst, r, op.out)
	}, nil
}

// saveExec saves the mask of lanes, and changes it by an operand.
func (ins *Instruction) saveExec(f func(a, b uint64) uint64, width int) (func(*State) error, error) {
	if err := ins.operandsOf(2); err != nil {
		return nil, err
	}
	dst, x := &ins.operands[0], &ins.operands[1]
	return func(s *State) error {
		if width != s.Lanes {
			return errors.New("the mask of a wave of another size")
		}
		a, err := s.readScalar(x, width)
		if err != nil {
			return err
		}
		old := s.Exec()
		r := truncate(f(a, old), width)
		if err := s.writeScalar(dst, old, width); err != nil {
			return err
		}
		s.scc = r != 0
		return s.setMask(&Operand{reg: Exec, count: 2}, r)
	}, nil
}

func (ins *Instruction) scalarCompare(relation, kind string, short bool) (func(*State) error, error) {
	if err := ins.operandsOf(2); err != nil {
		return nil, err
	}
	f, width, err := comparison(relation, kind)
	if err != nil {
		return nil, err
	}
	x, y := &ins.operands[0], &ins.operands[1]
	return func(s *State) error {
		a, err := s.readScalar(x, width)
		if err != nil {
			return err
		}
		b, err := s.readScalar(y, width)
		if err != nil {
			return err
		}
		if short && kind == "i32" {
			b = uint64(uint32(int16(b))) //nolint:gosec // 16 bits in the instruction
		}
		s.scc = f(a, b)
		return nil
	}, nil
}

// scalarLoad reads words into scalar registers.
func (ins *Instruction) scalarLoad() (func(*State) error, error) {
	if err := ins.operandsOf(3, "offset", "glc", "dlc", "scope", "th"); err != nil {
		return nil, err
	}
	dst := &ins.operands[0]
	size := ins.name[len("s_load_"):]
	if part := sizes[size]; part.bytes == 1 || part.bytes == 2 {
		return ins.scalarLoadPart(part.bytes, part.signed)
	}
	words, err := wordCount(size)
	if err != nil || dst.file != Scalar || dst.count != words {
		return nil, fmt.Errorf("%d words into %s: %w", words, dst.text, errUnknown)
	}
	return func(s *State) error {
		a, err := ins.scalarAddress(s)
		if err != nil {
			return err
		}
		a &^= 3
		for i := range words {
			v, err := loadBytes(func(a uint64) (*byte, error) { return s.flatByte(0, a) }, a+4*uint64(i), 4)
			if err != nil {
				return err
			}
			s.Scalar[dst.reg+i] = uint32(v) //nolint:gosec // 4 bytes
		}
		return nil
	}, nil
}

// scalarLoadPart reads a part of a word into a scalar register.
func (ins *Instruction) scalarLoadPart(size int, signed bool) (func(*State) error, error) {
	dst := &ins.operands[0]
	return func(s *State) error {
		a, err := ins.scalarAddress(s)
		if err != nil {
			return err
		}
		v, err := loadBytes(func(a uint64) (*byte, error) { return s.flatByte(0, a) }, a, size)
		if signed {
			v = field(v, 0, uint64(8*size), 32, true) //nolint:gosec // positive
		}
		return errors.Join(err, s.writeScalar(dst, v, 32))
	}, nil
}

// scalarAddress returns where an instruction loads scalars.
func (ins *Instruction) scalarAddress(s *State) (uint64, error) {
	base, offset := &ins.operands[1], &ins.operands[2]
	a, err := s.readScalar(base, 64)
	if err != nil {
		return 0, err
	}
	o, err := s.readScalar(offset, 32)
	if offset.file == Constant {
		o = offset.value
	}
	return a + o + uint64(ins.modifiers["offset"]), err //nolint:gosec // two's complement
}

// wordCount returns the number of words in the name of a size.
func wordCount(name string) (int, error) {
	n := map[string]int{
		"dword": 1, "dwordx2": 2, "dwordx3": 3, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16,
		"b32": 1, "b64": 2, "b96": 3, "b128": 4, "b256": 8, "b512": 16,
	}[name]
	if n == 0 {
		return 0, fmt.Errorf("%q is no number of words: %w", name, errUnknown)
	}
	return n, nil
}

// branches are the branches, each with its condition.
var branches = map[string]func(s *State) bool{
	"s_branch":         func(*State) bool { return true },
	"s_cbranch_scc0":   func(s *State) bool { return !s.scc },
	"s_cbranch_scc1":   func(s *State) bool { return s.scc },
	"s_cbranch_vccz":   func(s *State) bool { return s.mask(VCC) == 0 },
	"s_cbranch_vccnz":  func(s *State) bool { return s.mask(VCC) != 0 },
	"s_cbranch_execz":  func(s *State) bool { return s.Exec() == 0 },
	"s_cbranch_execnz": func(s *State) bool { return s.Exec() != 0 },
}

// scalarOther compiles the scalar instructions that are in no table.
func (ins *Instruction) scalarOther() (func(*State) error, error) {
	o := ins.operands
	if take := branches[ins.name]; take != nil {
		return func(s *State) error {
			if take(s) {
				s.PC = CodeBase + ins.target
			}
			return nil
		}, ins.operandsOf(1)
	}
	n := map[string]int{
		"s_cselect_b32": 3, "s_cselect_b64": 3, "s_getpc_b64": 1, "s_setpc_b64": 1, "s_swappc_b64": 2, "s_endpgm": 0,
		"s_setreg_b32": 2, "s_getreg_b32": 2, "s_setreg_imm32_b32": 2, "s_bitset0_b32": 2, "s_bitset1_b32": 2, "s_bitcmp0_b32": 2, "s_bitcmp1_b32": 2,
		"s_set_gpr_idx_on": 2, "s_set_gpr_idx_off": 0, "s_cmovk_i32": 2, "s_cmov_b32": 2,
	}
	want, ok := n[ins.name]
	if !ok {
		return nil, errUnknown
	}
	if err := ins.operandsOf(want); err != nil {
		return nil, err
	}
	switch ins.name {
	case "s_cselect_b32", "s_cselect_b64":
		width := 32
		if ins.name == "s_cselect_b64" {
			width = 64
		}
		return func(s *State) error {
			source := &o[2]
			if s.scc {
				source = &o[1]
			}
			v, err := s.readScalar(source, width)
			if err != nil {
				return err
			}
			return s.writeScalar(&o[0], v, width)
		}, nil
	case "s_getpc_b64":
		return func(s *State) error { return s.writeScalar(&o[0], s.PC, 64) }, nil
	case "s_setpc_b64":
		return func(s *State) error {
			target, err := s.readScalar(&o[0], 64)
			if err != nil {
				return err
			}
			s.PC = target
			return s.OnReturn(target)
		}, nil
	case "s_swappc_b64":
		return func(s *State) error {
			target, err := s.readScalar(&o[1], 64)
			if err != nil {
				return err
			}
			back := s.PC
			s.PC = target
			if err := s.writeScalar(&o[0], back, 64); err != nil {
				return err
			}
			return s.OnCall(back)
		}, nil
	case "s_endpgm":
		return func(s *State) error { s.Ended = true; return nil }, nil
	case "s_getreg_b32":
		return ins.getRegister()
	case "s_setreg_b32", "s_setreg_imm32_b32":
		return ins.setRegister()
	case "s_bitset0_b32", "s_bitset1_b32":
		return func(s *State) error {
			n, err := s.readScalar(&o[1], 32)
			if err != nil {
				return err
			}
			v, err := s.readScalar(&o[0], 32)
			if err != nil {
				return err
			}
			v &^= 1 << (n & 31)
			if ins.name == "s_bitset1_b32" {
				v |= 1 << (n & 31)
			}
			return s.writeScalar(&o[0], v, 32)
		}, nil
	case "s_bitcmp0_b32", "s_bitcmp1_b32":
		return func(s *State) error {
			v, err := s.readScalar(&o[0], 32)
			if err != nil {
				return err
			}
			n, err := s.readScalar(&o[1], 32)
			s.scc = v>>(n&31)&1 != 0 == (ins.name == "s_bitcmp1_b32")
			return err
		}, nil
	case "s_cmovk_i32", "s_cmov_b32":
		return func(s *State) error {
			v, err := s.readScalar(&o[1], 32)
			if err != nil || !s.scc {
				return err
			}
			if ins.name == "s_cmovk_i32" {
				v = uint64(uint32(int16(v))) //nolint:gosec // 16 bits in the instruction
			}
			return s.writeScalar(&o[0], v, 32)
		}, nil
	case "s_set_gpr_idx_on":
		if o[1].text != "gpr_idx(DST)" && o[1].text != "gpr_idx(SRC0)" {
			return nil, fmt.Errorf("%s: %w", o[1].text, errUnknown)
		}
		return func(s *State) error {
			v, err := s.readScalar(&o[0], 32)
			if err != nil {
				return err
			}
			imm := uint32(1)
			if o[1].text == "gpr_idx(DST)" {
				imm = 8
			}
			s.Scalar[m0] = s.Scalar[m0]&^0xf0ff | uint32(v&0xff) | imm<<12
			s.gprIndex = o[1].text
			return nil
		}, nil
	case "s_set_gpr_idx_off":
		return func(s *State) error { s.gprIndex = ""; return nil }, nil
	}
	return nil, errUnknown
}

// getRegister reads the apertures of flat addresses, which older compilers read from the
// hardware: the upper 16 bits of an address of private or of local memory.
func (ins *Instruction) getRegister() (func(*State) error, error) {
	o := ins.operands
	aperture, ok := map[string]uint64{
		"hwreg(HW_REG_SH_MEM_BASES, 0, 16)": PrivateAperture, "hwreg(HW_REG_SH_MEM_BASES, 16, 16)": SharedAperture,
	}[o[1].text]
	if !ok {
		return nil, fmt.Errorf("%s: %w", o[1].text, errUnknown)
	}
	return func(s *State) error { return s.writeScalar(&o[0], aperture>>48, 32) }, nil
}

// setRegister writes a register of the hardware. Only the register of private
// memory is kept; the modes of arithmetic are not.
func (ins *Instruction) setRegister() (func(*State) error, error) {
	o := ins.operands
	switch which := o[0].text; {
	case strings.HasPrefix(which, "hwreg(HW_REG_MODE"):
		return func(*State) error { return nil }, nil
	case which == "hwreg(HW_REG_FLAT_SCR_LO)" || which == "hwreg(HW_REG_FLAT_SCR_HI)":
		index := 0
		if strings.Contains(which, "_HI") {
			index = 32
		}
		return func(s *State) error {
			v, err := s.readScalar(&o[1], 32)
			s.flatScratch = s.flatScratch&^(0xffff_ffff<<index) | v<<index
			return err
		}, nil
	}
	return nil, fmt.Errorf("%s: %w", o[0].text, errUnknown)
}
