// SPDX-License-Identifier: Apache-2.0

package jsonlines

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/internal/target/linetext"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// formatVersion is the version of the format that is read.
const formatVersion = 1

// The kinds of lines.
const (
	recordFormat = "format"
	recordModule = "module"
	recordLaunch = "launch"
	recordSample = "sample"
)

// maxWeight bounds the weight of a sample, so that millions can be added up.
const maxWeight = 1 << 40

// maxLanes is the number of lanes in an execution mask.
const maxLanes = 64

// errFound ends a search in an object.
var errFound = errors.New("found")

// recordKind returns the kind of a line, which r reads from then on. Its member may be anywhere in the
// line.
func recordKind(r *jsontext.Reader, l *linetext.Line) (kind string, err error) {
	if *r = (jsontext.Reader{Data: l.Text}); l.Err != nil {
		return "", l.Err
	}
	hasRecord := false
	err = r.Object(func(name []byte) error {
		if string(name) != "record" {
			return r.Skip()
		}
		value, err := r.Text()
		if err != nil {
			return err
		}
		hasRecord = true
		for _, known := range []string{recordSample, recordLaunch, recordModule, recordFormat} {
			if string(value) == known {
				kind = known
				return errFound
			}
		}
		return r.Fail(r.At, "%q, expected %s, %s, %s or %s", jsontext.Clip(string(value)), recordFormat, recordModule, recordLaunch, recordSample)
	})
	switch {
	case errors.Is(err, errFound):
		return kind, nil
	case err == nil && !hasRecord:
		return "", errors.New("has no record, which says what the line describes")
	}
	return "", err
}

// read reads a line, which consists of one object, by the members of its kind.
func read[T any](r *jsontext.Reader, into *T, fields []jsontext.Field[T]) error {
	*r = jsontext.Reader{Data: r.Data}
	if err := jsontext.Members(r, into, fields); err != nil {
		return err
	}
	return r.End()
}

// optional is a number that may be absent.
type optional struct {
	value     uint64
	isPresent bool
}

// The setters of members.

func setHex[T any](member func(*T) *optional) func(*jsontext.Reader, *T) error {
	return func(r *jsontext.Reader, into *T) (err error) {
		*member(into), err = hexNumber(r)
		return err
	}
}

func hexNumber(r *jsontext.Reader) (optional, error) {
	start := r.At
	n, err := r.Hex()
	if err == nil && n.Wrong != "" {
		err = r.Fail(start, "%s", n.Wrong)
	}
	return optional{n.Value, true}, err
}

func setInteger[T any](most uint64, member func(*T) *optional) func(*jsontext.Reader, *T) error {
	return func(r *jsontext.Reader, into *T) error {
		n, err := r.Integer(most)
		*member(into) = optional{n, true}
		return err
	}
}

// setText reads a string, whose bytes may be part of the line.
func setText[T any](member func(*T) *[]byte) func(*jsontext.Reader, *T) error {
	return func(r *jsontext.Reader, into *T) (err error) {
		*member(into), err = text(r)
		return err
	}
}

func text(r *jsontext.Reader) ([]byte, error) {
	start := r.At
	b, err := r.Text()
	if err == nil && len(b) > maxText {
		err = r.Fail(start, "a string of %d bytes, expected at most %d", len(b), maxText)
	}
	return b, err
}

// setID reads an ID, whose bytes may be part of the line.
func setID[T any](member func(*T) *[]byte) func(*jsontext.Reader, *T) error {
	return func(r *jsontext.Reader, into *T) (err error) {
		*member(into), err = identifier(r)
		return err
	}
}

// identifier reads a string that is not empty, or a whole number that stands for
// its decimal digits.
func identifier(r *jsontext.Reader) ([]byte, error) {
	c := r.Next()
	start := r.At
	if c >= '0' && c <= '9' {
		_, err := r.Integer(math.MaxUint64)
		return r.Data[start:r.At], err
	}
	b, err := text(r)
	if err == nil && len(b) == 0 {
		err = r.Fail(start, "an ID without characters")
	}
	return b, err
}

// setString reads a string, and copies it.
func setString[T any](member func(*T) *string) func(*jsontext.Reader, *T) error {
	return func(r *jsontext.Reader, into *T) error {
		b, err := text(r)
		*member(into) = string(b)
		return err
	}
}

// setWaveID reads an ID, and copies it.
func setWaveID(member func(*sdk.Wave) *string) func(*jsontext.Reader, *sdk.Wave) error {
	return func(r *jsontext.Reader, into *sdk.Wave) error {
		b, err := identifier(r)
		*member(into) = string(b)
		return err
	}
}

// skip is the reader of record, which recordKind has read.
func skip[T any](r *jsontext.Reader, _ *T) error { return r.Skip() }

type formatLine struct {
	version optional
	clock   string
}

type moduleLine struct {
	id []byte
	gpusamples.Module
}

type segmentLine struct {
	section              string
	address, size, start optional
}

// launchLine is a line of a launch, or launched_by in a sample, where id may refer to a
// launch instead.
type launchLine struct {
	id, api, comm       []byte
	pid, tid, time, end optional
	frames              []uint64
	hasFrames           bool
}

type sampleLine struct {
	event         []byte
	time, weight  optional
	module        []byte
	offset, pc    optional
	mask, lanes   optional
	wave          sdk.Wave
	launch        launchLine
	hasLaunchedBy bool
}

// All members that are read. docs/gpu-samples.schema.json describes the same; a test
// compares them.
var (
	formatFields = []jsontext.Field[formatLine]{
		{Name: "record", Read: skip[formatLine]},
		{Name: "format_version", Read: setInteger(math.MaxUint64, func(l *formatLine) *optional { return &l.version })},
		{Name: "clock", Read: setString(func(l *formatLine) *string { return &l.clock })},
	}
	moduleFields = []jsontext.Field[moduleLine]{
		{Name: "record", Read: skip[moduleLine]},
		{Name: "id", Read: setID(func(l *moduleLine) *[]byte { return &l.id })},
		{Name: "path", Read: setString(func(l *moduleLine) *string { return &l.Path })},
		{Name: "build_id", Read: readBuildID},
		{Name: "arch", Read: setString(func(l *moduleLine) *string { return &l.Arch })},
		{Name: "processor", Read: setString(func(l *moduleLine) *string { return &l.Processor })},
		{Name: "segments", Read: readSegments},
	}
	segmentFields = []jsontext.Field[segmentLine]{
		{Name: "section", Read: setString(func(l *segmentLine) *string { return &l.section })},
		{Name: "address", Read: setHex(func(l *segmentLine) *optional { return &l.address })},
		{Name: "size", Read: setHex(func(l *segmentLine) *optional { return &l.size })},
		{Name: "start", Read: setHex(func(l *segmentLine) *optional { return &l.start })},
	}
	threadFields = []jsontext.Field[launchLine]{
		{Name: "pid", Read: setInteger(math.MaxInt32, func(l *launchLine) *optional { return &l.pid })},
		{Name: "tid", Read: setInteger(math.MaxInt32, func(l *launchLine) *optional { return &l.tid })},
		{Name: "comm", Read: setText(func(l *launchLine) *[]byte { return &l.comm })},
		{Name: "api", Read: setText(func(l *launchLine) *[]byte { return &l.api })},
		{Name: "time", Read: setInteger(math.MaxUint64, func(l *launchLine) *optional { return &l.time })},
		{Name: "end", Read: setInteger(math.MaxUint64, func(l *launchLine) *optional { return &l.end })},
		{Name: "frames", Read: readFrames},
	}
	launchFields = append([]jsontext.Field[launchLine]{
		{Name: "record", Read: skip[launchLine]},
		{Name: "id", Read: setID(func(l *launchLine) *[]byte { return &l.id })},
	}, threadFields...)
	launchedByFields = append([]jsontext.Field[launchLine]{
		{Name: "launch", Read: setID(func(l *launchLine) *[]byte { return &l.id })},
	}, threadFields...)
	sampleFields = []jsontext.Field[sampleLine]{
		{Name: "record", Read: skip[sampleLine]},
		{Name: "event", Read: setText(func(l *sampleLine) *[]byte { return &l.event })},
		{Name: "time", Read: setInteger(math.MaxUint64, func(l *sampleLine) *optional { return &l.time })},
		{Name: "module", Read: setID(func(l *sampleLine) *[]byte { return &l.module })},
		{Name: "module_offset", Read: setHex(func(l *sampleLine) *optional { return &l.offset })},
		{Name: "pc", Read: setHex(func(l *sampleLine) *optional { return &l.pc })},
		{Name: "exec_mask", Read: setHex(func(l *sampleLine) *optional { return &l.mask })},
		{Name: "lanes", Read: setInteger(maxLanes, func(l *sampleLine) *optional { return &l.lanes })},
		{Name: "weight", Read: setInteger(maxWeight, func(l *sampleLine) *optional { return &l.weight })},
		{Name: "wave", Read: func(r *jsontext.Reader, l *sampleLine) error { return jsontext.Members(r, &l.wave, waveFields) }},
		{Name: "launched_by", Read: func(r *jsontext.Reader, l *sampleLine) error {
			l.hasLaunchedBy = true
			return jsontext.Members(r, &l.launch, launchedByFields)
		}},
	}
	waveFields = []jsontext.Field[sdk.Wave]{
		{Name: "agent", Read: setWaveID(func(w *sdk.Wave) *string { return &w.Agent })},
		{Name: "queue", Read: setWaveID(func(w *sdk.Wave) *string { return &w.Queue })},
		{Name: "dispatch", Read: setWaveID(func(w *sdk.Wave) *string { return &w.Dispatch })},
		{Name: "kernel", Read: setString(func(w *sdk.Wave) *string { return &w.Kernel })},
		{Name: "group", Read: func(r *jsontext.Reader, w *sdk.Wave) (err error) {
			w.Group, err = r.Group()
			w.HasGroup = true
			return err
		}},
		{Name: "in_group", Read: func(r *jsontext.Reader, w *sdk.Wave) error {
			n, err := r.Integer(math.MaxUint32)
			w.InGroup, w.HasInGroup = uint32(n), true //nolint:gosec // checked
			return err
		}},
	}
)

func readBuildID(r *jsontext.Reader, l *moduleLine) error {
	start := r.At
	digits, err := r.Text()
	if err != nil {
		return err
	}
	const most = 1024 // as in a snapshot
	l.BuildID = make([]byte, hex.DecodedLen(min(len(digits), most)))
	if _, err := hex.Decode(l.BuildID, digits[:min(len(digits), most)]); err != nil || len(digits) > most {
		return r.Fail(start, "%q, expected at most %d pairs of hexadecimal digits", jsontext.Clip(string(digits)), most/2)
	}
	return nil
}

func readSegments(r *jsontext.Reader, l *moduleLine) error {
	return r.Array(func(i int) error {
		if i >= maxSegments {
			return r.Fail(r.At, "the list has more than %d elements", maxSegments)
		}
		start := r.At
		var s segmentLine
		if err := jsontext.Members(r, &s, segmentFields); err != nil {
			return err
		}
		if !s.address.isPresent || !s.size.isPresent || !s.start.isPresent {
			return r.Fail(start, "expected address, size and start")
		}
		out := trace.Segment{Section: s.section, Address: s.address.value, Size: s.size.value, Start: s.start.value}
		if out.Start+out.Size < out.Start || out.Address+out.Size < out.Address {
			return r.Fail(start, "%#x bytes at %#x reach past the last address", out.Size, out.Start)
		}
		if out.Size > 0 {
			l.Segments = append(l.Segments, out)
		}
		return nil
	})
}

func readFrames(r *jsontext.Reader, l *launchLine) error {
	l.hasFrames = true
	return r.Array(func(i int) error {
		if i >= maxFrames {
			return r.Fail(r.At, "the list has more than %d elements", maxFrames)
		}
		n, err := hexNumber(r)
		l.frames = append(l.frames, n.value)
		return err
	})
}

// read reads a line of a sample into memory that is reused.
func (l *sampleLine) read(r *jsontext.Reader) error {
	*l = sampleLine{launch: launchLine{frames: l.launch.frames[:0]}}
	if err := read(r, l, sampleFields); err != nil {
		return err
	}
	switch {
	case l.pc.isPresent && (l.offset.isPresent || len(l.module) > 0):
		return errors.New("pc stands beside module or module_offset, expected one or the others")
	case !l.pc.isPresent && len(l.module) == 0:
		return errors.New("has neither pc nor module")
	case !l.pc.isPresent && !l.offset.isPresent:
		return errors.New("has a module, but no module_offset")
	case !l.hasLaunchedBy:
		return nil
	case len(l.launch.id) > 0 && (l.launch.pid.isPresent || l.launch.tid.isPresent || l.launch.time.isPresent || l.launch.end.isPresent || l.launch.hasFrames):
		return errors.New("launched_by: launch stands beside other members, expected it alone")
	case len(l.launch.id) > 0:
		return nil
	}
	if err := l.launch.check(); err != nil {
		return fmt.Errorf("launched_by: %w", err)
	}
	return nil
}

// check returns an error for the first missing member of a launch.
func (l *launchLine) check() error {
	switch {
	case !l.pid.isPresent:
		return errors.New("has no pid")
	case !l.tid.isPresent:
		return errors.New("has no tid")
	case !l.hasFrames:
		return errors.New("has no frames")
	case l.end.isPresent && (!l.time.isPresent || l.end.value < l.time.value):
		return errors.New("has an end that is not behind its time")
	}
	return nil
}

// launch returns the launch that a line describes, with frames of the line.
func (l *launchLine) launch() gpusamples.Launch {
	return gpusamples.Launch{
		PID: int(l.pid.value), TID: int(l.tid.value), //nolint:gosec // of 31 bits
		Comm: string(l.comm), API: string(l.api), Time: l.time.value, HasTime: l.time.isPresent,
		End: l.end.value, HasEnd: l.end.isPresent, Frames: l.frames,
	}
}

// readFormat reads the first line.
func readFormat(r *jsontext.Reader, line *linetext.Line) (*formatLine, error) {
	kind, err := recordKind(r, line)
	var l formatLine
	switch {
	case err != nil:
		return nil, err
	case kind != recordFormat:
		return nil, fmt.Errorf("record is %q, expected %q in the first line", kind, recordFormat)
	}
	if err := read(r, &l, formatFields); err != nil {
		return nil, err
	}
	switch {
	case !l.version.isPresent:
		return nil, errors.New("has no format_version, expected 1")
	case l.version.value != formatVersion:
		return nil, fmt.Errorf("format_version is %s, expected %d", strconv.FormatUint(l.version.value, 10), formatVersion)
	}
	return &l, nil
}
