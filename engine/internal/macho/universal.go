// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"encoding/binary"
	"fmt"
)

// A Slice is a file in a universal file (fat_arch).
type Slice struct {
	Machine, Subtype uint32
	Offset, Size     uint64 // in the universal file
}

// Sizes of parts of universal files.
const (
	fatHeader  = 8
	fatEntry   = 20
	fatEntry64 = 32
	// mostSlices is the bound on the entries of a universal file. Classes of Java begin with the same
	// bytes, and have their version there, 45 or more.
	mostSlices = 44
)

// IsUniversal reports whether bytes begin as a universal file.
func IsUniversal(data []byte) bool {
	if len(data) < fatHeader || string(data[:3]) != "\xca\xfe\xba" || data[3] != 0xbe && data[3] != 0xbf {
		return false
	}
	count := binary.BigEndian.Uint32(data[4:])
	return count > 0 && count <= mostSlices
}

// Slices returns the files in a universal file, in its order. With an error come those before it.
func Slices(data []byte) (list []Slice, err error) {
	if !IsUniversal(data) {
		return nil, fmt.Errorf("offset 0: %w, expected a universal file", ErrNotMachO)
	}
	be, size := binary.BigEndian, uint64(fatEntry)
	if data[3] == 0xbf {
		size = fatEntry64
	}
	for i := range uint64(be.Uint32(data[4:])) {
		at := fatHeader + i*size
		if at+size > uint64(len(data)) {
			return list, fmt.Errorf("entry %d of the universal file at offset %#x is not in its %d bytes", i, at, len(data))
		}
		e := data[at:]
		s := Slice{Machine: be.Uint32(e), Subtype: be.Uint32(e[4:]) & maskOfSubtype, Offset: uint64(be.Uint32(e[8:])), Size: uint64(be.Uint32(e[12:]))}
		if size == fatEntry64 {
			s.Offset, s.Size = be.Uint64(e[8:]), be.Uint64(e[16:])
		}
		if s.Offset > uint64(len(data)) || s.Size > uint64(len(data))-s.Offset {
			return list, fmt.Errorf("entry %d of the universal file: offset %#x, size %#x is not in its %d bytes", i, s.Offset, s.Size, len(data))
		}
		list = append(list, s)
	}
	return list, nil
}

// Name returns the name of the slice's machine, as compilers and `lipo` have it: arm64e.
func (s *Slice) Name() string { return machineName(s.Machine, s.Subtype) }

// machineNames are the names of machines by cputype and subtype. Others have the name of subtype 0.
var machineNames = map[[2]uint32]string{
	{7, 0}:                        "i386",
	{12, 0}:                       "arm",
	{12, 9}:                       "armv7",
	{12, 11}:                      "armv7s",
	{12, 12}:                      "armv7k",
	{18, 0}:                       "ppc",
	{0x01000012, 0}:               "ppc64",
	{0x0200000c, 0}:               "arm64_32",
	{MachineX86_64, 0}:            "x86_64",
	{MachineX86_64, 8}:            "x86_64h",
	{MachineARM64, 0}:             "arm64",
	{MachineARM64, SubtypeARM64E}: "arm64e",
}

// IsMachineName reports whether a text is the name of a machine, as Slice.Name has it.
func IsMachineName(name string) bool {
	for _, known := range machineNames {
		if name == known {
			return true
		}
	}
	return false
}

func machineName(machine, subtype uint32) string {
	if name := machineNames[[2]uint32{machine, subtype}]; name != "" {
		return name
	}
	if name := machineNames[[2]uint32{machine, 0}]; name != "" {
		return name
	}
	return fmt.Sprintf("cputype %#x", machine)
}
