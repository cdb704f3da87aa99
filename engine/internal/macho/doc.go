// SPDX-License-Identifier: Apache-2.0

// Package macho reads Mach-O files of 64 bits: executables, libraries, bundles, object files, the
// companions that dsymutil writes (dSYM), and cores, alone or in universal files.
//
// The format is that of the headers mach-o/loader.h, nlist.h, fat.h, fixup-chains.h and
// compact_unwind_encoding.h of macOS.
package macho
