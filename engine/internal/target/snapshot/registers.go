// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/sdk"
)

// partBytes is the unit of the size of a vector register whose low part alone is known: the size
// of the smallest vector register on machines with such parts (xmm of zmm).
const partBytes = 16

// IsVector reports whether a register is written as a vector: bare hexadecimal bytes, the lowest
// first. Other registers are numbers with 0x.
func IsVector(info sdk.RegisterInfo) bool {
	return info.Class == sdk.Vector || info.Bits > 64 && info.Class != sdk.Float
}

// ParseRegister reads the value of a register as a snapshot writes it, and
// returns its bytes in the byte order of the architecture.
//
// A scalar register is a number, 0x and hexadecimal digits, of at most the
// register's bits. A vector register is as many pairs of hexadecimal digits as
// it has bytes, the lowest byte first, without 0x. If only its low part is known,
// that is written alone: a multiple of 16 bytes.
func ParseRegister(info sdk.RegisterInfo, order sdk.ByteOrder, text string) ([]byte, error) {
	return appendRegister(nil, info, order, []byte(text))
}

// appendRegister appends the bytes of a register.
func appendRegister(dst []byte, info sdk.RegisterInfo, order sdk.ByteOrder, text []byte) ([]byte, error) {
	size := (int(info.Bits) + 7) / 8
	start := len(dst)
	if IsVector(info) {
		n := len(text) / 2
		if len(text)%2 != 0 || n != size && (n == 0 || n > size || n%partBytes != 0) {
			return dst, fmt.Errorf("%s has %d hexadecimal digits, expected %d", info.Name, len(text), 2*size)
		}
		dst = slices.Grow(dst, n)[:start+n]
		if _, err := hex.Decode(dst[start:], text); err != nil {
			return dst[:start], fmt.Errorf("%s is not hexadecimal: %w", info.Name, err)
		}
	} else {
		digits, ok := jsontext.HexDigits(text)
		if !ok {
			return dst, fmt.Errorf("%s is %q, expected 0x and hexadecimal digits", info.Name, jsontext.Clip(string(text)))
		}
		for len(digits) > 1 && digits[0] == '0' {
			digits = digits[1:]
		}
		dst = slices.Grow(dst, size)[:start+size]
		value := dst[start:]
		clear(value)
		used := 0
		if len(digits) <= 16 { // nearly all
			n := uint64(0)
			for _, c := range digits {
				n = n<<4 | uint64(digit(c))
			}
			used = bits.Len64(n)
			for i := range value {
				value[i] = byte(n)
				n >>= 8
			}
			digits = nil
		}
		for i := range digits {
			d := digit(digits[len(digits)-1-i])
			if d == 0 {
				continue
			}
			for j := range 4 {
				if d>>j&1 != 0 {
					used = 4*i + j + 1
				}
			}
			if i/2 < size {
				value[i/2] |= d << (i % 2 * 4)
			}
		}
		if used > int(info.Bits) {
			return dst[:start], fmt.Errorf("%s is %s, expected at most %d bits", info.Name, jsontext.Clip(string(text)), info.Bits)
		}
	}
	if order == sdk.BigEndian {
		slices.Reverse(dst[start:])
	}
	return dst, nil
}

// digit returns the value of a hexadecimal digit.
func digit(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// value is a register of a thread whose bytes are data[start:end] of its registerReader.
type value struct {
	number     uint32
	start, end int
}

// registerReader reads the registers of threads. Its memory is reused for the next thread.
type registerReader struct {
	values []value
	data   []byte
	key    []byte // of a layout
	known  []knownRegister
}

// knownRegister is the register that stood at a place in the thread before: most threads of a
// target have theirs in one order.
type knownRegister struct {
	arch  *arch
	name  string
	lanes uint32
	info  sdk.RegisterInfo
}

// find is arch.register for the register at a place of a thread's.
func (p *registerReader) find(a *arch, name, text []byte, lanes uint32, place int) (info sdk.RegisterInfo, problem string) {
	if place < len(p.known) {
		if k := &p.known[place]; k.arch == a && k.lanes == lanes && k.name == string(name) {
			return k.info, ""
		}
	}
	info, problem = a.register(name, text, lanes)
	if problem != "" || len(a.named(name)) > 1 || place > len(p.known) {
		return info, problem // the value decides
	}
	k := knownRegister{a, string(name), lanes, info}
	if place == len(p.known) {
		p.known = append(p.known, k)
	} else {
		p.known[place] = k
	}
	return info, ""
}

// read reads an object of registers by name. Registers with an error are left out: problems has
// a sentence without a subject for each.
func (p *registerReader) read(a *arch, t *threadEntry) (problems []string, err error) {
	p.values, p.data = p.values[:0], p.data[:0]
	lanes := a.lanes(t)
	if p.readKnown(a, lanes, t.registers.Data) {
		return p.sort(a.desc), nil
	}
	p.values, p.data = p.values[:0], p.data[:0]
	r := t.registers.Reader()
	count := 0
	err = r.Object(func(name []byte) error {
		if count++; count > sdk.MaxRegisters {
			return r.Fail(r.Offset(), "more than %d registers", sdk.MaxRegisters)
		}
		text, err := r.Text()
		if err != nil {
			return err
		}
		info, problem := p.find(a, name, text, lanes, count-1)
		if problem != "" {
			problems = append(problems, problem)
			return nil
		}
		start := len(p.data)
		var wrong error
		if p.data, wrong = appendRegister(p.data, info, a.desc.ByteOrder, text); wrong != nil {
			problems = append(problems, "register "+wrong.Error())
		} else {
			p.values = append(p.values, value{info.Number, start, len(p.data)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(p.data) > math.MaxUint32 {
		return nil, r.Fail(t.registers.Offset, "the registers have %d bytes", len(p.data))
	}
	return append(problems, p.sort(a.desc)...), nil
}

// readKnown is read for the registers of the thread before in their order, from an object without
// errors and escapes, as nearly all are; false for another one. The object is valid JSON.
func (p *registerReader) readKnown(a *arch, lanes uint32, text []byte) bool {
	s := plainScanner{text[1:]}
	for place := range p.known {
		if s.takes('}') {
			return place > 0 // nothing is left
		}
		k := &p.known[place]
		if place > 0 && !s.takes(',') || k.arch != a || k.lanes != lanes {
			return false
		}
		name, ok := s.text()
		if !ok || string(name) != k.name || !s.takes(':') {
			return false
		}
		value, ok := s.text()
		if !ok || !p.add(k.info, a, value) {
			return false
		}
	}
	return len(p.known) > 0 && s.takes('}') && len(p.data) <= math.MaxUint32
}

// add adds the value of a register; false: it is wrong.
func (p *registerReader) add(info sdk.RegisterInfo, a *arch, text []byte) bool {
	start := len(p.data)
	var err error
	if p.data, err = appendRegister(p.data, info, a.desc.ByteOrder, text); err != nil {
		return false
	}
	p.values = append(p.values, value{info.Number, start, len(p.data)})
	return true
}

// plainScanner reads JSON that is known to be valid, without escapes.
type plainScanner struct{ rest []byte }

// takes passes over white space and a byte; false: another one follows.
func (s *plainScanner) takes(c byte) bool {
	for len(s.rest) > 0 && s.rest[0] <= ' ' {
		s.rest = s.rest[1:]
	}
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// text passes over a string; ok is false where there is none, or one with escapes.
func (s *plainScanner) text() (text []byte, ok bool) {
	if !s.takes('"') {
		return nil, false
	}
	n := bytes.IndexByte(s.rest, '"')
	if n < 0 {
		return nil, false
	}
	text, s.rest = s.rest[:n], s.rest[n+1:]
	return text, bytes.IndexByte(text, '\\') < 0
}

// sort puts the values in the order of their numbers. A register with two different values is
// left out, as either may be right.
func (p *registerReader) sort(d *sdk.Description) (problems []string) {
	isSorted := true
	for i := 1; i < len(p.values) && isSorted; i++ {
		isSorted = p.values[i-1].number < p.values[i].number
	}
	if isSorted {
		return nil // no two are of one register
	}
	slices.SortStableFunc(p.values, func(a, b value) int { return cmp.Compare(a.number, b.number) })
	kept := p.values[:0]
	for i := 0; i < len(p.values); {
		v := p.values[i]
		same := true
		j := i + 1
		for ; j < len(p.values) && p.values[j].number == v.number; j++ {
			other := p.values[j]
			same = same && string(p.data[v.start:v.end]) == string(p.data[other.start:other.end])
		}
		if j > i+1 {
			info, _ := d.Register(v.number)
			what := "with two values: it is left out"
			if same {
				what = "with one value"
			}
			problems = append(problems, fmt.Sprintf("register %s is given %d times, %s", info.Name, j-i, what))
		}
		if same {
			kept = append(kept, v)
		}
		i = j
	}
	p.values = kept
	return problems
}
