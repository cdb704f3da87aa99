// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"cmp"
	"debug/elf"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/symtab"
	"github.com/unwindd/unwindd/engine/object"
)

// maxNames bounds the names of one address that are compared.
const maxNames = 64

// namedAddress is where a symbol is, and the hash of its name.
type namedAddress struct{ address, hash uint64 }

// sharedCode finds the addresses of functions that a linker folded: they have symbols of
// different names. A name that is a part of another is an alias of the same function, as
// "malloc" and "__libc_malloc" are.
func (x *symbolSource) sharedCode() map[uint64]bool {
	var list []namedAddress
	seed := maphash.MakeSeed()
	x.eachFunctionSymbol(func(s *object.Symbol) {
		list = append(list, namedAddress{s.Address, maphash.String(seed, s.Name)})
	})
	slices.SortFunc(list, func(a, b namedAddress) int {
		return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(a.hash, b.hash))
	})
	list = slices.Compact(list)
	names := map[uint64][]string{}
	for i := 1; i < len(list); i++ {
		if list[i].address == list[i-1].address {
			names[list[i].address] = nil
		}
	}
	x.eachFunctionSymbol(func(s *object.Symbol) {
		if known, ok := names[s.Address]; ok && len(known) < maxNames {
			name, _ := symtab.Names(strings.Clone(s.Name))
			names[s.Address] = append(known, name)
		}
	})
	shared := map[uint64]bool{}
	for address, list := range names {
		if areDifferent(list) {
			shared[address] = true
		}
	}
	return shared
}

// eachFunctionSymbol calls f with the symbols of functions of the object and its debug file.
func (x *symbolSource) eachFunctionSymbol(f func(s *object.Symbol)) {
	for _, o := range []*object.Object{x.Object, x.Debug} {
		if o == nil {
			continue
		}
		err := o.EachSymbol(func(s *object.Symbol) {
			if (s.Type == elf.STT_FUNC || s.Type == elf.STT_GNU_IFUNC) && s.Defined() && s.Name != "" {
				f(s)
			}
		})
		if err != nil {
			x.problem(err)
		}
	}
}

// areDifferent reports whether no name contains the other, for any two of the names.
func areDifferent(names []string) bool {
	for i, a := range names {
		for _, b := range names[:i] {
			if !strings.Contains(a, b) && !strings.Contains(b, a) {
				return true
			}
		}
	}
	return false
}
