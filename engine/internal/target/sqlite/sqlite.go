// SPDX-License-Identifier: Apache-2.0

// Package sqlite reads the rows of tables of a database file of SQLite
// (https://www.sqlite.org/fileformat2.html), from the first to the last. It has no queries, and
// does not write.
package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
)

// Magic begins a database file.
const Magic = "SQLite format 3\x00"

const (
	headerBytes = 100 // of the file, on the first page
	// maxDepth bounds the pages from a table's first page to a row. Pages have at least two
	// children.
	maxDepth = 40
	maxSQL   = 1 << 20 // bytes of a table's definition
)

// Database is a database file.
type Database struct {
	data     []byte
	pageSize int
	usable   int // bytes of a page that have data
	encoding uint32
	tables   []*Table
	// left is how many bytes of overflow pages may still be read: rows may refer to the same
	// ones again and again.
	left int
}

// Table is a table of a database.
type Table struct {
	Name    string
	Columns []string

	db    *Database
	root  uint32
	rowID int // the column that is the number of the row; -1: none
}

// Error is a violation of the format.
type Error struct {
	Page   uint32 // from 1
	Offset int    // in the page
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("page %d, offset %#x: %s", e.Page, e.Offset, e.Reason)
}

var errTable = errors.New("not a database of SQLite")

// The fields of the header.
const (
	pageSizeOffset = 16
	reservedOffset = 20
	encodingOffset = 56
)

// The encodings of texts.
const (
	encodingUTF16LE = 2
	encodingUTF16BE = 3
)

// Open reads the list of tables of a database.
func Open(data []byte) (*Database, error) {
	if len(data) < headerBytes || string(data[:len(Magic)]) != Magic {
		return nil, errTable
	}
	d := &Database{data: data, pageSize: int(binary.BigEndian.Uint16(data[pageSizeOffset:])), encoding: binary.BigEndian.Uint32(data[encodingOffset:]), left: 2 * len(data)}
	if d.pageSize == 1 {
		d.pageSize = 1 << 16
	}
	d.usable = d.pageSize - int(data[reservedOffset])
	const leastPage, leastUsable = 512, 480
	if d.pageSize < leastPage || d.pageSize&(d.pageSize-1) != 0 || d.usable < leastUsable {
		return nil, &Error{1, pageSizeOffset, fmt.Sprintf("pages of %d bytes, of which %d have data, expected a power of 2 from %d to 65536, and at least %d", d.pageSize, d.usable, leastPage, leastUsable)}
	}
	schema := &Table{Columns: []string{"type", "name", "tbl_name", "rootpage", "sql"}, db: d, root: 1, rowID: -1}
	err := schema.Each([]string{"type", "name", "rootpage", "sql"}, func(row []Value) error {
		root, isNumber := row[2].Int()
		if row[0].Text() != "table" || !isNumber || root < 1 || root > 1<<31 {
			return nil
		}
		t := &Table{Name: row[1].Text(), db: d, root: uint32(root)} //nolint:gosec // checked
		sql := row[3].Text()
		t.Columns, t.rowID = parseColumns(sql[:min(len(sql), maxSQL)])
		d.tables = append(d.tables, t)
		return nil
	})
	return d, err
}

// Table returns the table of a name; nil where there is none.
func (d *Database) Table(name string) *Table {
	for _, t := range d.tables {
		if strings.EqualFold(t.Name, name) {
			return t
		}
	}
	return nil
}

// Has reports whether the table has a column.
func (t *Table) Has(column string) bool { return t.column(column) >= 0 }

// column returns the index of a column; -1 where there is none.
func (t *Table) column(name string) int {
	for i, c := range t.Columns {
		if strings.EqualFold(c, name) {
			return i
		}
	}
	return -1
}

// Each calls see for each row with the values of columns, which are valid until it returns. A
// column that the table does not have is null.
func (t *Table) Each(columns []string, see func(row []Value) error) error {
	s := &scan{Table: t, see: see, row: make([]Value, len(columns)), seen: map[uint32]bool{}}
	for i, name := range columns {
		s.wanted = append(s.wanted, wantedColumn{t.column(name), i})
	}
	return s.page(t.root, 0)
}

// page returns a page of the file, and the offset of its B-tree in it.
func (d *Database) page(number uint32) (page []byte, header int, err error) {
	start := (int(number) - 1) * d.pageSize
	if number == 0 || start < 0 || start > len(d.data)-d.pageSize {
		return nil, 0, &Error{number, 0, fmt.Sprintf("the file has %d pages", len(d.data)/d.pageSize)}
	}
	if number == 1 {
		header = headerBytes
	}
	return d.data[start : start+d.pageSize], header, nil
}

// text decodes a text.
func (d *Database) text(b []byte) string {
	if d.encoding != encodingUTF16LE && d.encoding != encodingUTF16BE {
		return string(b)
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		if d.encoding == encodingUTF16BE {
			units[i] = binary.BigEndian.Uint16(b[2*i:])
		} else {
			units[i] = binary.LittleEndian.Uint16(b[2*i:])
		}
	}
	return string(utf16.Decode(units))
}

// Tables returns the tables of the database, in the order of its list.
func (d *Database) Tables() []*Table { return d.tables }

// IsEmpty reports whether the table has no rows, as far as its first page tells.
func (t *Table) IsEmpty() bool {
	page, header, err := t.db.page(t.root)
	return err == nil && page[header] == leafPage && binary.BigEndian.Uint16(page[header+3:]) == 0
}
