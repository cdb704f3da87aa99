// SPDX-License-Identifier: Apache-2.0

package genasm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Call is one that has not returned.
type Call struct {
	Instruction *Instruction
	ReturnIP    uint64
	Mask        uint32 // the channels that called
	// The registers when the callee began.
	GRF, Address, Flags []byte
}

// Thread is a hardware thread that runs a kernel. Instructions that move, add and mask
// integers, that write and read the stack in scratch memory, and control flow are
// executed exactly. Any other one leaves random bytes in its destination, and is an error
// where that is a register that frames are found by. At a branch some channels take each
// edge, so that both edges are executed one after the other; which channels is random,
// since frames do not depend on it.
type Thread struct {
	*Assembly
	GRF     []byte
	Address []byte // a0
	Flags   []byte // f0 and f1, two halves of 16 channels each
	Mask    uint32 // the channels that are enabled
	Scratch []byte // scratch memory, which has the stack
	Calls   []Call // calls under way, the first one first

	random  *rand.Rand
	base    uint64 // the IP of the first instruction
	surface uint32 // the surface of scratch memory, from r0.5
	next    int    // the index of the next instruction
	deepest int    // calls that may be under way at once

	// branches counts the executed branches, by their index, for the kernel and for each
	// call under way.
	branches []map[int]int
}

// scratchSize is the size of a thread's scratch memory, in bytes.
const scratchSize = 1 << 18

// New returns a thread at the start of a kernel whose first instruction is at base. Its
// registers and its memory have random contents. While deepest calls are under way, no
// channel takes a path with calls if there is another.
func New(a *Assembly, base uint64, deepest int, random *rand.Rand) *Thread {
	t := &Thread{Assembly: a, base: base, deepest: deepest, random: random, branches: []map[int]int{{}}}
	t.GRF = t.some(make([]byte, a.Registers*a.RegisterSize))
	t.Scratch = t.some(make([]byte, scratchSize))
	t.Address = t.some(make([]byte, 32))
	t.Flags = t.some(make([]byte, 8))
	t.Mask = t.subset(t.entered())
	t.surface = binary.LittleEndian.Uint32(t.GRF[5*4:]) &^ 0x3ff
	return t
}

// some fills bytes at random.
func (t *Thread) some(b []byte) []byte {
	for i := range b {
		b[i] = byte(t.random.Uint32())
	}
	return b
}

// subset is some of the channels of a mask, and at least one.
func (t *Thread) subset(mask uint32) uint32 {
	for {
		if some := t.random.Uint32() & mask; some != 0 {
			return some
		}
	}
}

// entered returns the channels that the function was called with.
func (t *Thread) entered() uint32 {
	if n := len(t.Calls); n > 0 {
		return t.Calls[n-1].Mask
	}
	return uint32(uint64(1)<<t.Lanes - 1)
}

// Next is the next instruction.
func (t *Thread) Next() *Instruction { return t.Instructions[t.next] }

// IP is the address of the next instruction.
func (t *Thread) IP() uint64 { return t.base + t.Next().Offset }

// errEndOfThread is the error of a thread that has ended.
var errEndOfThread = errors.New("end of thread")

// Run executes until the thread ends, or visit, which it calls before each instruction,
// returns false. An instruction that cannot be executed is an error, as is a function
// that does not preserve its caller's registers.
func (t *Thread) Run(visit func() bool) error {
	for range 1 << 20 {
		if !visit() {
			return nil
		}
		in := t.Next()
		switch err := t.step(in); {
		case errors.Is(err, errEndOfThread):
			return nil
		case err != nil:
			return fmt.Errorf("%s:%d: %s: %w", t.Path, in.Line, in.Text, err)
		case t.next == len(t.Instructions):
			return fmt.Errorf("%s:%d: nothing follows", t.Path, in.Line)
		}
	}
	return fmt.Errorf("%s: the thread does not end", t.Path)
}

// step executes an instruction.
func (t *Thread) step(instruction *Instruction) error {
	op, _, _ := strings.Cut(instruction.Op, ".")
	switch op {
	case "nop", "sync", "wait":
		t.next++
		return nil
	case "if", "else", "endif", "goto", "join", "break", "while", "jmpi":
		return t.branch(instruction, op)
	case "call":
		return t.call(instruction)
	case "ret":
		return t.ret(instruction)
	case "send", "sends", "load", "store":
		t.next++
		return t.send(instruction, op)
	}
	t.next++
	return t.calculate(instruction)
}

// target is the instruction that an operand names.
func (t *Thread) target(label string) (int, error) {
	i, ok := t.labels[label]
	if !ok {
		return 0, fmt.Errorf("no label %s", label)
	}
	return i, nil
}

// branch continues behind a branch for the channels that do not take it, or at its target
// if all do.
func (t *Thread) branch(instruction *Instruction, op string) error {
	t.Mask = t.subset(t.entered())
	at := t.next
	t.next++
	if op == "endif" || op == "join" {
		return nil
	}
	if len(instruction.operands) == 0 {
		return errors.New("a branch to nowhere")
	}
	to, err := t.target(instruction.operands[0])
	if err != nil {
		return err
	}
	always := instruction.predicate == "" && (op == "goto" || op == "jmpi")
	branches := t.branches[len(t.Calls)]
	branches[at]++
	again := branches[at] > 1 // in a loop, which is not entered a second time
	if always || again || len(t.Calls) >= t.deepest && t.callsBetween(at, to) > 0 {
		t.next = to
	}
	return nil
}

// callsBetween is the number of calls that a branch jumps over.
func (t *Thread) callsBetween(from, to int) (n int) {
	for i := from; i < to; i++ {
		if t.Instructions[i].Op == "call" {
			n++
		}
	}
	return n
}

// returnRegister returns the bytes that a call puts its return address and its channels
// into.
func (t *Thread) returnRegister(instruction *Instruction) ([]byte, error) {
	o, err := parseOperand(instruction.operands[0])
	if err != nil {
		return nil, err
	}
	if o.file != "r" {
		return nil, errors.New("its register is no GRF register")
	}
	at := o.register*t.RegisterSize + o.sub*4
	if at+8 > len(t.GRF) {
		return nil, errors.New("its register is behind the last one")
	}
	return t.GRF[at : at+8], nil
}

func (t *Thread) call(instruction *Instruction) error {
	if instruction.predicate != "" {
		return errors.New("a call with a predicate")
	}
	register, err := t.returnRegister(instruction)
	if err != nil {
		return err
	}
	to, err := t.target(instruction.operands[1])
	if err != nil {
		return err
	}
	ip := t.base + instruction.Offset + instruction.Size
	binary.LittleEndian.PutUint32(register, uint32(ip))
	binary.LittleEndian.PutUint32(register[4:], t.Mask)
	t.Calls = append(t.Calls, Call{instruction, ip, t.Mask, slices.Clone(t.GRF), slices.Clone(t.Flags), slices.Clone(t.Address)})
	t.branches = append(t.branches, map[int]int{})
	t.next = to
	return nil
}

// ret returns, and checks that the callee has preserved its caller's registers: it would
// not have if the machine had left out an instruction that matters.
func (t *Thread) ret(instruction *Instruction) error {
	if len(t.Calls) == 0 {
		return errors.New("returns from a kernel")
	}
	register, err := t.returnRegister(instruction)
	if err != nil {
		return err
	}
	call := &t.Calls[len(t.Calls)-1]
	if instruction.operands[0] != call.Instruction.operands[0] {
		return fmt.Errorf("returns from %s", call.Instruction.Text)
	}
	if ip := binary.LittleEndian.Uint32(register); ip != uint32(call.ReturnIP) || binary.LittleEndian.Uint32(register[4:]) != call.Mask {
		return fmt.Errorf("returns to %#x instead of %#x", ip, call.ReturnIP)
	}
	if instruction.isStackCalled {
		for _, b := range t.Kept() {
			if was, is := b.Bytes(call.GRF), b.Bytes(t.GRF); !bytes.Equal(was, is) {
				return fmt.Errorf("byte %d of the registers is %x, and was %x", b.First, is, was)
			}
		}
	}
	i, ok := t.indexes[call.ReturnIP-t.base]
	if !ok {
		return fmt.Errorf("returns to %#x, where no instruction begins", call.ReturnIP)
	}
	t.next, t.Mask = i, call.Mask
	t.Calls = t.Calls[:len(t.Calls)-1]
	t.branches = t.branches[:len(t.branches)-1]
	return nil
}

// isGuarded reports whether frames are found by bytes of a file: the register of the
// frame and stack pointers, the register of the headers of messages to scratch memory,
// and the address of its surface.
func (t *Thread) isGuarded(file string, first, count int) bool {
	overlaps := func(from, size int) bool { return first < from+size && from < first+count }
	fp, stack := t.FramePointer()
	switch {
	case !stack:
		return false
	case file == "r":
		return overlaps(fp.First/t.RegisterSize*t.RegisterSize, 2*t.RegisterSize)
	}
	return file == "a" && overlaps(2*4, 4)
}

var errGuarded = errors.New("an instruction that is not known here changes what frames are found by")

// bytesOf returns the bytes of a file, nil for a file without state.
func (t *Thread) bytesOf(file string) []byte {
	switch file {
	case "r":
		return t.GRF
	case "a":
		return t.Address
	case "f":
		return t.Flags
	}
	return nil
}

// place is the offset, in the bytes of its file, of an element of an operand.
func (t *Thread) place(o *operand, elements int) int {
	at := (o.sub + elements) * o.size()
	switch o.file {
	case "r":
		at += o.register * t.RegisterSize
	case "f":
		at += o.register * 4
	}
	return at
}

// source reads element i of a source; false where it is unknown.
func (t *Thread) source(o *operand, i int) (uint64, bool) {
	var v uint64
	switch file := t.bytesOf(o.file); {
	case o.isAbsolute:
		return 0, false
	case o.file == "imm":
		v = o.value
	case file == nil || o.regions != 3 || o.region[1] == 0:
		return 0, false
	default:
		at := t.place(o, i/o.region[1]*o.region[0]+i%o.region[1]*o.region[2])
		if at+o.size() > len(file) {
			return 0, false
		}
		v = number(file[at : at+o.size()])
	}
	if integerTypes[o.kind] < 0 {
		shift := 64 - 8*o.size()
		v = uint64(int64(v<<shift) >> shift)
	}
	return v, true
}

// operations has the operations on integers that are executed.
var operations = map[string]func(v []uint64) uint64{
	"mov":  func(v []uint64) uint64 { return v[0] },
	"add":  func(v []uint64) uint64 { return v[0] + v[1] },
	"addc": func(v []uint64) uint64 { return v[0] + v[1] },
	"and":  func(v []uint64) uint64 { return v[0] & v[1] },
	"or":   func(v []uint64) uint64 { return v[0] | v[1] },
	"shl":  func(v []uint64) uint64 { return v[0] << (v[1] & 31) },
	"shr":  func(v []uint64) uint64 { return v[0] >> (v[1] & 31) },
}

// value is element i of the result; false where it is unknown.
func (t *Thread) value(instruction *Instruction, dst *operand, sources []*operand, i int) (uint64, bool) {
	operation := operations[instruction.Op]
	if operation == nil {
		return 0, false
	}
	var values []uint64
	for _, o := range sources {
		// Numbers other than integers are only moved.
		if (o.isFloat() || dst.isFloat()) && (instruction.Op != "mov" || o.kind != dst.kind || o.isNegated) {
			return 0, false
		}
		if o.kind == "v" || o.kind == "uv" || o.kind == "vf" {
			return 0, false
		}
		v, ok := t.source(o, i)
		if !ok {
			return 0, false
		}
		if o.isNegated {
			if instruction.Op == "and" || instruction.Op == "or" {
				v = ^v
			} else {
				v = -v
			}
		}
		values = append(values, v)
	}
	return operation(values), true
}

// enabled reports whether channel i of an instruction is executed.
func (t *Thread) enabled(instruction *Instruction, i int) (bool, error) {
	if !instruction.hasNoMask && t.Mask>>(instruction.first+i)&1 == 0 {
		return false, nil
	}
	if instruction.predicate == "" || instruction.Op == "sel" {
		return true, nil
	}
	name, negated := strings.CutPrefix(instruction.predicate, "~")
	parts := strings.SplitN(name, ".", 3)
	half := slices.Index([]string{"f0.0", "f0.1", "f1.0", "f1.1"}, strings.Join(parts[:min(2, len(parts))], "."))
	if half < 0 {
		return false, fmt.Errorf("the predicate %s", instruction.predicate)
	}
	all := binary.LittleEndian.Uint64(t.Flags) >> (16*half + instruction.first)
	set := all>>i&1 != 0
	if len(parts) == 3 {
		n, err := strconv.Atoi(strings.Trim(parts[2], "anyh"))
		if err != nil || !strings.HasPrefix(parts[2], "any") {
			return false, fmt.Errorf("the predicate %s", instruction.predicate)
		}
		set = all>>(i/n*n)&(1<<n-1) != 0
	}
	return set != negated, nil
}

// calculate executes an operation on registers.
func (t *Thread) calculate(instruction *Instruction) error {
	if instruction.width == 0 || len(instruction.operands) < 2 {
		return errors.New("is not known here")
	}
	operands := make([]*operand, len(instruction.operands))
	for i, s := range instruction.operands {
		var err error
		if operands[i], err = parseOperand(s); err != nil {
			return err
		}
	}
	dst, sources := operands[0], operands[1:]
	if dst.file == "indirect" {
		return errors.New("its destination is not known")
	}
	file := t.bytesOf(dst.file)
	size := dst.size()
	type change struct {
		offset int
		value  uint64
	}
	var changes []change
	for i := range instruction.width {
		enabled, err := t.enabled(instruction, i)
		if err != nil {
			return err
		}
		at := t.place(dst, i*max(dst.region[0], 1))
		if file != nil && at+size > len(file) {
			return errors.New("its destination is behind the last register")
		}
		v, ok := t.value(instruction, dst, sources, i)
		if !ok {
			if t.isGuarded(dst.file, at, size) {
				return errGuarded
			}
			v = t.random.Uint64()
		}
		if enabled {
			changes = append(changes, change{at, v})
		}
		if instruction.flag != "" && enabled {
			t.compare(instruction, i)
		}
	}
	for _, c := range changes {
		if file != nil {
			for i := range size {
				file[c.offset+i] = byte(c.value >> (8 * i))
			}
		}
	}
	return nil
}

// compare sets the flag of a channel at random. Only a comparison of a value with itself
// has a known result: equal.
func (t *Thread) compare(instruction *Instruction, i int) {
	half := slices.Index([]string{"f0.0", "f0.1", "f1.0", "f1.1"}, instruction.flag)
	bit := 16*half + instruction.first + i
	set := t.random.IntN(2) == 0
	if instruction.Op == "cmp" && instruction.modifier == "eq" && instruction.operands[1] == instruction.operands[2] {
		set = true
	}
	t.Flags[bit/8] &^= 1 << (bit % 8)
	if set {
		t.Flags[bit/8] |= 1 << (bit % 8)
	}
}

// send executes a message. Messages that write or read the stack are executed; others
// leave random bytes in the registers of their answer.
func (t *Thread) send(instruction *Instruction, op string) error {
	if instruction.isEndOfThread {
		return errEndOfThread
	}
	if op == "load" || op == "store" {
		return t.loadStore(instruction, op)
	}
	if len(instruction.operands) < 4 {
		return errors.New("a message without a descriptor")
	}
	last := len(instruction.operands) - 1
	descriptor, err := strconv.ParseUint(instruction.operands[last], 0, 32)
	if err != nil {
		return errors.New("the length of its answer is not known")
	}
	extended, err := strconv.ParseUint(instruction.operands[last-1], 0, 32)
	if err != nil {
		return errors.New("its extended descriptor is not known")
	}
	data := instruction.Op == "send.dc0" || !strings.Contains(instruction.Op, ".") && extended&0xf == 0xa
	kind, surface := descriptor>>14&0x1f, descriptor&0xff
	read, write := kind == 0, kind == 8
	answer := int(descriptor >> 20 & 0x1f)
	if !data || surface != 0xff || !read && !write {
		return t.forget(instruction.operands[0], answer)
	}
	header, err := t.wholeRegister(instruction.operands[1])
	if err != nil {
		return err
	}
	if !instruction.hasNoMask || instruction.predicate != "" {
		return errors.New("a block of scratch memory for some channels only")
	}
	if base := binary.LittleEndian.Uint32(header[5*4:]) &^ 0x3ff; base != t.surface {
		return fmt.Errorf("a block of memory from %#x on, and scratch memory is at %#x", base, t.surface)
	}
	owords := map[uint64]int{2: 2, 3: 4, 4: 8}[descriptor>>8&7]
	at := uint64(binary.LittleEndian.Uint32(header[2*4:])) * 16
	if owords == 0 {
		return errors.New("a block whose size is not known here")
	}
	register := instruction.operands[0]
	if write {
		register = instruction.operands[2]
	}
	return t.block(register, write, at, owords*16, answer)
}

// wholeRegister returns the bytes from a register on that an operand of a message names.
func (t *Thread) wholeRegister(operand string) ([]byte, error) {
	name, _, _ := strings.Cut(operand, ":")
	digits, ok := strings.CutPrefix(name, "r")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n >= t.Registers {
		return nil, fmt.Errorf("%s is no register", operand)
	}
	return t.GRF[n*t.RegisterSize:], nil
}

// block moves a block between registers and the stack.
func (t *Thread) block(register string, write bool, address uint64, size, answer int) error {
	r, err := t.wholeRegister(register)
	if err != nil {
		return err
	}
	if address+uint64(size) > uint64(len(t.Scratch)) || size > len(r) {
		return fmt.Errorf("%d bytes of the stack at %#x", size, address)
	}
	if write {
		copy(t.Scratch[address:], r[:size])
		return nil
	}
	if answer*t.RegisterSize < size {
		return fmt.Errorf("%d bytes into %d registers", size, answer)
	}
	copy(r, t.Scratch[address:address+uint64(size)])
	return nil
}

// forget fills the registers of an answer.
func (t *Thread) forget(register string, count int) error {
	if count == 0 {
		return nil
	}
	r, err := t.wholeRegister(register)
	if err != nil {
		return err
	}
	size := count * t.RegisterSize
	if size > len(r) {
		return errors.New("its answer is longer than the registers")
	}
	if t.isGuarded("r", len(t.GRF)-len(r), size) {
		return errGuarded
	}
	t.some(r[:size])
	return nil
}

// loadStore executes a message of the newer format: load.ugm.d32x8t.a32 r5:1
// ss[a0.2][r126:1], where the stack is the surface that a0.2 names.
func (t *Thread) loadStore(instruction *Instruction, op string) error {
	if len(instruction.operands) != 2 {
		return errors.New("a message that is not known here")
	}
	register, address := instruction.operands[0], instruction.operands[1]
	if op == "store" {
		register, address = address, register
	}
	name, length, ok := strings.Cut(register, ":")
	count, err := strconv.Atoi(length)
	if !ok || err != nil {
		return fmt.Errorf("%s is no register", register)
	}
	surface, header, ok := strings.Cut(strings.TrimSuffix(address, "]"), "][")
	if !ok || !strings.HasPrefix(surface, "ss[") {
		if op == "store" {
			return nil
		}
		return t.forget(name, count)
	}
	var elements int
	parts := strings.Split(instruction.Op, ".")
	if n, err := fmt.Sscanf(parts[2], "d32x%dt", &elements); n != 1 || err != nil || parts[3] != "a32" || surface != "ss[a0.2" || instruction.width != 1 || !instruction.hasNoMask || instruction.predicate != "" {
		return errors.New("a message to scratch memory that is not known here")
	}
	if at := binary.LittleEndian.Uint32(t.Address[2*4:]); at != t.surface>>4 {
		return fmt.Errorf("a message to the surface %#x, and scratch memory is at %#x", at, t.surface>>4)
	}
	h, err := t.wholeRegister(header)
	if err != nil {
		return err
	}
	return t.block(name, op == "store", uint64(binary.LittleEndian.Uint32(h)), elements*4, count)
}

// number is a little-endian number.
func number(b []byte) (v uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}
