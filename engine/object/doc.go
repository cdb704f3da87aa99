// SPDX-License-Identifier: Apache-2.0

// Package object reads code objects: ELF files, mapped or as bytes in memory.
//
// An Object gives headers, sections (decompressed, and relocated where the
// file is relocatable), notes, build ID, symbols and call frame sections. A
// Finder opens the files that a target names, and their separate debug files.
//
// Every byte is taken as hostile: each offset and count is checked against the
// bytes that are there, and what is unpacked is bounded by the size of the
// file. Errors name file, section, offset, and what was expected.
//
// # Mapped files
//
// Bytes that the methods return lie in the mapping and must not be changed, nor
// used after Close. A file that is cut while it is mapped faults when it is
// read: the methods of this package return ErrFileShrank then, and code that
// reads returned bytes itself runs inside Guard.
//
// # Objects that are shared
//
// A Store has objects that are open, and gives the same Object to all who open the
// same file, or the same bytes under the same name: what is made of them once serves
// all. Each user closes what it opened; the last one unmaps the file. A Finder with a
// Store opens by it.
//
// # Size
//
// The package is large because each of the ways to an object (a file, a part of one, an
// image, a debug file) ends in the same headers, sections and symbols, of which each
// looks at parts that no other package needs.
package object
