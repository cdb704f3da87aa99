// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// exits collects how code is left other than by returning.
type exits struct {
	code    []byte
	start   uint64
	bounded bool
	seen    []bool // offsets that were reached
	waiting []int
	found   sdk.CodeExits
}

// codeExits follows the code from the PC over every branch. It is nil where the
// code cannot be read.
func codeExits(r *sdk.CodeRange) *sdk.CodeExits {
	size := uint64(len(r.Code))
	if r.PC-r.Start >= size || size > maxCode || r.Start+size < r.Start {
		return nil
	}
	x := &exits{code: r.Code, start: r.Start, bounded: r.Bounded, seen: make([]bool, size)}
	x.waiting = append(x.waiting, int(r.PC-r.Start))
	for len(x.waiting) > 0 && !x.found.Open {
		at := x.waiting[len(x.waiting)-1]
		x.waiting = x.waiting[:len(x.waiting)-1]
		x.follow(at)
	}
	slices.Sort(x.found.Jumps)
	slices.Sort(x.found.Slots)
	x.found.Jumps, x.found.Slots = slices.Compact(x.found.Jumps), slices.Compact(x.found.Slots)
	return &x.found
}

// follow follows straight-line code from an offset until it ends or is known.
func (x *exits) follow(at int) {
	atTop := false // the instruction before wrote the top of the stack
	for {
		if at == len(x.code) {
			x.jump(at)
			return
		}
		if x.seen[at] {
			return
		}
		x.seen[at] = true
		e, ok := readEffect(x.code[at:])
		if !ok {
			x.found.Open = true
			return
		}
		next := at + int(e.length)
		switch e.kind {
		case effectReturn:
			// A return to what was just written is a jump: so do thunks that keep
			// processors from speculating.
			x.found.Open = x.found.Open || atTop
			return
		case effectStop:
			return
		case effectJump:
			x.leave(at, next, &e)
			return
		case effectBranch:
			x.jump(at + int(e.target))
		case effectCall:
			if e.direct && isInside(at+int(e.target), x.code) {
				x.jump(at + int(e.target))
			}
			if next == len(x.code) && x.bounded {
				return // the function ends with a call that does not return
			}
		}
		atTop = e.kind == effectPush || e.hasMem && e.mem.base == gprSP && e.mem.offset == 0 && e.kind != effectLoad
		at = next
	}
}

func isInside(at int, code []byte) bool { return at >= 0 && at < len(code) }

// jump goes on at an offset, which may be outside the code.
func (x *exits) jump(to int) {
	switch {
	case !isInside(to, x.code):
		x.found.Jumps = append(x.found.Jumps, x.start+uint64(int64(to)))
	case !x.seen[to]:
		x.waiting = append(x.waiting, to)
	}
}

// leave is a jump at an offset that is not a branch.
func (x *exits) leave(at, next int, e *effect) {
	switch {
	case e.direct:
		x.jump(at + int(e.target))
	case e.hasMem && e.mem.rip && !e.mem.opaque:
		x.found.Slots = append(x.found.Slots, x.start+uint64(int64(next)+e.mem.offset))
	default:
		x.found.Open = true
	}
}
