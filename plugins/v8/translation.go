// SPDX-License-Identifier: Apache-2.0

package v8

import (
	"errors"
	"fmt"
)

// This file reads what V8 keeps for the case that it must give up optimised code: which functions
// are inlined at each call, and where in their bytecode they are.

// translations says how a version of V8 writes the frames of optimised code: an operation has a
// byte, and then operands.
type translations struct {
	operands string // how many each operation has, a digit each
	begins   []int  // operations that begin a list of frames
	// framesAt is which operand of those is the number of frames.
	framesAt     int
	interpreted  []int // frames of functions
	continuation []int // frames of functions of V8 itself, in JavaScript
	others       []int // frames of no function
	// repeats is the operation that stands for operations of an earlier list; bytes beyond the
	// operations stand for it too. 0: there is none.
	repeats int
}

// inlinedFrame is a frame in a list: a function, which is a literal of the code, and the offset of
// a bytecode.
type inlinedFrame struct {
	literal, offset int64
	isContinuation  bool
}

// maxInlined bounds the functions that are inlined at one call.
const maxInlined = 1 << 10

// translation reads one list of frames.
type translation struct {
	*translations
	data     []byte
	place    int
	left     int // operations to read from the earlier list, and 1
	previous int // where the earlier list goes on
	passed   int // operations since then
}

var errNoTranslation = errors.New("a list of frames is expected there")

// unsigned reads an operand at a place, and moves it.
func (t *translation) unsigned(place *int) (uint64, error) {
	if *place < 0 || *place > len(t.data) {
		return 0, errNoEnd
	}
	n, left, err := groups(t.data[*place:])
	*place = len(t.data) - len(left)
	return n, err
}

// source returns the place that operands are read at.
func (t *translation) source() *int {
	if t.left > 0 {
		return &t.previous
	}
	return &t.place
}

// operand reads an operand: its last bit is its sign.
func (t *translation) operand() (int64, error) {
	n, err := t.unsigned(t.source())
	if n&1 != 0 {
		return -int64(n >> 1), err //nolint:gosec // 63 bits
	}
	return int64(n >> 1), err //nolint:gosec // 63 bits
}

// operationAt reads an operation at a place, and moves it.
func (t *translation) operationAt(place *int) (int, error) {
	if *place < 0 || *place >= len(t.data) {
		return 0, errNoEnd
	}
	n := int(t.data[*place])
	*place++
	return n, nil
}

// skip skips an operation of the earlier list.
func (t *translation) skip() error {
	n, err := t.operationAt(&t.previous)
	if err != nil {
		return err
	}
	if n >= len(t.operands) {
		return fmt.Errorf("the operation %d: %w", n, errNoTranslation)
	}
	for range int(t.operands[n] - '0') {
		if _, err := t.unsigned(&t.previous); err != nil {
			return err
		}
	}
	return nil
}

// operation reads an operation.
func (t *translation) operation() (int, error) {
	if t.left > 0 {
		t.left--
	}
	if t.left > 0 {
		return t.operationAt(&t.previous)
	}
	n, err := t.operationAt(&t.place)
	if err != nil || t.repeats == 0 || n < t.repeats {
		t.passed++
		return n, err
	}
	left := uint64(n - len(t.operands)) //nolint:gosec // used where it is not negative
	if n == t.repeats {
		if left, err = t.unsigned(&t.place); err != nil {
			return 0, err
		}
	}
	if left > uint64(len(t.data)) {
		return 0, fmt.Errorf("%d operations are to be repeated: %w", left, errNoEnd)
	}
	t.left = int(left) //nolint:gosec // checked
	for ; t.passed > 0; t.passed-- {
		if err := t.skip(); err != nil {
			return 0, err
		}
	}
	return t.operationAt(&t.previous)
}

// frames returns the frames of the list at a place, outermost first.
func (v *translations) frames(data []byte, place int64) ([]inlinedFrame, error) {
	if place < 0 || place >= int64(len(data)) {
		return nil, fmt.Errorf("the list of frames is at %d of %d bytes", place, len(data))
	}
	t := &translation{translations: v, data: data, place: int(place)}
	count, err := t.begin()
	if err != nil {
		return nil, err
	}
	var list []inlinedFrame
	for seen := int64(0); seen < count; {
		n, err := t.operation()
		if err != nil {
			return nil, err
		}
		if n >= len(v.operands) {
			return nil, fmt.Errorf("the operation %d: %w", n, errNoTranslation)
		}
		var operands [2]int64
		for i := range int(v.operands[n] - '0') {
			operand, err := t.operand()
			if err != nil {
				return nil, err
			}
			if i < len(operands) {
				operands[i] = operand
			}
		}
		isFunction, isContinuation, isOther := has(v.interpreted, n), has(v.continuation, n), has(v.others, n)
		if isFunction || isContinuation {
			list = append(list, inlinedFrame{literal: operands[1], offset: operands[0], isContinuation: isContinuation})
		}
		if isFunction || isContinuation || isOther {
			seen++
		}
	}
	return list, nil
}

// begin reads the beginning of a list, and returns how many frames it has.
func (t *translation) begin() (int64, error) {
	start := t.place
	n, err := t.operationAt(&t.place)
	if err != nil {
		return 0, err
	}
	if !has(t.begins, n) {
		return 0, fmt.Errorf("the operation %d at %d: %w", n, start, errNoTranslation)
	}
	if t.framesAt > 0 { // the first operand is how far before the earlier list is
		first := t.place
		back, err := t.unsigned(&first)
		if err != nil || back > uint64(start) { //nolint:gosec // not negative
			return 0, errors.Join(err, fmt.Errorf("the earlier list is %d bytes before %d: %w", back, start, errNoTranslation))
		}
		t.previous = start - int(back) //nolint:gosec // checked
	}
	count := int64(0)
	for i := range int(t.operands[n] - '0') {
		operand, err := t.operand()
		if err != nil {
			return 0, err
		}
		if i == t.framesAt {
			count = operand
		}
	}
	t.passed = 1
	if count < 1 || count > maxInlined {
		return 0, fmt.Errorf("%d frames, expected 1 to %d", count, maxInlined)
	}
	return count, nil
}

func has(list []int, n int) bool {
	for _, one := range list {
		if one == n {
			return true
		}
	}
	return false
}

// safepoints says where a version of V8 has what in the table of the calls of code.
type safepoints struct {
	count, form      uint64 // how many calls it has, and how each is written: numbers of 32 bits
	turbofan, maglev uint64 // the first call, in code of each
}

// maglevExtra is how many bytes more a call has in Maglev's code, before its registers.
const maglevExtra = 1

// maxSafepoints bounds the calls of one function's code.
const maxSafepoints = 1 << 17

// errNoSafepoint is returned for a PC that is no return address of a call at which V8 can give up
// the code.
var errNoSafepoint = errors.New("V8 keeps nothing of the call in optimised code, nor which functions are inlined there")

// deoptIndex returns which list of frames a call has, whose return address is pc: in the table
// behind the instructions. The return address is another one where V8 has given up the code.
func (c *call) deoptIndex(m *machineCode, isMaglev bool, pc uint64) (uint64, error) {
	first, extra := c.safepoints.turbofan, uint64(0)
	if isMaglev {
		first, extra = c.safepoints.maglev, maglevExtra
	}
	head, err := c.Bytes(m.end, first)
	if err != nil {
		return 0, err
	}
	count, form := c.Number(head[c.safepoints.count:][:4]), c.Number(head[c.safepoints.form:][:4])
	registers, size, index := form>>1&7, form>>4&7, form>>7&7
	if form&1 == 0 {
		return 0, errNoSafepoint
	}
	entry := 2*size + index + extra + registers
	if count > maxSafepoints || size == 0 || size > 4 || index > 4 {
		return 0, fmt.Errorf("the table of %d calls at %#x has the form %#x", count, m.end, form)
	}
	data, err := c.Bytes(m.end+first, count*entry)
	if err != nil {
		return 0, err
	}
	at := pc - m.start
	for ; len(data) > 0; data = data[entry:] {
		isCall, isGivenUp := little(data[:size]) == at, little(data[size+index:][:size]) == at+1
		if n := little(data[size:][:index]); (isCall || isGivenUp) && n > 0 {
			return n - 1, nil
		}
	}
	return 0, errNoSafepoint
}

// little returns the number in up to 4 bytes, the lowest first.
func little(b []byte) (n uint64) {
	for i, one := range b {
		n |= uint64(one) << (8 * i)
	}
	return n
}

// inlined returns the frames of optimised code at a return address, outermost first.
func (c *call) inlined(m *machineCode, isMaglev bool, pc uint64) ([]inlinedFrame, object, error) {
	index, err := c.deoptIndex(m, isMaglev, pc)
	if err != nil {
		return nil, 0, err
	}
	data, err := c.arrayAt(m.object, codeData)
	if err != nil {
		return nil, 0, err
	}
	element := func(i uint64) (uint64, error) {
		return c.Pointer(uint64(data) + c.offset(arrayData) + i*c.PointerSize())
	}
	w, err := element(c.offset(deoptFirst) + 3*index + 1)
	if err != nil {
		return nil, 0, err
	}
	place, ok := c.smi(w)
	if !ok {
		return nil, 0, fmt.Errorf("the place of the list of frames %d is %#x, expected a number", index, w)
	}
	if w, err = element(0); err != nil {
		return nil, 0, err
	}
	o, ok := objectOf(w)
	if !ok || !c.isType(o, typeByteArray) && !c.isType(o, typePlainByteArray) {
		return nil, 0, fmt.Errorf("the lists of frames of the code at %#x are %#x, expected an array of bytes", m.object, w)
	}
	text, err := c.bytes(o, maxTable)
	if err != nil {
		return nil, 0, err
	}
	if w, err = element(c.offset(deoptLiterals)); err != nil {
		return nil, 0, err
	}
	literals, ok := objectOf(w)
	if !ok {
		return nil, 0, fmt.Errorf("the literals of the code at %#x are %#x, expected an object", m.object, w)
	}
	list, err := c.translations.frames(text, place)
	if err != nil {
		err = fmt.Errorf("the lists of frames at %#x: %w", o, err)
	}
	return list, literals, err
}

// arrayAt reads a member that is an array, and verifies that its length is one.
func (c *call) arrayAt(o object, offset value) (object, error) {
	w, err := c.word(o, offset)
	if err != nil {
		return 0, err
	}
	list, ok := objectOf(w)
	if !ok {
		return 0, fmt.Errorf("%s of the object at %#x is %#x, expected an array", nameOf(offset), o, w)
	}
	if n, err := c.number(list, arrayLength); err != nil || n < 0 || n > maxTable {
		return 0, fmt.Errorf("the array at %#x has %d elements, expected at most %d", list, n, maxTable)
	}
	return list, nil
}

// literal returns the function that a literal of optimised code is.
func (c *call) literal(literals object, i int64) (*function, error) {
	if n, err := c.number(literals, arrayLength); err != nil || i < 0 || i >= n {
		return nil, fmt.Errorf("literal %d of %d at %#x", i, n, literals)
	}
	w, err := c.Pointer(uint64(literals) + c.offset(arrayData) + uint64(i)*c.PointerSize()) //nolint:gosec // not negative
	if err != nil {
		return nil, err
	}
	o, ok := objectOf(w &^ weakBit)
	if !ok || !c.isType(o, typeShared) {
		return nil, fmt.Errorf("literal %d at %#x is %#x, expected a function", i, literals, w)
	}
	return c.functionOf(o)
}

// weakBit is the bit of a reference that does not keep its object.
const weakBit = 2
