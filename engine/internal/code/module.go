// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// A Module is a code object that is loaded into a target.
type Module struct {
	*target.Module
	Code *Object
	// Placed are Segments by the addresses of Code; see Object.Offset.
	Placed []trace.Segment

	looked   atomic.Bool // its rows or names were needed
	mu       sync.Mutex  // guards problems
	problems []string    // of its place, rows and names
	closed   bool
}

// Close releases the code object. It is called when the module is not used any more.
func (m *Module) Close() {
	if !m.closed {
		m.closed = true
		m.Code.library.release(m.Code)
	}
}

// Start returns the address in the target for one of the code object.
func (m *Module) Start(address uint64) (uint64, bool) {
	for i := range m.Placed {
		if s := &m.Placed[i]; address-s.Address < s.Size {
			return address - s.Address + s.Start, true
		}
	}
	return 0, false
}

// ReadCode reads code at an address of the code object: JIT code, the bytes of the file, or where
// these are not executed as they are, the target's memory.
func (m *Module) ReadCode(address uint64, buf []byte) (int, error) {
	return m.Code.readCode(address, buf)
}

// look marks the module as one whose rows or names are needed.
func (m *Module) look() {
	if !m.looked.Load() {
		m.looked.Store(true)
	}
}

// maxStateProblems is from how many problems on a module takes no more of states: there may be
// many threads.
const maxStateProblems = 32

// StateProblem adds a sentence to the module's problems that the state of a thread may have
// caused.
func (m *Module) StateProblem(format string, args ...any) {
	m.mu.Lock()
	isFull := len(m.problems) >= maxStateProblems
	m.mu.Unlock()
	if !isFull {
		m.problem(format, args...)
	}
}

// problem adds a sentence to the module's problems, once.
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

// Findings are the problems of looking for the rows of a module's code.
type Findings struct {
	IsRequested bool // rows or names were needed
	// Problems are of the module, and ObjectProblems of its code object.
	Problems, ObjectProblems []string
}

// Findings returns the findings so far.
func (m *Module) Findings() Findings {
	f := Findings{IsRequested: m.looked.Load()}
	m.mu.Lock()
	f.Problems = slices.Clone(m.problems)
	m.mu.Unlock()
	m.Code.mu.Lock()
	defer m.Code.mu.Unlock()
	f.ObjectProblems = slices.Clone(m.Code.problems)
	return f
}

// Adopt adds the findings of another process that walked through the module. The code object is
// opened as for a row at an address of its code.
func (m *Module) Adopt(ctx context.Context, f Findings, address uint64, isExact bool) {
	if f.IsRequested {
		_, _ = m.Row(ctx, address, isExact) // the lack of a row is no finding
	}
	m.addProblems(f.Problems...)
	for _, p := range f.ObjectProblems {
		m.Code.Problem("%s", p)
	}
}

// Names returns the functions at an address of the module's code object; see Object.Names.
func (m *Module) Names(address uint64, isPhysical bool) []trace.Symbol {
	m.look()
	return m.Code.Names(address, isPhysical)
}

// AllNames is Names for addresses at which no walk has been; see Object.AllNames.
func (m *Module) AllNames(ctx context.Context, address uint64, isPhysical bool) []trace.Symbol {
	m.look()
	return m.Code.AllNames(ctx, address, isPhysical)
}

func (m *Module) isBigEndian() bool {
	return m.Object != nil && m.Object.ByteOrder() == binary.BigEndian
}

// Info returns the known facts about the module.
func (m *Module) Info() trace.ModuleInfo {
	m.mu.Lock()
	own := append([]string(nil), m.problems...)
	m.mu.Unlock()
	if !m.looked.Load() {
		return trace.ModuleInfo{IsMissing: m.Object == nil, IsJIT: m.Code.IsJIT(), IsBigEndian: m.isBigEndian(), Problems: append(problemOf(m.Module), own...), Answers: object.Answers(m.Tried)}
	}
	o := m.Code
	o.mu.Lock()
	defer o.mu.Unlock()
	info := trace.ModuleInfo{IsMissing: m.Object == nil, IsJIT: m.Code.IsJIT(), IsBigEndian: m.isBigEndian(), DebugFile: o.debug.found.Path, DebugInfo: o.debugInfo()}
	if info.DebugFile == "" && o.File != nil && o.File.DebugOnly() {
		info.DebugFile = o.File.Path()
	}
	info.IsDebugOnly = m.Object != nil && !m.HasCode()
	info.HasSymbols = o.File != nil && o.File.Section(".symtab") != nil
	tried := o.debug.found.Tried
	if u := o.breakpad.use.Load(); u != nil {
		tried = slices.Concat(tried, u.tried)
		info.Problems = u.allProblems()
		takeSymbols(&info, u)
	}
	if info.DebugInfo != trace.DebugInfoFound {
		info.Answers = object.Answers(slices.Concat(m.Tried, tried))
	}
	for _, a := range tried {
		if info.DebugInfo != trace.DebugInfoFound && a.Kind != object.Absent {
			info.Unused = append(info.Unused, fmt.Sprintf("debug file %s was not used: %s", a.Path, a.Reason))
		} else {
			info.Searched = append(info.Searched, a.Path+": "+a.Reason)
		}
	}
	if f := &o.debug.found; f.Object != nil && f.Problem != "" {
		info.Problems = append(info.Problems, f.Problem)
	}
	info.Problems = append(info.Problems, problemOf(m.Module)...)
	info.Problems = append(info.Problems, info.Unused...)
	info.Problems = append(info.Problems, own...)
	info.Problems = append(info.Problems, o.problems...)
	if o.File != nil {
		info.Problems = append(info.Problems, o.File.Problems()...)
	}
	for _, s := range o.rows.sources {
		if p, ok := s.(problemSource); ok {
			info.Problems = append(info.Problems, p.problems()...)
		}
	}
	if o.debug.resolver != nil {
		info.Problems = append(info.Problems, o.debug.resolver.Problems()...)
	}
	return info
}

// takeSymbols adds the result of looking for a symbol file.
func takeSymbols(i *trace.ModuleInfo, u *symbolUse) {
	if i.DebugInfo == trace.DebugInfoFound {
		return // beside a PDB file
	}
	if u.file != nil {
		i.DebugInfo, i.DebugFile = trace.DebugInfoFound, u.displayPath(u.file.Path())
		return
	}
	if i.DebugInfo != "" && i.DebugInfo != trace.DebugInfoNone {
		return
	}
	if status := statusOf(u.tried); status != trace.DebugInfoNone {
		i.DebugInfo = status
	}
}

// problemOf returns the target's problem with a module.
func problemOf(m *target.Module) []string {
	if m.Problem == "" {
		return nil
	}
	return []string{m.Problem}
}

// A problemSource is a source of rows that has problems of its own.
type problemSource interface{ problems() []string }

// debugInfo returns the result of looking for debug information. The caller holds mu.
func (o *Object) debugInfo() trace.DebugInfo {
	switch r := o.debug.resolver; {
	case o.File == nil || r == nil:
		return ""
	case r.Damaged():
		return trace.DebugInfoUnreadable
	case o.hasDebugFile() || r.UsesObjectFiles() || r.HasGo() || o.names.lines.hasLines.Load():
		return trace.DebugInfoFound
	}
	return o.withoutDebugInfo(&o.debug.found)
}

// hasDebugFile reports whether there is a separate debug file, or debug information in the
// object's own.
func (o *Object) hasDebugFile() bool { return o.debug.found.Object != nil || o.File.HasDebugInfo() }

// withoutDebugInfo returns why a file has no debug information, after a search for a separate file
// found none.
func (o *Object) withoutDebugInfo(found *object.Found) trace.DebugInfo {
	if unused := statusOf(found.Unused()); unused != trace.DebugInfoNone {
		return unused
	}
	if len(o.File.Sections()) == 0 && len(o.File.Problems()) > 0 {
		return trace.DebugInfoUnreadable // the section headers
	}
	return trace.DebugInfoNone
}

// statusOf returns why the first file that is there was not taken.
func statusOf(tried []object.Attempt) trace.DebugInfo {
	for _, a := range tried {
		switch a.Kind {
		case object.Mismatched:
			return trace.DebugInfoMismatch
		case object.Unreadable:
			return trace.DebugInfoUnreadable
		}
	}
	return trace.DebugInfoNone
}

// DebugInfo tells where the module's debug information is, or why there is none. For a module
// whose rows and names were not needed only files of this machine are looked at: no server and no
// store of symbol files is asked, and only the identifiers of files are read.
func (m *Module) DebugInfo() trace.DebugInfo {
	if status := m.Info().DebugInfo; status != "" && (status != trace.DebugInfoNone || m.Code.File != nil) {
		return status
	}
	if m.Code.File == nil {
		return statusOf(m.Tried)
	}
	return m.Code.glance()
}

// glance is debugInfo of an object whose rows and names were not needed.
func (o *Object) glance() trace.DebugInfo {
	d := &o.debug
	d.glanceOnce.Do(func() {
		if o.File.HasDebugInfo() || o.File.Section(".gopclntab") != nil {
			d.glanced = trace.DebugInfoFound
			return
		}
		has, tried := o.finder.GlanceDebug(o.File)
		d.glanced = o.withoutDebugInfo(&object.Found{Tried: tried})
		if has {
			d.glanced = trace.DebugInfoFound
		}
	})
	return d.glanced
}
