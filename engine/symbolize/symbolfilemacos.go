// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/sdk"
)

// This file writes how the frames of macOS' programs are unwound: by __eh_frame, compact unwind encodings, the code,
// and the __debug_frame of a dSYM.
//
// A compact unwind encoding has the frame of a function's body alone. In a prologue or an epilogue, where the
// innermost frame may be, a walker that believes it leaves out the caller. An FDE is hardly better, as compilers for
// macOS write it: it has no rows of epilogues, and of arm64 the row of the body begins behind the prologue, and the one
// before it is of the first instruction. The code has all of these, and who walks with a symbol file has no code:
// rows that are read from it are written where they differ from the rows of the body. Without plugins, which
// read code, an FDE is preferred to an encoding, and an encoding's row is written from the first instruction of
// its functions to the last, as dump_syms does.
//
// The FDEs of __eh_frame, which the linker leaves for frames that no encoding can describe, come first, as they do in
// walks with the program. No code has two records: walkers take any of them.

// compactTable stands for the compact unwind information among the tables of a framePiece.
const compactTable = -1

// machOFrames has how the frames of a Mach-O file are unwound.
type machOFrames struct {
	source     *symbolSource
	file       *macho.File
	info       *macho.UnwindInfo // nil: there is none
	start, end uint64            // code that the file has
	entries    []macho.UnwindEntry
	read       func([]sdk.CodeRange) ([]sdk.FrameRules, error) // see codeReader
	ahead      map[uint64]*sdk.FrameRules                      // of functions, by where they start
}

// machOFrames returns the frames of a Mach-O file; nil of another one.
func (x *symbolSource) machOFrames() *machOFrames {
	if !x.Object.IsMachO() {
		return nil
	}
	c := &machOFrames{source: x, file: x.Object.MachO()}
	var err error
	if c.info, err = c.file.UnwindInfo(); err != nil {
		x.problem(err)
	}
	if text := c.file.Text(); text != nil {
		c.start, c.end = text.Address, text.Address+min(text.FileSize, text.MemSize)
	}
	if c.read, err = x.codeReader(); err != nil {
		x.problem(err)
	}
	return c
}

// codeReader returns a function that has the machine's architecture read code; nil where code is not read, as that
// of Go, whose FDEs have all rows.
func (x *symbolSource) codeReader() (func([]sdk.CodeRange) ([]sdk.FrameRules, error), error) {
	if x.plugins == nil || x.Object.DebugOnly() || x.resolver.HasGo() {
		return nil, nil //nolint:nilnil // there is none
	}
	plugins, err := x.plugins()
	if err != nil {
		return nil, err
	}
	arch, err := plugins.ForMachine(x.Object.ELFMachine())
	if err != nil {
		return nil, err
	}
	return func(functions []sdk.CodeRange) ([]sdk.FrameRules, error) {
		answer, err := arch.FrameRules(context.Background(), nil, &sdk.FrameRulesRequest{Functions: functions})
		if err != nil {
			return nil, err
		}
		return answer.Functions, nil
	}, nil
}

// divide divides code among FDEs and encodings. The tables from own on are of the dSYM.
func (c *machOFrames) divide(tables []code.FrameTable, own int) []framePiece {
	list, apart := c.source.framePieces(tables[:own]), c.source.framePieces(tables[own:])
	for i := range apart {
		apart[i].table += own
	}
	encoded, unknown := c.pieces()
	if c.read == nil {
		return under(under(list, apart), encoded)
	}
	return under(under(under(list, encoded), apart), unknown)
}

// pieces returns the code of entries, by address: of entries whose encodings have a row, and of others, of which the linker
// knew nothing.
func (c *machOFrames) pieces() (encoded, unknown []framePiece) {
	if c.info == nil {
		return nil, nil
	}
	from := c.start
	for e, err := range c.info.Entries() {
		if err != nil {
			c.source.problem(err)
			continue
		}
		p := framePiece{start: max(e.Start, from), end: min(e.End, c.end), offset: uint64(len(c.entries)), table: compactTable}
		mode := c.info.Mode(e.Encoding)
		if p.start >= p.end || mode == macho.DWARFMode {
			continue
		}
		from = p.end
		c.entries = append(c.entries, e)
		if mode == macho.NoUnwind {
			unknown = append(unknown, p)
		} else {
			encoded = append(encoded, p)
		}
	}
	return encoded, unknown
}

// under returns the code of two lists by address. Where both have it, it is that of the upper one.
func under(upper, lower []framePiece) []framePiece {
	list := make([]framePiece, 0, len(upper)+len(lower))
	for _, p := range lower {
		for p.start < p.end {
			for len(upper) > 0 && upper[0].end <= p.start {
				list, upper = append(list, upper[0]), upper[1:]
			}
			part := p
			p.start = p.end
			if len(upper) > 0 && upper[0].start < p.end {
				part.end, p.start = upper[0].start, upper[0].end
			}
			if part.start < part.end {
				list = append(list, part)
			}
		}
	}
	return append(list, upper...)
}

// rows returns the rows of a piece of compactTable.
func (c *machOFrames) rows(p *framePiece) func(yield func(*cfi.Row) bool) error {
	return func(yield func(*cfi.Row) bool) error {
		body, err := c.body(&c.entries[p.offset])
		if err != nil {
			return err
		}
		for at := p.start; at < p.end; {
			read, end := c.functionRows(at, body == nil)
			end = min(end, p.end)
			if !code.RowsAroundBody(read, body, at, end, yield) {
				return nil
			}
			at = end
		}
		return nil
	}
}

// rowsOf returns the rows of an FDE.
func (c *machOFrames) rowsOf(fde *cfi.FDE) func(yield func(*cfi.Row) bool) error {
	return func(yield func(*cfi.Row) bool) error {
		read, end := c.functionRows(fde.Start, false)
		if end < fde.End {
			read = nil
		}
		return code.RowsAroundFDE(read, fde, yield)
	}
}

// body returns the row of the body of functions; nil where the linker knew of none, as of code without directives.
func (c *machOFrames) body(e *macho.UnwindEntry) (*cfi.Row, error) {
	if c.info.Mode(e.Encoding) == macho.NoUnwind {
		return nil, nil //nolint:nilnil // there is none
	}
	row := new(cfi.Row)
	return row, c.info.Row(e, row)
}

// Bounds of what a reader of code is asked for at once.
const (
	maxReadFunctions = 64
	maxReadCode      = code.MaxFunctionCode
)

// functionRows returns the rows of the function at an address that are read from its code, and where it ends. There are
// none where it cannot be read, or not completely though nothing else has rows of it. Functions behind it are read
// with it.
func (c *machOFrames) functionRows(address uint64, isAlone bool) (rows []cfi.Row, end uint64) {
	start, end, ok := c.file.FunctionAt(address)
	switch {
	case !ok:
		return nil, math.MaxUint64
	case c.read == nil:
		return nil, end
	}
	if _, isRead := c.ahead[start]; !isRead {
		if err := c.readFrom(start); err != nil {
			c.source.problem(err)
			c.read = nil
			return nil, end
		}
	}
	rules := c.ahead[start]
	if rules == nil || rules.Trampoline || isAlone && !rules.Complete {
		return nil, end
	}
	return rules.Rows, end
}

// readFrom reads the code of a function, and of functions behind it.
func (c *machOFrames) readFrom(start uint64) error {
	c.ahead = map[uint64]*sdk.FrameRules{start: nil}
	functions := c.codeFrom(start)
	if len(functions) == 0 {
		return nil
	}
	answers, err := c.read(functions)
	for i := range min(len(answers), len(functions)) {
		slices.SortFunc(answers[i].Rows, func(a, b cfi.Row) int { return cmp.Compare(a.Start, b.Start) })
		c.ahead[functions[i].Start] = &answers[i]
	}
	return err
}

// codeFrom returns the code of a function and of others behind it.
func (c *machOFrames) codeFrom(start uint64) (list []sdk.CodeRange) {
	size := uint64(0)
	for at := start; len(list) < maxReadFunctions; {
		_, end, ok := c.file.FunctionAt(at)
		if !ok || end-at > maxReadCode-size {
			break
		}
		bytes, err := c.file.Bytes(at, end-at)
		if err != nil {
			break
		}
		size += end - at
		list = append(list, sdk.CodeRange{PC: at, Start: at, Code: bytes, Bounded: true, Exact: true})
		at = end
	}
	return list
}

// missingUnwind returns why a file has no rows though its program has: the debug information of macOS is
// apart from the code that it is of; nil where it has rows.
func (x *symbolSource) missingUnwind() error {
	if !x.Object.IsMachO() || !x.Object.DebugOnly() || x.Object.Section(".debug_frame") != nil {
		return nil
	}
	return fmt.Errorf("%s: how its functions are unwound is in the program alone: there are no STACK CFI records; give the program, beside which the dSYM is found", x.Object.Name())
}
