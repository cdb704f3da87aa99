// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strings"
)

// gcnSizes are the sizes of what one lane loads or stores: bytes, whether the
// number has a sign, and where it is more than one word, how many words.
var gcnSizes = map[string]struct {
	bytes  int
	signed bool
	words  int
}{
	"ubyte": {1, false, 1}, "u8": {1, false, 1}, "sbyte": {1, true, 1}, "i8": {1, true, 1}, "byte": {1, false, 1}, "b8": {1, false, 1},
	"ushort": {2, false, 1}, "u16": {2, false, 1}, "sshort": {2, true, 1}, "i16": {2, true, 1}, "short": {2, false, 1}, "b16": {2, false, 1},
	"dword": {4, false, 1}, "b32": {4, false, 1}, "dwordx2": {4, false, 2}, "b64": {4, false, 2},
	"dwordx3": {4, false, 3}, "b96": {4, false, 3}, "dwordx4": {4, false, 4}, "b128": {4, false, 4},
}

// caches are modifiers that say what caches do.
var gcnCaches = []string{"offset", "glc", "slc", "dlc", "sc0", "sc1", "nt", "scope", "th"}

// A gcnAddress finds the address that a lane accesses, and what is there.
type gcnAddress func(s *gcnState, lane int) (uint64, gcnPlace, error)

// compileMemory makes a load or a store of lanes executable.
func compileMemory(in *gcnInstruction) (func(*gcnState) error, error) {
	words := strings.SplitN(in.name, "_", 3)
	if len(words) != 3 {
		return nil, errGCNUnknown
	}
	kind, verb := words[0], words[1]
	load := verb == "load" || verb == "read"
	if !load && verb != "store" && verb != "write" {
		return nil, errGCNUnknown
	}
	size, ok := gcnSizes[words[2]]
	if !ok {
		return nil, errGCNUnknown
	}
	o := in.operands
	var data *gcnOperand
	var address gcnAddress
	var err error
	switch kind {
	case "flat", "global":
		n := 2
		if kind == "global" {
			n = 3
		}
		if err := in.operandsOf(n, gcnCaches...); err != nil {
			return nil, err
		}
		from := &o[0]
		if data = &o[1]; load {
			data, from = from, data
		}
		base := gcnOperand{file: gcnOff}
		if n == 3 {
			base = o[2]
		}
		address = in.globalAddress(from, base)
	case "scratch":
		if err := in.operandsOf(3, gcnCaches...); err != nil {
			return nil, err
		}
		from := &o[0]
		if data = &o[1]; load {
			data, from = from, data
		}
		address = in.scratchAddress(from, &o[2])
	case "buffer":
		if err := in.operandsOf(4, append(gcnCaches, "offen")...); err != nil {
			return nil, err
		}
		data = &o[0]
		address, err = in.bufferAddress()
	case "ds":
		if err := in.operandsOf(2, "offset"); err != nil {
			return nil, err
		}
		from := &o[0]
		if data = &o[1]; load {
			data, from = from, data
		}
		plus := uint64(in.modifiers["offset"]) //nolint:gosec // not negative
		address = func(s *gcnState, lane int) (uint64, gcnPlace, error) {
			a, err := s.readLane(from, lane, 32)
			return uint64(uint32(a + plus)), s.localAt, err //nolint:gosec // an address of 32 bits
		}
	default:
		return nil, errGCNUnknown
	}
	if err != nil {
		return nil, err
	}
	if data.file != gcnVector && data.file != gcnAcc || data.count != size.words {
		return nil, fmt.Errorf("%d words in %s: %w", size.words, data.text, errGCNUnknown)
	}
	return func(s *gcnState) error {
		return s.active(func(lane int) error {
			a, at, err := address(s, lane)
			if err != nil {
				return err
			}
			var v [4]uint64
			for i := range size.words {
				if load {
					if v[i], err = loadBytes(at, a+uint64(size.bytes*i), size.bytes); err != nil {
						return err
					}
					continue
				}
				from := s.index(data, i, lane)
				if err := storeBytes(at, a+uint64(size.bytes*i), size.bytes, uint64(s.vector[from])); err != nil {
					return err
				}
			}
			for i := range size.words {
				if load {
					if size.signed {
						v[i] = field(v[i], 0, uint64(8*size.bytes), 32, true) //nolint:gosec // positive
					}
					s.vector[s.index(data, i, lane)] = uint32(v[i]) //nolint:gosec // the lower half
				}
			}
			return nil
		})
	}, nil
}

// globalAddress is that of flat and global instructions: a lane's address, or a
// scalar one and a lane's offset.
func (in *gcnInstruction) globalAddress(from *gcnOperand, base gcnOperand) gcnAddress {
	plus := uint64(in.modifiers["offset"]) //nolint:gosec // two's complement
	flat := strings.HasPrefix(in.name, "flat")
	return func(s *gcnState, lane int) (a uint64, at gcnPlace, err error) {
		if base.file == gcnOff {
			a, err = s.readLane(from, lane, 64)
		} else if a, err = s.readScalar(&base, 64); err == nil {
			var o uint64
			o, err = s.readLane(from, lane, 32)
			a += o
		}
		if err == nil && !flat && a&gcnApertureMask&(gcnSharedAperture|gcnPrivateAperture) != 0 {
			err = fmt.Errorf("a global access to %#x: %w", a, errGCNAccess)
		}
		if err == nil && a&gcnApertureMask == gcnPrivateAperture && s.flatBase() != gcnScratchBase {
			err = fmt.Errorf("FLAT_SCRATCH is %#x, expected %#x", s.flatBase(), uint64(gcnScratchBase))
		}
		return a + plus, func(a uint64) (*byte, error) { return s.at(lane, a) }, err
	}
}

// flatBase is where flat instructions find private memory.
func (s *gcnState) flatBase() uint64 {
	if s.gen == 9 && !s.flat {
		return uint64(s.scalar[gcnFlatScratch]) | uint64(s.scalar[gcnFlatScratch+1])<<32
	}
	return s.flatScratch
}

// scratchAddress is that of scratch instructions, which count a lane's bytes.
func (in *gcnInstruction) scratchAddress(from, base *gcnOperand) gcnAddress {
	plus := uint64(in.modifiers["offset"]) //nolint:gosec // two's complement
	return func(s *gcnState, lane int) (uint64, gcnPlace, error) {
		a := plus
		if from.file != gcnOff {
			v, err := s.readLane(from, lane, 32)
			if err != nil {
				return 0, nil, err
			}
			a += v
		}
		if base.file != gcnOff {
			v, err := s.readScalar(base, 32)
			if err != nil {
				return 0, nil, err
			}
			a += v
		}
		if s.flatBase() != gcnScratchBase {
			return 0, nil, fmt.Errorf("FLAT_SCRATCH is %#x, expected %#x", s.flatBase(), uint64(gcnScratchBase))
		}
		return uint64(uint32(a)), func(a uint64) (*byte, error) { return s.scratchAt(s.privateByte(lane, a)) }, nil //nolint:gosec // an address of 32 bits
	}
}

// bufferAddress is that of buffer instructions, which are known by the
// descriptor of private memory only: lanes' words alternate.
func (in *gcnInstruction) bufferAddress() (gcnAddress, error) {
	o := in.operands
	offen := in.modifiers["offen"] == 1
	if offen != (o[1].file == gcnVector) || o[2].file != gcnScalar || o[2].count != 4 {
		return nil, errGCNUnknown
	}
	plus := uint64(in.modifiers["offset"]) //nolint:gosec // not negative
	return func(s *gcnState, lane int) (uint64, gcnPlace, error) {
		d := s.scalar[o[2].reg:][:4]
		base := (uint64(d[0]) | uint64(d[1])<<32) & 0xffff_ffff_ffff
		if base != gcnScratchBase || d[2] != gcnDescriptor2 || d[3] != gcnDescriptor3 {
			return 0, nil, fmt.Errorf("the descriptor in %s is %x, expected that of private memory", o[2].text, d)
		}
		scalar, err := s.readScalar(&o[3], 32)
		if err != nil {
			return 0, nil, err
		}
		a := plus
		if offen {
			v, err := s.readLane(&o[1], lane, 32)
			if err != nil {
				return 0, nil, err
			}
			a += v
		}
		return a, func(a uint64) (*byte, error) { return s.scratchAt(scalar + s.privateByte(lane, a)) }, nil
	}, nil
}

// The upper words of the descriptor of private memory: any.
const (
	gcnDescriptor2 = 0xffff_0000
	gcnDescriptor3 = 0x00e8_0000
)

// compileGCN makes an instruction executable.
func compileGCN(in *gcnInstruction) (func(*gcnState) error, error) {
	switch {
	case gcnNothing[in.name]:
		return func(*gcnState) error { return nil }, nil
	case strings.HasPrefix(in.name, "s_"):
		return compileScalar(in)
	case strings.HasPrefix(in.name, "v_"):
		return compileVector(in)
	}
	return compileMemory(in)
}
