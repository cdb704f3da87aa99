// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/cfi"
)

// A table of rows is written when it has so many cells, so that an FDE of any
// length takes little memory. What follows has a table of its own.
const tableCells = 1 << 18

// In a table of more columns than this, those that say undefined or the same
// value in every row are a line below it.
const tableColumns = 12

// WriteRowsText writes the rows of every FDE as a table.
func (c *CallFrames) WriteRowsText(w io.Writer) error {
	b := NewPrinter(w)
	t := &rowTable{CallFrames: c, Printer: b, paint: newPaint(c.Color), columns: map[uint64]bool{}}
	var separator layout
	err := c.rows(t.add, func(f *function) error {
		head := fmt.Sprintf("%s+0x%x  0x%x to 0x%x", f.section, f.offset, f.start, f.end)
		if f.code != "" {
			head += " of " + f.code
		}
		b.printf(separator+"%s", t.head(head))
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

// A rowTable collects rows of one FDE and writes them below each other.
type rowTable struct {
	*CallFrames
	*Printer
	paint
	rows      []*cfi.Row
	columns   map[uint64]bool // that any row mentions
	isStarted bool            // part of the FDE's rows is written
}

func (t *rowTable) add(r *cfi.Row) error {
	t.rows = append(t.rows, r.Clone())
	for i := range r.Rules {
		t.columns[r.Rules[i].Column] = true
	}
	if len(t.rows)*(2+len(t.columns)) >= tableCells {
		return t.flush()
	}
	return nil
}

// flush writes the rows that there are.
func (t *rowTable) flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	columns, below := t.foldColumns()
	line := []string{"address", "CFA"}
	at := map[uint64]int{}
	for _, column := range columns {
		at[column] = len(line)
		line = append(line, t.Register(column))
	}
	window := len(line)
	for _, r := range t.rows {
		if r.WindowSave {
			line = append(line, "window")
			break
		}
	}
	// Expressions have a number in the table and stand below it.
	numbers := map[string]int{}
	number := func(expr []byte) string {
		n, ok := numbers[string(expr)]
		if !ok {
			n = len(numbers) + 1
			numbers[string(expr)] = n
			below = append(below, fmt.Sprintf("[%d] %s", n, t.Expression(expr)))
		}
		return fmt.Sprintf("[%d]", n)
	}
	cells := [][]string{line}
	for _, r := range t.rows {
		line := make([]string, len(line))
		for i := range line {
			line[i] = "-"
		}
		line[0] = fmt.Sprintf("0x%x", r.Start)
		if cfa := t.cfa(&r.CFA, number); cfa != "" {
			line[1] = cfa
		}
		for i := range r.Rules {
			if j, ok := at[r.Rules[i].Column]; ok {
				line[j] = t.rule(&r.Rules[i].Rule, number)
			}
		}
		if r.WindowSave {
			line[window] = "saved"
		}
		cells = append(cells, line)
	}
	t.align(cells)
	for _, s := range below {
		t.printf("  %s\n", s)
	}
	t.rows, t.isStarted = t.rows[:0], true
	clear(t.columns)
	return t.check()
}

// foldColumns returns the columns of the table, and the lines below it that stand
// for those that a wide table leaves out.
func (t *rowTable) foldColumns() (columns []uint64, below []string) {
	columns = slices.Sorted(maps.Keys(t.columns))
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

// align writes cells in columns, the first line faint.
func (t *rowTable) align(cells [][]string) {
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text []byte
	for n, line := range cells {
		text = text[:0]
		for i, cell := range line {
			text = append(text, cell...)
			if i == len(line)-1 {
				break
			}
			for range widths[i] - utf8.RuneCountInString(cell) + 2 {
				text = append(text, ' ')
			}
		}
		if n == 0 {
			t.printf("  %s\n", t.faint(string(text)))
		} else {
			t.printf("  %s\n", text)
		}
	}
}

// always are the columns whose rule is of a kind in every row.
func (t *rowTable) always(columns []uint64, kind cfi.RuleKind) []uint64 {
	var list []uint64
	for _, column := range columns {
		every := true
		for _, r := range t.rows {
			rule, ok := r.Rule(column)
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

// ranges are the names of columns, three and more that follow each other as the
// first and the last.
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
