// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"strings"

	"github.com/ianlancetaylor/demangle"

	"github.com/unwindd/unwindd/engine/internal/symbol/dname"
	"github.com/unwindd/unwindd/engine/internal/symbol/msvcname"
	"github.com/unwindd/unwindd/engine/internal/symbol/swiftname"
)

const (
	// maxMangled is the longest name that is demangled.
	maxMangled = 1 << 13
	// maxDemangled bounds results, as a power of two: names that refer back to
	// themselves grow exponentially.
	maxDemangled = 16
)

// StripVersion cuts the symbol version (@VERSION, or @@VERSION for the default one) that a
// linker appends to names in .symtab. Decorated names of Windows have none.
func StripVersion(name string) string {
	index := strings.IndexByte(name, '@')
	if index <= 0 || msvcname.IsDecorated(name) {
		return name
	}
	version := strings.TrimPrefix(name[index+1:], "@")
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
	return name[:index]
}

// Demangle returns the readable form of a linkage name: Itanium C++ and Rust's legacy and
// v0 manglings in the spelling of LLVM's tools (without the hashes of Rust's names), D in
// the spelling of binutils, and decorated ones of Windows as llvm-symbolizer has them, without
// results and conventions of calls. Of a name of Swift it is the simple names in it, which are marked as a part. A symbol version is stripped first. A name that is not mangled,
// such as one of C or Go, is returned unchanged, and so is a name that cannot be demangled,
// is longer than 8 KiB, or would reach 64 KiB.
//
// Results are cached. The result may share memory with name, and the cache keeps it: a name
// in mapped memory must be copied first. Demangle is safe for concurrent use.
func Demangle(name string) string { return stackNames.demangle(name) }

// DemangleLLVM is Demangle, except that it reads only those names of D that LLVM's tools
// read.
func DemangleLLVM(name string) string { return llvmNames.demangle(name) }

// DemangleGNU is Demangle in the spelling of binutils, which leave names of D unchanged
// where the language of a name is unknown.
func DemangleGNU(name string) string { return gnuNames.demangle(name) }

// nameStyle is a tool's spelling of names.
type nameStyle struct {
	cpp   demangle.Option                  // for C++ and Rust
	d     func(name string) (string, bool) // for D; false where a name stays as it is
	cache *nameCache
	swift bool // names of Swift are read in part
}

var (
	stackNames = nameStyle{demangle.LLVMStyle, dname.GNU, newNameCache(), true}
	llvmNames  = nameStyle{demangle.LLVMStyle, dname.LLVM, newNameCache(), false}
	gnuNames   = nameStyle{demangle.Verbose, func(string) (string, bool) { return "", false }, newNameCache(), false}
)

func (s *nameStyle) demangle(name string) string {
	if swiftname.IsMangled(name) {
		if !s.swift {
			return name
		}
		return s.cache.get(name, func(name string) string { return readOr(name, swiftname.Read) })
	}
	name = withoutKernel(StripVersion(name))
	if !IsMangled(name) || len(name) > maxMangled {
		return name
	}
	return s.cache.get(name, s.demangleOnce)
}

// withoutKernel returns the name of a device function to which compilers of CUDA gave a copy in a
// kernel, $KERNEL$FUNCTION; any other name is returned unchanged.
func withoutKernel(name string) string {
	if !strings.HasPrefix(name, "$") {
		return name
	}
	if at := strings.LastIndex(name, "$"); IsMangled(name[at+1:]) {
		return name[at+1:]
	}
	return name
}

// IsMangled reports whether a name begins with a prefix that LLVM's demanglers accept.
func IsMangled(name string) bool {
	return msvcname.IsDecorated(name) || strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") || strings.HasPrefix(name, "___Z") || dname.IsMangled(name)
}

// llvmOperators writes operators before template arguments as LLVM does.
var llvmOperators = strings.NewReplacer("operator< <", "operator<<", "operator<< <", "operator<<<")

// demangleOnce demangles without a cache.
func (s *nameStyle) demangleOnce(name string) string {
	switch {
	case msvcname.IsDecorated(name):
		return readOr(name, func(name string) (string, bool) { return msvcname.Undecorate(name, msvcname.Stacks) })
	case dname.IsMangled(name):
		return readOr(name, s.d)
	}
	if strings.HasPrefix(name, "_R") {
		return demangleRust(name, s.cpp)
	}
	readable, ok := demangleLegacyRust(name, s.cpp)
	if !ok {
		readable, ok = s.demangleCpp(name)
	}
	if !ok {
		return name
	}
	if len(readable) >= 1<<maxDemangled {
		return name
	}
	if s.cpp == demangle.LLVMStyle {
		if strings.Contains(readable, "operator<") {
			readable = llvmOperators.Replace(readable)
		}
		if i := strings.Index(readable, " (."); i >= 0 { // the suffixes of clones follow
			readable = readable[:i] + strings.ReplaceAll(readable[i:], ") (.", ".")
		}
	}
	return readable
}

// readOr returns what a function reads in a name, or the name.
func readOr(name string, read func(name string) (string, bool)) string {
	if readable, ok := read(name); ok {
		return readable
	}
	return name
}

// read demangles a name of C++ or legacy Rust with the library; ok is false where the
// library cannot read it, or where the result would reach the bound.
func read(name string, style demangle.Option) (readable string, ok bool) {
	readable, err := demangle.ToString(name, style, demangle.NoRust, demangle.MaxLength(maxDemangled))
	return readable, err == nil && len(readable) < 1<<maxDemangled
}

// maxSuffixes bounds the places where a suffix is looked for.
const maxSuffixes = 8

// demangleCpp demangles a name of C++. LLVM accepts suffixes behind names of any kind
// (docs/upstream.md), such as the name of a function's static variable.
func (s *nameStyle) demangleCpp(name string) (string, bool) {
	if readable, ok := read(name, s.cpp); ok || s.cpp != demangle.LLVMStyle {
		return readable, ok
	}
	end := 0
	for range maxSuffixes {
		dot := strings.IndexByte(name[end:], '.')
		if dot < 0 {
			break
		}
		end += dot
		if readable, ok := read(name[:end], s.cpp); ok {
			return readable + " (" + name[end:] + ")", true
		}
		end++
	}
	return "", false
}
