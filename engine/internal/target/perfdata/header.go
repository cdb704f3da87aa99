// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

const (
	magicLittle = "PERFILE2"
	magicBig    = "2ELIFREP"
	magicOld    = "PERFFILE"

	pipeHeader = 16
	fileHeader = 104
)

// section is a perf_file_section.
type section struct{ offset, size uint64 }

func (f *fields) section() section { return section{f.u64(), f.u64()} }

// bytes returns the bytes of a section, as far as the file has them.
func (s section) bytes(data []byte) (b []byte, whole bool) {
	size := uint64(len(data))
	if s.offset >= size {
		return nil, s.size == 0
	}
	end := min(s.size, size-s.offset) + s.offset
	return data[s.offset:end:end], end-s.offset == s.size
}

// read reads the header, and goes over all records.
func (f *File) read(data []byte) error {
	if err := f.readStart(data); err != nil {
		return err
	}
	f.readRecords()
	return nil
}

// readRecords goes over all records.
func (f *File) readRecords() {
	for i := range f.areas { // not the ones that unpack appends
		f.scan(i)
		f.unpack(i)
	}
	f.openParts()
	f.simpleperfProblems()
	f.nameEvents()
	if f.traced > 0 {
		f.problems.add("%d bytes that processors traced (AUX areas) are skipped: what perf would make of them is not among the samples", f.traced)
	}
	if n := f.attrs.lost; n > 0 {
		f.problems.add("more than %d event ids; samples of the %d others have no event", maxIDs, n)
	}
	if len(f.attrs.list) > 1 && f.attrs.common.sampleID <= 0 {
		f.problems.add("which event a sample is of cannot be told: %s", eventAmbiguous)
	}
	f.sortDeferred()
	slices.SortStableFunc(f.runs, func(a, b run) int { return cmp.Compare(a.time, b.time) })
}

// readStart reads the headers before the records, and the features behind them.
func (f *File) readStart(data []byte) error {
	if len(data) < pipeHeader {
		return fmt.Errorf("%w: %d bytes, expected %d at least", ErrNotPerfData, len(data), pipeHeader)
	}
	switch string(data[:8]) {
	case magicLittle:
	case magicBig:
		f.order = true
	case magicOld:
		return fmt.Errorf("%w of version 2: version 1 (before Linux 3.0) is not read", ErrNotPerfData)
	default:
		return fmt.Errorf("%w: it begins with %q, expected %q", ErrNotPerfData, data[:8], magicLittle)
	}
	switch size := f.order.u64(data[8:]); {
	case size == pipeHeader:
		f.isPipe = true
		f.areas = []area{{data: data, start: pipeHeader, isPipe: true, order: f.order, mapping: f.mapping}}
	case size < fileHeader:
		return fmt.Errorf("%w: a header of %d bytes, expected %d, or %d of a pipe", ErrNotPerfData, size, fileHeader, pipeHeader)
	case len(data) < fileHeader:
		return fmt.Errorf("%w: the file ends in its header of %d bytes", ErrNotPerfData, fileHeader)
	default:
		return f.readHeader(data)
	}
	return nil
}

// readHeader reads the header of a file, not a pipe (struct perf_file_header).
func (f *File) readHeader(data []byte) error {
	d := fields{b: data[16:fileHeader], order: f.order}
	attrSize := d.u64()
	attrs, records := d.section(), d.section()
	d.section() // event_types
	var present [maxFeatures / 64]uint64
	for i := range present {
		present[i] = d.u64()
	}
	if f.order && present[0]&(1<<featureHostname) == 0 {
		// A bitmap of 32-bit words: every complete file has its host's name.
		for i, w := range present {
			present[i] = bits.RotateLeft64(w, 32)
		}
	}
	if err := f.readAttrs(data, attrs, attrSize); err != nil {
		return err
	}
	complete := records.size != 0
	if !complete && records.offset < uint64(len(data)) {
		f.problems.add("offset 0x30: the header says no data: the recording was not finished; what there is from offset %#x on is read", records.offset)
		records.size = uint64(len(data)) - records.offset
	}
	if b, whole := records.bytes(data); !whole {
		f.problems.add("offset 0x28: the records are %d bytes from offset %#x on, of which the file has %d", records.size, records.offset, len(b))
		complete = false
	}
	end := min(records.offset, uint64(len(data)))
	end += min(records.size, uint64(len(data))-end)
	f.areas = []area{{data: data[:end:end], start: records.offset, order: f.order, mapping: f.mapping}}
	if complete {
		f.readFeatures(data, section{offset: end}, &present)
	}
	return nil
}

// readAttrs reads the attributes, each with a section of ids behind it.
func (f *File) readAttrs(data []byte, s section, size uint64) error {
	if size < minAttr+16 || size > 1<<16 {
		return fmt.Errorf("%w: offset 0x10: attributes of %d bytes, expected %d at least", ErrNotPerfData, size, minAttr+16)
	}
	list, whole := s.bytes(data)
	if !whole {
		f.problems.add("offset 0x18: the attributes are %d bytes from offset %#x on, of which the file has %d", s.size, s.offset, len(list))
	}
	for offset := s.offset; uint64(len(list)) >= size; offset, list = offset+size, list[size:] {
		a, err := readAttr(f.order, list[:size-16])
		if err != nil {
			f.problems.add("offset %#x: %v", offset, err)
			continue
		}
		d := fields{b: list[size-16 : size], order: f.order}
		where := d.section()
		ids, whole := where.bytes(data)
		if !whole {
			f.problems.add("offset %#x: the ids of an event are %d bytes from offset %#x on, of which the file has %d", offset, where.size, where.offset, len(ids))
		}
		if err := f.attrs.add(a, f.order, ids); err != nil {
			f.problems.add("offset %#x: %v", offset, err)
			break
		}
	}
	return nil
}

// readFeatures reads the features behind the records: a section for each bit of the
// bitmap.
func (f *File) readFeatures(data []byte, table section, present *[maxFeatures / 64]uint64) {
	for number := range maxFeatures {
		if present[number/64]>>(number%64)&1 == 0 {
			continue
		}
		table.size = 16
		entry, whole := table.bytes(data)
		if !whole {
			f.problems.add("offset %#x: the file ends in the table of features", table.offset)
			return
		}
		d := fields{b: entry, order: f.order}
		where := d.section()
		b, whole := where.bytes(data)
		if !whole {
			f.problems.add("offset %#x: feature %d is %d bytes from offset %#x on, of which the file has %d", table.offset, number, where.size, where.offset, len(b))
		}
		if err := f.readFeature(number, b); err != nil && whole {
			f.problems.add("offset %#x: feature %d: %v", where.offset, number, err)
		}
		table.offset += 16
	}
}
