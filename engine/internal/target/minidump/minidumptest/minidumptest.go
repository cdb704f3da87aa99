// SPDX-License-Identifier: Apache-2.0

// Package minidumptest builds minidumps for tests.
package minidumptest

import (
	"encoding/binary"
	"fmt"
	"unicode/utf16"
)

// The streams that a Builder fills in itself.
const (
	exception  = 6
	systemInfo = 7
)

// Builder builds dumps. Parts follow one another, the directory comes last.
type Builder struct {
	order   binary.AppendByteOrder
	Data    []byte      // up to now
	Streams [][3]uint32 // type, size and offset of each
}

// ByteOrder is one of the two of package binary.
type ByteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// New begins a dump of a byte order.
func New(order ByteOrder) *Builder {
	return &Builder{order: order, Data: make([]byte, 32)}
}

// Pack writes numbers with their own sizes, and bytes and texts as they are.
func (b *Builder) Pack(list ...any) []byte {
	var out []byte
	for _, v := range list {
		switch v := v.(type) {
		case uint8:
			out = append(out, v)
		case uint16:
			out = b.order.AppendUint16(out, v)
		case uint32:
			out = b.order.AppendUint32(out, v)
		case uint64:
			out = b.order.AppendUint64(out, v)
		case []uint64:
			for _, n := range v {
				out = b.order.AppendUint64(out, n)
			}
		case []byte:
			out = append(out, v...)
		case string:
			out = append(out, v...)
		default:
			panic(fmt.Sprintf("%T", v))
		}
	}
	return out
}

// Put adds bytes and returns their offset.
func (b *Builder) Put(list ...any) uint32 {
	at := uint32(len(b.Data))
	b.Data = append(b.Data, b.Pack(list...)...)
	return at
}

// Part adds bytes and returns their location: size and offset.
func (b *Builder) Part(list ...any) []byte {
	p := b.Pack(list...)
	return b.Pack(uint32(len(p)), b.Put(p))
}

// Wide encodes a text in UTF-16.
func (b *Builder) Wide(s string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		out = b.order.AppendUint16(out, u)
	}
	return out
}

// Text adds a MINIDUMP_STRING.
func (b *Builder) Text(s string) uint32 {
	w := b.Wide(s)
	return b.Put(uint32(len(w)), w, uint16(0))
}

// Narrow adds a text of Crashpad.
func (b *Builder) Narrow(s string) uint32 { return b.Put(uint32(len(s)), s, uint8(0)) }

// Stream adds a stream of a type.
func (b *Builder) Stream(t uint32, list ...any) {
	p := b.Pack(list...)
	b.Streams = append(b.Streams, [3]uint32{t, uint32(len(p)), b.Put(p)})
}

// Bytes returns the dump.
func (b *Builder) Bytes() []byte {
	var list []byte
	for _, s := range b.Streams {
		list = append(list, b.Pack(s[0], s[1], s[2])...)
	}
	at := b.Put(list)
	magic := b.Pack(uint32(0x504d444d))
	copy(b.Data, b.Pack(magic, uint32(0x12a793), uint32(len(b.Streams)), at, uint32(0), uint32(1700000000), uint64(2)))
	return b.Data
}

// System adds the stream of the system.
func (b *Builder) System(arch uint16, platform uint32) {
	b.Stream(systemInfo, arch, uint16(6), uint16(0x3a09), uint8(8), uint8(1), uint32(10), uint32(0), uint32(19045), platform,
		b.Text("Service Pack 9"), uint16(0x100), uint16(0), b.Pack(uint32(0x756e6547), uint32(0x49656e69), uint32(0x6c65746e), uint32(1), uint32(2), uint32(3)))
}

// Exception adds an exception without registers.
func (b *Builder) Exception(code, flags uint32, address uint64, parameters ...uint64) {
	all := make([]uint64, 15)
	copy(all, parameters)
	b.Stream(exception, uint32(7), uint32(0), code, flags, uint64(0), address, uint32(len(parameters)), uint32(0), all, uint64(0))
}

// AMD64Context returns a context of x86-64 in which each register has its offset as value.
func (b *Builder) AMD64Context(flags uint32) []byte {
	c := make([]byte, 1232)
	for i := 0; i+8 <= len(c); i += 8 {
		copy(c[i:], b.Pack(uint64(i)<<32|uint64(i)))
	}
	copy(c[48:], b.Pack(flags))
	return c
}
