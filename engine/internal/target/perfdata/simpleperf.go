// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// This file reads the parts of a recording that only Android's simpleperf writes: features from
// number 128 on, and records from type 32768 on (its record_file_format.h, record_file.proto and
// record.h).

// The features of simpleperf.
const (
	featureFile       = 128
	featureMeta       = 129
	featureUnwindLog  = 130
	featureUnwindFile = 131
	featureFile2      = 132
	featureETM        = 133
	featureInitMap    = 134
)

// The records of simpleperf.
const (
	// recordSimpleperf is the first type, whose records have sizes of 32 bits: the 16 bits of
	// misc are the high ones.
	recordSimpleperf    RecordType = 32768
	recordKernelSymbols RecordType = 32769
	recordEventID       RecordType = 32774
)

// simpleperfNames are the records of simpleperf by their number from recordSimpleperf on.
var simpleperfNames = [...]string{
	1: "KERNEL_SYMBOL", "DSO", "SYMBOL", "SPLIT", "SPLIT_END", "EVENT_ID", "CALLCHAIN", "UNWINDING_RESULT", "TRACING_DATA", "DEBUG",
}

// FileKind is the kind of a file that simpleperf has symbols of.
type FileKind uint32

// The kinds (DsoType of simpleperf).
const (
	KernelFile FileKind = iota
	KernelModuleFile
	ELFFile
	DEXFile
	SymbolMapFile // of code that was made at run time: its symbols have addresses of the process
)

// unknownOffset is a file offset that simpleperf did not write.
const unknownOffset = math.MaxUint64

// FileSymbols are the functions of a file in which there were samples, as simpleperf found them on
// the device.
type FileSymbols struct {
	Path string // as in mappings
	Kind FileKind
	// Least is the lowest address of code in the file, and Offset its offset there.
	Least, Offset uint64
	symbols       []fileSymbol // by start
}

type fileSymbol struct {
	start, end uint64
	name       string
}

const maxFileSymbols = 1 << 22

// errFile is the error for symbols of a file that do not fit their size.
var errFile = errors.New("the symbols of a file go beyond their size")

// Find returns the function at an address of the file, as its symbols have addresses.
func (s *FileSymbols) Find(address uint64) (name string, start uint64, ok bool) {
	i := sort.Search(len(s.symbols), func(i int) bool { return s.symbols[i].start > address }) - 1
	if i < 0 || address >= s.symbols[i].end {
		return "", 0, false
	}
	return s.symbols[i].name, s.symbols[i].start, true
}

// Address returns the address, as the symbols have it, of an offset in the file that is mapped at
// start, at an address of the process.
func (s *FileSymbols) Address(offset, start, address uint64) uint64 {
	switch {
	case s.Kind == ELFFile && s.Offset != unknownOffset:
		return offset - s.Offset + s.Least
	case s.Kind == ELFFile:
		return address - start + s.Least
	case s.Kind == DEXFile:
		return offset
	}
	return address
}

// IsSimpleperf reports whether simpleperf made the recording. In its call chains callers are at
// their calls, not at return addresses.
func (f *File) IsSimpleperf() bool { return f.features.Meta["simpleperf_version"] != "" }

// KernelSymbols returns the text of /proc/kallsyms that simpleperf recorded; nil for none. It
// points into the mapped file.
func (f *File) KernelSymbols() []byte { return f.kernelSymbols }

// readSimpleperf reads a feature of simpleperf.
func (f *File) readSimpleperf(number int, data []byte) error {
	switch number {
	case featureMeta:
		return f.readMeta(data)
	case featureFile:
		return f.readFiles(data, (*FileSymbols).read)
	case featureFile2:
		return f.readFiles(data, (*FileSymbols).readMessage)
	case featureInitMap:
		// Mappings and names from before the first sample.
		f.areas = append(f.areas, area{data: data, order: f.order, name: "init_map"})
	case featureUnwindLog, featureUnwindFile, featureETM:
		f.problems.add("%d bytes of the feature %s of simpleperf are not read", len(data), map[int]string{
			featureUnwindLog: "debug_unwind", featureUnwindFile: "debug_unwind_file", featureETM: "etm_branch_list",
		}[number])
	}
	return nil
}

// readMeta reads meta_info: keys and values, each ending with a NUL.
func (f *File) readMeta(data []byte) error {
	f.features.Meta = map[string]string{}
	for len(data) > 0 {
		var pair [2]string
		for i := range pair {
			end := bytes.IndexByte(data, 0)
			if end < 0 {
				return errors.New("meta_info: a text does not end")
			}
			pair[i], data = string(data[:end]), data[end+1:]
		}
		if len(f.features.Meta) < maxStrings {
			f.features.Meta[pair[0]] = pair[1]
		}
	}
	return nil
}

// readFiles reads a list of files, each with its size before it.
func (f *File) readFiles(data []byte, read func(*FileSymbols, []byte, endian) error) error {
	d := fields{b: data, order: f.order}
	for len(d.b) > 0 {
		b := d.bytes(uint64(d.u32()))
		if d.isShort {
			return errShort
		}
		s := FileSymbols{Offset: unknownOffset}
		if err := read(&s, b, f.order); err != nil {
			return err
		}
		if f.fileSymbols += len(s.symbols); f.fileSymbols > maxFileSymbols {
			return fmt.Errorf("more than %d symbols: further ones are left out", maxFileSymbols)
		}
		slices.SortStableFunc(s.symbols, func(a, b fileSymbol) int { return cmp.Compare(a.start, b.start) })
		f.features.Files = append(f.features.Files, s)
	}
	return nil
}

// add adds a symbol. Of one without a size the next symbol is the end.
func (s *FileSymbols) add(start, size uint64, name string) {
	if end := start + size; size > 0 && end > start {
		s.symbols = append(s.symbols, fileSymbol{start, end, name})
	}
}

// read reads a file of the feature `file`: a struct with texts in it.
func (s *FileSymbols) read(b []byte, order endian) error {
	d := fields{b: b, order: order}
	s.Path = d.line()
	s.Kind, s.Least = FileKind(d.u32()), d.u64()
	for n := d.u32(); n > 0 && !d.isShort; n-- {
		start, size := d.u64(), uint64(d.u32())
		if name := d.line(); !d.isShort {
			s.add(start, size, name)
		}
	}
	if s.Kind == DEXFile {
		d.bytes(8 * uint64(d.u32())) // offsets of the files in it
	}
	if (s.Kind == ELFFile || s.Kind == KernelModuleFile) && len(d.b) >= 8 {
		s.Offset = d.u64()
	}
	if d.isShort {
		return errFile
	}
	return nil
}

// line reads a text that ends with a NUL.
func (f *fields) line() string {
	end := bytes.IndexByte(f.b, 0)
	if end < 0 {
		f.b, f.isShort = nil, true
		return ""
	}
	s := string(clip(f.b[:end], maxPath))
	f.b = f.b[end+1:]
	return s
}

// readMessage reads a file of the feature `file2`: a message FileFeature of Protocol Buffers.
func (s *FileSymbols) readMessage(b []byte, _ endian) error {
	return eachField(b, func(number int, value uint64, text []byte) error {
		switch number {
		case 1:
			s.Path = string(clip(text, maxPath))
		case 2:
			s.Kind = FileKind(value) //nolint:gosec // it is compared
		case 3:
			s.Least = value
		case 4:
			var start, size uint64
			name := ""
			err := eachField(text, func(number int, value uint64, text []byte) error {
				switch number {
				case 1:
					start = value
				case 2:
					size = value
				case 3:
					name = string(clip(text, maxPath))
				}
				return nil
			})
			s.add(start, size, name)
			return err
		case 6, 7: // of an ELF file, of a kernel module
			s.Offset = 0
			return eachField(text, func(number int, value uint64, _ []byte) error {
				if number == 1 {
					s.Offset = value
				}
				return nil
			})
		}
		return nil
	})
}

// eachField calls take for every field of a message of Protocol Buffers, with its number or its
// bytes.
func eachField(b []byte, take func(number int, value uint64, text []byte) error) error {
	const varint, fixed64, lengthDelimited, fixed32 = 0, 1, 2, 5
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 {
			return errFile
		}
		b = b[n:]
		var value uint64
		var text []byte
		switch size := uint64(4); key & 7 {
		case varint, lengthDelimited:
			if value, n = binary.Uvarint(b); n <= 0 {
				return errFile
			}
			if b = b[n:]; key&7 == varint {
				break
			}
			if value > uint64(len(b)) {
				return errFile
			}
			text, b, value = b[:value], b[value:], 0
		case fixed64, fixed32:
			if key&7 == fixed64 {
				size = 8
			}
			if size > uint64(len(b)) {
				return errFile
			}
			b = b[size:]
		default:
			return errFile
		}
		if err := take(int(min(key>>3, math.MaxInt32)), value, text); err != nil { //nolint:gosec // bounded
			return err
		}
	}
	return nil
}

// readSimpleperfRecord reads a record of a type of simpleperf.
func (f *File) readSimpleperfRecord(r *record) error {
	d := fields{b: r.data[recordHeader:], order: f.order}
	switch r.kind {
	case recordKernelSymbols:
		f.kernelSymbols = d.bytes(uint64(d.u32()))
	case recordEventID:
		for n := d.u64(); n > 0 && !d.isShort; n-- {
			if index := d.u64(); index < uint64(len(f.attrs.list)) {
				f.attrs.addIDs(int(index), f.order, d.bytes(8)) //nolint:gosec // an index
			} else {
				d.u64()
			}
		}
	}
	if d.isShort {
		return errShort
	}
	return nil
}

// simpleperfProblems says which records of simpleperf were not read, and names events as it does.
func (f *File) simpleperfProblems() {
	var unread []string
	for i, name := range simpleperfNames {
		kind := recordSimpleperf + RecordType(i) //nolint:gosec // few
		if n := f.counts[kind]; n > 0 && kind != recordKernelSymbols && kind != recordEventID {
			unread = append(unread, fmt.Sprintf("%d %s", n, name))
		}
	}
	if len(unread) > 0 {
		f.problems.add("these records of simpleperf are not read: %s", strings.Join(unread, ", "))
	}
	// Lines of a name, a type and a configuration.
	for line := range strings.Lines(f.features.Meta["event_type_info"]) {
		parts := strings.Split(strings.TrimSpace(line), ",")
		if len(parts) < 3 {
			continue
		}
		kind, err := strconv.ParseUint(parts[1], 0, 32)
		config, err2 := strconv.ParseUint(parts[2], 0, 64)
		if cmp.Or(err, err2) != nil {
			continue
		}
		for i := range f.attrs.list {
			if a := &f.attrs.list[i]; a.Name == "" && uint64(a.Type) == kind && a.Config == config {
				a.Name = parts[0]
			}
		}
	}
}
