// SPDX-License-Identifier: Apache-2.0

// Package object reads code objects: ELF files, mapped or as bytes in memory.
//
// An Object gives headers, sections (decompressed, and relocated where the
// file is relocatable), notes, build ID, symbols and call frame sections. A
// Finder opens the files that a target names, and their separate debug files.
//
// Every byte is taken as hostile: each offset and count is checked against the
// bytes that are there, and unpacking is bounded by the size of the file. Errors
// name file, section, offset, and the expected value.
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
// A Store has objects that are open, and gives the same Object to all callers that open
// the same file, or the same bytes under the same name: its tables are made once. Each
// user closes the object; the last one unmaps the file. A Finder with a Store opens by it.
//
// # Size
//
// The package is large because each kind of object (a file, a part of a file, an image, a
// debug file) has the same headers, sections and symbols, and reads parts of them that no
// other package needs.
package object
