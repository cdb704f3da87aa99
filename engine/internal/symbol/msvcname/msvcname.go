// SPDX-License-Identifier: Apache-2.0

// Package msvcname undecorates the names that Microsoft's compilers, and others for Windows, give to
// functions and variables of C++. The text is in the spelling of llvm-undname; docs/differences.md lists
// where it differs.
package msvcname

import "strings"

// Style has what an undecorated name leaves out. As with llvm-undname's flags, types in the name of a
// class or of a scope around the name are always written whole, and pointers to functions always have
// their convention and result.
type Style struct {
	NoAccess            bool // public:, private:, protected:
	NoCallingConvention bool // __cdecl and others
	NoMemberType        bool // static, virtual, extern "C"
	NoReturnType        bool
	NoVariableType      bool
}

// Stacks is the style of names in stacks, as symbolize prints them: llvm-undname's with
// --no-access-specifier, --no-calling-convention, --no-member-type and --no-return-type.
var Stacks = Style{NoAccess: true, NoCallingConvention: true, NoMemberType: true, NoReturnType: true}

// Bounds of one name.
const (
	maxResult = 1 << 16  // bytes of the readable form
	maxDepth  = 1 << 10  // nesting of types, names and scopes
	maxWork   = 1 << 20  // bytes of names that are written to compare them
	maxNames  = 10       // that a digit can refer to
	hashed    = "??@"    // begins a name whose hash alone is left
	ofVtable  = "??_R4@" // follows the hash of the name of a vftable's locator
	typeinfo  = "."      // begins the name in a type descriptor
	decorated = "?"      // begins all others
	ended     = "@"      // ends a list or a name
)

// IsDecorated reports whether a name begins as a decorated one. The names in type descriptors, which
// begin with a dot, are not meant: they are no symbols.
func IsDecorated(name string) bool { return len(name) > 1 && name[0] == '?' }

// Type returns the type whose name is in its type descriptor, such as class error for .?AVerror@@; false
// where the name cannot be read.
func Type(descriptor string) (string, bool) {
	code, ok := strings.CutPrefix(descriptor, typeinfo)
	r := &reader{rest: code, work: maxWork}
	t := r.readType(mayHave)
	if !ok || r.isBad || r.rest != "" {
		return "", false
	}
	w := &writer{}
	w.node(t)
	return string(w.out), !w.isFull
}

// Undecorate returns the readable form of a name; false where it cannot be read, or would have 64 KiB
// or more. What follows a name that is complete is ignored, such as the suffix of a clone. The name in
// a type descriptor, .?AVname@@, is read too. A name of which compilers left a hash alone comes back
// as it is, without what follows the hash.
func Undecorate(name string, style Style) (string, bool) {
	r := &reader{rest: name, work: maxWork}
	n := r.symbol()
	if r.isBad {
		return "", false
	}
	w := &writer{Style: style}
	w.node(n)
	return string(w.out), !w.isFull
}
