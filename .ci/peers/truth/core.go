// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file writes a point as the kernel would write a core of it (elf(5), core(5)), so that
// peers can read it while the process is traced.

// Notes under the owner "CORE" (include/uapi/linux/elf.h), and the sizes of their structures.
const (
	ntPrstatus = 1
	ntPrpsinfo = 3
	ntAuxv     = 6
	ntFile     = 0x46494c45

	prstatusSize = 336
	prpsinfoSize = 136
	prReg        = 112
	prPID        = 32
	prName       = 40
)

// writeCore writes the process as it stands. Pages that were never touched are holes of the file.
func (p *point) writeCore(t *tracee, path string) error {
	pages, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", t.pid))
	if err != nil {
		return err
	}
	defer pages.Close()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	notes := p.notes(t)
	offset := uint64(binary.Size(elf.Header64{}) + (len(p.maps)+1)*binary.Size(elf.Prog64{}))
	loads := append(make([]elf.Prog64, 0, len(p.maps)+1), elf.Prog64{Type: uint32(elf.PT_NOTE), Off: offset, Filesz: uint64(len(notes)), Align: 4})
	if _, err := out.WriteAt(notes, int64(offset)); err != nil { //nolint:gosec // small
		return err
	}
	offset = (offset + uint64(len(notes)) + pageSize - 1) &^ (pageSize - 1)
	for i := range p.maps {
		m := &p.maps[i]
		kept := m.kept(pages)
		loads = append(loads, elf.Prog64{
			Type: uint32(elf.PT_LOAD), Flags: m.flags(), Off: offset, Vaddr: m.start, Filesz: uint64(len(kept)) * pageSize, Memsz: m.end - m.start, Align: pageSize,
		})
		if err := p.writePages(out, offset, m.start, kept); err != nil {
			return err
		}
		offset += uint64(len(kept)) * pageSize
	}
	header := elf.Header64{
		Type: uint16(elf.ET_CORE), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: uint64(binary.Size(elf.Header64{})), Ehsize: uint16(binary.Size(elf.Header64{})),
		Phentsize: uint16(binary.Size(elf.Prog64{})), Phnum: uint16(len(loads)), //nolint:gosec // a few hundred
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS], header.Ident[elf.EI_DATA], header.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, &header)
	_ = binary.Write(&b, binary.LittleEndian, loads)
	if _, err := out.WriteAt(b.Bytes(), 0); err != nil {
		return err
	}
	return out.Truncate(int64(offset)) //nolint:gosec // of a file
}

// flags returns the flags of the mapping's program header.
func (m *mapping) flags() uint32 {
	flags := uint32(elf.PF_R)
	if m.isWritable {
		flags |= uint32(elf.PF_W)
	}
	if m.isCode {
		flags |= uint32(elf.PF_X)
	}
	return flags
}

// Bits of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst of Linux).
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61 // or shared
)

// kept returns the pages of a mapping, from its start on, that a core has as the kernel
// writes it (vma_dump_size in fs/coredump.c): all pages of a mapping of a file that was
// written to, such as relocated data, the first page of another file, which has its build
// ID, and the touched pages of anonymous memory.
func (m *mapping) kept(pagemap *os.File) []bool {
	if m.path == "[vvar]" || m.path == "[vsyscall]" {
		return nil
	}
	raw := make([]byte, (m.end-m.start)/pageSize*8)
	n, _ := pagemap.ReadAt(raw, int64(m.start/pageSize*8)) //nolint:gosec // a page of the lower half
	kept := make([]bool, n/8)
	isWritten := false
	for i := range kept {
		bits := binary.LittleEndian.Uint64(raw[8*i:])
		kept[i] = bits&(pagePresent|pageSwapped) != 0 && bits&pageOfFile == 0
		isWritten = isWritten || kept[i]
	}
	isFile := m.path != "" && (m.path[0] == '/' || m.path == "[vdso]")
	switch {
	case isFile && (isWritten || m.path == "[vdso]"):
		for i := range kept {
			kept[i] = true
		}
	case isFile && m.offset == 0:
		kept = []bool{true}
	case !isWritten:
		kept = nil
	}
	return kept
}

// writePages writes those pages that are kept of a mapping, run by run.
func (p *point) writePages(out *os.File, offset, start uint64, kept []bool) error {
	for i := 0; i < len(kept); {
		n := 0
		for i+n < len(kept) && kept[i+n] {
			n++
		}
		if n == 0 {
			i++
			continue
		}
		b := make([]byte, n*pageSize)
		b = b[:p.process.read(start+uint64(i)*pageSize, b)]                        //nolint:gosec // not negative
		if _, err := out.WriteAt(b, int64(offset)+int64(i)*pageSize); err != nil { //nolint:gosec // of a file
			return err
		}
		i += n
	}
	return nil
}

// notes returns the notes of the process and its thread.
func (p *point) notes(t *tracee) (b []byte) {
	status := make([]byte, prstatusSize)
	binary.LittleEndian.PutUint16(status[12:], 5) // pr_cursig: SIGTRAP
	binary.LittleEndian.PutUint32(status, 5)
	binary.LittleEndian.PutUint32(status[prPID:], uint32(t.pid)) //nolint:gosec // an ID
	copy(status[prReg:], unsafe.Slice((*byte)(unsafe.Pointer(&t.regs)), int(unsafe.Sizeof(unix.PtraceRegs{}))))
	b = appendNote(b, ntPrstatus, status)
	info := make([]byte, prpsinfoSize)
	copy(info[prName:prName+15], filepath.Base(t.cmd.Path))
	b = appendNote(b, ntPrpsinfo, info)
	auxv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", t.pid))
	b = appendNote(b, ntAuxv, auxv)
	var list, names []byte
	count := uint64(0)
	for i := range p.maps {
		m := &p.maps[i]
		if m.path == "" || m.path[0] != '/' {
			continue
		}
		count++
		for _, word := range [...]uint64{m.start, m.end, m.offset / pageSize} {
			list = binary.LittleEndian.AppendUint64(list, word)
		}
		names = append(append(names, m.path...), 0)
	}
	files := binary.LittleEndian.AppendUint64(nil, count)
	files = binary.LittleEndian.AppendUint64(files, pageSize)
	return appendNote(b, ntFile, append(append(files, list...), names...))
}

func appendNote(b []byte, typ uint32, data []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, 5)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data))) //nolint:gosec // short
	b = binary.LittleEndian.AppendUint32(b, typ)
	b = append(b, "CORE\x00\x00\x00\x00"...)
	b = append(b, data...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}
