// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// signatureVersion is of the rules by which signatures of classes are made.
const signatureVersion = 1

// signature is the signature of a class: of the stack at which it parts from the others, or, where it does not
// part, of all its stacks.
func (r *result) signature(c *class, parts bool) string {
	b := []byte{signatureVersion}
	add := func(kind string, vertex uint32) {
		b = appendText(b, kind)
		b = appendText(b, r.roles[r.vertices.role(vertex)])
		sum := r.hash(r.vertices.function(vertex))
		b = append(b, sum[:]...)
	}
	switch {
	case c.view == nil:
		b = appendText(appendText(b, "unread"), plainReason(r.units[c.units[0]].process))
	case parts && c.parting.missing != 0:
		add("missing", c.parting.missing)
	case parts:
		add("stack", c.parting.stack)
	default:
		for i := range c.stacks {
			add("all", c.stacks[i].vertex)
		}
	}
	sum := sha256.Sum256(b)
	return fmt.Sprintf("unwindd-class-%d:%x", signatureVersion, sum[:8])
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// hash is the hash of a stack by functions.
func (r *result) hash(node uint32) [sha256.Size]byte {
	if r.hashes == nil {
		r.hashes = make([][sha256.Size]byte, r.functions.size())
		var b []byte
		for i := 1; i < r.functions.size(); i++ {
			f := &r.attributes[i]
			b = append(b[:0], r.hashes[r.functions.parent[i]][:]...)
			if b = appendText(b, f.Function); f.Function == "" {
				b = binary.AppendUvarint(appendText(b, f.Module), f.Offset)
			}
			r.hashes[i] = sha256.Sum256(b)
		}
	}
	return r.hashes[node]
}
