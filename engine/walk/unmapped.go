// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// maxUnmapped bounds the rows of code in no module that are remembered, and the call sites.
const maxUnmapped = 1 << 16

// unmappedCode has what plugins said of the code of a process that is in no module. All threads
// may be in it: each place is asked about once.
type unmappedCode struct {
	mu    sync.Mutex
	rows  map[unmappedKey]*unmappedRow
	sites map[unmappedKey]code.CallSite
	guess code.Foresight
}

// unmappedKey is an address of code in no module. isExact is false for call sites.
type unmappedKey struct {
	machine *machine
	address uint64
	isExact bool
}

// unmappedRow is the row at an unmappedKey, or why there is none.
type unmappedRow struct {
	code.UnmappedRow
	isAhead bool // nothing has needed it
}

// row returns a remembered row; nil: there is none.
func (u *unmappedCode) row(key unmappedKey) *unmappedRow {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.rows[key]
	if r != nil && r.isAhead {
		r.isAhead = false
		u.guess.Used()
	}
	return r
}

// add remembers a row, as long as there are not too many.
func (u *unmappedCode) add(key unmappedKey, r *unmappedRow) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.rows == nil {
		u.rows = map[unmappedKey]*unmappedRow{}
	}
	if u.rows[key] == nil && len(u.rows) < maxUnmapped {
		u.rows[key] = r
	}
}

// next begins a call about rows, and returns how many places it may ask about beside the one that
// is needed.
func (u *unmappedCode) next() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.rows) >= maxUnmapped {
		return 0
	}
	return u.guess.Next()
}

// lacking returns the first place, which is needed, and of the others those that no row is
// remembered of, each once.
func (u *unmappedCode) lacking(m *machine, places []code.Place) []code.Place {
	u.mu.Lock()
	defer u.mu.Unlock()
	left := []code.Place{places[0]}
	for _, p := range places[1:] {
		if u.rows[unmappedKey{m, p.Address, p.IsExact}] == nil && !slices.Contains(left, p) {
			left = append(left, p)
		}
	}
	u.guess.Requested(len(left) - 1)
	return left
}

// site returns a remembered call site.
func (u *unmappedCode) site(m *machine, pc uint64) (s code.CallSite, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, ok = u.sites[unmappedKey{m, pc, false}]
	return s, ok
}

// keepSite remembers a call site, as long as there are not too many.
func (u *unmappedCode) keepSite(m *machine, pc uint64, s code.CallSite) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sites == nil {
		u.sites = map[unmappedKey]code.CallSite{}
	}
	if len(u.sites) < maxUnmapped {
		u.sites[unmappedKey{m, pc, false}] = s
	}
}

// forget forgets everything: other modules are loaded, and other code is in none.
func (u *unmappedCode) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.rows, u.sites, u.guess = nil, nil, code.Foresight{}
}

// A rowSource is where the row for the PC of a frame comes from.
type rowSource interface {
	// row returns the row; nil without an error where the next source is to be asked. isExact is
	// true where the code at the PC is about to execute; else it follows a call.
	row(ctx context.Context, w *walker, f *frame, isExact bool) (*code.Row, error)
}

// rowSources are the sources, in the order in which they are asked. The last ones answer for all
// frames.
var rowSources = []rowSource{
	runtimeRows{},  // the language runtime that made the code
	moduleRows{},   // the module that has the code
	unmappedRows{}, // the architecture's plugin, which reads code that is in no module
}

// rowAt finds the row for the PC of a frame. isExact is true where the code there is about to
// execute; else it follows a call.
func (w *walker) rowAt(ctx context.Context, f *frame, isExact bool) (*code.Row, error) {
	if w.process.generated == nil && f.module != nil { // nearly all frames of samples
		return w.row(ctx, f, isExact)
	}
	for _, s := range rowSources {
		if row, err := s.row(ctx, w, f, isExact); row != nil || err != nil {
			return row, err
		}
	}
	return nil, errNoCode
}

// moduleRows are the rows of the module that has the code.
type moduleRows struct{}

func (moduleRows) row(ctx context.Context, w *walker, f *frame, isExact bool) (*code.Row, error) {
	if f.module == nil {
		return nil, nil //nolint:nilnil // the next source is asked
	}
	return w.row(ctx, f, isExact)
}

// unmappedRows are the rows of code in no module, which the plugin reads from the code.
type unmappedRows struct{}

func (unmappedRows) row(ctx context.Context, w *walker, f *frame, isExact bool) (*code.Row, error) {
	w.ahead.f = f
	place := code.Place{Address: f.pc, IsExact: isExact}
	if w.input.sample != nil { // samples of other processes have other code there
		if !w.isCode(f.pc) {
			return nil, errNoCode // no allocation for samples of processes that begin to execute
		}
		rows, err := w.readUnmappedRows(ctx, []code.Place{place})
		if err != nil {
			return nil, err
		}
		return rows[0].Found()
	}
	if r := w.process.unmapped.row(unmappedKey{w.machine, f.pc, isExact}); r != nil {
		return r.Found()
	}
	if !w.isCode(f.pc) {
		return nil, errNoCode
	}
	return w.unmappedRow(ctx, place)
}

// unmappedRow asks for the row of code that is in no module, and for rows of other such code that
// may be needed next, and remembers them.
func (w *walker) unmappedRow(ctx context.Context, needed code.Place) (*code.Row, error) {
	known := &w.process.unmapped
	places := []code.Place{needed}
	most := min(known.next(), w.machine.MostAhead(2*code.CodeWindow))
	if w.process.mayBeGenerated(ctx, nil) {
		most = 0 // the bounds of a runtime's function are known where a frame is in it
	}
	if most > 0 {
		places = known.lacking(w.machine, append(places, w.ahead.unmapped(most)...))
	}
	rows, err := w.readUnmappedRows(ctx, places)
	for i, p := range places {
		if r := rows[i]; r.Row != nil || r.None != nil {
			known.add(unmappedKey{w.machine, p.Address, p.IsExact}, &unmappedRow{r, i > 0})
		}
	}
	if err != nil {
		return nil, err
	}
	return rows[0].Found()
}

// readUnmappedRows reads rows of code that is in no module. The first is needed, and its error is
// returned; of the others there are as many as can be had.
func (w *walker) readUnmappedRows(ctx context.Context, places []code.Place) ([]code.UnmappedRow, error) {
	rows := make([]code.UnmappedRow, len(places))
	var codes []sdk.CodeRange
	var requested []int // indices of places
	for i, p := range places {
		query, err := w.unmappedCode(p)
		switch {
		case err == nil:
			codes, requested = append(codes, query), append(requested, i)
		case i == 0:
			rows[0].None = &code.NoRow{Reasons: []string{err.Error()}}
			return rows, nil
		}
	}
	answers, err := w.machine.UnmappedRows(ctx, &view{w.process}, codes)
	for k, i := range requested {
		rows[i] = answers[k]
	}
	return rows, err
}

// unmappedCode reads the code of a place that is in no module: of the function that a runtime
// made there, or the bytes around.
func (w *walker) unmappedCode(p code.Place) (sdk.CodeRange, error) {
	lookup := p.Address
	if !p.IsExact {
		lookup -= uint64(w.machine.Description.CallDistance)
	}
	b := w.unmappedBounds(lookup)
	bytes := make([]byte, b.End-b.Start)
	n, err := w.input.memory.ReadMemory(locexpr.DefaultSpace, nil, b.Start, bytes)
	if b.Start+uint64(n) <= lookup {
		return sdk.CodeRange{}, err
	}
	return sdk.CodeRange{PC: lookup, Start: b.Start, Code: bytes[:n], Exact: p.IsExact, Bounded: b.IsKnown && n == len(bytes), Name: b.Name}, nil
}

// unmappedBounds returns the bounds of the code to read for a row at an address: of the function
// that a runtime knows at the frame's PC, or the code around.
func (w *walker) unmappedBounds(lookup uint64) code.Bounds {
	if f := w.ahead.f; f != nil && f.generated != nil && lookup-f.generated.Start < f.generated.End-f.generated.Start && f.generated.End-f.generated.Start <= code.MaxFunctionCode {
		b := code.Bounds{Start: f.generated.Start, End: f.generated.End, IsKnown: true}
		if n := len(f.generated.Symbols); n > 0 {
			b.Name = f.generated.Symbols[n-1].Function
		}
		return b
	}
	// Mappings are of whole pages, so executable code is there from its page's start on.
	start := lookup &^ (code.CodeWindow - 1)
	if w.isCode(start-1) && start > 0 {
		start -= code.CodeWindow
	}
	return code.Bounds{Start: start, End: lookup + code.CodeWindow}
}
