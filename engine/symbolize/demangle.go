// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"debug/elf"
	"encoding/binary"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

func (s *Writer) demangle(name string) string {
	if !s.options.Demangle {
		return name
	}
	n := s.readable.find(name)
	if n.raw != name {
		if n.raw, n.readable = name, ""; s.options.Style == StyleAddr2line {
			n.readable = symbol.DemangleGNU(name)
		} else {
			n.readable = symbol.DemangleLLVM(name)
		}
	}
	return n.readable
}

// readableNames is a cache of demangled names, indexed by a few bytes of them: the names of
// neighbouring addresses are mostly the same strings in memory, which makes comparing them
// quick.
type readableNames [1 << 10]struct{ raw, readable string }

// find returns the slot of a name.
func (t *readableNames) find(name string) *struct{ raw, readable string } {
	h := uint32(len(name))
	if n := len(name); n >= 8 {
		h ^= binary.LittleEndian.Uint32([]byte(name[n-8:])) * 0x9e3779b1
		h ^= binary.LittleEndian.Uint32([]byte(name[n/2-2:])) * 0x85ebca77
		h ^= binary.LittleEndian.Uint32([]byte(name[n/4:])) * 0xc2b2ae3d
	}
	return &t[h>>22]
}

// isWin32 reports whether the names of C functions are decorated by their calling conventions, as
// for Windows on 32-bit x86.
func (f *File) isWin32() bool {
	return elf.Machine(f.Object.Machine()) == elf.EM_386 && (f.Object.IsPE() || f.Object.IsPDB())
}
