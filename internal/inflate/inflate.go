// SPDX-License-Identifier: Apache-2.0

// Package inflate unpacks zlib streams (RFC 1950 and 1951) into memory, as far as
// requested.
//
// It is for sections of debug information: they lie in memory packed, their size is
// known, and most readers need the beginning only. The output itself is the window,
// so that nothing is copied, and unpacking goes on where it stopped.
package inflate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
)

// Reader unpacks one stream. It is not for concurrent use.
type Reader struct {
	input []byte
	pos   int    // of the next byte that is not in bits
	bits  uint64 // read ahead, the next one lowest
	have  uint   // how many of them are valid
	over  uint   // how many bytes behind the end of input are among them, as zeros

	state   state
	isFinal bool // the block is the last one
	stored  int  // bytes of a stored block that are left
	// The rest of a match that did not fit.
	copyLength, copyDistance int

	literals  [literalSize]uint32
	distances [distanceSize]uint32
}

type state uint8

const (
	atHeader state = iota // of a block
	inStored
	inCodes
	atEnd
)

// ErrCorrupt is the error of damaged streams; the error that wraps it has the
// offset.
var ErrCorrupt = errors.New("corrupt zlib stream")

// ErrMore is the error of a stream that goes on behind the expected bytes.
var ErrMore = errors.New("the stream goes on")

func (r *Reader) corrupt(what string) error {
	return fmt.Errorf("%w: %s before offset %#x", ErrCorrupt, what, r.pos)
}

// New reads the header of a stream. The bytes must not change.
func New(input []byte) (*Reader, error) {
	r := &Reader{input: input}
	if len(input) < 2 {
		return nil, io.ErrUnexpectedEOF
	}
	// RFC 1950, 2.2: the method 8 with a window of at most 32 KiB, and no dictionary.
	if input[0]&15 != 8 || input[0]>>4 > 7 || binary.BigEndian.Uint16(input)%31 != 0 || input[1]&0x20 != 0 {
		return nil, fmt.Errorf("%w: header %#x %#x", ErrCorrupt, input[0], input[1])
	}
	r.pos = 2
	return r, nil
}

// Extend goes on unpacking into out, whose first n bytes were unpacked before, until
// want bytes are there or the stream has ended; want is at most the length of out. It
// returns how many there are. Bytes behind them may be written, too.
func (r *Reader) Extend(out []byte, n, want int) (int, error) {
	for n < want {
		var err error
		switch r.state {
		case atHeader:
			err = r.block()
		case inStored:
			n, err = r.copyStored(out, n, want)
		case inCodes:
			n, err = r.codes(out, n, want)
		case atEnd:
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Finish checks that the stream ends with the bytes of out, which are all that was
// unpacked, and that they have its checksum.
func (r *Reader) Finish(out []byte) error {
	for r.state != atEnd {
		var err error
		isMore := r.copyLength > 0
		switch r.state {
		case atHeader:
			err = r.block()
		case inStored:
			if isMore = r.stored > 0; !isMore {
				r.endBlock()
			}
		case inCodes:
			// A match or a literal would be beyond the end.
			var e uint32
			if e, err = r.literal(); err == nil && !isMore {
				if isMore = e&isEndOfBlock == 0; !isMore {
					r.endBlock()
				}
			}
		}
		if err != nil {
			return err
		}
		if isMore {
			return ErrMore
		}
	}
	offset := r.aligned()
	if offset < 0 || len(r.input)-offset < 4 {
		return io.ErrUnexpectedEOF
	}
	if sum := binary.BigEndian.Uint32(r.input[offset:]); sum != adler32.Checksum(out) {
		return fmt.Errorf("%w: checksum %#x, expected %#x", ErrCorrupt, adler32.Checksum(out), sum)
	}
	return nil
}

// aligned returns the offset of the next byte without used bits; -1 where it is
// behind the end.
func (r *Reader) aligned() int {
	offset := r.pos + int(r.over) - int(r.have/8)
	if offset > len(r.input) {
		return -1
	}
	return offset
}

// refill reads ahead until at least 56 bits are there. Behind the end they are 0;
// drop returns an error when one of them was used.
func (r *Reader) refill() {
	if len(r.input)-r.pos >= 8 {
		r.bits |= binary.LittleEndian.Uint64(r.input[r.pos:]) << (r.have & 63)
		r.pos += int((63 - r.have) >> 3)
		r.have |= 56
		return
	}
	for r.have < 56 {
		if r.pos < len(r.input) {
			r.bits |= uint64(r.input[r.pos]) << r.have
			r.pos++
		} else {
			r.over++
		}
		r.have += 8
	}
}

// drop uses bits.
func (r *Reader) drop(n uint) error {
	r.bits >>= n & 63
	r.have -= n
	if r.over*8 > r.have {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// take reads a number of at most 16 bits.
func (r *Reader) take(n uint) (uint, error) {
	r.refill()
	v := uint(r.bits & (1<<n - 1))
	return v, r.drop(n)
}

// block reads the header of a block (RFC 1951, 3.2.3).
func (r *Reader) block() error {
	v, err := r.take(3)
	if err != nil {
		return err
	}
	r.isFinal = v&1 != 0
	switch v >> 1 {
	case 0:
		return r.storedHeader()
	case 1:
		return r.fixedCodes()
	case 2:
		return r.dynamicCodes()
	}
	return r.corrupt("a block of type 3")
}

func (r *Reader) endBlock() {
	r.state = atHeader
	if r.isFinal {
		r.state = atEnd
	}
}

// storedHeader reads the length of a stored block (RFC 1951, 3.2.4).
func (r *Reader) storedHeader() error {
	offset := r.aligned()
	if offset < 0 || len(r.input)-offset < 4 {
		return io.ErrUnexpectedEOF
	}
	n := binary.LittleEndian.Uint16(r.input[offset:])
	if n != ^binary.LittleEndian.Uint16(r.input[offset+2:]) {
		return r.corrupt("the length of a stored block")
	}
	r.pos, r.bits, r.have, r.over = offset+4, 0, 0, 0
	r.state, r.stored = inStored, int(n)
	return nil
}

func (r *Reader) copyStored(out []byte, n, want int) (int, error) {
	count := min(r.stored, want-n)
	if count > len(r.input)-r.pos {
		return n, io.ErrUnexpectedEOF
	}
	n += copy(out[n:n+count], r.input[r.pos:])
	r.pos += count
	if r.stored -= count; r.stored == 0 {
		r.endBlock()
	}
	return n, nil
}
