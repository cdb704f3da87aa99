// SPDX-License-Identifier: Apache-2.0

package code

import (
	"errors"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
)

// ptxLines are the lines of PTX of an object, which are read when the first is needed.
type ptxLines struct {
	once  sync.Once
	lines *dwarf.PTX // nil: the object has none
}

// PTXAt returns the line of PTX that the code at an address of the object was made from; ok is false
// where that is not known.
func (o *Object) PTXAt(address uint64) (row dwarf.PTXRow, ok bool) {
	p := &o.ptx
	p.once.Do(func() {
		if o.laid == nil || !o.laid.IsELF() {
			return
		}
		lines, err := dwarf.NewPTX(o.laid)
		if err != nil && !errors.Is(err, dwarf.ErrNoPTX) {
			o.Problem("%s", err)
		}
		p.lines = lines
	})
	if p.lines == nil {
		return row, false
	}
	err := p.lines.EachRow(address, address+1, func(r dwarf.PTXRow) { row, ok = r, true })
	if err != nil {
		o.Problem("%s", err)
	}
	return row, ok
}
