// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/unwindd/unwindd/sdk"
)

const (
	// accNative is the flag of a native method.
	accNative = 0x0100
	// maxPool bounds the entries of a constant pool.
	maxPool = 1 << 16
	// maxSymbol bounds the bytes of a name.
	maxSymbol = 1 << 12
)

// method is a method of Java.
type method struct {
	address, constMethod uint64
	name                 string // with its class: "java.lang.Object.wait"
	class                uint64 // address of its InstanceKlass
	file                 string // "" where it is not known
	code, codeSize       uint64 // its bytecode
	isNative, hasLines   bool
	constEnd             uint64 // behind the ConstMethod and what belongs to it
}

// methodAt reads a method, once.
func (r *reader) methodAt(address uint64) (*method, error) {
	if m := r.methods[address]; m != nil {
		return m, nil
	}
	m, err := r.readMethod(address)
	if err != nil {
		return nil, fmt.Errorf("the method at %#x: %w", address, err)
	}
	r.methods[address] = m
	return m, nil
}

// readMethod reads a method. Each structure on the way to its class leads to the next one, and names
// are names of Java.
func (r *reader) readMethod(address uint64) (*method, error) {
	if address == 0 || address%8 != 0 {
		return nil, errors.New("no address of a method")
	}
	m := &method{address: address}
	var flags, access, pool, constSize, name uint64
	if err := getAll(r.MemoryReader, address, []memberInto{{r.layout.constMethod, &m.constMethod}, {r.accessFlags, &access}}); err != nil {
		return nil, err
	}
	if m.constMethod == 0 || m.constMethod%8 != 0 {
		return nil, fmt.Errorf("its constant part is at %#x", m.constMethod)
	}
	err := getAll(r.MemoryReader, m.constMethod, []memberInto{
		{r.constants, &pool}, {r.methodFlags, &flags}, {r.layout.codeSize, &m.codeSize}, {r.nameIndex, &name}, {r.constMethodSize, &constSize},
	})
	if err != nil {
		return nil, err
	}
	m.isNative = access&accNative != 0
	m.hasLines = flags&uint64(r.hasLines) != 0 //nolint:gosec // bits
	m.code = m.constMethod + r.sizes.constMethod
	m.constEnd = m.constMethod + 8*constSize
	if m.code+m.codeSize > m.constEnd {
		return nil, fmt.Errorf("%d bytes of code in a constant part of %d words", m.codeSize, constSize)
	}
	text, err := r.poolText(pool, name)
	if err != nil {
		return nil, fmt.Errorf("its name: %w", err)
	}
	if m.class, err = get(r.MemoryReader, pool, r.poolHolder); err != nil {
		return nil, err
	}
	class, err := r.nameOfClass(m.class)
	if err != nil {
		return nil, err
	}
	m.name = class + "." + text
	m.file = r.fileOf(m.class, pool)
	return m, nil
}

// poolText reads the name at an index of a constant pool.
func (r *reader) poolText(pool, index uint64) (string, error) {
	length, err := get(r.MemoryReader, pool, r.poolLength)
	if err != nil {
		return "", err
	}
	if pool%8 != 0 || length > maxPool || index == 0 || index >= length {
		return "", fmt.Errorf("entry %d of %d of the constant pool at %#x", index, length, pool)
	}
	symbol, err := r.Pointer(pool + r.sizes.pool + 8*index)
	if err != nil {
		return "", err
	}
	return r.symbol(symbol)
}

// symbol reads a name, which is in modified UTF-8.
func (r *reader) symbol(address uint64) (string, error) {
	length, err := r.symbolSize(address)
	if err != nil {
		return "", err
	}
	if length == 0 || length > maxSymbol {
		return "", fmt.Errorf("the symbol at %#x has %d bytes", address, length)
	}
	b, err := r.Bytes(address+r.symbolBody.offset, length)
	if err != nil {
		return "", err
	}
	return javaText(b, address)
}

// symbolSize reads the length of a name: a member, or the high half of one with its hash or references.
func (r *reader) symbolSize(address uint64) (uint64, error) {
	if r.symbolLength.isKnown {
		return get(r.MemoryReader, address, r.symbolLength)
	}
	return r.Uint(address+2, 2) // JDK 11 and 13 have it above the count of references
}

// javaText is modified UTF-8 as text: characters beyond 16 bits are two surrogates, and 0 has two
// bytes.
func javaText(b []byte, address uint64) (string, error) {
	var units []uint16
	for i := 0; i < len(b); {
		c := b[i]
		switch {
		case c >= ' ' && c < 0x7f:
			units = append(units, uint16(c))
			i++
			continue
		case c&0xe0 == 0xc0 && i+1 < len(b) && b[i+1]&0xc0 == 0x80:
			units = append(units, uint16(c&0x1f)<<6|uint16(b[i+1]&0x3f))
			i += 2
		case c&0xf0 == 0xe0 && i+2 < len(b) && b[i+1]&0xc0 == 0x80 && b[i+2]&0xc0 == 0x80:
			units = append(units, uint16(c&0x0f)<<12|uint16(b[i+1]&0x3f)<<6|uint16(b[i+2]&0x3f))
			i += 3
		default:
			return "", fmt.Errorf("the symbol at %#x is no name", address)
		}
	}
	text := string(utf16.Decode(units))
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", fmt.Errorf("the symbol at %#x is no name", address)
	}
	return text, nil
}

// nameOfClass reads the name of a class, in the words of Java's source.
func (r *reader) nameOfClass(class uint64) (string, error) {
	if class == 0 || class%8 != 0 {
		return "", fmt.Errorf("there is no class at %#x", class)
	}
	symbol, err := get(r.MemoryReader, class, r.className)
	if err != nil {
		return "", err
	}
	name, err := r.symbol(symbol)
	if err != nil {
		return "", fmt.Errorf("the name of the class at %#x: %w", class, err)
	}
	return strings.ReplaceAll(name, "/", "."), nil
}

// fileOf reads the name of the source file of a class; "" where it has none.
func (r *reader) fileOf(class, pool uint64) string {
	index, err := get(r.MemoryReader, pool, r.poolSourceFile)
	if !r.poolSourceFile.isKnown {
		index, err = get(r.MemoryReader, class, r.sourceFile)
	}
	if err != nil || index == 0 {
		return ""
	}
	name, err := r.poolText(pool, index)
	if err != nil {
		return ""
	}
	return name
}

// maxLines bounds the bytes of a table of line numbers.
const maxLines = 1 << 20

// lineAt returns the line of a position in the bytecode; 0 where it is not known.
func (r *reader) lineAt(m *method, bci int64) uint32 {
	if !m.hasLines || m.isNative {
		return 0
	}
	if bci < 0 { // before the first instruction, where a method is entered
		bci = 0
	}
	start := m.code + m.codeSize
	data, err := r.Bytes(start, min(m.constEnd-start, maxLines))
	if err != nil {
		return 0
	}
	s := &numberStream{data: data, excluded: r.version.excluded}
	var at, line, best int64
	bestAt := int64(-1)
	for {
		b := s.byte()
		switch {
		case s.failed || b == 0:
			return lineNumber(best)
		case b == 0xff:
			at += s.signed()
			line += s.signed()
		default:
			at += int64(b >> 3)
			line += int64(b & 7)
		}
		if s.failed {
			return lineNumber(best)
		}
		if at == bci {
			return lineNumber(line)
		}
		if at < bci && at >= bestAt {
			bestAt, best = at, line
		}
	}
}

// lineNumber is a line, which has 16 bits in a file of a class.
func lineNumber(line int64) uint32 {
	if line <= 0 || line > 0xffff {
		return 0
	}
	return uint32(line)
}

// numberStream reads compressed numbers.
type numberStream struct {
	data     []byte
	next     int  // offset
	excluded byte // by which each byte of a number is larger
	failed   bool // the data has ended, or is no number
}

func (s *numberStream) byte() byte {
	if s.next >= len(s.data) {
		s.failed = true
		return 0
	}
	s.next++
	return s.data[s.next-1]
}

// int reads an unsigned number of up to 32 bits: digits of 6 bits, the lowest one first, each but the
// last one larger by 192, or where a byte is excluded by 191.
func (s *numberStream) int() uint32 {
	last := 192 - uint32(s.excluded)
	sum := uint32(0)
	for i := range 5 {
		b := s.byte()
		if s.failed || b < s.excluded {
			s.failed = true
			return 0
		}
		digit := uint32(b - s.excluded)
		sum += digit << (6 * i)
		if digit < last {
			break
		}
	}
	return sum
}

// signed reads a number whose lowest bit is its sign.
func (s *numberStream) signed() int64 {
	n := s.int()
	return int64(int32(n>>1) ^ -int32(n&1)) //nolint:gosec // the bits of a number
}

// frameOf is the frame of a method at a position in the bytecode.
func (r *reader) frameOf(m *method, bci int64, kind sdk.ManagedKind) sdk.ManagedFrame {
	if m.isNative {
		kind = sdk.Builtin
	}
	return sdk.ManagedFrame{Function: m.name, File: m.file, Line: r.lineAt(m, bci), Kind: kind}
}
