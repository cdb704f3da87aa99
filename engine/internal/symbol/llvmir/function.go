// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"iter"
	"strconv"
	"strings"
	"sync"
)

// Function is a function that the module defines.
type Function struct {
	module       *Module
	start        uint32 // offset of "define"
	name         uint32 // offset
	dbg          uint32 // offset of the node behind !dbg; 0: none
	end          uint32 // offset behind the body
	group        uint32 // offset of the last group of attributes; 0: none
	isNoInline   bool   // one of its own attributes forbids inlining
	instructions []instruction
	records      []record
	blocks       []block
}

// instruction is the place of an instruction in the text.
type instruction struct {
	start, end uint32 // offsets of its first byte and of the text behind it
	dbg        uint32 // offset of the node behind !dbg; 0: none
}

// record is a debug record, or a call of a debug intrinsic.
type record struct {
	kind   RecordKind
	isCall bool   // an intrinsic: the position is behind its !dbg
	start  uint32 // offset of its first byte
	args   uint32 // offset of the "(" of its arguments
	dbg    uint32 // of an intrinsic, as in instruction
	before int32  // the index of the next instruction
}

// block is a basic block.
type block struct {
	label uint32 // offset; 0: it has no label of its own
	// number is the number of a block without a label; -1: it has none, or it is unknown.
	number int32
	first  int32 // index of its first instruction
	record int32 // index of its first record
}

// RecordKind is the kind of a debug record.
type RecordKind uint8

// The kinds of records. The intrinsics are named likewise: llvm.dbg.declare.
const (
	UnknownRecord      RecordKind = iota
	DeclareRecord                 // #dbg_declare: the place of a variable for its whole scope
	ValueRecord                   // #dbg_value: the value of a variable from here on
	AssignRecord                  // #dbg_assign: the value, and the place where it was stored
	AddrRecord                    // llvm.dbg.addr: the place of a variable from here on
	DeclareValueRecord            // #dbg_declare_value: the value of a variable for its whole scope
	LabelRecord                   // #dbg_label: a label of the source
	DefRecord                     // llvm.dbg.def of older ROCm: the place of a variable from here on
	KillRecord                    // llvm.dbg.kill: the end of a llvm.dbg.def
)

// recordKinds are the kinds by the name after "#dbg_" or "llvm.dbg.".
var recordKinds = map[string]RecordKind{
	"declare": DeclareRecord, "value": ValueRecord, "assign": AssignRecord,
	"addr": AddrRecord, "declare_value": DeclareValueRecord, "label": LabelRecord,
	"def": DefRecord, "kill": KillRecord,
}

const (
	recordPrefix    = "#dbg_"
	intrinsicPrefix = "@llvm.dbg."
)

// opcodes are the words that begin an instruction, or follow "%x =". The value is true for
// an opcode that ends a block.
var opcodes = sync.OnceValue(func() map[string]bool {
	opcodes := map[string]bool{}
	for _, word := range strings.Fields(`
		fneg add fadd sub fsub mul fmul udiv sdiv fdiv urem srem frem shl lshr ashr and or xor
		extractelement insertelement shufflevector extractvalue insertvalue
		alloca load store fence cmpxchg atomicrmw getelementptr
		trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint ptrtoaddr inttoptr bitcast addrspacecast
		icmp fcmp phi select freeze call va_arg landingpad catchpad cleanuppad
		tail musttail notail`) {
		opcodes[word] = false
	}
	for _, word := range strings.Fields("ret br switch indirectbr invoke callbr resume catchswitch catchret cleanupret unreachable") {
		opcodes[word] = true
	}
	return opcodes
})

// constantFlags are the words that may be between the opcode of a constant expression and
// its bracket.
var constantFlags = sync.OnceValue(func() map[string]bool {
	return wordSet(`nuw nsw exact disjoint nneg inbounds nusw inrange samesign
	eq ne ugt uge ult ule sgt sge slt sle oeq ogt oge olt ole one ord ueq une uno true false`)
})

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// function reads a function from its "define" on; it is false where there is none.
func (s *scanner) function(define token) bool {
	f := Function{module: s.Module, start: uint32(define.start)}
	params, ok := s.header(&f)
	if !ok {
		return false
	}
	b := bodyScanner{scanner: s, f: &f, next: params}
	b.body()
	f.end = uint32(s.pos)
	s.functions = append(s.functions, f)
	return true
}

// header reads a function up to the bracket of its body. It returns the first number for
// values without a name that parameters do not use.
func (s *scanner) header(f *Function) (next int32, ok bool) {
	named := false
	for {
		before := s.pos
		t := s.lexer.next()
		switch {
		case t.kind == endToken, s.beginsTop(t):
			s.problem(int(f.start), "the body of a function is expected")
			s.pos = before
			return 0, false
		case t.kind == globalToken && !named:
			f.name, named = uint32(t.start), true
			if !s.is(s.peek(), '(') {
				s.problem(t.start, "the parameters of a function are expected behind its name")
				return 0, false
			}
			next = s.parameters()
		case t.kind == nameToken && string(s.text(t)) == "!dbg":
			f.dbg = uint32(s.peek().start)
		case t.kind == bangToken && s.is(s.peek(), '{'), // a node in place of a reference
			t.kind == nameToken && s.is(s.peek(), '('):
			s.skipBrackets(s.lexer.next())
		case t.kind == hashToken && named:
			f.group = uint32(t.start)
		case t.kind == wordToken && named && forbidsInlining(string(s.text(t))):
			f.isNoInline = true
		case t.kind == wordToken && named && isConstantWord(string(s.text(t))):
			// A type and a constant, either of which may be a structure.
			for range 2 {
				if s.is(s.peek(), '{') {
					s.skipBrackets(s.lexer.next())
				}
			}
		case s.is(t, '{') && named:
			return next, true
		case s.is(t, '('), s.is(t, '['), s.is(t, '{'):
			s.skipBrackets(t)
		}
	}
}

func isConstantWord(word string) bool { return word == "prefix" || word == "prologue" }

// parameters skips a list of parameters. It returns the number of the first value without a
// name in the body.
func (s *scanner) parameters() (next int32) {
	s.lexer.next() // the bracket
	typed, named := false, false
	end := func() {
		if typed && !named && next < 1<<30 {
			next++
		}
		typed, named = false, false
	}
	for {
		before := s.pos
		t := s.lexer.next()
		switch {
		case t.kind == endToken, s.beginsTop(t):
			s.pos = before
			return next
		case s.is(t, ')'):
			end()
			return next
		case s.is(t, ','):
			end()
		case s.is(t, '('), s.is(t, '['), s.is(t, '{'):
			typed = true
			s.skipBrackets(t)
		case s.is(t, '<'), s.is(t, '>'), s.is(t, '*'):
		case t.kind == localToken:
			// The last token is the parameter; others are types.
			typed = true
			if p := s.peek(); s.is(p, ',') || s.is(p, ')') {
				named = true
				if n, ok := number(s.text(t)); ok {
					next = n + 1
				}
			}
		case t.kind == wordToken && string(s.text(t)) == "...":
		default:
			typed = true
		}
	}
}

// number is the number of a value without a name: 12 of %12.
func number(text []byte) (int32, bool) {
	n, err := strconv.ParseUint(strings.TrimLeft(string(text), "%"), 10, 30)
	return int32(n), err == nil
}

// bodyScanner finds the instructions of a function. An instruction has no end mark: the
// next one begins with "%x =" or an opcode.
type bodyScanner struct {
	*scanner
	f    *Function
	next int32 // the number of the next value or block without a name; -1: unknown

	// The instruction that is being read.
	isOpen       bool
	start        int
	opcode       string
	endsBlock    bool // its block
	commas       int
	hasCallee    bool // the function that it calls is read
	dbg          uint32
	kind         RecordKind
	isRecord     bool
	args         int
	isTerminated bool // the last instruction ended its block
	stack        []byte
}

// body reads instructions up to the bracket that ends the function.
func (b *bodyScanner) body() {
	b.block(token{})
	for {
		before := b.pos
		t := b.lexer.next()
		switch {
		case t.kind == endToken:
			b.finish(before)
			b.problem(int(b.f.start), "the function %s does not end", b.nameText())
			return
		case b.beginsTop(t):
			b.finish(before)
			b.problem(t.start, "the function %s does not end before this line", b.nameText())
			b.pos = before
			return
		case len(b.stack) > 0:
			if b.inBrackets(t) {
				return
			}
		case b.is(t, '}'):
			b.finish(t.start)
			return
		case t.kind == labelToken:
			b.finish(t.start)
			b.block(t)
		case t.kind == hashToken && strings.HasPrefix(string(b.text(t)), recordPrefix):
			b.finish(t.start)
			b.debugRecord(t)
		case t.kind == localToken && b.is(b.peek(), '='):
			b.finish(t.start)
			b.lexer.next()
			b.begin(t)
			b.result(t)
		case t.kind == wordToken:
			b.word(t)
		case t.kind == nameToken && string(b.text(t)) == "!dbg":
			if next := b.peek(); b.isOpen && b.dbg == 0 && (next.kind == nodeToken || next.kind == nameToken || next.kind == bangToken) {
				b.dbg = uint32(next.start)
			}
		case t.kind == globalToken:
			b.global(t)
		case t.kind == otherToken:
			switch c := b.data[t.start]; c {
			case '(', '[', '{':
				b.stack = append(b.stack, closing[c])
				if b.isRecord && b.args == 0 && c == '(' {
					b.args = t.start
				}
			case ',':
				b.commas++
			}
		}
	}
}

func (b *bodyScanner) nameText() string { return shorten(b.text(b.tokenAt(int(b.f.name)))) }

// tokenAt reads the token at an offset.
func (l *lexer) tokenAt(offset int) token {
	copied := lexer{l.data, offset}
	return copied.next()
}

// inBrackets reads a token between brackets. ends is set where the function ends with
// brackets open.
func (b *bodyScanner) inBrackets(t token) (ends bool) {
	if t.kind != otherToken {
		return false
	}
	switch c := b.data[t.start]; c {
	case '(', '[', '{':
		if len(b.stack) == maxDepth {
			b.problem(t.start, "brackets within %d brackets", maxDepth)
			b.stack = b.stack[:0]
			return false
		}
		b.stack = append(b.stack, closing[c])
	case ')', ']', '}':
		want := b.stack[len(b.stack)-1]
		switch {
		case c == want:
			b.stack = b.stack[:len(b.stack)-1]
		case c == '}' && b.beginsLine(t):
			b.problem(t.start, "%q expected, the function %s ends", want, b.nameText())
			b.stack = b.stack[:0]
			b.finish(t.start)
			return true
		default:
			b.problem(t.start, "%q expected, found %q", want, c)
			b.stack = b.stack[:0]
		}
	}
	return false
}

// begin starts an instruction.
func (b *bodyScanner) begin(t token) {
	if b.isTerminated {
		b.block(token{}) // an unnamed block
	}
	*b = bodyScanner{scanner: b.scanner, f: b.f, next: b.next, stack: b.stack, isOpen: true, start: t.start}
}

// result counts the value that an instruction defines.
func (b *bodyScanner) result(t token) {
	if n, ok := number(b.text(t)); ok {
		b.next = n + 1
	}
}

// block begins a basic block: at a label, or without one.
func (b *bodyScanner) block(label token) {
	k := block{label: uint32(label.start), number: -1, first: int32(len(b.f.instructions)), record: int32(len(b.f.records))}
	b.isTerminated = false
	if n := len(b.f.blocks); label.end != 0 && n > 0 && b.f.blocks[n-1].label == 0 && n == 1 && k.first == 0 && k.record == 0 {
		b.f.blocks = b.f.blocks[:0] // the entry block has a label
		if b.next > 0 {
			b.next-- // no number was needed
		}
	}
	switch {
	case label.end == 0 && b.next >= 0:
		k.number = b.next
		b.next++
	case label.end != 0:
		if n, ok := number(b.text(label)); ok {
			b.next = n + 1
		}
	}
	b.f.blocks = append(b.f.blocks, k)
}

// finish ends the current instruction before the offset end.
func (b *bodyScanner) finish(end int) {
	if !b.isOpen {
		return
	}
	b.isOpen = false
	b.isTerminated = b.endsBlock
	switch {
	case b.isRecord:
		if b.args == 0 {
			b.problem(b.start, "the arguments of a debug intrinsic are expected")
			return
		}
		b.f.records = append(b.f.records, record{
			kind: b.kind, isCall: true, start: uint32(b.start), args: uint32(b.args), dbg: b.dbg, before: int32(len(b.f.instructions)),
		})
	case b.opcode == "":
		b.problem(b.start, "an instruction is expected")
	case b.opcode != "uselistorder" && b.opcode != "uselistorder_bb":
		b.f.instructions = append(b.f.instructions, instruction{uint32(b.start), uint32(end), b.dbg})
	}
}

// word reads a word outside brackets.
func (b *bodyScanner) word(t token) {
	word := string(b.text(t))
	if b.isOpen && b.opcode == "" {
		b.setOpcode(word)
		return
	}
	ends, known := opcodes()[word]
	switch {
	case word == "uselistorder", word == "uselistorder_bb":
	case !known:
		if !b.isOpen {
			b.problem(t.start, "an instruction is expected, found %s", shorten(b.text(t)))
			b.skipLine()
		}
		return
	case b.opcode == "tail" || b.opcode == "musttail" || b.opcode == "notail":
		b.opcode = word
		return
	case b.opcode == "atomicrmw" && b.commas == 0: // its operation
		return
	case !ends && b.isConstant():
		return
	}
	b.finish(t.start)
	if !known { // no instruction, and in no block
		b.isTerminated = false
	}
	b.begin(t)
	b.setOpcode(word)
}

func (b *bodyScanner) setOpcode(word string) {
	b.opcode = word
	b.endsBlock = opcodes()[word]
}

// isConstant reports whether an opcode, which is read, begins a constant expression: a
// bracket follows.
func (b *bodyScanner) isConstant() bool {
	ahead := b.lexer
	for {
		t := ahead.next()
		if ahead.is(t, '(') {
			return true
		}
		if t.kind != wordToken || !constantFlags()[string(ahead.text(t))] {
			return false
		}
	}
}

// global reads the name of a global value: the first one of a call is the callee.
func (b *bodyScanner) global(t token) {
	if !b.isOpen || b.hasCallee || b.opcode != "call" {
		return
	}
	b.hasCallee = true
	name := strings.ReplaceAll(string(b.text(t)), `"`, "")
	if rest, ok := strings.CutPrefix(name, intrinsicPrefix); ok && b.is(b.peek(), '(') {
		// The intrinsics of old versions have the type in their name.
		b.isRecord, b.kind = true, recordKinds[rest]
	}
}

// debugRecord reads #dbg_value(...).
func (b *bodyScanner) debugRecord(t token) {
	if !b.is(b.peek(), '(') {
		b.problem(t.start, "the arguments of a debug record are expected")
		return
	}
	open := b.lexer.next()
	b.f.records = append(b.f.records, record{
		kind:  recordKinds[strings.TrimPrefix(string(b.text(t)), recordPrefix)],
		start: uint32(t.start), args: uint32(open.start), before: int32(len(b.f.instructions)),
	})
	b.skipBrackets(open)
}

// Name is the linker's name of the function, without a leading \x01, which means that no
// prefix is to be added.
func (f *Function) Name() string {
	m := f.module
	l := lexer{data: m.source}
	return strings.TrimPrefix(unquote(l.text(l.tokenAt(int(f.name)))), "\x01")
}

// Instruction is an instruction of a function.
type Instruction struct {
	Index  int    // in the function, from 0, debug intrinsics and records not counted
	Offset int    // in the text, bytes
	Result string // "x" of "%x = ..."; "" where it has no name or number
	Opcode string // "load"
}

// Instruction returns an instruction of the function.
func (f *Function) Instruction(index int) Instruction {
	inst := &f.instructions[index]
	text := f.module.source[inst.start:inst.end]
	out := Instruction{Index: index, Offset: int(inst.start)}
	l := lexer{data: text}
	t := l.next()
	if t.kind == localToken {
		out.Result = unquote(l.text(t))
		l.next()
		t = l.next()
	}
	out.Opcode = string(l.text(t))
	switch out.Opcode {
	case "tail", "musttail", "notail":
		out.Opcode = string(l.text(l.next()))
	}
	return out
}

// Instructions are the instructions of the function.
func (f *Function) Instructions() iter.Seq[Instruction] {
	return func(yield func(Instruction) bool) {
		for i := range f.instructions {
			if !yield(f.Instruction(i)) {
				return
			}
		}
	}
}
