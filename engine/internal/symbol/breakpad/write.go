// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// Source has the data that Write writes. A nil function has none; an error that one returns
// ends Write.
type Source struct {
	Module Module
	Infos  []string // INFO records without their first word
	// Functions calls yield with every function, until it returns false. It is called
	// twice: names of files and of inlined functions come first in the file.
	Functions func(yield func(*SourceFunction) bool) error
	Publics   func(yield func(Symbol) bool) error
	// FrameData calls yield with the frame data of 32-bit x86, by addresses of the file.
	FrameData func(yield func(*symbol.FrameData) bool) error
	// Frames calls yield with every range of code that has rows, such as an FDE.
	Frames func(yield func(*SourceFrame) bool) error
	// Register returns the name of a register in the module's STACK CFI records by its
	// DWARF number; false when it has none.
	Register func(number uint64) (name string, ok bool)
}

// SourceFunction is a function to be written. One with several ranges becomes a FUNC record
// for each, with the lines and inlined calls in it.
type SourceFunction struct {
	Name          string
	Ranges        []Range
	ParameterSize uint64
	Multiple      bool
	Lines         []Line   // by address, disjoint
	Inlines       []Inline // each after the call around it
}

// SourceFrame is a range of code and its rows: Rows calls yield with each, by address,
// until it returns false. The row may be reused.
type SourceFrame struct {
	Range
	Rows func(yield func(*cfi.Row) bool) error
}

// Written counts the records written, and the data that has no record.
type Written struct {
	Counts
	// Unwritten counts the rows that no STACK CFI record can express: their CFA is an
	// expression with operations that have no equivalent, or .ra has no rule. Their code
	// has no record. Lost counts such rules of other registers; they are written as .undef.
	Unwritten, Lost int
}

// Write writes a symbol file as dump_syms does: MODULE, INFO, FILE and INLINE_ORIGIN by
// name, FUNC, PUBLIC, STACK WIN, STACK CFI. Line feeds in names, which would begin another record,
// become spaces.
func Write(w io.Writer, s *Source) (Written, error) {
	x := writer{w: bufio.NewWriterSize(w, 64<<10), s: s}
	err := x.all()
	if flushed := x.w.Flush(); err == nil {
		err = flushed
	}
	return x.done, err
}

type writer struct {
	w              *bufio.Writer
	s              *Source
	files, origins map[string]int
	done           Written
}

// omitted is written in place of an unknown name.
const omitted = "<name omitted>"

func (x *writer) all() error {
	m := &x.s.Module
	fmt.Fprintf(x.w, "MODULE %s %s %s %s\n", field(m.OS), field(m.Arch), field(m.ID), text(m.Name))
	for _, info := range x.s.Infos {
		fmt.Fprintf(x.w, "INFO %s\n", text(info))
	}
	if err := x.names(); err != nil {
		return err
	}
	if x.s.Functions != nil {
		if err := x.s.Functions(func(fn *SourceFunction) bool { x.function(fn); return true }); err != nil {
			return err
		}
	}
	if x.s.Publics != nil {
		if err := x.s.Publics(func(s Symbol) bool { x.public(s); return true }); err != nil {
			return err
		}
	}
	if x.s.FrameData != nil {
		if err := x.s.FrameData(func(d *symbol.FrameData) bool { x.frameData(d); return true }); err != nil {
			return err
		}
	}
	if x.s.Frames == nil {
		return nil
	}
	var failed error
	if err := x.s.Frames(func(f *SourceFrame) bool { failed = x.frame(f); return failed == nil }); err != nil {
		return err
	}
	return failed
}

// names numbers the files and inlined functions that occur, by name, and writes their
// records.
func (x *writer) names() error {
	x.files, x.origins = map[string]int{}, map[string]int{}
	if x.s.Functions == nil {
		return nil
	}
	err := x.s.Functions(func(fn *SourceFunction) bool {
		for i := range fn.Lines {
			x.files[text(fn.Lines[i].File)] = 0
		}
		for i := range fn.Inlines {
			if inlined := &fn.Inlines[i]; inlined.CallFile != "" {
				x.files[text(inlined.CallFile)] = 0
			}
			x.origins[text(fn.Inlines[i].Name)] = 0
		}
		return true
	})
	x.number("FILE", x.files)
	x.number("INLINE_ORIGIN", x.origins)
	x.done.Files, x.done.Origins = len(x.files), len(x.origins)
	return err
}

func (x *writer) number(record string, list map[string]int) {
	for i, name := range slices.Sorted(maps.Keys(list)) {
		list[name] = i
		fmt.Fprintf(x.w, "%s %d %s\n", record, i, name)
	}
}

// text formats the last field of a record.
func text(s string) string {
	if isText(s) {
		return s
	}
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s))
	if s == "" {
		return omitted
	}
	return s
}

// isText reports whether a string can be the last field unchanged.
func isText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return false
		}
	}
	return s != "" && s[0] != ' ' && s[len(s)-1] != ' '
}

// field formats a field that is not the last.
func field(s string) string {
	if s = strings.Join(strings.Fields(s), "_"); s == "" {
		return "unknown"
	}
	return s
}

func multiple(m bool) string {
	if m {
		return "m "
	}
	return ""
}

func (x *writer) function(fn *SourceFunction) {
	for _, r := range fn.Ranges {
		if r.Start >= r.End {
			continue
		}
		x.done.Functions++
		fmt.Fprintf(x.w, "FUNC %s%x %x %x %s\n", multiple(fn.Multiple), r.Start, r.End-r.Start, fn.ParameterSize, text(fn.Name))
		x.inlines(fn.Inlines, r)
		for i := range fn.Lines {
			l := &fn.Lines[i]
			if start, end := max(l.Start, r.Start), min(l.End, r.End); start < end {
				x.done.Records++
				fmt.Fprintf(x.w, "%x %x %d %d\n", start, end-start, max(l.Line, 0), x.files[text(l.File)])
			}
		}
	}
}

// inlines writes the calls that have code in a range.
func (x *writer) inlines(list []Inline, parent Range) {
	for i := range list {
		c := &list[i]
		first := true
		for _, r := range c.Ranges {
			start, end := max(r.Start, parent.Start), min(r.End, parent.End)
			if start >= end {
				continue
			}
			if first {
				file := noFile
				if c.CallFile != "" {
					file = x.files[text(c.CallFile)]
				}
				fmt.Fprintf(x.w, "INLINE %d %d %d %d", c.Depth, max(c.CallLine, 0), file, x.origins[text(c.Name)])
				first = false
			}
			fmt.Fprintf(x.w, " %x %x", start, end-start)
		}
		if first {
			continue
		}
		x.done.Records++
		_ = x.w.WriteByte('\n')
	}
}

func (x *writer) public(s Symbol) {
	x.done.Publics++
	fmt.Fprintf(x.w, "PUBLIC %s%x %x %s\n", multiple(s.Multiple), s.Address, s.ParameterSize, text(s.Name))
}

// frameData writes a STACK WIN record. One of the newer kind without a program says nothing.
func (x *writer) frameData(d *symbol.FrameData) {
	kind, hasProgram, last := winFrameData, 1, text(d.Program)
	switch {
	case d.IsFPO:
		kind, hasProgram, last = winFPO, 0, "0"
		if d.AllocatesBasePointer {
			last = "1"
		}
		x.done.FPO++
	case d.Program == "":
		return
	default:
		x.done.FrameData++
	}
	fmt.Fprintf(x.w, "STACK WIN %x %x %x %x %x %x %x %x %x %d %s\n", kind, d.Start, d.End-d.Start, d.Prologue, d.Epilogue,
		d.Parameters, d.SavedRegisters, d.Locals, d.MaxStack, hasProgram, last)
}
