// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"cmp"
	"encoding/binary"
	"strconv"
)

// threadID is the ID of a thread: a number, or another text, whose number is noID.
type threadID struct {
	text   string
	number uint64
}

const noID = 1<<64 - 1

// maxIDNumber bounds IDs that are kept as numbers, so that a difference of two and a flag fit in 64 bits.
const maxIDNumber = 1 << 61

func newThreadID(s string) threadID {
	if n, ok := number(s); ok && n < maxIDNumber {
		return threadID{number: n}
	}
	return threadID{s, noID}
}

func (id *threadID) isNumber() bool { return id.number != noID }

func (id *threadID) String() string {
	if !id.isNumber() {
		return id.text
	}
	return strconv.FormatUint(id.number, 10)
}

// compare orders IDs, numbers first.
func (id *threadID) compare(other *threadID) int {
	return cmp.Or(cmp.Compare(id.number, other.number), compareNatural(id.text, other.text))
}

// appendIDs appends IDs of threads: of a number twice its difference to the number before, with the sign in the
// last bit; of a text twice its length and one, and the text.
func appendIDs(out []byte, list []threadID) []byte {
	before := int64(0)
	for i := range list {
		id := &list[i]
		if !id.isNumber() {
			out = append(binary.AppendUvarint(out, uint64(len(id.text))<<1|1), id.text...)
			continue
		}
		n := int64(id.number) //nolint:gosec // bounded
		difference := n - before
		before = n
		out = binary.AppendUvarint(out, uint64(difference<<1^difference>>63)<<1) //nolint:gosec // bits are kept
	}
	return out
}

// readIDs appends a number of IDs to a list. rest is the data after them; ok is false where they are damaged.
func readIDs(list []threadID, data []byte, count int) (ids []threadID, rest []byte, ok bool) {
	before := int64(0)
	for range count {
		n, size := binary.Uvarint(data)
		if size <= 0 {
			return list, data, false
		}
		data = data[size:]
		if n&1 == 1 {
			length := n >> 1
			if length > uint64(len(data)) {
				return list, data, false
			}
			id := newThreadID(string(data[:length]))
			if id.isNumber() {
				return list, data, false
			}
			list, data = append(list, id), data[length:]
			continue
		}
		n >>= 1
		before += int64(n>>1) ^ -int64(n&1) //nolint:gosec // bits are kept
		if before < 0 || before >= maxIDNumber {
			return list, data, false
		}
		list = append(list, threadID{number: uint64(before)}) //nolint:gosec // not negative
	}
	return list, data, true
}
