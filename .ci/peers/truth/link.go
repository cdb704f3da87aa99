// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"time"
)

// This file follows programs of AArch64, whose calls leave the return address in x30.

// linked are programs of AArch64.
var linked = []program{
	{name: "AArch64 C++ -O2", build: words("aarch64-linux-gnu-g++ -O2 calls.cc"), isSmall: true},
	{name: "AArch64 C++ -O2, no frame pointers", build: words("aarch64-linux-gnu-g++ -O2 -fomit-frame-pointer calls.cc")},
	{name: "AArch64 C++ -O2, signed", build: words("aarch64-linux-gnu-g++ -O2 -mbranch-protection=standard calls.cc"), isSmall: true},
	{name: "AArch64 C++ -O0", build: words("aarch64-linux-gnu-g++ -O0 calls.cc")},
	{name: "AArch64 C++20 coroutines", build: words("aarch64-linux-gnu-g++ -std=c++20 -O2 coroutines.cc -Wl,-z,lazy")},
	{name: "AArch64 strings", build: words("aarch64-linux-gnu-gcc -O1 -fno-builtin -D_GNU_SOURCE strings.c"), fromStart: true},
	{name: "AArch64 mathematics", build: words("aarch64-linux-gnu-gcc -O1 -fno-builtin -D_GNU_SOURCE mathematics.c -lm")},
	{name: "AArch64 without tables", build: words("aarch64-linux-gnu-gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -D_GNU_SOURCE strings.c")},
}

// savedByLink are the DWARF numbers of registers that functions give back as they were
// (AAPCS64, 6.1.1): x19 to x29.
var savedByLink = [...]uint64{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29}

// readLinkAction is what an instruction of AArch64 does: bl, blr and their forms that
// authenticate call, br, ret and theirs leave.
func readLinkAction(code []byte) action {
	if len(code) < 4 {
		return ordinary
	}
	const rn = 0x3e0
	switch w := binary.LittleEndian.Uint32(code); {
	case w&0xfc000000 == 0x94000000, w&0xfffffc1f == 0xd63f0000, w&0xfefff800 == 0xd63f0800:
		return call
	case w&0xfffffc1f == 0xd61f0000, w&0xfffffc1f == 0xd65f0000, w&0xfffffbff == 0xd65f0bff, w&0xfefff800 == 0xd61f0800:
		return leave
	case w&0xffc0001f == 0x9100001f && w&rn != 31<<5: // add sp, xn, with xn not sp
		return moves
	case w == 0xd4000001:
		return syscalls
	}
	return ordinary
}

// followLink takes what an instruction did.
func (h *shadow) followLink(a action, pc, before uint64, after *[33]uint64, kept *registers) {
	s, sp, next := h.current, after[31], after[32]
	if h.isSwitch(a, before, sp) {
		h.switchTo(sp)
		return
	}
	s.settle(sp)
	switch {
	case a == call && after[30] == pc+4:
		s.places = append(s.places, place{slot: sp, back: pc + 4, kept: *kept})
	case a == leave:
		// It returns where it goes to where a call came from, with the stack pointer of then.
		for i := len(s.places) - 1; i >= 0 && s.places[i].slot == sp; i-- {
			if s.places[i].back == next {
				s.places = s.places[:i]
				break
			}
		}
	}
}

// stepLinked executes a program of AArch64.
func (w *work) stepLinked(p *program, walks, _ int) (*tally, error) {
	if err := p.make(w.dir); err != nil {
		return nil, err
	}
	t, err := startEmulated(p.argv, p.env, w.dir)
	if err != nil {
		return nil, err
	}
	defer t.end()
	if !p.fromStart && hasDynamicLinker(p.argv[0]) {
		if err := t.runToEntry(p.argv[0]); err != nil {
			return nil, err
		}
	}
	s := &stepping{work: w, program: p, process: t, sites: map[uint64]*site{}, tally: &tally{name: p.name}, most: w.mostOf(walks)}
	s.point = newPoint(t, w.engine)
	defer s.point.loaded.Close()
	if err := s.point.load(); err != nil {
		return nil, err
	}
	s.shadow = newShadow(t, t.x[31], p.isGo)
	s.shadow.hasLink, s.shadow.preserved = true, savedByLink[:]
	start := time.Now()
	for s.tally.walked < walks && s.tally.steps < walks*w.stepsPerWalk && err == nil {
		err = s.stepLink(t)
	}
	s.tally.took = time.Since(start)
	if err != nil && !errors.Is(err, errEnded) {
		return nil, err
	}
	return s.tally, nil
}

// stepLink walks the stack at the instruction that is about to be executed, and executes it.
func (s *stepping) stepLink(t *emulated) error {
	pc, sp := t.position()
	at := s.site(pc)
	s.visit(at)
	number, kept := t.x[8], registers(t.x[19:30])
	if err := t.step(); err != nil {
		return err
	}
	s.tally.steps++
	s.shadow.followLink(at.action, pc, sp, &t.x, &kept)
	// mmap, munmap, mprotect and mremap of include/uapi/asm-generic/unistd.h
	if at.action == syscalls && (number == 222 || number == 215 || number == 226 || number == 216) {
		return s.reload()
	}
	return nil
}
