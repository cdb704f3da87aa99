// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"cmp"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol/msf/msftest"
)

// testFile makes PDB files with records that no tool here writes.
type testFile struct {
	machine          uint16
	sections         []section // of the image
	original         []section // before code was moved; nil: it was not
	omapTo, omapFrom []uint32  // pairs
	modules          []testModule
	publics          []testPublic
	globals          []byte
	names            []string // of the stream /names: the first is at 1
	fpo, frameData   []byte
	thunkTable       uint32
	features         []uint32
	noTable          bool // there are no contributions
}

type testModule struct {
	symbols, c13  []byte
	contributions []contribution // offsets in the first section
}

type testPublic struct {
	place
	flags uint32
	name  string
}

// bytesOf are values in little-endian order; a string ends with a zero byte.
func bytesOf(values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			b = append(append(b, v...), 0)
		case []byte:
			b = append(b, v...)
		case int:
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, v)
		case uint16:
			b = binary.LittleEndian.AppendUint16(b, v)
		case uint8:
			b = append(b, v)
		}
	}
	return b
}

func padded(b []byte) []byte { return append(b, make([]byte, -len(b)&3)...) }

// symbolRecord is a symbol record.
func symbolRecord(kind uint16, values ...any) []byte {
	data := padded(bytesOf(append([]any{uint16(0), kind}, values...)...))
	binary.LittleEndian.PutUint16(data, uint16(len(data)-2))
	return data
}

// subsection is a part of C13.
func subsection(kind uint32, values ...any) []byte {
	data := bytesOf(values...)
	return padded(append(bytesOf(kind, uint32(len(data))), data...))
}

// symbolList makes the symbols of a module, whose records have offsets of others: the offset of
// each is known as it is added.
type symbolList struct{ b []byte }

// add adds a record, and returns its offset.
func (l *symbolList) add(record []byte) uint32 {
	at := uint32(4 + len(l.b))
	l.b = append(l.b, record...)
	return at
}

// end adds a record that ends another, whose second field becomes its offset.
func (l *symbolList) end(opened uint32, kind uint16) {
	at := l.add(symbolRecord(kind))
	binary.LittleEndian.PutUint32(l.b[opened-4+8:], at)
}

// procedure adds a function without records in it.
func (l *symbolList) procedure(kind uint16, start, size uint32, name string) {
	l.end(l.beginProcedure(kind, start, size, name), kindEnd)
}

func (l *symbolList) beginProcedure(kind uint16, start, size uint32, name string) uint32 {
	return l.add(symbolRecord(kind, 0, 0, 0, size, 0, 0, 0, start, uint16(1), uint8(0), name))
}

// sectionHeaders are headers with places alone.
func sectionHeaders(list []section) (b []byte) {
	for _, s := range list {
		b = append(b, bytesOf(make([]byte, 8), s.end-s.start, s.start, make([]byte, 24))...)
	}
	return b
}

func (f *testFile) bytes() []byte {
	const firstModule = 14
	streams := make([][]byte, firstModule)
	names := bytesOf("/names")
	streams[infoStream] = bytesOf(20000404, 0, 7, []byte("0123456789abcdef"), len(names), names, 1, 1, 1, 1, 0, 0, 5, 0, words(f.features))
	texts := bytesOf("")
	for _, n := range f.names {
		texts = append(texts, bytesOf(n)...)
	}
	streams[5] = bytesOf(uint32(namesMagic), 1, len(texts), texts)
	streams[6], streams[7] = f.publicStreams()
	streams[8] = sectionHeaders(f.sections)
	debug := [11]uint16{}
	for i := range debug {
		debug[i] = noStream
	}
	debug[debugSections] = 8
	for _, s := range []struct {
		index int
		data  []byte
	}{{debugOriginalSections, sectionHeaders(f.original)}, {debugFPO, f.fpo}, {debugFrameData, f.frameData}, {debugOmapTo, words(f.omapTo)}, {debugOmapFrom, words(f.omapFrom)}} {
		if len(s.data) > 0 {
			debug[s.index] = uint16(len(streams))
			streams = append(streams, s.data)
		}
	}
	var modules, contributions []byte
	for i, m := range f.modules {
		symbols := append(bytesOf(4), m.symbols...)
		modules = append(modules, padded(bytesOf(0, make([]byte, 28), uint16(0), uint16(len(streams)), len(symbols), 0, len(m.c13), uint16(0), uint16(0), 0, 0, 0, "a.obj", "a.lib"))...)
		streams = append(streams, append(symbols, m.c13...))
		for _, c := range m.contributions {
			contributions = append(contributions, bytesOf(uint16(1), uint16(0), c.start, c.end-c.start, 0, uint16(i), uint16(0), 0, 0)...)
		}
	}
	if contributions = append(bytesOf(uint32(0xeffe0000+19970605)), contributions...); f.noTable {
		contributions = nil
	}
	debugBytes := []byte{}
	for _, d := range debug {
		debugBytes = append(debugBytes, bytesOf(d)...)
	}
	streams[dbiStream] = bytesOf(uint32(dbiSignature), 19990903, 3, uint16(noStream), uint16(0), uint16(6), uint16(0), uint16(7), uint16(0),
		len(modules), len(contributions), 0, 0, 0, 0, len(debugBytes), 0, uint16(0), f.machine, 0, modules, contributions, debugBytes)
	return msftest.Container(streams...)
}

func words(list []uint32) (b []byte) {
	for _, w := range list {
		b = append(b, bytesOf(w)...)
	}
	return b
}

// publicStreams are the streams of public symbols and of all global records.
func (f *testFile) publicStreams() (publics, records []byte) {
	records = slices.Clone(f.globals)
	list := slices.Clone(f.publics)
	slices.SortStableFunc(list, func(a, b testPublic) int { return cmp.Or(a.compare(b.place), cmp.Compare(a.name, b.name)) })
	var addresses []byte
	for _, p := range list {
		addresses = append(addresses, bytesOf(len(records))...)
		records = append(records, symbolRecord(kindPublic, p.flags, p.offset, p.section, p.name)...)
	}
	return bytesOf(0, len(addresses), 0, 5, uint16(1), uint16(0), f.thunkTable, 0, addresses), records
}

// open opens the file, with its base at 0x10000.
func (f *testFile) open(t *testing.T) *File {
	t.Helper()
	file, err := New("a.pdb", f.bytes(), testBase)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

const testBase = 0x10000
