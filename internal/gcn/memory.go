// SPDX-License-Identifier: Apache-2.0

package gcn

import (
	"fmt"
	"strings"
)

// sizes has the size of the data that one lane loads or stores: bytes,
// whether the number has a sign, and how many words where there are several.
var sizes = map[string]struct {
	bytes  int
	signed bool
	words  int
}{
	"ubyte": {1, false, 1}, "u8": {1, false, 1}, "sbyte": {1, true, 1}, "i8": {1, true, 1}, "byte": {1, false, 1}, "b8": {1, false, 1},
	"ushort": {2, false, 1}, "u16": {2, false, 1}, "sshort": {2, true, 1}, "i16": {2, true, 1}, "short": {2, false, 1}, "b16": {2, false, 1},
	"dword": {4, false, 1}, "b32": {4, false, 1}, "dwordx2": {4, false, 2}, "b64": {4, false, 2},
	"dwordx3": {4, false, 3}, "b96": {4, false, 3}, "dwordx4": {4, false, 4}, "b128": {4, false, 4},
}

// caches are modifiers for offsets and caches.
var caches = []string{"offset", "glc", "slc", "dlc", "sc0", "sc1", "nt", "scope", "th"}

// addressFunc finds the address that a lane accesses, and the memory there.
type addressFunc func(s *State, lane int) (uint64, placeFunc, error)

// compileMemory makes a load or a store of lanes executable.
func compileMemory(ins *Instruction) (func(*State) error, error) {
	words := strings.SplitN(ins.name, "_", 3)
	if len(words) != 3 {
		return nil, errUnknown
	}
	kind, verb := words[0], words[1]
	load := verb == "load" || verb == "read"
	if !load && verb != "store" && verb != "write" {
		return nil, errUnknown
	}
	size, ok := sizes[words[2]]
	if !ok {
		return nil, errUnknown
	}
	n, modifiers := map[string]int{"flat": 2, "global": 3, "scratch": 3, "buffer": 4, "ds": 2}[kind], caches
	switch kind {
	case "buffer":
		modifiers = append(caches, "offen")
	case "ds":
		modifiers = []string{"offset"}
	}
	if n == 0 {
		return nil, errUnknown
	}
	if err := ins.operandsOf(n, modifiers...); err != nil {
		return nil, err
	}
	o := ins.operands
	source, data := &o[0], &o[1]
	if load || kind == "buffer" {
		source, data = data, source
	}
	var address addressFunc
	var err error
	switch kind {
	case "flat":
		address = ins.globalAddress(source, Operand{file: offFile})
	case "global":
		address = ins.globalAddress(source, o[2])
	case "scratch":
		address = ins.scratchAddress(source, &o[2])
	case "buffer":
		address, err = ins.bufferAddress()
	case "ds":
		plus := uint64(ins.modifiers["offset"]) //nolint:gosec // not negative
		address = func(s *State, lane int) (uint64, placeFunc, error) {
			a, err := s.readLane(source, lane, 32)
			return uint64(uint32(a + plus)), s.localAt, err //nolint:gosec // an address of 32 bits
		}
	}
	if err != nil {
		return nil, err
	}
	if data.file != Vector && data.file != Acc || data.count != size.words {
		return nil, fmt.Errorf("%d words in %s: %w", size.words, data.text, errUnknown)
	}
	return func(s *State) error {
		return s.Active(func(lane int) error {
			a, place, err := address(s, lane)
			if err != nil {
				return err
			}
			var v [4]uint64
			for i := range size.words {
				if load {
					if v[i], err = loadBytes(place, a+uint64(size.bytes*i), size.bytes); err != nil {
						return err
					}
					continue
				}
				start := s.index(data, i, lane)
				if err := storeBytes(place, a+uint64(size.bytes*i), size.bytes, uint64(s.Vector[start])); err != nil {
					return err
				}
			}
			for i := range size.words {
				if load {
					if size.signed {
						v[i] = field(v[i], 0, uint64(8*size.bytes), 32, true) //nolint:gosec // positive
					}
					s.Vector[s.index(data, i, lane)] = uint32(v[i]) //nolint:gosec // the lower half
				}
			}
			return nil
		})
	}, nil
}

// globalAddress finds the address of flat and global instructions: a lane's, or
// a scalar one and a lane's offset.
func (ins *Instruction) globalAddress(source *Operand, base Operand) addressFunc {
	plus := uint64(ins.modifiers["offset"]) //nolint:gosec // two's complement
	flat := strings.HasPrefix(ins.name, "flat")
	return func(s *State, lane int) (a uint64, place placeFunc, err error) {
		if base.file == offFile {
			a, err = s.readLane(source, lane, 64)
		} else if a, err = s.readScalar(&base, 64); err == nil {
			var o uint64
			o, err = s.readLane(source, lane, 32)
			a += o
		}
		if err == nil && !flat && a&apertureMask&(SharedAperture|PrivateAperture) != 0 {
			err = fmt.Errorf("a global access to %#x: %w", a, errAccess)
		}
		if err == nil && a&apertureMask == PrivateAperture && s.flatBase() != scratchBase {
			err = fmt.Errorf("FLAT_SCRATCH is %#x, expected %#x", s.flatBase(), uint64(scratchBase))
		}
		return a + plus, func(a uint64) (*byte, error) { return s.flatByte(lane, a) }, err
	}
}

// flatBase returns where flat instructions find private memory.
func (s *State) flatBase() uint64 {
	if s.gen == 9 && !s.flat {
		return uint64(s.Scalar[flatScratch]) | uint64(s.Scalar[flatScratch+1])<<32
	}
	return s.flatScratch
}

// scratchAddress finds the address of scratch instructions, which count a
// lane's bytes.
func (ins *Instruction) scratchAddress(source, base *Operand) addressFunc {
	plus := uint64(ins.modifiers["offset"]) //nolint:gosec // two's complement
	return func(s *State, lane int) (uint64, placeFunc, error) {
		a := plus
		if source.file != offFile {
			v, err := s.readLane(source, lane, 32)
			if err != nil {
				return 0, nil, err
			}
			a += v
		}
		if base.file != offFile {
			v, err := s.readScalar(base, 32)
			if err != nil {
				return 0, nil, err
			}
			a += v
		}
		if s.flatBase() != scratchBase {
			return 0, nil, fmt.Errorf("FLAT_SCRATCH is %#x, expected %#x", s.flatBase(), uint64(scratchBase))
		}
		return uint64(uint32(a)), func(a uint64) (*byte, error) { return s.scratchAt(s.PrivateByte(lane, a)) }, nil //nolint:gosec // an address of 32 bits
	}
}

// bufferAddress finds the address of buffer instructions, which are executed
// with the descriptor of private memory only: lanes' words alternate.
func (ins *Instruction) bufferAddress() (addressFunc, error) {
	o := ins.operands
	offen := ins.modifiers["offen"] == 1
	if offen != (o[1].file == Vector) || o[2].file != Scalar || o[2].count != 4 {
		return nil, errUnknown
	}
	plus := uint64(ins.modifiers["offset"]) //nolint:gosec // not negative
	return func(s *State, lane int) (uint64, placeFunc, error) {
		d := s.Scalar[o[2].reg:][:4]
		base := (uint64(d[0]) | uint64(d[1])<<32) & 0xffff_ffff_ffff
		if base != scratchBase || d[2] != descriptor2 || d[3] != descriptor3 {
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
		return a, func(a uint64) (*byte, error) { return s.scratchAt(scalar + s.PrivateByte(lane, a)) }, nil
	}, nil
}

// The upper words of the descriptor of private memory: any.
const (
	descriptor2 = 0xffff_0000
	descriptor3 = 0x00e8_0000
)

// compile makes an instruction executable.
func compile(ins *Instruction) (func(*State) error, error) {
	switch {
	case withoutEffect[ins.name]:
		return func(*State) error { return nil }, nil
	case strings.HasPrefix(ins.name, "s_"):
		return compileScalar(ins)
	case strings.HasPrefix(ins.name, "v_"):
		return compileVector(ins)
	}
	return compileMemory(ins)
}
