package symbol

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

const (
	// maxMangled is the longest name that is demangled. The demangler recurses
	// on its input, and on some names its time grows with their square: at this
	// length a tenth of a second.
	maxMangled = 1 << 13
	// maxDemangled is the longest result, as the power of two the demangler
	// takes: names that refer back to themselves grow exponentially.
	maxDemangled = 16
)

// demangleOptions ask for the style of LLVM's tools.
var demangleOptions = []demangle.Option{demangle.LLVMStyle, demangle.MaxLength(maxDemangled)}

// StripVersion cuts the symbol version (@VERSION, or @@VERSION for the default
// one) that a linker appends to names in .symtab.
func StripVersion(name string) string {
	at := strings.IndexByte(name, '@')
	if at <= 0 {
		return name
	}
	version := strings.TrimPrefix(name[at+1:], "@")
	if version == "" {
		return name
	}
	for i := 0; i < len(version); i++ {
		switch c := version[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '-', c == '+':
		default:
			return name
		}
	}
	return name[:at]
}

// Demangle gives the readable form of a linkage name in the style of LLVM's
// tools: Itanium C++, and Rust's legacy and v0 manglings (the hash of a legacy
// name is left out). A symbol version is stripped first. A name that is not
// mangled, such as one of C or Go, comes back as it is, and so does one that
// cannot be demangled, is longer than 8 KiB, or would reach 64 KiB.
//
// Results are cached. The result may share memory with name, and the cache keeps
// it: a name in mapped memory must be copied first. It is safe for concurrent use.
func Demangle(name string) string {
	name = StripVersion(name)
	if !isMangled(name) || len(name) > maxMangled {
		return name
	}
	return names.get(name, demangleOnce)
}

// isMangled tells by the prefixes that LLVM's demanglers accept on ELF.
func isMangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") || strings.HasPrefix(name, "___Z")
}

// demangleOnce demangles without the cache. A demangler that panics on a
// hostile name costs only that name.
func demangleOnce(name string) (readable string) {
	defer func() {
		if recover() != nil {
			readable = name
		}
	}()
	s, err := demangle.ToString(name, demangleOptions...)
	if err != nil || s == "" || len(s) >= 1<<maxDemangled {
		return name
	}
	return joinSuffixes(s)
}

// joinSuffixes turns the groups of a clone's suffixes at the end of a name,
// such as " (.part.0) (.cold)", into the single group that LLVM writes.
func joinSuffixes(s string) string {
	for strings.HasSuffix(s, ")") {
		last := strings.LastIndex(s, " (.")
		if last <= 0 || s[last-1] != ')' {
			return s
		}
		previous := strings.LastIndex(s[:last], " (.")
		if previous < 0 || strings.IndexByte(s[previous:last-1], ')') >= 0 {
			return s
		}
		s = s[:last-1] + s[last+2:]
	}
	return s
}
