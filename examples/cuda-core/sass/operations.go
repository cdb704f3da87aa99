// SPDX-License-Identifier: Apache-2.0

package sass

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// operations are the instructions that the example's kernels have.
var operations map[string]func(e *execution, modifiers string) error

func init() { //nolint:gochecknoinits // the table refers to functions that refer to it
	operations = map[string]func(*execution, string) error{
		"MOV": moveOperand, "UMOV": moveOperand, "S2R": special, "S2UR": special, "R2UR": moveOperand, "LDC": loadConstant, "ULDC": loadConstant, "LDCU": loadConstant,
		"IMAD": multiplyAdd, "VIADD": add, "IADD3": add, "IADD": add, "LEA": shiftAdd, "SHF": shift, "LOP3": logic, "ISETP": compare, "VIMNMX": extreme, "IMNMX": extreme,
		"SEL": choose, "HFMA2": halves,
		"LDG": load, "LD": load, "STG": store, "ST": store, "LDL": loadLocal, "STL": storeLocal,
		"BSSY": openBarrier, "BSYNC": wait, "BMOV": moveBarrier, "BRA": branch, "CALL": call, "RET": ret, "EXIT": exit,
		"NOP": nothing, "WARPSYNC": nothing, "BREAK": nothing,
	}
}

func nothing(*execution, string) error { return nil }

func moveOperand(e *execution, _ string) error {
	v, err := e.value(e.operand(1))
	return errors.Join(err, e.set(v))
}

func special(e *execution, _ string) error {
	return e.set(e.Special(e.lane.Number, e.operand(1)))
}

func loadConstant(e *execution, modifiers string) error {
	text := e.operand(1)
	words := make([]uint32, width(modifiers))
	offset := strings.TrimSuffix(strings.TrimPrefix(text, "c[0x0]["), "]")
	index := uint32(0)
	if register, rest, ok := strings.Cut(offset, "+"); ok {
		var err error
		if index, err = e.value(register); err != nil {
			return err
		}
		offset = rest
	}
	n, err := strconv.ParseUint(offset, 0, 32)
	n += uint64(index)
	if err != nil || n+uint64(4*len(words)) > uint64(len(e.Constant)) {
		return fmt.Errorf("constant %s", text)
	}
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(e.Constant[n+uint64(4*i):]) //nolint:gosec // small
	}
	return e.setWords(words)
}

// width returns how many words an access has.
func width(modifiers string) int {
	switch {
	case strings.Contains(modifiers, "128"):
		return 4
	case strings.Contains(modifiers, "64"):
		return 2
	}
	return 1
}

func multiplyAdd(e *execution, modifiers string) error {
	if strings.HasPrefix(modifiers, "WIDE") {
		v, err := e.values(1, 2)
		if err != nil {
			return err
		}
		c, err := e.pair(e.operand(3))
		product := uint64(int64(int32(v[0])) * int64(int32(v[1]))) //nolint:gosec // modular
		if strings.Contains(modifiers, "U32") {
			product = uint64(v[0]) * uint64(v[1])
		}
		sum := product + c
		return errors.Join(err, e.setWords([]uint32{uint32(sum), uint32(sum >> 32)})) //nolint:gosec // its halves
	}
	v, err := e.values(1, 3)
	if err != nil {
		return err
	}
	return e.set(v[0]*v[1] + v[2])
}

// add executes VIADD and IADD3, with carries in and out.
func add(e *execution, modifiers string) error {
	if modifiers == "64" {
		return addPairs(e)
	}
	sources := e.Operands[1:]
	carry := ""
	if len(sources) > 0 && isPredicate(sources[0]) {
		carry, sources = sources[0], sources[1:]
	}
	if len(sources) > 0 && isPredicate(sources[0]) {
		sources = sources[1:] // a second carry, which these kernels leave alone
	}
	sum := uint64(0)
	for _, s := range sources {
		if isPredicate(s) {
			if modifiers == "X" && e.predicate(s) {
				sum++
			}
			continue
		}
		v, err := e.value(s)
		if err != nil {
			return err
		}
		sum += uint64(v)
	}
	if carry != "" {
		e.setPredicate(carry, sum>>32 != 0)
	}
	return e.set(uint32(sum)) //nolint:gosec // modular
}

// addPairs adds two pairs of registers.
func addPairs(e *execution) error {
	a, err := e.pair(e.operand(1))
	b, otherErr := e.pair(e.operand(2))
	if err = errors.Join(err, otherErr); err != nil {
		return err
	}
	sum := a + b
	return e.setWords([]uint32{uint32(sum), uint32(sum >> 32)}) //nolint:gosec // halves
}

func isPredicate(text string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(text, "!"), "U")
	return len(name) == 2 && name[0] == 'P'
}

// shiftAdd executes LEA: a shifted left, or the high half of that, plus b.
func shiftAdd(e *execution, modifiers string) error {
	sources := e.Operands[1:]
	carry := ""
	if isPredicate(sources[0]) {
		carry, sources = sources[0], sources[1:]
	}
	e2 := execution{e.Warp, e.lane, &Instruction{Operands: sources}, 0}
	isHigh, hasCarry := strings.HasPrefix(modifiers, "HI"), strings.HasSuffix(modifiers, "X")
	count := 3
	if isHigh {
		count = 4
	}
	v, err := e2.values(0, count)
	if err != nil {
		return err
	}
	sum := uint64(v[0]<<v[count-1]) + uint64(v[1])
	if isHigh {
		full := uint64(v[0]) | uint64(v[2])<<32
		sum = uint64(uint32(full>>(32-v[3]))) + uint64(v[1]) //nolint:gosec // its half
	}
	if hasCarry && e.predicate(sources[len(sources)-1]) {
		sum++
	}
	if carry != "" {
		e.setPredicate(carry, sum>>32 != 0)
	}
	return e.set(uint32(sum)) //nolint:gosec // modular
}

// shift executes SHF, the funnel shift of a pair of words.
func shift(e *execution, modifiers string) error {
	v, err := e.values(1, 3)
	if err != nil {
		return err
	}
	by := v[1] & 31
	switch {
	case strings.HasPrefix(modifiers, "R.S32.HI"):
		return e.set(uint32(int32(v[2]) >> by)) //nolint:gosec // modular
	case strings.HasPrefix(modifiers, "R.U32.HI"):
		return e.set(v[2] >> by)
	case strings.HasPrefix(modifiers, "L.U32"):
		return e.set(v[0] << by)
	}
	return errors.New("not known")
}

// logic executes LOP3 by its truth table.
func logic(e *execution, _ string) error {
	sources := e.Operands
	if isPredicate(sources[0]) {
		return errors.New("a predicate as its result is not known")
	}
	v, err := e.values(1, 4)
	if err != nil {
		return err
	}
	result := uint32(0)
	for bit := range 32 {
		index := v[0]>>bit&1<<2 | v[1]>>bit&1<<1 | v[2]>>bit&1
		result |= v[3] >> index & 1 << bit
	}
	return e.set(result)
}

func compare(e *execution, modifiers string) error {
	v, err := e.values(2, 2)
	if err != nil {
		return err
	}
	order := 0
	a, b := int64(int32(v[0])), int64(int32(v[1])) //nolint:gosec // modular
	if strings.Contains(modifiers, "U32") {
		a, b = int64(v[0]), int64(v[1])
	}
	if a < b {
		order = -1
	} else if a > b {
		order = 1
	}
	operator, _, _ := strings.Cut(modifiers, ".")
	result := map[string]bool{"LT": order < 0, "LE": order <= 0, "GT": order > 0, "GE": order >= 0, "EQ": order == 0, "NE": order != 0}[operator]
	other := e.predicate(e.operand(4))
	if strings.Contains(modifiers, ".OR") {
		result = result || other
	} else {
		result = result && other
	}
	e.setPredicate(e.operand(0), result)
	return nil
}

// extreme executes the minimum, or, where its predicate does not hold, the maximum.
func extreme(e *execution, modifiers string) error {
	v, err := e.values(1, 2)
	if err != nil {
		return err
	}
	isLess := int32(v[0]) < int32(v[1]) //nolint:gosec // modular
	if strings.Contains(modifiers, "U32") {
		isLess = v[0] < v[1]
	}
	if isLess == e.predicate(e.operand(3)) {
		return e.set(v[0])
	}
	return e.set(v[1])
}

func choose(e *execution, _ string) error {
	v, err := e.values(1, 2)
	if err != nil {
		return err
	}
	if e.predicate(e.operand(3)) {
		return e.set(v[0])
	}
	return e.set(v[1])
}

// halves executes a multiplication by zero that the compiler writes for a constant: of two
// numbers of 16 bits, the upper one first. nvdisasm prints them as floating point numbers.
func halves(e *execution, _ string) error {
	if e.operand(1) != "-RZ" || e.operand(2) != "RZ" {
		return errors.New("not known")
	}
	upper, err := half(e.operand(3))
	lower, lowerErr := half(e.operand(4))
	if err = errors.Join(err, lowerErr); err != nil {
		return err
	}
	return e.set(upper<<16 | lower)
}

// half returns the bits of a positive number of 16 bits.
func half(text string) (uint32, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 || f > 65504 {
		return 0, fmt.Errorf("%q is no positive number of 16 bits", text)
	}
	const fraction, bias = 10, 15
	for exponent := bias + 15; exponent > 0; exponent-- {
		if unit := math.Ldexp(1, exponent-bias); f >= unit {
			return uint32(exponent<<fraction) + uint32((f/unit-1)*(1<<fraction)), nil
		}
	}
	return uint32(f / math.Ldexp(1, 1-bias-fraction)), nil
}

// register is the register of an address.
var register = regexp.MustCompile(`\[(U?R\d+)`)

// wide returns the operand of an access of global memory with the register of its address as
// sm_80 and later have it: sm_75 leaves out that it is one of two.
func wide(operand, modifiers string) string {
	if strings.HasPrefix(modifiers, "E") && !strings.Contains(operand, ".64") {
		return register.ReplaceAllString(operand, "[$1.64")
	}
	return operand
}

func load(e *execution, modifiers string) error {
	address, err := e.address(wide(e.operand(1), modifiers))
	if err != nil {
		return err
	}
	words := make([]uint32, width(modifiers))
	for i := range words {
		if words[i], err = e.word(address + uint64(4*i)); err != nil { //nolint:gosec // small
			return err
		}
	}
	return e.setWords(words)
}

// word reads global memory.
func (e *execution) word(address uint64) (uint32, error) {
	v, ok := e.Memory[address]
	if !ok || address%4 != 0 {
		return 0, &Fault{address, address%4 != 0}
	}
	return v, nil
}

func store(e *execution, modifiers string) error {
	address, err := e.address(wide(e.operand(0), modifiers))
	if err != nil || width(modifiers) != 1 {
		return errors.Join(err, errors.ErrUnsupported)
	}
	v, err := e.value(e.operand(1))
	if err != nil {
		return err
	}
	if _, err := e.word(address); err != nil {
		return err
	}
	e.Memory[address] = v
	return nil
}

// local returns the bytes of local memory at an address.
func (e *execution) local(operand string, words int) ([]byte, error) {
	address, err := e.address(operand)
	if err != nil {
		return nil, err
	}
	start := uint64(LocalEnd - localSize)
	if address < start || address+uint64(4*words) > LocalEnd { //nolint:gosec // small
		return nil, &Fault{Address: address}
	}
	return e.lane.Local[address-start:], nil
}

func loadLocal(e *execution, modifiers string) error {
	words := make([]uint32, width(modifiers))
	b, err := e.local(e.operand(1), len(words))
	if err != nil {
		return err
	}
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return e.setWords(words)
}

func storeLocal(e *execution, modifiers string) error {
	n := width(modifiers)
	b, err := e.local(e.operand(0), n)
	if err != nil {
		return err
	}
	name := e.operand(1)
	for i := range n {
		v, err := e.value(name)
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(b[4*i:], v)
		name = next(name)
	}
	return nil
}

// barrier returns the number of a barrier.
func barrier(name string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "B"))
	if err != nil || n < 0 || n > 15 {
		return 0, fmt.Errorf("barrier %s", name)
	}
	return n, nil
}

// openBarrier puts the lanes that execute it together into a barrier.
func openBarrier(e *execution, _ string) error {
	n, err := barrier(e.operand(0))
	if err != nil {
		return err
	}
	e.lane.B[n] = e.lane.together
	return nil
}

// wait waits until all lanes of a barrier that have not exited have come.
func wait(e *execution, _ string) error {
	n, err := barrier(e.operand(0))
	if err != nil {
		return err
	}
	e.lane.State, e.lane.Waits = Waiting, n
	mask, come := e.lane.B[n]|1<<e.lane.Number, uint32(0)
	for _, l := range e.Lanes {
		if l != nil && (l.State == Waiting && l.Waits == n && l.PC == e.lane.PC || l.State == Exited) {
			come |= 1 << l.Number
		}
	}
	if mask&^come != 0 {
		return nil
	}
	for i, l := range e.Lanes {
		if mask>>i&1 != 0 && l != nil && l.State == Waiting && l != e.lane {
			l.State, l.LastAt, l.PC = Ready, l.PC, l.PC+16
		}
	}
	e.lane.State = Ready
	return nil
}

// moveBarrier saves a barrier in a register, or takes it from there.
func moveBarrier(e *execution, _ string) error {
	if n, err := barrier(e.operand(0)); err == nil {
		v, err := e.value(e.operand(1))
		e.lane.B[n] = v
		return err
	}
	n, err := barrier(e.operand(1))
	if err != nil {
		return err
	}
	return e.set(e.lane.B[n])
}

func branch(e *execution, _ string) (err error) {
	e.next, err = e.Program.target(e.Operands[len(e.Operands)-1])
	return err
}

func call(e *execution, _ string) (err error) {
	e.lane.Calls = append(e.lane.Calls, e.next)
	e.next, err = e.Program.target(e.operand(0))
	return err
}

// ret returns to an offset in the section. It is compared with that of the call.
func ret(e *execution, _ string) error {
	name, _, _ := strings.Cut(e.operand(0), " ")
	to, err := e.pair(name)
	if err != nil {
		return err
	}
	n := len(e.lane.Calls)
	if n == 0 || e.lane.Calls[n-1] != to {
		return fmt.Errorf("it returns to %#x, and the calls are %#x", to, e.lane.Calls)
	}
	e.lane.Calls, e.next = e.lane.Calls[:n-1], to
	return nil
}

func exit(e *execution, _ string) error {
	e.lane.State = Exited
	return nil
}
