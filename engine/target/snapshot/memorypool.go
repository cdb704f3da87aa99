// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/jsontext"
	"github.com/unwindd/unwindd/sdk"
)

// About what is kept of each thing that snapshot.json describes, beside its strings.
const (
	threadBytes  = 400
	spaceBytes   = 16
	launchBytes  = 100
	moduleBytes  = 600
	segmentBytes = 160
	pieceBytes   = 400
)

// A keeper counts the memory that what snapshot.json describes takes, and keeps
// what many threads have in common once. A text may have any size; what it describes
// has as much memory as its members that are decompressed: a file of a megabyte, which
// may have a gigabyte of text, has 192 MiB.
type keeper struct {
	limit, kept uint64

	registers registerReader
	layouts   map[string]layout
	launches  map[uint64]*target.Launch // by hash
	seed      maphash.Seed
	// Memory for what is kept of each thread.
	threads slab[target.Thread]
	waves   slab[target.Wave]
	data    slab[byte]
}

// maxShared is how many things of a kind are looked for among those that are there.
const maxShared = 1 << 16

// A layout is which registers a thread has, and where.
type layout struct{ numbers, offsets []uint32 }

func newKeeper(limit uint64) *keeper {
	return &keeper{
		limit: limit, threads: slab[target.Thread]{size: 256}, waves: slab[target.Wave]{size: 256}, data: slab[byte]{size: 64 << 10},
		layouts: map[string]layout{}, launches: map[uint64]*target.Launch{}, seed: maphash.MakeSeed(),
	}
}

// keep counts n bytes. The error says that there are too many, the strings that the
// reader made among them.
func (k *keeper) keep(r *jsontext.Reader, n int) error {
	k.kept += uint64(n) //nolint:gosec // a size
	if k.kept+r.Made > k.limit {
		return r.Fail(r.Offset(), "what is described takes more than %d bytes, as many as are allowed for a file of this size", k.limit)
	}
	return nil
}

// A slab is memory that is taken piece by piece. It is freed as a whole.
type slab[T any] struct {
	size int // elements that are made at once
	free []T
}

func (s *slab[T]) take(n int) []T {
	if n > len(s.free) {
		if n > s.size/4 {
			return make([]T, n)
		}
		s.free = make([]T, s.size)
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

// pack makes registers of values of a reader. Threads with the same registers share
// what says so.
func (k *keeper) pack(p *registerReader) sdk.Registers {
	size := 0
	p.key = p.key[:0]
	for _, v := range p.values {
		p.key = binary.LittleEndian.AppendUint32(p.key, v.number)
		p.key = binary.LittleEndian.AppendUint32(p.key, uint32(v.to-v.from)) //nolint:gosec // checked
		size += v.to - v.from
	}
	data := k.data.take(size)
	at := 0
	for _, v := range p.values {
		at += copy(data[at:], p.data[v.from:v.to])
	}
	k.kept += uint64(size) //nolint:gosec // a size
	l, ok := k.layouts[string(p.key)]
	if !ok {
		l = layout{make([]uint32, len(p.values)), make([]uint32, len(p.values)+1)}
		for i, v := range p.values {
			l.numbers[i] = v.number
			l.offsets[i+1] = l.offsets[i] + uint32(v.to-v.from) //nolint:gosec // checked
		}
		k.kept += uint64(8*len(p.values) + len(p.key)) //nolint:gosec // a size
		if len(k.layouts) < maxShared {
			k.layouts[string(p.key)] = l
		}
	}
	return sdk.Registers{Numbers: l.numbers, Offsets: l.offsets, Data: data}
}

// launch is what launched a thread. Threads that were launched together share it.
func (k *keeper) launch(e *launchEntry) *target.Launch {
	var h maphash.Hash
	h.SetSeed(k.seed)
	for _, s := range []string{e.thread, e.kind, e.evidence} {
		h.WriteString(s)
		h.WriteByte(0)
	}
	var b [8]byte
	for _, pc := range e.frames {
		binary.LittleEndian.PutUint64(b[:], pc)
		h.Write(b[:])
	}
	sum := h.Sum64()
	if l := k.launches[sum]; l != nil && l.Thread == e.thread && l.Kind == e.kind && l.Evidence == e.evidence && slices.Equal(l.Frames, e.frames) {
		return l
	}
	l := &target.Launch{Thread: e.thread, Kind: e.kind, Evidence: e.evidence, Frames: slices.Clone(e.frames)}
	k.kept += uint64(launchBytes + 8*len(e.frames)) //nolint:gosec // a size
	if len(k.launches) < maxShared {
		k.launches[sum] = l
	}
	return l
}
