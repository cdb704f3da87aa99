// SPDX-License-Identifier: Apache-2.0

package debugmap

import (
	"slices"

	"github.com/unwindd/unwindd/engine/internal/macho"
)

// placed is the place of a function or a variable in its object file.
type placed struct {
	start, size uint64
	isDoubtful  bool // several have the name
}

// placesOf returns the places of the functions and variables of an object file, by name.
func placesOf(f *macho.File) (map[string]placed, error) {
	ends, err := boundsOf(f)
	if err != nil {
		return nil, err
	}
	places, number := map[string]placed{}, -1
	err = f.Symbols(func(s *macho.Symbol) {
		number++
		var p placed
		switch {
		case s.Name == "":
			return
		case s.IsDefined():
			p = placed{start: s.Value, size: ends.size(s.Value)}
		case s.IsCommon():
			p = placed{start: macho.UndefinedAddress(number), size: min(s.Value, 1<<32)}
		default:
			return
		}
		_, p.isDoubtful = places[s.Name]
		places[s.Name] = p
	})
	return places, err
}

// bounds are the places where something of a file begins or ends.
type bounds []uint64

// boundsOf returns the bounds of the symbols and sections of a file.
func boundsOf(f *macho.File) (list bounds, err error) {
	err = f.Symbols(func(s *macho.Symbol) {
		if s.IsDefined() && s.Name != "" {
			list = append(list, s.Value)
		}
	})
	for _, section := range f.Sections() {
		list = append(list, section.Address, section.Address+section.Size)
	}
	slices.Sort(list)
	return slices.Compact(list), err
}

// size returns how far away the next bound is; 0 where there is none.
func (b bounds) size(address uint64) uint64 {
	i, isThere := slices.BinarySearch(b, address)
	if isThere {
		i++
	}
	if i >= len(b) {
		return 0
	}
	return b[i] - address
}
