// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

const (
	codeStart = 0x7fff_d528_0000 // of the first section of code
	codeEach  = 0x1_0000

	sectionHeader = 64
	symbolSize    = 24
	relaSize      = 24
	absolute64    = 2 // R_CUDA_64
)

// relocate returns a cubin as the driver keeps it: each section of code has an address, which
// symbols and relocated sections have, too.
func relocate(cubin []byte) (image []byte, start uint64, err error) {
	f, err := elf.NewFile(bytes.NewReader(cubin))
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	le := binary.LittleEndian
	image = bytes.Clone(cubin)
	headers := le.Uint64(image[40:])
	places := map[elf.SectionIndex]uint64{}
	for i, s := range f.Sections {
		if strings.HasPrefix(s.Name, ".text.") {
			places[elf.SectionIndex(i)] = codeStart + uint64(len(places))*codeEach
			le.PutUint64(image[headers+uint64(i)*sectionHeader+16:], places[elf.SectionIndex(i)]) //nolint:gosec // small
		}
	}
	symbols, table := []uint64{}, f.SectionByType(elf.SHT_SYMTAB)
	for at := uint64(0); at+symbolSize <= table.Size; at += symbolSize {
		symbol := image[table.Offset+at:]
		value := le.Uint64(symbol[8:]) + places[elf.SectionIndex(le.Uint16(symbol[6:]))]
		le.PutUint64(symbol[8:], value)
		symbols = append(symbols, value)
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_RELA || places[elf.SectionIndex(s.Info)] != 0 && s.Size == 0 { //nolint:gosec // small
			continue
		}
		for at := uint64(0); at+relaSize <= s.Size; at += relaSize {
			r := image[s.Offset+at:]
			if kind := le.Uint32(r[8:]); kind != absolute64 {
				return nil, 0, fmt.Errorf("%s has a relocation of type %d", s.Name, kind)
			}
			place := image[f.Sections[s.Info].Offset+le.Uint64(r):]
			le.PutUint64(place, symbols[le.Uint32(r[12:])]+le.Uint64(r[16:]))
		}
	}
	return image, codeStart, nil
}
