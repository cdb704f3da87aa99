// SPDX-License-Identifier: Apache-2.0

package inflate

import "math/bits"

// Codes are looked up by so many bits at once; longer ones lead on to another table,
// behind the first one. The sizes are powers of two that are large enough for all
// complete codes of 288 and 32 symbols: 2342 and 402 entries.
const (
	literalBits  = 11
	literalSize  = 4096
	distanceBits = 8
	distanceSize = 512
	maxCodeBits  = 15
)

// Entries of a table. The lowest 8 bits are how many bits the code takes. A length or
// a distance has how many extra bits follow in the 4 bits above, and the smallest
// value in the upper half; a literal has the byte there. A longer code has the number
// of further bits to look up, and in the upper half the other table.
const (
	countBits  = 0xff
	extraShift = 8
	extraBits  = 15
	valueShift = 16

	isLeading    = 1 << 12 // to another table
	isEndOfBlock = 1 << 13
	isNoCode     = 1 << 14
	isLiteral    = 1 << 15

	isSpecial = isLeading | isEndOfBlock | isNoCode
)

// RFC 1951, 3.2.5.
var (
	lengthBases = [...]uint32{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthExtra = [...]uint32{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	// The order of the lengths of the codes for lengths (3.2.7).
	codeOrder = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
)

const (
	maxLiterals  = 288
	maxDistances = 32
	endOfBlock   = 256
)

// literalEntry returns the entry of a symbol of the first alphabet, without the code's
// bits.
func literalEntry(symbol int) uint32 {
	switch n := symbol - endOfBlock - 1; {
	case symbol < endOfBlock:
		return uint32(symbol)<<valueShift | isLiteral
	case symbol == endOfBlock:
		return isEndOfBlock
	case n < len(lengthBases):
		return lengthBases[n]<<valueShift | lengthExtra[n]<<extraShift
	}
	return isNoCode
}

// distanceEntry returns the entry of a symbol of the alphabet of distances.
func distanceEntry(symbol int) uint32 {
	if symbol < 4 {
		return uint32(symbol+1) << valueShift
	}
	if symbol >= 30 {
		return isNoCode
	}
	extra := uint32(symbol/2 - 1)
	return (uint32(2+symbol&1)<<extra+1)<<valueShift | extra<<extraShift
}

func plainEntry(symbol int) uint32 { return uint32(symbol) << valueShift }

// fill fills the table of the codes with these lengths (RFC 1951, 3.2.2). It reports
// false where they are no code. An incomplete code is valid only with one symbol, or
// none.
func fill(table []uint32, primary uint, lengths []uint8, entry func(symbol int) uint32) bool {
	var counts [maxCodeBits + 1]int
	for _, n := range lengths {
		counts[n]++
	}
	used := len(lengths) - counts[0]
	counts[0] = 0
	var next [maxCodeBits + 2]uint32
	left := 1
	for n := 1; n <= maxCodeBits; n++ {
		if left = left*2 - counts[n]; left < 0 {
			return false
		}
		next[n+1] = (next[n] + uint32(counts[n])) << 1
	}
	if left > 0 {
		if used > 1 || used == 1 && counts[1] == 0 {
			return false
		}
		for i := range table[:1<<primary] {
			table[i] = isNoCode
		}
	}
	// Symbols by length, and by number within a length.
	var sorted [maxLiterals]uint16
	var at [maxCodeBits + 2]int
	for n := 1; n <= maxCodeBits; n++ {
		at[n+1] = at[n] + counts[n]
	}
	for symbol, n := range lengths {
		if n > 0 {
			sorted[at[n]] = uint16(symbol)
			at[n]++
		}
	}
	f := filler{table: table, primary: primary, end: 1 << primary, counts: counts}
	i := 0
	for n := uint(1); n <= maxCodeBits; n++ {
		for range counts[n] {
			f.add(next[n], n, entry(int(sorted[i])))
			f.counts[n]--
			next[n]++
			i++
		}
	}
	return true
}

// filler puts codes, the shorter ones first, into a table.
type filler struct {
	table   []uint32
	primary uint
	end     int                  // of the used part of the table
	counts  [maxCodeBits + 1]int // codes that are not in it yet, by length
	prefix  uint32               // of the last code that had another table
	sub     int                  // where that table begins
	subBits uint
}

// add adds a code of n bits.
func (f *filler) add(code uint32, n uint, entry uint32) {
	reversed := bits.Reverse32(code) >> (32 - n)
	if n <= f.primary {
		for i := reversed; i < 1<<f.primary; i += 1 << n {
			f.table[i] = entry | uint32(n)
		}
		return
	}
	prefix := reversed & (1<<f.primary - 1)
	if f.sub == 0 || prefix != f.prefix {
		f.begin(prefix, n)
	}
	for i := reversed >> f.primary; i < 1<<f.subBits; i += 1 << (n - f.primary) {
		f.table[f.sub+int(i)] = entry | uint32(n-f.primary)
	}
}

// begin adds the table of all codes with a prefix, the shortest of n bits: it is
// as large as the codes from there on need.
func (f *filler) begin(prefix uint32, n uint) {
	f.prefix, f.sub, f.subBits = prefix, f.end, n-f.primary
	for used := f.counts[n]; used < 1<<f.subBits && f.primary+f.subBits < maxCodeBits; {
		f.subBits++
		used = used*2 + f.counts[f.primary+f.subBits]
	}
	f.end += 1 << f.subBits
	f.table[prefix] = uint32(f.sub)<<valueShift | uint32(f.subBits)<<extraShift | isLeading | uint32(f.primary)
}

// fixedCodes fills the tables of RFC 1951, 3.2.6.
func (r *Reader) fixedCodes() error {
	var lengths [maxLiterals + maxDistances]uint8
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		case i < maxLiterals:
			lengths[i] = 8
		default:
			lengths[i] = 5
		}
	}
	return r.setCodes(lengths[:maxLiterals], lengths[maxLiterals:])
}

func (r *Reader) setCodes(literals, distances []uint8) error {
	if !fill(r.literals[:], literalBits, literals, literalEntry) || !fill(r.distances[:], distanceBits, distances, distanceEntry) {
		return r.corrupt("lengths that are no code")
	}
	r.state = inCodes
	return nil
}

// dynamicCodes reads the lengths of codes (RFC 1951, 3.2.7).
func (r *Reader) dynamicCodes() error {
	v, err := r.take(14)
	if err != nil {
		return err
	}
	literals, distances, count := int(v&31)+257, int(v>>5&31)+1, int(v>>10)+4
	if literals > 286 || distances > 30 {
		return r.corrupt("more codes than there are symbols")
	}
	var order [len(codeOrder)]uint8
	for i := range count {
		v, err := r.take(3)
		if err != nil {
			return err
		}
		order[codeOrder[i]] = uint8(v)
	}
	if !fill(r.distances[:], 7, order[:], plainEntry) {
		return r.corrupt("lengths that are no code")
	}
	var lengths [maxLiterals + maxDistances]uint8
	if err := r.codeLengths(lengths[:literals+distances]); err != nil {
		return err
	}
	if lengths[endOfBlock] == 0 {
		return r.corrupt("no code for the end of a block")
	}
	return r.setCodes(lengths[:literals], lengths[literals:literals+distances])
}

// codeLengths reads lengths by the code that is in the table of distances.
func (r *Reader) codeLengths(lengths []uint8) error {
	for i := 0; i < len(lengths); {
		r.refill()
		e := r.distances[r.bits&127]
		if e&isNoCode != 0 {
			return r.corrupt("bits that are no code")
		}
		if err := r.drop(uint(e & countBits)); err != nil {
			return err
		}
		symbol := e >> valueShift
		if symbol < 16 {
			lengths[i] = uint8(symbol)
			i++
			continue
		}
		var value uint8
		repeat := [...]struct{ bits, least uint }{{2, 3}, {3, 3}, {7, 11}}[symbol-16]
		if symbol == 16 {
			if i == 0 {
				return r.corrupt("a repeated length without one before it")
			}
			value = lengths[i-1]
		}
		n, err := r.take(repeat.bits)
		if err != nil {
			return err
		}
		if n += repeat.least; n > uint(len(lengths)-i) {
			return r.corrupt("more lengths than symbols")
		}
		for range n {
			lengths[i] = value
			i++
		}
	}
	return nil
}
