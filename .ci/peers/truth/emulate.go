// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strconv"
	"strings"
)

// This file follows code of x86-64 by the text that objdump has of it, along all paths, and
// keeps what each register and each word of the frame holds, as far as that is known. It
// shares nothing with the engine and its plugins.

// A value is what a register held at the function's entry, plus a number; of is 0 where it is
// not known, and else one more than the register's index.
type value struct {
	of  uint8
	off int64
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

// A frameState is what is known before an instruction. Words are by their distance from the
// return address.
type frameState struct {
	regs  [16]value
	words map[int64]value
}

func entryState() *frameState {
	s := &frameState{words: map[int64]value{}}
	for i := range s.regs {
		s.regs[i] = value{of: uint8(i + 1)} //nolint:gosec // below 16
	}
	return s
}

func (s *frameState) clone() *frameState {
	c := &frameState{regs: s.regs, words: make(map[int64]value, len(s.words))}
	for k, v := range s.words {
		c.words[k] = v
	}
	return c
}

// join keeps what both states know, and says whether less is known than before.
func (s *frameState) join(o *frameState) (changed bool) {
	for i := range s.regs {
		if s.regs[i] != o.regs[i] && s.regs[i].of != 0 {
			s.regs[i], changed = value{}, true
		}
	}
	for k, v := range s.words {
		if o.words[k] != v {
			delete(s.words, k)
			changed = true
		}
	}
	return changed
}

// A line is an instruction as objdump writes it.
type line struct {
	address  uint64
	mnemonic string
	operands []string
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
	rest, _, _ = strings.Cut(rest, "<")
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
	l = line{address: address, mnemonic: fields[0]}
	if more := strings.Join(fields[1:], " "); more != "" {
		l.operands = strings.Split(more, ",")
	}
	return l, true
}

// address reads "QWORD PTR [rsp+0x8]": the register and the number that is added.
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
func (s *frameState) reach(text string) (at int64, size int, ok bool) {
	register, off, size, ok := memoryOperand(text)
	if !ok || s.regs[register].of != rsp+1 {
		return 0, size, false
	}
	return s.regs[register].off + off, size, true
}

func (s *frameState) store(at int64, size int, v value) {
	for k := range s.words {
		if k < at+int64(size) && at < k+8 {
			delete(s.words, k)
		}
	}
	if size == 8 && v.of != 0 {
		s.words[at] = v
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

// isWhole says whether an operand is a register of 64 bits, and which.
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
	sp := &s.regs[rsp]
	switch m := l.mnemonic; {
	case m == "push":
		v := value{}
		if isDst {
			v = s.regs[dst]
		}
		sp.off -= 8
		if sp.of == rsp+1 {
			s.store(sp.off, 8, v)
		}
	case m == "pushf" || m == "pushfq":
		sp.off -= 8
		s.store(sp.off, 8, value{})
	case m == "popf" || m == "popfq":
		sp.off += 8
	case m == "pop":
		v := value{}
		if sp.of == rsp+1 {
			v = s.words[sp.off]
		}
		sp.off += 8
		if isDst {
			s.regs[dst] = v
		}
	case m == "leave":
		*sp = s.regs[rbp]
		s.regs[rbp] = value{}
		if sp.of == rsp+1 {
			s.regs[rbp] = s.words[sp.off]
		}
		sp.off += 8
	case m == "call":
		for _, r := range callerSaved {
			s.regs[r] = value{}
		}
	case m == "mov" || m == "movabs":
		s.move(first, second)
	case m == "lea" && isDst:
		register, off, _, ok := memoryOperand("[" + strings.SplitN(second, "[", 2)[1])
		v := value{}
		if ok && s.regs[register].of != 0 {
			v = value{s.regs[register].of, s.regs[register].off + off}
		}
		s.regs[dst] = v
	case (m == "add" || m == "sub") && isDst:
		n, ok := number(second)
		if m == "sub" {
			n = -n
		}
		if !ok || s.regs[dst].of == 0 {
			s.regs[dst] = value{}
			return
		}
		s.regs[dst].off += n
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
// entry; those behind jumps through tables are missing.
func emulate(code []line) map[uint64]*frameState {
	index := make(map[uint64]int, len(code))
	for i := range code {
		index[code[i].address] = i
	}
	states := map[uint64]*frameState{code[0].address: entryState()}
	list, joins := []int{0}, map[uint64]int{}
	for len(list) > 0 {
		i := list[len(list)-1]
		list = list[:len(list)-1]
		l := &code[i]
		after := states[l.address].clone()
		after.execute(l)
		for _, next := range follow(code, i, index) {
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

// follow are the instructions that may be next.
func follow(code []line, i int, index map[uint64]int) (next []int) {
	l := &code[i]
	m := l.mnemonic
	if m == "ret" || m == "hlt" || m == "ud2" || m == "ud1" || m == "int3" || m == "(bad)" || m == "iretq" {
		return nil
	}
	if len(l.operands) > 0 && (m[0] == 'j' || m == "xbegin" || strings.HasPrefix(m, "loop")) {
		if target, err := strconv.ParseUint(strings.TrimPrefix(l.operands[0], "0x"), 16, 64); err == nil {
			if to, ok := index[target]; ok {
				next = append(next, to)
			}
		}
	}
	if m != "jmp" && i+1 < len(code) {
		next = append(next, i+1)
	}
	return next
}
