// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/internal/leb128"
)

// Parse returns the bytes of an expression that is written as text:
// "OP operand operand; OP ...". A ";" may follow the last operation, and the
// empty text is the empty expression. Format is its inverse.
//
// Names of operations may be in any case and without their "DW_OP_". Those that
// approved proposals for DWARF 6 give to operations of the dialect, DW_OP_offset for
// DW_OP_LLVM_offset, are names too. Operands
// are separated by blanks or one comma. Integers are decimal or 0x numbers,
// with a sign where the operand is signed. Registers are names of o.Names or
// numbers; so are address spaces as the operand of a DW_OP_const*. The distance
// of a branch is in bytes from the end of its operation. A block is hex, or the
// operations "{ OP; ... }" in it.
//
// LEB128 operands are encoded in as few bytes as can be. Only the ranges
// of operands are checked, so the bytes may still be
// ill-formed, by a branch for instance. An error is a *TextError.
func Parse(text string, o TextOptions) ([]byte, error) {
	if o.Dialect == nil {
		o.Dialect = DWARF5
	}
	if o.AddressSize == 0 {
		o.AddressSize = 8
	}
	if o.OffsetSize == 0 {
		o.OffsetSize = 4
	}
	p := parser{text: text, TextOptions: o, found: map[string]found{}}
	out, err := p.operations(nil, 0)
	if err == nil && p.pos < len(text) {
		err = p.errorf(p.pos, "", "an operation is expected, found %s", p.here())
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// parser reads a text from its start to its end.
type parser struct {
	TextOptions
	text  string
	pos   int
	found map[string]found // by the name in the text
}

type found struct {
	op       *Operation
	encoding Encoding
}

func (p *parser) errorf(offset int, op string, format string, args ...any) error {
	return &TextError{Offset: offset, Op: op, Err: fmt.Errorf(format, args...)}
}

// here returns the text at the current position, for errors.
func (p *parser) here() string {
	if p.pos >= len(p.text) {
		return "the end of the text"
	}
	pos := p.pos
	word := p.word()
	p.pos = pos
	if word == "" {
		word = p.text[pos : pos+1]
	}
	return quote(word)
}

// quote quotes a word of the text, which may be of any length.
func quote(word string) string {
	const longest = 40
	if len(word) > longest {
		return strconv.Quote(word[:longest]) + "..."
	}
	return strconv.Quote(word)
}

func (p *parser) skipBlanks() {
	for p.pos < len(p.text) && strings.IndexByte(textBlanks, p.text[p.pos]) >= 0 {
		p.pos++
	}
}

// word returns the word that starts here, "" where none does.
func (p *parser) word() string {
	start := p.pos
	if n := strings.IndexAny(p.text[start:], textSeparators); n >= 0 {
		p.pos += n
	} else {
		p.pos = len(p.text)
	}
	return p.text[start:p.pos]
}

// accept skips the byte c where it stands.
func (p *parser) accept(c byte) bool {
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// operations appends the operations up to the end of the text or a "}", which
// it leaves.
func (p *parser) operations(out []byte, depth int) ([]byte, error) {
	for {
		p.skipBlanks()
		if p.pos >= len(p.text) || p.text[p.pos] == '}' {
			return out, nil
		}
		var err error
		if out, err = p.operation(out, depth); err != nil {
			return nil, err
		}
		if !p.accept(';') {
			return out, nil
		}
	}
}

// operation appends one operation and skips the blanks after it. What follows is
// a ";", a "}" or the end.
func (p *parser) operation(out []byte, depth int) ([]byte, error) {
	start := p.pos
	name := p.word()
	if name == "" {
		return nil, p.errorf(start, "", "an operation is expected, found %s", p.here())
	}
	op, e, err := p.lookup(name)
	if err != nil {
		return nil, &TextError{Offset: start, Err: err}
	}
	out = append(out, e.Opcode)
	if e.User != 0 {
		out = binary.AppendUvarint(out, e.User)
	}
	count := 0
	for _, kind := range op.Operands {
		if kind == NoOperand {
			break
		}
		p.skipBlanks()
		if count > 0 && p.accept(',') {
			p.skipBlanks()
		}
		count++
		start := p.pos
		if out, err = p.operand(out, op, kind, depth); err != nil {
			if nested := (*TextError)(nil); errors.As(err, &nested) {
				return nil, err
			}
			return nil, p.errorf(start, op.Name, "operand %d: %w", count, err)
		}
	}
	p.skipBlanks()
	if p.pos < len(p.text) && p.text[p.pos] != ';' && p.text[p.pos] != '}' {
		return nil, p.errorf(p.pos, op.Name, "\";\" is expected after %d operands, found %s", count, p.here())
	}
	return out, nil
}

// lookup finds an operation of the dialect by its name. Dialect.lookupText goes through all
// names, so its results are kept.
func (p *parser) lookup(name string) (*Operation, Encoding, error) {
	if f, ok := p.found[name]; ok {
		return f.op, f.encoding, nil
	}
	op, e, ok := p.Dialect.lookupText(name)
	if !ok {
		return nil, e, fmt.Errorf("an operation of dialect %s is expected, found %s", p.Dialect.Name, quote(name))
	}
	p.found[name] = found{op, e}
	return op, e, nil
}

// operand appends one operand.
func (p *parser) operand(out []byte, op *Operation, kind OperandKind, depth int) ([]byte, error) {
	if kind == EncodedPointer {
		var err error
		if kind, err = encodedKind(out[len(out)-1]); err != nil {
			return nil, err
		}
	}
	enc, err := p.encodingOf(kind)
	if err != nil {
		return nil, err
	}
	if enc.isBlock {
		content, err := p.block(depth)
		if err != nil {
			return nil, err
		}
		if enc.size == 1 && len(content) > 0xff {
			return nil, fmt.Errorf("at most 255 bytes are expected, found %d", len(content))
		}
		return append(enc.append(out, uint64(len(content)), p.Order), content...), nil
	}
	start := p.pos
	word := p.word()
	if word == "" {
		return nil, fmt.Errorf("%s is expected, found %s", enc.expected(), p.here())
	}
	v, err := p.value(word, op, kind, enc)
	if err != nil {
		p.pos = start
		return nil, err
	}
	return enc.append(out, v, p.Order), nil
}

// value returns the number that a word stands for.
func (p *parser) value(word string, op *Operation, kind OperandKind, enc operandEncoding) (uint64, error) {
	var v uint64
	var err error
	switch {
	case isNumberWord(word):
		v, err = parseNumber(word, enc)
	case kind == RegisterNum:
		var ok bool
		if p.Names != nil {
			v, ok = p.Names.Register(word)
		}
		if !ok {
			err = fmt.Errorf("a register's name or number is expected, found %s", quote(word))
		}
		return v, err
	default:
		var space AddressSpace
		var ok bool
		if p.Names != nil && op.pushesConstant() {
			space, ok = p.Names.Space(word)
		}
		if !ok {
			err = fmt.Errorf("%s is expected, found %s", enc.expected(), quote(word))
		}
		v = uint64(space)
		if ok && !enc.fits(v) {
			err = fmt.Errorf("%s is expected, %s is %d", enc.expected(), quote(word), v)
		}
	}
	return v, err
}

// pushesConstant reports whether the operation pushes its operand, which may then be the
// number of an address space for the next operation.
func (o *Operation) pushesConstant() bool {
	switch o.Name {
	case "DW_OP_const1u", "DW_OP_const2u", "DW_OP_const4u", "DW_OP_const8u", "DW_OP_constu",
		"DW_OP_const1s", "DW_OP_const2s", "DW_OP_const4s", "DW_OP_const8s", "DW_OP_consts":
		return true
	}
	return false
}

// block returns the bytes of a block.
func (p *parser) block(depth int) ([]byte, error) {
	if !p.accept('{') {
		word := p.word()
		if word == "" {
			return nil, fmt.Errorf("bytes in hex or \"{\" are expected, found %s", p.here())
		}
		digits := word
		if len(word) > 2 && (word[:2] == "0x" || word[:2] == "0X") {
			digits = word[2:]
		}
		content, err := hex.DecodeString(digits)
		if err != nil {
			return nil, fmt.Errorf("bytes in hex or \"{\" are expected, found %s", quote(word))
		}
		return content, nil
	}
	if depth >= maxNesting {
		return nil, fmt.Errorf("%w: more than %d blocks within each other", ErrLimit, maxNesting)
	}
	content, err := p.operations(nil, depth+1)
	if err != nil {
		return nil, err
	}
	if !p.accept('}') {
		return nil, p.errorf(p.pos, "", "\"}\" is expected, found %s", p.here())
	}
	return content, nil
}

// operandEncoding is the encoding of the number of an operand, or of the length of a block.
type operandEncoding struct {
	size     int // bytes; 0: LEB128
	isSigned bool
	isBlock  bool // bytes follow
}

func (p *parser) encodingOf(kind OperandKind) (operandEncoding, error) {
	switch kind {
	case ULEB, SLEB, RegisterNum, TypeOffset:
		return operandEncoding{isSigned: kind.isSigned()}, nil
	case Block, Expression:
		return operandEncoding{isBlock: true}, nil
	case Block1:
		return operandEncoding{isBlock: true, size: 1}, nil
	case Address:
		if p.AddressSize < 1 || p.AddressSize > 8 {
			return operandEncoding{}, fmt.Errorf("address size %d, 1 to 8 expected", p.AddressSize)
		}
		return operandEncoding{size: p.AddressSize}, nil
	case EntryOffset:
		if p.OffsetSize != 4 && p.OffsetSize != 8 {
			return operandEncoding{}, fmt.Errorf("offset size %d, 4 or 8 expected", p.OffsetSize)
		}
		return operandEncoding{size: p.OffsetSize}, nil
	}
	return operandEncoding{size: int(fixedSize[kind]), isSigned: kind.isSigned()}, nil
}

func (e operandEncoding) bits() uint32 {
	if e.size == 0 {
		return 64
	}
	return uint32(e.size) * 8
}

// fits reports whether the operand can be v, which is not negative.
func (e operandEncoding) fits(v uint64) bool {
	if e.isSigned {
		return v <= lowMask(e.bits()-1)
	}
	return v <= lowMask(e.bits())
}

// expected describes the numbers that the operand can be.
func (e operandEncoding) expected() string {
	if e.isSigned {
		return fmt.Sprintf("a number from %d to %d", int64(-1)<<(e.bits()-1), lowMask(e.bits()-1))
	}
	return fmt.Sprintf("a number from 0 to %d", lowMask(e.bits()))
}

func (e operandEncoding) append(out []byte, v uint64, order ByteOrder) []byte {
	switch {
	case e.size == 0 && e.isSigned:
		return leb128.AppendSigned(out, int64(v))
	case e.size == 0:
		return binary.AppendUvarint(out, v)
	}
	for i := range e.size {
		shift := 8 * i
		if order == BigEndian {
			shift = 8 * (e.size - 1 - i)
		}
		out = append(out, byte(v>>shift))
	}
	return out
}

// parseNumber returns a decimal or 0x number, negative ones in two's complement.
func parseNumber(word string, e operandEncoding) (uint64, error) {
	digits, negative := word, false
	if e.isSigned && (word[0] == '-' || word[0] == '+') {
		digits, negative = word[1:], word[0] == '-'
	}
	base := 10
	if len(digits) > 2 && (digits[:2] == "0x" || digits[:2] == "0X") {
		digits, base = digits[2:], 16
	}
	v, err := strconv.ParseUint(digits, base, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is expected, found %s", e.expected(), quote(word))
	}
	switch {
	case negative && v <= 1<<(e.bits()-1):
		return -v, nil
	case negative || !e.fits(v):
		return 0, fmt.Errorf("%s is expected, found %s", e.expected(), quote(word))
	}
	return v, nil
}
