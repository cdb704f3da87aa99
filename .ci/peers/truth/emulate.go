// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"sort"
	"strconv"
	"strings"
)

// This file follows code of x86-64 by the text that objdump has of it, along all paths, and
// keeps what each register and each word of the frame holds, as far as that is known. It
// shares nothing with the engine and its plugins.

// value is a register's value at the function's entry, plus a number; register is 0 for
// an unknown value, and else one more than the register's index, or aligned.
type value struct {
	register uint8
	off      int64
}

// aligned stands for the stack pointer where a function has aligned it. Words that are found by
// it are apart from those that are found by the entry's, as if they were that far below.
const (
	aligned   = 17
	alignedAt = -1 << 40
)

// place is where an address is in the frame.
func (v value) place() (offset int64, ok bool) {
	if v.register == aligned {
		return v.off + alignedAt, true
	}
	return v.off, v.register == rsp+1
}

// The general registers, in the order of their encodings.
var registerNames = [16][4]string{
	{"rax", "eax", "ax", "al"}, {"rcx", "ecx", "cx", "cl"}, {"rdx", "edx", "dx", "dl"}, {"rbx", "ebx", "bx", "bl"},
	{"rsp", "esp", "sp", "spl"}, {"rbp", "ebp", "bp", "bpl"}, {"rsi", "esi", "si", "sil"}, {"rdi", "edi", "di", "dil"},
	{"r8", "r8d", "r8w", "r8b"}, {"r9", "r9d", "r9w", "r9b"}, {"r10", "r10d", "r10w", "r10b"}, {"r11", "r11d", "r11w", "r11b"},
	{"r12", "r12d", "r12w", "r12b"}, {"r13", "r13d", "r13w", "r13b"}, {"r14", "r14d", "r14w", "r14b"}, {"r15", "r15d", "r15w", "r15b"},
}

const (
	rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi = 0, 1, 2, 3, 4, 5, 6, 7
)

var registerIndex = func() map[string]int {
	m := map[string]int{"ah": rax, "bh": rbx, "ch": rcx, "dh": rdx}
	for i, names := range registerNames {
		for _, name := range names {
			m[name] = i
		}
	}
	return m
}()

// frameState has the known values before an instruction. Words are by their distance from
// the return address.
type frameState struct {
	regs  [16]value
	words map[int64]value
	// alignedFrom is the stack pointer that was aligned, by its distance from the return address.
	alignedFrom int64
}

func entryState() *frameState {
	s := &frameState{words: map[int64]value{}}
	for i := range s.regs {
		s.regs[i] = value{register: uint8(i + 1)} //nolint:gosec // below 16
	}
	return s
}

func (s *frameState) clone() *frameState {
	c := &frameState{regs: s.regs, alignedFrom: s.alignedFrom, words: make(map[int64]value, len(s.words))}
	for k, v := range s.words {
		c.words[k] = v
	}
	return c
}

// join keeps the values that both states have, and returns whether some were lost.
func (s *frameState) join(o *frameState) (changed bool) {
	for i := range s.regs {
		if s.regs[i] != o.regs[i] && s.regs[i].register != 0 {
			s.regs[i], changed = value{}, true
		}
	}
	for k, v := range s.words {
		if o.words[k] != v || k < alignedAt/2 && s.alignedFrom != o.alignedFrom {
			delete(s.words, k)
			changed = true
		}
	}
	return changed
}

// line is an instruction as objdump writes it.
type line struct {
	address  uint64
	mnemonic string
	operands []string
	symbol   string // that an operand is the address of
}

// parseLine reads "  401000:\tpush   rbp".
func parseLine(text string) (l line, ok bool) {
	at, rest, ok := strings.Cut(text, ":\t")
	if !ok {
		return l, false
	}
	address, err := strconv.ParseUint(strings.TrimSpace(at), 16, 64)
	if err != nil {
		return l, false
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, symbol, _ := strings.Cut(rest, "<")
	fields := strings.Fields(rest)
	for len(fields) > 1 && slices.Contains([]string{"rep", "repz", "repnz", "lock", "notrack", "bnd", "data16", "cs", "ds", "addr32"}, fields[0]) || len(fields) > 1 && strings.HasPrefix(fields[0], "rex") {
		if strings.HasPrefix(fields[0], "rep") && fields[1] != "ret" {
			break
		}
		fields = fields[1:]
	}
	if len(fields) == 0 {
		return l, false
	}
	symbol, _, _ = strings.Cut(strings.TrimSuffix(symbol, ">"), "@")
	l = line{address: address, mnemonic: fields[0], symbol: symbol}
	if more := strings.Join(fields[1:], " "); more != "" {
		l.operands = strings.Split(more, ",")
	}
	return l, true
}

// memoryOperand reads "QWORD PTR [rsp+0x8]": the register and the number that is added.
func memoryOperand(text string) (register int, off int64, size int, ok bool) {
	kind, inner, ok := strings.Cut(text, "[")
	if !ok || strings.Contains(kind, "fs:") || strings.Contains(kind, "gs:") {
		return 0, 0, 0, false
	}
	for word, n := range map[string]int{"QWORD": 8, "DWORD": 4, "XMMWORD": 16, "YMMWORD": 32, "ZMMWORD": 64, "TBYTE": 10} {
		if strings.HasPrefix(kind, word+" ") {
			size = n
		}
	}
	if strings.HasPrefix(kind, "WORD ") {
		size = 2
	}
	size = max(size, 1)
	inner = strings.TrimSuffix(inner, "]")
	i := strings.IndexAny(inner, "+-")
	name := inner
	if i >= 0 {
		name = inner[:i]
		n, err := strconv.ParseInt(inner[i:], 0, 64)
		if err != nil {
			return 0, 0, 0, false // it has an index
		}
		off = n
	}
	register, ok = registerIndex[name]
	return register, off, size, ok && len(name) > 1 && name[0] == 'r'
}

// reach is the place of a memory operand in the frame.
func (s *frameState) reach(text string) (offset int64, size int, ok bool) {
	register, off, size, ok := memoryOperand(text)
	if !ok {
		return 0, size, false
	}
	offset, ok = s.regs[register].place()
	return offset + off, size, ok
}

func (s *frameState) store(offset int64, size int, v value) {
	isAligned := offset < alignedAt/2
	for k := range s.words {
		// Memory below an aligned stack pointer may be found by both registers.
		isBoth := k < alignedAt/2 != isAligned && (isAligned && k < s.alignedFrom || !isAligned && offset < s.alignedFrom)
		if k < offset+int64(size) && offset < k+8 || isBoth {
			delete(s.words, k)
		}
	}
	if size == 8 && v.register != 0 {
		s.words[offset] = v
	}
}

// number reads an immediate operand.
func number(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 0, 64)
	if err == nil {
		return n, true
	}
	u, err := strconv.ParseUint(text, 0, 64)
	return int64(u), err == nil //nolint:gosec // its bits
}

// isWhole reports whether an operand is a register of 64 bits, and which.
func isWhole(text string) (int, bool) {
	i, ok := registerIndex[text]
	return i, ok && registerNames[i][0] == text
}

// The instructions that write no general register.
var readOnly = map[string]bool{
	"cmp": true, "test": true, "bt": true, "nop": true, "endbr64": true, "prefetcht0": true, "ptest": true, "hint": true,
}

// The registers that instructions write without naming them, beside string instructions.
var implied = map[string][]int{
	"mul": {rax, rdx}, "div": {rax, rdx}, "idiv": {rax, rdx}, "cqo": {rdx}, "cdq": {rdx}, "cwd": {rdx}, "cdqe": {rax}, "cwde": {rax}, "cbw": {rax},
	"cpuid": {rax, rbx, rcx, rdx}, "rdtsc": {rax, rdx}, "rdtscp": {rax, rcx, rdx}, "xgetbv": {rax, rdx}, "syscall": {rax, rcx, 11}, "cmpxchg": {rax},
	"cmpxchg16b": {rax, rdx}, "cmpxchg8b": {rax, rdx}, "xlat": {rax}, "lahf": {rax}, "rdpkru": {rax, rdx},
}

// callerSaved are the registers that a call may change.
var callerSaved = [...]int{rax, rcx, rdx, rsi, rdi, 8, 9, 10, 11}

// execute does what an instruction does to the state.
func (s *frameState) execute(l *line) {
	var first, second string
	if len(l.operands) > 0 {
		first = l.operands[0]
	}
	if len(l.operands) > 1 {
		second = l.operands[1]
	}
	dst, isDst := isWhole(first)
	switch m := l.mnemonic; {
	case m == "push" && isDst:
		s.push(s.regs[dst])
	case m == "push" || m == "pushf" || m == "pushfq":
		s.push(value{})
	case m == "popf" || m == "popfq":
		s.pop()
	case m == "pop":
		v := s.pop()
		if isDst {
			s.regs[dst] = v
		}
	case m == "leave":
		s.regs[rsp] = s.regs[rbp]
		s.regs[rbp] = s.pop()
	case m == "call":
		for _, r := range callerSaved {
			s.regs[r] = value{}
		}
	case m == "mov" || m == "movabs":
		s.move(first, second)
	case m == "lea" && isDst:
		register, off, _, ok := memoryOperand("[" + strings.SplitN(second, "[", 2)[1])
		v := value{}
		if ok && s.regs[register].register != 0 {
			v = value{s.regs[register].register, s.regs[register].off + off}
		}
		s.regs[dst] = v
	case (m == "add" || m == "sub") && isDst:
		n, ok := number(second)
		if m == "sub" {
			n = -n
		}
		if !ok || s.regs[dst].register == 0 {
			s.regs[dst] = value{}
			return
		}
		s.regs[dst].off += n
	case m == "and" && isDst && dst == rsp && s.regs[rsp].register == rsp+1:
		s.align()
	case m == "xchg":
		a, isA := registerIndex[first]
		b, isB := registerIndex[second]
		switch {
		case isA && isB && isDst:
			s.regs[a], s.regs[b] = s.regs[b], s.regs[a]
		default:
			s.forget(first)
			s.forget(second)
		}
	default:
		s.other(l)
	}
}

// push stores a word below the stack pointer.
func (s *frameState) push(v value) {
	sp := &s.regs[rsp]
	sp.off -= 8
	if at, ok := sp.place(); ok {
		s.store(at, 8, v)
	}
}

// pop takes the word at the stack pointer.
func (s *frameState) pop() (v value) {
	sp := &s.regs[rsp]
	if at, ok := sp.place(); ok {
		v = s.words[at]
	}
	sp.off += 8
	return v
}

// align takes that the stack pointer was aligned.
func (s *frameState) align() {
	s.alignedFrom = s.regs[rsp].off
	s.regs[rsp] = value{register: aligned}
	for k := range s.words {
		if k < s.alignedFrom {
			delete(s.words, k)
		}
	}
}

// move is mov, between registers and the frame.
func (s *frameState) move(to, from string) {
	v := value{}
	if r, ok := isWhole(from); ok {
		v = s.regs[r]
	} else if at, size, ok := s.reach(from); ok && size == 8 {
		v = s.words[at]
	}
	if r, ok := isWhole(to); ok {
		s.regs[r] = v
		return
	}
	if at, size, ok := s.reach(to); ok {
		if r, isRegister := registerIndex[from]; isRegister && registerNames[r][0] != from {
			v = value{}
		}
		s.store(at, size, v)
		return
	}
	s.forget(to)
}

// other is any instruction that keeps nothing of what it writes.
func (s *frameState) other(l *line) {
	m := l.mnemonic
	for _, r := range implied[m] {
		s.regs[r] = value{}
	}
	if m == "imul" && len(l.operands) == 1 {
		s.regs[rax], s.regs[rdx] = value{}, value{}
		return
	}
	for _, prefix := range []string{"rep", "movs", "stos", "lods", "scas", "cmps"} {
		if strings.HasPrefix(m, prefix) && !strings.HasPrefix(m, "movsx") {
			s.regs[rsi], s.regs[rdi], s.regs[rcx] = value{}, value{}, value{}
			if prefix == "lods" || prefix == "rep" {
				s.regs[rax] = value{}
			}
		}
	}
	if readOnly[m] || m[0] == 'j' || strings.Contains(m, "comis") || len(l.operands) == 0 {
		return
	}
	if m == "or" && strings.TrimSpace(l.operands[1]) == "0x0" {
		return // a barrier
	}
	s.forget(l.operands[0])
	if m == "xadd" || m == "mulx" {
		s.forget(l.operands[1])
	}
}

// forget takes that an operand was written.
func (s *frameState) forget(operand string) {
	if r, ok := registerIndex[operand]; ok {
		s.regs[r] = value{}
		return
	}
	if at, size, ok := s.reach(operand); ok {
		s.store(at, size, value{})
	}
}

// maxJoins bounds how often the state before an instruction may change.
const maxJoins = 200

// emulate gives the state before each instruction of a function that can be reached from its
// entry; those behind jumps through tables are missing. isEndless says which calls do not return.
func emulate(code []line, isEndless func(l *line) bool) map[uint64]*frameState {
	states := map[uint64]*frameState{code[0].address: entryState()}
	list, joins := []int{0}, map[uint64]int{}
	for len(list) > 0 {
		i := list[len(list)-1]
		list = list[:len(list)-1]
		l := &code[i]
		after := states[l.address].clone()
		after.execute(l)
		if isEndless(l) {
			continue
		}
		nexts, _ := successors(code, i)
		for _, next := range nexts {
			at := code[next].address
			known := states[at]
			switch {
			case known == nil:
				states[at] = after.clone()
			case joins[at] > maxJoins || !known.join(after):
				continue
			}
			joins[at]++
			list = append(list, next)
		}
	}
	return states
}

// isEnd reports whether no instruction follows.
func isEnd(l *line) bool {
	switch l.mnemonic {
	case "ret", "hlt", "ud2", "ud1", "int3", "(bad)", "iretq":
		return true
	}
	return false
}

func (l *line) isJump() bool {
	return len(l.operands) > 0 && (l.mnemonic[0] == 'j' || l.mnemonic == "xbegin" || strings.HasPrefix(l.mnemonic, "loop"))
}

// successors are the instructions of a function that may be next; isOut says that the next one
// may be elsewhere.
func successors(code []line, i int) (next []int, isOut bool) {
	l := &code[i]
	switch {
	case l.mnemonic == "ret" || l.mnemonic == "iretq":
		return nil, true
	case isEnd(l):
		return nil, false
	case l.isJump():
		target, err := strconv.ParseUint(l.operands[0], 16, 64)
		n := sort.Search(len(code), func(n int) bool { return code[n].address >= target })
		if err != nil || n == len(code) || code[n].address != target {
			return nil, true
		}
		next = append(next, n)
	}
	switch {
	case l.mnemonic == "jmp":
		return next, false
	case i+1 == len(code):
		return next, l.mnemonic != "call"
	}
	return append(next, i+1), false
}
