// SPDX-License-Identifier: Apache-2.0

// Package msvcname undecorates the names that Microsoft's compilers give to functions and variables
// of C++.
package msvcname

// Style has what an undecorated name leaves out.
type Style struct {
	NoAccess, NoCallingConvention, NoMemberType, NoReturnType, NoVariableType bool
}

// Stacks is the style of names in stacks, as symbolize prints them: llvm-undname's with
// --no-access-specifier, --no-calling-convention, --no-member-type and --no-return-type.
var Stacks = Style{NoAccess: true, NoCallingConvention: true, NoMemberType: true, NoReturnType: true}

// IsDecorated reports whether a name begins as a decorated one.
func IsDecorated(name string) bool { return len(name) > 1 && name[0] == '?' }

// Undecorate returns the readable form of a name; false where it cannot be read.
func Undecorate(_ string, _ Style) (string, bool) { return "", false }
