// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// isFullerName reports whether the symbol at an address has a fuller name of the function
// that DWARF has there: of a piece that the compiler cut out of the function or of a clone
// (f.cold, f.part.0, f.isra.0), or, where DWARF has no linkage name, a mangled name of the
// same function: gcc leaves the linkage names of static functions out.
func isFullerName(s *symbol.Symbol, f *trace.Symbol) bool {
	name := f.LinkageName
	if name == "" {
		name = f.Function
	}
	if rest, ok := strings.CutPrefix(s.Name, name); ok {
		return strings.HasPrefix(rest, ".")
	}
	if f.LinkageName != "" {
		// DWARF may have the unified constructor (C4) where the piece belongs to the
		// complete or the base one.
		whole, _, cut := strings.Cut(s.Name, ".")
		return cut && symbol.Demangle(whole) == f.Function
	}
	if f.HasStart && f.Start != s.Start && !strings.Contains(s.Name, ".") {
		return false
	}
	readable := symbol.Demangle(s.Name)
	return readable != s.Name && hasComponent(readable, plain(f.Function))
}

// plain is the last component of a function's qualified name, without template arguments.
func plain(name string) string {
	depth, start, end := 0, 0, len(name)
	for i := 0; i < len(name); i++ {
		if depth == 0 && strings.HasPrefix(name[i:], "operator") && (i == 0 || !isWord(name[i-1])) {
			return name[i:]
		}
		switch name[i] {
		case '<':
			if depth == 0 {
				end = i
			}
			depth++
		case '>':
			depth--
		case ':':
			if depth == 0 {
				start, end = i+1, len(name)
			}
		}
	}
	if start > end {
		return name
	}
	return name[start:end]
}

// hasComponent reports whether a readable name has a component.
func hasComponent(readable, component string) bool {
	if component == "" {
		return false
	}
	for rest := readable; ; {
		i := strings.Index(rest, component)
		if i < 0 {
			return false
		}
		end := i + len(component)
		if (i == 0 || !isWord(rest[i-1])) && (end == len(rest) || !isWord(rest[end])) {
			return true
		}
		rest = rest[end:]
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
