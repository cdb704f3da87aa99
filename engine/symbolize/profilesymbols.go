// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/profilenames"
	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// symbolNames is a symbol file of Breakpad, whose addresses count from the beginning of the file in memory.
type symbolNames struct {
	file *breakpad.File
	base uint64 // the ELF virtual address of that
}

// findSymbols looks for the symbol file of a mapping, where there is no debug information.
func (f *profileFile) findSymbols(n *profileNamer, m *profilenames.Mapping, id []byte) {
	if f.File != nil && f.isComplete() {
		return
	}
	base := uint64(0)
	if f.File != nil {
		base, _ = f.Object.ImageBase()
	}
	names := []string{object.LastPart(m.File)}
	if f.File != nil {
		if name := f.Object.SharedName(); name != "" && name != names[0] {
			names = append(names, name)
		}
	}
	for _, name := range names {
		want := target.ELFSymbols(name, id)
		n.finder.SymbolFiles(name, want.DebugID, func(path string) bool {
			if found, err := breakpad.Identify(path); err != nil || !found.IsID(want.DebugID) {
				return true
			}
			file, err := breakpad.Open(path)
			if err != nil {
				f.problem = fmt.Sprintf("%s: %v", object.SymbolFileName(name), err)
				return true
			}
			f.breakpad, f.problem = &symbolNames{file, base}, ""
			return false
		})
		if f.breakpad != nil {
			return
		}
	}
}

// addressOf returns the address in the symbol file of a frame whose ELF file is not there. It is certain
// where the mapping is of the beginning of the file, or starts at its offset, which no memory of a process
// does: then both are the file's own addresses.
func (s *symbolNames) addressOf(m *profilenames.Mapping, address uint64) (uint64, string) {
	switch m.Offset {
	case 0:
		return address - m.Start, ""
	case m.Start:
		return address, ""
	}
	return 0, "there is a symbol file, and no ELF file that tells the address of the mapping"
}

// frames appends the functions at an address, of the file where there is one.
func (s *symbolNames) frames(dst []trace.Symbol, address uint64) []trace.Symbol {
	if address < s.base {
		return dst
	}
	frames, err := s.file.Frames(dst, address-s.base)
	if err != nil {
		return dst
	}
	return frames
}
