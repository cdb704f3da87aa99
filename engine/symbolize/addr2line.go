// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// Addr2line answers questions about addresses as addr2line does: each is a hexadecimal
// number, and all are about one file.
type Addr2line struct {
	Symbolizer *Symbolizer
	Output     WriterOptions // of StyleAddr2line

	File    string
	Section string // addresses are offsets in it; "": in the file's memory
	Inlines bool   // inlined calls are frames of their own
}

// Run answers the questions, or where there are none the lines of input, and writes the
// answers to w. The text of an error is that of addr2line, behind the name of the tool.
func (l *Addr2line) Run(w io.Writer, questions []string, input io.Reader) error {
	f, err := l.Symbolizer.Open(l.File)
	if err != nil {
		return l.cannotOpen(err)
	}
	var section *object.Section
	if l.Section != "" {
		if section = f.Object.Section(l.Section); section == nil {
			return fmt.Errorf("%s: cannot find section %s", l.File, l.Section)
		}
	}
	a := answering{
		out: bufio.NewWriterSize(w, outputBuffer), options: l.Output,
		prepare: func(text string) pending {
			return pending{Answer: Answer{Module: l.File, Address: leadingHex(text), HasAddress: true}, file: f}
		},
		fill: func(p *pending, frames []trace.Symbol) {
			switch {
			case section == nil:
				p.Frames = f.FramesGNU(frames, p.Address, l.Inlines)
			case p.Address < section.Size:
				p.Frames = f.FramesGNU(frames, section.Address+p.Address, l.Inlines)
			}
		},
		failed: func(p *pending) error { return p.err },
	}
	return a.run(questions, input)
}

// cannotOpen is the error of a file that cannot be opened.
func (l *Addr2line) cannotOpen(err error) error {
	text := reason(l.File, err)
	switch {
	case text == "No such file or directory":
		return fmt.Errorf("'%s': No such file", l.File)
	case text == "Is a directory":
		return fmt.Errorf("Warning: '%s' is a directory", l.File)
	case errors.Is(err, object.ErrNotELF), errors.Is(err, object.ErrEmpty):
		return fmt.Errorf("%s: file format not recognized", l.File)
	}
	return fmt.Errorf("%s: %s", l.File, text)
}

// leadingHex is the hexadecimal number at the start of a text, after blanks and 0x; 0 where
// there is none, all ones where it has too many digits.
func leadingHex(text string) uint64 {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "0x"), "0X")
	end := 0
	for end < len(text) && strings.IndexByte("0123456789abcdefABCDEF", text[end]) >= 0 {
		end++
	}
	n, _ := strconv.ParseUint(text[:end], 16, 64)
	return n
}
