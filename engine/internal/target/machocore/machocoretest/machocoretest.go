// SPDX-License-Identifier: Apache-2.0

// Package machocoretest builds Mach-O cores for tests.
package machocoretest

import (
	"encoding/binary"
	"fmt"
)

// Builder builds a core. Its parts are written in the order in which they were added.
type Builder struct {
	Machine, Subtype uint32
	threads          [][]byte
	segments         []Segment
	notes            []note
}

// Segment is a range of memory.
type Segment struct {
	Address    uint64
	Data       []byte
	Protection uint32
	Missing    uint64 // bytes behind Data that the core lacks
}

type note struct {
	owner string
	data  func(offset uint64) []byte // by its offset in the core
}

// Image is an entry of "all image infos".
type Image struct {
	Path    string
	UUID    []byte
	Address uint64
}

var le = binary.LittleEndian

// Thread adds a thread of states.
func (b *Builder) Thread(states ...[]byte) {
	var all []byte
	for _, s := range states {
		all = append(all, s...)
	}
	b.threads = append(b.threads, all)
}

// State returns a state of a flavor.
func State(flavor uint32, words []byte) []byte {
	s := le.AppendUint32(nil, flavor)
	s = le.AppendUint32(s, uint32(len(words)/4)) //nolint:gosec // few
	return append(s, words...)
}

// Words returns numbers of 8 bytes.
func Words(list ...uint64) []byte {
	var b []byte
	for _, v := range list {
		b = le.AppendUint64(b, v)
	}
	return b
}

// Segment adds a range of memory.
func (b *Builder) Segment(s Segment) { b.segments = append(b.segments, s) }

// Note adds a note.
func (b *Builder) Note(owner string, data []byte) {
	b.notes = append(b.notes, note{owner, func(uint64) []byte { return data }})
}

// Bits adds the number of bits of an address.
func (b *Builder) Bits(bits uint32) {
	b.Note("addrable bits", le.AppendUint64(le.AppendUint32(le.AppendUint32(nil, 3), bits), 0))
}

// IDs adds the IDs of the threads.
func (b *Builder) IDs(ids ...uint64) {
	text := `{"threads":[`
	for i, id := range ids {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(`{"thread_id":%d}`, id)
	}
	b.Note("process metadata", []byte(text+"]}"))
}

// Images adds the list of all images.
func (b *Builder) Images(list ...Image) {
	b.notes = append(b.notes, note{"all image infos", func(offset uint64) []byte {
		const header, entry = 24, 48
		n := uint64(len(list))
		out := le.AppendUint32(nil, 1)
		out = le.AppendUint32(out, uint32(n)) //nolint:gosec // few
		out = le.AppendUint64(out, offset+header)
		out = le.AppendUint64(out, entry)
		path := offset + header + n*entry
		for _, im := range list {
			out = le.AppendUint64(out, path)
			out = append(out, append(im.UUID, make([]byte, 16)...)[:16]...)
			out = append(out, Words(im.Address, ^uint64(0), 0)...)
			path += uint64(len(im.Path)) + 1
		}
		for _, im := range list {
			out = append(append(out, im.Path...), 0)
		}
		return out
	}})
}

// Bytes returns the core.
func (b *Builder) Bytes() []byte {
	const header, segment, noteSize, page = 32, 72, 40, 4096
	size := uint64(len(b.segments)*segment + len(b.notes)*noteSize)
	for _, t := range b.threads {
		size += 8 + uint64(len(t))
	}
	out := le.AppendUint32(nil, 0xfeedfacf)
	count := len(b.threads) + len(b.segments) + len(b.notes)
	for _, v := range []uint32{b.Machine, b.Subtype, 4, uint32(count), uint32(size), 0, 0} { //nolint:gosec // few
		out = le.AppendUint32(out, v)
	}
	var data []byte
	at := (header + size + page - 1) / page * page
	put := func(d []byte) (offset uint64) {
		offset = at + uint64(len(data))
		data = append(data, d...)
		for len(data)%16 != 0 {
			data = append(data, 0)
		}
		return offset
	}
	for _, n := range b.notes {
		d := n.data(at + uint64(len(data)))
		out = le.AppendUint32(le.AppendUint32(out, 0x31), noteSize)
		out = append(out, append([]byte(n.owner), make([]byte, 16)...)[:16]...)
		out = append(out, Words(put(d), uint64(len(d)))...)
	}
	for _, t := range b.threads {
		out = le.AppendUint32(le.AppendUint32(out, 4), uint32(8+len(t))) //nolint:gosec // few
		out = append(out, t...)
	}
	for len(data)%page != 0 {
		data = append(data, 0)
	}
	for _, s := range b.segments {
		out = le.AppendUint32(le.AppendUint32(out, 0x19), segment)
		out = append(out, make([]byte, 16)...)
		n := uint64(len(s.Data))
		out = append(out, Words(s.Address, n+s.Missing, put(s.Data), n)...)
		for _, v := range []uint32{s.Protection, s.Protection, 0, 0} {
			out = le.AppendUint32(out, v)
		}
	}
	out = append(out, make([]byte, at-uint64(len(out)))...)
	return append(out, data...)
}
