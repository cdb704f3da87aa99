// SPDX-License-Identifier: Apache-2.0

// Package symbolstore takes symbol files and code from stores, which are directories or
// servers, laid out as Breakpad's and Microsoft's tools do:
//
//	kernel32.pdb/E5D1C4B2A2F04E3D9E2B7C4C2A3C9C1D1/kernel32.sym
//	libc.so.6/C0BCC3F19827FE653058404B2831D9E60/libc.so.6.sym
//	kernel32.dll/590285E9e0000/kernel32.dll
//	libc.so.6/elf-buildid-f1c3bcc0279865fe3058404b2831d9e64135386c/libc.so.6
//
// The first two are of Breakpad's symbol files ("Symbol server layout" of its
// processor), by the debug identifier. The third is of PE files, by time and size, and the
// fourth of ELF files, by build ID (SSQP Key Conventions: PE-timestamp-filesize,
// ELF-buildid).
//
// Names and identifiers come from dumps, which may be made to name anything. A store is
// asked for plain names only, and what it gives has to have the identifier that was asked
// for.
package symbolstore
