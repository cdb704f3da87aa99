// SPDX-License-Identifier: Apache-2.0

package gcn

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
)

func f32(v uint64) float32     { return math.Float32frombits(uint32(v)) } //nolint:gosec // 32 bits
func fromF32(f float32) uint64 { return uint64(math.Float32bits(f)) }

// laneOp is the operation of a vector instruction in a lane, with the sizes
// of its sources and its result in bits.
type laneOp struct {
	sources []int
	out     int
	do      func(a, b, c uint64) uint64
}

func unary32(f func(a uint64) uint64) laneOp {
	return laneOp{[]int{32}, 32, func(a, _, _ uint64) uint64 { return f(a) }}
}

func binary32(f func(a, b uint64) uint64) laneOp {
	return laneOp{[]int{32, 32}, 32, func(a, b, _ uint64) uint64 { return f(a, b) }}
}

func ternary32(f func(a, b, c uint64) uint64) laneOp {
	return laneOp{[]int{32, 32, 32}, 32, f}
}

// binary16 returns an operation on the lower halves: the upper half of the result
// is 0, or stays unchanged.
func binary16(f func(a, b uint64) uint64) laneOp {
	return laneOp{[]int{16, 16}, 16, func(a, b, _ uint64) uint64 { return f(a&0xffff, b&0xffff) & 0xffff }}
}

func binaryF32(f func(a, b float32) float32) laneOp {
	return binary32(func(a, b uint64) uint64 { return fromF32(f(f32(a), f32(b))) })
}

func unaryF32(f func(a float64) float64) laneOp {
	return unary32(func(a uint64) uint64 { return fromF32(float32(f(float64(f32(a))))) })
}

// fma32 rounds once, except where rounding the exact sum to 64 bits
// first matters: no walk depends on them.
func fma32(a, b, c uint64) uint64 {
	return fromF32(float32(math.FMA(float64(f32(a)), float64(f32(b)), float64(f32(c)))))
}

// toInteger converts with saturation; a NaN is 0.
func toInteger(f float64, low, high int64) uint64 {
	switch {
	case f != f:
		return 0
	case f <= float64(low):
		return uint64(low) //nolint:gosec // two's complement
	case f >= float64(high):
		return uint64(high) //nolint:gosec // two's complement
	}
	return uint64(int64(f)) //nolint:gosec // two's complement
}

func pick(first bool, a, b uint64) uint64 {
	if first {
		return a
	}
	return b
}

func minI(a, b uint64) uint64 { return pick(signed32(a) < signed32(b), a, b) }
func maxI(a, b uint64) uint64 { return pick(signed32(a) > signed32(b), a, b) }

func signed24(v uint64) int64 { return int64(int32(uint32(v)<<8)) >> 8 } //nolint:gosec // two's complement

// laneOps has the operations by name; laneAlias has other generations' names.
var laneOps = map[string]laneOp{
	"v_mov_b32":        unary32(func(a uint64) uint64 { return a }),
	"v_mov_b16":        unary32(func(a uint64) uint64 { return a }),
	"v_not_b32":        unary32(func(a uint64) uint64 { return ^a }),
	"v_bfrev_b32":      unary32(func(a uint64) uint64 { return uint64(bits.Reverse32(uint32(a))) }), //nolint:gosec // 32 bits
	"v_ffbh_u32":       unary32(func(a uint64) uint64 { return leading(a, 32) }),
	"v_ffbl_b32":       unary32(trailing),
	"v_ffbh_i32":       unary32(signBits),
	"v_cvt_f32_i32":    unary32(func(a uint64) uint64 { return fromF32(float32(signed32(a))) }),
	"v_cvt_f32_u32":    unary32(func(a uint64) uint64 { return fromF32(float32(a)) }),
	"v_cvt_i32_f32":    unary32(func(a uint64) uint64 { return toInteger(float64(f32(a)), math.MinInt32, math.MaxInt32) }),
	"v_cvt_u32_f32":    unary32(func(a uint64) uint64 { return toInteger(float64(f32(a)), 0, math.MaxUint32) }),
	"v_cvt_f32_ubyte0": unary32(func(a uint64) uint64 { return fromF32(float32(a & 0xff)) }),
	"v_rcp_f32":        unaryF32(func(a float64) float64 { return 1 / a }),
	"v_rcp_iflag_f32":  unaryF32(func(a float64) float64 { return 1 / a }),
	"v_trunc_f32":      unaryF32(math.Trunc),
	"v_floor_f32":      unaryF32(math.Floor),
	"v_rndne_f32":      unaryF32(math.RoundToEven),
	"v_mov_b64":        {[]int{64}, 64, func(a, _, _ uint64) uint64 { return a }},

	"v_add_u32":        binary32(func(a, b uint64) uint64 { return a + b }),
	"v_sub_u32":        binary32(func(a, b uint64) uint64 { return a - b }),
	"v_subrev_u32":     binary32(func(a, b uint64) uint64 { return b - a }),
	"v_and_b32":        binary32(func(a, b uint64) uint64 { return a & b }),
	"v_or_b32":         binary32(func(a, b uint64) uint64 { return a | b }),
	"v_xor_b32":        binary32(func(a, b uint64) uint64 { return a ^ b }),
	"v_xnor_b32":       binary32(func(a, b uint64) uint64 { return ^(a ^ b) }),
	"v_lshlrev_b32":    binary32(func(n, a uint64) uint64 { return a << (n & 31) }),
	"v_lshrrev_b32":    binary32(func(n, a uint64) uint64 { return a >> (n & 31) }),
	"v_ashrrev_i32":    binary32(func(n, a uint64) uint64 { return uint64(signed32(a) >> (n & 31)) }), //nolint:gosec // two's complement
	"v_min_i32":        binary32(minI),
	"v_max_i32":        binary32(maxI),
	"v_min_u32":        binary32(func(a, b uint64) uint64 { return min(a, b) }),
	"v_max_u32":        binary32(func(a, b uint64) uint64 { return max(a, b) }),
	"v_mul_lo_u32":     binary32(func(a, b uint64) uint64 { return a * b }),
	"v_mul_hi_u32":     binary32(func(a, b uint64) uint64 { return a * b >> 32 }),
	"v_mul_hi_i32":     binary32(func(a, b uint64) uint64 { return uint64(signed32(a) * signed32(b) >> 32) }), //nolint:gosec // two's complement
	"v_mul_u32_u24":    binary32(func(a, b uint64) uint64 { return (a & 0xffffff) * (b & 0xffffff) }),
	"v_mul_hi_u32_u24": binary32(func(a, b uint64) uint64 { return (a & 0xffffff) * (b & 0xffffff) >> 32 }),
	"v_mul_i32_i24":    binary32(func(a, b uint64) uint64 { return uint64(signed24(a) * signed24(b)) }), //nolint:gosec // two's complement
	"v_bcnt_u32_b32":   binary32(func(a, b uint64) uint64 { return uint64(bits.OnesCount64(a)) + b }),   //nolint:gosec // not negative
	"v_add_f32":        binaryF32(func(a, b float32) float32 { return a + b }),
	"v_sub_f32":        binaryF32(func(a, b float32) float32 { return a - b }),
	"v_subrev_f32":     binaryF32(func(a, b float32) float32 { return b - a }),
	"v_mul_f32":        binaryF32(func(a, b float32) float32 { return a * b }),
	"v_min_f32":        binaryF32(func(a, b float32) float32 { return min(a, b) }),
	"v_max_f32":        binaryF32(func(a, b float32) float32 { return max(a, b) }),
	"v_ldexp_f32":      binary32(func(a, b uint64) uint64 { return fromF32(float32(math.Ldexp(float64(f32(a)), int(signed32(b))))) }),

	"v_lshlrev_b16": binary16(func(n, a uint64) uint64 { return a << (n & 15) }),
	"v_lshrrev_b16": binary16(func(n, a uint64) uint64 { return a >> (n & 15) }),
	"v_ashrrev_i16": binary16(func(n, a uint64) uint64 { return uint64(int16(a) >> (n & 15)) }), //nolint:gosec // two's complement
	"v_add_u16":     binary16(func(a, b uint64) uint64 { return a + b }),
	"v_sub_u16":     binary16(func(a, b uint64) uint64 { return a - b }),
	"v_subrev_u16":  binary16(func(a, b uint64) uint64 { return b - a }),
	"v_mul_lo_u16":  binary16(func(a, b uint64) uint64 { return a * b }),
	"v_and_b16":     binary16(func(a, b uint64) uint64 { return a & b }),
	"v_or_b16":      binary16(func(a, b uint64) uint64 { return a | b }),
	"v_xor_b16":     binary16(func(a, b uint64) uint64 { return a ^ b }),
	"v_min_u16":     binary16(func(a, b uint64) uint64 { return min(a, b) }),
	"v_max_u16":     binary16(func(a, b uint64) uint64 { return max(a, b) }),

	"v_lshlrev_b64": {[]int{32, 64}, 64, func(n, a, _ uint64) uint64 { return a << (n & 63) }},
	"v_lshrrev_b64": {[]int{32, 64}, 64, func(n, a, _ uint64) uint64 { return a >> (n & 63) }},
	"v_ashrrev_i64": {[]int{32, 64}, 64, func(n, a, _ uint64) uint64 { return uint64(int64(a) >> (n & 63)) }}, //nolint:gosec // two's complement

	"v_add3_u32":      ternary32(func(a, b, c uint64) uint64 { return a + b + c }),
	"v_xad_u32":       ternary32(func(a, b, c uint64) uint64 { return a ^ b + c }),
	"v_lshl_add_u32":  ternary32(func(a, b, c uint64) uint64 { return a<<(b&31) + c }),
	"v_add_lshl_u32":  ternary32(func(a, b, c uint64) uint64 { return (a + b) << (c & 31) }),
	"v_lshl_or_b32":   ternary32(func(a, b, c uint64) uint64 { return a<<(b&31) | c }),
	"v_and_or_b32":    ternary32(func(a, b, c uint64) uint64 { return a&b | c }),
	"v_or3_b32":       ternary32(func(a, b, c uint64) uint64 { return a | b | c }),
	"v_xor3_b32":      ternary32(func(a, b, c uint64) uint64 { return a ^ b ^ c }),
	"v_bfe_u32":       ternary32(func(a, b, c uint64) uint64 { return field(a, b&31, c&31, 32, false) }),
	"v_bfe_i32":       ternary32(func(a, b, c uint64) uint64 { return field(a, b&31, c&31, 32, true) }),
	"v_bfi_b32":       ternary32(func(a, b, c uint64) uint64 { return a&b | ^a&c }),
	"v_alignbit_b32":  ternary32(func(a, b, c uint64) uint64 { return (a<<32 | b) >> (c & 31) }),
	"v_alignbyte_b32": ternary32(func(a, b, c uint64) uint64 { return (a<<32 | b) >> (8 * (c & 3)) }),
	"v_min3_i32":      ternary32(func(a, b, c uint64) uint64 { return minI(minI(a, b), c) }),
	"v_max3_i32":      ternary32(func(a, b, c uint64) uint64 { return maxI(maxI(a, b), c) }),
	"v_min3_u32":      ternary32(func(a, b, c uint64) uint64 { return min(a, b, c) }),
	"v_max3_u32":      ternary32(func(a, b, c uint64) uint64 { return max(a, b, c) }),
	"v_med3_i32":      ternary32(func(a, b, c uint64) uint64 { return maxI(minI(a, b), minI(maxI(a, b), c)) }),
	"v_maxmin_i32":    ternary32(func(a, b, c uint64) uint64 { return minI(maxI(a, b), c) }),
	"v_minmax_i32":    ternary32(func(a, b, c uint64) uint64 { return maxI(minI(a, b), c) }),
	"v_maxmin_u32":    ternary32(func(a, b, c uint64) uint64 { return min(max(a, b), c) }),
	"v_minmax_u32":    ternary32(func(a, b, c uint64) uint64 { return max(min(a, b), c) }),
	"v_mad_u32_u24":   ternary32(func(a, b, c uint64) uint64 { return (a&0xffffff)*(b&0xffffff) + c }),
	"v_mad_i32_i24":   ternary32(func(a, b, c uint64) uint64 { return uint64(signed24(a)*signed24(b)) + c }), //nolint:gosec // two's complement
	"v_fma_f32":       ternary32(fma32),
	"v_fmamk_f32":     ternary32(func(a, k, b uint64) uint64 { return fma32(a, k, b) }),
	"v_fmaak_f32":     ternary32(fma32),
	"v_lshl_add_u64":  {[]int{64, 32, 64}, 64, func(a, n, c uint64) uint64 { return a<<(n&63) + c }},
}

// laneAlias are other names of the same operations.
var laneAlias = map[string]string{
	"v_add_nc_u32": "v_add_u32", "v_sub_nc_u32": "v_sub_u32", "v_subrev_nc_u32": "v_subrev_u32", "v_accvgpr_read_b32": "v_mov_b32",
	"v_accvgpr_write_b32": "v_mov_b32", "v_accvgpr_mov_b32": "v_mov_b32", "v_cls_i32": "v_ffbh_i32", "v_clz_i32_u32": "v_ffbh_u32",
	"v_ctz_i32_b32": "v_ffbl_b32", "v_add_i32": "v_add_u32", "v_sub_i32": "v_sub_u32", "v_add_nc_i32": "v_add_u32",
	"v_sub_nc_i32": "v_sub_u32", "v_lshlrev_b64_e64": "v_lshlrev_b64", "v_add_nc_u16": "v_add_u16", "v_sub_nc_u16": "v_sub_u16",
}

// laneFunc finds the result of an instruction in a lane, without writing it.
type laneFunc func(s *State, lane int) (uint64, error)

// lane compiles a vector instruction that writes one register in each lane.
func (ins *Instruction) lane() (f laneFunc, width int, err error) {
	name := ins.name
	if alias := laneAlias[name]; alias != "" {
		name = alias
	}
	o := ins.operands
	if op, ok := laneOps[name]; ok {
		if err := ins.operandsOf(1 + len(op.sources)); err != nil {
			return nil, 0, err
		}
		if op.out == 16 && o[0].size == 0 && !strings.HasPrefix(ins.text, ins.name+"_") {
			o[0].size = 16 // from gfx10 on, with a single encoding, the upper half stays
		}
		return func(s *State, lane int) (uint64, error) {
			var v [3]uint64
			for i, size := range op.sources {
				var err error
				if v[i], err = s.readLane(&o[1+i], lane, size); err != nil {
					return 0, err
				}
			}
			return op.do(v[0], v[1], v[2]), nil
		}, op.out, nil
	}
	switch name {
	case "v_fmac_f32", "v_mac_f32":
		if err := ins.operandsOf(3); err != nil {
			return nil, 0, err
		}
		return func(s *State, lane int) (uint64, error) {
			a, err1 := s.readLane(&o[1], lane, 32)
			b, err2 := s.readLane(&o[2], lane, 32)
			c, err3 := s.readLane(&o[0], lane, 32)
			return fma32(a, b, c), errors.Join(err1, err2, err3)
		}, 32, nil
	case "v_cndmask_b32":
		if len(o) == 3 { // in dual instructions it is implicit
			o = append(o, Operand{reg: VCC, count: 2})
			ins.operands = o
		}
		if err := ins.operandsOf(4); err != nil {
			return nil, 0, err
		}
		return func(s *State, lane int) (uint64, error) {
			m, err := s.readScalar(&o[3], s.Lanes)
			if err != nil {
				return 0, err
			}
			if m>>lane&1 != 0 {
				return s.readLane(&o[2], lane, 32)
			}
			return s.readLane(&o[1], lane, 32)
		}, 32, nil
	case "v_bitop3_b32":
		if err := ins.operandsOf(4, "bitop3"); err != nil {
			return nil, 0, err
		}
		return func(s *State, lane int) (uint64, error) {
			a, err1 := s.readLane(&o[1], lane, 32)
			b, err2 := s.readLane(&o[2], lane, 32)
			c, err3 := s.readLane(&o[3], lane, 32)
			return bitop3(a, b, c, ins.modifiers["bitop3"]), errors.Join(err1, err2, err3)
		}, 32, nil
	case "v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32":
		if err := ins.operandsOf(3); err != nil {
			return nil, 0, err
		}
		return func(s *State, lane int) (uint64, error) {
			a, err1 := s.readLane(&o[1], lane, 32)
			b, err2 := s.readLane(&o[2], lane, 32)
			below := uint64(1)<<lane - 1
			if name == "v_mbcnt_hi_u32_b32" {
				below >>= 32
			}
			return uint64(bits.OnesCount32(uint32(a&below))) + b, errors.Join(err1, err2) //nolint:gosec // 32 bits
		}, 32, nil
	}
	return nil, 0, errUnknown
}

// bitop3 takes each bit of the result from a table, by the bits of three operands.
func bitop3(a, b, c uint64, table int64) (r uint64) {
	for i := range 32 {
		r |= uint64(table) >> (a>>i&1<<2 | b>>i&1<<1 | c>>i&1) & 1 << i //nolint:gosec // eight bits
	}
	return r
}

// compileVector makes a vector instruction executable.
func compileVector(ins *Instruction) (func(*State) error, error) {
	if ins.dual != nil {
		return ins.compileDual()
	}
	if ins.name == "v_mov_b32" && ins.operandsOf(2) == nil && ins.operands[0].size+ins.operands[1].size == 0 {
		return ins.move()
	}
	if f, width, err := ins.lane(); err == nil {
		dst := &ins.operands[0]
		return func(s *State) error {
			if s.gprIndex != "" {
				return errors.New("indexed registers are known of v_mov_b32 only")
			}
			return s.Active(func(lane int) error {
				v, err := f(s, lane)
				if err != nil {
					return err
				}
				return s.writeLane(dst, lane, v, width)
			})
		}, nil
	} else if !errors.Is(err, errUnknown) {
		return nil, err
	}
	if f, err := ins.vectorCompare(); err == nil || !errors.Is(err, errUnknown) {
		return f, err
	}
	if f, err := ins.packed(); err == nil || !errors.Is(err, errUnknown) {
		return f, err
	}
	return ins.vectorOther()
}

// move compiles v_mov_b32, which may be indexed.
func (ins *Instruction) move() (func(*State) error, error) {
	dst, src := ins.operands[0], ins.operands[1]
	return func(s *State) error {
		dst, src := dst, src
		switch m := int(s.Scalar[m0] & 0xff); s.gprIndex {
		case "gpr_idx(DST)":
			dst.reg += m
		case "gpr_idx(SRC0)":
			if src.file != Vector {
				return errors.New("an indexed source that is no vector register")
			}
			src.reg += m
		}
		return s.Active(func(lane int) error {
			v, err := s.readLane(&src, lane, 32)
			if err != nil {
				return err
			}
			return s.writeLane(&dst, lane, v, 32)
		})
	}, nil
}

func (ins *Instruction) compileDual() (func(*State) error, error) {
	x, xWidth, err := ins.lane()
	if err != nil {
		return nil, err
	}
	y, yWidth, err := ins.dual.lane()
	if err != nil {
		return nil, err
	}
	return func(s *State) error {
		return s.Active(func(lane int) error {
			a, err := x(s, lane)
			if err != nil {
				return err
			}
			b, err := y(s, lane)
			if err != nil {
				return err
			}
			return errors.Join(s.writeLane(&ins.operands[0], lane, a, xWidth), s.writeLane(&ins.dual.operands[0], lane, b, yWidth))
		})
	}, nil
}

func (ins *Instruction) vectorCompare() (func(*State) error, error) {
	name, exec := strings.CutPrefix(ins.name, "v_cmpx_")
	if !exec {
		var ok bool
		if name, ok = strings.CutPrefix(ins.name, "v_cmp_"); !ok {
			return nil, errUnknown
		}
	}
	relation, kind, _ := strings.Cut(name, "_")
	f, width, err := comparison(relation, kind)
	if err != nil {
		return nil, err
	}
	o := ins.operands
	dst := Operand{file: nullFile}
	if len(o) == 3 {
		dst, o = o[0], o[1:]
		if err := ins.operandsOf(3); err != nil {
			return nil, err
		}
	} else if err := ins.operandsOf(2); err != nil || !exec {
		return nil, fmt.Errorf("2 operands: %w", errUnknown)
	}
	return func(s *State) error {
		var m uint64
		err := s.Active(func(lane int) error {
			a, err1 := s.readLane(&o[0], lane, width)
			b, err2 := s.readLane(&o[1], lane, width)
			m |= bit(f(a, b)) << lane
			return errors.Join(err1, err2)
		})
		if err != nil {
			return err
		}
		if exec {
			err = s.setMask(&Operand{reg: Exec, count: 2}, m)
		}
		return errors.Join(err, s.setMask(&dst, m))
	}, nil
}

// packed compiles operations on pairs of numbers of 32 bits.
func (ins *Instruction) packed() (func(*State) error, error) {
	op, ok := map[string]laneOp{
		"v_pk_add_f32": laneOps["v_add_f32"], "v_pk_mul_f32": laneOps["v_mul_f32"], "v_pk_fma_f32": laneOps["v_fma_f32"],
		"v_pk_mov_b32": {sources: []int{32, 32}},
	}[ins.name]
	if !ok {
		return nil, errUnknown
	}
	if err := ins.operandsOf(1+len(op.sources), "op_sel", "op_sel_hi", "neg_lo", "neg_hi"); err != nil {
		return nil, err
	}
	chosen := func(list string, i, otherwise int) int {
		if l := ins.lists[list]; i < len(l) {
			return l[i]
		}
		return otherwise
	}
	half := func(s *State, lane, i, which int) (uint64, error) {
		v, err := s.readLane(&ins.operands[1+i], lane, 64)
		return v >> (32 * which) & 0xffff_ffff, err
	}
	dst := &ins.operands[0]
	return func(s *State) error {
		return s.Active(func(lane int) error {
			var v [2][3]uint64
			for i := range op.sources {
				var err error
				if v[0][i], err = half(s, lane, i, chosen("op_sel", i, 0)); err != nil {
					return err
				}
				if v[1][i], err = half(s, lane, i, chosen("op_sel_hi", i, 1)); err != nil {
					return err
				}
				v[0][i] ^= uint64(chosen("neg_lo", i, 0)) << 31 //nolint:gosec // 0 or 1
				v[1][i] ^= uint64(chosen("neg_hi", i, 0)) << 31 //nolint:gosec // 0 or 1
			}
			if ins.name == "v_pk_mov_b32" {
				a, err1 := half(s, lane, 0, chosen("op_sel", 0, 0))
				b, err2 := half(s, lane, 1, chosen("op_sel", 1, 0))
				return errors.Join(err1, err2, s.writeLane(dst, lane, a|b<<32, 64))
			}
			lo, hi := op.do(v[0][0], v[0][1], v[0][2]), op.do(v[1][0], v[1][1], v[1][2])
			return s.writeLane(dst, lane, lo&0xffff_ffff|hi<<32, 64)
		})
	}, nil
}

// carryOps are additions and subtractions with a carry in and out of masks.
var carryOps = map[string]func(a, b, c uint64) uint64{
	"v_add_co_u32": func(a, b, _ uint64) uint64 { return a + b }, "v_addc_co_u32": func(a, b, c uint64) uint64 { return a + b + c },
	"v_add_co_ci_u32": func(a, b, c uint64) uint64 { return a + b + c }, "v_sub_co_u32": func(a, b, _ uint64) uint64 { return a - b },
	"v_subb_co_u32": func(a, b, c uint64) uint64 { return a - b - c }, "v_sub_co_ci_u32": func(a, b, c uint64) uint64 { return a - b - c },
	"v_subrev_co_u32": func(a, b, _ uint64) uint64 { return b - a }, "v_subbrev_co_u32": func(a, b, c uint64) uint64 { return b - a - c },
	"v_subrev_co_ci_u32": func(a, b, c uint64) uint64 { return b - a - c },
}

// vectorOther compiles the vector instructions that are in no table.
func (ins *Instruction) vectorOther() (func(*State) error, error) {
	o := ins.operands
	if f := carryOps[ins.name]; f != nil {
		takes := strings.Contains(ins.name, "addc") || strings.Contains(ins.name, "subb") || strings.Contains(ins.name, "_ci_")
		n := 4
		if takes {
			n = 5
		}
		if err := ins.operandsOf(n); err != nil {
			return nil, err
		}
		return func(s *State) error {
			var old, m uint64
			if takes {
				var err error
				if old, err = s.readScalar(&o[4], s.Lanes); err != nil {
					return err
				}
			}
			err := s.Active(func(lane int) error {
				a, err1 := s.readLane(&o[2], lane, 32)
				b, err2 := s.readLane(&o[3], lane, 32)
				r := f(a, b, old>>lane&1)
				m |= bit(r>>32 != 0) << lane
				return errors.Join(err1, err2, s.writeLane(&o[0], lane, r, 32))
			})
			return errors.Join(err, s.setMask(&o[1], m))
		}, nil
	}
	n, ok := map[string]int{
		"v_mad_u64_u32": 5, "v_mad_i64_i32": 5, "v_readlane_b32": 3, "v_readfirstlane_b32": 2, "v_writelane_b32": 3, "v_swap_b32": 2,
		"v_movreld_b32": 2, "v_movrels_b32": 2, "v_movrelsd_b32": 2, "v_nop": 0,
	}[ins.name]
	if !ok {
		return nil, errUnknown
	}
	if err := ins.operandsOf(n); err != nil {
		return nil, err
	}
	switch ins.name {
	case "v_mad_u64_u32", "v_mad_i64_i32":
		return func(s *State) error {
			var m uint64
			err := s.Active(func(lane int) error {
				a, err1 := s.readLane(&o[2], lane, 32)
				b, err2 := s.readLane(&o[3], lane, 32)
				c, err3 := s.readLane(&o[4], lane, 64)
				product := a * b
				if ins.name == "v_mad_i64_i32" {
					product = uint64(signed32(a) * signed32(b)) //nolint:gosec // two's complement
				}
				r, over := bits.Add64(product, c, 0)
				m |= over << lane
				return errors.Join(err1, err2, err3, s.writeLane(&o[0], lane, r, 64))
			})
			return errors.Join(err, s.setMask(&o[1], m))
		}, nil
	case "v_readlane_b32", "v_readfirstlane_b32":
		return func(s *State) error {
			lane := uint64(bits.TrailingZeros64(s.Exec() | 1<<63)) //nolint:gosec // not negative
			if s.Exec() == 0 {
				lane = 0
			}
			if n == 3 {
				var err error
				if lane, err = s.readScalar(&o[2], 32); err != nil {
					return err
				}
			}
			v, err := s.readLane(&o[1], int(lane)%s.Lanes, 32) //nolint:gosec // 6 bits count
			return errors.Join(err, s.writeScalar(&o[0], v, 32))
		}, nil
	case "v_writelane_b32":
		return func(s *State) error {
			v, err := s.readScalar(&o[1], 32)
			if err != nil {
				return err
			}
			lane, err := s.readScalar(&o[2], 32)
			if err != nil {
				return err
			}
			return s.writeLane(&o[0], int(lane)%s.Lanes, v, 32) //nolint:gosec // 6 bits count
		}, nil
	case "v_swap_b32":
		return func(s *State) error {
			return s.Active(func(lane int) error {
				a, err1 := s.readLane(&o[0], lane, 32)
				b, err2 := s.readLane(&o[1], lane, 32)
				return errors.Join(err1, err2, s.writeLane(&o[0], lane, b, 32), s.writeLane(&o[1], lane, a, 32))
			})
		}, nil
	case "v_movreld_b32", "v_movrels_b32", "v_movrelsd_b32":
		return func(s *State) error {
			dst, src := o[0], o[1]
			m := int(s.Scalar[m0])
			if ins.name != "v_movrels_b32" {
				dst.reg += m
			}
			if ins.name != "v_movreld_b32" {
				src.reg += m
			}
			if dst.reg < 0 || src.reg < 0 || dst.reg > 255 || src.reg > 255 {
				return fmt.Errorf("M0 is %#x: no such register", m)
			}
			return s.Active(func(lane int) error {
				v, err := s.readLane(&src, lane, 32)
				return errors.Join(err, s.writeLane(&dst, lane, v, 32))
			})
		}, nil
	case "v_nop":
		return func(*State) error { return nil }, nil
	}
	return nil, errUnknown
}
