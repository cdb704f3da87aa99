// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// This file keeps the truth: which calls a process is in, by what its processor does.

// place is a return address that is on a stack.
type place struct {
	slot uint64 // where the word is that the processor will take
	back uint64 // the value that was put there
	kind placeKind
	// sp is where the stack pointer was in the code that a signal interrupted.
	sp uint64
	// kept are the registers at the call that a function gives back as they were.
	kept registers
}

// registers are those that functions preserve, in the order of the shadow's numbers of them.
type registers [11]uint64

type placeKind uint8

const (
	byCall      placeKind = iota
	byKernel              // what the handler of a signal returns to
	interrupted           // where a signal interrupted the process
	byProgram             // what a program put at the beginning of a stack that it made
)

// stack is one of those that a process has. Places are outermost first.
type stack struct {
	low, base uint64 // the lowest and the highest stack pointer there
	places    []place
	// from is the stack that the process was on when it was switched to this one, which had
	// its stack pointer at entered.
	from    *stack
	entered uint64
	isBelow bool // it is a signal's: the interrupted stack goes on behind it
	// isTaken says that the innermost place was popped into a register: the function has not
	// returned, and may put it back.
	taken *place
	// isCut says that the stack pointer was set to one that calls have left behind: what comes
	// is a jump out of them.
	isCut bool
}

// shadow is the stacks of a process.
type shadow struct {
	memory interface {
		word(address uint64) (uint64, bool)
	}
	current *stack
	all     []*stack
	isGo    bool // stacks are moved, and the runtime's calls go from one to another
	// hasLink says that calls leave the return address in a register. A place's slot is then
	// where the stack pointer was at the call.
	hasLink   bool
	preserved []uint64 // DWARF numbers of registers that functions give back as they were
}

// slack is how far above the first stack pointer of a stack that was seen there the stack may
// reach, and largest how far down a stack pointer goes that a register gives it.
const (
	slack   = 512
	largest = 64 << 10
)

func newShadow(memory interface {
	word(address uint64) (uint64, bool)
}, sp uint64, isGo bool) *shadow {
	s := &stack{low: sp, base: sp}
	return &shadow{memory: memory, current: s, all: []*stack{s}, isGo: isGo, preserved: preserved[:]}
}

// follow takes what an instruction did: the program counter before it, and the stack pointer
// before it and after it. kept are registers as a call finds them.
func (h *shadow) follow(a action, pc, before, after uint64, kept *registers) {
	s := h.current
	if before != after {
		s.taken = nil
	}
	switch {
	case a == call && after == before-8:
		if back, ok := h.memory.word(after); ok && back-pc <= 15 {
			s.low = min(s.low, after)
			s.places = append(s.places, place{slot: after, back: back, kept: *kept})
			return
		}
	case a == takes && after == before+8 && len(s.places) > 0 && s.places[len(s.places)-1].slot == before:
		p := s.places[len(s.places)-1]
		s.taken = &p
	}
	if h.isSwitch(a, before, after) {
		h.switchTo(after)
		return
	}
	s.settle(after)
}

// settle forgets the slots below the stack pointer.
func (s *stack) settle(sp uint64) {
	s.low, s.base = min(s.low, sp), max(s.base, sp)
	for len(s.places) > 0 && s.places[len(s.places)-1].slot < sp {
		s.places = s.places[:len(s.places)-1]
	}
}

// isSwitch reports whether the stack pointer left its stack. Within a stack it goes up to frames
// that are there, and down for what a function allocates.
func (h *shadow) isSwitch(a action, before, after uint64) bool {
	if a != loads && a != moves && a != syscalls || before == after {
		return false
	}
	s := h.current
	switch {
	case after >= s.low && after <= s.base:
		return false
	case after >= before && after <= s.base+slack && h.known(after) == nil:
		return false
	case a == moves && after < before && before-after <= largest && h.known(after) == nil:
		return false
	}
	return true
}

// known is another stack that was left with its stack pointer around an address.
func (h *shadow) known(sp uint64) *stack {
	for i := len(h.all) - 1; i >= 0; i-- {
		if s := h.all[i]; s != h.current && sp >= s.low && sp <= s.base {
			return s
		}
	}
	return nil
}

// switchTo goes to another stack.
func (h *shadow) switchTo(sp uint64) {
	from := h.current
	to := h.known(sp)
	if to == nil && h.isGo {
		to = h.moved(sp)
	}
	if to == nil {
		to = &stack{low: sp, base: sp}
		if back, ok := h.memory.word(sp); ok {
			to.places = []place{{slot: sp, back: back, kind: byProgram}}
		}
		h.all = append(h.all, to)
	}
	to.settle(sp)
	to.from, to.entered = from, sp
	h.current = to
}

// moved finds the stack that was copied to where the stack pointer is now, as Go's runtime
// does when one is too small: every return address of it is there, at one distance.
func (h *shadow) moved(sp uint64) *stack {
	const near = 64 << 10
	for _, s := range h.all {
		n := len(s.places)
		if n == 0 || s.places[n-1].kind != byCall {
			continue
		}
		for at := sp; at < sp+near; at += 8 {
			if back, ok := h.memory.word(at); !ok {
				break
			} else if back == s.places[n-1].back && h.isMoved(s, at-s.places[n-1].slot) {
				s.move(at - s.places[n-1].slot)
				return s
			}
		}
	}
	return nil
}

func (h *shadow) isMoved(s *stack, distance uint64) bool {
	for i := range s.places {
		if back, ok := h.memory.word(s.places[i].slot + distance); !ok || back != s.places[i].back {
			return false
		}
	}
	return distance != 0
}

func (s *stack) move(distance uint64) {
	for i := range s.places {
		s.places[i].slot += distance
	}
	s.low, s.base = s.places[len(s.places)-1].slot, s.base+distance
}

// The frame of a signal begins with what the handler returns to, behind which is a struct
// ucontext_t with the registers (arch/x86/include/asm/sigframe.h, asm/sigcontext.h of Linux).
const (
	frameRSP = 8 + 40 + 15*8
	frameRIP = 8 + 40 + 16*8
)

// deliver takes that the kernel made the frame of a signal, at the stack pointer.
func (h *shadow) deliver(sp uint64) {
	back, _ := h.memory.word(sp)
	pc, _ := h.memory.word(sp + frameRIP)
	old, _ := h.memory.word(sp + frameRSP)
	s := h.enterSignal(sp, old, sp+frameRIP+slack)
	s.settle(sp)
	s.places = append(s.places, place{slot: sp + frameRIP, back: pc, kind: interrupted, sp: old}, place{slot: sp, back: back, kind: byKernel})
}

// enterSignal is the stack that the frame of a signal is on, whose handler has the stack pointer
// sp: the interrupted one, or one that the program has for signals, which ends at base or above.
func (h *shadow) enterSignal(sp, old, base uint64) *stack {
	if sp <= old && old-sp <= largest {
		return h.current
	}
	s := &stack{low: sp, base: base, from: h.current, isBelow: true}
	// The old contents are overwritten: its handler left it by a jump.
	h.all = slices.DeleteFunc(h.all, func(old *stack) bool {
		return old.isBelow && old != h.current && old.low <= s.base && s.low <= old.base
	})
	h.all = append(h.all, s)
	h.current = s
	return s
}

// giveBack takes that the kernel put back the registers of a signal's frame.
func (h *shadow) giveBack(pc, sp uint64) {
	var was *place
	if n := len(h.current.places); n > 0 && h.current.places[n-1].kind == interrupted {
		p := h.current.places[n-1]
		was = &p
		h.current.places = h.current.places[:n-1]
	}
	if h.current.isBelow && len(h.current.places) == 0 {
		over := h.current
		h.all = slices.DeleteFunc(h.all, func(s *stack) bool { return s == over })
		h.current = over.from
	}
	if sp > h.current.base || sp < h.current.low {
		h.switchTo(sp)
	}
	h.current.settle(sp)
	if was != nil && was.back != pc && was.sp-8 == sp {
		// The handler had it call something: Go's runtime does so.
		if back, ok := h.memory.word(sp); ok && back == was.back {
			h.current.places = append(h.current.places, place{slot: sp, back: back})
		}
	}
}
