// SPDX-License-Identifier: Apache-2.0

package codeview

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
)

// Size is the size of a type in bytes; false where it is unknown.
func (t *Types) Size(index TypeIndex) (uint64, bool) {
	for range maxNested {
		if index < t.first {
			s, ok := SimpleType(index)
			if s.PointerSize > 0 {
				return s.PointerSize, ok
			}
			return s.Size, ok && s.Size > 0
		}
		kind, data, err := t.Record(index)
		if err != nil {
			return 0, false
		}
		switch {
		case kind == LFModifier:
			m, _ := DecodeModifier(data)
			index = m.Target
		case kind == LFBitField:
			b, _ := DecodeBitField(data)
			index = b.Base
		case kind == LFPointer:
			p, err := DecodePointer(data)
			return uint64(p.Size), err == nil && p.Size > 0
		case kind == LFArray:
			a, err := DecodeArray(data)
			return a.Size, err == nil
		case IsUDT(kind):
			if index = t.Definition(index); index == 0 {
				return 0, false
			}
			if kind, data, err = t.Record(index); err != nil {
				return 0, false
			}
			u, err := DecodeUDT(kind, data)
			if u.Kind != LFEnum || err != nil {
				return u.Size, err == nil
			}
			index = u.Underlying
		default:
			return 0, false
		}
	}
	return 0, false
}

// hashIndex has the records by the hashes that linkers write for them.
type hashIndex struct {
	once  sync.Once
	first []uint32 // of a bucket in list; nil where the file has no hashes
	list  []TypeIndex
	bytes atomic.Uint64
}

// Definition returns the index of the definition of a class, structure, union or enumeration, which
// is the index itself for one; 0 where the file has only declarations.
func (t *Types) Definition(index TypeIndex) TypeIndex {
	kind, data, err := t.Record(index)
	if err != nil || !IsUDT(kind) {
		return 0
	}
	u, err := DecodeUDT(kind, data)
	if err != nil {
		return 0
	}
	if !u.IsForward() {
		return index
	}
	key := u.Name
	if u.Properties&PropertyScoped != 0 && u.UniqueName != "" {
		key = u.UniqueName
	}
	for _, other := range t.candidates(key) {
		if d, ok := t.definition(other); ok && d.Kind == u.Kind && d.Name == u.Name && (u.UniqueName == "" || u.UniqueName == d.UniqueName) {
			return other
		}
	}
	return 0
}

// Named returns the definitions of a name with its scopes.
func (t *Types) Named(name string) (list []TypeIndex) {
	for _, index := range t.candidates(name) {
		if d, ok := t.definition(index); ok && d.Name == name {
			list = append(list, index)
		}
	}
	return list
}

// UDT reads the record of a class, structure, union or enumeration.
func (t *Types) UDT(index TypeIndex) (u UDT, ok bool) {
	kind, data, err := t.Record(index)
	if err != nil || !IsUDT(kind) {
		return u, false
	}
	u, err = DecodeUDT(kind, data)
	return u, err == nil
}

// definition is UDT for definitions alone.
func (t *Types) definition(index TypeIndex) (u UDT, ok bool) {
	u, ok = t.UDT(index)
	return u, ok && !u.IsForward()
}

// maxCandidates bounds the records of one hash that are compared.
const maxCandidates = 1 << 12

// candidates are the records that may define a name, or a unique name.
func (t *Types) candidates(name string) []TypeIndex {
	t.byHash.once.Do(t.readHashes)
	if x := &t.byHash; x.first != nil {
		bucket := hashText(name) % uint32(len(x.first)-1) //nolint:gosec // at most 2^18
		list := x.list[x.first[bucket]:x.first[bucket+1]]
		return list[:min(len(list), maxCandidates)]
	}
	t.nameless.Do(t.hashNames)
	return t.defined[maphash.String(nameSeed, name)]
}

// maxBuckets bounds the buckets of hashes: Microsoft's linker has up to 0x3ffff.
const maxBuckets = 1 << 20

// readHashes sorts the records by their buckets, which the hash part has for each.
func (t *Types) readHashes() {
	h, n := &t.hash, uint32(t.end-t.first)
	if h.stream == nil || h.keySize != 4 && h.keySize != 2 || h.buckets == 0 || h.buckets > maxBuckets || n == 0 || uint64(h.values.size) != uint64(n)*uint64(h.keySize) {
		return
	}
	values, err := h.stream.Bytes(h.values.offset, h.values.size)
	if err != nil {
		return
	}
	value := func(i uint32) uint32 {
		if h.keySize == 2 {
			return uint32(binary.LittleEndian.Uint16(values[2*i:])) % h.buckets
		}
		return u32(values[4*i:]) % h.buckets
	}
	first := make([]uint32, h.buckets+2)
	for i := range n {
		first[value(i)+2]++
	}
	for i := 2; i < len(first); i++ {
		first[i] += first[i-1]
	}
	list := make([]TypeIndex, n)
	for i := range n {
		b := value(i) + 1
		list[first[b]] = t.first + TypeIndex(i)
		first[b]++
	}
	t.byHash.first, t.byHash.list = first[:h.buckets+1], list
	t.byHash.bytes.Store(uint64(len(first)+len(list)) * 4)
}

// hashText is the hash of names in PDB files, in its first version.
func hashText(name string) uint32 {
	b := []byte(name)
	h := uint32(0)
	for ; len(b) >= 4; b = b[4:] {
		h ^= u32(b)
	}
	if len(b) >= 2 {
		h ^= uint32(binary.LittleEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		h ^= uint32(b[0])
	}
	h |= 0x20202020
	h ^= h >> 11
	return h ^ h>>16
}

var nameSeed = maphash.MakeSeed()

// hashNames reads all records of a file without hashes.
func (t *Types) hashNames() {
	t.defined = map[uint64][]TypeIndex{}
	for index := t.first; index < t.end; index++ {
		kind, data, err := t.Record(index)
		if err != nil {
			break
		}
		if !IsUDT(kind) {
			continue
		}
		u, err := DecodeUDT(kind, data)
		if err != nil || u.IsForward() {
			continue
		}
		for _, name := range slices.Compact([]string{u.Name, u.UniqueName}) {
			if key := maphash.String(nameSeed, name); name != "" {
				t.defined[key] = append(t.defined[key], index)
			}
		}
	}
	t.byHash.bytes.Store(uint64(len(t.defined)) * 48)
}
