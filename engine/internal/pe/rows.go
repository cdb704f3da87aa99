// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/cfi"
)

// A Part is the part of a function that a row is for.
type Part uint8

// The parts of a function.
const (
	Body Part = iota
	Prologue
	Epilogue
	// Leaf is code that no function has. By the document it belongs to a function that
	// does not change rsp and calls nothing: where a return address leads into it, that
	// is not so, and the row is a guess.
	Leaf
)

var partNames = [...]string{Body: "body", Prologue: "prologue", Epilogue: "epilogue", Leaf: "leaf"}

// String returns the part's name.
func (p Part) String() string {
	if int(p) < len(partNames) {
		return partNames[p]
	}
	return fmt.Sprintf("part %d", uint8(p))
}

// A Row is a row of call frame information that was made of unwind codes and code.
type Row struct {
	cfi.Row
	Part Part
	// IsCodeMissing: the code was not there to look for epilogues in, as in a dump that
	// does not have it. In an epilogue the row would be wrong; behind a call it is right.
	IsCodeMissing bool
}

// ErrNoRow is the error of an address without code.
var ErrNoRow = errors.New("the address is in no code of the image")

// maxChain is the most ranges that are chained, as for Windows.
const maxChain = 32

// RowAt fills row with the row in force at a virtual address, reusing its slices. After an error the
// row is not defined.
func (f *File) RowAt(pc uint64, row *Row) error {
	row.reset()
	fn, ok, err := f.FunctionAt(pc)
	switch {
	case err != nil:
		return err
	case !ok:
		return f.leaf(pc, row)
	}
	found := false
	err = f.rows(fn, row, func(r *Row) bool {
		found = pc < r.End
		return !found
	})
	if err == nil && !found {
		err = fmt.Errorf("%s: function at %#x has no row for %#x: %w", f.name, fn.Start, pc, ErrNoRow)
	}
	if err != nil {
		row.reset()
	}
	return err
}

// Rows calls yield with every row of a function, in order of address, until it returns
// false. The row and its slices are reused between calls.
func (f *File) Rows(fn Function, yield func(*Row) bool) error {
	return f.rows(fn, new(Row), yield)
}

func (r *Row) reset() {
	*r = Row{Row: cfi.Row{Rules: r.Rules[:0], CallSite: r.CallSite[:0]}}
}

// leaf makes the row of code that is in no function.
func (f *File) leaf(pc uint64, row *Row) error {
	t, _ := f.functions()
	rva, ok := f.rva(pc)
	if !ok {
		return fmt.Errorf("%s: %#x: %w", f.name, pc, ErrNoRow)
	}
	if f.isTableCut {
		return f.errorf(rva, "whether a function has it is not known, as the table of functions is cut: %w", ErrNoBytes)
	}
	start, end, ok := f.gap(t, rva)
	if !ok {
		return f.errorf(rva, "%w", ErrNoRow)
	}
	if f.header.machine == MachineARM64 {
		var fr arm64Frame
		fr.undo(nil, 0)
		fr.row(&row.Row)
	} else {
		var fr frame
		fr.reset()
		fr.row(&row.Row)
	}
	row.Start, row.End, row.Part = f.address(start), f.address(end), Leaf
	return nil
}

// A lister makes the rows of functions.
type lister struct {
	file     *File
	infos    []*UnwindInfo // of the function, then of the ranges that it chains
	body     frame
	part     frame
	epilogue epilogue
	row      *Row
	yield    func(*Row) bool
}

var listers = sync.Pool{New: func() any { return new(lister) }}

// rows lists the rows of a function, each in row.
func (f *File) rows(fn Function, row *Row, yield func(*Row) bool) error {
	if f.header.machine == MachineARM64 {
		return f.arm64Rows(fn, row, yield)
	}
	l := listers.Get().(*lister)
	defer listers.Put(l)
	l.file, l.row, l.yield = f, row, yield
	defer func() { l.file, l.row, l.yield = nil, nil, nil }()
	if err := l.readInfos(fn); err != nil {
		return err
	}
	if err := l.undo(&l.body, math.MaxUint32); err != nil {
		return err
	}
	size := int(fn.entry.end - fn.entry.begin)
	prolog := min(int(l.infos[0].PrologSize), size)
	if more, err := l.prologue(fn, prolog); !more || err != nil {
		return err
	}
	if prolog == size {
		return nil
	}
	l.rest(fn, prolog, size)
	return nil
}

// readInfos reads the information of a function and all that it chains.
func (l *lister) readInfos(fn Function) error {
	l.infos = l.infos[:0]
	for next := &fn; next != nil; {
		if len(l.infos) == maxChain {
			return l.file.errorf(fn.entry.unwind, "more than %d unwind informations are chained", maxChain)
		}
		u, err := l.file.UnwindInfo(*next)
		if err != nil {
			return err
		}
		l.infos = append(l.infos, u)
		next = u.Chained
	}
	return nil
}

// undo makes the frame at an offset of the function.
func (l *lister) undo(fr *frame, offset uint32) error {
	fr.reset()
	for _, u := range l.infos {
		if fr.undo(u, offset); fr.machine {
			break
		}
		offset = math.MaxUint32 // the chained ranges were executed before
	}
	if !fr.hasBase() {
		u := l.infos[0]
		return l.file.errorf(uint32(u.Address-l.file.base), "registers are saved above frame register %d, which is not set, or not the only one", u.FrameRegister)
	}
	return nil
}

// emit yields a row whose rules were filled in.
func (l *lister) emit(fn Function, part Part, start, end int) bool {
	l.row.Part = part
	l.row.Start, l.row.End = fn.Start+uint64(start), fn.Start+uint64(end)
	return l.yield(l.row)
}

// prologue lists the rows of the prologue: one from each operation to the next.
func (l *lister) prologue(fn Function, size int) (more bool, err error) {
	steps := make([]int, 0, 16)
	for _, c := range l.infos[0].Codes {
		if int(c.Offset) < size {
			steps = append(steps, int(c.Offset))
		}
	}
	steps = append(steps, 0, size)
	slices.Sort(steps)
	steps = slices.Compact(steps)
	for i, start := range steps[:len(steps)-1] {
		if err := l.undo(&l.part, uint32(start)); err != nil {
			return false, err
		}
		l.part.row(&l.row.Row)
		if !l.emit(fn, Prologue, start, steps[i+1]) {
			return false, nil
		}
	}
	return true, nil
}

// rest lists the rows behind the prologue. The code is read from the start of the function, so that
// instructions are decoded where they begin.
func (l *lister) rest(fn Function, prolog, size int) {
	code := l.file.source.upTo(fn.entry.begin, uint64(size))
	body := prolog // where the body's row begins that is not yielded yet
	if !l.body.machine {
		for offset := 0; offset < len(code); {
			inst, ok := instruction(code[offset:])
			if !ok {
				offset++
				continue
			}
			if offset < prolog || !begins(inst) || !l.epilogue.read(code, offset, inst) || !l.isEpilogue(fn) {
				offset += inst.Len
				continue
			}
			if start := l.epilogue.start(); start > body && !l.emitBody(fn, body, start) {
				return
			}
			if !l.epilogue.rows(&l.row.Row, func(start, end int) bool { return l.emit(fn, Epilogue, start, end) }) {
				return
			}
			offset = l.epilogue.end
			body = offset
		}
	}
	have := max(body, min(len(code), size))
	if have > body && !l.emitBody(fn, body, have) {
		return
	}
	if have < size {
		l.row.IsCodeMissing = true
		l.emitBody(fn, have, size)
	}
}

func (l *lister) emitBody(fn Function, start, end int) bool {
	l.body.row(&l.row.Row)
	return l.emit(fn, Body, start, end)
}

// isEpilogue reports whether the epilogue that was read takes the frame down. Version 2 names
// epilogues, so that a jump in one needs no other proof.
func (l *lister) isEpilogue(fn Function) bool {
	if l.epilogue.takesDown(&l.body) {
		return true
	}
	last := fn.Start + uint64(l.epilogue.last)
	return slices.ContainsFunc(l.infos[0].Epilogs, func(e Epilog) bool { return e.Start <= last && last < e.End })
}
