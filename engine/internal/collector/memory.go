// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/target/snapshot"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// addMemory adds the memory that was read.
func (c *collector) addMemory() {
	if c.count == keptPages {
		c.problem("the stacks need more than %d MiB of memory: the rest is left out", keptPages>>(20-pageBits))
	}
	unique := map[string]int{}
	for _, th := range c.Threads() {
		unique[th.ID]++
	}
	keys := make([]instance, 0, len(c.instances))
	for k := range c.instances {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b instance) int {
		return cmp.Or(cmp.Compare(a.space, b.space), cmp.Compare(a.thread, b.thread), cmp.Compare(a.lane, b.lane))
	})
	for _, k := range keys {
		var owner *trace.Thread
		if k.space != locexpr.DefaultSpace {
			owner = c.Threads()[k.thread]
			if owner.ID == "" || unique[owner.ID] > 1 {
				c.problem("thread %q: memory of its own is left out, as its ID is not its alone", owner.ID)
				continue
			}
		}
		for address, data := range c.instances[k].runs() {
			m := snapshot.Memory{Space: k.space, Thread: owner, Address: address, Data: data, IsOfLane: k.lane > 0}
			if m.IsOfLane {
				m.Lane = k.lane - 1
			}
			c.result.Memory = append(c.result.Memory, m)
		}
	}
}

const (
	pageBits = 12
	pageSize = 1 << pageBits
)

// pages has bytes of an instance of an address space, by the number of their page.
type pages struct{ all map[uint64]*page }

// page is a page of which some bytes are known.
type page struct {
	bytes [pageSize]byte
	known [pageSize / 64]uint64
}

// keep adds bytes, in at most as many new pages as most, and returns the number of new
// ones. Bytes that are there already stay: a process may run on.
func (p *pages) keep(address uint64, data []byte, most int) (added int) {
	for len(data) > 0 {
		number, at := address>>pageBits, int(address&(pageSize-1))
		n := min(len(data), pageSize-at)
		g := p.all[number]
		if g == nil && added == most {
			break
		}
		if g == nil {
			g = &page{}
			p.all[number] = g
			added++
		}
		g.keep(at, data[:n])
		address, data = address+uint64(n), data[n:]
	}
	return added
}

// keep adds bytes, from a place in the page on.
func (g *page) keep(start int, data []byte) {
	for len(data) > 0 {
		bit := start % 64
		n := min(len(data), 64-bit)
		wanted := ^uint64(0) >> (64 - n) << bit
		switch known := &g.known[start/64]; {
		case *known&wanted == 0:
			copy(g.bytes[start:], data[:n])
			*known |= wanted
		case *known&wanted != wanted:
			for missing := wanted &^ *known; missing != 0; missing &= missing - 1 {
				i := bits.TrailingZeros64(missing)
				g.bytes[start-bit+i] = data[i-bit]
			}
			*known |= wanted
		}
		start, data = start+n, data[n:]
	}
}

// run finds the first known bytes from start on.
func (g *page) run(start int) (from, to int, ok bool) {
	next := func(bit int, flip uint64) int {
		for bit < pageSize {
			if rest := (g.known[bit/64] ^ flip) >> (bit % 64); rest != 0 {
				return bit + bits.TrailingZeros64(rest)
			}
			bit = (bit/64 + 1) * 64
		}
		return pageSize
	}
	if from = next(start, 0); from == pageSize {
		return 0, 0, false
	}
	return from, next(from, ^uint64(0)), true
}

// runs yields the longest pieces without a gap, by address.
func (p *pages) runs() func(yield func(address uint64, data []byte) bool) {
	return func(yield func(uint64, []byte) bool) {
		numbers := make([]uint64, 0, len(p.all))
		for n := range p.all {
			numbers = append(numbers, n)
		}
		slices.Sort(numbers)
		var start uint64
		var data []byte
		for _, n := range numbers {
			g := p.all[n]
			for from, to, ok := g.run(0); ok; from, to, ok = g.run(to) {
				address := n<<pageBits + uint64(from)
				if len(data) > 0 && start+uint64(len(data)) != address {
					if !yield(start, data) {
						return
					}
					data = nil
				}
				if len(data) == 0 {
					start = address
				}
				data = append(data, g.bytes[from:to]...)
			}
		}
		if len(data) > 0 {
			yield(start, data)
		}
	}
}
