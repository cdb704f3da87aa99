// SPDX-License-Identifier: Apache-2.0

package cabinet

import (
	"bytes"
	"encoding/binary"
)

// lzxMaker packs blocks of the cabinet as LZX: each is one of its blocks, of the kinds by turns.
type lzxMaker struct {
	window int
	calls  uint32 // as of a file of the size; 0: calls are not translated

	bits   []byte
	value  uint64
	count  uint
	before []byte // all bytes so far, as they are packed
	number int
	recent [3]int
}

// put appends n bits.
func (m *lzxMaker) put(v uint32, n uint) {
	m.value, m.count = m.value<<n|uint64(v), m.count+n
	for m.count >= 16 {
		m.count -= 16
		m.bits = binary.LittleEndian.AppendUint16(m.bits, uint16(m.value>>m.count))
	}
}

// align fills a word.
func (m *lzxMaker) align() {
	if m.count > 0 {
		m.put(0, 16-m.count)
	}
}

// block packs a block.
func (m *lzxMaker) block(plain []byte) []byte {
	m.bits = nil
	data := m.translated(plain)
	if m.number == 0 {
		m.recent = [3]int{1, 1, 1}
		if m.calls != 0 {
			m.put(1, 1)
			m.put(m.calls>>16, 16)
			m.put(m.calls&0xffff, 16)
		} else {
			m.put(0, 1)
		}
	}
	kind := [...]uint32{verbatimBlock, alignedBlock, plainBlock}[m.number%3]
	m.put(kind, 3)
	m.put(uint32(len(data))>>8, 16)
	m.put(uint32(len(data))&0xff, 8)
	switch kind {
	case plainBlock:
		m.put(0, 16-m.count)
		for _, r := range m.recent {
			m.bits = binary.LittleEndian.AppendUint32(m.bits, uint32(r))
		}
		m.bits = append(m.bits, data...)
		m.before = append(m.before, data...)
		if len(data)%2 == 1 {
			m.bits = append(m.bits, 0)
		}
	default:
		if kind == alignedBlock {
			for range alignedCodes {
				m.put(3, 3)
			}
		}
		m.codes(m.number == 0)
		m.pack(data, kind == alignedBlock)
		m.align()
	}
	m.number++
	return m.bits
}

// translated does what a decoder undoes.
func (m *lzxMaker) translated(plain []byte) []byte {
	b := bytes.Clone(plain)
	for i := 0; m.calls != 0 && i < len(b)-10; i++ {
		if b[i] != 0xe8 {
			continue
		}
		at, size := int32(len(m.before)+i), int32(m.calls)
		to := int32(binary.LittleEndian.Uint32(b[i+1:]))
		if to >= -at && to < size-at {
			to += at
		} else if to >= size-at && to < size {
			to -= size
		}
		binary.LittleEndian.PutUint32(b[i+1:], uint32(to))
		i += 4
	}
	return b
}

// mainBits and lengthBits are the lengths of all codes: there are no more symbols than that.
const mainBits, lengthBits = 10, 8

// codes writes the lengths of codes, or that they are as before.
func (m *lzxMaker) codes(isFirst bool) {
	for i, count := range []int{literals, 8 * slots[m.window], lengthCodes} {
		symbol := uint32(0)
		if isFirst {
			symbol = 17 - mainBits
			if i == 2 {
				symbol = 17 - lengthBits
			}
		}
		for s := range uint32(pretreeCodes) { // a code of one symbol, and another one
			if s == symbol || s == 19 {
				m.put(1, 4)
			} else {
				m.put(0, 4)
			}
		}
		for range count {
			m.put(0, 1)
		}
	}
}

// pack writes literals and matches.
func (m *lzxMaker) pack(data []byte, isAligned bool) {
	d, _ := newLZX(m.window)
	base := len(m.before)
	m.before = append(m.before, data...)
	last := map[[3]byte]int{}
	for i := base; i < len(m.before); {
		var key [3]byte
		copy(key[:], m.before[i:])
		at, isKnown := last[key]
		last[key] = i
		n := 0
		for isKnown && i+n < len(m.before) && n < 257 && m.before[at+n] == m.before[i+n] {
			n++
		}
		if n < 2 {
			m.put(uint32(m.before[i]), mainBits)
			i++
			continue
		}
		m.match(d, i-at, n, isAligned)
		i += n
	}
}

// match writes a match.
func (m *lzxMaker) match(d *lzxDecoder, distance, length int, isAligned bool) {
	slot := 0
	for slot < 3 && m.recent[slot] != distance {
		slot++
	}
	if slot < 3 {
		m.recent[0], m.recent[slot] = m.recent[slot], m.recent[0]
	} else {
		for slot+1 < slots[m.window] && int(d.base[slot+1]) <= distance+2 {
			slot++
		}
		m.recent = [3]int{distance, m.recent[0], m.recent[1]}
	}
	short := min(length-leastMatch, shortLengths)
	m.put(uint32(literals+8*slot+short), mainBits)
	if short == shortLengths {
		m.put(uint32(length-leastMatch-shortLengths), lengthBits)
	}
	if slot < 3 {
		return
	}
	rest, extra := uint32(distance+2)-d.base[slot], uint(d.extra[slot])
	if isAligned && extra >= 3 {
		m.put(rest>>3, extra-3)
		m.put(rest&7, 3)
	} else {
		m.put(rest, extra)
	}
}
