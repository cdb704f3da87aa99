// SPDX-License-Identifier: Apache-2.0

package target

import (
	"slices"
	"sync"
	"weak"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// This file keeps a million waves in the bytes in which they differ. A trace.Thread takes ten times
// as many, and most waves are of a few kinds.

const (
	// leastPacked is the number of threads from which they are packed.
	leastPacked = 1 << 12
	// chunkThreads is how many threads are made at once. A power of 2.
	chunkThreads = 1 << 8
	// maxKeptKinds bounds the kinds in which further threads are looked up.
	maxKeptKinds = 1 << 12
)

// packedThreads is threads by their kinds. It is read concurrently once it is complete.
type packedThreads struct {
	kinds  []threadKind
	byKey  map[kindKey]uint32
	last   kindKey // of the thread before, for most are like it
	lastIs uint32
	chunks []*threadChunk
	count  int

	mu  sync.Mutex
	all []*trace.Thread // of whole; nil: they were not needed at once
}

// threadKind has all in which threads are alike.
type threadKind struct {
	shared trace.Thread // without an ID and the values of its registers
	wave   sdk.Wave     // without coordinates, where shared.Wave is not nil
	data   int          // bytes of the values
	first  int          // the index of a thread of it
	count  int
}

// kindKey identifies a kind.
type kindKey struct {
	name, arch, processor, state, problem, unread string
	agent, queue, dispatch, kernel                string

	numbers, offsets *uint32
	registers, data  int
	launch           *trace.Launch
	ownID            int64
	signal           int
	lanes, lead      uint32

	crashed, isRunning, isUnstopped, isInCall, isWave bool
	hasGroup, hasInGroup, hasCluster                  bool
}

// threadChunk is threads that are made together, and dropped when nothing refers to one of them.
type threadChunk struct {
	kinds   []uint32
	ids     string
	idEnds  []uint32
	data    []byte
	numbers []uint32 // the coordinates of waves
	opened  weak.Pointer[openThreads]
}

// openThreads are the threads of a chunk. In the last one there may be fewer.
type openThreads [chunkThreads]trace.Thread

// firstOf returns where a list begins; nil: it is empty.
func firstOf(list []uint32) *uint32 {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// keyOf returns what identifies the kind of a thread; ok is false for one that is of a kind of its
// own.
func keyOf(t *trace.Thread) (k kindKey, ok bool) {
	if t.Stop != nil || t.Saved != nil || t.Memory != nil || t.Callers != nil || t.LaneStates != nil || t.HasPC || t.PC != 0 || t.Named != nil ||
		t.Spaces != nil || t.Goroutine != nil || t.ManagedFrames != nil || t.Recorded != nil || t.Executes != nil {
		return k, false
	}
	k = kindKey{
		name: t.Name, arch: t.Arch, processor: t.Processor, state: t.State, problem: t.Problem, unread: t.Unread,
		numbers: firstOf(t.Registers.Numbers), offsets: firstOf(t.Registers.Offsets),
		registers: len(t.Registers.Numbers), data: len(t.Registers.Data), launch: t.LaunchedBy,
		ownID: t.OwnID, signal: t.Signal, lanes: t.Lanes, lead: t.Lead,
		crashed: t.Crashed, isRunning: t.IsRunning, isUnstopped: t.IsUnstopped, isInCall: t.IsInCall, isWave: t.Wave != nil,
	}
	if w := t.Wave; w != nil {
		k.agent, k.queue, k.dispatch, k.kernel = w.Agent, w.Queue, w.Dispatch, w.Kernel
		k.hasGroup, k.hasInGroup, k.hasCluster = w.HasGroup, w.HasInGroup, w.HasCluster
	}
	return k, true
}

// kindOf returns the number of a thread's kind.
func (p *packedThreads) kindOf(t *trace.Thread) uint32 {
	key, isShared := keyOf(t)
	if isShared {
		if p.count > 0 && key == p.last {
			return p.lastIs
		}
		if n, ok := p.byKey[key]; ok {
			p.last, p.lastIs = key, n
			return n
		}
	}
	n := uint32(len(p.kinds)) //nolint:gosec // at most as many as threads
	k := threadKind{shared: *t, data: len(t.Registers.Data), first: p.count}
	k.shared.ID, k.shared.Registers.Data = "", nil
	if t.Wave != nil {
		k.wave = *t.Wave
		k.wave.Group, k.wave.InGroup, k.wave.Cluster = [3]uint32{}, 0, [3]uint32{}
	}
	p.kinds = append(p.kinds, k)
	if isShared {
		p.last, p.lastIs = key, n
		if len(p.byKey) < maxKeptKinds {
			p.byKey[key] = n
		}
	}
	return n
}

// PackedThreads makes a ThreadList of threads that come one after the other.
type PackedThreads struct {
	list    ThreadList
	packed  packedThreads
	pending threadChunk
	ids     []byte // of pending
}

// Add adds a thread, whose handle is its index. Nothing of the thread itself, its wave and the values
// of its registers is kept: they may be written over.
func (p *PackedThreads) Add(t *trace.Thread) {
	if p.packed.byKey == nil && len(p.list.list) < leastPacked {
		own := *t
		own.Registers.Data = slices.Clone(t.Registers.Data)
		if t.Wave != nil {
			wave := *t.Wave
			own.Wave = &wave
		}
		p.list.list = append(p.list.list, &own)
		return
	}
	if p.packed.byKey == nil {
		p.packed.byKey = map[kindKey]uint32{}
		for _, first := range p.list.list {
			p.pack(first)
		}
		p.list.list = nil
	}
	p.pack(t)
}

// pack adds the bytes in which a thread differs from the others of its kind.
func (p *PackedThreads) pack(t *trace.Thread) {
	c, n := &p.pending, p.packed.kindOf(t)
	p.packed.kinds[n].count++
	p.packed.count++
	c.kinds = append(c.kinds, n)
	p.ids = append(p.ids, t.ID...)
	c.idEnds = append(c.idEnds, uint32(len(p.ids))) //nolint:gosec // at most 256 names
	c.data = append(c.data, t.Registers.Data...)
	if w := t.Wave; w != nil {
		c.numbers = append(c.numbers, w.Group[:]...)
		c.numbers = append(c.numbers, w.InGroup)
		if w.HasCluster {
			c.numbers = append(c.numbers, w.Cluster[:]...)
		}
	}
	if len(c.kinds) == chunkThreads {
		p.flush()
	}
}

// flush ends a chunk.
func (p *PackedThreads) flush() {
	c := &p.pending
	p.packed.chunks = append(p.packed.chunks, &threadChunk{
		kinds: slices.Clone(c.kinds), ids: string(p.ids), idEnds: slices.Clone(c.idEnds), data: slices.Clone(c.data), numbers: slices.Clone(c.numbers),
	})
	c.kinds, p.ids, c.idEnds, c.data, c.numbers = c.kinds[:0], p.ids[:0], c.idEnds[:0], c.data[:0], c.numbers[:0]
}

// Len returns the number of threads so far.
func (p *PackedThreads) Len() int { return p.packed.count + len(p.list.list) }

// List returns the threads. None may be added afterwards.
func (p *PackedThreads) List() *ThreadList {
	if p.packed.byKey == nil {
		return &p.list
	}
	if len(p.pending.kinds) > 0 {
		p.flush()
	}
	p.packed.byKey = nil
	return &ThreadList{packed: &p.packed}
}

func (p *packedThreads) id(i int) string {
	c, n := p.chunks[i/chunkThreads], i%chunkThreads
	start := uint32(0)
	if n > 0 {
		start = c.idEnds[n-1]
	}
	return c.ids[start:c.idEnds[n]]
}

// at returns a thread.
func (p *packedThreads) at(i int) *trace.Thread {
	c := p.chunks[i/chunkThreads]
	p.mu.Lock()
	threads := c.opened.Value()
	if threads == nil {
		threads = p.open(c, i/chunkThreads*chunkThreads)
		c.opened = weak.Make(threads)
	}
	p.mu.Unlock()
	return &threads[i%chunkThreads]
}

// open makes the threads of a chunk, of which the first has an index.
func (p *packedThreads) open(c *threadChunk, index int) *openThreads {
	threads, waves := &openThreads{}, []sdk.Wave(nil)
	data, numbers := c.data, c.numbers
	for i, n := range c.kinds {
		k, t := &p.kinds[n], &threads[i]
		*t = k.shared
		t.Handle, t.ID = uint64(index+i), p.id(index+i) //nolint:gosec // an index
		if k.data > 0 {
			t.Registers.Data, data = data[:k.data:k.data], data[k.data:]
		}
		if t.Wave == nil {
			continue
		}
		if waves == nil {
			waves = make([]sdk.Wave, 0, len(c.kinds)-i)
		}
		w := k.wave
		w.Group, w.InGroup = [3]uint32(numbers), numbers[3]
		if numbers = numbers[4:]; w.HasCluster {
			w.Cluster, numbers = [3]uint32(numbers), numbers[3:]
		}
		waves = append(waves, w)
		t.Wave = &waves[len(waves)-1]
	}
	return threads
}

// where yields the threads of the kinds of which a thread is so.
func (p *packedThreads) where(is func(*trace.Thread) bool, yield func(int, *trace.Thread) bool) {
	chosen, isAny := make([]bool, len(p.kinds)), false
	for i := range p.kinds {
		chosen[i] = is(p.at(p.kinds[i].first))
		isAny = isAny || chosen[i]
	}
	if !isAny {
		return
	}
	for n, c := range p.chunks {
		for i, k := range c.kinds {
			if at := n*chunkThreads + i; chosen[k] && !yield(at, p.at(at)) {
				return
			}
		}
	}
}

// whole returns all threads, and keeps them.
func (p *packedThreads) whole() []*trace.Thread {
	p.mu.Lock()
	all := p.all
	p.mu.Unlock()
	if all != nil {
		return all
	}
	all = make([]*trace.Thread, p.count)
	for i := range all {
		all[i] = p.at(i)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = all
	}
	return p.all
}
