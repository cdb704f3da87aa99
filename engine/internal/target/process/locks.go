// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/target"
)

// lockSpans returns the memory around the futexes that the stopped threads wait for, in ascending
// order and without overlap: it shows who holds the locks. A span lies in one mapping.
func (c *copied) lockSpans(t *tracer) []span {
	var list []span
	for _, th := range t.threads {
		call, ok := target.FutexArguments(c.description.Name, func(number uint32) (uint64, bool) { return c.register(th, number) })
		if m := find(c.maps, call.Address); ok && m != nil {
			list = append(list, span{max(m.start, call.Address-target.LockBefore), min(m.end, call.Address+target.LockBehind)})
		}
	}
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	kept := list[:0]
	for _, s := range list {
		if n := len(kept); n > 0 && s.start < kept[n-1].end {
			kept[n-1].end = max(kept[n-1].end, s.end)
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// register returns a general register of a stopped thread.
func (c *copied) register(th *tracee, number uint32) (uint64, bool) {
	for i := range th.registers {
		n := &th.registers[i]
		if n.typ != ntPRSTATUS {
			continue
		}
		for k := range c.description.RegisterSets {
			if set := &c.description.RegisterSets[k]; set.Owner == n.owner && set.Type == n.typ {
				return field(set, n.data, number)
			}
		}
	}
	return 0, false
}

// copyLocks copies the memory around futexes that is not copied yet: locks are often on stacks.
func (c *copied) copyLocks(t *tracer) {
	slices.SortStableFunc(c.pieces, func(a, b piece) int { return cmp.Compare(a.address, b.address) })
	if list := without(c.lockSpans(t), c.pieces); len(list) > 0 {
		c.copyAll(list)
	}
}

// without returns the parts of spans that are in no piece. Both are in ascending order.
func without(list []span, pieces []piece) (rest []span) {
	for _, s := range list {
		for len(pieces) > 0 && pieces[0].end() <= s.start {
			pieces = pieces[1:]
		}
		for _, p := range pieces {
			if p.address >= s.end {
				break
			}
			if p.address > s.start {
				rest = append(rest, span{s.start, p.address})
			}
			s.start = max(s.start, p.end())
		}
		if s.start < s.end {
			rest = append(rest, s)
		}
	}
	return rest
}

// ownID returns the ID of a thread in its own PID namespace; 0 where that is the reader's too.
func ownID(dir string) int {
	data, err := os.ReadFile(dir + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), "\nNSpid:")
	line, _, _ := strings.Cut(rest, "\n")
	ids := strings.Fields(line) // from the reader's namespace to the thread's
	if len(ids) < 2 {
		return 0
	}
	id, _ := strconv.Atoi(ids[len(ids)-1])
	return id
}

// ownIDs returns the IDs of the threads in their own PID namespace, by those in the reader's; nil
// where that is the same one.
func (c *copied) ownIDs() map[int]int {
	if ownID(c.dir()) == 0 {
		return nil
	}
	ids := map[int]int{}
	for _, th := range c.threads {
		ids[th.id] = ownID(fmt.Sprintf("/proc/%d/task/%d", c.pid, th.id))
	}
	return ids
}
