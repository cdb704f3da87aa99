// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"encoding/binary"
	"testing"
)

// A maker makes PE32+ files for x86-64: one section of code at RVA 0x1000 and one of data
// at 0x2000, which lie one behind the other in the file.
type maker struct {
	code, data  []byte
	directories [16][2]uint32
	machine     uint16
	name        string // of the section of data
	strings     []byte // the string table, without its size
}

const (
	madeBase    = 0x140000000
	madeCode    = 0x1000 // RVA
	madeData    = 0x2000
	madeHeaders = 0x400 // bytes
)

// put appends to the data, at a multiple of four bytes, and returns where: an RVA.
func (m *maker) put(b ...byte) uint32 {
	for len(m.data)%4 != 0 {
		m.data = append(m.data, 0)
	}
	at := madeData + uint32(len(m.data))
	m.data = append(m.data, b...)
	return at
}

// words are numbers of 32 bits.
func words(list ...uint32) (b []byte) {
	for _, v := range list {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// functions puts .pdata: three RVAs for each function.
func (m *maker) functions(list ...uint32) {
	m.directories[directoryExcept] = [2]uint32{m.put(words(list...)...), uint32(4 * len(list))}
}

// file makes the file.
func (m *maker) file() []byte {
	le := binary.LittleEndian
	b := make([]byte, madeHeaders)
	copy(b, "MZ")
	le.PutUint32(b[0x3c:], 0x80)
	copy(b[0x80:], "PE\x00\x00")
	h := b[0x84:]
	machine := m.machine
	if machine == 0 {
		machine = MachineX86_64
	}
	le.PutUint16(h, machine)
	le.PutUint16(h[2:], 2)
	le.PutUint32(h[4:], 0x5F3A1B2C)
	le.PutUint16(h[16:], fixedPE32Plus+16*8)
	le.PutUint16(h[18:], 0x22|isDLL)
	o := h[20:]
	le.PutUint16(o, magicPE32Plus)
	le.PutUint32(o[16:], madeCode)
	le.PutUint64(o[24:], madeBase)
	le.PutUint32(o[32:], 0x1000)
	le.PutUint32(o[36:], 0x200)
	le.PutUint32(o[56:], 0x4000)
	le.PutUint32(o[60:], madeHeaders)
	le.PutUint16(o[68:], 3)
	le.PutUint32(o[108:], 16)
	for i, d := range m.directories {
		copy(o[112+8*i:], words(d[0], d[1]))
	}
	name := m.name
	if name == "" {
		name = ".rdata"
	}
	s := o[fixedPE32Plus+16*8:]
	for i, section := range []struct {
		name            string
		rva             uint32
		data            []byte
		characteristics uint32
	}{{".text", madeCode, m.code, 0x60000020}, {name, madeData, m.data, 0x40000040}} {
		e := s[sectionSize*i:]
		copy(e[:8], section.name)
		copy(e[8:], words(max(1, uint32(len(section.data))), section.rva, uint32(len(section.data)), uint32(len(b))))
		le.PutUint32(e[36:], section.characteristics)
		b = append(b, section.data...)
		s, h = b[0x84+20+fixedPE32Plus+16*8:], b[0x84:]
	}
	if m.strings != nil {
		le.PutUint32(h[8:], uint32(len(b)))
		b = append(b, words(uint32(4+len(m.strings)))...)
		b = append(b, m.strings...)
	}
	return b
}

func (m *maker) open(t testing.TB) *File {
	t.Helper()
	f, err := New("made.dll", m.file())
	if err != nil {
		t.Fatal(err)
	}
	return f
}
