// SPDX-License-Identifier: Apache-2.0

package goruntime

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// field is the place of a member in its struct, in bytes. The zero field is one that the
// version of Go does not have.
type field struct{ offset, size uint64 }

// layout is where the runtime has what. Addresses are in memory.
type layout struct {
	pointer uint64 // the size of a pointer, in bytes

	// list is the address of the pointer to the first goroutine, length that of their number,
	// and sliceLength that of the length of the slice they are in; 0: unknown.
	list, length, sliceLength uint64
	// reasons is the array of the texts of wait reasons, and reasonCount their number.
	reasons, reasonCount uint64

	// times are the places of the runtime's times of its latest activities.
	times []uint64

	g    goroutineLayout
	m    machineLayout
	scan uint64            // the bit of a state for a stack that is being scanned
	name map[uint64]string // of states, by number
}

// goroutineLayout is runtime.g, whose registers are in its runtime.gobuf.
type goroutineLayout struct {
	size                                      uint64
	id, status, waitReason, waitSince         field
	pc, sp, fp, lr                            field // where a parked goroutine goes on
	syscallPC, syscallSP, syscallFP           field // where a goroutine left for a system call or C
	stackLow, stackHigh                       field
	machine, lockedTo, parent, creator, start field
}

// machineLayout is runtime.m, a thread of the operating system.
type machineLayout struct {
	size          uint64
	thread, using field // its LWP, and the goroutine that it executes
}

// wanted is a member of a struct of the runtime to find; a path goes into its members.
type wanted struct {
	path       string
	to         *field
	isRequired bool
}

func (l *goroutineLayout) wanted() []wanted {
	return []wanted{
		{"goid", &l.id, true},
		{"atomicstatus", &l.status, true},
		{"sched.pc", &l.pc, true},
		{"sched.sp", &l.sp, true},
		{"sched.bp", &l.fp, false},
		{"sched.lr", &l.lr, false},
		{"syscallpc", &l.syscallPC, false},
		{"syscallsp", &l.syscallSP, false},
		{"syscallbp", &l.syscallFP, false}, // Go 1.23
		{"stack.lo", &l.stackLow, true},
		{"stack.hi", &l.stackHigh, true},
		{"waitreason", &l.waitReason, false},
		{"waitsince", &l.waitSince, false},
		{"m", &l.machine, true},
		{"lockedm", &l.lockedTo, false},
		{"parentGoid", &l.parent, false}, // Go 1.21
		{"gopc", &l.creator, false},
		{"startpc", &l.start, false},
	}
}

func (l *machineLayout) wanted() []wanted {
	return []wanted{{"procid", &l.thread, true}, {"curg", &l.using, true}}
}

func paths(list []wanted) (paths []string) {
	for _, w := range list {
		paths = append(paths, w.path)
	}
	return paths
}

// layoutByDWARF returns the layout that the debug information describes.
func layoutByDWARF(req *sdk.OpenRuntimeRequest) (*layout, error) {
	l := &layout{pointer: uint64(req.AddressBits / 8), name: map[uint64]string{}}
	d := Description()
	switch {
	case l.pointer != 4 && l.pointer != 8:
		return nil, fmt.Errorf("addresses of %d bytes, expected 4 or 8", l.pointer)
	case len(req.Symbols) != len(d.Symbols) || len(req.Types) != len(d.Types):
		return nil, errors.New("the engine says nothing of its symbols and types")
	}
	if err := l.readSymbols(req); err != nil {
		return nil, err
	}
	if err := readStruct(&req.Types[typeG], &l.g.size, l.g.wanted()); err != nil {
		return nil, err
	}
	if err := readStruct(&req.Types[typeM], &l.m.size, l.m.wanted()); err != nil {
		return nil, err
	}
	l.addTime(&req.Symbols[symbolSched], &req.Types[typeSched])
	l.addTime(&req.Symbols[symbolMemstats], &req.Types[typeMemstats])
	l.readStates(req.Constants)
	return l, nil
}

// readSymbols takes the places of the runtime's variables.
func (l *layout) readSymbols(req *sdk.OpenRuntimeRequest) error {
	// They are the same list as runtime.allgs, for readers while it grows.
	for _, v := range []struct {
		symbol int
		to     *uint64
	}{{symbolList, &l.list}, {symbolLength, &l.length}} {
		s := &req.Symbols[v.symbol]
		if !s.IsKnown {
			return fmt.Errorf("its debug information has no variable %s", Description().Symbols[v.symbol])
		}
		*v.to = s.Address
	}
	if s := &req.Symbols[symbolSlice]; s.IsKnown {
		l.sliceLength = s.Address + l.pointer
	}
	if s := &req.Symbols[symbolReasons]; s.IsKnown { // without them, reasons are numbers
		l.reasons, l.reasonCount = s.Address, min(s.Size/(2*l.pointer), maxReasons)
	}
	return nil
}

// addTime adds the one member of a variable to the times, where this version has it.
func (l *layout) addTime(s *sdk.SymbolPlace, t *sdk.TypeLayout) {
	if s.IsKnown && len(t.Members) == 1 && t.Members[0].Size == 8 {
		l.times = append(l.times, s.Address+t.Members[0].Offset)
	}
}

// statePrefix begins the names of the numbers of states: runtime._Gwaiting is "waiting". Some
// constants also have the bit of the garbage collector.
const statePrefix = "runtime._G"

// readStates takes the numbers of states.
func (l *layout) readStates(constants []sdk.NamedConstant) {
	for _, c := range constants {
		state, ok := strings.CutPrefix(c.Name, statePrefix)
		switch {
		case !ok:
		case state == "scan":
			l.scan = uint64(c.Value) //nolint:gosec // a bit
		case !strings.HasPrefix(state, "scan"):
			l.name[uint64(c.Value)] = state //nolint:gosec // a number of any size
		}
	}
	if l.scan == 0 {
		l.scan = 0x1000 // runtime._Gscan, in all versions so far
	}
	if len(l.name) == 0 {
		l.name = maps.Clone(knownStates)
	}
}

// knownStates are the numbers of src/runtime/runtime2.go, which no version from Go 1.5 to 1.26
// has changed, for debug information without constants.
var knownStates = map[uint64]string{
	0: "idle", 1: "runnable", 2: "running", 3: "syscall", 4: "waiting", 6: "dead", 8: "copystack", 9: "preempted",
}

// maxReasons bounds the texts of wait reasons. Go 1.26 has 42.
const maxReasons = 1 << 10

// maxStruct bounds the size of a struct of the runtime, in bytes. Go 1.26 has
// runtime.m of 2 KiB.
const maxStruct = 1 << 16

// readStruct takes the size of a struct, and the places of its members.
func readStruct(t *sdk.TypeLayout, size *uint64, list []wanted) error {
	switch {
	case len(t.Members) != len(list) && t.Problem != "":
		return errors.New(t.Problem)
	case len(t.Members) != len(list):
		return errNoRuntime
	case t.Size == 0 || t.Size > maxStruct:
		return fmt.Errorf("a struct of the runtime has %d bytes, expected 1 to %d", t.Size, maxStruct)
	}
	*size = t.Size
	for i, w := range list {
		m := t.Members[i]
		isBad := m.Size > 8 || m.Offset > t.Size || m.Size > t.Size-m.Offset
		switch {
		case m.Size != 0 && !isBad:
			*w.to = field{m.Offset, m.Size}
		case w.isRequired && isBad:
			return fmt.Errorf("member %s has %d bytes at %#x of %#x", w.path, m.Size, m.Offset, t.Size)
		case w.isRequired && t.Problem != "":
			return errors.New(t.Problem)
		case w.isRequired:
			return fmt.Errorf("the runtime has no member %s", w.path)
		}
	}
	return nil
}
