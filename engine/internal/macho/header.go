// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrNotMachO means that bytes do not begin as a Mach-O file of 64 bits in little-endian order.
var ErrNotMachO = errors.New("not a Mach-O file of 64 bits")

// Machines, as the header numbers them (cputype).
const (
	MachineX86_64 = 0x01000007
	MachineARM64  = 0x0100000c
)

// maskOfSubtype removes what a subtype says beside the machine: the version of the ABI of pointer
// authentication, and CPU_SUBTYPE_LIB64.
const maskOfSubtype = 0x00ffffff

// SubtypeARM64E is the subtype of machines with pointer authentication.
const SubtypeARM64E = 2

// Types of files (filetype).
const (
	TypeObject     = 1   // MH_OBJECT
	TypeExecute    = 2   // MH_EXECUTE
	TypeCore       = 4   // MH_CORE
	TypePreload    = 5   // MH_PRELOAD
	TypeDylib      = 6   // MH_DYLIB
	TypeDylinker   = 7   // MH_DYLINKER
	TypeBundle     = 8   // MH_BUNDLE
	TypeDylibStub  = 9   // MH_DYLIB_STUB
	TypeDSYM       = 0xa // MH_DSYM
	TypeKext       = 0xb // MH_KEXT_BUNDLE
	TypeFileset    = 0xc // MH_FILESET
	magic64        = "\xcf\xfa\xed\xfe"
	headerSize     = 32
	inCacheFlag    = 0x80000000 // MH_DYLIB_IN_CACHE
	commandSize    = 8          // the least of a load command
	maxCommandSize = 1 << 26    // bytes of all of them
)

// Load commands that are read.
const (
	cmdSymtab        = 0x2
	cmdThread        = 0x4
	cmdUnixThread    = 0x5
	cmdDysymtab      = 0xb
	cmdLoadDylib     = 0xc
	cmdIDDylib       = 0xd
	cmdSegment64     = 0x19
	cmdUUID          = 0x1b
	cmdNote          = 0x31
	cmdFileset       = 0x80000035
	cmdDyldInfo      = 0x22
	cmdDyldInfoOnly  = 0x80000022
	cmdFunctionStart = 0x26
	cmdMain          = 0x80000028
	cmdBuildVersion  = 0x32
	cmdExportsTrie   = 0x80000033
	cmdChainedFixups = 0x80000034
	cmdVersionMacOS  = 0x24
	cmdVersionIOS    = 0x25
	cmdVersionTVOS   = 0x2f
	cmdVersionWatch  = 0x30
	cmdEncryption    = 0x21
	cmdEncryption64  = 0x2c
)

// header is the header of a file.
type header struct {
	machine, subtype uint32
	typ              uint32
	commands         uint32 // how many load commands there are
	size             uint32 // of all load commands, bytes
	flags            uint32
}

// IsMachO reports whether bytes begin as a Mach-O file of 64 bits.
func IsMachO(data []byte) bool { return len(data) >= 4 && string(data[:4]) == magic64 }

// readHeader reads the header that a file begins with.
func readHeader(data []byte) (h header, err error) {
	if !IsMachO(data) {
		return h, ErrNotMachO
	}
	if len(data) < headerSize {
		return h, fmt.Errorf("%d bytes, expected a header of %d", len(data), headerSize)
	}
	le := binary.LittleEndian
	h = header{
		machine: le.Uint32(data[4:]), subtype: le.Uint32(data[8:]), typ: le.Uint32(data[12:]),
		commands: le.Uint32(data[16:]), size: le.Uint32(data[20:]), flags: le.Uint32(data[24:]),
	}
	return h, nil
}

// command is a load command, its first 8 bytes among its bytes.
type command struct {
	kind   uint32
	offset uint64 // in the file
	data   []byte
}

// u32 returns a field; 0 behind the end of the command.
func (c *command) u32(offset int) uint32 {
	if offset+4 > len(c.data) {
		return 0
	}
	return binary.LittleEndian.Uint32(c.data[offset:])
}

// u64 returns a field; 0 behind the end of the command.
func (c *command) u64(offset int) uint64 {
	if offset+8 > len(c.data) {
		return 0
	}
	return binary.LittleEndian.Uint64(c.data[offset:])
}

// text returns the string whose offset in the command is in a field (lc_str).
func (c *command) text(field int) string {
	at := uint64(c.u32(field))
	if at < commandSize || at >= uint64(len(c.data)) {
		return ""
	}
	return Name(c.data[at:])
}

// Name returns a name that fills its bytes, or ends with a NUL.
func Name(b []byte) string {
	name, _, _ := bytes.Cut(b, []byte{0})
	return string(name)
}

// eachCommand yields the load commands. The error is that of the first that cannot be one: those before
// it are whole.
func (h *header) eachCommand(data []byte, yield func(*command)) error {
	if h.size > maxCommandSize {
		return fmt.Errorf("load commands of %d bytes, expected at most %d", h.size, maxCommandSize)
	}
	end := min(headerSize+uint64(h.size), uint64(len(data)))
	at := uint64(headerSize)
	for i := range h.commands {
		if end-at < commandSize {
			return fmt.Errorf("load command %d at offset %#x is behind the end of the commands at %#x, of which the header counts %d", i, at, end, h.commands)
		}
		c := command{kind: binary.LittleEndian.Uint32(data[at:]), offset: at}
		size := uint64(binary.LittleEndian.Uint32(data[at+4:]))
		if size < commandSize || size > end-at {
			return fmt.Errorf("load command %d at offset %#x has %d bytes, expected %d to %d", i, at, size, commandSize, end-at)
		}
		c.data = data[at : at+size]
		yield(&c)
		at += size
	}
	return nil
}
