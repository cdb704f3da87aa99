// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"math/bits"
)

// Where the apertures of flat addresses are: the upper 32 bits of an address in
// one of them, the lower ones being an address of local or of private memory.
const (
	gcnSharedAperture  = 0x1_0000_0000_0000
	gcnPrivateAperture = 0x2_0000_0000_0000
	gcnApertureMask    = ^uint64(0xffff_ffff)
)

// gcnScratchBase is where the wave's private memory lies in global memory.
const gcnScratchBase = 0x7e00_0001_0000

// gcnState is a wave that executes.
type gcnState struct {
	code    *gcnCode
	gen     int  // the generation: 9, 10, 11, 12
	flat    bool // the stack is reached by scratch instructions
	lanes   int
	pc      uint64
	scalar  [128]uint32
	vector  []uint32 // vector register r of lane l is at r*lanes+l; accumulation registers are 256 and on
	scc     bool
	scratch []byte // private_wave memory
	local   []byte
	// flatScratch is the hardware's register pair where that has no number.
	flatScratch uint64
	memory      map[uint64]*[gcnPage]byte
	gprIndex    string // s_set_gpr_idx_on: what is indexed; by M0

	ended    bool
	steps    int
	deepest  uint64 // one past the highest byte of private memory that was touched
	onCall   func(returnAddress uint64) error
	onReturn func(to uint64) error // at any s_setpc_b64
}

const gcnPage = 4096

var errGCNAccess = errors.New("no such memory")

// exec is the mask of lanes that execute.
func (s *gcnState) exec() uint64 { return s.mask(gcnExec) }

// mask is a mask of lanes in scalar registers.
func (s *gcnState) mask(reg int) uint64 {
	if s.lanes == 32 {
		return uint64(s.scalar[reg])
	}
	return uint64(s.scalar[reg]) | uint64(s.scalar[reg+1])<<32
}

func (s *gcnState) setMask(o *gcnOperand, m uint64) error {
	if s.lanes == 32 {
		return s.writeScalar(o, m, 32)
	}
	return s.writeScalar(o, m, 64)
}

// writeScalar writes the destination of a scalar result.
func (s *gcnState) writeScalar(o *gcnOperand, v uint64, width int) error {
	switch o.file {
	case gcnNull:
		return nil
	case gcnScalar:
		if o.count*32 < width {
			return fmt.Errorf("%s has not %d bits", o.text, width)
		}
		s.scalar[o.reg] = uint32(v) //nolint:gosec // the lower half
		if width == 64 {
			s.scalar[o.reg+1] = uint32(v >> 32) //nolint:gosec // the upper half
		}
		return nil
	}
	return fmt.Errorf("%s is no scalar destination", o.text)
}

// readScalar reads an operand of a scalar instruction.
func (s *gcnState) readScalar(o *gcnOperand, width int) (uint64, error) {
	switch o.file {
	case gcnScalar:
		if width == 64 {
			if o.count < 2 {
				return 0, fmt.Errorf("%s has not 64 bits", o.text)
			}
			return uint64(s.scalar[o.reg]) | uint64(s.scalar[o.reg+1])<<32, nil
		}
		return uint64(s.scalar[o.reg]), nil
	case gcnConstant:
		if width == 16 && o.isFloat {
			return 0, fmt.Errorf("%s of 16 bits is not known here", o.text)
		}
		v := o.constant(width)
		if width == 32 {
			v = uint64(uint32(v)) //nolint:gosec // the lower half
		}
		return v, nil
	case gcnNull:
		return 0, nil
	case gcnSCC:
		if s.scc {
			return 1, nil
		}
		return 0, nil
	}
	return 0, fmt.Errorf("%s is no scalar source", o.text)
}

// index is where a vector operand's register i of a lane is.
func (s *gcnState) index(o *gcnOperand, i, lane int) int {
	r := o.reg + i
	if o.file == gcnAcc {
		r += 256
	}
	return r*s.lanes + lane
}

// readLane reads an operand of a vector instruction in a lane.
func (s *gcnState) readLane(o *gcnOperand, lane, width int) (uint64, error) {
	var v uint64
	switch o.file {
	case gcnVector, gcnAcc:
		at := s.index(o, 0, lane)
		v = uint64(s.vector[at])
		if width == 64 {
			if o.count < 2 {
				return 0, fmt.Errorf("%s has not 64 bits", o.text)
			}
			v |= uint64(s.vector[at+s.lanes]) << 32
		}
	default:
		var err error
		if v, err = s.readScalar(o, width); err != nil {
			return 0, err
		}
	}
	if o.size != 0 {
		v = v >> o.shift & (1<<o.size - 1)
	}
	if o.abs {
		v &^= 1 << (width - 1)
	}
	if o.neg {
		v ^= 1 << (width - 1)
	}
	return v, nil
}

// writeLane writes a vector destination in a lane.
func (s *gcnState) writeLane(o *gcnOperand, lane int, v uint64, width int) error {
	if o.file != gcnVector && o.file != gcnAcc || o.count*32 < width {
		return fmt.Errorf("%s is no destination of %d bits in a lane", o.text, width)
	}
	at := s.index(o, 0, lane)
	if o.size != 0 {
		m := uint32(1)<<o.size - 1
		s.vector[at] = s.vector[at]&^(m<<o.shift) | uint32(v)&m<<o.shift //nolint:gosec // masked
		return nil
	}
	s.vector[at] = uint32(v) //nolint:gosec // the lower half
	if width == 64 {
		s.vector[at+s.lanes] = uint32(v >> 32) //nolint:gosec // the upper half
	}
	return nil
}

// privateByte is where byte address of a lane's private memory is in that of the
// wave: words of lanes alternate.
func (s *gcnState) privateByte(lane int, address uint64) uint64 {
	return address/4*uint64(s.lanes)*4 + uint64(lane)*4 + address%4
}

// scratchAt is a byte of the wave's private memory.
func (s *gcnState) scratchAt(address uint64) (*byte, error) {
	if address >= uint64(len(s.scratch)) {
		return nil, fmt.Errorf("private memory at %#x: %w", address, errGCNAccess)
	}
	s.deepest = max(s.deepest, address+1)
	return &s.scratch[address], nil
}

// at is a byte that a lane reaches by a flat or global address.
func (s *gcnState) at(lane int, address uint64) (*byte, error) {
	switch address & gcnApertureMask {
	case gcnSharedAperture:
		return s.localAt(address &^ gcnApertureMask)
	case gcnPrivateAperture:
		return s.scratchAt(s.privateByte(lane, address&^gcnApertureMask))
	}
	if p := s.memory[address/gcnPage]; p != nil {
		return &p[address%gcnPage], nil
	}
	return nil, fmt.Errorf("global memory at %#x: %w", address, errGCNAccess)
}

func (s *gcnState) localAt(address uint64) (*byte, error) {
	if address >= uint64(len(s.local)) {
		return nil, fmt.Errorf("local memory at %#x: %w", address, errGCNAccess)
	}
	return &s.local[address], nil
}

// gcnPlace finds a byte of the memory that an instruction accesses.
type gcnPlace func(address uint64) (*byte, error)

// loadBytes reads n bytes, at most 8, as a number.
func loadBytes(at gcnPlace, address uint64, n int) (v uint64, err error) {
	for i := range n {
		p, err := at(address + uint64(i))
		if err != nil {
			return 0, err
		}
		v |= uint64(*p) << (8 * i)
	}
	return v, nil
}

func storeBytes(at gcnPlace, address uint64, n int, v uint64) error {
	for i := range n {
		p, err := at(address + uint64(i))
		if err != nil {
			return err
		}
		*p = byte(v >> (8 * i))
	}
	return nil
}

// put writes global memory, making it.
func (s *gcnState) put(address uint64, data []byte) {
	for i, b := range data {
		a := address + uint64(i)
		p := s.memory[a/gcnPage]
		if p == nil {
			p = new([gcnPage]byte)
			s.memory[a/gcnPage] = p
		}
		p[a%gcnPage] = b
	}
}

// active calls do for every lane that executes.
func (s *gcnState) active(do func(lane int) error) error {
	for m := s.exec(); m != 0; m &= m - 1 {
		if err := do(bits.TrailingZeros64(m)); err != nil {
			return err
		}
	}
	return nil
}

// step executes one instruction.
func (s *gcnState) step() error {
	in := s.code.instructions[s.pc-codeBase]
	if in == nil {
		return fmt.Errorf("no instruction at %#x", s.pc)
	}
	s.steps++
	s.pc = codeBase + in.next
	if in.run == nil {
		run, err := compileGCN(in)
		if err != nil {
			return fmt.Errorf("%#x: %q: %w", in.address, in.text, err)
		}
		in.run = run
	}
	if err := in.run(s); err != nil {
		return fmt.Errorf("%#x: %q: %w", in.address, in.text, err)
	}
	return nil
}
