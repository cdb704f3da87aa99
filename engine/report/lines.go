// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"iter"

	"github.com/unwindd/unwindd/engine/internal/listing"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// Lines writes the line tables of a code object as a stream.
type Lines struct {
	// Rows are the rows by address. The last errors are problems of the whole.
	Rows iter.Seq2[*listing.LineRow, error]
	// Problem receives problems that are not part of the output.
	Problem func(error)
	Color   bool
}

// NewLines returns the lines of a code object. d is the description of its architecture; nil: none
// has claimed it.
func NewLines(o *object.Object, d *sdk.Description) (*Lines, error) {
	laid, err := o.LaidOut()
	if err != nil {
		return nil, err
	}
	if d != nil {
		laid.SetRelocations(d.Relocations)
	}
	return &Lines{Rows: listing.LineRows(laid)}, nil
}

// WriteText writes a line for each row: its addresses, and the position and the function, innermost
// first. Lines of PTX are below. Where sections have no addresses each begins with its name.
func (l *Lines) WriteText(w io.Writer) error {
	b, paint := NewPrinter(w), newPaint(l.Color)
	section := ""
	for r, err := range l.Rows {
		if err != nil {
			l.Problem(err)
			continue
		}
		if r.Section != section {
			section = r.Section
			b.printf("%s\n", paint.header(section))
		}
		b.printf("0x%04x-0x%04x ", r.Start, r.End)
		for i := range r.Frames {
			b.printf(separators[min(i, 1)]+"%s %s", linePosition(&r.Frames[i]), lineFunction(&r.Frames[i]))
		}
		b.printf("\n")
		for i := range r.PTX {
			p := &r.PTX[i]
			b.printf("  0x%04x  %s\n", p.Start, paint.faint(fmt.Sprintf("PTX %d: %s", p.Line, p.Text)))
		}
		if err := b.check(); err != nil {
			return err
		}
	}
	return b.Flush()
}

// separators stand before the first frame and before one that has an inlined call.
var separators = [2]layout{" ", " <- "}

func linePosition(s *trace.Symbol) string {
	file := s.File
	if file == "" {
		file = "??"
	}
	if s.Column > 0 {
		return fmt.Sprintf("%s:%d:%d", file, s.Line, s.Column)
	}
	return fmt.Sprintf("%s:%d", file, s.Line)
}

func lineFunction(s *trace.Symbol) string {
	if s.Function == "" {
		return "??"
	}
	return s.Function
}

// jsonLineRow is a row of a line table.
type jsonLineRow struct {
	Section string          `json:"section,omitempty"`
	Start   string          `json:"start"`
	End     string          `json:"end"`
	Frames  []jsonLineFrame `json:"frames"`
	PTX     []jsonPTXRow    `json:"ptx,omitempty"`
}

type jsonLineFrame struct {
	Function    string `json:"function,omitempty"`
	LinkageName string `json:"linkage_name,omitempty"`
	File        string `json:"file,omitempty"`
	Line        int    `json:"line,omitempty"`
	Column      int    `json:"column,omitempty"`
}

type jsonPTXRow struct {
	Start string `json:"start"`
	End   string `json:"end"`
	Line  int    `json:"line"`
	Text  string `json:"text,omitempty"`
}

// WriteJSON writes the rows, one line each, and the problems.
func (l *Lines) WriteJSON(w io.Writer) error {
	list := newJSONList(w, "rows")
	for r, err := range l.Rows {
		if err != nil {
			list.problems.add(err)
			continue
		}
		out := jsonLineRow{Section: r.Section, Start: hexNumber(r.Start), End: hexNumber(r.End)}
		for i := range r.Frames {
			f := &r.Frames[i]
			out.Frames = append(out.Frames, jsonLineFrame{f.Function, f.LinkageName, f.File, f.Line, f.Column})
		}
		for _, p := range r.PTX {
			out.PTX = append(out.PTX, jsonPTXRow{hexNumber(p.Start), hexNumber(p.End), p.Line, p.Text})
		}
		text, err := marshal(out)
		if err != nil {
			return err
		}
		list.next()
		list.put(text)
		if err := list.check(); err != nil {
			return err
		}
	}
	return list.finish()
}
