// SPDX-License-Identifier: Apache-2.0

package cabinet

import "encoding/binary"

// lzxBits reads bits of words of 16 bits, the highest first, and bytes between them.
type lzxBits struct {
	data    []byte // of the blocks that were added, from the first byte that was not used
	next    int    // the offset of the next word
	value   uint64 // the bits that were taken from data, of which the next one is the highest
	count   uint   // of them
	padding uint   // the last of them that are behind the end
	isOver  bool   // bits behind the end were used
}

// add adds the bytes of a block.
func (b *lzxBits) add(packed []byte) {
	b.giveBack()
	b.data = append(append([]byte(nil), b.data[b.next:]...), packed...)
	b.next = 0
}

// giveBack gives back bits that were taken and not used, which are whole words.
func (b *lzxBits) giveBack() {
	b.count -= min(b.padding, b.count)
	b.next -= int(b.count / 8) //nolint:gosec // at most 8
	b.value, b.count, b.padding = 0, 0, 0
}

// need takes words until there are n bits, at most 32. Behind the end they are zeros: a code is
// looked up by more bits than it may have.
func (b *lzxBits) need(n uint) {
	for b.count < n {
		b.value <<= 16
		if b.next+2 <= len(b.data) {
			b.value |= uint64(binary.LittleEndian.Uint16(b.data[b.next:]))
			b.next += 2
		} else {
			b.padding += 16
		}
		b.count += 16
	}
}

// peek returns the next n bits.
func (b *lzxBits) peek(n uint) uint32 {
	b.need(n)
	return uint32(b.value >> (b.count - n) & (1<<n - 1)) //nolint:gosec // at most 32 bits
}

// skip goes beyond n bits that were peeked at.
func (b *lzxBits) skip(n uint) {
	b.count -= n
	if b.count < b.padding {
		b.isOver, b.padding = true, b.count
	}
}

// read returns the next n bits, at most 17.
func (b *lzxBits) read(n uint) uint32 {
	v := b.peek(n)
	b.skip(n)
	return v
}

// align goes to the next word, unless it is there.
func (b *lzxBits) align() {
	b.skip(b.count % 16)
	b.giveBack()
}

// skipToWord goes to the next word, which is not the one that begins here.
func (b *lzxBits) skipToWord() {
	if b.need(1); b.count%16 == 0 {
		b.skip(16)
	}
	b.align()
}

// byte returns the next byte. No bits have been taken.
func (b *lzxBits) byte() byte {
	if b.next >= len(b.data) {
		b.isOver = true
		return 0
	}
	b.next++
	return b.data[b.next-1]
}

// code is a canonical Huffman code, as a table by the bits of the longest one.
type code struct {
	bits  uint
	table []uint16 // symbol<<5 | length; 0: no code
}

// set makes the code of the lengths of all symbols. Without any the code is empty.
func (c *code) set(lengths []uint8) error {
	var counts [maxCodeBits + 1]int
	c.bits = 0
	for _, n := range lengths {
		counts[n]++
		c.bits = max(c.bits, uint(n))
	}
	size := 1 << c.bits
	if cap(c.table) < size {
		c.table = make([]uint16, size)
	}
	c.table = c.table[:size]
	clear(c.table)
	next := 0
	for n := uint(1); n <= c.bits; n++ {
		if counts[n] == 0 {
			continue
		}
		span := 1 << (c.bits - n)
		for symbol, length := range lengths {
			if uint(length) != n {
				continue
			}
			if next+span > size {
				return errTree
			}
			for i := range span {
				c.table[next+i] = uint16(symbol<<5 | int(n)) //nolint:gosec // at most 656 symbols
			}
			next += span
		}
	}
	return nil
}

// read reads a symbol.
func (c *code) read(b *lzxBits) (symbol int, err error) {
	entry := c.table[b.peek(c.bits)]
	if entry == 0 {
		return 0, errSymbol
	}
	b.skip(uint(entry & 31))
	return int(entry >> 5), nil
}
