// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// partWriter writes a part. After the first error it writes nothing.
type partWriter struct {
	output io.Writer
	buffer []byte
	sum    uint32
	failed error
}

// Write writes all that was added, for Read.
func (p *Part) Write(w io.Writer) error {
	out := &partWriter{output: w, buffer: append(make([]byte, 0, flushSize+flushSize/4), partMagic[:]...)}
	out.numbers(uint64(byThreadOption*isTrue(p.options.ByThread)+crashedOption*isTrue(p.options.CrashedOnly)), uint64(len(p.texts.list))) //nolint:gosec // not negative
	for _, s := range p.texts.list {
		out.text(s)
	}
	out.count(len(p.frames))
	for i := range p.frames {
		out.frame(p, &p.frames[i])
	}
	out.count(len(p.parent) - 1)
	for i := 1; i < len(p.parent); i++ {
		out.numbers(uint64(i)-uint64(p.parent[i]), uint64(p.frame[i])) //nolint:gosec // not negative
	}
	out.count(len(p.shapes))
	for _, s := range p.shapes {
		out.shape(s)
	}
	out.count(len(p.moduleSets))
	for _, set := range p.moduleSets {
		out.count(len(set))
		for _, m := range set {
			out.numbers(uint64(m.name), uint64(m.build))
		}
	}
	out.count(len(p.records))
	before := ""
	for i := range p.records {
		out.record(&p.records[i], before)
		before = p.records[i].path
	}
	out.count(len(p.notes))
	for _, n := range p.sortedNotes() {
		out.text(n.key)
		out.text(n.data)
	}
	return out.end()
}

// flushSize is how many bytes are written at a time.
const flushSize = 64 << 10

func (w *partWriter) flush() {
	w.sum = crc32.Update(w.sum, castagnoli, w.buffer)
	if w.failed == nil {
		_, w.failed = w.output.Write(w.buffer)
	}
	w.buffer = w.buffer[:0]
}

func (w *partWriter) end() error {
	w.flush()
	w.buffer = binary.LittleEndian.AppendUint32(w.buffer, w.sum)
	w.flush()
	return w.failed
}

func (w *partWriter) numbers(list ...uint64) {
	for _, n := range list {
		w.buffer = binary.AppendUvarint(w.buffer, n)
	}
	if len(w.buffer) >= flushSize {
		w.flush()
	}
}

func (w *partWriter) count(n int) { w.numbers(uint64(n)) } //nolint:gosec // not negative

func (w *partWriter) signed(n int64) { w.buffer = binary.AppendVarint(w.buffer, n) }

func (w *partWriter) text(s string) {
	w.count(len(s))
	w.buffer = append(w.buffer, s...)
}

func (w *partWriter) list(list []uint32) {
	w.count(len(list))
	for _, n := range list {
		w.numbers(uint64(n))
	}
}

func (w *partWriter) time(t time.Time) {
	if t.IsZero() {
		w.numbers(0)
		return
	}
	w.numbers(uint64(t.Nanosecond()) + 1) //nolint:gosec // not negative
	w.signed(t.Unix())
}

func (w *partWriter) frame(p *Part, f *trace.ComparedFrame) {
	for _, s := range [...]string{f.Function, f.Short, f.Module, f.Runtime, f.File} {
		w.numbers(uint64(p.texts.ids[s]))
	}
	w.numbers(f.Offset)
	w.signed(int64(f.Line))
	w.signed(int64(f.Column))
	w.count(isTrue(f.IsInlined)*inlinedFlag + isTrue(f.IsWave)*waveFlag + isTrue(f.IsGuess)*guessFlag)
}

func (w *partWriter) shape(s shape) {
	w.count(len(s))
	for i := range s {
		r := &s[i]
		w.numbers(uint64(r.role), uint64(r.ends), uint64(r.node), uint64(r.count)<<1|uint64(isTrue(r.crashed))) //nolint:gosec // not negative
	}
}

// record writes a target; before is the path of the one before it.
func (w *partWriter) record(r *record, before string) {
	shared := 0
	for shared < min(len(before), len(r.path), maxSharedPath) && before[shared] == r.path[shared] {
		shared++
	}
	w.count(shared)
	w.text(r.path[shared:])
	w.numbers(uint64(r.host), uint64(r.unread))
	w.signed(r.pid)
	w.time(r.started)
	w.time(r.taken)
	w.list(r.labels)
	w.list(r.facts)
	w.list(r.problems)
	w.numbers(uint64(r.shape), uint64(r.modules))
	w.buffer = append(w.buffer, r.ids...)
}
