// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"context"
	"encoding/binary"

	"github.com/unwindd/unwindd/engine/trace"
)

// Deadlocks returns the threads of the target that wait for each other, in circles. Only threads
// are walked of which the words near their futexes name one another. It ends early when ctx does.
func (f *Finder) Deadlocks(ctx context.Context) (list []trace.Deadlock) {
	threads, named := f.blocked()
	index := make(map[*trace.Thread]int, len(threads))
	for i, th := range threads {
		index[th] = i
	}
	edges := make([][]int, len(threads))
	for i := range threads {
		for _, th := range named[i] {
			if to, isBlocked := index[th]; isBlocked {
				edges[i] = append(edges[i], to)
			}
		}
	}
	next := make([]int, len(threads))
	waits := make([]*trace.Wait, len(threads))
	for i, isSuspect := range circling(edges) {
		next[i] = -1
		if !isSuspect || ctx.Err() != nil {
			continue
		}
		if waits[i] = f.Of(ctx, f.process.Walk(ctx, threads[i])); waits[i] == nil {
			continue
		}
		if to, isBlocked := index[waits[i].Owner]; isBlocked {
			next[i] = to
		}
	}
	for _, circle := range Circles(next) {
		var d trace.Deadlock
		for _, i := range circle {
			d.Links = append(d.Links, trace.DeadlockLink{Thread: threads[i], Wait: waits[i]})
		}
		list = append(list, d)
	}
	return list
}

// blocked returns the threads that may wait in a futex, and of each the threads whose IDs are in
// the words around it.
func (f *Finder) blocked() (threads []*trace.Thread, named [][]*trace.Thread) {
	for _, th := range f.process.ThreadList().Where(isOfSystem) {
		if call, _, ok := f.call(th); ok {
			threads, named = append(threads, th), append(named, f.namedNear(call.Address))
		}
	}
	return threads, named
}

// idMask is the bits of a word that may be the ID of a thread: the others are flags of futexes.
const idMask = ownerMask

// namedNear returns the threads whose IDs are in words around an address.
func (f *Finder) namedNear(address uint64) (list []*trace.Thread) {
	const before, size = 16, 48
	b := make([]byte, size)
	start := address - before
	if f.read(start, b) < size {
		start = address // before it there may be no memory
		b = b[:f.read(start, b)]
	}
	for ; len(b) >= 4; b = b[4:] {
		if th := f.reader.Threads[binary.LittleEndian.Uint32(b)&idMask]; th != nil {
			list = append(list, th)
		}
	}
	return list
}

// circling returns which nodes of a graph may be in a circle: without those that have no edge, and
// those that no edge leads to, as long as there are some.
func circling(edges [][]int) []bool {
	back := make([][]int, len(edges))
	for from, list := range edges {
		for _, to := range list {
			back[to] = append(back[to], from)
		}
	}
	stays := make([]bool, len(edges))
	for i := range stays {
		stays[i] = true
	}
	removeEnds(edges, back, stays)
	removeEnds(back, edges, stays)
	return stays
}

// removeEnds removes nodes without an edge to one that stays. back are the edges turned round.
func removeEnds(edges, back [][]int, stays []bool) {
	left := make([]int, len(edges))
	var ends []int
	for from, list := range edges {
		for _, to := range list {
			if stays[to] {
				left[from]++
			}
		}
		if left[from] == 0 && stays[from] {
			ends = append(ends, from)
		}
	}
	for len(ends) > 0 {
		end := ends[len(ends)-1]
		ends = ends[:len(ends)-1]
		stays[end] = false
		for _, from := range back[end] {
			if left[from]--; left[from] == 0 && stays[from] {
				ends = append(ends, from)
			}
		}
	}
}

// Circles returns the circles of a graph in which at most one edge leaves each node; -1 stands for
// none. Each begins with its lowest node, and they are in the order of these.
func Circles(next []int) (list [][]int) {
	const fresh, finished = 0, -1
	seen := make([]int, len(next)) // or the number of the pass that has seen the node
	first := map[int][]int{}
	for start := range next {
		pass := start + 1
		i := start
		for i >= 0 && seen[i] == fresh {
			seen[i] = pass
			i = next[i]
		}
		if i >= 0 && seen[i] == pass {
			circle := circleFrom(next, i)
			first[circle[0]] = circle
		}
		for j := start; j >= 0 && seen[j] == pass; j = next[j] {
			seen[j] = finished
		}
	}
	for i := range next {
		if circle := first[i]; circle != nil {
			list = append(list, circle)
		}
	}
	return list
}

// circleFrom returns the circle that a node is in, from its lowest node on.
func circleFrom(next []int, node int) (circle []int) {
	lowest := node
	for i := next[node]; i != node; i = next[i] {
		lowest = min(lowest, i)
	}
	circle = []int{lowest}
	for i := next[lowest]; i != lowest; i = next[i] {
		circle = append(circle, i)
	}
	return circle
}
