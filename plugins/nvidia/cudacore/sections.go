// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	headerSize  = 64      // of a section header of a 64-bit file
	maxSections = 1 << 23 // 60,000 warps have about so many
	maxStrings  = 1 << 24 // bytes of a string table

	typeStrings = 3 // SHT_STRTAB
	typeFirst   = 0x80000000
)

// kind is the type of a section, less 0x80000000 (CUDBG_SHT_*).
type kind uint8

const (
	kindManaged kind = iota + 1
	kindGlobal
	kindLocal
	kindShared
	kindRegisters
	kindOriginal
	kindRelocated
	kindFrames
	kindDevices
	kindContexts
	kindSMs
	kindGrids
	kindBlocks
	kindWarps
	kindLanes
	kindModules
	kindPredicates
	kindParameters
	kindUniform
	kindUniformPredicates
	kindBanks
	kindMeta
	kindBarriers
	kinds
)

// kindInfo describes a kind of sections: how their names begin, the kind of their parent's
// table, and the size of the rows that the first driver wrote.
type kindInfo struct {
	name   string
	parent kind
	row    uint32 // 0: no table
}

var kindInfos = [kinds]kindInfo{
	kindManaged:           {".cudbg.global", 0, 0},
	kindGlobal:            {".cudbg.global", 0, 0},
	kindLocal:             {".cudbg.local", kindLanes, 0},
	kindShared:            {".cudbg.shared", kindBlocks, 0},
	kindRegisters:         {".cudbg.regs", kindLanes, 0},
	kindOriginal:          {".cudbg.elfimg", kindModules, 0},
	kindRelocated:         {".cudbg.relfimg", kindModules, 0},
	kindFrames:            {".cudbg.bt", kindLanes, 24},
	kindDevices:           {".cudbg.devtbl", 0, 72},
	kindContexts:          {".cudbg.ctxtbl", kindDevices, 40},
	kindSMs:               {".cudbg.smtbl", kindDevices, 8},
	kindGrids:             {".cudbg.gridtbl", kindDevices, 104},
	kindBlocks:            {".cudbg.ctatbl", kindSMs, 24},
	kindWarps:             {".cudbg.wptbl", kindBlocks, 32},
	kindLanes:             {".cudbg.lntbl", kindWarps, 48},
	kindModules:           {".cudbg.modtbl", kindContexts, 8},
	kindPredicates:        {".cudbg.pred", kindLanes, 0},
	kindParameters:        {".cudbg.param", kindGrids, 0},
	kindUniform:           {".cudbg.uregs", kindWarps, 0},
	kindUniformPredicates: {".cudbg.upred", kindWarps, 0},
	kindBanks:             {".cudbg.cbankstbl", kindGrids, 16},
	kindMeta:              {".cudbg.meta", 0, 32},
	kindBarriers:          {".cudbg.cbu_bar", kindWarps, 0},
}

// section is a section header, as far as it is used.
type section struct {
	part
	address    uint64
	link, info uint32
	entry      uint32 // sh_entsize
	kind       kind   // 0: another section
}

// readSections reads the section headers.
func (r *reader) readSections(ctx context.Context) error {
	h := r.header
	switch {
	case h.SectionSize != headerSize:
		return fmt.Errorf("the ELF header gives section headers %d bytes, expected %d", h.SectionSize, headerSize)
	case h.Sections > maxSections:
		return fmt.Errorf("the file has %d sections, expected at most %d", h.Sections, maxSections)
	case h.SectionsOffset > h.Size || h.Sections*headerSize > h.Size-h.SectionsOffset:
		return fmt.Errorf("%d section headers at offset %#x pass the end of the file, which has %#x bytes", h.Sections, h.SectionsOffset, h.Size)
	}
	r.sections = make([]section, 0, h.Sections)
	var names []stringTable
	buf := make([]byte, min(h.Sections*headerSize, chunkSize))
	for at := uint64(0); at < h.Sections*headerSize; at += uint64(len(buf)) {
		buf = buf[:min(uint64(len(buf)), h.Sections*headerSize-at)]
		if err := r.file.read(ctx, h.SectionsOffset+at, buf); err != nil {
			return fmt.Errorf("section headers: %w", err)
		}
		for b := buf; len(b) > 0; b = b[headerSize:] {
			if t := r.addSection(b[:headerSize]); t != nil && len(names) < maxStringTables {
				names = append(names, *t)
			}
		}
	}
	return r.readStrings(ctx, names)
}

// addSection adds a section; where it is a table of strings, that is returned.
func (r *reader) addSection(b []byte) *stringTable {
	le := binary.LittleEndian
	i, kindOf := len(r.sections), le.Uint32(b[4:])
	s := section{
		part: part{le.Uint64(b[24:]), le.Uint64(b[32:])}, address: le.Uint64(b[16:]), link: le.Uint32(b[40:]), info: le.Uint32(b[44:]),
		entry: uint32(min(le.Uint64(b[56:]), math.MaxUint32)), //nolint:gosec // bounded
	}
	isCUDA := kindOf > typeFirst && kindOf < typeFirst+uint32(kinds)
	if isCUDA {
		s.kind = kind(kindOf - typeFirst)                      //nolint:gosec // bounded
		r.byKind[s.kind] = append(r.byKind[s.kind], uint32(i)) //nolint:gosec // at most maxSections
		name := kindInfos[s.kind].name
		switch {
		case s.offset > r.header.Size:
			r.problems.add("section %d (%s) begins at offset %#x, behind the end of the file, which has %#x bytes: it is left out", i, name, s.offset, r.header.Size)
			s.part = part{}
		case s.size > r.header.Size-s.offset:
			r.problems.add("section %d (%s) has %#x bytes at offset %#x, of which the file has %#x: the rest is left out", i, name, s.size, s.offset, r.header.Size-s.offset)
			s.size = r.header.Size - s.offset
		}
	}
	r.sections = append(r.sections, s)
	if kindOf == typeStrings {
		return &stringTable{index: uint32(i), name: le.Uint32(b), part: s.part} //nolint:gosec // at most maxSections
	}
	return nil
}

// maxStringTables bounds the string tables of which one is chosen: there are two.
const maxStringTables = 16

// stringTable is a section of type SHT_STRTAB.
type stringTable struct {
	part
	index, name uint32
}

// readStrings reads the strings that rows refer to: in the section named .strtab, or in
// the only one besides the names of sections, or in these.
func (r *reader) readStrings(ctx context.Context, tables []stringTable) error {
	var names, best *stringTable
	for i := range tables {
		if tables[i].index == r.header.SectionNames {
			names = &tables[i]
		} else if best == nil {
			best = &tables[i]
		}
	}
	if names != nil {
		for i := range tables {
			if r.isNamed(ctx, names.part, tables[i].name, ".strtab\x00") {
				best = &tables[i]
			}
		}
		if best == nil {
			best = names
		}
	}
	if best == nil {
		r.problems.add("the file has no section .strtab: names of devices and texts are missing")
		return nil
	}
	text, err := r.readTable(ctx, best.part)
	if err != nil {
		r.problems.add("section %d (.strtab): %v", best.index, err)
	}
	r.strings = text
	return ctx.Err()
}

// isNamed reports whether the name at an offset of a table is this one.
func (r *reader) isNamed(ctx context.Context, names part, start uint32, name string) bool {
	b := make([]byte, len(name))
	if uint64(start) > names.size || uint64(len(b)) > names.size-uint64(start) || names.size > r.file.size {
		return false
	}
	return r.file.read(ctx, names.offset+uint64(start), b) == nil && string(b) == name
}

// readTable reads a table of strings.
func (r *reader) readTable(ctx context.Context, p part) ([]byte, error) {
	size := min(p.size, maxStrings)
	if p.offset > r.file.size || size > r.file.size-p.offset {
		return nil, fmt.Errorf("%#x bytes at offset %#x pass the end of the file, which has %#x", p.size, p.offset, r.file.size)
	}
	b := make([]byte, size)
	err := r.file.read(ctx, p.offset, b)
	if err == nil && size < p.size {
		err = fmt.Errorf("it has %#x bytes, of which %#x are read", p.size, size)
	}
	return b, err
}

var errNoText = errors.New("no string")

// maxText bounds a text of the string table.
const maxText = 4096

// textAt returns the string at an offset.
func textAt(table []byte, offset uint64) (string, error) {
	if offset >= uint64(len(table)) {
		return "", fmt.Errorf("%w at %#x of %#x bytes", errNoText, offset, len(table))
	}
	b := table[offset:]
	b = b[:min(len(b), maxText)]
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return "", fmt.Errorf("%w at %#x ends within %d bytes", errNoText, offset, len(b))
	}
	return string(bytes.ToValidUTF8(b[:end], []byte("\ufffd"))), nil
}
