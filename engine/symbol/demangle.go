// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"strings"

	"github.com/unwindd/unwindd/engine/symbol/cxxname"
	"github.com/unwindd/unwindd/engine/symbol/dname"
)

const (
	// maxMangled is the longest name that is demangled.
	maxMangled = 1 << 13
	// maxDemangled is the longest result, as a power of two: names that refer back
	// to themselves grow exponentially.
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

// Demangle gives the readable form of a linkage name in the spelling of LLVM's
// tools: Itanium C++, and Rust's legacy and v0 manglings (the hash of a legacy
// name is left out). Names of D are those of binutils. Template parameters that a name refers back to have the
// meaning that the ABI gives them, and names that LLVM does not read are read, see
// cxxname.ABI; DemangleLLVM does in all what LLVM does. A symbol version is
// stripped first. A name that is not mangled, such as one of C or Go, comes back
// as it is, and so does one that cannot be demangled, is longer than 8 KiB, or
// would reach 64 KiB.
//
// Results are cached. The result may share memory with name, and the cache keeps
// it: a name in mapped memory must be copied first. It is safe for concurrent use.
func Demangle(name string) string { return demangle(name, names, cxxname.ABI, dname.GNU) }

// DemangleLLVM is Demangle as LLVM 22 does it to the byte: its spelling, its
// reading, and names that it leaves mangled.
func DemangleLLVM(name string) string { return demangle(name, namesLLVM, cxxname.LLVM, dname.LLVM) }

// DemangleGNU is Demangle as binutils 2.40 do it to the byte, where nobody says that a name
// is one of D.
func DemangleGNU(name string) string { return demangle(name, namesGNU, cxxname.GNU, unread) }

// unread reads no name.
func unread(string) (string, bool) { return "", false }

// A reading is how names of a language are read; ok is false of a name that is not.
type reading func(name string) (readable string, ok bool)

func demangle(name string, cache *nameCache, cpp, d reading) string {
	name = StripVersion(name)
	if !IsMangled(name) || len(name) > maxMangled {
		return name
	}
	return cache.get(name, func(name string) string { return demangleOnce(name, cpp, d) })
}

// IsMangled says whether a name looks mangled, by the prefixes that LLVM's demanglers
// accept on ELF.
func IsMangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") || strings.HasPrefix(name, "___Z") || dname.IsMangled(name)
}

// demangleOnce demangles without a cache, names of C++ and D by a function.
func demangleOnce(name string, cpp, d reading) string {
	if dname.IsMangled(name) {
		if readable, ok := d(name); ok {
			return readable
		}
		return name
	}
	if strings.HasPrefix(name, "_R") {
		if readable, err := demangleRust(name); err == nil {
			return readable
		}
		return name
	}
	if readable, ok := demangleLegacyRust(name); ok {
		return readable
	}
	if readable, ok := cpp(name); ok {
		return readable
	}
	return name
}
