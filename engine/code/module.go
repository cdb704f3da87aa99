// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/target"
)

// A Module is a code object that is loaded into a target.
type Module struct {
	*target.Module
	Code *Object
	// Placed are Segments by the addresses that Code has; see Object.Offset.
	Placed []target.Segment

	looked   atomic.Bool // its rows or names were asked for
	mu       sync.Mutex
	problems []string // of where it is placed, and of what was asked for
	closed   bool
}

// Close gives the code object back. It is called once nobody uses the module.
func (m *Module) Close() {
	if !m.closed {
		m.closed = true
		m.Code.library.release(m.Code)
	}
}

// Start returns where an address of the code object is in the target.
func (m *Module) Start(address uint64) (uint64, bool) {
	for i := range m.Placed {
		if s := &m.Placed[i]; address-s.Address < s.Size {
			return address - s.Address + s.Start, true
		}
	}
	return 0, false
}

// ReadCode reads code at an address of the code object: what a runtime made, the
// bytes of the file, or where these are not what is executed, the target's
// memory.
func (m *Module) ReadCode(address uint64, buf []byte) (int, error) {
	return m.Code.readCode(address, buf)
}

// look says that the module's rows or names are asked for.
func (m *Module) look() {
	if !m.looked.Load() {
		m.looked.Store(true)
	}
}

// maxStateProblems bounds the problems of a module before those of states are left
// out: there may be many threads.
const maxStateProblems = 32

// StateProblem adds a sentence to the module's problems of which the state of a
// thread may be the cause.
func (m *Module) StateProblem(format string, args ...any) {
	m.mu.Lock()
	isFull := len(m.problems) >= maxStateProblems
	m.mu.Unlock()
	if !isFull {
		m.problem(format, args...)
	}
}

// Problem adds a sentence to the module's problems, once.
func (m *Module) problem(format string, args ...any) { m.addProblems(fmt.Sprintf(format, args...)) }

func (m *Module) addProblems(list ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range list {
		if !slices.Contains(m.problems, p) {
			m.problems = append(m.problems, p)
		}
	}
}

// Findings are what looking for the rows of a module's code brought to light beside them.
type Findings struct {
	IsAsked bool // somebody asked for rows or names
	// Problems are of the module, and ObjectProblems of its code object.
	Problems, ObjectProblems []string
}

// Findings are those up to now.
func (m *Module) Findings() Findings {
	f := Findings{IsAsked: m.looked.Load()}
	m.mu.Lock()
	f.Problems = slices.Clone(m.problems)
	m.mu.Unlock()
	m.Code.mu.Lock()
	defer m.Code.mu.Unlock()
	f.ObjectProblems = slices.Clone(m.Code.problems)
	return f
}

// Adopt makes findings those of the module, which another process walked through.
// address is one of its code, at which the code object is opened as rows are.
func (m *Module) Adopt(ctx context.Context, f Findings, address uint64, isExact bool) {
	if f.IsAsked {
		_, _ = m.Row(ctx, address, isExact) // why there is none is no finding
	}
	m.addProblems(f.Problems...)
	for _, p := range f.ObjectProblems {
		m.Code.Problem("%s", p)
	}
}

// Names are the functions at an address of the module's code object; see
// Object.Names.
func (m *Module) Names(address uint64, isPhysical bool) []symbol.Frame {
	m.look()
	return m.Code.Names(address, isPhysical)
}

// AllNames is Names for addresses that no walk came to; see Object.AllNames.
func (m *Module) AllNames(ctx context.Context, address uint64, isPhysical bool) []symbol.Frame {
	m.look()
	return m.Code.AllNames(ctx, address, isPhysical)
}

// DebugInfo says what came of looking for a module's debug information
// (`debug_info` of the output).
type DebugInfo string

// What came of it. In an Info it is "" where nobody looked.
const (
	DebugInfoFound      DebugInfo = "found"      // in the module's file, in a separate one, or in a symbol file or source module
	DebugInfoNone       DebugInfo = "none"       // there is none of these
	DebugInfoMismatch   DebugInfo = "mismatch"   // the file that should have it belongs to another module
	DebugInfoUnreadable DebugInfo = "unreadable" // it is there and cannot be opened or read
)

// Info is what was found out about a module by now.
type Info struct {
	DebugFile string    // the separate debug file in use; "" when there is none
	DebugInfo DebugInfo // what came of looking for debug information
	Problems  []string  // each a sentence
	Unused    []string  // debug files that are there and could not be used, where no other was; sentences among Problems
	Searched  []string  // other debug files that were looked at and not taken, and why
}

// Info says what is known of the module by now.
func (m *Module) Info() Info {
	m.mu.Lock()
	own := append([]string(nil), m.problems...)
	m.mu.Unlock()
	if !m.looked.Load() {
		return Info{Problems: append(problemOf(m.Module), own...)}
	}
	o := m.Code
	o.mu.Lock()
	defer o.mu.Unlock()
	info := Info{DebugFile: o.debug.Path, DebugInfo: o.debugInfo()}
	if info.DebugFile == "" && o.File != nil && o.File.DebugOnly() {
		info.DebugFile = o.File.Path()
	}
	tried := o.debug.Tried
	if u := o.symbolUse.Load(); u != nil {
		tried = slices.Concat(tried, u.tried)
		info.Problems = u.allProblems()
		info.takeSymbols(u)
	}
	for _, a := range tried {
		if info.DebugInfo != DebugInfoFound && a.Kind != object.Absent {
			info.Unused = append(info.Unused, fmt.Sprintf("debug file %s was not used: %s", a.Path, a.Reason))
		} else {
			info.Searched = append(info.Searched, a.Path+": "+a.Reason)
		}
	}
	if o.debug.Object != nil && o.debug.Problem != "" {
		info.Problems = append(info.Problems, o.debug.Problem)
	}
	info.Problems = append(info.Problems, problemOf(m.Module)...)
	info.Problems = append(info.Problems, info.Unused...)
	info.Problems = append(info.Problems, own...)
	info.Problems = append(info.Problems, o.problems...)
	if o.File != nil {
		info.Problems = append(info.Problems, o.File.Problems()...)
	}
	for _, s := range o.sources {
		if p, ok := s.(problemSource); ok {
			info.Problems = append(info.Problems, p.problems()...)
		}
	}
	if o.symbols != nil {
		info.Problems = append(info.Problems, o.symbols.Problems()...)
	}
	return info
}

// takeSymbols adds what came of looking for a symbol file to what is known of the module's
// debug information.
func (i *Info) takeSymbols(u *symbolUse) {
	if u.file != nil {
		i.DebugInfo, i.DebugFile = DebugInfoFound, u.called(u.file.Path())
		return
	}
	if i.DebugInfo != "" && i.DebugInfo != DebugInfoNone {
		return
	}
	if status := statusOf(u.tried); status != DebugInfoNone {
		i.DebugInfo = status
	}
}

// problemOf is what the target says is wrong with a module.
func problemOf(m *target.Module) []string {
	if m.Problem == "" {
		return nil
	}
	return []string{m.Problem}
}

// A problemSource is a source of rows that has problems of its own.
type problemSource interface{ problems() []string }

// debugInfo says what came of looking for debug information. The caller holds mu.
func (o *Object) debugInfo() DebugInfo {
	switch {
	case o.File == nil || o.symbols == nil:
		return ""
	case o.symbols.Damaged():
		return DebugInfoUnreadable
	case o.debug.Object != nil || o.File.HasDebugInfo() || o.symbols.HasGo() || o.lines.hasLines.Load():
		return DebugInfoFound
	}
	return o.withoutDebugInfo(&o.debug)
}

// withoutDebugInfo says why a file has no debug information, after a search for a
// separate file found none.
func (o *Object) withoutDebugInfo(found *object.Found) DebugInfo {
	if unused := statusOf(found.Unused()); unused != DebugInfoNone {
		return unused
	}
	if len(o.File.Sections()) == 0 && len(o.File.Problems()) > 0 {
		return DebugInfoUnreadable // what would say where it is
	}
	return DebugInfoNone
}

// statusOf is what stands in the way of the first file that is there and was not taken.
func statusOf(tried []object.Attempt) DebugInfo {
	for _, a := range tried {
		switch a.Kind {
		case object.Mismatched:
			return DebugInfoMismatch
		case object.Unreadable:
			return DebugInfoUnreadable
		}
	}
	return DebugInfoNone
}

// DebugInfo says where the module's debug information is, or why there is none. Of a
// module whose rows and names nobody asked for it is found out from the files of this
// machine alone: no server and no store of symbol files is asked, and nothing is read but
// what says whose the files are.
func (m *Module) DebugInfo() DebugInfo {
	if status := m.Info().DebugInfo; status != "" && (status != DebugInfoNone || m.Code.File != nil) {
		return status
	}
	if m.Code.File == nil {
		return statusOf(m.Tried)
	}
	return m.Code.glance()
}

// glance is debugInfo of an object that nobody asked.
func (o *Object) glance() DebugInfo {
	o.glanceOnce.Do(func() {
		if o.File.HasDebugInfo() || o.File.Section(".gopclntab") != nil {
			o.glanced = DebugInfoFound
			return
		}
		has, tried := o.finder.GlanceDebug(o.File)
		o.glanced = o.withoutDebugInfo(&object.Found{Tried: tried})
		if has {
			o.glanced = DebugInfoFound
		}
	})
	return o.glanced
}
