// SPDX-License-Identifier: Apache-2.0

// Package damage changes files as disks, networks and attackers do, for what tests how
// damaged files are read.
package damage

import (
	"bytes"
	"math/rand/v2"
)

// most bounds how often a file is damaged, head is where half of that happens: headers are
// where most is decided.
const (
	most = 8
	head = 1024
)

// Of is a damaged copy of a file's content: bits and bytes changed, cut, moved, repeated, and
// pieces of it swapped.
func Of(random *rand.Rand, content []byte) []byte {
	b := bytes.Clone(content)
	for range 1 + random.IntN(most) {
		if len(b) == 0 {
			return b
		}
		at := random.IntN(len(b))
		if random.IntN(2) == 0 {
			at = random.IntN(min(len(b), head))
		}
		b = once(random, b, at)
	}
	return b
}

// once damages a file at one place, in its own memory where that is enough.
func once(random *rand.Rand, b []byte, at int) []byte {
	piece := b[at : at+1+random.IntN(min(64, len(b)-at))]
	switch random.IntN(7) {
	case 0: // a bit
		b[at] ^= 1 << random.IntN(8)
	case 1: // random bytes
		for i := range piece {
			piece[i] = byte(random.Uint32())
		}
	case 2: // a number at its limits
		edges := []byte{0, 0xff, 0x7f, 0x80, 1}
		edge := edges[random.IntN(len(edges))]
		for i := range b[at:min(len(b), at+8)] {
			b[at+i] = edge
		}
	case 3: // cut
		if random.IntN(4) == 0 {
			return b[:at]
		}
	case 4: // a piece from elsewhere
		copy(piece, b[random.IntN(len(b)):])
	case 5: // a piece twice, so that what follows moves
		end := at + len(piece)
		return append(b[:end:end], b[at:]...)
	case 6: // two pieces swapped
		other := b[random.IntN(len(b)-len(piece)+1):][:len(piece)]
		was := bytes.Clone(piece)
		copy(piece, other)
		copy(other, was)
	}
	return b
}
