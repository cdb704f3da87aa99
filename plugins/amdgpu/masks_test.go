// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"math/rand/v2"
	"testing"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// concrete are registers with values, for what the analysis says of them.
type concrete struct {
	entry   uint64 // EXEC
	scalars [scalars]uint32
}

func (c *concrete) pair(r isa.Reg) uint64 {
	return uint64(c.scalars[r]) | uint64(c.scalars[r+1])<<32
}

func (c *concrete) setPair(r isa.Reg, v uint64) {
	c.scalars[r], c.scalars[r+1] = uint32(v), uint32(v>>32)
}

// of is a mask by a truth and what it is of.
func (t truth) of(a, b uint64) (v uint64) {
	for i, x := range [...]uint64{^a & ^b, ^a & b, a & ^b, a & b} {
		if t>>i&1 != 0 {
			v |= x
		}
	}
	return v
}

func pairOperand(r isa.Reg) isa.Operand {
	return isa.Operand{Kind: isa.Scalar, Width: 2, Reg: uint16(r)}
}

// maskProgram makes instructions on a few pairs of registers and EXEC.
type maskProgram struct {
	random *rand.Rand
	x      stepper
}

var maskRegisters = [...]isa.Reg{4, 6, 8, 10, 12, isa.VCCLo, isa.ExecLo}

func (p *maskProgram) register() isa.Reg { return maskRegisters[p.random.IntN(len(maskRegisters))] }

// step applies one instruction to the state and to the registers of each run.
func (p *maskProgram) step(s *codeState, runs ...*concrete) {
	p.x.s = s
	d, a, b := p.register(), p.register(), p.register()
	for d == isa.ExecLo && p.random.IntN(3) > 0 {
		d = p.register()
	}
	in := isa.Inst{Size: 4, Dst: pairOperand(d), Src: [2]isa.Operand{pairOperand(a), pairOperand(b)}}
	constant := uint64(p.random.IntN(2)) * ^uint64(0)
	isConstant := p.random.IntN(5) == 0
	if isConstant {
		in.Src[0] = isa.Operand{Kind: isa.Constant, Width: 2, Value: int64(constant)}
	}
	var ops []isa.Op
	for op := range isa.Op(255) {
		if o := maskOperations[op]; o.effect != notMasks && op != isa.SAndB32 && op != isa.SOrB32 && op != isa.SXorB32 && op != isa.SAndn2B32 &&
			op != isa.SOrn2B32 && op != isa.SNandB32 && op != isa.SNorB32 && op != isa.SXnorB32 && op != isa.SNotB32 {
			ops = append(ops, op)
		}
	}
	ops = append(ops, isa.SMovB64, isa.SCselectB64, isa.VCmp, isa.VCmpx, isa.Other)
	if p.random.IntN(2) == 0 { // what compilers write for conditions and loops
		ops = []isa.Op{isa.VCmp, isa.SAndSaveexec, isa.SXorB64, isa.SAndn2B64, isa.SAndn2Saveexec}
	}
	in.Op = ops[p.random.IntN(len(ops))]
	if maskOperations[in.Op].effect.isIntoExec() && d == isa.ExecLo {
		return // no such instruction
	}
	choice := p.random.IntN(2) == 0
	for _, c := range runs {
		exec, va, vb := c.pair(isa.ExecLo), c.pair(a), c.pair(b)
		if isConstant {
			va = constant
		}
		o := maskOperations[in.Op]
		switch {
		case o.effect == combines:
			c.setPair(d, o.t.of(va, vb))
		case o.effect == inverts:
			c.setPair(d, o.t.of(va, va))
		case o.effect == saves:
			c.setPair(d, exec)
			c.setPair(isa.ExecLo, o.t.of(va, exec))
		case o.effect == writes:
			c.setPair(d, o.t.of(va, exec))
			c.setPair(isa.ExecLo, o.t.of(va, exec))
		case in.Op == isa.SMovB64:
			c.setPair(d, va)
		case in.Op == isa.SCselectB64:
			if choice {
				va = vb
			}
			c.setPair(d, va)
		case in.Op == isa.VCmp:
			c.setPair(d, exec&p.random.Uint64())
		case in.Op == isa.VCmpx:
			v := exec & p.random.Uint64()
			c.setPair(d, v)
			c.setPair(isa.ExecLo, v)
		default:
			c.setPair(d, p.random.Uint64())
		}
	}
	if in.Op == isa.Other {
		in.Writes.Scalars[d/64] |= 3 << (d % 64)
	}
	p.x.step(&in, 0)
}

// holds says whether every lane of the registers is as the state says.
func (c *concrete) holds(s *codeState) bool {
	var values [64]uint64
	var known uint64
	values[entryColumn], known = c.entry, 1
	for _, r := range maskRegisters {
		if column, ok := s.mask(r, wave64); ok {
			if known>>column&1 != 0 && values[column] != c.pair(r) {
				return false
			}
			values[column], known = c.pair(r), known|1<<column
		}
	}
	var list []uint8
	for column := range uint8(64) {
		if known>>column&1 != 0 {
			list = append(list, column)
		}
	}
	tuples := map[uint64]bool{}
	for _, x := range project(s.masks.tuples, list) {
		tuples[x] = true
	}
	for lane := range 64 {
		var x uint64
		for i, column := range list {
			x |= (values[column] >> lane & 1) << i
		}
		if !tuples[x] {
			return false
		}
	}
	return true
}

// TestMasksAreAsRegistersAre runs instructions on masks that are picked at random,
// and joins the states of two ways, and holds what is said of EXEC and the other
// masks against registers with values.
func TestMasksAreAsRegistersAre(t *testing.T) {
	m := &machineMode{lanes: wave64}
	exact, unions := 0, 0
	for seed := range uint64(4000) {
		p := &maskProgram{random: rand.New(rand.NewPCG(seed, 1))}
		p.x = stepper{machineMode: m, symbols: map[uint64]uint16{}}
		start := func() *concrete {
			c := &concrete{entry: p.random.Uint64()}
			for r := range c.scalars {
				c.scalars[r] = p.random.Uint32()
			}
			c.setPair(isa.ExecLo, c.entry)
			return c
		}
		left, right := start(), start()
		s := entryState(wave64)
		for range p.random.IntN(6) {
			p.step(s, left, right)
		}
		a, b := s, s.clone()
		for range p.random.IntN(8) {
			p.step(a, left)
		}
		for range p.random.IntN(8) {
			p.step(b, right)
		}
		a.limit()
		b.limit()
		if !left.holds(a) || !right.holds(b) {
			t.Fatalf("seed %d: a mask is not as it is said to be", seed)
		}
		both := join(a, b)
		if !left.holds(both) || !right.holds(both) {
			t.Fatalf("seed %d: a mask is not as it is said to be where ways meet", seed)
		}
		for range p.random.IntN(8) {
			p.step(both, left, right)
		}
		both.limit()
		if !left.holds(both) || !right.holds(both) {
			t.Fatalf("seed %d: a mask is not as it is said to be after ways met", seed)
		}
		var usable uint64
		values := map[uint8]uint64{}
		for _, r := range maskRegisters {
			if column, ok := both.mask(r, wave64); ok && both.scalars[r].kind == maskScalar {
				usable |= 1 << column
				values[column] = right.pair(r)
			}
		}
		if list := both.masks.union(usable); len(list) > 0 {
			var v uint64
			for _, column := range list {
				v |= values[column]
			}
			if v != right.entry {
				t.Fatalf("seed %d: %v are said to be EXEC on entry together", seed, list)
			}
			if exact++; len(list) > 1 {
				unions++
			}
		}
		if e := both.masks.extent(both.exec(wave64)); e.mustActive && right.entry&^right.pair(isa.ExecLo) != 0 ||
			e.mustInactive && ^right.entry&^right.pair(isa.ExecLo) != 0 ||
			!e.mayActive && right.entry&right.pair(isa.ExecLo) != 0 || !e.mayInactive && right.pair(isa.ExecLo)&^right.entry != 0 {
			t.Fatalf("seed %d: EXEC does not reach as far as is said: %+v", seed, e)
		}
	}
	t.Logf("EXEC on entry was found after %d programs, %d times in several masks", exact, unions)
	if exact < 400 || unions < 10 {
		t.Error("too few")
	}
}
