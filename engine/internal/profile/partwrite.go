// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// partWriter writes a part of a recording. It belongs to one goroutine.
type partWriter struct {
	recording *recording
	part      trace.ProfilePart
	left      uint64 // samples
	zip       *zstd.Encoder
	buffer    []byte // not yet compressed
	failed    error

	frames   map[walk.Step]uint32 // their numbers
	stops    map[trace.Stopped]uint64
	trails   [trailCount]partTrail
	pc       uint64 // of the new frame before
	code     sampleCode
	modules  []partModule // by first appearance
	met      map[uint32]bool
	progress *progress
}

// partModule is a module, and the number of its first frame.
type partModule struct{ owner, frame uint32 }

func newPartWriter(w io.Writer, r *recording, d *division, p trace.ProfilePart) (*partWriter, error) {
	if _, err := w.Write(partMagic[:]); err != nil {
		return nil, err
	}
	zip, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(partWindow), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	out := &partWriter{
		recording: r, part: p, left: d.size(p.Index), zip: zip,
		frames: map[walk.Step]uint32{}, stops: map[trace.Stopped]uint64{}, met: map[uint32]bool{},
	}
	out.code.generated.recording = r
	out.numbers(uint64(p.Index), uint64(p.Count), uint64(r.maxFrames()), uint64(len(d.processes))) //nolint:gosec // not negative
	for _, process := range d.processes {
		out.buffer = binary.AppendVarint(out.buffer, int64(process.pid))
		out.numbers(process.samples)
	}
	return out, nil
}

// maxFrames returns how many frames a stack may have when it is walked.
func (r *recording) maxFrames() int { return max(r.maker.Shared.Options().MaxFrames, 0) }

func (w *partWriter) numbers(list ...uint64) {
	for _, n := range list {
		w.buffer = binary.AppendUvarint(w.buffer, n)
	}
}

func (w *partWriter) text(t string) {
	t = t[:min(len(t), maxPartText)]
	w.buffer = append(binary.AppendUvarint(w.buffer, uint64(len(t))), t...)
}

func (w *partWriter) texts(list []string) {
	list = list[:min(len(list), maxPartTexts)]
	w.numbers(uint64(len(list)))
	for _, t := range list {
		w.text(t)
	}
}

// flush compresses the buffered data.
func (w *partWriter) flush() {
	if w.failed == nil {
		_, w.failed = w.zip.Write(w.buffer)
	}
	w.buffer = w.buffer[:0]
}

// add adds the samples of a batch.
func (w *partWriter) add(b *walkedBatch) {
	w.progress.add(len(b.samples))
	for i := range b.samples {
		s := &b.samples[i]
		w.code.set(s.space, s.time)
		w.stack(s, b.frames[s.first:s.first+s.frames])
		w.stop(s.stopped)
		w.left--
	}
	w.flush()
}

// stack adds the frames of a sample, innermost first.
func (w *partWriter) stack(s *walkedSample, frames []walk.Step) {
	if len(frames) > maxPartFrames {
		w.fail(fmt.Errorf("%s: a stack of %d frames, expected at most %d", w.recording.file.Path(), len(frames), maxPartFrames))
		return
	}
	trail := &w.trails[uint(s.tid)%trailCount]
	numbers := (*trail)[:0]
	shared, isShared := 0, true
	for i := range frames {
		f := &frames[len(frames)-1-i]
		number, known := w.frames[*f]
		if isShared = isShared && known && i < len(*trail) && (*trail)[i] == number; isShared {
			shared++
			numbers = numbers[:shared]
			continue
		}
		if i == shared {
			w.numbers(uint64(shared), uint64(len(frames)-shared)) //nolint:gosec // not negative
		}
		if known {
			w.numbers(uint64(number) + 1)
		} else {
			number = w.frame(f)
		}
		numbers = append(numbers, number)
	}
	if shared == len(frames) {
		w.numbers(uint64(shared), 0) //nolint:gosec // not negative
	}
	*trail = numbers
}

// frame adds a new frame.
func (w *partWriter) frame(f *walk.Step) uint32 {
	number := uint32(len(w.frames)) //nolint:gosec // memory has room for fewer
	w.frames[*f] = number
	kind := uint64(f.Kind)
	if f.Exact {
		kind += exactFlag
	}
	w.numbers(0, kind, uint64(f.Found), uint64(f.Back))
	w.buffer = binary.AppendVarint(w.buffer, int64(f.PC-w.pc)) //nolint:gosec // it is added as it is
	w.pc = f.PC
	switch f.Kind {
	case walk.ModuleCode:
		w.numbers(f.Offset, w.inside(f))
		if !w.met[f.Owner] {
			w.met[f.Owner] = true
			w.modules = append(w.modules, partModule{f.Owner, number})
		}
	case walk.GuestCode:
		w.numbers(uint64(f.Owner))
	}
	return number
}

// inside returns how far before the PC of a frame its module is found.
func (w *partWriter) inside(f *walk.Step) uint64 {
	if isIn(&w.code, f, uint64(f.Back)) {
		return uint64(f.Back)
	}
	for distance := range uint64(maxInside) {
		if isIn(&w.code, f, distance) {
			return distance
		}
	}
	w.fail(fmt.Errorf("%s: a frame at %#x of a module that is not there", w.recording.file.Path(), f.PC))
	return 0
}

// isIn reports whether code has the module of a frame at a distance before its PC.
func isIn(c *sampleCode, f *walk.Step, distance uint64) bool {
	if c.space == nil {
		return false
	}
	segment := c.Segment(f.PC - distance)
	return segment != nil && uint32(segment.Module.ID) == f.Owner && segment.ObjectAddress(f.PC) == f.Offset
}

// stop adds why a stack ends.
func (w *partWriter) stop(s trace.Stopped) {
	if number, ok := w.stops[s]; ok {
		w.numbers(number)
		return
	}
	w.numbers(0, uint64(max(slices.Index(stopReasons, s.Reason), 0))) //nolint:gosec // not negative
	w.text(s.Detail)
	if len(w.stops) < maxStops {
		w.stops[s] = uint64(len(w.stops)) + 1
	}
}

func (w *partWriter) fail(err error) {
	if w.failed == nil {
		w.failed = err
	}
}

// end writes the data after the samples.
func (w *partWriter) end() error {
	if w.left > 0 && w.failed == nil {
		return fmt.Errorf("%s: %d samples of its part %d of %d are missing", w.recording.file.Path(), w.left, w.part.Index, w.part.Count)
	}
	w.numbers(uint64(len(w.modules)))
	for _, m := range w.modules {
		found := w.recording.process.Module(uint64(m.owner)).Findings()
		isRequested := uint64(0)
		if found.IsRequested {
			isRequested = 1
		}
		w.numbers(uint64(m.frame), isRequested)
		w.texts(found.Problems)
		w.texts(found.ObjectProblems)
	}
	w.texts(w.recording.pluginProblems())
	w.flush()
	return errors.Join(w.failed, w.zip.Close())
}

// close drops unwritten data.
func (w *partWriter) close() { w.zip.Reset(nil) }

// pluginProblems returns the problems of the plugin of the recording's architecture.
func (r *recording) pluginProblems() []string {
	m, err := r.maker.Shared.Library().Machine(r.arch)
	if err != nil {
		return nil
	}
	return m.Plugin.Problems()
}
