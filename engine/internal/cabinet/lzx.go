// SPDX-License-Identifier: Apache-2.0

package cabinet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The parameters of LZX.
const (
	leastWindow, mostWindow = 15, 21 // bits of the window's size

	literals     = 256
	shortLengths = 7 // lengths that a main element has itself
	lengthCodes  = 249
	pretreeCodes = 20
	alignedCodes = 8
	leastMatch   = 2
	maxCodeBits  = 16

	verbatimBlock, alignedBlock, plainBlock = 1, 2, 3

	// maxTranslated is how many blocks have calls translated.
	maxTranslated = 1 << 15
)

// slots are the numbers of position slots by window size.
var slots = [...]int{15: 30, 16: 32, 17: 34, 18: 36, 19: 38, 20: 42, 21: 50}

var (
	errBits   = errors.New("LZX: the block ends early")
	errTree   = errors.New("LZX: the lengths of codes make no code")
	errSymbol = errors.New("LZX: bits that are no code")
)

// lzxDecoder is of LZX. Its blocks, which have codes of their own, go on across the blocks of
// the cabinet.
type lzxDecoder struct {
	bits lzxBits

	window   []byte
	position int
	recent   [3]uint32
	base     [51]uint32
	extra    [51]uint8

	mainLengths   []uint8
	lengthLengths [lengthCodes]uint8
	main, lengths code
	aligned       code

	kind      uint32 // of the block
	left      int    // of its bytes
	isOdd     bool   // a byte follows the block, so that words are aligned
	isStarted bool
	blocks    int    // of the cabinet
	done      uint32 // bytes
	callSize  uint32 // calls are translated as of a file of the size; 0: they are not
	out       [blockSize]byte
}

func newLZX(window int) (*lzxDecoder, error) {
	if window < leastWindow || window > mostWindow {
		return nil, fmt.Errorf("LZX: a window of %d bits, expected %d to %d", window, leastWindow, mostWindow)
	}
	d := &lzxDecoder{window: make([]byte, 1<<window), recent: [3]uint32{1, 1, 1}}
	d.mainLengths = make([]uint8, literals+8*slots[window])
	for i, base := 0, uint32(0); i < len(d.base); i++ {
		d.base[i] = base
		if i >= 4 {
			d.extra[i] = uint8(min(i/2-1, 17)) //nolint:gosec // at most 17
		}
		base += 1 << d.extra[i]
	}
	return d, nil
}

// block implements decoder.
func (d *lzxDecoder) block(packed []byte, n int) ([]byte, error) {
	d.bits.add(packed)
	if !d.isStarted {
		d.isStarted = true
		if d.bits.read(1) == 1 {
			d.callSize = d.bits.read(16)<<16 | d.bits.read(16)
		}
	}
	for filled := 0; filled < n; {
		if d.left == 0 {
			if err := d.begin(); err != nil {
				return nil, err
			}
		}
		got, err := d.fill(d.out[filled:n])
		if err != nil {
			return nil, err
		}
		filled += got
	}
	d.bits.align()
	if d.bits.isOver {
		return nil, errBits
	}
	if d.blocks < maxTranslated && d.callSize != 0 {
		d.translate(d.out[:n])
	}
	d.blocks++
	d.done += uint32(n) //nolint:gosec // at most blockSize
	return d.out[:n], nil
}

// begin reads the header of a block.
func (d *lzxDecoder) begin() error {
	if d.isOdd {
		d.bits.byte()
		d.isOdd = false
	}
	d.kind = d.bits.read(3)
	d.left = int(d.bits.read(16)<<8 | d.bits.read(8))
	switch {
	case d.bits.isOver:
		return errBits
	case d.left == 0:
		return errors.New("LZX: a block of 0 bytes")
	case d.kind == plainBlock:
		d.bits.skipToWord()
		for i := range d.recent {
			b := [4]byte{d.bits.byte(), d.bits.byte(), d.bits.byte(), d.bits.byte()}
			d.recent[i] = binary.LittleEndian.Uint32(b[:])
		}
		d.isOdd = d.left%2 == 1
		return nil
	case d.kind != verbatimBlock && d.kind != alignedBlock:
		return fmt.Errorf("LZX: a block of the kind %d, expected 1 to 3", d.kind)
	}
	return d.readCodes()
}

// readCodes reads the codes of a block.
func (d *lzxDecoder) readCodes() error {
	if d.kind == alignedBlock {
		var lengths [alignedCodes]uint8
		for i := range lengths {
			lengths[i] = uint8(d.bits.read(3))
		}
		if err := d.aligned.set(lengths[:]); err != nil {
			return err
		}
	}
	for _, part := range [][]uint8{d.mainLengths[:literals], d.mainLengths[literals:], d.lengthLengths[:]} {
		if err := d.readLengths(part); err != nil {
			return err
		}
	}
	if err := d.main.set(d.mainLengths); err != nil {
		return err
	}
	return d.lengths.set(d.lengthLengths[:])
}

// readLengths reads the lengths of codes, which are differences from the lengths of the block before.
func (d *lzxDecoder) readLengths(list []uint8) error {
	var lengths [pretreeCodes]uint8
	for i := range lengths {
		lengths[i] = uint8(d.bits.read(4))
	}
	var pretree code
	if err := pretree.set(lengths[:]); err != nil {
		return err
	}
	for i := 0; i < len(list); {
		symbol, err := pretree.read(&d.bits)
		if err != nil {
			return err
		}
		run, length := 1, uint8(0)
		switch symbol {
		case 17:
			run = int(4 + d.bits.read(4))
		case 18:
			run = int(20 + d.bits.read(5))
		case 19:
			run = int(4 + d.bits.read(1))
			if symbol, err = pretree.read(&d.bits); err != nil {
				return err
			}
			fallthrough
		default:
			if symbol > maxCodeBits {
				return errTree
			}
			length = uint8((int(list[i]) + 17 - symbol) % 17)
		}
		for ; run > 0 && i < len(list); i, run = i+1, run-1 {
			list[i] = length
		}
	}
	return nil
}

// fill unpacks bytes of the current block, at most as many as dst has. A match does not reach
// beyond it.
func (d *lzxDecoder) fill(dst []byte) (n int, err error) {
	dst = dst[:min(len(dst), d.left)]
	if d.kind == plainBlock {
		for i := range dst {
			dst[i] = d.bits.byte()
			d.put(dst[i])
		}
		n = len(dst)
	}
	for n < len(dst) {
		symbol, err := d.main.read(&d.bits)
		if err != nil {
			return n, err
		}
		if symbol < literals {
			dst[n] = byte(symbol)
			d.put(dst[n])
			n++
			continue
		}
		length, distance, err := d.match(symbol - literals)
		if err != nil {
			return n, err
		}
		if length > len(dst)-n {
			return n, fmt.Errorf("LZX: a match of %d bytes, expected at most the %d that are left", length, len(dst)-n)
		}
		for range length {
			dst[n] = d.window[(d.position-distance)&(len(d.window)-1)]
			d.put(dst[n])
			n++
		}
	}
	d.left -= n
	if d.bits.isOver {
		return n, errBits
	}
	return n, nil
}

func (d *lzxDecoder) put(b byte) {
	d.window[d.position] = b
	d.position = (d.position + 1) & (len(d.window) - 1)
}

// match reads the rest of a match.
func (d *lzxDecoder) match(symbol int) (length, distance int, err error) {
	length = symbol % 8
	if length == shortLengths {
		more, err := d.lengths.read(&d.bits)
		if err != nil {
			return 0, 0, err
		}
		length += more
	}
	length += leastMatch
	r := &d.recent
	switch slot := symbol / 8; slot {
	case 0:
	case 1, 2:
		r[0], r[slot] = r[slot], r[0]
	default:
		offset, err := d.offset(slot)
		if err != nil {
			return 0, 0, err
		}
		r[0], r[1], r[2] = offset, r[0], r[1]
	}
	if r[0] == 0 || int(r[0]) > len(d.window) {
		return 0, 0, fmt.Errorf("LZX: a match %d bytes back, expected 1 to %d", r[0], len(d.window))
	}
	return length, int(r[0]), nil
}

// offset reads the distance of a match in a slot.
func (d *lzxDecoder) offset(slot int) (uint32, error) {
	offset, extra := d.base[slot]-2, uint(d.extra[slot])
	if d.kind != alignedBlock || extra < 3 {
		return offset + d.bits.read(extra), nil
	}
	offset += d.bits.read(extra-3) << 3
	low, err := d.aligned.read(&d.bits)
	return offset + uint32(low), err //nolint:gosec // less than 8
}

// translate undoes the translation of calls (E8) to absolute addresses.
func (d *lzxDecoder) translate(b []byte) {
	const call, tail = 0xe8, 10
	for i := 0; i < len(b)-tail; i++ {
		if b[i] != call {
			continue
		}
		at, size := int32(d.done)+int32(i), int32(d.callSize) //nolint:gosec // numbers of 32 bits, as the format has
		to := int32(binary.LittleEndian.Uint32(b[i+1:]))      //nolint:gosec // likewise
		if to >= -at && to < size {
			if to >= 0 {
				to -= at
			} else {
				to += size
			}
			binary.LittleEndian.PutUint32(b[i+1:], uint32(to)) //nolint:gosec // likewise
		}
		i += 4
	}
}
