// SPDX-License-Identifier: Apache-2.0

package pe

import "math"

// FixedBody fills row with the row of the body of a function that has a frame register, by the stack pointer instead:
// it is right where the function took all of its stack in the prologue. It is false where the function has no frame
// register, so that RowAt's row is by the stack pointer already.
func (f *File) FixedBody(fn Function, row *Row) (ok bool, err error) {
	row.reset()
	l := &lister{file: f}
	if err := l.readInfos(fn); err != nil {
		return false, err
	}
	l.body.reset()
	for _, u := range l.infos {
		ok = ok || u.FrameRegister != 0
		fixed := *u
		fixed.FrameRegister, fixed.Codes = 0, nil
		for _, c := range u.Codes {
			if c.Operation != SetFPReg {
				fixed.Codes = append(fixed.Codes, c)
			}
		}
		if l.body.undo(&fixed, math.MaxUint32); l.body.machine {
			return false, nil
		}
	}
	l.body.row(&row.Row)
	row.Start, row.End = fn.Start, fn.End
	return ok, nil
}
