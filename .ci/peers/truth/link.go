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
	{name: "AArch64 longjmp, signals, stacks", build: words("aarch64-linux-gnu-gcc -O2 -D_GNU_SOURCE jumps.c"), isSmall: true},
	{name: "AArch64 longjmp, signals, stacks, -O0", build: words("aarch64-linux-gnu-gcc -O0 -D_GNU_SOURCE jumps.c")},
	{name: "AArch64 Rust -O", build: words("aarch64-rustc -O -g main.rs"), env: []string{"RUST_BACKTRACE=0"}, isSmall: true},
	{name: "AArch64 Rust", build: words("aarch64-rustc main.rs"), env: []string{"RUST_BACKTRACE=0"}},
	{name: "AArch64 Go", build: words("env GOARCH=arm64 GOARM64=v8.1 CGO_ENABLED=0 go build main.go"), env: []string{"GODEBUG=asyncpreemptoff=1"}, isGo: true, isSmall: true},
	{name: "AArch64 without tables", build: words("aarch64-linux-gnu-gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -D_GNU_SOURCE strings.c")},
}

// savedByLink are the DWARF numbers of registers that functions give back as they were
// (AAPCS64, 6.1.1): x19 to x29.
var savedByLink = [...]uint64{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29}

// readLinkAction returns the action of an instruction of AArch64: bl, blr and their forms that
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
	n := len(s.places)
	s.settle(sp)
	switch {
	case a == moves && len(s.places) < n:
		s.isCut = true
	case a == call && after[30] == pc+4:
		s.isCut = false
		s.places = append(s.places, place{slot: sp, back: pc + 4, kept: *kept})
	case a == leave:
		// It returns where it goes to where a call came from, with the stack pointer of then.
		n := len(s.places)
		for i := len(s.places) - 1; i >= 0 && s.places[i].slot == sp; i-- {
			if s.places[i].back == next {
				s.places = s.places[:i]
				break
			}
		}
		// A longjmp goes to a function that has called, by that stack pointer: the calls are over.
		for s.isCut && n == len(s.places) && n > 0 && s.places[n-1].slot == sp {
			n--
			s.places = s.places[:n]
		}
		s.isCut = false
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

// Numbers of system calls of AArch64 (include/uapi/asm-generic/unistd.h).
const (
	linkSigreturn = 139
	linkMunmap    = 215
	linkMremap    = 216
	linkMmap      = 222
	linkMprotect  = 226
)

// stepLink walks the stack at the instruction that is about to be executed, and executes it.
func (s *stepping) stepLink(t *emulated) error {
	pc, sp := t.position()
	at := s.site(pc)
	s.visit(at)
	number, kept := t.x[8], registers(t.x[19:30])
	signal, err := t.step("")
	if err != nil {
		return err
	}
	s.tally.steps++
	switch {
	case at.action == syscalls && number == linkSigreturn:
		s.giveBackLinked(t)
	case at.action == syscalls && t.x[32] != pc+4: // qemu has executed the instruction behind it, too
		s.shadow.followLink(s.site(pc+4).action, pc+4, sp, &t.x, &kept)
	case signal == "" || t.x[32] != pc:
		s.shadow.followLink(at.action, pc, sp, &t.x, &kept)
	}
	if at.action == syscalls && (number == linkMmap || number == linkMunmap || number == linkMprotect || number == linkMremap) {
		if err := s.reload(); err != nil {
			return err
		}
	}
	for signal != "" {
		if signal, err = s.deliverLinked(t, signal); err != nil {
			return err
		}
	}
	return nil
}

// The frame of a signal begins with a struct siginfo, behind which is a struct ucontext with
// the registers (arch/arm64/kernel/signal.c, include/uapi/asm/sigcontext.h of Linux).
const (
	linkFrameSP  = 128 + 176 + 8 + 31*8
	linkFramePC  = linkFrameSP + 8
	linkFrameEnd = linkFramePC + 4096
)

// deliverLinked gives the process a signal. qemu executes the first instruction of the handler
// with it, or the next one of the program where there is no handler.
func (s *stepping) deliverLinked(t *emulated, signal string) (next string, err error) {
	pc, sp := t.position()
	at, kept := s.site(pc), registers(t.x[19:30])
	if next, err = t.step(signal); err != nil {
		return "", err
	}
	// The first instruction may have moved the stack pointer.
	for frame := t.x[31] &^ 15; frame < t.x[31]+linkFrameEnd; frame += 16 {
		oldSP, _ := t.word(frame + linkFrameSP)
		oldPC, _ := t.word(frame + linkFramePC)
		if oldSP == sp && oldPC == pc {
			s.shadow.deliverLinked(frame, t.x[30], pc, sp)
			return next, nil
		}
	}
	if next == "" || t.x[32] != pc {
		s.shadow.followLink(at.action, pc, sp, &t.x, &kept)
	}
	return next, nil
}

// deliverLinked takes that the kernel made the frame of a signal.
func (h *shadow) deliverLinked(frame, back, pc, sp uint64) {
	s := h.enterSignal(frame, sp, frame+linkFramePC+slack)
	s.settle(frame)
	s.places = append(s.places, place{slot: frame + linkFramePC, back: pc, kind: interrupted, sp: sp}, place{slot: frame, back: back, kind: byKernel})
}

// giveBackLinked takes that the kernel put back the registers of a signal's frame. qemu has
// executed the instruction there, too.
func (s *stepping) giveBackLinked(t *emulated) {
	pc, sp := t.position()
	if n := len(s.shadow.current.places); n > 0 && s.shadow.current.places[n-1].kind == interrupted {
		p := s.shadow.current.places[n-1]
		s.shadow.giveBack(p.back, p.sp)
		if pc != p.back {
			kept := registers(t.x[19:30])
			s.shadow.followLink(s.site(p.back).action, p.back, p.sp, &t.x, &kept)
		}
		return
	}
	s.shadow.giveBack(pc, sp)
}
