// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// source is a source of names of a Resolver. It is not opened until the first query.
type source struct {
	// isCompleted is set where symbols may complete the physical function that the source
	// names.
	isCompleted bool
	once        sync.Once
	open        func()        // sets opened and table
	opened      symbol.Source // nil: the object has none
	table       table         // the same, where it lists functions
}

// names is the source itself; nil where the object has none.
func (s *source) names() symbol.Source {
	s.once.Do(s.open)
	return s.opened
}

// functions is the source as a list of functions; nil where the object has none.
func (s *source) functions() table {
	s.once.Do(s.open)
	return s.table
}

// table is a source that knows where functions begin and end.
type table interface {
	symbol.Source
	// Function returns the function that contains an ELF virtual address.
	Function(address uint64) (symbol.Symbol, bool)
	// Functions returns all functions, one name for each.
	Functions() []symbol.Symbol
	// Start is the ELF virtual address of the first function; ok is false where
	// there is none.
	Start() (address uint64, ok bool)
}

// describing makes a source of compilers' debug information, whose functions the symbols
// complete. open returns nil where the object has none.
func describing[T interface {
	comparable
	symbol.Source
}](open func() T) *source {
	s := &source{isCompleted: true}
	s.open = func() {
		var none T
		if opened := open(); opened != none {
			s.opened = opened
		}
	}
	return s
}

// listing makes a source that lists functions. open returns nil where the object has none.
func listing[T interface {
	comparable
	table
}](open func() T) *source {
	s := &source{}
	s.open = func() {
		var none T
		if opened := open(); opened != none {
			s.opened, s.table = opened, opened
		}
	}
	return s
}
