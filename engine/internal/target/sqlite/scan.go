// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"encoding/binary"
	"fmt"
	"math"
)

// scan goes over the rows of a table.
type scan struct {
	*Table
	see    func(row []Value) error
	wanted []wantedColumn
	row    []Value
	seen   map[uint32]bool // pages
	buffer []byte          // of a row that is on several pages
}

// wantedColumn is a column of a table, and its place among the wanted ones.
type wantedColumn struct{ column, index int }

// The types of pages of tables.
const (
	interiorPage = 5
	leafPage     = 13
)

// page goes over the rows on and below a page.
func (s *scan) page(number uint32, depth int) error {
	if depth > maxDepth || s.seen[number] {
		return &Error{number, 0, "the pages of a table lead back to it"}
	}
	s.seen[number] = true
	page, header, err := s.db.page(number)
	if err != nil {
		return err
	}
	const leafHeader, interiorHeader = 8, 12
	kind, size := page[header], leafHeader
	switch kind {
	case leafPage:
	case interiorPage:
		size = interiorHeader
	default:
		return &Error{number, header, fmt.Sprintf("page type %d, expected %d or %d: tables without row numbers are not read", kind, interiorPage, leafPage)}
	}
	cells := int(binary.BigEndian.Uint16(page[header+3:]))
	first := header + size
	if cells > (s.db.usable-first)/2 {
		return &Error{number, header + 3, fmt.Sprintf("%d cells, expected at most %d", cells, (s.db.usable-first)/2)}
	}
	for i := range cells {
		at := int(binary.BigEndian.Uint16(page[first+2*i:]))
		if at < first || at > s.db.usable-4 {
			return &Error{number, first + 2*i, fmt.Sprintf("cell at %#x, expected it from %#x on", at, first)}
		}
		if kind == interiorPage {
			err = s.page(binary.BigEndian.Uint32(page[at:]), depth+1)
		} else {
			err = s.cell(number, page[:s.db.usable], at)
		}
		if err != nil {
			return err
		}
	}
	if kind == interiorPage {
		return s.page(binary.BigEndian.Uint32(page[header+8:]), depth+1)
	}
	return nil
}

// cell reads a row.
func (s *scan) cell(number uint32, page []byte, offset int) error {
	size, n := uvarint(page[offset:])
	id, m := uvarint(page[offset+n:])
	start := offset + n + m
	if n == 0 || m == 0 || size > uint64(len(s.db.data)) {
		return &Error{number, offset, "a row that does not end"}
	}
	payload, err := s.payload(number, page, start, int(size)) //nolint:gosec // checked
	if err != nil {
		return err
	}
	if reason := s.record(payload, int64(id)); reason != "" { //nolint:gosec // of 64 bits
		return &Error{number, start, reason}
	}
	return s.see(s.row)
}

// payload returns the bytes of a row: on the page, or for a large one on further pages, too.
func (s *scan) payload(number uint32, page []byte, start, size int) ([]byte, error) {
	most := s.db.usable - 35
	if size <= most {
		if size > len(page)-start {
			return nil, &Error{number, start, fmt.Sprintf("a row of %d bytes, where the page has %d", size, len(page)-start)}
		}
		return page[start : start+size], nil
	}
	least := (s.db.usable-12)*32/255 - 23
	local := least + (size-least)%(s.db.usable-4)
	if local > most {
		local = least
	}
	if local+4 > len(page)-start {
		return nil, &Error{number, start, "a row that is larger than its page"}
	}
	if s.db.left -= size; s.db.left < 0 {
		return nil, &Error{number, start, "rows share pages"}
	}
	s.buffer = append(s.buffer[:0], page[start:start+local]...)
	next := binary.BigEndian.Uint32(page[start+local:])
	for len(s.buffer) < size {
		more, _, err := s.db.page(next)
		if err != nil {
			return nil, err
		}
		s.buffer = append(s.buffer, more[4:min(s.db.usable, 4+size-len(s.buffer))]...)
		next = binary.BigEndian.Uint32(more)
	}
	return s.buffer, nil
}

// record reads the values of the wanted columns; reason is why it cannot.
func (s *scan) record(payload []byte, id int64) (reason string) {
	for i := range s.row {
		s.row[i] = Value{}
	}
	headerSize, n := uvarint(payload)
	if n == 0 || headerSize > uint64(len(payload)) || headerSize < uint64(n) {
		return "the header of a row is larger than the row"
	}
	header, body := payload[n:headerSize], payload[headerSize:]
	for column := 0; len(header) > 0; column++ {
		kind, n := uvarint(header)
		if n == 0 {
			return "the type of a value does not end"
		}
		header = header[n:]
		size := sizeOf(kind)
		if size > uint64(len(body)) {
			return fmt.Sprintf("a value of %d bytes, where the row has %d", size, len(body))
		}
		for _, w := range s.wanted {
			if w.column == column {
				s.row[w.index] = Value{kind: kind, data: body[:size], db: s.db}
			}
		}
		body = body[size:]
	}
	for _, w := range s.wanted {
		if w.column >= 0 && w.column == s.rowID {
			s.row[w.index] = Value{kind: kindRowID, id: id}
		}
	}
	return ""
}

// uvarint reads a number of one to nine bytes; n is 0 where it does not end.
func uvarint(b []byte) (v uint64, n int) {
	const most = 9
	for i := range min(len(b), most) {
		if i == most-1 {
			return v<<8 | uint64(b[i]), most
		}
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i]&0x80 == 0 {
			return v, i + 1
		}
	}
	return 0, 0
}

// The types of values.
const (
	kindNull  = 0
	kindFloat = 7
	kindZero  = 8
	kindOne   = 9
	kindBlob  = 12 // and even numbers above; odd ones are texts
	// kindRowID is no type of the format: the value is the number of the row.
	kindRowID = math.MaxUint64
)

// sizes are the bytes of values of the first types.
var sizes = [kindBlob]uint64{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0}

func sizeOf(kind uint64) uint64 {
	if kind < kindBlob {
		return sizes[kind]
	}
	return (kind - kindBlob) / 2
}

// Value is a value of a row.
type Value struct {
	kind uint64
	data []byte
	id   int64
	db   *Database
}

// IsNull reports whether there is no value.
func (v *Value) IsNull() bool { return v.kind == kindNull }

// Int returns a whole number; false for other values.
func (v *Value) Int() (int64, bool) {
	switch {
	case v.kind == kindRowID:
		return v.id, true
	case v.kind == kindZero:
		return 0, true
	case v.kind == kindOne:
		return 1, true
	case v.kind == kindNull || v.kind > 6:
		return 0, false
	}
	n := int64(int8(v.data[0])) //nolint:gosec // its sign
	for _, b := range v.data[1:] {
		n = n<<8 | int64(b)
	}
	return n, true
}

// Text returns a text; "" for other values.
func (v *Value) Text() string {
	if v.kind == kindRowID || v.kind < kindBlob || v.kind%2 == 0 {
		return ""
	}
	return v.db.text(v.data)
}

// Float returns a number with a fraction; false for other values.
func (v *Value) Float() (float64, bool) {
	if v.kind != kindFloat {
		return 0, false
	}
	return math.Float64frombits(binary.BigEndian.Uint64(v.data)), true
}
