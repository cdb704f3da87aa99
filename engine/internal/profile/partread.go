// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// join adds the samples of the recording with the stacks from its parts.
func (b *profileBuilder) join(ctx context.Context, parts []io.Reader) error {
	j := &joiner{recording: b.recording}
	j.code.generated.recording = b.recording
	defer j.close()
	if err := j.open(parts); err != nil {
		return err
	}
	b.recording.bind()
	err := b.recording.readAll(func(r *perfdata.Reader) error { return j.read(ctx, r, b.add) })
	if err != nil {
		return err
	}
	b.failures, err = j.end(ctx)
	return err
}

// joiner has the stacks of a recording's samples from the parts that they are in.
type joiner struct {
	recording *recording
	division  *division
	parts     []*partReader
	code      sampleCode
	version   uint64 // of the space of the sample before
	space     *codeSpace
}

// open reads the beginning of each part.
func (j *joiner) open(parts []io.Reader) error {
	if len(parts) > MaxParts {
		return fmt.Errorf("%d parts: %w: expected at most %d", len(parts), trace.ErrPart, MaxParts)
	}
	for i, part := range parts {
		p, err := newPartReader(part, j.recording.file.Samples())
		if err != nil {
			return fmt.Errorf("part %d of %d: %w", i, len(parts), err)
		}
		j.parts = append(j.parts, p)
		if err := j.check(i, len(parts)); err != nil {
			return fmt.Errorf("part %d of %d: %w", i, len(parts), err)
		}
	}
	j.division = newDivision(len(parts), j.parts[0].processes)
	return nil
}

// check refuses a part that is not the one of its index.
func (j *joiner) check(index, count int) error {
	p := j.parts[index]
	switch {
	case p.part != trace.ProfilePart{Index: index, Count: count}:
		return fmt.Errorf("%w: it is part %d of %d", trace.ErrPart, p.part.Index, p.part.Count)
	case p.maxFrames != uint64(j.recording.maxFrames()): //nolint:gosec // not negative
		return fmt.Errorf("%w: its stacks have at most %d frames, expected %d", trace.ErrPart, p.maxFrames, j.recording.maxFrames())
	case !slices.Equal(p.processes, j.parts[0].processes):
		return fmt.Errorf("%w: its samples are divided in another way than those of part 0", trace.ErrPart)
	}
	return nil
}

// read reads the samples of the recording, one batch after the other.
func (j *joiner) read(ctx context.Context, r *perfdata.Reader, take func(*walkedBatch)) error {
	out := &walkedBatch{}
	for {
		b, err := r.Next()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return notEOF(err)
		}
		out.begin(b)
		for i := range b.Samples {
			if err := j.sample(&b.Samples[i], out); err != nil {
				return err
			}
		}
		out.readBatch(j.recording.sched, b)
		b.Release()
		take(out)
	}
}

// sample adds a sample with its stack.
func (j *joiner) sample(sample *perfdata.Sample, out *walkedBatch) error {
	part := j.division.part(sample.PID)
	if part < 0 {
		return fmt.Errorf("%w: more samples of process %d than the parts have", trace.ErrPart, sample.PID)
	}
	if sample.Space == nil {
		j.version, j.space = 0, nil
	} else if j.version != sample.Space.Code {
		j.version, j.space = sample.Space.Code, j.recording.space(sample.Space)
	}
	w := newWalkedSample(sample, j.space, len(out.frames))
	j.code.set(j.space, sample.Time)
	p := j.parts[part]
	out.frames = p.stack(sample, &j.code, out.frames)
	w.stopped, w.frames = p.stop(), len(out.frames)-w.first
	if p.failed != nil {
		return fmt.Errorf("part %d of %d: %w", part, len(j.parts), p.failed)
	}
	out.samples = append(out.samples, w)
	return nil
}

// end reads the data after the samples of all parts: findings about modules, and problems of
// plugins.
func (j *joiner) end(ctx context.Context) (failures []string, err error) {
	for i, p := range j.parts {
		list := p.end(func(f *walk.Step, found code.Findings) {
			j.recording.process.Module(uint64(f.Owner)).Adopt(ctx, found, f.Named(), f.Exact)
		})
		if p.failed != nil {
			return nil, fmt.Errorf("part %d of %d: %w", i, len(j.parts), p.failed)
		}
		failures = append(failures, list...)
	}
	return failures, nil
}

func (j *joiner) close() {
	for _, p := range j.parts {
		p.zip.Close()
	}
}

// partReader reads a part, whose every byte may be wrong. After the first error, which is kept,
// reading yields nothing.
type partReader struct {
	part      trace.ProfilePart
	maxFrames uint64
	processes []processSamples
	zip       *zstd.Decoder
	input     *bufio.Reader
	failed    error // wraps ErrPart, or is an error of reading

	frames []walk.Step
	stops  []trace.Stopped
	trails [trailCount]partTrail
	pc     uint64
}

// newPartReader reads the beginning of a part of a recording, which may have this many samples.
func newPartReader(input io.Reader, samples uint64) (*partReader, error) {
	var magic [len(partMagic)]byte
	if _, err := io.ReadFull(input, magic[:]); err != nil {
		return nil, fmt.Errorf("%w: it ends in its first %d bytes: %w", trace.ErrPart, len(magic), err)
	}
	if magic != partMagic {
		return nil, fmt.Errorf("%w: it begins with %q, expected %q", trace.ErrPart, magic, partMagic)
	}
	zip, err := zstd.NewReader(input, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(partWindow))
	if err != nil {
		return nil, err
	}
	p := &partReader{zip: zip, input: bufio.NewReaderSize(zip, 64<<10)}
	p.part.Index, p.part.Count = int(p.number(MaxParts)), int(p.number(MaxParts)) //nolint:gosec // bounded
	p.maxFrames = p.number(math.MaxUint64)
	left := samples
	for n := p.number(samples); n > 0 && p.failed == nil; n-- {
		process := processSamples{pid: p.pid(), samples: p.number(left)}
		left -= process.samples
		p.processes = append(p.processes, process)
	}
	if p.failed != nil {
		zip.Close()
		return nil, p.failed
	}
	return p, nil
}

// fail records the first error.
func (p *partReader) fail(format string, args ...any) {
	if p.failed == nil {
		p.failed = fmt.Errorf("%w: %s", trace.ErrPart, fmt.Sprintf(format, args...))
	}
}

// failWith records an error of reading.
func (p *partReader) failWith(err error) {
	if p.failed == nil {
		p.failed = fmt.Errorf("%w: %w", trace.ErrPart, err)
	}
	if errors.Is(err, io.EOF) {
		p.failed = fmt.Errorf("%w: it ends too early", trace.ErrPart)
	}
}

// number reads a number of at most most.
func (p *partReader) number(most uint64) uint64 {
	if p.failed != nil {
		return 0
	}
	n, err := binary.ReadUvarint(p.input)
	switch {
	case err != nil:
		p.failWith(err)
		return 0
	case n > most:
		p.fail("a number %d, expected at most %d", n, most)
		return 0
	}
	return n
}

// difference reads a number that may be negative.
func (p *partReader) difference() int64 {
	if p.failed != nil {
		return 0
	}
	n, err := binary.ReadVarint(p.input)
	if err != nil {
		p.failWith(err)
		return 0
	}
	return n
}

func (p *partReader) pid() int {
	n := p.difference()
	if n < math.MinInt32 || n > math.MaxInt32 {
		p.fail("a process %d", n)
		return 0
	}
	return int(n)
}

func (p *partReader) text() string {
	b := make([]byte, p.number(maxPartText))
	if p.failed != nil {
		return ""
	}
	if _, err := io.ReadFull(p.input, b); err != nil {
		p.failWith(io.EOF)
		return ""
	}
	return string(b)
}

func (p *partReader) texts() (list []string) {
	for n := p.number(maxPartTexts); n > 0 && p.failed == nil; n-- {
		list = append(list, p.text())
	}
	return list
}

// stack appends the frames of the next sample, innermost first.
func (p *partReader) stack(sample *perfdata.Sample, c *sampleCode, out []walk.Step) []walk.Step {
	trail := &p.trails[uint(sample.TID)%trailCount]
	shared := p.number(uint64(len(*trail)))
	more := p.number(maxPartFrames - shared)
	numbers := (*trail)[:shared]
	for ; more > 0 && p.failed == nil; more-- {
		number := p.number(uint64(len(p.frames)))
		if number == 0 {
			p.frame(sample, c)
			number = uint64(len(p.frames))
		}
		numbers = append(numbers, uint32(number-1)) //nolint:gosec // of frames in memory
	}
	if *trail = numbers; p.failed != nil {
		*trail = nil
		return out
	}
	for _, number := range slices.Backward(numbers) {
		out = append(out, p.frames[number])
	}
	return out
}

// frame reads a new frame of the process of a sample.
func (p *partReader) frame(sample *perfdata.Sample, c *sampleCode) {
	kind := p.number(exactFlag + uint64(walk.ManagedCode))
	f := walk.Step{
		Kind: walk.CodeKind(kind % exactFlag), Exact: kind >= exactFlag, //nolint:gosec // bounded
		Found: code.FoundIndex(p.number(math.MaxUint8)), Back: uint8(p.number(math.MaxUint8)), //nolint:gosec // bounded
	}
	p.pc += uint64(p.difference()) //nolint:gosec // it was taken as it was
	f.PC, f.Offset = p.pc, p.pc
	switch {
	case f.Kind > walk.ManagedCode:
		p.fail("a frame of the kind %d", f.Kind)
	case !f.Found.IsKnown():
		p.fail("a frame that was found by %d", f.Found)
	case f.Kind == walk.ModuleCode:
		p.place(&f, c)
	case f.Kind == walk.ProcessCode:
		f.Owner = uint32(sample.PID) //nolint:gosec // as walks have it
	case f.Kind == walk.GuestCode:
		f.Owner = uint32(p.number(math.MaxUint8)) //nolint:gosec // bounded
		if guestNames[perfdata.Context(f.Owner)] == "" {
			p.fail("a frame of a virtual machine in the context %d", f.Owner)
		}
	}
	p.frames = append(p.frames, f)
}

// place finds the module of a frame.
func (p *partReader) place(f *walk.Step, c *sampleCode) {
	offset, inside := p.number(math.MaxUint64), p.number(maxInside)
	if p.failed != nil {
		return
	}
	var segment *code.Segment
	if c.space != nil {
		segment = c.Segment(f.PC - inside)
	}
	if segment == nil {
		p.fail("a frame at %#x in a module, where its process has none", f.PC)
		return
	}
	f.Owner, f.Offset = uint32(segment.Module.ID), segment.ObjectAddress(f.PC)
	if f.Offset != offset {
		p.fail("a frame at %#x has the address %#x in %s, expected %#x: the file was another one where the part was walked",
			f.PC, offset, segment.Module.Path, f.Offset)
	}
}

// stop reads why the stack of the next sample ends.
func (p *partReader) stop() trace.Stopped {
	if number := p.number(uint64(len(p.stops))); number > 0 {
		return p.stops[number-1]
	}
	reason := p.number(uint64(len(stopReasons) - 1))
	s := trace.Stopped{Reason: stopReasons[reason], Detail: p.text()}
	if p.failed == nil && len(p.stops) < maxStops {
		p.stops = append(p.stops, s)
	}
	return s
}

// end reads the data after the samples. module is called with a frame of each module and the
// findings about it.
func (p *partReader) end(module func(*walk.Step, code.Findings)) (failures []string) {
	for n := p.number(uint64(len(p.frames))); n > 0 && p.failed == nil; n-- {
		if len(p.frames) == 0 {
			break
		}
		number := p.number(uint64(len(p.frames) - 1))
		found := code.Findings{IsRequested: p.number(1) == 1, Problems: p.texts(), ObjectProblems: p.texts()}
		f := &p.frames[number]
		switch {
		case p.failed != nil:
		case f.Kind != walk.ModuleCode:
			p.fail("the frame %d is of no module", number)
		default:
			module(f, found)
		}
	}
	failures = p.texts()
	if p.failed != nil {
		return failures
	}
	if _, err := p.input.ReadByte(); err == nil {
		p.fail("something follows its end")
	} else if !errors.Is(err, io.EOF) {
		p.failWith(err) // the checksum
	}
	return failures
}
