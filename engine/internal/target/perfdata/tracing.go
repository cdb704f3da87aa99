// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// This file reads the descriptions of tracepoints in a recording (HEADER_TRACING_DATA), which
// perf copies from the kernel's tracing folder (tools/perf/util/trace-event-read.c).

// Tracepoint describes the raw data of the samples of a tracepoint.
type Tracepoint struct {
	System, Name string
	ID           uint64 // Attr.Config of its event
	Fields       []TracepointField
	// Flags are the names of bits that the description of its text has, the lowest first.
	Flags []TracepointFlag
}

// TracepointField is a field of raw data.
type TracepointField struct {
	Name         string
	Offset, Size uint32
	IsSigned     bool

	order endian
}

// TracepointFlag is a bit of a field and its name.
type TracepointFlag struct {
	Mask uint64
	Name string
}

const (
	tracingMagic = "\x17\x08\x44tracing"
	// maxTracing bounds the bytes of one description, and maxTracepoints their number.
	maxTracing     = 1 << 20
	maxTracepoints = 1 << 14
	maxFlags       = 64
)

var errNoTracing = errors.New("no tracing data")

// Tracepoint returns the description of a tracepoint's samples; nil where the recording has none.
func (f *File) Tracepoint(system, name string) *Tracepoint {
	for _, t := range f.tracepoints {
		if t.System == system && t.Name == name {
			return t
		}
	}
	return nil
}

// TracepointOf returns the description of an event's samples by the number of the tracepoint;
// nil where it is none, or the recording has no description of it.
func (f *File) TracepointOf(a *Attr) *Tracepoint {
	if a.Type != typeTracepoint {
		return nil
	}
	for _, t := range f.tracepoints {
		if t.ID == a.Config {
			return t
		}
	}
	return nil
}

// KnownField returns a field at a place that is the same in all kernels of 64-bit machines, for
// recordings without a description.
func (f *File) KnownField(name string, offset, size uint32) TracepointField {
	return TracepointField{Name: name, Offset: offset, Size: size, IsSigned: true, order: f.order}
}

// Field returns a field by its name.
func (t *Tracepoint) Field(name string) (TracepointField, bool) {
	for _, f := range t.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return TracepointField{}, false
}

// Int returns the value of a field of 1, 2, 4 or 8 bytes.
func (t *TracepointField) Int(raw []byte) (v int64, ok bool) {
	if uint64(t.Offset)+uint64(t.Size) > uint64(len(raw)) {
		return 0, false
	}
	b := raw[t.Offset:]
	shift := 64 - 8*t.Size
	switch t.Size {
	case 1:
		v = int64(b[0])
	case 2:
		v = int64(t.order.u16(b))
	case 4:
		v = int64(t.order.u32(b))
	case 8:
		return int64(t.order.u64(b)), true //nolint:gosec // its bits
	default:
		return 0, false
	}
	if t.IsSigned {
		v = v << shift >> shift
	}
	return v, true
}

// readTracing reads tracing data.
func (f *File) readTracing(data []byte) error {
	d := fields{b: data, order: f.order}
	if !bytes.HasPrefix(data, []byte(tracingMagic)) {
		return fmt.Errorf("%w: it begins with %q, expected %q", errNoTracing, data[:min(len(data), len(tracingMagic))], tracingMagic)
	}
	d.bytes(uint64(len(tracingMagic)))
	d.name() // the version
	if b := d.bytes(6); b != nil {
		d.order = b[0] != 0 // then the size of a long, and of a page
	}
	for range 2 { // header_page, header_event
		d.name()
		d.bytes(d.u64())
	}
	for n := d.u32(); n > 0 && !d.isShort; n-- { // of ftrace
		d.bytes(d.u64())
	}
	for systems := d.u32(); systems > 0 && !d.isShort; systems-- {
		system := d.name()
		for n := d.u32(); n > 0 && !d.isShort; n-- {
			text := d.bytes(d.u64())
			if d.isShort || len(text) > maxTracing || len(f.tracepoints) >= maxTracepoints {
				continue
			}
			f.tracepoints = append(f.tracepoints, readTracepoint(system, text, d.order))
		}
	}
	if d.isShort {
		return errShort
	}
	return nil
}

// name reads a text up to its NUL.
func (f *fields) name() string {
	end := bytes.IndexByte(f.b[:min(len(f.b), maxPath)], 0)
	if end < 0 {
		f.b, f.isShort = nil, true
		return ""
	}
	return string(f.bytes(uint64(end) + 1)[:end])
}

// readTracepoint reads a description: lines of a name, an ID, fields and the text's format.
func readTracepoint(system string, text []byte, order endian) *Tracepoint {
	t := &Tracepoint{System: system}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "name":
			t.Name = strings.TrimSpace(value)
		case "ID":
			t.ID, _ = strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		case "field":
			if field, ok := readField(value, order); ok && len(t.Fields) < maxAttrs {
				t.Fields = append(t.Fields, field)
			}
		case "print fmt":
			t.Flags = readFlags(value)
		}
	}
	return t
}

// readField reads `pid_t prev_pid;	offset:24;	size:4;	signed:1;`.
func readField(text string, order endian) (f TracepointField, ok bool) {
	f.order = order
	for i, part := range strings.Split(text, ";") {
		part = strings.TrimSpace(part)
		key, value, _ := strings.Cut(part, ":")
		number, err := strconv.ParseUint(value, 10, 32)
		switch {
		case i == 0:
			part, _, _ = strings.Cut(part, "[")
			f.Name = part[strings.LastIndexAny(part, " \t*")+1:]
		case err != nil:
		case key == "offset":
			f.Offset = uint32(number)
		case key == "size":
			f.Size = uint32(number)
		case key == "signed":
			f.IsSigned = number != 0
		}
	}
	return f, f.Name != "" && f.Size > 0
}

// readFlags reads the pairs `{ 0x0001, "S" }` of a text's format.
func readFlags(text string) (flags []TracepointFlag) {
	for len(flags) < maxFlags {
		_, rest, ok := strings.Cut(text, "{")
		if !ok {
			return flags
		}
		var pair string
		if pair, text, ok = strings.Cut(rest, "}"); !ok {
			return flags
		}
		number, name, _ := strings.Cut(pair, ",")
		mask, err := strconv.ParseUint(strings.TrimSpace(number), 0, 64)
		if name = strings.Trim(strings.TrimSpace(name), `"`); err == nil && name != "" {
			flags = append(flags, TracepointFlag{mask, name})
		}
	}
	return flags
}
