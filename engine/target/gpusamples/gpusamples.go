// Package gpusamples reads samples of accelerators' program counters, which a
// profiler writes as lines of JSON: which code was loaded, who launched what, and
// where waves were. docs/gpu-samples.md describes the lines.
//
// Open maps a file and goes once over its lines; it keeps modules and launches. A
// Reader then delivers the samples, one after the other, in the order of the
// file:
//
//	f, err := gpusamples.Open("samples.jsonl")
//	r := f.Reader()
//	for r.Next() {
//		// r.Sample()
//	}
//
// Modules and launches may stand before or behind the samples that name them.
//
// A line that is wrong is a problem, and costs only itself. Problems name the
// file, the line, and the member. The memory in use does not grow with the
// samples.
package gpusamples

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/jsontext"
)

// ErrNotSamples says that a file does not begin as one of samples does.
var ErrNotSamples = errors.New("not a file of GPU samples")

// DefaultEvent is the name of the event of samples that name none.
const DefaultEvent = "gpu-pc-sampling"

const (
	maxLine     = 1 << 20 // bytes
	maxText     = 1 << 12 // bytes of a name or path
	maxFrames   = 1 << 16 // of a launch
	maxSegments = 1 << 12 // of a module
	maxEvents   = 64
	// maxKept bounds the bytes of modules and launches that are kept.
	maxKept     = 256 << 20
	maxProblems = 100
)

// A File is a file of samples. It may be used concurrently, but for Close.
type File struct {
	path     string
	mapping  *object.Mapping // nil for bytes in memory
	data     []byte
	clock    string
	events   []Event
	modules  []Module
	launches []Launch
	stacks   map[string][]uint64 // the frames of launches, each once
	// Indices by ID; several where lines of one ID differ.
	moduleIDs, launchIDs map[string]int32
	places               []place
	pids                 map[int]bool
	kept, maxKept        int
	problems             []string
	silenced             int
}

// several is the index of an ID that two lines use differently.
const several = -1

// An Event is what was sampled.
type Event struct {
	Name    string
	Samples int
	// Lanes says that all its samples have an execution mask.
	Lanes   bool
	without int // samples without a mask
}

// A Module is a code object that was loaded.
type Module struct {
	ID        string
	Path      string // in the target; FILE#NAME for a code object inside a file
	BuildID   []byte
	Arch      string
	Processor string
	// Segments say where it was loaded; none where that is not told. Which of them
	// are executable is not known here.
	Segments []target.Segment
}

// A Launch is a thread of the CPU as it launched waves.
type Launch struct {
	PID, TID int
	Comm     string // the thread's name; "" where it is not told
	Time     uint64 // nanoseconds, of File.Clock
	HasTime  bool
	// Frames are return addresses, innermost first.
	Frames []uint64
}

// A Sample is where a wave was at one moment.
type Sample struct {
	Line  int // in the file, from 1
	Event int // index of File.Events
	// Module is the index of the module in File.Modules; -1 where it is in none, or
	// in one that is not described, which Problem says.
	Module int
	// Offset is the ELF virtual address in the module, where HasOffset; else PC is
	// the address in the process.
	Offset      uint64
	HasOffset   bool
	PC          uint64
	Problem     string
	Time        uint64 // nanoseconds, of File.Clock
	Weight      uint64 // 1 where it is not told
	ActiveLanes uint32
	HasLanes    bool // ActiveLanes is known
	Wave        target.Wave
	// Launch is who launched the wave; nil where that is not told, or where no line
	// describes it. It is valid until the next sample.
	Launch *Launch
	// LaunchIndex is that of Launch in File.Launches; -1 where it is not there.
	LaunchIndex int
}

// Open maps a file and reads its modules and launches. The error of a file that
// does not begin with a line of format 1 wraps ErrNotSamples.
func Open(path string) (*File, error) {
	m, err := object.Map(path)
	if errors.Is(err, object.ErrEmpty) {
		return nil, fmt.Errorf("%s: %w: the file is empty", path, ErrNotSamples)
	}
	if err != nil {
		return nil, err
	}
	f := &File{path: path, mapping: m, data: m.Data(), maxKept: maxKept}
	if err := f.open(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return f, nil
}

func (f *File) open() error {
	f.stacks, f.pids = map[string][]uint64{}, map[int]bool{}
	f.moduleIDs, f.launchIDs = map[string]int32{}, map[string]int32{}
	if err := object.Guard(f.index); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.place()
	return nil
}

// Close unmaps the file.
func (f *File) Close() error {
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Close()
}

// Path is that of Open.
func (f *File) Path() string { return f.path }

// Clock is the name of the clock of all times ("CLOCK_MONOTONIC"); "" where it
// is not told.
func (f *File) Clock() string { return f.clock }

// Events are by first appearance.
func (f *File) Events() []Event { return f.events }

// Modules are in the order of the file.
func (f *File) Modules() []Module { return f.modules }

// Launches are in the order of the file. Those that stand in samples are not
// among them.
func (f *File) Launches() []Launch { return f.launches }

// PIDs are the processes that launch, of lines and in samples, in order.
func (f *File) PIDs() []int { return slices.Sorted(maps.Keys(f.pids)) }

// Problems are what is wrong with the file, each a sentence that names the file,
// the line, the member, and what was expected.
func (f *File) Problems() []string {
	if f.silenced == 0 {
		return f.problems
	}
	return append(f.problems[:len(f.problems):len(f.problems)], fmt.Sprintf("%s: %d more problems", f.path, f.silenced))
}

func (f *File) problem(line int, format string, args ...any) {
	if len(f.problems) >= maxProblems { // of a bad file there may be millions
		f.silenced++
		return
	}
	f.problems = append(f.problems, fmt.Sprintf("%s:%d: ", f.path, line)+fmt.Sprintf(format, args...))
}

// keep accounts for bytes that are kept.
func (f *File) keep(n int) bool {
	if n > f.maxKept-f.kept {
		return false
	}
	f.kept += n
	return true
}

// A Reader delivers the samples of a File in its order. It is for one goroutine;
// a File may have several.
type Reader struct {
	file   *File
	lines  scanner
	line   sampleLine
	sample Sample
	inline Launch
	failed error
}

// Reader makes a reader that begins at the first sample.
func (f *File) Reader() *Reader { return &Reader{file: f, lines: scanner{data: f.data}} }

// Next reads the next sample; false where there is none.
func (r *Reader) Next() (found bool) {
	if r.failed != nil {
		return false
	}
	err := object.Guard(func() error {
		for !found && r.lines.next() {
			if kind, err := recordKind(r.lines.json()); err != nil || kind != recordSample {
				continue
			}
			// What is wrong with a line is known since the file was opened.
			found = r.line.read(r.lines.json()) == nil && r.take()
		}
		return nil
	})
	if err != nil {
		r.failed = fmt.Errorf("%s:%d: %w", r.file.path, r.lines.number, err)
		return false
	}
	return found
}

// Sample is the one that Next read. It is valid until the next call of Next.
func (r *Reader) Sample() *Sample { return &r.sample }

// Err is why Next found no more samples: nil at the end of the file, else that
// the file was cut while it was mapped.
func (r *Reader) Err() error { return r.failed }

// take makes a sample of the line that was read; false where there were more
// events than are told apart.
func (r *Reader) take() bool {
	f, l, s := r.file, &r.line, &r.sample
	event := f.eventOf(l)
	if event < 0 {
		return false
	}
	*s = Sample{
		Line: r.lines.number, Event: event, Module: -1, Time: l.time.value, Weight: 1, Wave: l.wave,
	}
	if l.weight.isGiven {
		s.Weight = l.weight.value
	}
	if l.mask.isGiven {
		mask := l.mask.value
		if l.lanes.isGiven && l.lanes.value < 64 {
			mask &= 1<<l.lanes.value - 1
		}
		s.ActiveLanes, s.HasLanes = uint32(bits.OnesCount64(mask)), true //nolint:gosec // at most 64
	}
	if l.pc.isGiven {
		s.PC = l.pc.value
		s.Module, s.Problem = f.moduleAt(s.PC)
	} else {
		s.Offset, s.HasOffset = l.offset.value, true
		s.Module, s.Problem = find(f.moduleIDs, l.module, "module")
	}
	s.Launch, s.LaunchIndex = r.launch(&l.launch)
	return true
}

// launch is who launched a wave.
func (r *Reader) launch(l *launchLine) (launch *Launch, index int) {
	if len(l.id) > 0 {
		if i, ok := r.file.launchIDs[string(l.id)]; ok && i != several {
			return &r.file.launches[i], int(i)
		}
		return nil, -1
	}
	if !l.pid.isGiven {
		return nil, -1
	}
	frames := append(r.inline.Frames[:0], l.frames...)
	r.inline = l.launch()
	r.inline.Frames = frames
	return &r.inline, -1
}

// find looks an ID up. Where no line describes it, or several do differently, it
// says so.
func find(ids map[string]int32, id []byte, what string) (index int, problem string) {
	switch i, ok := ids[string(id)]; {
	case !ok:
		return -1, "no line describes its " + what
	case i == several:
		return -1, "several lines describe its " + what + ", not all alike"
	default:
		return int(i), ""
	}
}

// A scanner goes over the lines that have something in them.
type scanner struct {
	data   []byte // not read yet
	text   []byte // the line, without its end
	number int    // the line's, from 1
	reader jsontext.Reader
}

// json is a reader of the line. There is one for all lines.
func (s *scanner) json() *jsontext.Reader {
	s.reader = jsontext.Reader{Data: s.text}
	return &s.reader
}

func (s *scanner) next() bool {
	for len(s.data) > 0 {
		s.text, s.data, _ = bytes.Cut(s.data, []byte("\n"))
		s.number++
		if len(s.text) > maxLine || len(bytes.TrimSpace(s.text)) > 0 {
			return true
		}
	}
	return false
}
