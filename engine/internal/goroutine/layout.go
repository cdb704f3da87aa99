// SPDX-License-Identifier: Apache-2.0

package goroutine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/typelayout"
	"github.com/unwindd/unwindd/internal/dw"
)

// field is the place of a member in its struct, in bytes. The zero field is one that the
// version of Go does not have.
type field struct{ offset, size uint64 }

// layout is how DWARF describes the runtime of a code object. Addresses are ELF virtual
// addresses of the object.
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

// errNoRuntime is returned for debug information without Go's runtime.
var errNoRuntime = errors.New("its debug information has no unit of Go's runtime")

// readLayout reads the layout of the runtime from DWARF. It runs inside object.Guard.
func readLayout(d *dwarf.Reader) (*layout, error) {
	units, err := d.UnitsNamed("runtime")
	if err != nil {
		return nil, err
	}
	err = errNoRuntime
	for _, u := range units {
		// C code may have a file of that name.
		var l *layout
		if l, err = readUnit(u); err == nil {
			return l, nil
		}
	}
	return nil, err
}

// readUnit reads the unit of the package runtime.
func readUnit(u dwarf.Unit) (*layout, error) {
	root, err := u.Root()
	if err != nil {
		return nil, err
	}
	l := &layout{pointer: uint64(u.AddressSize()), name: map[uint64]string{}}
	if l.pointer != 4 && l.pointer != 8 {
		return nil, fmt.Errorf("addresses of %d bytes, expected 4 or 8", l.pointer)
	}
	variables := map[string]dwarf.Entry{}
	for e, err := range root.Children() {
		if err != nil {
			return nil, err
		}
		switch e.Tag() {
		case dw.TagVariable:
			switch name := e.Name(); name {
			case "runtime.sched", "runtime.memstats", "runtime.allgs", "runtime.allgptr", "runtime.allglen", "runtime.waitReasonStrings":
				variables[name] = e
			}
		case dw.TagConstant:
			l.addConstant(e)
		}
	}
	if err := l.readVariables(variables); err != nil {
		return nil, err
	}
	if l.scan == 0 {
		l.scan = 0x1000 // runtime._Gscan, in all versions so far
	}
	if len(l.name) == 0 {
		l.name = knownStates
	}
	return l, nil
}

// knownStates are the numbers of src/runtime/runtime2.go, which no version from Go 1.5 to 1.26
// has changed, for debug information without constants.
var knownStates = map[uint64]string{
	0: "idle", 1: "runnable", 2: "running", 3: "syscall", 4: "waiting", 6: "dead", 8: "copystack", 9: "preempted",
}

// addConstant adds the number of a state: runtime._Gwaiting is "waiting". Some constants also
// have the bit of the garbage collector.
func (l *layout) addConstant(e dwarf.Entry) {
	state, ok := strings.CutPrefix(e.Name(), "runtime._G")
	if !ok {
		return
	}
	n, ok, err := e.Number(dw.AttrConstValue)
	switch {
	case !ok || err != nil:
	case state == "scan":
		l.scan = uint64(n)
	case !strings.HasPrefix(state, "scan"):
		l.name[uint64(n)] = state
	}
}

// readVariables finds the list of goroutines and the types that it leads to.
func (l *layout) readVariables(variables map[string]dwarf.Entry) (err error) {
	// They are the same list as runtime.allgs, for readers while it grows.
	list := variables["runtime.allgptr"]
	if l.list, err = addressOf("runtime.allgptr", list); err != nil {
		return err
	}
	if l.length, err = addressOf("runtime.allglen", variables["runtime.allglen"]); err != nil {
		return err
	}
	if slice, err := addressOf("runtime.allgs", variables["runtime.allgs"]); err == nil {
		l.sliceLength = slice + l.pointer
	}
	goroutine, err := typelayout.Pointee(list, 2)
	if err != nil {
		return err
	}
	members, err := readStruct(goroutine, &l.g.size, l.g.wanted())
	if err != nil {
		return err
	}
	machine, err := typelayout.Pointee(members["m"], 1)
	if err != nil {
		return err
	}
	if _, err := readStruct(machine, &l.m.size, l.m.wanted()); err != nil {
		return err
	}
	l.readReasons(variables["runtime.waitReasonStrings"])
	l.addTime(variables["runtime.sched"], "lastpoll")
	l.addTime(variables["runtime.memstats"], "last_gc_nanotime")
	return nil
}

// addTime adds a member of a variable to the times, where this version has it.
func (l *layout) addTime(e dwarf.Entry, name string) {
	address, err := addressOf("", e)
	if err != nil {
		return
	}
	t, err := typelayout.Plain(e)
	if err != nil {
		return
	}
	if _, place, err := typelayout.Member(t, name); err == nil && place.Size == 8 {
		l.times = append(l.times, address+place.Offset)
	}
}

// addressOf returns the address of a variable.
func addressOf(name string, e dwarf.Entry) (uint64, error) {
	if e.IsZero() {
		return 0, fmt.Errorf("its debug information has no variable %s", name)
	}
	address, ok := e.StaticAddress()
	if !ok {
		return 0, fmt.Errorf("%v: %s has no address", e, name)
	}
	return address, nil
}

// readReasons finds the texts of wait reasons. Without them, reasons are numbers.
func (l *layout) readReasons(e dwarf.Entry) {
	if e.IsZero() {
		return
	}
	size, ok := e.Size()
	if address, isStatic := e.StaticAddress(); ok && isStatic {
		l.reasons, l.reasonCount = address, min(size/(2*l.pointer), maxReasons)
	}
}

// maxReasons bounds the texts of wait reasons. Go 1.26 has 42.
const maxReasons = 1 << 10

// maxStruct bounds the size of a struct of the runtime, in bytes. Go 1.26 has
// runtime.m of 2 KiB.
const maxStruct = 1 << 16

// readStruct finds the wanted members of a struct, and its size. It returns the entries of its
// direct members, by path.
func readStruct(t dwarf.Entry, size *uint64, list []wanted) (members map[string]dwarf.Entry, err error) {
	n, ok, err := t.Number(dw.AttrByteSize)
	switch {
	case err != nil:
		return nil, err
	case !ok || n <= 0 || n > maxStruct:
		return nil, fmt.Errorf("%v: %s has %d bytes, expected 1 to %d", t, t.Name(), n, maxStruct)
	}
	*size = uint64(n)
	members = map[string]dwarf.Entry{}
	for _, w := range list {
		e, place, err := typelayout.Member(t, w.path)
		if err == nil && (place.Size > 8 || place.Offset > *size || place.Size > *size-place.Offset) {
			err = fmt.Errorf("%v: member %s has %d bytes at %#x of %#x", t, w.path, place.Size, place.Offset, *size)
		}
		switch {
		case err == nil:
			members[w.path], *w.to = e, field{place.Offset, place.Size}
		case w.isRequired:
			return nil, err
		}
	}
	return members, nil
}
