// SPDX-License-Identifier: Apache-2.0

package inflate

import "encoding/binary"

// The bytes that must be left for the fast loop: in the output, two literals, a
// match and the bytes that copying it writes behind it; in the input, two reads of
// refill.
const (
	maxMatch  = 258
	roomOut   = maxMatch + 16 + 2
	roomIn    = 16
	wordBytes = 8
)

// codes goes on in a block of codes.
func (r *Reader) codes(out []byte, n, want int) (int, error) {
	for n < want {
		if r.copyLength > 0 {
			n = r.copyMatch(out, n)
			continue
		}
		if r.over == 0 && len(out)-n >= roomOut && len(r.input)-r.pos >= roomIn {
			before := n
			var err error
			if n, err = r.fast(out, n, want); err != nil || n >= want {
				return n, err
			}
			if n > before {
				continue
			}
		}
		e, err := r.literal()
		if err != nil {
			return n, err
		}
		switch {
		case e&isLiteral != 0:
			out[n] = byte(e >> valueShift)
			n++
		case e&isEndOfBlock != 0:
			r.endBlock()
			return n, nil
		default:
			if err := r.match(e, n); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// literal reads a symbol of the first alphabet, the extra bits of a length not
// included.
func (r *Reader) literal() (uint32, error) {
	r.refill()
	e := r.literals[r.bits&(1<<literalBits-1)]
	if e&isLeading != 0 {
		if err := r.drop(uint(e & countBits)); err != nil {
			return 0, err
		}
		e = r.literals[(uint64(e>>valueShift)+r.bits&(1<<(e>>extraShift&extraBits)-1))%literalSize]
	}
	if e&isNoCode != 0 {
		return 0, r.corrupt("bits that are no code")
	}
	return e, r.drop(uint(e & countBits))
}

// match reads the rest of a match that begins with a length.
func (r *Reader) match(e uint32, n int) error {
	extra, err := r.take(uint(e >> extraShift & extraBits))
	if err != nil {
		return err
	}
	length := int(e>>valueShift) + int(extra)
	r.refill()
	d := r.distances[r.bits&(1<<distanceBits-1)]
	if d&isLeading != 0 {
		if err := r.drop(uint(d & countBits)); err != nil {
			return err
		}
		d = r.distances[(uint64(d>>valueShift)+r.bits&(1<<(d>>extraShift&extraBits)-1))%distanceSize]
	}
	if d&isNoCode != 0 {
		return r.corrupt("bits that are no code")
	}
	if err := r.drop(uint(d & countBits)); err != nil {
		return err
	}
	if extra, err = r.take(uint(d >> extraShift & extraBits)); err != nil {
		return err
	}
	distance := int(d>>valueShift) + int(extra)
	if distance > n {
		return r.corrupt("a distance that leads before the beginning")
	}
	r.copyLength, r.copyDistance = length, distance
	return nil
}

// copyMatch copies a match as far as it fits.
func (r *Reader) copyMatch(out []byte, n int) int {
	end := n + min(r.copyLength, len(out)-n)
	r.copyLength -= end - n
	for ; n < end; n++ {
		out[n] = out[n-r.copyDistance]
	}
	return n
}

// fast decodes while all bytes that one round may read or write are there. It
// leaves the end of a block, and invalid codes, to the caller.
func (r *Reader) fast(out []byte, n, want int) (int, error) {
	input, pos, bits, have := r.input, r.pos, r.bits, r.have
	lastInput, lastOut := len(input)-roomIn, min(len(out)-roomOut, want-1)
	var failed error
	for n <= lastOut && pos <= lastInput {
		bits |= binary.LittleEndian.Uint64(input[pos:]) << (have & 63)
		pos += int((63 - have) >> 3)
		have |= 56
		e := r.literals[bits&(1<<literalBits-1)]
		if e&isLiteral != 0 { // of 11 bits at most: there may be three before more must be read
			bits >>= e & 63
			have -= uint(e & countBits)
			out[n] = byte(e >> valueShift)
			n++
			if e = r.literals[bits&(1<<literalBits-1)]; e&isLiteral != 0 {
				bits >>= e & 63
				have -= uint(e & countBits)
				out[n] = byte(e >> valueShift)
				n++
				if e = r.literals[bits&(1<<literalBits-1)]; e&isLiteral != 0 {
					bits >>= e & 63
					have -= uint(e & countBits)
					out[n] = byte(e >> valueShift)
					n++
					continue
				}
			}
			bits |= binary.LittleEndian.Uint64(input[pos:]) << (have & 63)
			pos += int((63 - have) >> 3)
			have |= 56
		}
		lead := uint(0)
		if e&isLeading != 0 {
			lead = literalBits
			e = r.literals[(uint64(e>>valueShift)+bits>>literalBits&(1<<(e>>extraShift&extraBits)-1))%literalSize]
		}
		if e&(isEndOfBlock|isNoCode) != 0 {
			break // nothing of it was used
		}
		bits >>= lead & 63
		bits >>= e & 63
		have -= lead + uint(e&countBits)
		if e&isLiteral != 0 {
			out[n] = byte(e >> valueShift)
			n++
			continue
		}
		// At most 15 bits of the length's code are used, and 41 are left: for 5 extra
		// bits, 15 of the distance's code and 13 extra bits.
		extra := e >> extraShift & extraBits
		length := int(e>>valueShift) + int(bits&(1<<extra-1))
		bits >>= extra & 63
		have -= uint(extra)
		d := r.distances[bits&(1<<distanceBits-1)]
		if d&isSpecial != 0 {
			if d&isLeading != 0 {
				bits >>= distanceBits
				have -= distanceBits
				d = r.distances[(uint64(d>>valueShift)+bits&(1<<(d>>extraShift&extraBits)-1))%distanceSize]
			}
			if d&isNoCode != 0 {
				failed = r.corrupt("bits that are no code")
				break
			}
		}
		bits >>= d & 63
		extra = d >> extraShift & extraBits
		distance := int(d>>valueShift) + int(bits&(1<<extra-1))
		bits >>= extra & 63
		have -= uint(d&countBits) + uint(extra)
		if distance > n {
			failed = r.corrupt("a distance that leads before the beginning")
			break
		}
		copyFast(out, n, distance, length)
		n += length
	}
	r.pos, r.bits, r.have = pos, bits&(1<<(have&63)-1), have
	return n, failed
}

// copyFast copies a match, and up to 8 bytes more.
func copyFast(out []byte, n, distance, length int) {
	end := n + length
	if distance >= wordBytes {
		from := out[n-distance:]
		to := out[n:]
		for i := 0; i < length; i += wordBytes {
			binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(from[i:]))
		}
		return
	}
	if distance == 1 {
		word := uint64(out[n-1]) * 0x0101010101010101
		for ; n < end; n += wordBytes {
			binary.LittleEndian.PutUint64(out[n:], word)
		}
		return
	}
	for ; n < end; n++ {
		out[n] = out[n-distance]
	}
}
