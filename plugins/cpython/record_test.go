// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// openCore reads the core that a fixture is made of: what the engine would say of its runtime, and its memory.
func openCore(t *testing.T) (*fixture, func(address uint64, buf []byte) (int, error)) {
	t.Helper()
	core, err := elf.Open(*recordCore)
	if err != nil {
		t.Fatal(err)
	}
	module, err := elf.Open(*recordModule)
	if err != nil {
		t.Fatal(err)
	}
	base, first := baseOf(t), ^uint64(0)
	f := &fixture{Request: sdk.OpenRuntimeRequest{
		Runtime: 1, Path: "/usr/bin/" + filepath.Base(*recordModule), Machine: uint16(core.Machine), AddressBits: 64, ByteOrder: sdk.LittleEndian,
		Threads: []sdk.RuntimeThread{{Thread: 1, ID: strconv.Itoa(threadOf(t, core))}},
	}}
	for _, p := range module.Progs {
		if p.Type == elf.PT_LOAD {
			first = min(first, p.Vaddr&^(page-1))
			f.Request.Segments = append(f.Request.Segments, sdk.RuntimeSegment{Address: p.Vaddr, Size: p.Memsz, Start: base + p.Vaddr - first})
		}
	}
	symbols, err := module.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Description().Symbols {
		place := sdk.SymbolPlace{}
		for _, s := range symbols {
			if s.Name == name && s.Section != elf.SHN_UNDEF {
				place = sdk.SymbolPlace{IsKnown: true, Address: base + s.Value - first, Size: s.Size}
			}
		}
		f.Request.Symbols = append(f.Request.Symbols, place)
	}
	return f, func(address uint64, buf []byte) (int, error) {
		for _, p := range core.Progs {
			if p.Type == elf.PT_LOAD && address >= p.Vaddr && address+uint64(len(buf)) <= p.Vaddr+p.Filesz {
				return p.ReadAt(buf, int64(address-p.Vaddr)) //nolint:gosec // in the file
			}
		}
		return 0, fmt.Errorf("%#x is not in the core", address)
	}
}

// baseOf is where the module was loaded.
func baseOf(t *testing.T) uint64 {
	t.Helper()
	text, err := os.ReadFile(*recordMaps)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasSuffix(strings.TrimSpace(line), "/"+filepath.Base(*recordModule)) {
			start, _, _ := strings.Cut(line, "-")
			base, err := strconv.ParseUint(start, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return base
		}
	}
	t.Fatalf("%s is not in %s", *recordModule, *recordMaps)
	return 0
}

// threadOf is the ID of a core's first thread.
func threadOf(t *testing.T, core *elf.File) int {
	t.Helper()
	for _, p := range core.Progs {
		if p.Type == elf.PT_NOTE {
			note := make([]byte, 64)
			if _, err := p.ReadAt(note, 0); err != nil {
				t.Fatal(err)
			}
			return int(binary.LittleEndian.Uint32(note[20+32:]))
		}
	}
	t.Fatal("the core has no notes")
	return 0
}
