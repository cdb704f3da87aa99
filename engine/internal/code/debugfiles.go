// SPDX-License-Identifier: Apache-2.0

package code

import (
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/symbol/pdb"
	"github.com/unwindd/unwindd/engine/internal/symbol/resolve"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// debugFiles are the separate debug file of an object, and the symbols and the debug
// information of it and of the object's file.
//
// once sets resolver, found and laid, with Object.mu held: they are constant for callers of
// Object.resolver, and others read them with mu held.
type debugFiles struct {
	once     sync.Once         // taken before Object.mu
	resolver *resolve.Resolver // nil without a file
	found    object.Found
	laid     *object.Object // the debug file, with the addresses of the object

	glanceOnce sync.Once
	glanced    trace.DebugInfo // see Object.glance

	watchedOnce sync.Once
	watched     []sdk.SymbolInfo // see Object.watchedSymbols
}

func (d *debugFiles) close() {
	if d.resolver != nil {
		_ = d.resolver.Close()
	}
	if d.found.Object != nil {
		_ = d.found.Object.Close()
	}
}

// resolver returns the names by debug information and symbols; nil without a file.
func (o *Object) resolver() *resolve.Resolver {
	o.debug.once.Do(func() {
		if o.File == nil {
			return
		}
		found := o.finder.FindDebug(o.File)
		laid, err := o.laidLike(found.Object)
		o.mu.Lock()
		defer o.mu.Unlock()
		// Names may be needed before the plugin is asked.
		if o.File.IsRelocatable() && o.findMachine() != nil {
			o.laid.SetRelocations(o.machine.Description.Relocations)
			if laid != nil {
				laid.SetRelocations(o.machine.Description.Relocations)
			}
		}
		o.debug.found, o.debug.laid = found, laid
		o.debug.resolver = resolve.NewWith(o.laid, laid, dwarf.Options{Finder: &o.finder})
		if err != nil {
			o.problem("%v", err)
		}
	})
	return o.debug.resolver
}

// OpenSymbols finds the debug file, and reads the symbols of both files: all where names are
// expected to be needed, else those that the plugin is told about. Rows and names need them.
func (o *Object) OpenSymbols() {
	r := o.resolver()
	switch {
	case r == nil || r.PDB() != nil: // PDB files have indexes
	case !o.library.noNames.Load():
		r.Functions()
	default:
		if m := o.Machine(); m != nil {
			o.watchedSymbols(m)
		}
	}
}

// DWARF returns the debug information, or the variables and types of a PDB file in its terms (see
// dwarf.Reader.IsGenerated); nil where there is none.
func (o *Object) DWARF() *dwarf.Reader {
	if r := o.resolver(); r != nil {
		return r.Variables()
	}
	return nil
}

// PDB returns the PDB file with the debug information; nil where there is none.
func (o *Object) PDB() *pdb.File {
	if r := o.resolver(); r != nil {
		return r.PDB()
	}
	return nil
}

// watchedSymbols returns the functions that the architecture named: a library has a hundred
// thousand, and the plugin reads the symbol table itself if it wants all. A function without
// a size ends where the next one begins, so the next one is listed too.
func (o *Object) watchedSymbols(m *Machine) []sdk.SymbolInfo {
	d := &o.debug
	if d.resolver == nil || len(m.watched) == 0 {
		return nil
	}
	d.watchedOnce.Do(func() {
		if o.library.noNames.Load() || d.resolver.PDB() != nil {
			if list, ok := d.resolver.Named(m.watched); ok {
				for _, s := range list {
					d.watched = append(d.watched, o.symbolInfo(&s))
				}
				return
			}
		}
		isUnbounded, last := false, uint64(0)
		for _, s := range d.resolver.Functions() {
			switch {
			case m.watched[s.Name]:
				isUnbounded, last = s.End == s.Start, s.Start
			case isUnbounded && s.Start > last:
				isUnbounded = false
			default:
				continue
			}
			d.watched = append(d.watched, o.symbolInfo(&s))
		}
	})
	return d.watched
}

// symbolInfo describes a function to the plugin.
func (o *Object) symbolInfo(s *symbol.Symbol) sdk.SymbolInfo {
	return sdk.SymbolInfo{
		Name: s.Name, Address: o.Offset(s.Start), Size: s.End - s.Start,
		Other: s.Other, Section: o.laid.CodeSection(s.Start),
	}
}

// hasDebugInfo reports whether the object or its debug file has debug information.
func (o *Object) hasDebugInfo() bool {
	return o.File != nil && (o.File.HasDebugInfo() || o.debug.found.Object != nil && o.debug.found.Object.HasDebugInfo())
}

// FindDebug looks for the separate debug file of the object as for names. The caller closes
// the result.
func (o *Object) FindDebug() object.Found {
	if o.File == nil {
		return object.Found{}
	}
	return o.finder.FindDebug(o.File)
}

// GlanceDebug reports whether there is a separate debug file on this machine, without asking a
// server; see object.Finder.
func (o *Object) GlanceDebug() (has bool, tried []object.Attempt) {
	if o.File == nil {
		return false, nil
	}
	return o.finder.GlanceDebug(o.File)
}
