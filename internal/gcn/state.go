// SPDX-License-Identifier: Apache-2.0

package gcn

import (
	"errors"
	"fmt"
	"math/bits"
)

// The apertures of flat addresses: the upper 32 bits of an address in one of
// them. The lower ones are an address of local or of private memory.
const (
	SharedAperture  = 0x1_0000_0000_0000
	PrivateAperture = 0x2_0000_0000_0000
	apertureMask    = ^uint64(0xffff_ffff)
)

// scratchBase is the address of the wave's private memory in global memory.
const scratchBase = 0x7e00_0001_0000

// CodeBase is the address where code objects are loaded.
const CodeBase = 0x7f0000000000

// State is a wave that executes.
type State struct {
	code    *Code
	gen     int  // the generation: 9, 10, 11, 12
	flat    bool // the stack is reached by scratch instructions
	Lanes   int
	PC      uint64
	Scalar  [128]uint32
	Vector  []uint32 // vector register r of lane l is at r*lanes+l; accumulation registers are 256 and on
	scc     bool
	Scratch []byte // private_wave memory
	Local   []byte
	// flatScratch is the hardware's register pair where it has no number.
	flatScratch uint64
	Memory      map[uint64]*[Page]byte
	gprIndex    string // s_set_gpr_idx_on: the operands that M0 indexes

	Ended    bool
	Steps    int
	Deepest  uint64 // one past the highest byte of private memory that was touched
	OnCall   func(returnAddress uint64) error
	OnReturn func(target uint64) error // at any s_setpc_b64
}

// Page is the size of the pages of global memory.
const Page = 4096

var errAccess = errors.New("no such memory")

// Exec returns the mask of lanes that execute.
func (s *State) Exec() uint64 { return s.mask(Exec) }

// mask returns a mask of lanes in scalar registers.
func (s *State) mask(reg int) uint64 {
	if s.Lanes == 32 {
		return uint64(s.Scalar[reg])
	}
	return uint64(s.Scalar[reg]) | uint64(s.Scalar[reg+1])<<32
}

func (s *State) setMask(o *Operand, m uint64) error {
	if s.Lanes == 32 {
		return s.writeScalar(o, m, 32)
	}
	return s.writeScalar(o, m, 64)
}

// writeScalar writes the destination of a scalar result.
func (s *State) writeScalar(o *Operand, v uint64, width int) error {
	switch o.file {
	case nullFile:
		return nil
	case Scalar:
		if o.count*32 < width {
			return fmt.Errorf("%s has not %d bits", o.text, width)
		}
		s.Scalar[o.reg] = uint32(v) //nolint:gosec // the lower half
		if width == 64 {
			s.Scalar[o.reg+1] = uint32(v >> 32) //nolint:gosec // the upper half
		}
		return nil
	}
	return fmt.Errorf("%s is no scalar destination", o.text)
}

// readScalar reads an operand of a scalar instruction.
func (s *State) readScalar(o *Operand, width int) (uint64, error) {
	switch o.file {
	case Scalar:
		if width == 64 {
			if o.count < 2 {
				return 0, fmt.Errorf("%s has not 64 bits", o.text)
			}
			return uint64(s.Scalar[o.reg]) | uint64(s.Scalar[o.reg+1])<<32, nil
		}
		return uint64(s.Scalar[o.reg]), nil
	case Constant:
		if width == 16 && o.isFloat {
			return 0, fmt.Errorf("%s of 16 bits is not known here", o.text)
		}
		v := o.constant(width)
		if width == 32 {
			v = uint64(uint32(v)) //nolint:gosec // the lower half
		}
		return v, nil
	case nullFile:
		return 0, nil
	case conditionCode:
		if s.scc {
			return 1, nil
		}
		return 0, nil
	}
	return 0, fmt.Errorf("%s is no scalar source", o.text)
}

// index returns where a vector operand's register i of a lane is.
func (s *State) index(o *Operand, i, lane int) int {
	r := o.reg + i
	if o.file == Acc {
		r += 256
	}
	return r*s.Lanes + lane
}

// readLane reads an operand of a vector instruction in a lane.
func (s *State) readLane(o *Operand, lane, width int) (uint64, error) {
	var v uint64
	switch o.file {
	case Vector, Acc:
		index := s.index(o, 0, lane)
		v = uint64(s.Vector[index])
		if width == 64 {
			if o.count < 2 {
				return 0, fmt.Errorf("%s has not 64 bits", o.text)
			}
			v |= uint64(s.Vector[index+s.Lanes]) << 32
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
func (s *State) writeLane(o *Operand, lane int, v uint64, width int) error {
	if o.file != Vector && o.file != Acc || o.count*32 < width {
		return fmt.Errorf("%s is no destination of %d bits in a lane", o.text, width)
	}
	index := s.index(o, 0, lane)
	if o.size != 0 {
		m := uint32(1)<<o.size - 1
		s.Vector[index] = s.Vector[index]&^(m<<o.shift) | uint32(v)&m<<o.shift //nolint:gosec // masked
		return nil
	}
	s.Vector[index] = uint32(v) //nolint:gosec // the lower half
	if width == 64 {
		s.Vector[index+s.Lanes] = uint32(v >> 32) //nolint:gosec // the upper half
	}
	return nil
}

// PrivateByte returns where a byte of a lane's private memory is in the wave's:
// words of lanes alternate.
func (s *State) PrivateByte(lane int, address uint64) uint64 {
	return address/4*uint64(s.Lanes)*4 + uint64(lane)*4 + address%4
}

// scratchAt returns a byte of the wave's private memory.
func (s *State) scratchAt(address uint64) (*byte, error) {
	if address >= uint64(len(s.Scratch)) {
		return nil, fmt.Errorf("private memory at %#x: %w", address, errAccess)
	}
	s.Deepest = max(s.Deepest, address+1)
	return &s.Scratch[address], nil
}

// flatByte returns a byte that a lane reaches by a flat or global address.
func (s *State) flatByte(lane int, address uint64) (*byte, error) {
	switch address & apertureMask {
	case SharedAperture:
		return s.localAt(address &^ apertureMask)
	case PrivateAperture:
		return s.scratchAt(s.PrivateByte(lane, address&^apertureMask))
	}
	if p := s.Memory[address/Page]; p != nil {
		return &p[address%Page], nil
	}
	return nil, fmt.Errorf("global memory at %#x: %w", address, errAccess)
}

func (s *State) localAt(address uint64) (*byte, error) {
	if address >= uint64(len(s.Local)) {
		return nil, fmt.Errorf("local memory at %#x: %w", address, errAccess)
	}
	return &s.Local[address], nil
}

// placeFunc finds a byte of the memory that an instruction accesses.
type placeFunc func(address uint64) (*byte, error)

// loadBytes reads n bytes, at most 8, as a number.
func loadBytes(place placeFunc, address uint64, n int) (v uint64, err error) {
	for i := range n {
		p, err := place(address + uint64(i))
		if err != nil {
			return 0, err
		}
		v |= uint64(*p) << (8 * i)
	}
	return v, nil
}

func storeBytes(place placeFunc, address uint64, n int, v uint64) error {
	for i := range n {
		p, err := place(address + uint64(i))
		if err != nil {
			return err
		}
		*p = byte(v >> (8 * i))
	}
	return nil
}

// put writes global memory, which it allocates.
func (s *State) put(address uint64, data []byte) {
	for i, b := range data {
		a := address + uint64(i)
		p := s.Memory[a/Page]
		if p == nil {
			p = new([Page]byte)
			s.Memory[a/Page] = p
		}
		p[a%Page] = b
	}
}

// Active calls do for every active lane.
func (s *State) Active(do func(lane int) error) error {
	for m := s.Exec(); m != 0; m &= m - 1 {
		if err := do(bits.TrailingZeros64(m)); err != nil {
			return err
		}
	}
	return nil
}

// Step executes one instruction.
func (s *State) Step() error {
	ins := s.code.instructions[s.PC-CodeBase]
	if ins == nil {
		return fmt.Errorf("no instruction at %#x", s.PC)
	}
	s.Steps++
	s.PC = CodeBase + ins.next
	if ins.run == nil {
		run, err := compile(ins)
		if err != nil {
			return fmt.Errorf("%#x: %q: %w", ins.address, ins.text, err)
		}
		ins.run = run
	}
	if err := ins.run(s); err != nil {
		return fmt.Errorf("%#x: %q: %w", ins.address, ins.text, err)
	}
	return nil
}
