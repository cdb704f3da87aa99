// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"math"
	"slices"

	"github.com/unwindd/unwindd/plugins/visa/stream"
	"github.com/unwindd/unwindd/sdk"
)

// maxPlaces bounds the places of variables in an answer.
const maxPlaces = 1 << 16

// variables adds vISA's variables and their places to an answer.
type variables struct {
	object  *codeObject
	section uint32
	places  int // in the answer
}

// maxSpan bounds the registers that the place of a variable spans: a stream
// has no sizes, and a variable may take as many as its lanes need.
const maxSpan = 16

// add adds the variables of a function.
//
// An interval is of vISA instructions: from the one that writes the variable to the
// last one that reads it. Its code follows from the index map where both
// instructions are in it: from behind all code of the first one up to the first
// code of the last one behind that. Compilers move code about, but not over the
// code that it depends on. A variable that is live from 0 on is an argument; a
// kernel's are not in their registers before code put them there, so they are
// described from the code of the first instruction on.
func (v *variables) add(f *function, object *stream.Object) {
	p := placesOf(indexMapOf(object), f.isKernel)
	absolute := false
	for i := range object.Variables {
		from := &object.Variables[i]
		to := sdk.Variable{Name: from.Name, Section: v.section}
		for j := range from.Intervals {
			n := &from.Intervals[j]
			start, end, ok := p.code(n)
			if !ok || end > f.size {
				continue
			}
			place, ok := f.place(n.Location)
			if !ok {
				continue
			}
			absolute = absolute || n.Location.IsAbsolute && !f.isKernel
			if v.places++; v.places > maxPlaces {
				v.object.problem("vISA stream: more than %d places of variables: the others are left out", maxPlaces)
				return
			}
			to.Start, to.End, to.Locations = append(to.Start, f.start+start), append(to.End, f.start+end), append(to.Locations, place)
		}
		if len(to.Start) > 0 {
			v.object.answer.Variables = append(v.object.answer.Variables, to)
		}
	}
	if absolute {
		v.object.problem("vISA stream: object %s: variables in memory are said to be at fixed places of the scratch space, in a function that is called: taken for places in its frame", f.name)
	}
}

// places has the code of each vISA instruction.
type places struct {
	first uint64              // where arguments are in place
	end   map[uint32]uint64   // by index: behind all of its code
	from  map[uint32][]uint64 // the beginnings of its code, sorted
}

// code returns the range of code of an interval. The end is behind the first
// byte of the last instruction: before that is executed, the variable is there
// yet.
func (p *places) code(n *stream.Interval) (start, end uint64, ok bool) {
	switch {
	case n.Start == 0:
		start = p.first
	default:
		if start, ok = p.end[n.Start]; !ok {
			return 0, 0, false
		}
	}
	from := p.from[n.End]
	i, _ := slices.BinarySearch(from, start)
	if i == len(from) || n.Start >= n.End {
		return 0, 0, false
	}
	return start, from[i] + 1, true
}

// placesOf returns the places of a function with an index map.
func placesOf(m indexMap, kernel bool) *places {
	p := &places{end: map[uint32]uint64{}, from: map[uint32][]uint64{}}
	lowest := uint32(math.MaxUint32)
	for i, e := range m {
		if kernel && e.VISA < lowest {
			lowest, p.first = e.VISA, uint64(e.Gen)
		}
		p.from[e.VISA] = append(p.from[e.VISA], uint64(e.Gen))
		if i+1 < len(m) {
			p.end[e.VISA] = uint64(m[i+1].Gen)
		}
	}
	return p
}

// place returns a location of the stream as an expression.
func (f *function) place(l stream.Location) (expression, bool) {
	switch l.Storage {
	case stream.General:
		return f.generalPlace(uint32(l.Register), uint64(l.Subregister))
	case stream.Address:
		if l.Register != 0 || l.Subregister >= addressWords {
			return nil, false
		}
		return expression{}.inRegister(a0, 2*uint64(l.Subregister)), true
	case stream.Flag:
		if uint32(l.Register) >= flags || l.Subregister > 1 {
			return nil, false
		}
		return expression{}.inRegister(f0+uint32(l.Register), 2*uint64(l.Subregister)), true
	case stream.Memory:
		switch {
		case l.Offset < 0:
			return nil, false
		case l.IsAbsolute && f.isKernel:
			return expression{}.constant(uint64(l.Offset)).inScratch(), true
		case f.abi != nil && f.unit != 0:
			return expression{}.framePointer(f.abi.descriptor, f.abi.fp, f.unit).plus(uint64(l.Offset)).inScratch(), true
		}
	}
	return nil, false
}

// The registers of other kinds.
const (
	addressWords = 16 // of 16 bits, in a0
	flags        = 4
)

// generalPlace returns a place in the general registers: in the register and its
// successors.
func (f *function) generalPlace(register uint32, offset uint64) (expression, bool) {
	registers := uint32(maxRegisters)
	if f.abi != nil {
		registers = f.abi.registers
	}
	if register >= registers {
		return nil, false
	}
	e := expression{}.inRegister(generalRegister(register), offset)
	if f.grf == 0 || offset >= f.grf {
		return e, offset < grf64/8
	}
	e = e.piece(f.grf - offset)
	for n := register + 1; n < min(register+maxSpan, registers); n++ {
		e = e.inRegister(generalRegister(n), 0).piece(f.grf)
	}
	return e, true
}
