// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// maxText bounds the text of a location, in bytes. An evaluation that shares no parts stays
// below it.
const maxText = 1 << 20

// String returns the location for people to read: "memory 0x7ffe10", "memory
// 5:0x10", "register 3", "implicit 2a000000", "composite {32: register 3; 32:
// undefined}"; "+4 bits" follows where the offset is not whole, and " | "
// separates places. Composites may share parts, and would be written out once
// for each use: after a MiB the text only says how much more there is.
func (l Location) String() string { return l.textOf(maxText) }

// textOf is String with a text that ends after about limit bytes.
func (l *Location) textOf(limit int) string {
	b := locationText{limit: limit}
	b.location(l, 0)
	return b.String()
}

// locationText is the text of a location while it is written.
type locationText struct {
	strings.Builder
	limit int
}

func (b *locationText) isFull() bool { return b.Len() >= b.limit }

// textNesting bounds the nesting that is written out.
const textNesting = 16

func (b *locationText) location(l *Location, depth int) {
	b.place(&l.place, depth)
	for i := range l.more {
		b.WriteString(" | ")
		if b.isFull() {
			fmt.Fprintf(b, "%d more", len(l.more)-i)
			return
		}
		b.place(&l.more[i], depth)
	}
}

func (b *locationText) place(p *Place, depth int) {
	b.WriteString(p.Storage.String())
	offset := p.BitOffset
	switch p.Storage {
	case Memory:
		b.WriteByte(' ')
		if p.Space != DefaultSpace {
			fmt.Fprintf(b, "%d:", p.Space)
		}
		fmt.Fprintf(b, "0x%x", p.Address+offset/8)
		offset %= 8
	case Register:
		fmt.Fprintf(b, " %d", p.Register)
	case Implicit:
		b.WriteByte(' ')
		b.bytes(p.ImplicitBytes())
	case ImplicitPointer:
		entry, displacement, _ := p.ImplicitPointer()
		fmt.Fprintf(b, " 0x%x%+d", entry, displacement)
	case Composite:
		b.WriteString(" {")
		b.parts(p, depth)
		b.WriteByte('}')
	}
	if offset != 0 {
		fmt.Fprintf(b, " +%d bits", offset)
	}
}

func (b *locationText) parts(p *Place, depth int) {
	if p.detail == nil || depth >= textNesting {
		b.WriteString("...")
		return
	}
	parts := p.detail.parts
	for i := range parts {
		if i > 0 {
			b.WriteString("; ")
		}
		if b.isFull() {
			fmt.Fprintf(b, "%d more", len(parts)-i)
			return
		}
		fmt.Fprintf(b, "%d: ", parts[i].Bits)
		b.location(&parts[i].Location, depth+1)
	}
}

// bytes writes bytes in hex, as many as the limit leaves.
func (b *locationText) bytes(content []byte) {
	n := min(len(content), max(b.limit-b.Len(), 0)/2)
	b.WriteString(hex.EncodeToString(content[:n]))
	if n < len(content) {
		fmt.Fprintf(b, "... %d more bytes", len(content)-n)
	}
}

// maxBriefText bounds the text of a location in an error.
const maxBriefText = 64

// brief is a short form of String, for errors.
func (l *Location) brief() string {
	switch {
	case l.place.Storage == Composite:
		return "a composite location"
	case len(l.more) > 1:
		return fmt.Sprintf("a location of %d places", l.NumPlaces())
	}
	return l.textOf(maxBriefText)
}
