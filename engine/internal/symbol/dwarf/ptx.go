// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// Sections of PTX, the assembly from which NVIDIA's compilers make machine code.
const (
	ptxLines = ".nv_debug_line_sass" // line tables; their lines are of the texts
	ptxText  = ".nv_debug_ptx_txt"   // lines, each with a NUL behind it; linkers append .NUMBER
)

// ErrNoPTX is returned for an object without lines of PTX.
var ErrNoPTX = errors.New("no lines of PTX")

// PTX is the assembly that the code of a cubin was made from. It may be used concurrently.
type PTX struct {
	lines *Reader
	texts map[string][][]byte // lines by the section that has them
}

// PTXRow is code that was made from a line of PTX.
type PTXRow struct {
	Start, End uint64 // ELF virtual addresses
	Line       int    // in the text, from 1
	Text       string // "" where the object does not have it
}

// NewPTX reads the lines of PTX of an object; ErrNoPTX: it has none.
func NewPTX(o *object.Object) (*PTX, error) {
	if s := o.Section(ptxLines); s == nil || s.Size == 0 {
		return nil, fmt.Errorf("%s: %w", o.Name(), ErrNoPTX)
	}
	f := &file{name: o.Name(), object: o, layout: newLayout(o), lineName: ptxLines}
	f.isBigEndian = isBigEndian(o)
	p := &PTX{lines: &Reader{main: f}, texts: map[string][][]byte{}}
	f.reader = p.lines
	err := p.lines.protect(func() (err error) {
		if f.line, err = f.read(ptxLines); err != nil {
			return err
		}
		for _, s := range o.Sections() {
			if s.Name != ptxText && !strings.HasPrefix(s.Name, ptxText+".") {
				continue
			}
			text, err := s.Data()
			if err != nil {
				return err
			}
			p.texts[s.Name] = bytes.Split(text, []byte{0})
		}
		_, err = p.lines.lone.get(p.lines.findLoneTables)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Problems are the parts that could not be read so far.
func (p *PTX) Problems() []string { return p.lines.Problems() }

// EachRow calls yield with the rows of PTX between two addresses, which are of one line table.
func (p *PTX) EachRow(start, end uint64, yield func(PTXRow)) error {
	return p.lines.protect(func() error {
		x, err := p.lines.lone.get(p.lines.findLoneTables)
		if err != nil {
			return err
		}
		n := x.where.At(start)
		if n < 0 {
			return nil
		}
		b := x.tables[n]
		t, err := b.lineTable()
		if err != nil {
			return err
		}
		t.rows(span{start, end}, func(code span, r *row) {
			name := ptxText
			if uint64(r.file) < uint64(len(t.files)) && r.file > 0 {
				name = b.fileName(uint64(r.file)).path
			}
			out := PTXRow{Start: code.start, End: code.end, Line: int(r.line)}
			if text := p.texts[name]; r.line > 0 && uint64(r.line) <= uint64(len(text)) {
				out.Text = copied(text[r.line-1])
			}
			yield(out)
		})
		return nil
	})
}
