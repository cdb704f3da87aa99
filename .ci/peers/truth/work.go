// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
)

// work is the state that all programs share.
type work struct {
	dir     string
	engine  *engine.Engine
	visits  map[instruction]*uint32 // how often the stack was walked there
	tallies []*tally
	classes map[class]*mismatch
	peers   *peers
	// stepsPerWalk bounds the instructions that are executed, in loops mostly, of the walks.
	stepsPerWalk int
}

// instruction is a place in a file. Of code in no file the path is the program's name.
type instruction struct {
	path   string
	offset uint64
}

// tally counts the stacks of a program by their result.
type tally struct {
	name                           string
	steps, walked, distinct        int
	frames, guesses, registers     int
	wrong, wrongCFA, wrongRegister int
	wrongGuess, missing            int
	known                          int
	samplesWrong, samplesGuess     int // as profiles walk
	samplesMissing, cut            int
	threads                        int // beside the first one
	took                           time.Duration
}

// site is an instruction of a process.
type site struct {
	action action
	visits *uint32
}

// stepping is a program that is being stepped.
type stepping struct {
	*work
	program *program
	process stopped
	tracee  *tracee // the process, of x86-64
	point   *point
	shadow  *shadow
	sites   map[uint64]*site
	tally   *tally
	most    uint32 // how often the stack is walked at one instruction
	every   int    // after how many walks peers are asked; 0: they are not
	// Of x86-64: the threads of the process, and the instruction that is being executed.
	group     *group
	begun     begun
	isBlocked bool
}

// begun is where a thread stood before an instruction.
type begun struct {
	site         *site
	pc, sp, call uint64
	kept         registers
}

// stepAll steps programs until the stack was walked so often in all.
func (w *work) stepAll(list []program, steps int, stepProgram func(p *program, walks, points int) (*tally, error)) error {
	for i := range list {
		p := &list[i]
		share := steps / (len(list) - i)
		t, err := stepProgram(p, share, w.peers.left/(len(list)-i))
		if err != nil {
			if os.Getenv("CI") == "true" || len(p.build) > 0 && !strings.HasSuffix(p.build[0], "rustc") {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			fmt.Printf("left out: %s: %v\n", p.name, err)
			continue
		}
		steps -= t.walked
		w.tallies = append(w.tallies, t)
		if *verbose {
			fmt.Printf("%6.1fs %s: %d stacks at %d instructions\n", t.took.Seconds(), t.name, t.walked, t.distinct)
		}
	}
	return nil
}

// mostOf is how often the stack is walked at one instruction, of so many walks: there are to
// be many different ones.
func (w *work) mostOf(share int) uint32 { return uint32(min(max(share/300, 3), 40)) } //nolint:gosec // small

// stepProgram executes a program until its end, or until the stack was walked often enough.
func (w *work) stepProgram(p *program, walks, points int) (*tally, error) {
	if err := p.make(w.dir); err != nil {
		return nil, err
	}
	t, err := startTracee(p.argv, p.env, w.dir, p.hasThreads)
	if err != nil {
		return nil, err
	}
	if !p.fromStart && hasDynamicLinker(p.argv[0]) {
		if err := t.runToEntry(); err != nil {
			t.end()
			return nil, err
		}
	}
	s := &stepping{work: w, program: p, process: t, tracee: t, sites: map[uint64]*site{}, tally: &tally{name: p.name}, most: w.mostOf(walks)}
	s.group = &group{list: []*stepping{s}}
	defer s.end()
	if points > 0 && !p.fromStart && !p.hasThreads { // before the dynamic linker has done its work, cores have no list of modules
		s.every = max(walks/points, 1)
	}
	s.point = newPoint(t, w.engine)
	if err := s.point.load(); err != nil {
		return nil, err
	}
	s.shadow = newShadow(t, t.regs.Rsp, p.isGo)
	start := time.Now()
	if p.hasThreads {
		err = w.stepThreads(s, walks)
	}
	for s.tally.walked < walks && s.tally.steps < walks*w.stepsPerWalk && err == nil && !p.hasThreads {
		err = s.step()
	}
	s.tally.took = time.Since(start)
	if err != nil && !errors.Is(err, errEnded) {
		return nil, err
	}
	return s.tally, w.peers.ask()
}

// end ends the process, its threads before the first one.
func (s *stepping) end() {
	_ = unix.Kill(s.group.list[0].tracee.pid, unix.SIGKILL)
	for _, of := range slices.Backward(s.group.list) {
		of.tracee.end()
		if of.point != nil {
			_ = of.point.loaded.Close()
		}
	}
}

// step walks the stack at the instruction that is about to be executed, and executes it.
func (s *stepping) step() error {
	pc, sp := s.tracee.regs.Rip, s.tracee.regs.Rsp
	at := s.site(pc)
	s.visit(at)
	s.begun = begun{at, pc, sp, s.tracee.regs.Rax, s.tracee.kept()}
	s.tracee.mayWait = at.action == syscalls
	signal, err := s.tracee.step(0)
	if err != nil {
		return err
	}
	return s.finish(signal)
}

// finish takes what an instruction did. signal is to be delivered with the next one.
func (s *stepping) finish(signal int) (err error) {
	b := &s.begun
	s.tally.steps++
	switch {
	case b.site.action == syscalls && b.call == sysSigreturn && s.tracee.regs.Rip != b.pc+2:
		s.shadow.giveBack(s.tracee.regs.Rip, s.tracee.regs.Rsp)
	default:
		s.shadow.follow(b.site.action, b.pc, b.sp, s.tracee.regs.Rsp, &b.kept)
	}
	if b.site.action == syscalls && changesMappings(b.call) {
		for _, of := range s.group.list {
			if err := of.reload(); err != nil {
				return err
			}
		}
	}
	for signal != 0 {
		if signal, err = s.deliver(signal); err != nil {
			return err
		}
	}
	return nil
}

// visit walks the stack at an instruction, unless that was done often enough.
func (s *stepping) visit(point *site) {
	if *point.visits >= s.most {
		return
	}
	if *point.visits == 0 {
		s.tally.distinct++
	}
	*point.visits++
	s.verify()
}

// deliver gives the process a signal. It executes no instruction where there is a handler,
// and else the next one.
func (s *stepping) deliver(signal int) (next int, err error) {
	isCaught := s.tracee.catches(signal)
	pc, sp := s.tracee.regs.Rip, s.tracee.regs.Rsp
	at, kept := s.site(pc), s.tracee.kept()
	s.begun = begun{at, pc, sp, s.tracee.regs.Rax, kept}
	s.tracee.mayWait = true // it may be begun again
	next, err = s.tracee.step(signal)
	switch {
	case err != nil:
		return 0, err
	case isCaught && s.tracee.regs.Rsp != sp:
		s.shadow.deliver(s.tracee.regs.Rsp)
	default:
		s.shadow.follow(at.action, pc, sp, s.tracee.regs.Rsp, &kept)
	}
	return next, nil
}

// System calls of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl).
const (
	sysMmap      = 9
	sysMprotect  = 10
	sysMunmap    = 11
	sysSigreturn = 15
	sysMremap    = 25
)

func changesMappings(call uint64) bool {
	return call == sysMmap || call == sysMprotect || call == sysMunmap || call == sysMremap
}

func (s *stepping) reload() error {
	clear(s.sites)
	return s.point.load()
}

// site has the facts of an instruction.
func (s *stepping) site(pc uint64) *site {
	if at := s.sites[pc]; at != nil {
		return at
	}
	var code [15]byte
	n := s.process.read(pc, code[:])
	at := &site{action: readAction(code[:n])}
	if s.shadow.hasLink {
		at.action = readLinkAction(code[:n])
	}
	m := s.point.at(pc)
	key := instruction{s.program.name, pc}
	if m != nil && m.path != "" {
		key = instruction{m.path, m.offset + pc - m.start}
	}
	if at.visits = s.visits[key]; at.visits == nil {
		at.visits = new(uint32)
		s.visits[key] = at.visits
	}
	if m != nil && !m.isWritable {
		s.sites[pc] = at
	}
	return at
}

// verify walks the stack in both ways, and holds it against the truth.
func (s *stepping) verify() {
	s.point.arrive()
	t := s.tally
	t.walked++
	stack, release := s.point.walk(context.Background(), s.engine)
	v := s.shadow.judge(stack)
	t.frames += v.frames
	t.guesses += v.guesses
	t.registers += v.registers
	if v.kind != right {
		s.note(v, stack, false)
	}
	if s.every > 0 && t.walked%s.every == 0 && s.peers.left > 0 {
		s.peers.take(s, stack, v)
	}
	release()
	sample := s.point.trace(context.Background())
	switch v := s.shadow.judge(sample); {
	case v.kind == missing && (sample.Stopped.Reason == trace.StopEndOfStack || s.shadow.current.isBelow): // other stacks are not in it
		t.cut++
	case v.kind != right:
		s.note(v, sample, true)
	}
}
