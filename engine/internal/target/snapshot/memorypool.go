// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// The approximate size in memory of each element of snapshot.json, without its strings.
const (
	threadBytes  = 480
	spaceBytes   = 16
	laneBytes    = 160
	launchBytes  = 100
	moduleBytes  = 600
	segmentBytes = 160
	pieceBytes   = 400
)

// memoryPool counts and bounds the memory that the content of snapshot.json takes, and shares
// the parts that many threads have in common. The text may have any size; its content may take
// as much memory as the decompressed members: 192 MiB for a file of a megabyte, which may have a
// gigabyte of text.
type memoryPool struct {
	limit, kept uint64

	registers registerReader
	layouts   map[string]layout
	launches  map[uint64]*trace.Launch // by hash
	seed      maphash.Seed
	threads   target.PackedThreads
	// The thread that is read, and its parts, which are written over.
	thread trace.Thread
	wave   sdk.Wave
	values []byte
}

// maxShared bounds the layouts and the launches that are kept for sharing.
const maxShared = 1 << 16

// layout has the numbers of a thread's registers and the offsets of their values.
type layout struct{ numbers, offsets []uint32 }

func newMemoryPool(limit uint64) *memoryPool {
	return &memoryPool{
		limit: limit, layouts: map[string]layout{}, launches: map[uint64]*trace.Launch{}, seed: maphash.MakeSeed(),
	}
}

// count adds n bytes. It returns an error if all of them, and the strings that the reader made,
// are too many.
func (pool *memoryPool) count(r *jsontext.Reader, n int) error {
	pool.kept += uint64(n) //nolint:gosec // a size
	if pool.kept+r.NameBytes > pool.limit {
		return r.Fail(r.Offset(), "what is described takes more than %d bytes, as many as are allowed for a file of this size", pool.limit)
	}
	return nil
}

// pack makes registers of a reader's values, in memory that is written over. Threads with the same
// registers share their layout.
func (pool *memoryPool) pack(p *registerReader, memory []byte) sdk.Registers {
	size := 0
	p.key = p.key[:0]
	for _, v := range p.values {
		p.key = binary.LittleEndian.AppendUint32(p.key, v.number)
		p.key = binary.LittleEndian.AppendUint32(p.key, uint32(v.end-v.start)) //nolint:gosec // checked
		size += v.end - v.start
	}
	data := slices.Grow(memory[:0], size)
	for _, v := range p.values {
		data = append(data, p.data[v.start:v.end]...)
	}
	pool.kept += uint64(size) //nolint:gosec // a size
	l, ok := pool.layouts[string(p.key)]
	if !ok {
		l = layout{make([]uint32, len(p.values)), make([]uint32, len(p.values)+1)}
		for i, v := range p.values {
			l.numbers[i] = v.number
			l.offsets[i+1] = l.offsets[i] + uint32(v.end-v.start) //nolint:gosec // checked
		}
		pool.kept += uint64(8*len(p.values) + len(p.key)) //nolint:gosec // a size
		if len(pool.layouts) < maxShared {
			pool.layouts[string(p.key)] = l
		}
	}
	return sdk.Registers{Numbers: l.numbers, Offsets: l.offsets, Data: data}
}

// launch returns the launch of a thread. Threads that were launched together share it.
func (pool *memoryPool) launch(e *launchEntry) *trace.Launch {
	var h maphash.Hash
	h.SetSeed(pool.seed)
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
	if l := pool.launches[sum]; l != nil && l.Thread == e.thread && l.Kind == e.kind && l.Evidence == e.evidence && slices.Equal(l.Frames, e.frames) {
		return l
	}
	l := &trace.Launch{Thread: e.thread, Kind: e.kind, Evidence: e.evidence, Frames: slices.Clone(e.frames)}
	pool.kept += uint64(launchBytes + 8*len(e.frames)) //nolint:gosec // a size
	if len(pool.launches) < maxShared {
		pool.launches[sum] = l
	}
	return l
}
