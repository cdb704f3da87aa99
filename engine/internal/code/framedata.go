// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/framerules"
	"github.com/unwindd/unwindd/engine/trace"
)

// A FrameDataSource has frame data by address: a symbol file or a PDB file.
type FrameDataSource interface {
	// FrameData returns the innermost frame data of an address of the object.
	FrameData(address uint64) (symbol.FrameData, bool)
}

// frameDataRows are the rows of frame data. Of code that is about to execute they come behind those
// that are read from the code: frame data knows neither epilogues nor what lies between the positions
// that it has in a prologue.
type frameDataRows struct {
	object  *Object
	sources []FrameDataSource // the first that has some counts
	// isExact is set in the source that answers about code that is about to execute; the other one
	// answers about code behind calls.
	isExact bool
}

func newCallFrameData(o *Object) RowSource  { return newFrameData(o, false) }
func newExactFrameData(o *Object) RowSource { return newFrameData(o, true) }

func newFrameData(o *Object, isExact bool) RowSource {
	sources := o.frameData()
	if len(sources) == 0 {
		return nil
	}
	return frameDataRows{o, sources, isExact}
}

func (s frameDataRows) Row(_ context.Context, l *Lookup) (*Row, error) {
	if l.IsExact != s.isExact {
		return nil, nil
	}
	for _, source := range s.sources {
		if d, ok := source.FrameData(l.Address); ok {
			return s.row(l, &d, isFirst(source, &d))
		}
	}
	return nil, nil
}

func (s frameDataRows) row(l *Lookup, d *symbol.FrameData, isFirst bool) (*Row, error) {
	at := framerules.Position{Address: l.Address, IsExact: l.IsExact, IsFirst: isFirst}
	rules := new(cfi.Row)
	isSearched, err := framerules.Row(rules, d, at, s.object.machine.breakpadRegister)
	if err != nil {
		return nil, noRow("frame data: " + err.Error())
	}
	return &Row{Rules: rules, By: trace.ByFrameData, IsSearched: isSearched}, nil
}

// isFirst reports whether frame data begins a function: what lies inside other frame data is about a
// part of its code.
func isFirst(s FrameDataSource, d *symbol.FrameData) bool {
	before, ok := s.FrameData(d.Start - 1)
	return !ok || before.End <= d.Start
}

// Parameters is the size of a function's parameters on the stack, which its caller pushed.
type Parameters struct {
	Bytes   uint64
	IsKnown bool
}

// Parameters returns the size of the parameters of the function at an address, as its frame data has
// it.
func (o *Object) Parameters(address uint64) Parameters {
	for _, s := range o.frameData() {
		if d, ok := s.FrameData(address); ok {
			return Parameters{d.Parameters, true}
		}
	}
	return Parameters{}
}

// frameData returns the object's sources of frame data, the best one first.
func (o *Object) frameData() (list []FrameDataSource) {
	if p := o.PDB(); p != nil {
		list = append(list, p)
	}
	if _, ok := o.symbolBase(); ok && o.mayHaveSymbolFile() && len(o.symbolIDs()) > 0 {
		list = append(list, breakpadFrameData{o})
	}
	return list
}

// breakpadFrameData are the STACK WIN records of the object's symbol file.
type breakpadFrameData struct{ object *Object }

func (s breakpadFrameData) FrameData(address uint64) (d symbol.FrameData, ok bool) {
	u := s.object.symbolFile()
	address, ok = u.fileAddress(address)
	if !ok {
		return d, false
	}
	d, ok = u.file.Win(address)
	s.object.library.symbols.lookedUp()
	d.Start, d.End = d.Start+u.base, d.End+u.base
	return d, ok
}
