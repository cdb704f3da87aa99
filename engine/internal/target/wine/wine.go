// SPDX-License-Identifier: Apache-2.0

// Package wine reads what Wine keeps in the memory of a process that executes a program of
// Windows for x86-64: the environment blocks of its threads, the loader's list of modules, and
// where threads left the stack of Windows for the stack of Unix.
//
// Everything comes from memory that the program can write: counts and lengths are bounded, and
// lists may be circles.
package wine

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"path"
	"strings"
	"unicode/utf16"
)

// GSBase is the register, by its number in DWARF, that has the address of a thread's environment
// block, on both stacks.
const GSBase = 59

// IsOf reports whether a file with a path that a process has mapped is the part of Wine that every
// program of Windows has.
func IsOf(name string) bool { return strings.HasSuffix(name, "/ntdll.so") }

// Drives returns the directory with the links to the drives, by the environment of a process of Wine; "" where it does
// not tell.
func Drives(environment []string) string {
	prefix, home := "", ""
	for _, v := range environment {
		if value, ok := strings.CutPrefix(v, "WINEPREFIX="); ok {
			prefix = value
		} else if value, ok := strings.CutPrefix(v, "HOME="); ok {
			home = path.Join(value, ".wine")
		}
	}
	if prefix = cmp.Or(prefix, home); prefix == "" {
		return ""
	}
	return path.Join(prefix, "dosdevices")
}

// Granularity is a number of bytes: the addresses of images are multiples of it.
const Granularity = 64 << 10

// A Reader reads memory of the process, and returns how many bytes are there.
type Reader func(address uint64, buf []byte) int

func (read Reader) word(address uint64) (uint64, bool) {
	var b [8]byte
	if read(address, b[:]) < len(b) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// BlockSize is how much of an environment block is read: its places are in the first page.
const BlockSize = 4096

// Places in the environment block (TEB of winternl.h).
const (
	blockStackBase = 0x08
	blockSelf      = 0x30
	blockProcess   = 0x60  // of the environment block of the process (PEB)
	blockSwitch    = 0x328 // of the frame of the last system call, in Wine's own data
)

// Block is the environment block of a thread.
type Block struct {
	Address  uint64
	StackEnd uint64 // the first address above the stack of Windows
	process  uint64
	frame    uint64
	read     Reader
}

// BlockAt reads the environment block at an address, the value of GSBase. It is false where there is
// none: a block has its own address.
func BlockAt(address uint64, read Reader) (b Block, ok bool) {
	page := make([]byte, BlockSize)
	if address == 0 || read(address, page) < len(page) {
		return b, false
	}
	word := func(offset int) uint64 { return binary.LittleEndian.Uint64(page[offset:]) }
	if word(blockSelf) != address {
		return b, false
	}
	return Block{address, word(blockStackBase), word(blockProcess), word(blockSwitch), read}, true
}

// Places in the frame of a system call (struct syscall_frame of Wine), on the stack of Unix.
const (
	frameStackPointer = 0x88
	frameEarlier      = 0xa0 // of the frame of the system call in which a callback was called
	frameSize         = 0xa8
)

// maxFrames bounds the system calls and callbacks in one another; Windows has a bound of 50.
const maxFrames = 128

// StackPointers returns where a thread that is in a system call left the stack of Windows, the innermost first:
// there are several where system calls called back. Reading them reads the frames of the system calls.
func (b *Block) StackPointers() (list []uint64) {
	for address := b.frame; address != 0 && len(list) < maxFrames; {
		frame := make([]byte, frameSize)
		if b.read(address, frame) < len(frame) {
			break
		}
		list = append(list, binary.LittleEndian.Uint64(frame[frameStackPointer:]))
		address = binary.LittleEndian.Uint64(frame[frameEarlier:])
	}
	return list
}

// A Module is an entry of the loader's list.
type Module struct {
	Base uint64
	Size uint32 // of the image
	Time uint32 // of the file's header
	Path string // as the program sees it: with a drive, as C:\windows\system32\ntdll.dll
}

// Places in the environment block of the process, the loader's data, and the entries of its list (PEB_LDR_DATA and
// LDR_DATA_TABLE_ENTRY of winternl.h).
const (
	processLoader = 0x18
	loaderList    = 0x10
	entrySize     = 0x88
	entryBase     = 0x30
	entryImage    = 0x40
	entryTime     = 0x80
	entryPath     = 0x48 // its length in bytes, and at 8 bytes from there its address
)

const (
	maxModules = 4096
	maxPath    = 32767 // characters of UTF-16, for Windows
)

// Modules returns the entries of the loader's list, which begins with the program.
func (b *Block) Modules() (list []Module) {
	loader, ok := b.read.word(b.process + processLoader)
	if !ok || b.process == 0 || loader == 0 {
		return nil
	}
	head := loader + loaderList
	address, _ := b.read.word(head)
	seen := map[uint64]bool{head: true, 0: true}
	for !seen[address] && len(list) < maxModules {
		seen[address] = true
		entry := make([]byte, entrySize)
		if b.read(address, entry) < len(entry) {
			break
		}
		address = binary.LittleEndian.Uint64(entry)
		list = append(list, Module{
			Base: binary.LittleEndian.Uint64(entry[entryBase:]), Size: binary.LittleEndian.Uint32(entry[entryImage:]),
			Time: binary.LittleEndian.Uint32(entry[entryTime:]), Path: b.text(entry[entryPath:]),
		})
	}
	return list
}

// text reads a UNICODE_STRING; "" where it cannot be read.
func (b *Block) text(s []byte) string {
	text := make([]byte, min(int(binary.LittleEndian.Uint16(s))&^1, 2*maxPath))
	if len(text) == 0 || b.read(binary.LittleEndian.Uint64(s[8:]), text) < len(text) {
		return ""
	}
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(text[2*i:])
	}
	return string(utf16.Decode(units))
}

// IsImage reports whether memory at an address may begin as an image of a PE file does.
func (read Reader) IsImage(address uint64) bool {
	var b [2]byte
	return address%Granularity == 0 && read(address, b[:]) == len(b) && bytes.Equal(b[:], []byte("MZ"))
}
