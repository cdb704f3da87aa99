package engine

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

// This file runs Gen code as far as its stack needs it. Instructions that move,
// add and mask integers, those that write and read the stack in scratch memory,
// and control flow are executed as they are. Any other one leaves random bytes
// in its destination, and is an error where that is a register that frames are
// found by. Which way a branch goes is chosen at random: what a frame needs does
// not depend on it.

// A genCall is a call that has not returned.
type genCall struct {
	call      *genInstruction
	ip        uint64 // where it returns to
	mask      uint32 // the channels that called
	registers []byte // what the callee found when it began
	flags     []byte
	address   []byte
}

// A genMachine is a hardware thread.
type genMachine struct {
	*genAssembly
	random  *rand.Rand
	base    uint64 // the IP of the first instruction
	grf     []byte
	address [32]byte // a0
	flags   [8]byte  // f0 and f1, two halves of 16 channels each
	mask    uint32   // the channels that are enabled
	stack   []byte   // the thread's scratch memory
	surface uint32   // where that is, as r0.5 says it
	next    int      // the instruction that is executed next
	calls   []genCall
	deepest int // calls that may be under way at once
}

// newGenMachine is a thread at the start of a kernel.
func newGenMachine(a *genAssembly, base uint64, deepest int, random *rand.Rand) *genMachine {
	m := &genMachine{genAssembly: a, base: base, deepest: deepest, random: random}
	m.grf = m.some(make([]byte, a.registers*a.size))
	m.stack = m.some(make([]byte, 1<<18))
	m.some(m.address[:])
	m.some(m.flags[:])
	m.mask = m.subset(1<<a.width - 1)
	m.surface = binary.LittleEndian.Uint32(m.grf[5*4:]) &^ 0x3ff
	return m
}

// some fills bytes at random.
func (m *genMachine) some(b []byte) []byte {
	for i := range b {
		b[i] = byte(m.random.Uint32())
	}
	return b
}

// subset is some of the channels of a mask, and at least one.
func (m *genMachine) subset(mask uint32) uint32 {
	for {
		if some := m.random.Uint32() & mask; some != 0 {
			return some
		}
	}
}

// entered are the channels that the function was called with.
func (m *genMachine) entered() uint32 {
	if n := len(m.calls); n > 0 {
		return m.calls[n-1].mask
	}
	return uint32(uint64(1)<<m.width - 1)
}

// in is the instruction that is executed next.
func (m *genMachine) in() *genInstruction { return m.instructions[m.next] }

// ip is the IP of an instruction.
func (m *genMachine) ip(in *genInstruction) uint64 { return m.base + in.offset }

// errEndOfThread says that the thread has ended.
var errEndOfThread = errors.New("end of thread")

// run executes until the thread ends, and calls visit before each instruction.
func (m *genMachine) run(visit func()) error {
	for range 1 << 20 {
		visit()
		in := m.in()
		switch err := m.step(in); {
		case errors.Is(err, errEndOfThread):
			return nil
		case err != nil:
			return fmt.Errorf("%s:%d: %s: %w", m.path, in.line, in.text, err)
		case m.next == len(m.instructions):
			return fmt.Errorf("%s:%d: nothing follows", m.path, in.line)
		}
	}
	return fmt.Errorf("%s: the thread does not end", m.path)
}

// step executes an instruction.
func (m *genMachine) step(in *genInstruction) error {
	op, _, _ := strings.Cut(in.op, ".")
	switch op {
	case "nop", "sync", "wait":
		m.next++
		return nil
	case "if", "else", "endif", "goto", "join", "break", "while", "jmpi":
		return m.branch(in, op)
	case "call":
		return m.call(in)
	case "ret":
		return m.ret(in)
	case "send", "sends", "load", "store":
		m.next++
		return m.send(in, op)
	}
	m.next++
	return m.calculate(in)
}

// target is the instruction that an operand names.
func (m *genMachine) target(label string) (int, error) {
	i, ok := m.labels[label]
	if !ok {
		return 0, fmt.Errorf("no label %s", label)
	}
	return i, nil
}

// branch goes on behind a branch or where it leads to if no channel goes on
// there.
func (m *genMachine) branch(in *genInstruction, op string) error {
	m.mask = m.subset(m.entered())
	at := m.next
	m.next++
	if op == "endif" || op == "join" {
		return nil
	}
	if len(in.operands) == 0 {
		return errors.New("a branch to nowhere")
	}
	to, err := m.target(in.operands[0])
	if err != nil {
		return err
	}
	jump := m.random.IntN(4) == 0
	if calls := m.callsBetween(at, to); calls > 0 {
		jump = len(m.calls) >= m.deepest
	}
	if in.predicate == "" && (op == "goto" || op == "jmpi") {
		jump = true
	}
	if jump {
		m.next = to
	}
	return nil
}

// callsBetween is how many calls a branch jumps over.
func (m *genMachine) callsBetween(at, to int) (n int) {
	for i := at; i < to; i++ {
		if m.instructions[i].op == "call" {
			n++
		}
	}
	return n
}

// returnRegister are the bytes that a call puts its return address and its
// channels into.
func (m *genMachine) returnRegister(in *genInstruction) ([]byte, error) {
	o, err := parseGenOperand(in.operands[0])
	if err != nil {
		return nil, err
	}
	if o.file != "r" {
		return nil, errors.New("its register is no GRF register")
	}
	at := o.register*m.size + o.sub*4
	return m.grf[at : at+8], nil
}

func (m *genMachine) call(in *genInstruction) error {
	if in.predicate != "" {
		return errors.New("a call with a predicate")
	}
	register, err := m.returnRegister(in)
	if err != nil {
		return err
	}
	to, err := m.target(in.operands[1])
	if err != nil {
		return err
	}
	ip := m.ip(in) + in.size
	binary.LittleEndian.PutUint32(register, uint32(ip))
	binary.LittleEndian.PutUint32(register[4:], m.mask)
	m.calls = append(m.calls, genCall{in, ip, m.mask, slices.Clone(m.grf), slices.Clone(m.flags[:]), slices.Clone(m.address[:])})
	m.next = to
	return nil
}

// ret returns, and checks that what the callee must keep is as it was: if the
// machine had left out an instruction that matters, it would not be.
func (m *genMachine) ret(in *genInstruction) error {
	if len(m.calls) == 0 {
		return errors.New("returns from a kernel")
	}
	register, err := m.returnRegister(in)
	if err != nil {
		return err
	}
	call := &m.calls[len(m.calls)-1]
	if in.operands[0] != call.call.operands[0] {
		return fmt.Errorf("returns from %s", call.call.text)
	}
	if ip := binary.LittleEndian.Uint32(register); ip != uint32(call.ip) || binary.LittleEndian.Uint32(register[4:]) != call.mask {
		return fmt.Errorf("returns to %#x instead of %#x", ip, call.ip)
	}
	if in.stackCall {
		for _, b := range m.kept() {
			if was, is := call.registers[b.first:b.first+b.count], m.grf[b.first:b.first+b.count]; !bytes.Equal(was, is) {
				return fmt.Errorf("byte %d of the registers is %x, and was %x", b.first, is, was)
			}
		}
	}
	i, ok := m.at[call.ip-m.base]
	if !ok {
		return fmt.Errorf("returns to %#x, where no instruction begins", call.ip)
	}
	m.next, m.mask = i, call.mask
	m.calls = m.calls[:len(m.calls)-1]
	return nil
}

// kept are the registers that a function keeps: the upper half of the first
// registers after those of the ABI, the frame pointer, and the stack pointer.
func (m *genMachine) kept() []genBytes {
	first := (m.registers - 8) / 2
	last := m.declared["be_fp"].first / m.size
	return []genBytes{{first * m.size, (last - first) * m.size}, m.declared["be_fp"], m.declared["be_sp"]}
}

// guarded says whether bytes of a file are those that frames are found by: the
// register of the frame and stack pointers, that of the headers of messages to
// scratch memory, and the address of its surface.
func (m *genMachine) guarded(file string, first, count int) bool {
	overlaps := func(from, size int) bool { return first < from+size && from < first+count }
	fp, stack := m.declared["be_fp"]
	switch {
	case !stack:
		return false
	case file == "r":
		return overlaps(fp.first/m.size*m.size, 2*m.size)
	}
	return file == "a" && overlaps(2*4, 4)
}

var errGuarded = errors.New("an instruction that is not known here changes what frames are found by")

// bytesOf are the bytes of a file, nil of those that are not kept.
func (m *genMachine) bytesOf(file string) []byte {
	switch file {
	case "r":
		return m.grf
	case "a":
		return m.address[:]
	case "f":
		return m.flags[:]
	}
	return nil
}

// place is where element i of an operand is in its file, by its region; row and
// column count elements.
func (m *genMachine) place(o *genOperand, elements int) int {
	at := (o.sub + elements) * o.size()
	switch o.file {
	case "r":
		at += o.register * m.size
	case "f":
		at += o.register * 4
	}
	return at
}

// source reads element i of a source; false where it is not known.
func (m *genMachine) source(o *genOperand, i int) (uint64, bool) {
	var v uint64
	switch file := m.bytesOf(o.file); {
	case o.absolute:
		return 0, false
	case o.file == "imm":
		v = o.value
	case file == nil || o.regions != 3 || o.region[1] == 0:
		return 0, false
	default:
		at := m.place(o, i/o.region[1]*o.region[0]+i%o.region[1]*o.region[2])
		if at+o.size() > len(file) {
			return 0, false
		}
		v = littleEndian(file[at : at+o.size()])
	}
	if genTypes[o.kind] < 0 {
		shift := 64 - 8*o.size()
		v = uint64(int64(v<<shift) >> shift)
	}
	return v, true
}

// unit is how many bytes the frame and stack pointers count.
func (m *genMachine) unit() uint64 {
	switch m.platform {
	case "SKL", "ICLLP", "TGLLP":
		return 16
	}
	return 1
}

// genOperations are the operations on integers that are executed.
var genOperations = map[string]func(v []uint64) uint64{
	"mov":  func(v []uint64) uint64 { return v[0] },
	"add":  func(v []uint64) uint64 { return v[0] + v[1] },
	"addc": func(v []uint64) uint64 { return v[0] + v[1] },
	"and":  func(v []uint64) uint64 { return v[0] & v[1] },
	"or":   func(v []uint64) uint64 { return v[0] | v[1] },
	"shl":  func(v []uint64) uint64 { return v[0] << (v[1] & 31) },
	"shr":  func(v []uint64) uint64 { return v[0] >> (v[1] & 31) },
}

// value is element i of the result; false where it is not known.
func (m *genMachine) value(in *genInstruction, dst *genOperand, sources []*genOperand, i int) (uint64, bool) {
	operation := genOperations[in.op]
	if operation == nil {
		return 0, false
	}
	var values []uint64
	for _, o := range sources {
		// Numbers that are no integers are only moved.
		if (o.float() || dst.float()) && (in.op != "mov" || o.kind != dst.kind || o.negated) {
			return 0, false
		}
		if o.kind == "v" || o.kind == "uv" || o.kind == "vf" {
			return 0, false
		}
		v, ok := m.source(o, i)
		if !ok {
			return 0, false
		}
		if o.negated {
			if in.op == "and" || in.op == "or" {
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
func (m *genMachine) enabled(in *genInstruction, i int) (bool, error) {
	if !in.noMask && m.mask>>(in.first+i)&1 == 0 {
		return false, nil
	}
	if in.predicate == "" || in.op == "sel" {
		return true, nil
	}
	name, negated := strings.CutPrefix(in.predicate, "~")
	parts := strings.SplitN(name, ".", 3)
	half := slices.Index([]string{"f0.0", "f0.1", "f1.0", "f1.1"}, strings.Join(parts[:min(2, len(parts))], "."))
	if half < 0 {
		return false, fmt.Errorf("the predicate %s", in.predicate)
	}
	all := binary.LittleEndian.Uint64(m.flags[:]) >> (16*half + in.first)
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
func (m *genMachine) calculate(in *genInstruction) error {
	if in.width == 0 || len(in.operands) < 2 {
		return errors.New("is not known here")
	}
	var operands []*genOperand
	for _, s := range in.operands {
		o, err := parseGenOperand(s)
		if err != nil {
			return err
		}
		operands = append(operands, o)
	}
	dst, sources := operands[0], operands[1:]
	if dst.file == "indirect" {
		return errors.New("its destination is not known")
	}
	file := m.bytesOf(dst.file)
	size := dst.size()
	type change struct {
		at    int
		value uint64
	}
	var changes []change
	for i := range in.width {
		enabled, err := m.enabled(in, i)
		if err != nil {
			return err
		}
		at := m.place(dst, i*max(dst.region[0], 1))
		if file != nil && at+size > len(file) {
			return errors.New("its destination is behind the last register")
		}
		v, ok := m.value(in, dst, sources, i)
		if !ok {
			if m.guarded(dst.file, at, size) {
				return errGuarded
			}
			v = m.random.Uint64()
		}
		if enabled {
			changes = append(changes, change{at, v})
		}
		if in.flag != "" && enabled {
			m.compare(in, i)
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

// compare sets the flag of a channel: one way or the other, but that a value is
// equal to itself.
func (m *genMachine) compare(in *genInstruction, i int) {
	half := slices.Index([]string{"f0.0", "f0.1", "f1.0", "f1.1"}, in.flag)
	bit := 16*half + in.first + i
	set := m.random.IntN(2) == 0
	if in.op == "cmp" && in.modifier == "eq" && in.operands[1] == in.operands[2] {
		set = true
	}
	m.flags[bit/8] &^= 1 << (bit % 8)
	if set {
		m.flags[bit/8] |= 1 << (bit % 8)
	}
}

// send executes a message. Those that write or read the stack are executed;
// others leave random bytes in the registers that they answer with.
func (m *genMachine) send(in *genInstruction, op string) error {
	if in.endOfThread {
		return errEndOfThread
	}
	if op == "load" || op == "store" {
		return m.loadStore(in, op)
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
	data := in.op == "send.dc0" || !strings.Contains(in.op, ".") && extended&0xf == 0xa
	kind, surface := descriptor>>14&0x1f, descriptor&0xff
	read, write := kind == 0, kind == 8
	answer := int(descriptor >> 20 & 0x1f)
	if !data || surface != 0xff || !read && !write {
		return m.forget(in.operands[0], answer)
	}
	header, err := m.wholeRegister(in.operands[1])
	if err != nil {
		return err
	}
	if !in.noMask || in.predicate != "" {
		return errors.New("a block of scratch memory for some channels only")
	}
	if base := binary.LittleEndian.Uint32(header[5*4:]) &^ 0x3ff; base != m.surface {
		return fmt.Errorf("a block of memory from %#x on, and scratch memory is at %#x", base, m.surface)
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
	return m.block(register, write, at, owords*16, answer)
}

// wholeRegister are the bytes from a register on that an operand of a message
// names.
func (m *genMachine) wholeRegister(operand string) ([]byte, error) {
	name, _, _ := strings.Cut(operand, ":")
	digits, ok := strings.CutPrefix(name, "r")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n >= m.registers {
		return nil, fmt.Errorf("%s is no register", operand)
	}
	return m.grf[n*m.size:], nil
}

// block moves a block between registers and the stack.
func (m *genMachine) block(register string, write bool, at uint64, size, answer int) error {
	r, err := m.wholeRegister(register)
	if err != nil {
		return err
	}
	if at+uint64(size) > uint64(len(m.stack)) || size > len(r) {
		return fmt.Errorf("%d bytes of the stack at %#x", size, at)
	}
	if write {
		copy(m.stack[at:], r[:size])
		return nil
	}
	if answer*m.size < size {
		return fmt.Errorf("%d bytes into %d registers", size, answer)
	}
	copy(r, m.stack[at:at+uint64(size)])
	return nil
}

// forget fills the registers of an answer.
func (m *genMachine) forget(register string, count int) error {
	if count == 0 {
		return nil
	}
	r, err := m.wholeRegister(register)
	if err != nil {
		return err
	}
	size := count * m.size
	if size > len(r) {
		return errors.New("its answer is longer than the registers")
	}
	if m.guarded("r", len(m.grf)-len(r), size) {
		return errGuarded
	}
	m.some(r[:size])
	return nil
}

// loadStore executes a message of the newer form: load.ugm.d32x8t.a32 r5:1
// ss[a0.2][r126:1], where the stack is the surface that a0.2 names.
func (m *genMachine) loadStore(in *genInstruction, op string) error {
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
		return m.forget(name, count)
	}
	var elements int
	parts := strings.Split(in.op, ".")
	if n, err := fmt.Sscanf(parts[2], "d32x%dt", &elements); n != 1 || err != nil || parts[3] != "a32" || surface != "ss[a0.2" || in.width != 1 || !in.noMask || in.predicate != "" {
		return errors.New("a message to scratch memory that is not known here")
	}
	if at := binary.LittleEndian.Uint32(m.address[2*4:]); at != m.surface>>4 {
		return fmt.Errorf("a message to the surface %#x, and scratch memory is at %#x", at, m.surface>>4)
	}
	h, err := m.wholeRegister(header)
	if err != nil {
		return err
	}
	return m.block(name, op == "store", uint64(binary.LittleEndian.Uint32(h)), elements*4, count)
}
