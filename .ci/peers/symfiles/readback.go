package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbol/breakpad"
	"github.com/unwindd/unwindd/engine/symbolfile"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// A pair is a file, and the symbol file that was written of it.
type pair struct {
	file *symbolize.File
	sym  *breakpad.File
	path string // of the symbol file
	base uint64
}

// write writes the symbol file of a file into a folder.
func write(s *symbolize.Symbolizer, path, dir string) (*pair, error) {
	f, err := s.Open(path)
	if err != nil {
		return nil, err
	}
	p := &pair{file: f, path: filepath.Join(dir, strings.ReplaceAll(strings.Trim(path, "/"), "/", "_")+".sym"), base: f.Object.Segments()[0].Address}
	to, err := os.Create(p.path)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	w := bufio.NewWriter(to)
	if _, err := symbolfile.Write(w, symbolfile.File{Object: f.Object, Debug: f.Debug, Names: f.Names()}); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	p.sym, err = breakpad.Open(p.path)
	return p, err
}

// addresses calls yield with about as many addresses of the file: those at which something begins or
// ends in the symbol file, of every function or every n-th one, and bytes of its code.
func (p *pair) addresses(most uint64, yield func(address uint64)) {
	c := p.sym.Counts()
	every, functions := uint64(c.Records)*3/most+1, uint64(0)
	p.sym.Functions(func(fn breakpad.Function, b *breakpad.Body) bool {
		if functions++; functions%every != 0 {
			return true
		}
		yield(fn.Start + p.base)
		yield(fn.End - 1 + p.base)
		for l := range b.Lines() {
			yield(l.Start + p.base)
			yield(l.End - 1 + p.base)
		}
		for c := range b.Inlines() {
			for _, r := range c.Ranges {
				yield(r.Start + p.base)
				yield(r.End - 1 + p.base)
			}
		}
		return true
	})
	for _, s := range p.file.Object.Sections() {
		if s.Flags&4 == 0 || s.Size == 0 { // SHF_EXECINSTR
			continue
		}
		for at := s.Address; at < s.Address+s.Size; at += s.Size/most + 1 {
			yield(at)
		}
	}
}

// readBack counts at how many addresses the symbol file says what the file does, and what the
// others are.
func (p *pair) readBack(most uint64, t *tally) {
	seen := map[uint64]bool{}
	var got []symbol.Frame
	p.addresses(most, func(address uint64) {
		if seen[address] {
			return
		}
		seen[address] = true
		want := p.file.Frames(address)
		got, _ = p.sym.Frames(got[:0], address-p.base)
		t.add(frameClass(want, got), func() string {
			return fmt.Sprintf("%s %#x\n   file   %s\n   symbol %s", p.file.Object.Name(), address, frameText(want), frameText(got))
		})
	})
}

func frameText(list []symbol.Frame) string {
	var s []string
	for i := range list {
		f := &list[i]
		s = append(s, fmt.Sprintf("%s@%s:%d", f.Function, f.File, f.Line))
	}
	return strings.Join(s, " < ")
}

// frameClass says how two chains differ; "" where they do not.
func frameClass(want, got []symbol.Frame) string {
	switch {
	case len(want) == 0 && len(got) == 1 && got[0].File == "":
		return "code of no symbol, behind a PUBLIC one"
	case len(want) == 1 && len(got) == 1 && want[0].Function == "":
		return "a line without a function"
	case len(want) == 1 && want[0].Function == "" && len(got) == 0:
		return "a line without a function"
	case len(want) == 1 && len(got) == 1 && got[0].File == "" && want[0].Line == 0 && want[0].Function == got[0].Function:
		return "" // a PUBLIC symbol has no file
	case len(want) != len(got):
		return fmt.Sprintf("%d frames, not %d", min(len(got), 3), min(len(want), 3))
	}
	for i := range want {
		a, b := &want[i], &got[i]
		switch {
		case a.Function != b.Function:
			if a.Function == "" || b.Function == "" {
				return "no name"
			}
			return "another name"
		case a.File != b.File || a.Line != b.Line:
			return "another line"
		}
	}
	return ""
}

// rows counts at how many row starts the STACK CFI records say what the call frame information does.
func (p *pair) rows(t *tally) {
	tables := code.FrameTables(p.file.Object)
	if p.file.Debug != nil {
		for _, d := range code.FrameTables(p.file.Debug) {
			if d.Section == ".debug_frame" {
				tables = append(tables, d)
			}
		}
	}
	names := symbolfile.RegisterNames(p.file.Object.Machine())
	numbers := map[string]uint64{}
	for n := range uint64(256) {
		if name, ok := names(n); ok {
			numbers[name] = n
		}
	}
	var row cfi.Row
	for _, table := range tables {
		if table.Err != nil {
			continue
		}
		for fde, err := range table.FDEs() {
			if err != nil {
				continue
			}
			registers := func(name string) (uint64, bool) {
				if name == ".ra" {
					return fde.CIE.ReturnAddress, true
				}
				n, ok := numbers[name]
				return n, ok
			}
			_ = fde.Rows(func(want *cfi.Row) bool {
				for _, address := range []uint64{want.Start, want.End - 1} {
					found, err := p.sym.Row(&row, address-p.base, registers)
					t.add(rowClass(want, &row, found, err), func() string {
						return fmt.Sprintf("%s %#x\n   file   %+v\n   symbol %+v", p.file.Object.Name(), address, *want, row)
					})
				}
				return true
			})
		}
	}
}

// rowClass says how two rows differ; "" where they do not.
func rowClass(want, got *cfi.Row, found bool, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case !found && want.CFA.Kind == cfi.CFAExpression:
		return "no record: the CFA is an expression that none can say"
	case !found:
		return "no record"
	case want.CFA.Kind != got.CFA.Kind || want.CFA.Register != got.CFA.Register || want.CFA.Offset != got.CFA.Offset:
		return "another CFA"
	}
	for _, r := range want.Rules {
		g, ok := got.Rule(r.Column)
		if !ok && r.Rule.Kind == cfi.Unspecified {
			continue
		}
		if !ok || g.Kind != r.Rule.Kind || g.Offset != r.Rule.Offset || g.Register != r.Rule.Register {
			return fmt.Sprintf("another rule (%v, not %v)", g.Kind, r.Rule.Kind)
		}
	}
	for _, r := range got.Rules {
		if _, ok := want.Rule(r.Column); !ok && r.Rule.Kind != cfi.SameValue {
			return "a rule that is not there"
		}
	}
	return ""
}

// guarded runs f, which reads files.
func guarded(f func()) error {
	return object.Guard(func() error { f(); return nil })
}
