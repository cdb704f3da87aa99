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

// A core keeps of the stack what is above its pointer, with the red zone, and of other memory
// what can be written and is not larger than this.
const (
	redZone         = 512
	largestKept     = 1 << 20
	largestConstant = 128 << 10
)

// writeCore writes the process as it stands.
func (p *point) writeCore(t *tracee, path string) error {
	loads := make([]elf.Prog64, 0, len(p.maps)+1)
	var data [][]byte
	notes := p.notes(t)
	offset := uint64(binary.Size(elf.Header64{}) + (len(p.maps)+1)*binary.Size(elf.Prog64{}))
	loads = append(loads, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: offset, Filesz: uint64(len(notes)), Align: 4})
	offset += uint64(len(notes))
	for i := range p.maps {
		m := &p.maps[i]
		start, kept := p.keptOf(m)
		flags := uint32(elf.PF_R)
		if m.isWritable {
			flags |= uint32(elf.PF_W)
		}
		if m.isCode {
			flags |= uint32(elf.PF_X)
		}
		loads = append(loads, elf.Prog64{
			Type: uint32(elf.PT_LOAD), Flags: flags, Off: offset, Vaddr: start, Filesz: uint64(len(kept)), Memsz: m.end - start, Align: pageSize,
		})
		data = append(data, kept)
		offset += uint64(len(kept))
	}
	var out bytes.Buffer
	header := elf.Header64{
		Type: uint16(elf.ET_CORE), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: uint64(binary.Size(elf.Header64{})), Ehsize: uint16(binary.Size(elf.Header64{})),
		Phentsize: uint16(binary.Size(elf.Prog64{})), Phnum: uint16(len(loads)), //nolint:gosec // a few hundred
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS], header.Ident[elf.EI_DATA], header.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	_ = binary.Write(&out, binary.LittleEndian, &header)
	_ = binary.Write(&out, binary.LittleEndian, loads)
	out.Write(notes)
	for _, d := range data {
		out.Write(d)
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}

// keptOf is what a core keeps of a mapping, and where that begins. The first page of a file has
// its build ID, and small mappings that are not written any more have what was relocated.
func (p *point) keptOf(m *mapping) (start uint64, data []byte) {
	start, end := m.start, m.end
	_, sp := p.process.position()
	switch {
	case sp >= m.start && sp < m.end:
		start = max(m.start, (sp-redZone)&^(pageSize-1))
		end = min(end, start+8*largestKept)
	case m.path == "[vvar]":
		return start, nil
	case m.path == "[vdso]" || m.isWritable && end-start <= largestKept || !m.isCode && end-start <= largestConstant:
	case m.offset == 0 && m.path != "":
		end = start + pageSize
	default:
		return start, nil
	}
	b := make([]byte, end-start)
	return start, b[:p.process.read(start, b)]
}

// notes are those of the process and its thread.
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
