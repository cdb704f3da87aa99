// SPDX-License-Identifier: Apache-2.0

package object

import "encoding/binary"

// hashTable is the section by which dynamic linkers find symbols: a Bloom filter, then
// chains of hashes, each with its lowest bit set where the chain ends.
const hashTable = ".gnu.hash"

// MayExport reports whether other code objects may find a symbol of a name here. It is false
// only where the object's hash table excludes the name, and reads no symbols. It is called inside
// Guard.
func (o *Object) MayExport(name string) bool {
	s := o.Section(hashTable)
	if s == nil {
		return true
	}
	data, err := s.Data()
	return err != nil || mayHave(data, o.ByteOrder(), uint64(o.AddressSize()), name)
}

// mayHave reports whether a table with a word size may have a name. A damaged one may have any.
func mayHave(data []byte, order binary.ByteOrder, wordSize uint64, name string) bool {
	const header = 16
	if len(data) < header {
		return true
	}
	buckets, first := order.Uint32(data), uint64(order.Uint32(data[4:]))
	filter := uint64(order.Uint32(data[8:])) * wordSize
	if buckets == 0 || filter == 0 || uint64(len(data)-header) < filter+4*uint64(buckets) {
		return true
	}
	hash := gnuHashOf(name)
	if !inFilter(data[header:header+filter], order, hash, wordSize, order.Uint32(data[12:])) {
		return false
	}
	chains := data[header+filter:]
	next := uint64(order.Uint32(chains[4*(hash%buckets):]))
	if next < first {
		return false // the bucket is empty
	}
	chains = chains[4*uint64(buckets):]
	for offset := 4 * (next - first); offset+4 <= uint64(len(chains)); offset += 4 {
		h := order.Uint32(chains[offset:])
		if h|1 == hash|1 {
			return true
		}
		if h&1 != 0 {
			return false
		}
	}
	return true
}

// inFilter reports whether a Bloom filter may have a hash.
func inFilter(filter []byte, order binary.ByteOrder, hash uint32, wordSize uint64, shift uint32) bool {
	bits := uint32(wordSize * 8)
	offset := uint64(hash/bits) % (uint64(len(filter)) / wordSize) * wordSize
	word := uint64(order.Uint32(filter[offset:]))
	if wordSize == 8 {
		word = order.Uint64(filter[offset:])
	}
	return word>>(hash%bits)&1 != 0 && word>>(hash>>(shift&31)%bits)&1 != 0
}

// gnuHashOf returns the hash of a symbol's name.
func gnuHashOf(name string) uint32 {
	h := uint32(5381)
	for i := range len(name) {
		h = h*33 + uint32(name[i])
	}
	return h
}
