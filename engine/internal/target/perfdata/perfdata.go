// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/problems"
)

// ErrNotPerfData is the error for a file that is no recording of perf.
var ErrNotPerfData = errors.New("not a perf.data file")

// MaxRuns bounds the runs of records in the order of time that are merged.
const MaxRuns = 1 << 22

// maxProblems bounds the sentences about problems of a recording.
const maxProblems = 100

// File is a recording. It may be used concurrently, except for Close.
type File struct {
	path      string
	unpacking unpack.Options
	mapping   *object.Mapping   // nil for bytes in memory
	mapped    []*object.Mapping // all that Close unmaps
	order     endian
	isPipe    bool
	attrs     attrs
	features  Features
	buildIDs  map[string][]byte
	counts    map[RecordType]uint64
	deferred  map[deferredKey][]deferredChain
	lost      uint64 // records
	dropped   uint64 // samples
	traced    uint64 // bytes of AUX areas
	// Of simpleperf: the text of /proc/kallsyms, and how many symbols of files there are.
	kernelSymbols []byte
	fileSymbols   int
	areas         []area // the file, the files beside it, and their unpacked records
	latest        uint64 // time up to now, while records are scanned
	roots         map[int]string
	names         []string // of events, of a pipe that has them before the events
	runs          []run    // by time
	maxRuns       int
	// tracepoints are the descriptions of raw data.
	tracepoints []*Tracepoint
	problems    sentences
	batches     sync.Pool
}

// sentences are the problems found, each once.
type sentences struct{ list problems.List[string] }

func (p *sentences) add(format string, args ...any) {
	if !p.list.HasRoom(maxProblems) {
		return
	}
	if s := fmt.Sprintf(format, args...); !slices.Contains(p.list.Kept(), s) {
		p.list.Keep(s)
	}
}

func (p *sentences) all(path string) []string {
	var all []string
	for _, s := range p.list.Kept() {
		all = append(all, path+": "+s)
	}
	if n := p.list.Dropped(); n > 0 {
		all = append(all, fmt.Sprintf("%s: %d more problems", path, n))
	}
	return all
}

// Open maps a recording and finds its records. The error for a file that is no
// recording wraps ErrNotPerfData and names its format. A truncated or damaged file is
// read up to that place, and Problems lists the losses. The path may be a directory
// that perf record wrote (--threads, --kcore), or the output path of perf record
// --switch-output: then all files of that name with a time behind it are one recording.
func Open(path string) (*File, error) { return OpenStart(path, 0, unpack.Options{}) }

// OpenStart is Open for a recording that is the first size bytes of a file; 0: the
// whole file. o says where compressed records are unpacked.
func OpenStart(path string, size int64, o unpack.Options) (*File, error) {
	if names := seriesNames(path); len(names) > 0 {
		return openSeries(path, names, o)
	}
	m, err := object.Map(headerFile(path))
	if errors.Is(err, object.ErrEmpty) {
		return nil, fmt.Errorf("%s: %w: the file is empty", path, ErrNotPerfData)
	}
	if err != nil {
		return nil, err
	}
	return OpenMapped(path, m, size, o)
}

// OpenMapped is OpenStart for a mapped file, as one that was unpacked. The path is the recording's
// name. The mapping is closed with the File, and after an error.
func OpenMapped(path string, m *object.Mapping, size int64, o unpack.Options) (*File, error) {
	f := &File{path: path, unpacking: o, mapping: m, mapped: []*object.Mapping{m}, maxRuns: MaxRuns}
	data := m.Data()
	if size > 0 {
		data = data[:min(uint64(size), uint64(len(data)))]
	}
	if err := f.open(data); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// StackMachine returns the architecture in the header of a recording whose samples have stacks to
// walk, as printed by uname -m, without reading its records; "" where there is none.
func StackMachine(path string) string {
	m, err := object.Map(headerFile(path))
	if err != nil {
		return ""
	}
	defer m.Close()
	return MappedStackMachine(m)
}

// MappedStackMachine is StackMachine for a mapped file.
func MappedStackMachine(m *object.Mapping) string {
	f := &File{path: m.Path()}
	if object.Guard(func() error { return f.readStart(m.Data()) }) != nil {
		return ""
	}
	const stacks = SampleRegsUser | SampleStackUser
	if !slices.ContainsFunc(f.Attrs(), func(a Attr) bool { return a.SampleType&stacks == stacks }) {
		return ""
	}
	return f.features.Arch
}

func (f *File) open(data []byte) error {
	f.counts = map[RecordType]uint64{}
	err := object.Guard(func() error { return f.read(data) })
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// Close unmaps the file. Nothing that the file or its readers returned may be used
// after it.
func (f *File) Close() error {
	var errs []error
	for _, m := range f.mapped {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// Path returns the path that was opened.
func (f *File) Path() string { return f.path }

// Attrs returns the events that were recorded; Sample.Event is an index in it.
func (f *File) Attrs() []Attr { return f.attrs.list }

// SetRoots sets the root directories of processes by process ID, as processes of a
// container have their own. A forked process has its parent's. Call it before Reader and
// History.
func (f *File) SetRoots(roots map[int]string) { f.roots = roots }

// Features returns the header's description of the machine and the recording.
func (f *File) Features() *Features { return &f.features }

// Counts returns the number of records of each type, unpacked records included.
func (f *File) Counts() map[RecordType]uint64 { return f.counts }

// Samples returns the number of SAMPLE records.
func (f *File) Samples() uint64 { return f.counts[recordSample] }

// Lost returns the numbers of records and of samples that the kernel reports as lost
// (LOST and LOST_SAMPLES). The samples include records lost for want of space: do not
// add the two.
func (f *File) Lost() (records, samples uint64) { return f.lost, f.dropped }

// Problems returns the problems of the recording as a whole, each a sentence that
// names the file, the offset and the consequence.
func (f *File) Problems() []string { return f.problems.all(f.path) }

// scan goes over the records of an area, reads the ones that describe the
// recording, and divides the others into runs.
func (f *File) scan(index int) {
	a := &f.areas[index]
	var r record
	open := false // the last run can be continued
	last := uint64(0)
	s := newScanner(a)
	defer s.close()
	for offset := a.start; ; {
		next, done, err := s.next(offset, &r)
		if err != nil {
			f.problems.add("%s: %v", f.place(index, offset), err)
		}
		if done {
			return
		}
		if r.isCut && r.kind != recordSample {
			return // a sample is delivered with what it has
		}
		f.count(&r)
		switch r.kind {
		case recordAuxtrace:
			f.traced += next - offset - uint64(len(r.data))
		case recordCompressed, recordCompressed2:
			a.packed++
		}
		if r.kind >= recordUser {
			if r.kind == recordTracingData && a.isPipe {
				if err := f.readTracing(a.data[offset+uint64(len(r.data)) : next]); err != nil {
					f.problems.add("%s: %v: %v", f.place(index, offset), r.kind, err)
				}
			}
			f.scanUser(&r, index)
			offset = next
			continue
		}
		t, ok := f.attrs.time(&r, f.order)
		switch {
		case !ok:
			t = last
		case t == 0 && a.isLater: // a process or mapping that was there when perf began the file
			t = f.latest
		}
		f.latest = max(f.latest, t)
		if r.kind == recordDeferred {
			f.scanDeferred(&r, index, t)
		}
		switch {
		case open && t >= last:
		case len(f.runs) < f.maxRuns:
			f.runs = append(f.runs, run{area: uint16(index), start: offset, time: t})
			open = true
		case len(f.runs) == f.maxRuns:
			f.problems.add("%s: there are %d runs of records in the order of time before it; what follows stays in the order of the file", f.place(index, offset), f.maxRuns)
			if !open { // an area of its own
				f.runs = append(f.runs, run{area: uint16(index), start: offset, time: t})
				open = true
			}
		}
		last = max(t, f.runs[len(f.runs)-1].time)
		f.runs[len(f.runs)-1].end = next
		offset = next
	}
}

// count counts a record, and the losses that it reports.
func (f *File) count(r *record) {
	f.counts[r.kind]++
	switch r.kind {
	case recordLost: // the id, and how many
		if b := f.attrs.body(r, f.order); len(b) >= 16 {
			f.lost += f.order.u64(b[8:])
		}
	case recordLostSamples:
		if b := f.attrs.body(r, f.order); len(b) >= 8 {
			f.dropped += f.order.u64(b)
		}
	}
}

// place names an offset in an area.
func (f *File) place(index int, offset uint64) string {
	a := &f.areas[index]
	where := fmt.Sprintf("offset %#x", offset)
	if a.isUnpacked {
		where += " of what was compressed"
	}
	if a.name != "" {
		where = a.name + ": " + where
	}
	return where
}

// scanUser reads a record of perf's own types.
func (f *File) scanUser(r *record, index int) {
	var err error
	switch r.kind {
	case recordAttr:
		err = f.readAttrRecord(r)
	case recordEventType:
		f.readEventType(r)
	case recordBuildID:
		err = f.addBuildID(r)
	case recordEventUpdate:
		f.updateEvent(r)
	case recordKernelSymbols, recordEventID:
		err = f.readSimpleperfRecord(r)
	case recordFeature:
		d := fields{b: r.data[recordHeader:], order: f.order}
		if number := d.u64(); number < maxFeatures {
			err = f.readFeature(int(number), d.b)
		}
	}
	if err != nil {
		f.problems.add("%s: %v: %v", f.place(index, r.offset), r.kind, err)
	}
}

// readAttrRecord reads HEADER_ATTR: an attribute, which has its own length in it, and
// its ids.
func (f *File) readAttrRecord(r *record) error {
	body := r.data[recordHeader:]
	if len(body) < minAttr {
		return fmt.Errorf("an attribute of %d bytes, expected %d at least", len(body), minAttr)
	}
	size := uint64(f.order.u32(body[4:]))
	if size < minAttr || size > uint64(len(body)) {
		return fmt.Errorf("an attribute says that it has %d bytes, expected %d to %d", size, minAttr, len(body))
	}
	a, err := readAttr(f.order, body[:size])
	if err != nil {
		return err
	}
	if n := len(f.attrs.list); n < len(f.names) {
		a.Name = f.names[n]
	}
	return f.attrs.add(a, f.order, body[size:])
}
