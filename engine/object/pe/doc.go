// SPDX-License-Identifier: Apache-2.0

// Package pe reads PE files, 32-bit and 64-bit ones, as files and as images in
// the memory of a process: headers, sections, exports, build identity; and the
// unwind information of x86-64, which it turns into rows of call frame
// information.
//
// Sections and figures named here are those of Microsoft's "PE Format" and
// "x64 exception handling" documents.
//
// Addresses are virtual: the image base plus the RVA that the file holds. The base
// is the header's, which is what DWARF in the file is relative to.
//
// The package knows nothing of engines and targets. It lies below engine/object's
// users, as call frame information does, and above cfi, in whose words its rows
// are.
package pe
