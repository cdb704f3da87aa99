// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// takeZeInfo takes a zebin's facts about its kernels.
func (o *codeObject) takeZeInfo() {
	data := o.section(zeInfoSection)
	if data == nil {
		return
	}
	z, err := readZeInfo(data)
	if err != nil {
		o.problem("%v", err)
		return
	}
	for i := range o.codes {
		c := &o.codes[i]
		k := z.kernelOf(c.name)
		c.isKernel = k != nil
		switch {
		case k == nil || k.lanes == 0:
		case slices.Contains(simdSizes, k.lanes):
			c.lanes = k.lanes
		default:
			o.problem("%s: kernel %.64s: simd_size is %d, expected one of %v", zeInfoSection, k.name, k.lanes, simdSizes)
		}
	}
}

// simdSizes lists how many lanes kernels may have.
var simdSizes = []uint32{1, 8, 16, 32}

// zeSymbol is an entry of a zebin's symbol table.
type zeSymbol struct {
	name        string
	typ         byte
	section     uint32
	start, size uint64
}

const typeFunction = 2 // STT_FUNC

// zeSymbols is the symbol table of a 64-bit ELF file.
type zeSymbols struct {
	list      []zeSymbol
	functions map[uint32][]zeSymbol // by section, without the second ones of kernels
}

// symbols reads the symbol table, once.
func (o *codeObject) symbols() *zeSymbols {
	if o.table != nil {
		return o.table
	}
	o.table = &zeSymbols{functions: map[uint32][]zeSymbol{}}
	names := o.section(".strtab")
	for s := o.section(".symtab"); len(s) >= symbolSize; s = s[symbolSize:] {
		y := zeSymbol{
			typ: s[4] & 0xf, section: uint32(binary.LittleEndian.Uint16(s[6:])),
			start: binary.LittleEndian.Uint64(s[8:]), size: binary.LittleEndian.Uint64(s[16:]),
		}
		if offset := binary.LittleEndian.Uint32(s); uint64(offset) < uint64(len(names)) {
			rest := names[offset:][:min(len(names)-int(offset), maxKernelName)]
			if end := bytes.IndexByte(rest, 0); end >= 0 {
				y.name = strings.ToValidUTF8(string(rest[:end]), "?")
			}
		}
		o.table.list = append(o.table.list, y)
		// "_entry" is the part of a kernel after its arguments were loaded.
		if y.typ == typeFunction && y.name != "" && y.name != "_entry" && y.size > 0 {
			o.table.functions[y.section] = append(o.table.functions[y.section], y)
		}
	}
	return o.table
}

// codesByName returns the indexes of the sections of code, by name.
func (o *codeObject) codesByName() map[string]uint32 {
	codes := map[string]uint32{}
	for i := range o.codes {
		codes[o.codes[i].name] = o.codes[i].index
	}
	return codes
}

// code returns the section of code that a symbol is in. The compiler gives
// symbols of sections of code the name of the section, and the index of the
// section that refers to it.
func (y *zeSymbol) code(codes map[string]uint32) uint32 {
	if index, ok := codes[y.name]; ok {
		return index
	}
	return y.section
}

// symbolFunctions returns the functions of a section by the symbol table, where no
// other source describes them. A kernel is outermost only in code without calls
// into itself: a subroutine is not.
func (o *codeObject) symbolFunctions(c *codeSection) []sdk.Function {
	if !o.isRelocatable() {
		return nil
	}
	kernel, _ := kernelName(c)
	list := o.symbols().functions[c.index]
	if len(list) > maxFunctions {
		o.problem("section %.64s: %d functions, expected at most %d: they are not looked at", c.name, len(list), maxFunctions)
		return nil
	}
	slices.SortStableFunc(list, func(a, b zeSymbol) int { return cmp.Compare(a.start, b.start) })
	var functions []sdk.Function
	for i, y := range list {
		if y.start >= c.size {
			break
		}
		// A kernel's symbol has the size of the section, with all functions in it.
		end := y.start + min(y.size, c.size-y.start)
		if i+1 < len(list) {
			end = min(end, list[i+1].start)
		}
		if end <= y.start {
			continue
		}
		f := sdk.Function{Name: y.name, Section: c.index, Start: c.start + y.start, End: c.start + end, Lanes: c.lanes}
		if code := c.bytes(f.Start, f.End-f.Start); y.name == kernel && y.start == 0 && code != nil && !callsInside(code, true) {
			f.Kind = sdk.KernelFunction
		}
		functions = append(functions, f)
	}
	return functions
}
