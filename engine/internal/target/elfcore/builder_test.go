// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

// part is a program header of a synthetic ELF file, and its bytes.
type part struct {
	typ     elf.ProgType
	flags   elf.ProgFlag
	address uint64
	size    uint64 // in memory; 0: as many as data
	align   uint64
	offset  uint64 // of an image's segment; cores lay out their own
	data    []byte
	at      uint64 // p_offset where the bytes are another header's; 0: own bytes
	claim   uint64 // p_filesz, where it is not len(data)
}

// builder writes ELF files of either class and byte order.
type builder struct {
	numbers
	typ     elf.Type
	machine elf.Machine
	entry   uint64
	parts   []part
	xnum    bool // PN_XNUM, with the count in section header 0 at the end
}

func little64() *builder {
	return &builder{numbers: numbers{binary.LittleEndian, true}, typ: elf.ET_CORE, machine: elf.EM_X86_64}
}

func big32() *builder {
	return &builder{numbers: numbers{binary.BigEndian, false}, typ: elf.ET_CORE, machine: elf.EM_PPC}
}

// words appends words.
func (n numbers) words(b []byte, values ...uint64) []byte {
	for _, v := range values {
		if n.is64 {
			b = appendOrder(n.order, b, 8, v)
		} else {
			b = appendOrder(n.order, b, 4, v)
		}
	}
	return b
}

func appendOrder(order binary.ByteOrder, b []byte, size int, v uint64) []byte {
	at := len(b)
	b = append(b, make([]byte, size)...)
	switch size {
	case 2:
		order.PutUint16(b[at:], uint16(v))
	case 4:
		order.PutUint32(b[at:], uint32(v))
	case 8:
		order.PutUint64(b[at:], v)
	}
	return b
}

// headerBytes writes ELF header and program headers. Offsets are those of the
// parts.
func (b *builder) headerBytes(offsets, sizes []uint64, sections uint64) []byte {
	h := make([]byte, 16)
	copy(h, elf.ELFMAG)
	h[elf.EI_CLASS], h[elf.EI_DATA], h[elf.EI_VERSION] = 1, 1, 1
	if b.is64 {
		h[elf.EI_CLASS] = 2
	}
	if b.order == binary.ByteOrder(binary.BigEndian) {
		h[elf.EI_DATA] = 2
	}
	ehsize := uint64(b.offset(52, 64))
	h = appendOrder(b.order, h, 2, uint64(b.typ))
	h = appendOrder(b.order, h, 2, uint64(b.machine))
	h = appendOrder(b.order, h, 4, 1)
	h = b.words(h, b.entry, ehsize, sections)
	h = appendOrder(b.order, h, 4, 0)
	count, shentsize := uint64(len(b.parts)), uint64(0)
	if b.xnum {
		count, shentsize = pnXNUM, uint64(b.offset(40, 64))
	}
	for _, v := range []uint64{ehsize, b.programSize(), count, shentsize, 0, 0} {
		h = appendOrder(b.order, h, 2, v)
	}
	for i, p := range b.parts {
		memSize := p.size
		if memSize == 0 && p.typ != elf.PT_NOTE {
			memSize = uint64(len(p.data))
		}
		h = appendOrder(b.order, h, 4, uint64(p.typ))
		if b.is64 {
			h = appendOrder(b.order, h, 4, uint64(p.flags))
		}
		h = b.words(h, offsets[i], p.address, 0, sizes[i], memSize)
		if !b.is64 {
			h = appendOrder(b.order, h, 4, uint64(p.flags))
		}
		h = b.words(h, p.align)
	}
	return h
}

// core writes the file: headers, the bytes of the parts in order, and section
// header 0 at the end where there is one, as the kernel does.
func (b *builder) core() []byte {
	offsets, sizes := make([]uint64, len(b.parts)), make([]uint64, len(b.parts))
	at := uint64(b.offset(52, 64)) + uint64(len(b.parts))*b.programSize()
	for i, p := range b.parts {
		offsets[i], sizes[i] = at, uint64(len(p.data))
		if p.claim != 0 {
			sizes[i] = p.claim
		}
		if p.at != 0 {
			offsets[i] = p.at
			continue
		}
		at += uint64(len(p.data))
	}
	sections := uint64(0)
	if b.xnum {
		sections = at
	}
	file := b.headerBytes(offsets, sizes, sections)
	for _, p := range b.parts {
		if p.at == 0 {
			file = append(file, p.data...)
		}
	}
	if b.xnum {
		section := make([]byte, b.offset(40, 64))
		b.order.PutUint32(section[b.offset(28, 44):], uint32(len(b.parts)))
		file = append(file, section...)
	}
	return file
}

// image writes a code object: its parts lie at the offsets that they name.
func (b *builder) image() []byte {
	offsets, sizes := make([]uint64, len(b.parts)), make([]uint64, len(b.parts))
	for i, p := range b.parts {
		offsets[i], sizes[i] = p.offset, uint64(len(p.data))
		if p.claim != 0 {
			sizes[i] = p.claim
		}
	}
	file := b.headerBytes(offsets, sizes, 0)
	for i, p := range b.parts {
		if end := offsets[i] + sizes[i]; end > uint64(len(file)) {
			file = append(file, make([]byte, end-uint64(len(file)))...)
		}
		copy(file[offsets[i]:], p.data)
	}
	return file
}

// note appends a note.
func (n numbers) note(b []byte, owner string, typ uint32, data []byte) []byte {
	b = appendOrder(n.order, b, 4, uint64(len(owner)+1))
	b = appendOrder(n.order, b, 4, uint64(len(data)))
	b = appendOrder(n.order, b, 4, uint64(typ))
	b = append(append(b, owner...), 0)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	b = append(b, data...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// status is NT_PRSTATUS with two registers of a word each, the program counter
// and the stack pointer, as testDescription has it.
func (n numbers) status(lwp int32, signal int16, pc, sp uint64) []byte {
	b := make([]byte, n.offset(72, 112))
	n.order.PutUint16(b[12:], uint16(signal))
	n.order.PutUint32(b[n.offset(24, 32):], uint32(lwp))
	return n.words(b, pc, sp)
}

// info is NT_PRPSINFO with 4-byte user IDs.
func (n numbers) info(pid int32, name string) []byte {
	b := make([]byte, n.offset(128, 136))
	n.order.PutUint32(b[n.offset(16, 24):], uint32(pid))
	copy(b[n.offset(32, 40):], name)
	return b
}

// siginfo is NT_SIGINFO.
func (n numbers) siginfo(signal, code int32, address uint64) []byte {
	b := make([]byte, n.offset(12, 16))
	n.order.PutUint32(b, uint32(signal))
	n.order.PutUint32(b[8:], uint32(code))
	b = n.words(b, address)
	return append(b, make([]byte, 128-len(b))...)
}

// fileNote is NT_FILE; offsets are in bytes and written in pages.
func (n numbers) fileNote(page uint64, ranges ...fileRange) []byte {
	b := n.words(nil, uint64(len(ranges)), page)
	for _, r := range ranges {
		b = n.words(b, r.start, r.end, r.offset/page)
	}
	for _, r := range ranges {
		b = append(append(b, r.path...), 0)
	}
	return b
}

const (
	testPC, testSP, testExtra = 16, 7, 20
)

// testDescription is a little architecture with the general layout of
// NT_PRSTATUS: PC and SP, and one register in a note of another owner.
func testDescription(n numbers) *sdk.Description {
	order := sdk.LittleEndian
	if n.order == binary.ByteOrder(binary.BigEndian) {
		order = sdk.BigEndian
	}
	size, at := uint32(n.size()), uint32(n.offset(72, 112))
	return &sdk.Description{
		Name: "test", ByteOrder: order, AddressBits: 8 * size, PC: testPC, SP: testSP, FP: sdk.NoRegister,
		RegisterSets: []sdk.RegisterSet{
			{Source: sdk.CoreNote, Owner: coreOwner, Type: ntPRSTATUS, Fields: []sdk.RegisterField{
				{Offset: at, Size: size, Register: testPC},
				{Offset: at + size, Size: size, Register: testSP},
			}},
			{Source: sdk.CoreNote, Owner: "LINUX", Type: 0x202, Fields: []sdk.RegisterField{{Offset: 0, Size: 4, Register: testExtra}}},
		},
	}
}

func describe(d *sdk.Description) func(object.ELFMachine) (*sdk.Description, error) {
	return func(object.ELFMachine) (*sdk.Description, error) {
		if d == nil {
			return nil, errors.New("no architecture")
		}
		return d, nil
	}
}

// openBytes reads a core of bytes, and files below a directory of the test.
func openBytes(t testing.TB, n numbers, data []byte, options ...Options) *Core {
	t.Helper()
	o := Options{Describe: describe(testDescription(n)), Finder: object.Finder{Sysroot: t.TempDir()}}
	if len(options) > 0 {
		o = options[0]
		if o.Describe == nil {
			o.Describe = describe(testDescription(n))
		}
	}
	c := &Core{path: "synthetic.core"}
	if err := c.open(data, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// writeFile writes a file below a directory, under the path that it has in the
// target.
func writeFile(t testing.TB, root, path string, data []byte) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// problemsOf are the problems of a core, but for the one that most small cores
// have.
func problemsOf(c *Core) string {
	var list []string
	for _, p := range c.Info().Problems {
		if !strings.HasSuffix(p, noCode) {
			list = append(list, p)
		}
	}
	return strings.Join(list, "\n")
}
