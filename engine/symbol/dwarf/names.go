package dwarf

import (
	godwarf "debug/dwarf"
	"fmt"
	"sort"
	"strings"

	"github.com/unwindd/unwindd/engine/symbol"
)

// A functionName is as symbol.Frame has it.
type functionName struct{ readable, linkage string }

const (
	maxOrigins = 16   // references followed from a function to its name
	maxSpaces  = 64   // namespaces and classes around a function
	maxName    = 4096 // bytes of a name made of them
)

// functionName names a scope. Names are kept by the entry that says them.
func (r *Reader) functionName(u *unit, s *scope) functionName {
	if name, ok := r.names[s.offset]; ok {
		return name
	}
	name := r.resolveName(u, s)
	r.names[s.offset] = name
	return name
}

// resolveName follows DW_AT_abstract_origin and DW_AT_specification (DWARF 5,
// 2.13.2, 3.3.8), across units too. The first name and the first linkage name
// on the way count; a name is qualified by where the last entry stands, which
// is the declaration.
func (r *Reader) resolveName(u *unit, s *scope) functionName {
	var name, linkage string
	d := s.decl
	x, err := r.indexOf(u)
	for hops := 0; err == nil; hops++ {
		if d.missing {
			r.problem(fmt.Sprintf(".debug_info: entry at %#x: its name is in the supplementary file (.gnu_debugaltlink), which is not read", s.offset))
		}
		if linkage == "" {
			linkage = d.linkage
		}
		if name == "" {
			name = d.name
		}
		if !d.hasOrigin || hops == maxOrigins {
			break
		}
		owner := r.unitAt(d.origin)
		if owner == nil {
			err = fmt.Errorf(".debug_info: entry at %#x: refers to %#x, which is in no unit", s.offset, d.origin)
			break
		}
		var next *index
		if next, err = r.indexOf(owner); err != nil {
			break
		}
		origin, ok := next.decls[d.origin]
		if !ok {
			err = fmt.Errorf(".debug_info: entry at %#x: refers to %#x, where no function is declared", s.offset, d.origin)
			break
		}
		d, x = origin, next
	}
	if err != nil {
		r.problem(err.Error())
	}
	if linkage != "" {
		linkage = symbol.StripVersion(linkage)
		readable := symbol.Demangle(linkage)
		if readable == linkage {
			return functionName{readable: readable}
		}
		return functionName{readable, linkage}
	}
	if name != "" && x != nil && scoped(u.language) {
		name = x.qualify(name, d.space)
	}
	return functionName{readable: name}
}

// scoped says whether functions of a language are named by what is around them
// (DWARF 5, table 7.17): C++, Objective-C++ and Rust.
func scoped(language int64) bool {
	switch language {
	case 0x04, 0x1a, 0x21, 0x2b, 0x3a, // C++, C++11, C++14, C++17, C++20
		0x11, // Objective-C++
		0x1c: // Rust
		return true
	}
	return false
}

// qualify puts the names of the spaces around a name before it.
func (x *index) qualify(name string, at int32) string {
	parts := []string{name}
	size := len(name)
	for at >= 0 && len(parts) < maxSpaces {
		s := x.spaces[at]
		if s.name != "" {
			if size += len(s.name) + 2; size > maxName {
				break
			}
			parts = append(parts, s.name)
		}
		at = s.parent
	}
	if len(parts) == 1 {
		return name
	}
	var b strings.Builder
	b.Grow(size)
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
		if i > 0 {
			b.WriteString("::")
		}
	}
	return b.String()
}

// unitAt returns the unit that holds an entry.
func (r *Reader) unitAt(off godwarf.Offset) *unit {
	i := sort.Search(len(r.units), func(i int) bool { return r.units[i].offset > uint64(off) })
	if i == 0 || uint64(off) >= r.units[i-1].end {
		return nil
	}
	return &r.units[i-1]
}
