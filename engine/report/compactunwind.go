// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/listing"
)

// jsonCompact is an entry of compact unwind information, in `dump cfi`.
type jsonCompact struct {
	Section     string  `json:"section"`
	Offset      uint64  `json:"offset"`
	Kind        string  `json:"kind"` // "COMPACT_UNWIND"
	Start       string  `json:"start"`
	End         string  `json:"end"`
	Encoding    string  `json:"encoding"`
	Mode        string  `json:"mode"` // "RBP_FRAME"
	LSDA        bool    `json:"lsda,omitempty"`
	Personality int     `json:"personality,omitempty"` // from 1 on
	Part        bool    `json:"part,omitempty"`        // it is no beginning of a function
	FDE         *uint64 `json:"fde,omitempty"`         // its offset in __eh_frame
}

// compact is an entry in the format of the output.
func compact(e *listing.CompactEntry) jsonCompact {
	r := rangeOf(e.Start, e.End)
	out := jsonCompact{
		Section: e.Section, Offset: e.Offset, Kind: "COMPACT_UNWIND", Start: r.Start, End: r.End,
		Encoding: fmt.Sprintf("0x%08x", uint32(e.Encoding)), Mode: e.Name,
		LSDA: e.Encoding.HasLSDA(), Personality: e.Encoding.Personality(), Part: e.Encoding.IsPart(),
	}
	if e.HasFDE {
		offset := e.Encoding.FDE()
		out.FDE = &offset
	}
	return out
}

// compactJSON adds the entries of compact unwind information to a list.
func (c *CallFrames) compactJSON(l *jsonList) error {
	return entriesJSON(l, c.Compact, func(e *listing.CompactEntry) (string, error) { return marshal(compact(e)) })
}

// compactText writes the entries of compact unwind information for people; blank separates them from
// earlier output.
func (c *CallFrames) compactText(b *Printer, p paint, blank layout) error {
	if c.Compact == nil {
		return nil
	}
	for e, err := range c.Compact {
		if err != nil {
			c.Problem(err)
			continue
		}
		b.printf(blank)
		blank = ""
		out := compact(e)
		fields := []string{out.Encoding, out.Mode}
		if out.FDE != nil {
			fields = append(fields, fmt.Sprintf("FDE %08x", *out.FDE))
		}
		if out.LSDA {
			fields = append(fields, "LSDA")
		}
		if out.Personality != 0 {
			fields = append(fields, fmt.Sprintf("personality %d", out.Personality))
		}
		if out.Part {
			fields = append(fields, "part of a function")
		}
		b.printf("%s+%08x  %s  %s to %s  %s\n", out.Section, out.Offset, p.function(out.Kind), out.Start, out.End, strings.Join(fields, ", "))
		if err := b.check(); err != nil {
			return err
		}
	}
	return nil
}

// compactFunctions calls one for every entry of compact unwind information that has a row.
func (c *CallFrames) compactFunctions(one func(*function) error, problem func(error)) error {
	if c.Compact == nil {
		return nil
	}
	for e, err := range c.Compact {
		if err != nil {
			problem(err)
			continue
		}
		if !e.HasRow {
			continue
		}
		f := function{section: e.Section, offset: e.Offset, start: e.Start, end: e.End, rows: func(yield func(*cfi.Row) bool) error {
			var row cfi.Row
			if err := e.Row(&row); err != nil {
				return err
			}
			yield(&row)
			return nil
		}}
		if err := one(&f); err != nil {
			return err
		}
	}
	return nil
}
