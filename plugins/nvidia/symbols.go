// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"bytes"
	"encoding/binary"
)

// Of a symbol table of 64-bit ELF (System V ABI, "Symbol Table").
const (
	symbolSize     = 24 // bytes of an entry
	symbolFunction = 2  // STT_FUNC
	// otherKernel is the bit of st_other that cubins set for kernels.
	otherKernel = 0x10
)

// symbol is an entry of .symtab.
type symbol struct {
	name        string
	kind, other uint8
	section     uint16 // index
	value, size uint64
}

func (s *symbol) isKernel() bool { return s.other&otherKernel != 0 }

// readSymbols reads .symtab.
func (o *codeObject) readSymbols() {
	names := o.section(".strtab")
	table := o.section(".symtab")
	if len(table)%symbolSize != 0 {
		o.problem(".symtab: %d bytes, expected entries of %d", len(table), symbolSize)
	}
	if len(table) > maxSymbols*symbolSize {
		o.problem(".symtab: more than %d symbols: the others are left out", maxSymbols)
		table = table[:maxSymbols*symbolSize]
	}
	for ; len(table) >= symbolSize; table = table[symbolSize:] {
		o.symbols = append(o.symbols, symbol{
			name: stringAt(names, binary.LittleEndian.Uint32(table)), kind: table[4] & 0xf, other: table[5],
			section: binary.LittleEndian.Uint16(table[6:]),
			value:   binary.LittleEndian.Uint64(table[8:]), size: binary.LittleEndian.Uint64(table[16:]),
		})
	}
}

// maxSymbols bounds the symbols of a cubin.
const maxSymbols = 1 << 20

// maxName is the longest name of a symbol, in bytes; names of templates are long.
const maxName = 1 << 15

// stringAt returns the string at an offset of a string table; "" where there is none.
func stringAt(table []byte, offset uint32) string {
	if uint64(offset) >= uint64(len(table)) {
		return ""
	}
	table = table[offset:]
	end := bytes.IndexByte(table[:min(len(table), maxName)], 0)
	if end < 0 {
		return ""
	}
	return string(bytes.ToValidUTF8(table[:end], []byte("?")))
}
