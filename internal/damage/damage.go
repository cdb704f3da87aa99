// SPDX-License-Identifier: Apache-2.0

// Package damage changes files as disks, networks and attackers do, for tests of
// reading damaged files.
package damage

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
)

var digits = regexp.MustCompile("[0-9]+|[0-9a-f]{4,}")

// most bounds how often a file is damaged. Half of the damage is in its first
// headerBytes, where headers decide most.
const (
	most        = 8
	headerBytes = 1024
)

// Of returns a damaged copy of a file's content: bits and bytes changed, cut, moved,
// repeated, and pieces of it swapped.
func Of(random *rand.Rand, content []byte) []byte {
	b := bytes.Clone(content)
	for range 1 + random.IntN(most) {
		if len(b) == 0 {
			return b
		}
		offset := random.IntN(len(b))
		if random.IntN(2) == 0 {
			offset = random.IntN(min(len(b), headerBytes))
		}
		b = once(random, b, offset)
	}
	return b
}

// With returns a damaged copy of a file's content: like Of's, or damaged where it hurts, by the
// format. Lengths, counts and offsets of headers get extreme values; records and sections are
// repeated, swapped and removed; pieces and members come from another file; the members of an
// archive are damaged, and it is packed again; numbers of a text get larger, and its brackets
// deeper.
func With(random *rand.Rand, content, other []byte) []byte {
	if len(content) == 0 || random.IntN(4) == 0 {
		return Of(random, content)
	}
	b := bytes.Clone(content)
	if bytes.HasPrefix(b, []byte("PK\x03\x04")) && random.IntN(3) > 0 {
		if packed := damageMembers(random, b, other); packed != nil {
			return packed
		}
	}
	known := fieldsOf(b)
	for range 1 + random.IntN(4) {
		switch n := random.IntN(10); {
		case len(b) == 0:
			return b
		case isText(b) && n < 6:
			b = damageText(random, b)
		case n < 6:
			if f := aField(random, b, known); f.offset+f.size <= len(b) {
				f.put(b, edge(random, f.get(b), f.size, len(b)))
			}
		case n < 8:
			b = damageRecords(random, b, other)
		case n == 8 && len(other) > 0:
			from := random.IntN(len(other))
			copy(b[random.IntN(len(b)):], other[from:from+1+random.IntN(min(4096, len(other)-from))])
		default:
			b = once(random, b, random.IntN(len(b)))
		}
	}
	return b
}

// damageText changes a number, a name or the nesting of a text.
func damageText(random *rand.Rand, b []byte) []byte {
	offset := random.IntN(len(b))
	switch random.IntN(4) {
	case 0: // a word is longer
		return slices.Insert(b, offset, bytes.Repeat([]byte{b[offset]}, 1<<random.IntN(16))...)
	case 1: // deeper
		open := []string{"[", "{", "(", "!{", "<", `{"a":`, "-", "\\", "*"}
		return slices.Insert(b, offset, bytes.Repeat([]byte(open[random.IntN(len(open))]), 1<<random.IntN(16))...)
	}
	numbers := digits.FindAllIndex(b[offset:min(len(b), offset+1<<16)], 50)
	if len(numbers) == 0 {
		return once(random, b, offset)
	}
	n := numbers[random.IntN(len(numbers))]
	edges := []string{"0", "-1", "1", "ffffffffffffffff", "18446744073709551615", "18446744073709551616", "9223372036854775807", "-9223372036854775808", "4294967295", "2147483648", "65536", "1e999", "0x", ""}
	return slices.Replace(b, offset+n[0], offset+n[1], []byte(edges[random.IntN(len(edges))])...)
}

// once damages a file at one place, in its own memory where that is enough.
func once(random *rand.Rand, b []byte, offset int) []byte {
	piece := b[offset : offset+1+random.IntN(min(64, len(b)-offset))]
	switch random.IntN(7) {
	case 0: // a bit
		b[offset] ^= 1 << random.IntN(8)
	case 1: // random bytes
		for i := range piece {
			piece[i] = byte(random.Uint32())
		}
	case 2: // a number at its limits
		edges := []byte{0, 0xff, 0x7f, 0x80, 1}
		edge := edges[random.IntN(len(edges))]
		for i := range b[offset:min(len(b), offset+8)] {
			b[offset+i] = edge
		}
	case 3: // cut
		if random.IntN(4) == 0 {
			return b[:offset]
		}
	case 4: // a piece from elsewhere
		copy(piece, b[random.IntN(len(b)):])
	case 5: // a piece twice, so that what follows moves
		end := offset + len(piece)
		return append(b[:end:end], b[offset:]...)
	case 6: // two pieces swapped
		other := b[random.IntN(len(b)-len(piece)+1):][:len(piece)]
		was := bytes.Clone(piece)
		copy(piece, other)
		copy(other, was)
	}
	return b
}
