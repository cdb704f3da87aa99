// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/hex"
	"fmt"
	"io"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
)

// Expression is an expression of `dump expr`, in JSON. File is a split file, and Offset the
// offset of the entry with the expression.
type Expression struct {
	File    string           `json:"file,omitempty"`
	Section string           `json:"section,omitempty"`
	Offset  string           `json:"offset,omitempty"`
	Where   string           `json:"where,omitempty"`
	Range   *expressionRange `json:"range,omitempty"` // of a location list
	Hex     string           `json:"hex"`
	Text    string           `json:"text"`
}

// expressionRange is the range where an expression of a location list is valid.
type expressionRange struct {
	Start      string  `json:"start,omitempty"`
	End        string  `json:"end,omitempty"`
	StartIndex *uint64 `json:"start_index,omitempty"`
	EndIndex   *uint64 `json:"end_index,omitempty"`
	Code       string  `json:"code,omitempty"`
	Default    bool    `json:"default,omitempty"`
	Dropped    bool    `json:"dropped,omitempty"`
}

func newExpressionRange(r *dwarf.Range) *expressionRange {
	switch {
	case r == nil:
		return nil
	case r.IsDefault:
		return &expressionRange{Default: true}
	case r.IsDropped:
		return &expressionRange{Dropped: true}
	}
	return &expressionRange{
		Start: fmt.Sprintf("0x%x", r.Start), End: fmt.Sprintf("0x%x", r.End),
		StartIndex: r.StartIndex, EndIndex: r.EndIndex, Code: r.Code,
	}
}

// rangeText is a range as a column of text; "" where there is none.
func rangeText(r *dwarf.Range) string {
	switch {
	case r == nil:
		return ""
	case r.IsDefault:
		return "elsewhere  "
	case r.IsDropped:
		return "dropped  "
	}
	text := rangeAddress(r.Start, r.StartIndex) + " to " + rangeAddress(r.End, r.EndIndex)
	if r.Code != "" {
		text += " of " + r.Code
	}
	return text + "  "
}

func rangeAddress(address uint64, index *uint64) string {
	if index != nil {
		return fmt.Sprintf("addr[%d]+0x%x", *index, address)
	}
	return fmt.Sprintf("0x%x", address)
}

// WriteText writes the expressions, a line each. Errors of reading go to problem.
func (r *ObjectExpressions) WriteText(w io.Writer, problem func(error)) error {
	p := NewPrinter(w)
	file := ""
	for e, err := range r.List {
		if err != nil {
			problem(err)
			continue
		}
		if e.File != file {
			file = e.File
			p.printf("%s\n", file)
		}
		p.printf("%-12s 0x%08x  %-28s %s%s\n", e.Section, e.Offset, e.Where, rangeText(e.Range), r.Text(e.Bytes))
		if err := p.check(); err != nil {
			return err
		}
	}
	return p.Flush()
}

// WriteJSON writes {"expressions":[...],"problems":[...]}, an expression a line.
func (r *ObjectExpressions) WriteJSON(w io.Writer) error {
	l := newJSONList(w, "expressions")
	for e, err := range r.List {
		if err != nil {
			l.problems.add(err)
			continue
		}
		line, err := marshal(Expression{
			e.File, e.Section, fmt.Sprintf("0x%x", e.Offset), e.Where, newExpressionRange(e.Range), hex.EncodeToString(e.Bytes), r.Text(e.Bytes),
		})
		if err != nil {
			return err
		}
		l.next()
		l.put(line)
		if err := l.check(); err != nil {
			return err
		}
	}
	return l.finish()
}
