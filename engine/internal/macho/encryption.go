// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"errors"
	"fmt"
)

// ErrEncrypted means that the file has bytes there that only the system decrypts, where it loads them.
var ErrEncrypted = errors.New("the bytes are encrypted")

// encryptionCommand is the size of encryption_info_command.
const encryptionCommand = 20

// takeEncryption keeps the range that a load command says is encrypted: an offset, a size, and the number of the
// system of encryption; 0: the range may be encrypted yet. Two ranges become the range of both.
func (f *File) takeEncryption(c *command) {
	if len(c.data) < encryptionCommand {
		f.problem(fmt.Errorf("load command of encryption at offset %#x: %d bytes, expected at least %d", c.offset, len(c.data), encryptionCommand))
		return
	}
	p, system := place{uint64(c.u32(8)), uint64(c.u32(12))}, c.u32(16)
	if system == 0 || p.size == 0 {
		return
	}
	f.problem(fmt.Errorf("%#x bytes at offset %#x are encrypted (cryptid %d): they are read neither as code nor as data", p.size, p.offset, system))
	if e := f.encrypted; e.size > 0 {
		start, end := min(e.offset, p.offset), max(e.offset+e.size, p.offset+p.size)
		p = place{start, end - start}
	}
	f.encrypted = p
}

// Encrypted returns the range of the file that is encrypted (LC_ENCRYPTION_INFO_64 with a cryptid). Its size is 0
// where none is.
func (f *File) Encrypted() (offset, size uint64) { return f.encrypted.offset, f.encrypted.size }

// Readable returns how many bytes of a range of the file, from its beginning on, are not encrypted.
func (f *File) Readable(offset, size uint64) uint64 {
	e := f.encrypted
	switch {
	case offset-e.offset < e.size:
		return 0
	case offset < e.offset && e.size > 0:
		return min(size, e.offset-offset)
	}
	return size
}

// PutPlain changes a header and its load commands, as memory has them, to one that says of nothing that it is
// encrypted: in memory nothing is.
func PutPlain(header []byte) {
	h, err := readHeader(header)
	if err != nil {
		return
	}
	_ = h.eachCommand(header, func(c *command) {
		if isEncryption(c.kind) && len(c.data) >= encryptionCommand {
			clear(c.data[16:encryptionCommand])
		}
	})
}

// isEncryption reports whether a load command is one of encryption.
func isEncryption(kind uint32) bool { return kind == cmdEncryption || kind == cmdEncryption64 }
