// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"errors"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
)

// This file writes how the frames of Windows programs are unwound: the frame data of a PDB file,
// and the unwind codes of a PE file.

// frameData calls yield with the frame data of 32-bit x86.
func (x *symbolSource) frameData(yield func(*symbol.FrameData) bool) error {
	p := x.resolver.PDB()
	if p == nil || !x.isWin32() {
		return nil
	}
	p.EachFrameData(func(d *symbol.FrameData) bool {
		if d.Start < x.base {
			return true
		}
		d.Start, d.End = d.Start-x.base, d.End-x.base
		return yield(d)
	})
	return nil
}

// parameterSize returns how many bytes of the stack the parameters of a function take, which its
// frame data have; 0 where none has.
func (x *symbolSource) parameterSize(start uint64) uint64 {
	p := x.resolver.PDB()
	if p == nil || !x.isWin32() {
		return 0
	}
	d, ok := p.FrameData(start)
	if !ok || d.Start != start {
		return 0
	}
	return d.Parameters
}

// windowsFunctions returns the functions of a PE file that have unwind codes; none where a stack is
// walked by other rows.
func (x *symbolSource) windowsFunctions() (list []pe.Function) {
	if !x.Object.IsPE() || x.Object.PE().IsGo() {
		return nil
	}
	err := x.Object.PE().Functions(func(fn pe.Function) bool { list = append(list, fn); return fn.Start >= x.base })
	if err != nil && !errors.Is(err, pe.ErrUnwindMachine) {
		x.problem(err)
	}
	return list
}

// windowsFrames calls yield with the code of functions that have unwind codes.
func (x *symbolSource) windowsFrames(list []pe.Function, yield func(*breakpad.SourceFrame) bool) {
	var frame breakpad.SourceFrame
	for _, fn := range list {
		frame.Range = breakpad.Range{Start: fn.Start - x.base, End: fn.End - x.base}
		frame.Rows = func(yield func(*cfi.Row) bool) error {
			err := x.Object.PE().Rows(fn, func(r *pe.Row) bool {
				row := r.Row
				row.Start, row.End = row.Start-x.base, row.End-x.base
				return yield(&row)
			})
			if err != nil {
				x.problem(err)
			}
			return nil
		}
		if !yield(&frame) {
			return
		}
	}
}
