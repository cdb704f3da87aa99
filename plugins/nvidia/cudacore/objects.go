// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

const (
	maxImageSections = 1 << 16
	maxSymbols       = 1 << 20
	symbolSize       = 24
	typeSymbols      = 2 // SHT_SYMTAB
	symbolFunction   = 2 // STT_FUNC
)

// kernel is a kernel by its module's handle and the address of its first instruction.
type kernel struct{ module, entry uint64 }

// readObjects adds the images of modules that were relocated to where they are loaded, and
// finds the names of the kernels of grids in them.
func (r *reader) readObjects(ctx context.Context) error {
	wanted := map[uint64]map[uint64]bool{}
	for i := range r.grids {
		g := &r.grids[i]
		if wanted[g.module] == nil {
			wanted[g.module] = map[uint64]bool{}
		}
		wanted[g.module][g.entry] = true
	}
	r.kernels = map[kernel]string{}
	for i := range r.modules {
		m := &r.modules[i]
		s := &r.sections[m.relocated]
		if m.relocated == 0 || s.size == 0 {
			r.problems.add("module %#x has no relocated image (.cudbg.relfimg): its code has no names", m.handle)
			continue
		}
		r.answer.Objects = append(r.answer.Objects, sdk.TargetObject{
			URI: r.unique(fmt.Sprintf("cubin:%#x", m.handle)), MemoryAddress: s.offset, Size: s.size, Into: sdk.FileSpace,
		})
		if entries := wanted[m.handle]; entries != nil { // others have no code that is executed
			if err := r.findKernels(ctx, m.handle, s.part, entries); err != nil {
				r.problems.add("section %d (.cudbg.relfimg): %v: the kernels of its grids have no names", m.relocated, err)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// image is an ELF file in the core.
type image struct {
	file     *file
	place    part
	sections []byte
}

// read fills buf from an offset of the image.
func (m *image) read(ctx context.Context, offset uint64, buf []byte) error {
	if offset > m.place.size || uint64(len(buf)) > m.place.size-offset {
		return fmt.Errorf("%#x bytes at %#x pass the end of the image, which has %#x", len(buf), offset, m.place.size)
	}
	return m.file.read(ctx, m.place.offset+offset, buf)
}

// findKernels finds the names of functions that begin at some addresses.
func (r *reader) findKernels(ctx context.Context, handle uint64, place part, entries map[uint64]bool) error {
	m := image{file: &r.file, place: place}
	var h [headerSize]byte
	if err := m.read(ctx, 0, h[:]); err != nil {
		return err
	}
	if string(h[:5]) != "\x7fELF\x02" {
		return fmt.Errorf("the image begins with % x, expected a 64-bit ELF file", h[:5])
	}
	le := binary.LittleEndian
	count, size := le.Uint16(h[60:]), le.Uint16(h[58:])
	if size != headerSize || count == 0 {
		return fmt.Errorf("the image has %d section headers of %d bytes, expected some of %d", count, size, headerSize)
	}
	m.sections = make([]byte, int(count)*headerSize)
	if err := m.read(ctx, le.Uint64(h[40:]), m.sections); err != nil {
		return fmt.Errorf("section headers: %w", err)
	}
	m.addCode(r)
	for i := range int(count) {
		if s := m.section(i); le.Uint32(s[4:]) == typeSymbols {
			return m.eachFunction(ctx, s, func(address uint64, name string) {
				if entries[address] {
					r.kernels[kernel{handle, address}] = name
				}
			}, entries)
		}
	}
	return fmt.Errorf("the image has no symbols")
}

func (m *image) section(i int) []byte { return m.sections[i*headerSize:][:headerSize] }

// eachFunction calls f with the functions of a symbol table that begin at some addresses.
func (m *image) eachFunction(ctx context.Context, table []byte, f func(uint64, string), entries map[uint64]bool) error {
	le := binary.LittleEndian
	size, link := le.Uint64(table[32:]), le.Uint32(table[40:])
	if size > maxSymbols*symbolSize || uint64(link) >= uint64(len(m.sections)/headerSize) {
		return fmt.Errorf("the symbol table has %#x bytes and the strings of section %d, expected at most %#x bytes", size, link, maxSymbols*symbolSize)
	}
	symbols := make([]byte, size)
	if err := m.read(ctx, le.Uint64(table[24:]), symbols); err != nil {
		return fmt.Errorf("symbols: %w", err)
	}
	names := m.section(int(link))
	for ; len(symbols) >= symbolSize; symbols = symbols[symbolSize:] {
		address := le.Uint64(symbols[8:])
		if symbols[4]&15 != symbolFunction || !entries[address] {
			continue
		}
		name := make([]byte, min(maxText, m.place.size))
		offset, at := le.Uint64(names[24:]), uint64(le.Uint32(symbols))
		if offset > m.place.size || at >= m.place.size-offset {
			return fmt.Errorf("the name of a symbol at %#x of the strings at %#x passes the end of the image", at, offset)
		}
		name = name[:min(uint64(len(name)), m.place.size-offset-at)]
		if err := m.read(ctx, offset+at, name); err != nil {
			return fmt.Errorf("the name of a symbol: %w", err)
		}
		text, err := textAt(name, 0)
		if err != nil {
			return fmt.Errorf("the name of a symbol: %w", err)
		}
		f(address, text)
	}
	return nil
}
