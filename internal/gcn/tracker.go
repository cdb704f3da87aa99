// SPDX-License-Identifier: Apache-2.0

package gcn

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Register is a register by its DWARF number, with the place of its bytes in
// Tracker.Live and in the registers of a call.
type Register struct {
	Number       uint64
	File         File
	Reg          int
	Offset, Size int
	// Keeps is set where the calling convention has functions preserve it: a
	// vector register in active lanes. In the others all are preserved.
	Keeps bool
}

// Call is a call that is in progress: the registers at its moment, which its
// caller has until it returns.
type Call struct {
	Back      uint64 // the return address
	Function  uint64 // that was called: its entry, as an address of the object
	Registers []byte
	Exec      uint64
	CFA       uint64 // in private_wave
}

// Tracker follows a wave that executes: its registers, and the calls that are in
// progress.
type Tracker struct {
	Object    *Object
	State     *State
	Registers []Register
	Live      []byte // the registers of the wave now
	Calls     []*Call
	// NotKept has the registers that a function does not preserve against the
	// convention, as executing it shows. A compiler may do so where it knows
	// all callers. Bits of lanes.
	NotKept map[uint64]map[uint64]uint64
}

// NewTracker returns a tracker of waves of an object.
func NewTracker(o *Object) *Tracker {
	t := &Tracker{Object: o, NotKept: map[uint64]map[uint64]uint64{}}
	t.layout()
	return t
}

// layout lists the registers that waves of the object have.
func (t *Tracker) layout() {
	p := t.Object.Processor
	mask := p.Lanes / 8
	add := func(number uint64, file File, reg, size int, keeps bool) {
		t.Registers = append(t.Registers, Register{number, file, reg, len(t.Live), size, keeps})
		t.Live = append(t.Live, make([]byte, size)...)
	}
	exec, vcc, vectors := uint64(17), uint64(768), uint64(2560)
	if p.Lanes == 32 {
		exec, vcc, vectors = 1, 512, 1536
		add(exec, Scalar, Exec, mask, true)
	}
	add(16, OtherFile, 0, 8, true)
	if p.Lanes == 64 {
		add(exec, Scalar, Exec, mask, true)
	}
	// The registers that functions of LLVM 22 preserve: fewer than in its
	// guide.
	keepsScalar := func(n int) bool {
		return n >= 32 && n < 40 || n >= 48 && (n/8%2 == 0 || n >= 96) || n < 4 && !p.Flat
	}
	for n := range 64 {
		add(32+uint64(n), Scalar, n, 4, keepsScalar(n))
	}
	add(vcc, Scalar, VCC, mask, false)
	for n := 64; n < 106; n++ {
		add(1088+uint64(n-64), Scalar, n, 4, keepsScalar(n))
	}
	for n := range min(max(t.Object.VectorRegisters, 64), 256) {
		add(vectors+uint64(n), Vector, n, p.Lanes*4, n >= 40 && n/8%2 == 1)
	}
	if p.Acc {
		for n := range min(max(t.Object.AccRegisters, 8), 256) {
			add(3072+uint64(n), Acc, n, p.Lanes*4, n >= 32)
		}
	}
}

// Refresh writes the registers of the wave to Live.
func (t *Tracker) Refresh() {
	s := t.State
	for i := range t.Registers {
		r := &t.Registers[i]
		b := t.Live[r.Offset:][:r.Size]
		switch r.File {
		case OtherFile:
			binary.LittleEndian.PutUint64(b, s.PC)
		case Scalar:
			for k := 0; k < r.Size; k += 4 {
				binary.LittleEndian.PutUint32(b[k:], s.Scalar[r.Reg+k/4])
			}
		default:
			first := r.Reg
			if r.File == Acc {
				first += 256
			}
			for k, v := range s.Vector[first*s.Lanes:][:s.Lanes] {
				binary.LittleEndian.PutUint32(b[4*k:], v)
			}
		}
	}
}

// Start puts a wave at the entry of its kernel.
func (t *Tracker) Start(s *State) {
	t.State, t.Calls = s, nil
	s.OnCall = func(back uint64) error {
		t.Refresh()
		c := &Call{Back: back, Function: s.PC - CodeBase, Registers: bytes.Clone(t.Live), Exec: s.Exec(), CFA: uint64(s.Scalar[32])}
		if s.flat {
			c.CFA *= uint64(s.Lanes) //nolint:gosec // positive
		}
		if s.code.Functions[c.Function] == "" {
			return fmt.Errorf("a call to %#x, where no function begins", s.PC)
		}
		t.Calls = append(t.Calls, c)
		return nil
	}
	s.OnReturn = func(target uint64) error {
		n := len(t.Calls)
		switch {
		case n > 0 && target == t.Calls[n-1].Back:
			t.returned(t.Calls[n-1])
			t.Calls = t.Calls[:n-1]
			return nil
		case s.code.Functions[target-CodeBase] != "": // a tail call: the return address and the registers on entry are the same
			if n == 0 {
				return fmt.Errorf("a kernel that jumps to %#x", target)
			}
			return nil
		}
		return fmt.Errorf("a jump to %#x, neither a return nor a tail call", target)
	}
}

// returned records the registers that a function did not preserve.
func (t *Tracker) returned(c *Call) {
	t.Refresh()
	inactive := ^c.Exec & (^uint64(0) >> (64 - t.State.Lanes))
	for i := range t.Registers {
		r := &t.Registers[i]
		now, then := t.Live[r.Offset:][:r.Size], c.Registers[r.Offset:][:r.Size]
		if r.File == OtherFile || bytes.Equal(now, then) {
			continue
		}
		var lanes uint64
		switch {
		case r.File == Scalar && r.Keeps:
			lanes = ^uint64(0)
		case r.File != Scalar:
			for l := range t.State.Lanes {
				if !bytes.Equal(now[4*l:][:4], then[4*l:][:4]) {
					lanes |= 1 << l
				}
			}
			if !r.Keeps {
				lanes &= inactive
			}
		}
		if lanes != 0 {
			if t.NotKept[c.Function] == nil {
				t.NotKept[c.Function] = map[uint64]uint64{}
			}
			t.NotKept[c.Function][r.Number] |= lanes
		}
	}
}
