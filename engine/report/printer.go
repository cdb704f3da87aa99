// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/fatih/color"

	"github.com/unwindd/unwindd/engine/internal/stackpage"
	"github.com/unwindd/unwindd/internal/escape"
	"github.com/unwindd/unwindd/internal/ondemand"
)

// Printer writes text: for people, and for programs that read lines. Text from a file or a
// plugin may be any bytes, so every argument of Printf is escaped: unprintable characters,
// including line breaks and the start of terminal commands, are written as \n, \x1b, \u202e
// or \xff. Only the format can end a line, and it must be a constant. A Printer is the only
// path to its writer.
type Printer struct {
	w   io.Writer
	b   *bufio.Writer // w, or nil: every Printf is one write
	err error         // of w, where b is nil
}

// NewPrinter makes a Printer that writes to w when it is flushed, or its buffer is full.
func NewPrinter(w io.Writer) *Printer {
	b := bufio.NewWriterSize(w, 1<<16)
	return &Printer{w: b, b: b}
}

// NewLinePrinter makes a Printer that writes to w at once, one write for each Printf. It may
// be used concurrently where w may.
func NewLinePrinter(w io.Writer) *Printer { return &Printer{w: w} }

// layout is text of the program's own. Constants convert to it implicitly; a string that is
// made at run time does not.
type layout string

// Printf writes like fmt.Printf, with its arguments escaped. %c is not to be used: it makes
// characters of numbers.
func (p *Printer) Printf(format layout, args ...any) {
	copied := false
	for i, a := range args {
		if isHarmless(a) {
			continue
		}
		if !copied {
			args, copied = slices.Clone(args), true
		}
		args[i] = foreign{a}
	}
	if p.b != nil {
		fmt.Fprintf(p.b, string(format), args...) // an error stays in it
		return
	}
	if _, err := p.w.Write(fmt.Appendf(nil, string(format), args...)); err != nil {
		p.err = err
	}
}

// printf is an unexported Printf for the reports' own types.
func (p *Printer) printf(format layout, args ...any) { p.Printf(format, args...) }

// printLine writes a line like printf("%s\n", text), with a prefix, where there are so many
// lines that formatting them takes most of the time.
func (p *Printer) printLine(before layout, text []byte) {
	if p.b == nil || !escape.IsPlain(text) {
		p.printf(before+"%s\n", text)
		return
	}
	_, _ = p.b.WriteString(string(before)) // an error stays in it
	_, _ = p.b.Write(text)
	_ = p.b.WriteByte('\n')
}

// Flush writes the buffered text. The error is the first one of all writes.
func (p *Printer) Flush() error {
	if p.b == nil {
		return p.err
	}
	return p.b.Flush()
}

// check returns the error of the writes so far.
func (p *Printer) check() error {
	if p.b == nil {
		return p.err
	}
	_, err := p.b.Write(nil)
	return err
}

// isHarmless reports whether an argument needs no escaping: a number, or text of printable
// ASCII, as nearly all are.
func isHarmless(a any) bool {
	switch a := a.(type) {
	case string:
		return escape.IsPlain(a)
	case []byte:
		return escape.IsPlain(a)
	case painted, int, int32, int64, uint8, uint16, uint32, uint64, float64, bool:
		return true
	}
	return false
}

// foreign is an argument whose text is escaped when it is formatted.
type foreign struct{ value any }

// Format implements fmt.Formatter, for every verb.
func (f foreign) Format(s fmt.State, verb rune) {
	_, _ = io.WriteString(s, escape.Text(fmt.Sprintf(fmt.FormatString(s, verb), f.value)))
}

// painted is escaped text, in a colour.
type painted struct{ text string }

// WithTabs is an argument of Printf in which tabs stay, as in a line of source or of user
// input; everything else is escaped.
func WithTabs(s string) any { return painted{escape.Line(s)} }

// colours matches the terminal codes for a change of colour or weight, and nothing else.
var colours = ondemand.Regexp("\x1b\\[[0-9;]{0,16}m")

// relayed is a line of another program's Printer, with its tabs, and with its colours
// where color is set.
func relayed(line string, color bool) painted {
	if !color {
		return painted{escape.Line(line)}
	}
	text, width := "", 0
	for _, m := range colours().FindAllStringIndex(line, -1) {
		text += escape.Line(line[width:m[0]]) + line[m[0]:m[1]]
		width = m[1]
	}
	return painted{text + escape.Line(line[width:])}
}

// Format implements fmt.Formatter, for every verb.
func (p painted) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, p.text) }

// paint colours the parts of a line; without colour it returns them unchanged.
type paint struct{ header, function, place, faint, warn, device func(string) painted }

func newPaint(isColored bool) paint {
	c := func(attributes ...color.Attribute) func(string) painted {
		if !isColored {
			return func(s string) painted { return painted{escape.Text(s)} }
		}
		p := color.New(attributes...)
		p.EnableColor()
		return func(s string) painted { return painted{p.Sprint(escape.Text(s))} }
	}
	return paint{
		header: c(color.Bold), function: c(color.FgYellow), place: c(color.FgGreen),
		faint: c(color.Faint), warn: c(color.FgRed), device: c(color.FgCyan),
	}
}

// Pieces are between two control characters, with the kind behind the first one. Foreign text
// has none: it is escaped.
const (
	pieceBegins = "\x01"
	pieceEnds   = "\x02"
)

// piecePaint marks pieces in place of colours.
func piecePaint() paint {
	painter := func(kind stackpage.Kind) func(string) painted {
		return func(s string) painted { return painted{pieceBegins + string(kind) + escape.Text(s) + pieceEnds} }
	}
	return paint{
		header: painter(stackpage.Head), function: painter(stackpage.Function), place: painter(stackpage.Place),
		faint: painter(stackpage.Faint), warn: painter(stackpage.Warning), device: painter(stackpage.Device),
	}
}
