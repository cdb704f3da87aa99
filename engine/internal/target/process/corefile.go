// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
)

// The copy of a process is laid out as the kernel would write a core (elf(5), core(5); the
// kernel's fs/binfmt_elf.c).

// The notes of a process (include/uapi/linux/elf.h), under the owner "CORE".
const (
	ntPRPSINFO = 3
	ntAUXV     = 6
	ntFILE     = 0x46494c45
)

// prStatus lays out struct elf_prstatus (include/linux/elfcore.h) around the general
// registers: the thread's ID, and no signal. Words are aligned to their size.
func (c *copied) prStatus(thread int, registers []byte) []byte {
	pid, start, word := 24, 72, 4
	if c.machine.class == elf.ELFCLASS64 {
		pid, start, word = 32, 112, 8
	}
	size := (start + len(registers) + 4 + word - 1) &^ (word - 1) // pr_fpvalid is behind them
	b := make([]byte, size)
	order.PutUint32(b[pid:], uint32(thread)) //nolint:gosec // an ID
	copy(b[start:], registers)
	return b
}

// prInfo lays out struct elf_prpsinfo: the process's ID, its name of at most 15 bytes, and
// no command line.
func (c *copied) prInfo(name string) []byte {
	size, pid := 124, 12
	if c.machine.class == elf.ELFCLASS64 {
		size, pid = 136, 24
	}
	b := make([]byte, size)
	order.PutUint32(b[pid:], uint32(c.pid)) //nolint:gosec // an ID
	copy(b[pid+16:pid+31], name)
	return b
}

// appendWord appends an address.
func (c *copied) appendWord(b []byte, value uint64) []byte {
	if c.machine.class == elf.ELFCLASS64 {
		return order.AppendUint64(b, value)
	}
	return order.AppendUint32(b, uint32(value)) //nolint:gosec // of a 32-bit process
}

// fileNote lays out NT_FILE: the mappings of files, with offsets in bytes.
func (c *copied) fileNote() []byte {
	var list, names []byte
	count := 0
	for i := range c.maps {
		m := &c.maps[i]
		if !m.isOfFile() || strings.IndexByte(m.path, 0) >= 0 {
			continue
		}
		count++
		for _, word := range [...]uint64{m.start, m.end, m.offset} {
			list = c.appendWord(list, word)
		}
		names = append(append(names, m.path...), 0)
	}
	b := c.appendWord(nil, uint64(count)) //nolint:gosec // a length
	b = c.appendWord(b, 1)                // the unit of offsets
	return append(append(b, list...), names...)
}

// appendNote appends a note, with owner and data padded to 4 bytes.
func appendNote(b []byte, n registerNote) []byte {
	b = order.AppendUint32(b, uint32(len(n.owner)+1)) //nolint:gosec // short
	b = order.AppendUint32(b, uint32(len(n.data)))    //nolint:gosec // bounded by maxFile
	b = order.AppendUint32(b, n.typ)
	b = padded(append(append(b, n.owner...), 0))
	return padded(append(b, n.data...))
}

func padded(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// notes lays out the notes of the process and of its threads.
func (c *copied) notes(name string) (b []byte) {
	b = appendNote(b, registerNote{"CORE", ntPRPSINFO, c.prInfo(name)})
	b = appendNote(b, registerNote{"CORE", ntAUXV, c.auxv})
	b = appendNote(b, registerNote{"CORE", ntFILE, c.fileNote()})
	for _, th := range c.threads {
		for _, n := range th.registers {
			b = appendNote(b, n)
		}
	}
	return b
}

// load is a part of a mapping with all of its bytes, or with none.
type load struct {
	span
	flags elf.ProgFlag
	data  []byte
}

// loads returns the mappings, divided where copied pieces begin and end.
func (c *copied) loads() []load {
	slices.SortStableFunc(c.pieces, func(a, b piece) int { return cmp.Compare(a.address, b.address) })
	list := make([]load, 0, len(c.maps)+2*len(c.pieces))
	pieces := c.pieces
	for i := range c.maps {
		m := &c.maps[i]
		start := m.start
		for len(pieces) > 0 && pieces[0].address < m.end {
			p := pieces[0]
			pieces = pieces[1:]
			if p.address < start || p.end() > m.end {
				continue // pieces do not cross mappings or overlap
			}
			if p.address > start {
				list = append(list, load{span{start, p.address}, m.flags, nil})
			}
			list = append(list, load{span{p.address, p.end()}, m.flags, p.data})
			start = p.end()
		}
		if start < m.end {
			list = append(list, load{span{start, m.end}, m.flags, nil})
		}
	}
	return list
}

// image returns the core: its header, program headers, section header, notes and memory.
func (c *copied) image(name string) []byte {
	notes := c.notes(name)
	loads := c.loads()
	is64 := c.machine.class == elf.ELFCLASS64
	headerSize, programSize, sectionSize := 52, 32, 40
	if is64 {
		headerSize, programSize, sectionSize = 64, 56, 64
	}
	count := len(loads) + 1
	size := headerSize + count*programSize + sectionSize + len(notes)
	for i := range loads {
		size += len(loads[i].data)
	}
	b := make([]byte, 0, size)
	b = c.appendHeader(b, headerSize, programSize, sectionSize, count)
	offset := uint64(headerSize + count*programSize + sectionSize) //nolint:gosec // sizes
	b = c.appendProgram(b, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: offset, Filesz: uint64(len(notes)), Align: 4})
	offset += uint64(len(notes))
	for i := range loads {
		l := &loads[i]
		b = c.appendProgram(b, elf.Prog64{
			Type: uint32(elf.PT_LOAD), Flags: uint32(l.flags), Off: offset, Vaddr: l.start, Filesz: uint64(len(l.data)), Memsz: l.end - l.start, Align: 1,
		})
		offset += uint64(len(l.data))
	}
	b = c.appendSection(b, count)
	b = append(b, notes...)
	for i := range loads {
		b = append(b, loads[i].data...)
	}
	return b
}

// pnXNUM in e_phnum means that section header 0 has the number of program headers.
const pnXNUM = 0xffff

// appendHeader appends the ELF header (System V gABI, ELF Header).
func (c *copied) appendHeader(b []byte, headerSize, programSize, sectionSize, count int) []byte {
	ident := [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(c.machine.class), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}
	if order.Uint16([]byte{1, 0}) != 1 {
		ident[elf.EI_DATA] = byte(elf.ELFDATA2MSB)
	}
	h := elf.Header64{
		Ident: ident, Type: uint16(elf.ET_CORE), Machine: c.machine.elf, Version: uint32(elf.EV_CURRENT),
		Phoff: uint64(headerSize), Shoff: uint64(headerSize + count*programSize), Flags: c.machine.flags, //nolint:gosec // sizes
		Ehsize: uint16(headerSize), Phentsize: uint16(programSize), Phnum: uint16(min(count, pnXNUM)), //nolint:gosec // bounded
		Shentsize: uint16(sectionSize), Shnum: 1, //nolint:gosec // bounded
	}
	if c.machine.class == elf.ELFCLASS64 {
		return appendRecord(b, &h)
	}
	return appendRecord(b, &elf.Header32{
		Ident: ident, Type: h.Type, Machine: h.Machine, Version: h.Version, Phoff: uint32(h.Phoff), Shoff: uint32(h.Shoff), Flags: h.Flags, //nolint:gosec // sizes
		Ehsize: h.Ehsize, Phentsize: h.Phentsize, Phnum: h.Phnum, Shentsize: h.Shentsize, Shnum: h.Shnum,
	})
}

// appendSection appends section header 0, which counts the program headers.
func (c *copied) appendSection(b []byte, count int) []byte {
	info := uint32(count) //nolint:gosec // bounded by maxMappings
	if c.machine.class == elf.ELFCLASS64 {
		return appendRecord(b, &elf.Section64{Info: info})
	}
	return appendRecord(b, &elf.Section32{Info: info})
}

// appendProgram appends a program header.
func (c *copied) appendProgram(b []byte, p elf.Prog64) []byte {
	if c.machine.class == elf.ELFCLASS64 {
		return appendRecord(b, &p)
	}
	return appendRecord(b, &elf.Prog32{
		Type: p.Type, Flags: p.Flags, Off: uint32(p.Off), Vaddr: uint32(p.Vaddr), Filesz: uint32(p.Filesz), Memsz: uint32(p.Memsz), Align: uint32(p.Align), //nolint:gosec // of a 32-bit process
	})
}

// appendRecord appends a record of numbers.
func appendRecord(b []byte, record any) []byte {
	var buf bytes.Buffer
	_ = binary.Write(&buf, order, record) // a buffer takes all
	return append(b, buf.Bytes()...)
}
