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

// A Call is one that has not returned.
type Call struct {
	Instruction *Instruction
	ReturnIP    uint64
	Mask        uint32 // the channels that called
	// What the callee found when it began.
	GRF, Address, Flags []byte
}

// A Thread is a hardware thread that runs a kernel. Instructions that move, add
// and mask integers, those that write and read the stack in scratch memory, and
// control flow are executed as they are. Any other one leaves random bytes in
// its destination, and is an error where that is a register that frames are
// found by. Of the channels, some go each way at a branch, so that both ways are
// executed one after the other; which ones is chosen at random, since what a
// frame needs does not depend on it.
type Thread struct {
	*Assembly
	GRF     []byte
	Address []byte // a0
	Flags   []byte // f0 and f1, two halves of 16 channels each
	Mask    uint32 // the channels that are enabled
	Scratch []byte // scratch memory, which the stack lies in
	Calls   []Call // those that are under way, the first one first

	random  *rand.Rand
	base    uint64 // the IP of the first instruction
	surface uint32 // where scratch memory is, as r0.5 says it
	next    int    // the instruction that is executed next
	deepest int    // calls that may be under way at once

	// branches are those that were executed, by their index, for the kernel and for
	// each call under way.
	branches []map[int]int
}

// scratchSize is how much scratch memory a thread has, in bytes.
const scratchSize = 1 << 18

// New returns a thread at the start of a kernel whose first instruction is at
// base. All that is in its registers and its memory is random. No channel goes
// where there are calls, if there is a way around them, while deepest calls are
// under way.
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

// entered are the channels that the function was called with.
func (t *Thread) entered() uint32 {
	if n := len(t.Calls); n > 0 {
		return t.Calls[n-1].Mask
	}
	return uint32(uint64(1)<<t.Lanes - 1)
}

// Next is the instruction that is executed next.
func (t *Thread) Next() *Instruction { return t.Instructions[t.next] }

// IP is that of the next instruction.
func (t *Thread) IP() uint64 { return t.base + t.Next().Offset }

// errEndOfThread says that the thread has ended.
var errEndOfThread = errors.New("end of thread")

// Run executes until the thread ends, or visit, which it calls before each
// instruction, answers false.
// An instruction that cannot be executed is an error, as is a function that
// returns without what it must keep.
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
func (t *Thread) step(in *Instruction) error {
	op, _, _ := strings.Cut(in.Op, ".")
	switch op {
	case "nop", "sync", "wait":
		t.next++
		return nil
	case "if", "else", "endif", "goto", "join", "break", "while", "jmpi":
		return t.branch(in, op)
	case "call":
		return t.call(in)
	case "ret":
		return t.ret(in)
	case "send", "sends", "load", "store":
		t.next++
		return t.send(in, op)
	}
	t.next++
	return t.calculate(in)
}

// target is the instruction that an operand names.
func (t *Thread) target(label string) (int, error) {
	i, ok := t.labels[label]
	if !ok {
		return 0, fmt.Errorf("no label %s", label)
	}
	return i, nil
}

// branch goes on behind a branch, for channels that do, or where it leads to if
// none does.
func (t *Thread) branch(in *Instruction, op string) error {
	t.Mask = t.subset(t.entered())
	at := t.next
	t.next++
	if op == "endif" || op == "join" {
		return nil
	}
	if len(in.operands) == 0 {
		return errors.New("a branch to nowhere")
	}
	to, err := t.target(in.operands[0])
	if err != nil {
		return err
	}
	always := in.predicate == "" && (op == "goto" || op == "jmpi")
	branches := t.branches[len(t.Calls)]
	branches[at]++
	again := branches[at] > 1 // in a loop, which nobody goes round a second time
	if always || again || len(t.Calls) >= t.deepest && t.callsBetween(at, to) > 0 {
		t.next = to
	}
	return nil
}

// callsBetween is how many calls a branch jumps over.
func (t *Thread) callsBetween(at, to int) (n int) {
	for i := at; i < to; i++ {
		if t.Instructions[i].Op == "call" {
			n++
		}
	}
	return n
}

// returnRegister are the bytes that a call puts its return address and its
// channels into.
func (t *Thread) returnRegister(in *Instruction) ([]byte, error) {
	o, err := parseOperand(in.operands[0])
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

func (t *Thread) call(in *Instruction) error {
	if in.predicate != "" {
		return errors.New("a call with a predicate")
	}
	register, err := t.returnRegister(in)
	if err != nil {
		return err
	}
	to, err := t.target(in.operands[1])
	if err != nil {
		return err
	}
	ip := t.base + in.Offset + in.Size
	binary.LittleEndian.PutUint32(register, uint32(ip))
	binary.LittleEndian.PutUint32(register[4:], t.Mask)
	t.Calls = append(t.Calls, Call{in, ip, t.Mask, slices.Clone(t.GRF), slices.Clone(t.Flags), slices.Clone(t.Address)})
	t.branches = append(t.branches, map[int]int{})
	t.next = to
	return nil
}

// ret returns, and checks that what the callee must keep is as it was: if the
// machine had left out an instruction that matters, it would not be.
func (t *Thread) ret(in *Instruction) error {
	if len(t.Calls) == 0 {
		return errors.New("returns from a kernel")
	}
	register, err := t.returnRegister(in)
	if err != nil {
		return err
	}
	call := &t.Calls[len(t.Calls)-1]
	if in.operands[0] != call.Instruction.operands[0] {
		return fmt.Errorf("returns from %s", call.Instruction.Text)
	}
	if ip := binary.LittleEndian.Uint32(register); ip != uint32(call.ReturnIP) || binary.LittleEndian.Uint32(register[4:]) != call.Mask {
		return fmt.Errorf("returns to %#x instead of %#x", ip, call.ReturnIP)
	}
	if in.isStackCalled {
		for _, b := range t.Kept() {
			if was, is := b.Bytes(call.GRF), b.Bytes(t.GRF); !bytes.Equal(was, is) {
				return fmt.Errorf("byte %d of the registers is %x, and was %x", b.First, is, was)
			}
		}
	}
	i, ok := t.at[call.ReturnIP-t.base]
	if !ok {
		return fmt.Errorf("returns to %#x, where no instruction begins", call.ReturnIP)
	}
	t.next, t.Mask = i, call.Mask
	t.Calls = t.Calls[:len(t.Calls)-1]
	t.branches = t.branches[:len(t.branches)-1]
	return nil
}

// isGuarded says whether bytes of a file are those that frames are found by: the
// register of the frame and stack pointers, that of the headers of messages to
// scratch memory, and the address of its surface.
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

// bytesOf are the bytes of a file, nil of those that are not kept.
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

// place is where, in the bytes of its file, an operand is, and so many elements
// further.
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

// source reads element i of a source; false where it is not known.
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

// operations are the operations on integers that are executed.
var operations = map[string]func(v []uint64) uint64{
	"mov":  func(v []uint64) uint64 { return v[0] },
	"add":  func(v []uint64) uint64 { return v[0] + v[1] },
	"addc": func(v []uint64) uint64 { return v[0] + v[1] },
	"and":  func(v []uint64) uint64 { return v[0] & v[1] },
	"or":   func(v []uint64) uint64 { return v[0] | v[1] },
	"shl":  func(v []uint64) uint64 { return v[0] << (v[1] & 31) },
	"shr":  func(v []uint64) uint64 { return v[0] >> (v[1] & 31) },
}

// value is element i of the result; false where it is not known.
func (t *Thread) value(in *Instruction, dst *operand, sources []*operand, i int) (uint64, bool) {
	operation := operations[in.Op]
	if operation == nil {
		return 0, false
	}
	var values []uint64
	for _, o := range sources {
		// Numbers that are no integers are only moved.
		if (o.isFloat() || dst.isFloat()) && (in.Op != "mov" || o.kind != dst.kind || o.isNegated) {
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
			if in.Op == "and" || in.Op == "or" {
				v = ^v
			} else {
				v = -v
			}
		}
		values = append(values, v)
	}
	return operation(values), true
}

// enabled says whether channel i of an instruction is executed.
func (t *Thread) enabled(in *Instruction, i int) (bool, error) {
	if !in.hasNoMask && t.Mask>>(in.first+i)&1 == 0 {
		return false, nil
	}
	if in.predicate == "" || in.Op == "sel" {
		return true, nil
	}
	name, negated := strings.CutPrefix(in.predicate, "~")
	parts := strings.SplitN(name, ".", 3)
	half := slices.Index([]string{"f0.0", "f0.1", "f1.0", "f1.1"}, strings.Join(parts[:min(2, len(parts))], "."))
	if half < 0 {
		return false, fmt.Errorf("the predicate %s", in.predicate)
	}
	all := binary.LittleEndian.Uint64(t.Flags) >> (16*half + in.first)
	set := all>>i&1 != 0
	if len(parts) == 3 {
		n, err := strconv.Atoi(strings.Trim(parts[2], "anyh"))
		if err != nil || !strings.HasPrefix(parts[2], "any") {
			return false, fmt.Errorf("the predicate %s", in.predicate)
		}
		set = all>>(i/n*n)&(1<<n-1) != 0
	}
	return set != negated, nil
}

// calculate executes an operation on registers.
func (t *Thread) calculate(in *Instruction) error {
	if in.width == 0 || len(in.operands) < 2 {
		return errors.New("is not known here")
	}
	operands := make([]*operand, len(in.operands))
	for i, s := range in.operands {
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
		at    int
		value uint64
	}
	var changes []change
	for i := range in.width {
		enabled, err := t.enabled(in, i)
		if err != nil {
			return err
		}
		at := t.place(dst, i*max(dst.region[0], 1))
		if file != nil && at+size > len(file) {
			return errors.New("its destination is behind the last register")
		}
		v, ok := t.value(in, dst, sources, i)
		if !ok {
			if t.isGuarded(dst.file, at, size) {
				return errGuarded
			}
			v = t.random.Uint64()
		}
		if enabled {
			changes = append(changes, change{at, v})
		}
		if in.flag != "" && enabled {
			t.compare(in, i)
		}
	}
	for _, c := range changes {
		if file != nil {
			for i := range size {
				file[c.at+i] = byte(c.value >> (8 * i))
			}
		}
	}
	return nil
}

// compare sets the flag of a channel at random. Only for a value that is
// compared with itself the result is known: they are equal.
func (t *Thread) compare(in *Instruction, i int) {
	half := slices.Index([]string{"f0.0", "f0.1", "f1.0", "f1.1"}, in.flag)
	bit := 16*half + in.first + i
	set := t.random.IntN(2) == 0
	if in.Op == "cmp" && in.modifier == "eq" && in.operands[1] == in.operands[2] {
		set = true
	}
	t.Flags[bit/8] &^= 1 << (bit % 8)
	if set {
		t.Flags[bit/8] |= 1 << (bit % 8)
	}
}

// send executes a message. Those that write or read the stack are executed;
// others leave random bytes in the registers that they answer with.
func (t *Thread) send(in *Instruction, op string) error {
	if in.isEndOfThread {
		return errEndOfThread
	}
	if op == "load" || op == "store" {
		return t.loadStore(in, op)
	}
	if len(in.operands) < 4 {
		return errors.New("a message without a descriptor")
	}
	last := len(in.operands) - 1
	descriptor, err := strconv.ParseUint(in.operands[last], 0, 32)
	if err != nil {
		return errors.New("the length of its answer is not known")
	}
	extended, err := strconv.ParseUint(in.operands[last-1], 0, 32)
	if err != nil {
		return errors.New("its extended descriptor is not known")
	}
	data := in.Op == "send.dc0" || !strings.Contains(in.Op, ".") && extended&0xf == 0xa
	kind, surface := descriptor>>14&0x1f, descriptor&0xff
	read, write := kind == 0, kind == 8
	answer := int(descriptor >> 20 & 0x1f)
	if !data || surface != 0xff || !read && !write {
		return t.forget(in.operands[0], answer)
	}
	header, err := t.wholeRegister(in.operands[1])
	if err != nil {
		return err
	}
	if !in.hasNoMask || in.predicate != "" {
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
	register := in.operands[0]
	if write {
		register = in.operands[2]
	}
	return t.block(register, write, at, owords*16, answer)
}

// wholeRegister are the bytes from a register on that an operand of a message
// names.
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
func (t *Thread) block(register string, write bool, at uint64, size, answer int) error {
	r, err := t.wholeRegister(register)
	if err != nil {
		return err
	}
	if at+uint64(size) > uint64(len(t.Scratch)) || size > len(r) {
		return fmt.Errorf("%d bytes of the stack at %#x", size, at)
	}
	if write {
		copy(t.Scratch[at:], r[:size])
		return nil
	}
	if answer*t.RegisterSize < size {
		return fmt.Errorf("%d bytes into %d registers", size, answer)
	}
	copy(r, t.Scratch[at:at+uint64(size)])
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

// loadStore executes a message of the newer form: load.ugm.d32x8t.a32 r5:1
// ss[a0.2][r126:1], where the stack is the surface that a0.2 names.
func (t *Thread) loadStore(in *Instruction, op string) error {
	if len(in.operands) != 2 {
		return errors.New("a message that is not known here")
	}
	register, address := in.operands[0], in.operands[1]
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
	parts := strings.Split(in.Op, ".")
	if n, err := fmt.Sscanf(parts[2], "d32x%dt", &elements); n != 1 || err != nil || parts[3] != "a32" || surface != "ss[a0.2" || in.width != 1 || !in.hasNoMask || in.predicate != "" {
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
