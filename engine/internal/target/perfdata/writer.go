// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"time"
)

// This file writes recordings, as perf and this package read them
// (tools/perf/Documentation/perf.data-file-format.txt of the kernel).

// WriterOptions describe a recording.
type WriterOptions struct {
	Event     string // the only event's name
	Arch      string // as printed by uname -m
	OSRelease string
	Hostname  string
	Registers uint64 // the mask of the registers of samples
	// WallClock and Clock are one moment, in nanoseconds since 1970 and by ClockID, which
	// is the clock of all times.
	WallClock, Clock uint64
	ClockID          uint32
	// HasRaw is true where samples have Raw.
	HasRaw bool
}

// Writer writes a recording of one event whose samples have registers and stacks. Close
// finishes it. After an error all calls return it.
type Writer struct {
	out     *bufio.Writer
	file    io.WriteSeeker
	options WriterOptions
	size    uint64 // of all records
	record  []byte
	err     error
}

// MaxSampleStack is how many bytes of a stack a sample has at most: the size of a record is
// a number of 16 bits.
const MaxSampleStack = 1<<16 - 1024

// rawFree is how many bytes of raw data there is room for beside MaxSampleStack.
const rawFree = 256

const (
	// writerSample is the set of fields of samples and of the ids of other records.
	writerSample = SampleIP | SampleTID | SampleTime | SamplePeriod | SampleRegsUser | SampleStackUser
	writerFlags  = FlagSampleIDAll | FlagMmap2 | FlagCommExec | FlagUseClockID | FlagBuildID
	writerAttr   = 112 // PERF_ATTR_SIZE_VER5, which every perf in use reads
	writerStart  = fileHeader + writerAttr + 16
)

// NewWriter begins a recording.
func NewWriter(file io.WriteSeeker, options WriterOptions) *Writer {
	w := &Writer{out: bufio.NewWriterSize(file, 1<<20), file: file, options: options}
	w.write(w.header(0))
	w.write(w.attr())
	w.write(make([]byte, 16)) // no ids
	return w
}

func (w *Writer) write(b []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(b)
	}
}

// header returns a struct perf_file_header.
func (w *Writer) header(records uint64) []byte {
	order := binary.LittleEndian
	b := append([]byte{}, magicLittle...)
	for _, word := range []uint64{
		fileHeader, writerAttr + 16, fileHeader, writerAttr + 16, writerStart, records, 0, 0,
		1<<featureHostname | 1<<featureOSRelease | 1<<featureArch | 1<<featureEventDesc | 1<<featureClockID | 1<<featureClockData, 0, 0, 0,
	} {
		b = order.AppendUint64(b, word)
	}
	return b
}

// attr returns the struct perf_event_attr of a software clock event, whose unit is a
// nanosecond.
func (w *Writer) attr() []byte {
	b := make([]byte, writerAttr)
	order := binary.LittleEndian
	order.PutUint32(b, 1) // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK
	order.PutUint32(b[4:], writerAttr)
	order.PutUint64(b[24:], uint64(w.fields()))
	order.PutUint64(b[40:], uint64(writerFlags))
	order.PutUint64(b[80:], w.options.Registers)
	order.PutUint32(b[88:], MaxSampleStack)
	order.PutUint32(b[92:], w.options.ClockID)
	return b
}

// fields are the fields of samples.
func (w *Writer) fields() SampleType {
	if w.options.HasRaw {
		return writerSample | SampleRaw
	}
	return writerSample
}

// begin begins a record.
func (w *Writer) begin(kind RecordType, misc uint16) {
	w.record = binary.LittleEndian.AppendUint32(w.record[:0], uint32(kind))
	w.record = binary.LittleEndian.AppendUint16(w.record, misc)
	w.record = append(w.record, 0, 0)
}

func (w *Writer) u32(values ...uint32) {
	for _, v := range values {
		w.record = binary.LittleEndian.AppendUint32(w.record, v)
	}
}

func (w *Writer) u64(values ...uint64) {
	for _, v := range values {
		w.record = binary.LittleEndian.AppendUint64(w.record, v)
	}
}

// text appends a name, and zeros up to eight bytes.
func (w *Writer) text(name string, most int) {
	w.record = append(w.record, name[:min(len(name), most)]...)
	w.record = append(w.record, make([]byte, 8-len(w.record)%8)...)
}

// end writes a record.
func (w *Writer) end() {
	if len(w.record) > 1<<16-8 {
		w.err = errors.Join(w.err, fmt.Errorf("a record of %d bytes, expected %d at most", len(w.record), 1<<16-8))
		return
	}
	binary.LittleEndian.PutUint16(w.record[6:], uint16(len(w.record))) //nolint:gosec // checked
	w.write(w.record)
	w.size += uint64(len(w.record))
}

// Size returns the number of bytes of the recording.
func (w *Writer) Size() uint64 { return writerStart + w.size }

// Comm writes the name of a thread from a time on. An exec removes the mappings of its
// process.
func (w *Writer) Comm(pid, tid int, timestamp uint64, name string, isExec bool) {
	misc := uint16(0)
	if isExec {
		misc = miscCommExec
	}
	w.begin(recordComm, misc)
	w.u32(uint32(pid), uint32(tid)) //nolint:gosec // IDs
	w.text(name, maxComm-1)
	w.id(pid, tid, timestamp)
	w.end()
}

// Map writes a mapping of a process from a time on.
func (w *Writer) Map(pid int, timestamp uint64, m *Mapping) {
	misc := uint16(ModeUser)
	if len(m.BuildID) > 0 && len(m.BuildID) <= 20 {
		misc |= miscMmapBuildID
	}
	w.begin(recordMmap2, misc)
	w.u32(uint32(pid), uint32(pid)) //nolint:gosec // an ID
	w.u64(m.Start, m.End-m.Start, m.Offset)
	if misc&miscMmapBuildID != 0 {
		id := make([]byte, 24)
		id[0] = byte(len(m.BuildID))
		copy(id[4:], m.BuildID)
		w.record = append(w.record, id...)
	} else {
		w.u32(m.Major, m.Minor)
		w.u64(m.Inode, 0)
	}
	w.u32(m.Prot, m.Flags)
	w.text(m.Path, maxPath-1)
	w.id(pid, pid, timestamp)
	w.end()
}

// id appends the sample_id of a record other than SAMPLE.
func (w *Writer) id(pid, tid int, timestamp uint64) {
	w.u32(uint32(pid), uint32(tid)) //nolint:gosec // IDs
	w.u64(timestamp)
}

// Sample writes a sample of a thread. Registers.Values has eight little-endian bytes for
// each bit of the options' mask; at most MaxSampleStack bytes of the stack are written.
func (w *Writer) Sample(s *Sample) {
	w.begin(recordSample, uint16(ModeUser))
	w.u64(s.IP)
	w.u32(uint32(s.PID), uint32(s.TID)) //nolint:gosec // IDs
	w.u64(s.Time, s.Period)
	if w.options.HasRaw {
		size := (len(s.Raw)+4+7)&^7 - 4
		w.u32(uint32(size)) //nolint:gosec // small
		w.record = append(append(w.record, s.Raw...), make([]byte, size-len(s.Raw))...)
	}
	w.u64(s.Registers.ABI)
	if s.Registers.ABI != RegistersNone {
		if len(s.Registers.Values) != 8*bits.OnesCount64(w.options.Registers) {
			w.err = errors.Join(w.err, fmt.Errorf("%d bytes of registers, expected 8 for each of the mask %#x", len(s.Registers.Values), w.options.Registers))
			return
		}
		w.record = append(w.record, s.Registers.Values...)
	}
	// Long raw data leaves less room.
	room := max(MaxSampleStack-max(len(s.Raw)-rawFree, 0), 0)
	stack := s.Stack[:min(len(s.Stack), room)]
	stack = stack[:len(stack)&^7]
	w.u64(uint64(len(stack)))
	if len(stack) > 0 {
		w.record = append(w.record, stack...)
		w.u64(uint64(len(stack)))
	}
	w.end()
}

// Flush writes buffered records to the file.
func (w *Writer) Flush() {
	if w.err == nil {
		w.err = w.out.Flush()
	}
}

// Close writes the features behind the records, and the final header. It does not close
// the file.
func (w *Writer) Close() error {
	w.features()
	if w.err == nil {
		w.err = w.out.Flush()
	}
	if w.err == nil {
		_, w.err = w.file.Seek(0, io.SeekStart)
	}
	if w.err == nil {
		_, w.err = w.file.Write(w.header(w.size))
	}
	return w.err
}

// features writes the sections of the header's feature bits, in their order.
func (w *Writer) features() {
	word := func(values ...uint64) (b []byte) {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		return b
	}
	number := func(v int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) } //nolint:gosec // small
	text := func(s string) []byte {
		b := append([]byte(s), make([]byte, 64-len(s)%64)...)
		return append(number(len(b)), b...)
	}
	events := append(number(1), number(writerAttr)...)
	events = append(append(append(events, w.attr()...), number(0)...), text(w.options.Event)...)
	clock := append(number(1), number(int(w.options.ClockID))...)
	clock = append(clock, word(w.options.WallClock, w.options.Clock)...)
	sections := [][]byte{text(w.options.Hostname), text(w.options.OSRelease), text(w.options.Arch), events, word(uint64(time.Nanosecond)), clock}
	offset := w.Size() + uint64(16*len(sections))
	for _, s := range sections {
		w.write(word(offset, uint64(len(s))))
		offset += uint64(len(s))
	}
	for _, s := range sections {
		w.write(s)
	}
}
