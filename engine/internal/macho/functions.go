// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"slices"
	"sync"
)

// functionsOnce are the starts of functions of a file, read once.
type functionsOnce struct {
	once   sync.Once
	starts []uint64
}

// FunctionAt returns the bounds of the function at an address by the starts of functions: it ends where the
// next one begins, or its section. False where the file has no such table, or no code there.
func (f *File) FunctionAt(address uint64) (start, end uint64, ok bool) {
	f.functions.once.Do(func() { f.functions.starts, _ = f.FunctionStarts() })
	starts := f.functions.starts
	i, isStart := slices.BinarySearch(starts, address)
	if !isStart {
		i--
	}
	if i < 0 {
		return 0, 0, false
	}
	s := f.SectionAt(address)
	if s == nil || !s.IsCode() || starts[i] < s.Address {
		return 0, 0, false
	}
	if end = s.Address + s.Size; i+1 < len(starts) {
		end = min(end, starts[i+1])
	}
	return starts[i], end, true
}
