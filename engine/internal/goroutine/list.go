// SPDX-License-Identifier: Apache-2.0

package goroutine

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/target"
)

// maxGoroutines bounds the goroutines of a process: each has a stack of 2 KiB or more.
const maxGoroutines = 1 << 24

// batch is how many elements of the list are read at once.
const batch = 1 << 12

// addresses returns the addresses of the goroutines, in the order of the list. Each omission is
// a problem.
func (r *runtime) addresses() []uint64 {
	list, err := r.variable(r.list)
	if err != nil {
		r.problem("its goroutines are not listed: runtime.allgptr: %v", err)
		return nil
	}
	count, err := r.variable(r.length)
	if err != nil {
		r.problem("its goroutines are not listed: runtime.allglen: %v", err)
		return nil
	}
	most := uint64(maxGoroutines)
	if n, err := r.variable(r.sliceLength); r.sliceLength != 0 && err == nil {
		most = min(most, n) // a new element is written before the number is increased
	}
	if sized, ok := r.state.(target.Sized); ok {
		most = min(most, sized.MemorySize()/r.g.size) // no two share memory
	}
	if count > most {
		r.problem("runtime.allglen is %d, expected at most %d: no more goroutines are listed", count, most)
		count = most
	}
	addresses := r.pointers(list, count)
	kept := apart(addresses, r.g.size)
	if left := len(addresses) - len(kept); left > 0 {
		r.problem("%d of %d elements of runtime.allgs are no goroutines: they are 0 or lead to memory that another one leads to", left, len(addresses))
	}
	return kept
}

// pointers reads an array of pointers, as far as it is in the target.
func (r *runtime) pointers(address, count uint64) (list []uint64) {
	buf := make([]byte, batch*r.pointer)
	for uint64(len(list)) < count {
		want := min(count-uint64(len(list)), batch) * r.pointer
		n, err := r.read(address+uint64(len(list))*r.pointer, buf[:want])
		for offset := uint64(0); offset+r.pointer <= uint64(n); offset += r.pointer {
			list = append(list, r.number(buf[offset:offset+r.pointer]))
		}
		if uint64(n) < want {
			r.problem("the list of its goroutines ends after %d of %d: %v", len(list), count, err)
			break
		}
	}
	return list
}

// apart returns the addresses of structs of a size, in the order of the list, without structs
// that share memory with one at a lower address.
func apart(list []uint64, size uint64) []uint64 {
	order := make([]uint32, len(list))
	for i := range order {
		order[i] = uint32(i) //nolint:gosec // at most maxGoroutines
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(list[a], list[b]) })
	isBad := make([]bool, len(list))
	end := uint64(1) // so that address 0 is left out
	for _, i := range order {
		a := list[i]
		if isBad[i] = a < end || a+size < a; !isBad[i] {
			end = a + size
		}
	}
	kept := list[:0:0]
	for i, a := range list {
		if !isBad[i] {
			kept = append(kept, a)
		}
	}
	return kept
}
