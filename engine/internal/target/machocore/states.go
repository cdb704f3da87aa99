// SPDX-License-Identifier: Apache-2.0

package machocore

import (
	"debug/elf"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/sdk"
)

// This file has the layouts of the states of threads (mach/i386/thread_status.h and _structs.h,
// mach/arm/thread_status.h and _structs.h of macOS).

// The names of the architectures.
const (
	archX86 = "x86_64"
	archARM = "aarch64"
)

// machine is a processor whose states of threads are read.
type machine struct {
	elf      elf.Machine
	arch     string
	states   map[uint32]state // by flavor
	pc       string
	pointers []string // registers of addresses that a signature may be part of
	fault    func(b []byte) (f fault, ok bool)
}

// state is a part of a thread's registers.
type state struct {
	fields   []stateField
	isInner  bool // a flavor and a count come first, and then that state
	isOfTrap bool // the state of the last exception
}

// stateField is a register, or a piece of one from a byte of it on.
type stateField struct {
	name               string
	offset, size, from uint32
}

// machines are the processors by cputype.
var machines = map[uint32]*machine{
	macho.MachineX86_64: {
		elf: elf.EM_X86_64, arch: archX86, pc: "rip", fault: x86Fault,
		states: map[uint32]state{
			4:  {fields: x86General()},                                                                   // x86_THREAD_STATE64
			5:  {fields: x86Float()},                                                                     // x86_FLOAT_STATE64
			6:  {isOfTrap: true},                                                                         // x86_EXCEPTION_STATE64
			7:  {isInner: true},                                                                          // x86_THREAD_STATE
			8:  {isInner: true},                                                                          // x86_FLOAT_STATE
			9:  {isInner: true},                                                                          // x86_EXCEPTION_STATE
			17: {fields: x86Vectors()},                                                                   // x86_AVX_STATE64
			20: {fields: x86Vectors()},                                                                   // x86_AVX512_STATE64
			23: {fields: append(x86General(), stateField{"gs.base", 8 * uint32(len(x86Names)+3), 8, 0})}, // x86_THREAD_FULL_STATE64
		},
	},
	macho.MachineARM64: {
		elf: elf.EM_AARCH64, arch: archARM, pc: "pc", pointers: []string{"pc", "sp", "x29", "x30"}, fault: armFault,
		states: map[uint32]state{
			1:  {isInner: true},        // ARM_THREAD_STATE
			6:  {fields: armGeneral()}, // ARM_THREAD_STATE64
			7:  {isOfTrap: true},       // ARM_EXCEPTION_STATE64
			17: {fields: armVectors()}, // ARM_NEON_STATE64
		},
	},
}

// x86Names are the members of x86_thread_state64, of 8 bytes each.
var x86Names = strings.Fields("rax rbx rcx rdx rdi rsi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip rflags cs fs gs")

func x86General() []stateField {
	list := words(x86Names)
	for i := len(list) - 3; i < len(list); i++ {
		list[i].size = 2 // selectors
	}
	return list
}

// x86Float are the members of x86_float_state64: two reserved numbers, and then the layout of FXSAVE.
func x86Float() []stateField {
	list := []stateField{{"fcw", 8, 2, 0}, {"fsw", 10, 2, 0}, {"mxcsr", 32, 4, 0}}
	list = append(list, run("st%d", 8, 40, 10, 16)...)
	return append(list, run("xmm%d", 16, 168, 16, 16)...)
}

// x86Vectors are the members of x86_avx_state64, which begins as x86_float_state64 and has the upper halves
// behind it.
func x86Vectors() []stateField {
	list := x86Float()
	for i := range uint32(16) {
		list = append(list, stateField{fmt.Sprintf("xmm%d", i), 588 + 16*i, 16, 16})
	}
	return list
}

func armGeneral() []stateField {
	var names []string
	for i := range 31 {
		names = append(names, fmt.Sprintf("x%d", i))
	}
	list := words(append(names, "sp", "pc"))
	return append(list, stateField{"cpsr", 264, 4, 0})
}

func armVectors() []stateField {
	return append(run("v%d", 32, 0, 16, 16), stateField{"fpsr", 512, 4, 0}, stateField{"fpcr", 516, 4, 0})
}

// words are registers of 8 bytes, one after the other.
func words(names []string) []stateField {
	list := make([]stateField, len(names))
	for i, name := range names {
		list[i] = stateField{name, 8 * uint32(i), 8, 0} //nolint:gosec // few
	}
	return list
}

// run are registers whose names have numbers.
func run(format string, count int, offset, size, stride uint32) []stateField {
	list := make([]stateField, count)
	for i := range list {
		list[i] = stateField{fmt.Sprintf(format, i), offset + stride*uint32(i), size, 0} //nolint:gosec // few
	}
	return list
}

// setOf returns the fields of a state as a register set of an architecture, without registers that it does
// not have.
func setOf(s *state, d *sdk.Description) *sdk.RegisterSet {
	set := &sdk.RegisterSet{Source: sdk.CoreNote}
	for _, f := range s.fields {
		if r, ok := d.RegisterByName(f.name); ok {
			set.Fields = append(set.Fields, sdk.RegisterField{Offset: f.offset, Size: f.size, Register: r.Number, RegisterOffset: f.from})
		}
	}
	return set
}

// machine returns the processor of the core; nil where it is not read.
func (c *Core) machine() *machine { return machines[c.file.Machine()] }

// stateHeader is the size of a flavor and a count.
const stateHeader = 8

// eachState yields the states of a thread, in its order. The error is that of the first that does not end
// within them.
func eachState(m *machine, b []byte, yield func(flavor uint32, s *state, words []byte)) error {
	for offset := 0; len(b) > 0; {
		if len(b) < stateHeader {
			return fmt.Errorf("the state at offset %#x of its states has %d bytes, expected a flavor and a count", offset, len(b))
		}
		flavor, size := le.Uint32(b), 4*uint64(le.Uint32(b[4:]))
		if size > uint64(len(b)-stateHeader) {
			return fmt.Errorf("the state of flavor %d at offset %#x of its states has %d bytes, expected at most %d", flavor, offset, size, len(b)-stateHeader)
		}
		words := b[stateHeader : stateHeader+size]
		s, ok := m.states[flavor]
		if ok && s.isInner && len(words) >= stateHeader {
			flavor, words = le.Uint32(words), words[stateHeader:]
			s, ok = m.states[flavor]
		}
		if ok && !s.isInner {
			yield(flavor, &s, words)
		}
		offset += stateHeader + int(size) //nolint:gosec // of the file's size
		b = b[stateHeader+size:]
	}
	return nil
}
