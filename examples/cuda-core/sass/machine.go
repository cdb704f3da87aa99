// SPDX-License-Identifier: Apache-2.0

package sass

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Memory is global memory: words by their addresses.
type Memory map[uint64]uint32

// Fault is an access of memory that is not there, or not aligned.
type Fault struct {
	Address      uint64
	IsMisaligned bool
}

func (f *Fault) Error() string { return fmt.Sprintf("an access of %#x", f.Address) }

// State is the state of a lane.
type State int

// The states of a lane.
const (
	Ready State = iota
	Waiting
	Exited
	Faulted
)

// Warp is a warp in execution.
type Warp struct {
	Program  *Program
	Memory   Memory
	Constant []byte // of constant bank 0
	Special  func(lane int, register string) uint32
	Lanes    [32]*Lane // nil where the warp has no such lane
}

// Lane is a lane of a warp. Registers that lanes share are kept for each, which makes no
// difference where all lanes give them equal values.
type Lane struct {
	Number   int
	PC       uint64 // offset in the section
	R        [255]uint32
	P        [7]bool
	UR       [63]uint32
	UP       [7]bool
	B        [16]uint32 // the lanes of barriers, as this lane has entered them
	Local    []byte     // local memory, up to LocalEnd
	State    State
	Waits    int      // for this barrier
	Calls    []uint64 // the offsets that calls return to, the innermost last
	Fault    *Fault
	Executed int
	LastAt   uint64 // the instruction that was executed last
	together uint32 // the lanes that execute its next instruction with it
}

// LocalEnd is the address behind the local memory of a lane: where its stack begins.
const LocalEnd = 0xfffdc0

// localSize is the size of the local memory of a lane.
const localSize = 1 << 10

// NewLane returns a lane at the start of a kernel.
func NewLane(number int) *Lane { return &Lane{Number: number, Local: make([]byte, localSize)} }

// Step executes an instruction of each lane that is ready. It returns false where none is.
func (w *Warp) Step() (bool, error) {
	isAny := false
	for _, l := range w.Lanes {
		if l != nil && l.State == Ready {
			l.together = w.together(l)
		}
	}
	for _, l := range w.Lanes {
		if l == nil || l.State != Ready || l.together == 0 {
			continue // also one that this step has released
		}
		isAny = true
		if err := w.step(l); err != nil {
			return isAny, fmt.Errorf("lane %d at %#x: %w", l.Number, l.PC, err)
		}
	}
	return isAny, nil
}

// together returns the lanes that are where a lane is, by their PCs and their calls.
func (w *Warp) together(l *Lane) (mask uint32) {
	for i, other := range w.Lanes {
		if other != nil && other.State == Ready && other.PC == l.PC && slices.Equal(other.Calls, l.Calls) {
			mask |= 1 << i
		}
	}
	return mask
}

func (w *Warp) step(l *Lane) error {
	i, err := w.Program.find(l.PC)
	if err != nil {
		return err
	}
	e := execution{w, l, i, l.PC + 16}
	if i.Guard == "" || e.predicate(i.Guard) {
		name, modifiers, _ := strings.Cut(i.Name, ".")
		operation := operations[name]
		if operation == nil {
			return fmt.Errorf("%s is not known", i.Name)
		}
		err = operation(&e, modifiers)
	}
	var fault *Fault
	switch {
	case errors.As(err, &fault):
		l.State, l.Fault = Faulted, fault
	case err != nil:
		return fmt.Errorf("%s %s: %w", i.Name, strings.Join(i.Operands, ", "), err)
	case l.State == Ready:
		l.LastAt, l.PC, l.together = l.PC, e.next, 0
		l.Executed++
	}
	return nil
}

// execution is that of one instruction by one lane.
type execution struct {
	*Warp
	lane *Lane
	*Instruction
	next uint64 // offset
}

// operand returns an operand; "" where there are fewer.
func (e *execution) operand(n int) string {
	if n >= len(e.Operands) {
		return ""
	}
	return e.Operands[n]
}

// predicate returns the value of a predicate.
func (e *execution) predicate(text string) bool {
	name, isNegated := strings.CutPrefix(text, "!")
	value := true
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "UP")); err == nil {
		value = e.lane.UP[n]
	} else if n, err := strconv.Atoi(strings.TrimPrefix(name, "P")); err == nil {
		value = e.lane.P[n]
	}
	return value != isNegated
}

func (e *execution) setPredicate(name string, value bool) {
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "P")); err == nil {
		e.lane.P[n] = value
	}
}

// register returns a register by its name, or nil for one that is zero.
func (e *execution) register(name string) (*uint32, error) {
	for _, file := range []struct {
		prefix    string
		registers []uint32
	}{{"UR", e.lane.UR[:]}, {"R", e.lane.R[:]}} {
		number, ok := strings.CutPrefix(name, file.prefix)
		if !ok {
			continue
		}
		if number == "Z" {
			return nil, nil
		}
		n, err := strconv.Atoi(number)
		if err != nil || n >= len(file.registers) {
			return nil, fmt.Errorf("register %s", name)
		}
		return &file.registers[n], nil
	}
	return nil, fmt.Errorf("%q is no register", name)
}

// value returns the value of an operand: a register, a constant, a word of constant bank 0.
func (e *execution) value(text string) (uint32, error) {
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		v, err := e.value(rest)
		return -v, err
	}
	if rest, ok := strings.CutPrefix(text, "~"); ok {
		v, err := e.value(rest)
		return ^v, err
	}
	if offset, ok := strings.CutPrefix(text, "c[0x0]["); ok {
		n, err := strconv.ParseUint(strings.TrimSuffix(offset, "]"), 0, 32)
		if err != nil || n+4 > uint64(len(e.Constant)) {
			return 0, fmt.Errorf("constant %s", text)
		}
		return binary.LittleEndian.Uint32(e.Constant[n:]), nil
	}
	if n, err := strconv.ParseUint(text, 0, 32); err == nil {
		return uint32(n), nil
	}
	r, err := e.register(text)
	if err != nil || r == nil {
		return 0, err
	}
	return *r, nil
}

// values returns the values of operands from first on.
func (e *execution) values(first, count int) ([]uint32, error) {
	list := make([]uint32, count)
	for i := range list {
		v, err := e.value(e.operand(first + i))
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

// set sets the register of the first operand.
func (e *execution) set(v uint32) error {
	r, err := e.register(e.operand(0))
	if err == nil && r != nil {
		*r = v
	}
	return err
}

// pair returns the number in a register and the next one.
func (e *execution) pair(name string) (uint64, error) {
	name = strings.TrimSuffix(name, ".64")
	low, err := e.value(name)
	if err != nil {
		return 0, err
	}
	high, err := e.value(next(name))
	return uint64(low) | uint64(high)<<32, err
}

// setWords sets the register of the first operand, and those behind it.
func (e *execution) setWords(words []uint32) error {
	name := e.operand(0)
	for _, v := range words {
		r, err := e.register(name)
		if err != nil {
			return err
		}
		if r != nil {
			*r = v
		}
		name = next(name)
	}
	return nil
}

// next names the register behind another one, or the word behind another one of a bank.
func next(name string) string {
	digits := strings.TrimLeft(name, "UR")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return name // RZ, URZ
	}
	return strings.TrimSuffix(name, digits) + strconv.Itoa(n+1)
}

// address returns the address that an operand such as [R1+0x1c] or desc[UR4][R18.64+0x20]
// names.
func (e *execution) address(text string) (uint64, error) {
	if _, rest, ok := strings.Cut(text, "]["); ok {
		text = rest
	}
	text = strings.Trim(text, "[]")
	base, offset, _ := strings.Cut(text, "+")
	var distance int64
	if offset != "" {
		sign := int64(1)
		if rest, ok := strings.CutPrefix(offset, "-"); ok {
			sign, offset = -1, rest
		}
		n, err := strconv.ParseInt(offset, 0, 64)
		if err != nil {
			return 0, fmt.Errorf("address %s", text)
		}
		distance = sign * n
	}
	if strings.HasSuffix(base, ".64") {
		a, err := e.pair(base)
		return a + uint64(distance), err //nolint:gosec // modular
	}
	a, err := e.value(base)
	return uint64(a + uint32(distance)), err //nolint:gosec // modular
}

// Stack returns the offsets at which the calls of a lane stand: where it is, and where its
// callers go on.
func (l *Lane) Stack() []uint64 {
	stack := slices.Clone(l.Calls)
	slices.Reverse(stack)
	return append([]uint64{l.PC}, stack...)
}
