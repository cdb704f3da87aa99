// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/unwindd/unwindd/engine/report"
)

// sections are the sections of several targets in one text of Markdown, which together have the
// characters that an issue takes. Other formats have no such bound.
type sections struct {
	flags *stackFlags
	count int // of targets that are still to come
	room  int // bytes that are left
	some  bool
	more  int // sections that were left out
}

// lastLine is the room for the line about sections that are left out.
const lastLine = 100

// leastSection is the room that a section is worth.
const leastSection = 1000

// newSections makes the sections of a number of targets.
func newSections(f *stackFlags, count int) *sections {
	return &sections{flags: f, count: count, room: report.MaxMarkdown - lastLine}
}

// next gives the next target its share of the room.
func (s *sections) next() {
	s.flags.most = max(s.room/max(s.count, 1)-1, leastSection)
	s.count--
}

// write writes the section of a target, where there is room for it.
func (s *sections) write(ctx context.Context, p prepared, w *writer) error {
	if s.flags.format != "markdown" {
		return p.write(ctx, w)
	}
	var b bytes.Buffer
	if s.some {
		b.WriteByte('\n')
	}
	if err := p.write(ctx, &writer{&b, false, w.file}); err != nil {
		return err
	}
	if b.Len() > s.room {
		s.more++
		return nil
	}
	s.some = true
	s.room -= b.Len()
	_, err := w.Write(b.Bytes())
	return err
}

// end writes how many sections are left out.
func (s *sections) end(w io.Writer) error {
	if s.more == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%d more targets left out: an issue takes %d characters.\n", s.more, report.MaxMarkdown)
	return err
}
