// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/cfi"
)

// tableCells is the number of cells after which a table of rows is written, so that an FDE of
// any length takes little memory. The rows behind it have a table of their own.
const tableCells = 1 << 18

// tableColumns is the number of columns above which columns that are undefined or same value
// in every row are a line below the table.
const tableColumns = 12

// WriteRowsText writes the rows of every FDE as a table.
func (c *CallFrames) WriteRowsText(w io.Writer) error {
	b := NewPrinter(w)
	t := &rowTable{CallFrames: c, Printer: b, paint: newPaint(c.Color)}
	var separator layout
	err := c.rows(t.add, func(f *function) error {
		header := fmt.Sprintf("%s+0x%x  0x%x to 0x%x", f.section, f.offset, f.start, f.end)
		if f.code != "" {
			header += " of " + f.code
		}
		b.printf(separator+"%s", t.header(header))
		if f.isSignalFrame {
			b.printf("  signal frame")
		}
		b.printf("\n")
		separator = "\n"
		t.isStarted = false
		return b.check()
	}, func(*function) error {
		if !t.isStarted && len(t.rows) == 0 {
			b.printf("  %s\n", t.faint("no rules"))
		}
		return t.flush()
	}, c.Problem)
	if err != nil {
		return err
	}
	return b.Flush()
}

// rowTable collects rows of one FDE and writes them below each other. There are many FDEs of
// few rows, so its buffers are reused.
type rowTable struct {
	*CallFrames
	*Printer
	paint
	rows      []cfi.Row
	columns   []uint64 // mentioned by any row, sorted
	isStarted bool     // some of the FDE's rows are written
	cells     cells
	line      []byte
}

func (t *rowTable) add(r *cfi.Row) error {
	n := len(t.rows)
	t.rows = slices.Grow(t.rows, 1)[:n+1]
	rules := append(t.rows[n].Rules[:0], r.Rules...)
	t.rows[n] = *r
	t.rows[n].Rules, t.rows[n].CallSite = rules, nil
	for i := range rules {
		if index, found := slices.BinarySearch(t.columns, rules[i].Column); !found {
			t.columns = slices.Insert(t.columns, index, rules[i].Column)
		}
	}
	if len(t.rows)*(2+len(t.columns)) >= tableCells {
		return t.flush()
	}
	return nil
}

// flush writes the collected rows.
func (t *rowTable) flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	columns, below := t.foldColumns()
	hasWindow := slices.ContainsFunc(t.rows, func(r cfi.Row) bool { return r.WindowSave })
	c := &t.cells
	c.begin(2 + len(columns))
	c.add("address")
	c.add("CFA")
	for _, column := range columns {
		c.add(t.Register(column))
	}
	if hasWindow {
		c.widen()
		c.add("window")
	}
	// Expressions have a number in the table and stand below it.
	var numbers map[string]int
	number := func(expr []byte) string {
		n, ok := numbers[string(expr)]
		if !ok {
			n = len(numbers) + 1
			if numbers == nil {
				numbers = map[string]int{}
			}
			numbers[string(expr)] = n
			below = append(below, fmt.Sprintf("[%d] %s", n, t.Expression(expr)))
		}
		return fmt.Sprintf("[%d]", n)
	}
	for i := range t.rows {
		t.addRow(&t.rows[i], columns, number)
		if hasWindow && t.rows[i].WindowSave {
			c.add("saved")
		} else if hasWindow {
			c.add("-")
		}
	}
	t.align()
	for _, s := range below {
		t.printf("  %s\n", s)
	}
	t.rows, t.columns, t.isStarted = t.rows[:0], t.columns[:0], true
	return t.check()
}

// addRow adds the cells of a row. The columns, and its rules, are sorted.
func (t *rowTable) addRow(r *cfi.Row, columns []uint64, number func([]byte) string) {
	c := &t.cells
	c.text = strconv.AppendUint(append(c.text, "0x"...), r.Start, 16)
	c.end()
	c.add(cmp.Or(t.cfa(&r.CFA, number), "-"))
	rules := r.Rules
	for _, column := range columns {
		for len(rules) > 0 && rules[0].Column < column {
			rules = rules[1:]
		}
		switch {
		case len(rules) == 0 || rules[0].Column != column:
			c.add("-")
		case rules[0].Rule.Kind == cfi.Offset: // nearly all
			c.text = append(c.text, "cfa"...)
			c.text = appendSigned(c.text, rules[0].Rule.Offset)
			c.end()
		default:
			c.add(t.rule(&rules[0].Rule, number))
		}
	}
}

// cells are the cells of a table, line by line.
type cells struct {
	text   []byte
	ends   []int // of each cell in text
	widths []int // of each column, in characters
}

// begin begins a table with a number of columns.
func (c *cells) begin(columns int) {
	c.text, c.ends = c.text[:0], c.ends[:0]
	c.widths = append(c.widths[:0], make([]int, columns)...)
}

// widen adds a column while the first line is added.
func (c *cells) widen() { c.widths = append(c.widths, 0) }

func (c *cells) add(text string) {
	c.text = append(c.text, text...)
	c.end()
}

// end ends a cell at the end of text.
func (c *cells) end() {
	start := 0
	if n := len(c.ends); n > 0 {
		start = c.ends[n-1]
	}
	column := len(c.ends) % len(c.widths)
	c.widths[column] = max(c.widths[column], utf8.RuneCount(c.text[start:]))
	c.ends = append(c.ends, len(c.text))
}

// foldColumns returns the columns of the table, and lines for the columns that a wide table
// leaves out.
func (t *rowTable) foldColumns() (columns []uint64, below []string) {
	columns = slices.Clone(t.columns)
	if len(columns) <= tableColumns {
		return columns, nil
	}
	folded := map[uint64]bool{}
	for _, kind := range []cfi.RuleKind{cfi.Undefined, cfi.SameValue} {
		list := t.always(columns, kind)
		for _, column := range list {
			folded[column] = true
		}
		if len(list) > 0 {
			below = append(below, t.rule(&cfi.Rule{Kind: kind}, hexExpr)+": "+t.ranges(list))
		}
	}
	return slices.DeleteFunc(columns, func(column uint64) bool { return folded[column] }), below
}

// align writes the cells in columns, the first line faint.
func (t *rowTable) align() {
	c := &t.cells
	start, last := 0, len(c.widths)-1
	for n, end := range c.ends {
		column := n % len(c.widths)
		if column == 0 {
			t.line = t.line[:0]
		}
		t.line = append(t.line, c.text[start:end]...)
		if column < last {
			for range c.widths[column] - utf8.RuneCount(c.text[start:end]) + 2 {
				t.line = append(t.line, ' ')
			}
		}
		start = end
		switch {
		case column < last:
		case n == last:
			t.printf("  %s\n", t.faint(string(t.line)))
		default:
			t.printLine("  ", t.line)
		}
	}
}

// always are the columns whose rule is of a kind in every row.
func (t *rowTable) always(columns []uint64, kind cfi.RuleKind) []uint64 {
	var list []uint64
	for _, column := range columns {
		every := true
		for i := range t.rows {
			rule, ok := t.rows[i].Rule(column)
			if every = ok && rule.Kind == kind; !every {
				break
			}
		}
		if every {
			list = append(list, column)
		}
	}
	return list
}

// ranges are the names of columns, three and more consecutive ones as the first and the last.
func (t *rowTable) ranges(columns []uint64) string {
	var parts []string
	for i := 0; i < len(columns); {
		j := i
		for j+1 < len(columns) && columns[j+1] == columns[j]+1 {
			j++
		}
		if j > i+1 {
			parts = append(parts, t.Register(columns[i])+" to "+t.Register(columns[j]))
			i = j + 1
			continue
		}
		parts = append(parts, t.Register(columns[i]))
		i++
	}
	return strings.Join(parts, ", ")
}
