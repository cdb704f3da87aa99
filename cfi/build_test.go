// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/ehpe"
)

// order is what binary.LittleEndian and binary.BigEndian are.
type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// A builder writes a section of call frame information.
type builder struct {
	Section
	dwarf64  bool
	unpadded bool
}

func ehFrame() *builder {
	return &builder{Section: Section{Name: ".eh_frame", Address: 0x2000, EH: true, Order: binary.LittleEndian,
		AddressSize: 8, Text: 0x500000, DataBase: 0x600000}}
}

func debugFrame() *builder {
	return &builder{Section: Section{Name: ".debug_frame", Order: binary.LittleEndian, AddressSize: 8}}
}

func (b *builder) order() order { return b.Order.(order) }

func (b *builder) table(t testing.TB) *Table {
	t.Helper()
	table, err := NewTable(b.Section)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// word appends a number of size bytes.
func (b *builder) word(target []byte, v uint64, size int) []byte {
	switch size {
	case 0:
		return target
	case 1:
		return append(target, byte(v))
	case 2:
		return b.order().AppendUint16(target, uint16(v))
	case 4:
		return b.order().AppendUint32(target, uint32(v))
	}
	return b.order().AppendUint64(target, v)
}

func uleb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func sleb(v int64) []byte {
	var out []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

func cat(parts ...any) []byte {
	var out []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			out = append(out, byte(p))
		case string:
			out = append(out, p...)
		case []byte:
			out = append(out, p...)
		default:
			panic(fmt.Sprintf("%T", p))
		}
	}
	return out
}

// cieSpec is a CIE to write. Factors of zero are written as 1 and -8; see raw.
type cieSpec struct {
	version      int // 0: 1
	augmentation string
	data         []byte // augmentation data, behind its length
	addressSize  int    // version 4; 0: the section's
	segmentSize  int
	code         uint64
	factor       int64
	ra           uint64 // 0: 16
	encoding     byte   // of FDE addresses, as data says
	instructions []byte
	raw          []byte // instead of everything behind the augmentation string
}

func (c cieSpec) size(b *builder) int {
	if c.addressSize != 0 {
		return c.addressSize
	}
	return b.AddressSize
}

// entry writes length and body; body gets the offset it will stand at.
func (b *builder) entry(id uint64, body func(pos int) []byte) uint64 {
	offset := uint64(len(b.Data))
	lengthSize, idSize := 4, 4
	if b.dwarf64 {
		lengthSize = 12
		if !b.EH {
			idSize = 8
		}
	}
	if b.EH && id != 0 {
		id = offset + uint64(lengthSize) - (id - 1)
	}
	content := body(int(offset) + lengthSize + idSize)
	for !b.unpadded && (lengthSize+idSize+len(content))%b.AddressSize != 0 {
		content = append(content, 0)
	}
	if b.dwarf64 {
		b.Data = b.word(b.Data, 0xffffffff, 4)
		b.Data = b.word(b.Data, uint64(idSize+len(content)), 8)
	} else {
		b.Data = b.word(b.Data, uint64(idSize+len(content)), 4)
	}
	b.Data = b.word(b.Data, id, idSize)
	b.Data = append(b.Data, content...)
	return offset
}

func (b *builder) cie(c cieSpec) uint64 {
	id := ^uint64(0)
	if b.EH {
		id = 0
	}
	return b.entry(id, func(int) []byte {
		if c.version == 0 {
			c.version = 1
		}
		if c.code == 0 {
			c.code = 1
		}
		if c.factor == 0 {
			c.factor = -8
		}
		if c.ra == 0 {
			c.ra = 16
		}
		out := cat(c.version, c.augmentation, 0)
		if c.raw != nil {
			return append(out, c.raw...)
		}
		if strings.HasPrefix(c.augmentation, "eh") {
			out = b.word(out, 0x1234, b.AddressSize)
		}
		if c.version >= 4 {
			out = append(out, byte(c.size(b)), byte(c.segmentSize))
		}
		out = cat(out, uleb(c.code), sleb(c.factor))
		if c.version == 1 {
			out = append(out, byte(c.ra))
		} else {
			out = append(out, uleb(c.ra)...)
		}
		if strings.HasPrefix(c.augmentation, "z") {
			out = cat(out, uleb(uint64(len(c.data))), c.data)
		}
		return append(out, c.instructions...)
	})
}

type fdeSpec struct {
	start, size  uint64
	segment      uint64
	data         []byte // augmentation data
	raw          []byte // instead of location and range
	instructions []byte
}

// fde writes an FDE of the CIE that c was written as, at an offset.
func (b *builder) fde(cie uint64, c cieSpec, f fdeSpec) uint64 {
	id := cie
	if b.EH {
		id++ // entry makes the distance
	}
	return b.entry(id, func(pos int) []byte {
		out := b.word(nil, f.segment, c.segmentSize)
		if f.raw != nil {
			out = append(out, f.raw...)
		} else {
			out = append(out, b.pointer(c.encoding, f.start, pos+len(out), c.size(b), 0)...)
			out = append(out, b.number(c.encoding&ehpe.FormatMask, f.size, c.size(b))...)
		}
		if strings.HasPrefix(c.augmentation, "z") {
			out = cat(out, uleb(uint64(len(f.data))), f.data)
		}
		return append(out, f.instructions...)
	})
}

func (b *builder) number(format byte, v uint64, size int) []byte {
	switch format {
	case ehpe.ULEB128:
		return uleb(v)
	case ehpe.SLEB128:
		return sleb(int64(v))
	case ehpe.UData2, ehpe.SData2:
		size = 2
	case ehpe.UData4, ehpe.SData4:
		size = 4
	case ehpe.UData8, ehpe.SData8:
		size = 8
	}
	return b.word(nil, v, size)
}

// pointer encodes an address at an offset of the section.
func (b *builder) pointer(encoding byte, v uint64, pos, size int, function uint64) []byte {
	var out []byte
	switch encoding & ehpe.ApplicationMask {
	case ehpe.PCRel:
		v -= b.Address + uint64(pos)
	case ehpe.TextRel:
		v -= b.Text
	case ehpe.DataRel:
		v -= b.DataBase
	case ehpe.FuncRel:
		v -= function
	case ehpe.Aligned:
		for (b.Address+uint64(pos)+uint64(len(out)))%uint64(size) != 0 {
			out = append(out, 0xcc)
		}
	}
	return append(out, b.number(encoding&ehpe.FormatMask, v, size)...)
}

// text writes a row on one line: "1000-1010 7+8 3:c-16 16:c-8".
func text(r *Row) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%x-%x ", r.Start, r.End)
	switch c := r.CFA; c.Kind {
	case NoCFA:
		s.WriteString("none")
	case CFARegister:
		fmt.Fprintf(&s, "%d%+d", c.Register, c.Offset)
		if c.Space != 0 {
			fmt.Fprintf(&s, "@%d", c.Space)
		}
	case CFAExpression:
		fmt.Fprintf(&s, "expr:%x", c.Expr)
	}
	for _, r := range r.Rules {
		fmt.Fprintf(&s, " %d:", r.Column)
		switch rule := r.Rule; rule.Kind {
		case Undefined:
			s.WriteString("u")
		case SameValue:
			s.WriteString("s")
		case Offset:
			fmt.Fprintf(&s, "c%+d", rule.Offset)
		case ValOffset:
			fmt.Fprintf(&s, "v%+d", rule.Offset)
		case Register:
			fmt.Fprintf(&s, "r%d", rule.Register)
		case Expression:
			fmt.Fprintf(&s, "expr:%x", rule.Expr)
		case ValExpression:
			fmt.Fprintf(&s, "valexpr:%x", rule.Expr)
		default:
			fmt.Fprintf(&s, "kind%d", rule.Kind)
		}
	}
	if r.SignalFrame {
		s.WriteString(" signal")
	}
	if r.WindowSave {
		s.WriteString(" window")
	}
	return s.String()
}

// rows returns the rows of an FDE as text.
func rows(f *FDE) ([]string, error) {
	var out []string
	err := f.Rows(func(r *Row) bool {
		out = append(out, text(r))
		return true
	})
	return out, err
}
