// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

const (
	// maxMangled is the longest name that is demangled.
	maxMangled = 1 << 13
	// maxDemangled bounds results, as a power of two: names that refer back to
	// themselves grow exponentially.
	maxDemangled = 16
)

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

// Demangle returns the readable form of a linkage name in the spelling of LLVM's
// tools: Itanium C++, and Rust's legacy and v0 manglings (the hashes of Rust's
// names are left out). A symbol version is stripped first. A name that is not
// mangled, such as one of C or Go, comes back as it is, and so does one that
// cannot be demangled, is longer than 8 KiB, or would reach 64 KiB.
//
// Results are cached. The result may share memory with name, and the cache keeps
// it: a name in mapped memory must be copied first. It is safe for concurrent use.
func Demangle(name string) string { return demangled(name, namesLLVM, demangle.LLVMStyle) }

// DemangleGNU is Demangle in the spelling of binutils.
func DemangleGNU(name string) string { return demangled(name, namesGNU, demangle.Verbose) }

func demangled(name string, cache *nameCache, style demangle.Option) string {
	name = StripVersion(name)
	if !IsMangled(name) || len(name) > maxMangled {
		return name
	}
	return cache.get(name, func(name string) string { return demangleOnce(name, style) })
}

// IsMangled reports whether a name looks mangled, by the prefixes that LLVM's demanglers
// accept on ELF.
func IsMangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") || strings.HasPrefix(name, "___Z")
}

// llvmOperators puts operators before template arguments as LLVM writes them.
var llvmOperators = strings.NewReplacer("operator< <", "operator<<", "operator<< <", "operator<<<")

// demangleOnce demangles without a cache.
func demangleOnce(name string, style demangle.Option) string {
	if strings.HasPrefix(name, "_R") {
		return demangleRust(name, style)
	}
	readable, err := demangle.ToString(name, style, demangle.MaxLength(maxDemangled))
	if err != nil || len(readable) >= 1<<maxDemangled {
		return name
	}
	if style == demangle.LLVMStyle {
		if strings.Contains(readable, "operator<") {
			readable = llvmOperators.Replace(readable)
		}
		if i := strings.Index(readable, " (."); i >= 0 { // what compilers append to clones, once for all
			readable = readable[:i] + strings.ReplaceAll(readable[i:], ") (.", ".")
		}
	}
	return readable
}
