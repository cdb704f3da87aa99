// SPDX-License-Identifier: Apache-2.0

package disassembler

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/ondemand"
	"github.com/unwindd/unwindd/sdk"
)

// llvm-objdump reads an ELF file with one section of code for each stretch, at its address. The
// arguments set the machine.

func objectArgs(t sdk.LLVMTarget) []string {
	return append(targetArgs(t), "--disassemble", "--disassemble-zeroes", "-")
}

const (
	headerSize  = 64
	sectionSize = 64
)

// objectInput returns an ELF file: its header, code, names, section headers. The name of a
// section is the number of its stretch.
func objectInput(list []Stretch) []byte {
	var b, names bytes.Buffer
	b.Write(make([]byte, headerSize))
	names.WriteByte(0)
	sections := []elf.Section64{{}}
	for i := range list {
		s := elf.Section64{
			Name: uint32(names.Len()), Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), //nolint:gosec // below 2^18
			Addr: list[i].Address, Off: uint64(b.Len()), Size: uint64(len(list[i].Bytes)), Addralign: 1,
		}
		names.WriteString(strconv.Itoa(i) + "\x00")
		b.Write(list[i].Bytes)
		sections = append(sections, s)
	}
	named := elf.Section64{Name: 0, Type: uint32(elf.SHT_STRTAB), Off: uint64(b.Len()), Size: uint64(names.Len()), Addralign: 1}
	sections = append(sections, named)
	b.Write(names.Bytes())
	b.Write(make([]byte, -b.Len()&7))
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Version: uint32(elf.EV_CURRENT), Ehsize: headerSize, Shoff: uint64(b.Len()),
		Shentsize: sectionSize, Shnum: uint16(len(sections)), Shstrndx: uint16(len(sections) - 1), //nolint:gosec // fewer stretches than maxInstructions
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	out, _ := binary.Append(b.Bytes(), binary.LittleEndian, sections)
	head, _ := binary.Append(nil, binary.LittleEndian, h)
	copy(out, head)
	return out
}

var (
	// sectionLine begins the listing of a section.
	sectionLine = ondemand.Regexp(`^Disassembly of section ([0-9]+):`)
	// beforeText matches a line with address and code before the text, behindText a line
	// with them in a comment behind it.
	beforeText = ondemand.Regexp(`^ *([0-9a-f]+):\s([0-9a-f ]+)\t(.*)$`)
	behindText = ondemand.Regexp(`^\t(.*?)\s*// ([0-9A-F]+): ([0-9A-F ]+)`)
)

func readObject(out *plugin.Output, list []Stretch, found *found) {
	section := -1
	listed := map[uint64]encoded{} // by address in the section
	take := func() {
		if section < 0 || section >= len(list) {
			return
		}
		each(list[section:section+1], func(_, k int, address uint64, _ []byte) {
			e := listed[address]
			found.texts[section][k], found.sizes[section][k] = e.text, e.size
		})
	}
	for line := range strings.Lines(string(out.Stdout)) {
		line = strings.TrimRight(line, "\r\n")
		if m := sectionLine().FindStringSubmatch(line); m != nil {
			take()
			clear(listed)
			section = len(list)
			if n, err := strconv.Atoi(m[1]); err == nil && n < len(list) {
				section = n
			}
			continue
		}
		if address, e, ok := parseListed(line); ok {
			found.lineCount++
			listed[address] = e
		}
	}
	take()
}

// parseListed reads a line of a listing.
func parseListed(line string) (address uint64, e encoded, ok bool) {
	digits, code, text := "", "", ""
	if m := behindText().FindStringSubmatch(line); m != nil {
		text, digits, code = m[1], m[2], m[3]
	} else if m := beforeText().FindStringSubmatch(line); m != nil {
		digits, code, text = m[1], m[2], m[3]
	}
	address, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return 0, e, false
	}
	e.size = uint32(len(strings.ReplaceAll(code, " ", "")) / 2) //nolint:gosec // of a line
	e.text = textOf(text)
	return address, e, true
}
