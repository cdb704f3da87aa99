// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// HotSpot describes its own structures in four tables of pointers and numbers, for its
// Serviceability Agent. Beside each table there are variables with the places of its columns.

const (
	// maxEntries bounds the entries of one table. HotSpot 17 has 1,300 in its largest.
	maxEntries = 1 << 14
	// maxStride bounds the size of an entry, in bytes.
	maxStride = 256
	// maxNameLength bounds the names in the tables, in bytes.
	maxNameLength = 512
)

// The tables.
const (
	tableStructs = iota
	tableTypes
	tableInts
	tableLongs
)

// tableShape is the symbols of a table.
type tableShape struct {
	array, entry string
	columns      []string
}

// tableShapes are the symbols of the tables.
var tableShapes = [...]tableShape{
	tableStructs: {"gHotSpotVMStructs", "gHotSpotVMStructEntry", []string{"TypeName", "FieldName", "TypeString", "IsStatic", "Offset", "Address"}},
	tableTypes:   {"gHotSpotVMTypes", "gHotSpotVMTypeEntry", []string{"TypeName", "Size"}},
	tableInts:    {"gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntry", []string{"Name", "Value"}},
	tableLongs:   {"gHotSpotVMLongConstants", "gHotSpotVMLongConstantEntry", []string{"Name", "Value"}},
}

// tableSymbols are the names of the tables' variables, in the order in which readTables takes them.
func tableSymbols() (names []string) {
	for _, t := range tableShapes {
		names = append(names, t.array, t.entry+"ArrayStride")
		for _, c := range t.columns {
			names = append(names, t.entry+c+"Offset")
		}
	}
	return names
}

// field is the place of a member in its structure. The zero field is one that this version of
// HotSpot does not have.
type field struct {
	offset, size uint64
	isSigned     bool
	isKnown      bool
	isHandle     bool // it points to a reference
}

// tables are HotSpot's description of its structures.
type tables struct {
	fields    map[string]field  // by "Type::member"
	statics   map[string]uint64 // addresses of variables, by "Type::member"
	sizes     map[string]uint64 // of types, by name
	constants map[string]int64
}

// tableReader reads the tables.
type tableReader struct {
	*sdk.MemoryReader
	names map[uint64]string // by address
}

// tableEntries are the entries of a table: the bytes of each column.
type tableEntries struct {
	data    []byte
	stride  uint64
	columns []uint64
}

func (t *tableEntries) count() int { return len(t.data) / int(t.stride) } //nolint:gosec // at most maxStride

// bytes returns the bytes of a column of an entry.
func (t *tableEntries) bytes(entry, column int, size uint64) []byte {
	return t.data[uint64(entry)*t.stride+t.columns[column]:][:size] //nolint:gosec // an index
}

// readTables reads the tables whose variables are at the first of the places.
func readTables(m *sdk.MemoryReader, places []sdk.SymbolPlace) (*tables, error) {
	if len(places) < len(tableSymbols()) {
		return nil, errors.New("the engine says nothing of its symbols")
	}
	r := &tableReader{m, map[uint64]string{}}
	var all [len(tableShapes)]*tableEntries
	for i := range tableShapes {
		n := 2 + len(tableShapes[i].columns)
		t, err := r.entries(&tableShapes[i], places[:n])
		if err != nil {
			return nil, err
		}
		all[i], places = t, places[n:]
	}
	t := &tables{map[string]field{}, map[string]uint64{}, map[string]uint64{}, map[string]int64{}}
	for _, i := range []int{tableInts, tableLongs} {
		if err := r.constants(t, all[i], uint64(4+4*(i-tableInts))); err != nil { //nolint:gosec // 4 or 8
			return nil, err
		}
	}
	if err := r.types(t, all[tableTypes]); err != nil {
		return nil, err
	}
	return t, r.structs(t, all[tableStructs])
}

// entries reads a table up to the entry whose name is null.
func (r *tableReader) entries(shape *tableShape, places []sdk.SymbolPlace) (*tableEntries, error) {
	values := make([]uint64, len(places))
	for i := range places {
		if !places[i].IsKnown {
			return nil, fmt.Errorf("the module has no variable for column %d of %s", i-2, shape.array)
		}
		var err error
		if values[i], err = r.Uint(places[i].Address, 8); err != nil {
			return nil, fmt.Errorf("%s: %w", shape.array, err)
		}
	}
	t := &tableEntries{stride: values[1], columns: values[2:]}
	if t.stride < 16 || t.stride > maxStride || t.stride%8 != 0 {
		return nil, fmt.Errorf("%s has entries of %d bytes, expected 16 to %d", shape.array, t.stride, maxStride)
	}
	for i, at := range t.columns {
		if at > t.stride-8 || at%4 != 0 {
			return nil, fmt.Errorf("%s has column %s at %d of %d", shape.array, shape.columns[i], at, t.stride)
		}
	}
	r.Prefetch(values[:1], 64<<10)
	for at := values[0]; ; at += t.stride {
		entry, err := r.Bytes(at, t.stride)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", shape.array, err)
		}
		if r.Number(entry[t.columns[0]:][:8]) == 0 {
			return t, nil
		}
		if t.count() >= maxEntries {
			return nil, fmt.Errorf("%s has no end in %d entries", shape.array, maxEntries)
		}
		t.data = append(t.data, entry...)
	}
}

// name reads a name, once.
func (r *tableReader) name(b []byte) (string, error) {
	address := r.Number(b)
	name, isKnown := r.names[address]
	if isKnown || address == 0 {
		return name, nil
	}
	name, err := r.Text(address, maxNameLength)
	if err == nil {
		r.names[address] = name
	}
	return name, err
}

// prefetch reads ahead the names of columns, of the entries that is selects.
func (r *tableReader) prefetch(t *tableEntries, is func(entry int) bool, columns ...int) {
	var list []uint64
	for i := range t.count() {
		for _, c := range columns {
			if is == nil || is(i) {
				list = append(list, r.Number(t.bytes(i, c, 8)))
			}
		}
	}
	r.Prefetch(list, 64)
}

// constants takes the named constants of a table.
func (r *tableReader) constants(into *tables, t *tableEntries, size uint64) error {
	r.prefetch(t, nil, 0)
	for i := range t.count() {
		name, err := r.name(t.bytes(i, 0, 8))
		if err != nil {
			return fmt.Errorf("a constant: %w", err)
		}
		into.constants[name] = signed(r.Number(t.bytes(i, 1, size)), size)
	}
	return nil
}

// types takes the sizes of types.
func (r *tableReader) types(into *tables, t *tableEntries) error {
	r.prefetch(t, nil, 0)
	for i := range t.count() {
		name, err := r.name(t.bytes(i, 0, 8))
		if err != nil {
			return fmt.Errorf("a type: %w", err)
		}
		into.sizes[name] = r.Number(t.bytes(i, 1, 8))
	}
	return nil
}

// structs takes the members of structures that the plugin knows.
func (r *tableReader) structs(into *tables, t *tableEntries) error {
	r.prefetch(t, nil, 0)
	known := knownTypes()
	isKnown := make([]bool, t.count())
	for i := range isKnown {
		name, err := r.name(t.bytes(i, 0, 8))
		if err != nil {
			return fmt.Errorf("a structure: %w", err)
		}
		isKnown[i] = known[name]
	}
	r.prefetch(t, func(i int) bool { return isKnown[i] }, 1, 2)
	for i := range isKnown {
		if !isKnown[i] {
			continue
		}
		var names [3]string // of the structure, the member and its type
		for c := range names {
			var err error
			if names[c], err = r.name(t.bytes(i, c, 8)); err != nil {
				return fmt.Errorf("a member: %w", err)
			}
		}
		key := names[0] + "::" + names[1]
		if r.Number(t.bytes(i, 3, 4)) != 0 {
			into.statics[key] = r.Number(t.bytes(i, 5, 8))
			continue
		}
		size, isSigned := into.sizeOf(names[2])
		into.fields[key] = field{r.Number(t.bytes(i, 4, 8)), size, isSigned, true, strings.Contains(names[2], "Handle")}
	}
	return nil
}

// numberSizes are the sizes of types that the table of types may not have.
var numberSizes = map[string]field{
	"int": {size: 4, isSigned: true}, "const int": {size: 4, isSigned: true}, "jint": {size: 4, isSigned: true},
	"const uint": {size: 4}, "uint32_t": {size: 4}, "unsigned int": {size: 4}, "juint": {size: 4}, "u4": {size: 4},
	"u2": {size: 2}, "int16_t": {size: 2, isSigned: true}, "jushort": {size: 2}, "u1": {size: 1}, "bool": {size: 1}, "unsigned char": {size: 1},
	"address": {size: 8}, "size_t": {size: 8}, "intptr_t": {size: 8, isSigned: true}, "uintptr_t": {size: 8}, "int64_t": {size: 8, isSigned: true},
	"oop": {size: 8}, "": {size: 8}, "OopHandle": {size: 8}, "markOop": {size: 8}, "pid_t": {size: 4},
}

// sizeOf returns the size of a type that is a number; 0 for a larger one.
func (t *tables) sizeOf(name string) (size uint64, isSigned bool) {
	bare := strings.TrimSpace(strings.ReplaceAll(name, "volatile", ""))
	if strings.HasSuffix(bare, "*") || strings.HasSuffix(bare, "* const") || strings.HasSuffix(bare, "*const") {
		return 8, false
	}
	if n, ok := numberSizes[bare]; ok {
		return n.size, n.isSigned
	}
	if n := t.sizes[bare]; n == 1 || n == 2 || n == 4 || n == 8 {
		return n, false
	}
	return 0, false
}

// signed returns the signed number in the low bytes of n.
func signed(n, size uint64) int64 {
	shift := 64 - 8*size
	return int64(n<<shift) >> shift //nolint:gosec // the bits of a number
}
