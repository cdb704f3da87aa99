// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// made is a source of one function.
type made struct {
	is    symbol.Symbol
	err   error
	asked int
}

func (m *made) Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	m.asked++
	if _, ok := m.Function(address); !ok {
		return dst, m.err
	}
	return append(dst, trace.Symbol{Function: m.is.Name, Start: m.is.Start, HasStart: true}), m.err
}

func (m *made) Function(address uint64) (symbol.Symbol, bool) {
	return m.is, address >= m.is.Start && address < m.is.End
}

func (m *made) Functions() []symbol.Symbol { return []symbol.Symbol{m.is} }

func (m *made) Start() (uint64, bool) { return m.is.Start, true }

// described is a source whose functions the symbols complete.
type described struct{ *made }

// A Resolver of three sources: the first one that knows an address names it, and
// none after that is asked; the bounds of functions have an order of their own.
func TestSourcesAreAskedInOrder(t *testing.T) {
	first := &made{is: symbol.Symbol{Name: "described", Start: 0x10, End: 0x20}, err: errors.New("the first is damaged")}
	second := &made{is: symbol.Symbol{Name: "second", Start: 0x18, End: 0x30}}
	last := &made{is: symbol.Symbol{Name: "last", Start: 0x40, End: 0x50}}
	opened := 0
	r := New(open(t, small), nil)
	r.sources = []*source{
		describing(func() described { opened++; return described{first} }),
		listing(func() *made { return second }),
		listing(func() *made { return nil }), // the object has none
		listing(func() *made { return last }),
	}
	r.lists = []*source{r.sources[3], r.sources[2], r.sources[1]}
	if s, ok := r.Function(0x19); !ok || s.Name != "second" || opened != 0 {
		t.Errorf("the function at 0x19 is %+v, %v; expected that of the second source; the first was opened %d times", s, ok, opened)
	}
	for address, want := range map[uint64]string{0x10: "described", 0x18: "described", 0x20: "second", 0x40: "last", 0x50: ""} {
		name := ""
		if frames, err := r.Frames(nil, address); err != nil {
			t.Fatal(err)
		} else if len(frames) > 0 {
			name = frames[0].Function
		}
		if name != want {
			t.Errorf("%#x is %q, want %q", address, name, want)
		}
	}
	if first.asked != 5 || second.asked != 3 || last.asked != 2 {
		t.Errorf("the sources were asked %d, %d and %d times, want 5, 3 and 2", first.asked, second.asked, last.asked)
	}
	if diff := cmp.Diff([]string{"the first is damaged"}, r.Problems()); diff != "" {
		t.Errorf("problems: %s", diff)
	}
	if diff := cmp.Diff([]symbol.Symbol{second.is, last.is}, r.Functions()); diff != "" {
		t.Errorf("functions: %s", diff)
	}
	// A list whose first function is in one before it adds nothing.
	last.is.Start, last.is.End = 0x18, 0x20
	if diff := cmp.Diff([]symbol.Symbol{last.is}, r.Functions()); diff != "" {
		t.Errorf("functions that the symbols have: %s", diff)
	}
}
