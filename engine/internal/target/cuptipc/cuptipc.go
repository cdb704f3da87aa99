// SPDX-License-Identifier: Apache-2.0

// Package cuptipc reads files of PC samples that libpcsamplingutil of CUPTI writes
// (CuptiUtilPutPcSampData of cupti_pcsampling_util.h): NVIDIA's sample profilers do, as
// pc_sampling_continuous. A file has a version and how many buffers there are, and for each buffer
// its numbers (BufferInfo) and a FlatBuffer with the members of CUpti_PCSamplingData. The FlatBuffer is
// not documented; its members were found from files that the library wrote.
package cuptipc

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/trace"
)

// Form is the name of the format.
const Form = "CUPTI's PC samples"

// Event is the event of samples.
const Event = "gpu-pc-sampling"

// The parts of a file.
const (
	fileHeader   = 8  // version, number of buffers
	bufferHeader = 32 // numbers of records and of reasons, the size of the FlatBuffer
	version      = 1
	identifier   = "CUPS" // behind the first offset of a FlatBuffer
)

// The members of tables by their numbers.
const (
	memberConfiguration = 0 // of a buffer
	memberDropped       = 4
	memberRecords       = 8

	memberReasons = 5 // of the configuration

	memberIndices = 7 // of reasons: their numbers, and their names in the same order
	memberNames   = 8

	memberCubin    = 1 // of a record
	memberOffset   = 2
	memberFunction = 4
	memberStalls   = 6
)

// Accepts reports whether the bytes of a file may be PC samples.
func Accepts(data []byte) bool {
	const at = fileHeader + bufferHeader + 4
	return len(data) > at+len(identifier) && binary.LittleEndian.Uint32(data) == version && string(data[at:at+len(identifier)]) == identifier
}

// Read reads a file. The error names the path; buffers before a broken one are kept, and it is a
// problem of the file.
func Read(path string, data []byte) (*stacktree.File, error) {
	le := binary.LittleEndian
	if len(data) < fileHeader || le.Uint32(data) != version {
		return nil, fmt.Errorf("%s: expected version %d of files of PC samples", path, version)
	}
	r := &reader{Builder: stacktree.NewBuilder(path, Form), frames: map[frameKey]uint32{}}
	r.stop = r.Stop(trace.Stopped{Reason: trace.StopEndOfStack, Detail: "a PC sample does not tell who launched"})
	r.event, _ = r.Event(trace.ProfileEvent{Name: Event, Unit: "count", Device: true, States: true})
	r.thread = r.Thread(-1, -1, "")
	count, offset := le.Uint32(data[4:]), uint64(fileHeader)
	for i := range count {
		if uint64(len(data))-offset < bufferHeader {
			r.Problem("offset %#x: %d bytes, expected buffer %d of %d", offset, uint64(len(data))-offset, i, count)
			break
		}
		size := le.Uint64(data[offset+24:])
		if offset += bufferHeader; size > uint64(len(data))-offset {
			r.Problem("offset %#x: a buffer of %d bytes, expected at most %d", offset, size, uint64(len(data))-offset)
			break
		}
		if err := r.buffer(flat(data[offset : offset+size])); err != nil {
			r.Problem("buffer %d at %#x: %v: the rest of it is left out", i, offset, err)
		}
		offset += size
	}
	if r.dropped > 0 {
		r.Problem("CUPTI dropped %d samples", r.dropped)
	}
	return r.Finish(), nil
}

// reader reads the buffers of a file.
type reader struct {
	*stacktree.Builder
	frames  map[frameKey]uint32 // stacks of one frame
	reasons map[uint32]uint8    // states of a buffer's reasons
	event   int16
	thread  uint32
	stop    uint16
	dropped uint64
}

// frameKey is a place in a function of a cubin.
type frameKey struct {
	cubin, offset uint64
	function      string
}

// buffer reads a buffer.
func (r *reader) buffer(f flat) error {
	if len(f) < 8 || string(f[4:8]) != identifier {
		return fmt.Errorf("expected %q at offset 4: %w", identifier, errFlat)
	}
	root, err := f.refer(0)
	if err != nil {
		return err
	}
	t, err := f.tableAt(root)
	if err != nil {
		return err
	}
	dropped, err := t.number(memberDropped, 8)
	if err != nil {
		return err
	}
	if r.dropped += dropped; r.dropped < dropped {
		r.dropped = math.MaxUint64
	}
	if err := r.readReasons(&t); err != nil {
		return fmt.Errorf("the reasons for stalls: %w", err)
	}
	// Vectors may name one table many times: records are as many as fit into the bytes.
	left := len(f)
	return t.tables(memberRecords, func(record table) error {
		const least = 32
		if left -= least; left < 0 {
			return fmt.Errorf("more than %d records in %d bytes", len(f)/least, len(f))
		}
		return r.record(&record, &left)
	})
}

// readReasons reads the names of reasons, by the numbers that records have.
func (r *reader) readReasons(t *table) error {
	r.reasons = map[uint32]uint8{}
	for _, member := range []int{memberConfiguration, memberReasons} {
		offset, ok := t.place(member)
		if !ok {
			return nil
		}
		offset, err := t.refer(offset)
		if err != nil {
			return err
		}
		inner, err := t.tableAt(offset)
		if err != nil {
			return err
		}
		t = &inner
	}
	indices, _, err := t.vector(memberIndices, 4)
	if err != nil {
		return err
	}
	names, start, err := t.vector(memberNames, 4)
	if err != nil {
		return err
	}
	for i := range uint64(min(len(indices), len(names), 4*math.MaxUint8)) / 4 {
		offset, err := t.refer(start + 4*i)
		if err != nil {
			return err
		}
		name, err := t.textAt(offset)
		if err != nil {
			return err
		}
		r.reasons[binary.LittleEndian.Uint32(indices[4*i:])] = r.WarpState(name)
	}
	return nil
}

// maxName bounds a name.
const maxName = 4 << 10

// textAt returns the string at an offset.
func (f flat) textAt(offset uint64) (string, error) {
	n, err := f.word(offset)
	if err != nil {
		return "", err
	}
	if n > maxName || uint64(n) > uint64(len(f))-offset-4 {
		return "", fmt.Errorf("a name of %d bytes at %#x: %w", n, offset, errFlat)
	}
	return string(f[offset+4 : offset+4+uint64(n)]), nil
}

// record reads the samples of one PC: how many for each reason. left are bytes that its parts may still
// have.
func (r *reader) record(t *table, left *int) error {
	cubin, err := t.number(memberCubin, 8)
	if err != nil {
		return err
	}
	offset, err := t.number(memberOffset, 8)
	if err != nil {
		return err
	}
	function, err := t.text(memberFunction)
	if err != nil {
		return err
	}
	stalls, _, err := t.vector(memberStalls, 8)
	if err != nil {
		return err
	}
	if *left -= len(stalls); len(function) > maxName || *left < 0 {
		return fmt.Errorf("a function's name of %d bytes and %d bytes of reasons, expected less: %w", len(function), len(stalls), errFlat)
	}
	stack := r.stackOf(frameKey{cubin, offset, function})
	for ; len(stalls) >= 8; stalls = stalls[8:] {
		reason, count := binary.LittleEndian.Uint32(stalls), binary.LittleEndian.Uint32(stalls[4:])
		if count > 0 {
			r.Samples = append(r.Samples, trace.ProfileSample{
				Event: r.event, Thread: r.thread, Stack: stack, Stop: r.stop, Weight: uint64(count), State: r.reasons[reason],
			})
		}
	}
	return nil
}

// stackOf returns the stack of one place.
func (r *reader) stackOf(key frameKey) uint32 {
	stack, ok := r.frames[key]
	if !ok {
		stack = r.Push(0, r.Frame(stacktree.Frame{
			Symbols: []trace.Symbol{{Function: key.function}}, Object: fmt.Sprintf("cubin-%016x", key.cubin), Address: key.offset, Exact: true,
			PID: -1, Device: true, ObjectID: key.cubin, HasObjectID: true, Dispatched: -1,
		}))
		r.frames[key] = stack
	}
	return stack
}
