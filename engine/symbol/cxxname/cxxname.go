// SPDX-License-Identifier: Apache-2.0

// Package cxxname gives mangled names of C++ (Itanium C++ ABI) in their readable
// form, in the spelling of LLVM's tools and in that of the GNU ones.
//
// The tools differ in more than spelling: in what template parameters stand for
// that a name refers back to, in names that they do not read, and in what they
// write for packs, lambdas and types without a name. One parser reads names as
// either does, see reading, and one printer for each writes what was read.
//
// Names are hostile: reading is bounded by depth and by parts, writing by parts
// and by the length of the text.
//
// The package is large because the grammar is: one tree of names has a parser and two
// printers, and no part of it is of use to others.
package cxxname

// LLVM gives a mangled name of C++ as LLVM 22's tools write it; false where they
// leave it as it is, or where it would reach 64 KiB.
func LLVM(name string) (string, bool) { return write(name, readLLVM) }

// ABI gives a mangled name in LLVM's spelling with the meaning that the ABI gives
// it. LLVM takes a reference back to a template parameter for what the parameter
// stood for where it was first, be that another template or a lambda. This takes
// it for what it stands for where it is (5.1.10). And it reads clones for
// transactional memory, conversion operators to templates and gcc's names in std
// within expressions (srSt), and names constructors of types without a name.
func ABI(name string) (string, bool) {
	if text, ok := write(name, readABI); ok {
		return text, true
	}
	return write(name, readLLVM)
}

func write(name string, r reading) (string, bool) {
	n := newParser(name, r).mangled()
	if n == nil {
		return "", false
	}
	o := llvmPrinter{pack: noPack, packs: noPack, brackets: 1, namesAll: r == readABI}
	o.print(n)
	return string(o.text), !o.failed && len(o.text) > 0
}
