// SPDX-License-Identifier: Apache-2.0

// Package pe reads PE files, 32-bit and 64-bit ones, as files and as images in
// the memory of a process: headers, sections, exports, build identity; and the
// unwind information of x86-64 and arm64, which it turns into rows of call frame
// information.
//
// Sections and figures named here are in Microsoft's documents "PE Format",
// "x64 exception handling" and "ARM64 exception handling".
//
// Addresses are virtual: the image base plus the RVA in the file. The base is the
// header's, to which DWARF in the file is relative.
//
// The package does not depend on engines and targets. It lies below engine/object,
// and above cfi, whose rows it makes.
package pe
