// SPDX-License-Identifier: Apache-2.0

// Package symbolstore fetches PDB files, symbol files and code from stores: directories or servers with the
// layout of Breakpad's and Microsoft's tools:
//
//	kernel32.pdb/E5D1C4B2A2F04E3D9E2B7C4C2A3C9C1D1/kernel32.sym
//	libc.so.6/C0BCC3F19827FE653058404B2831D9E60/libc.so.6.sym
//	kernel32.dll/590285E9e0000/kernel32.dll
//	kernel32.pdb/E5D1C4B2A2F04E3D9E2B7C4C2A3C9C1D1/kernel32.pdb
//	ke/kernel32.pdb/E5D1C4B2A2F04E3D9E2B7C4C2A3C9C1D1/kernel32.pd_
//	libc.so.6/elf-buildid-f1c3bcc0279865fe3058404b2831d9e64135386c/libc.so.6
//
// The first two are symbol files of Breakpad, by the debug identifier ("Symbol server layout"
// of its processor). The third is a PE file, by time and size, and the next ones are PDB files, of
// which the second is in a cabinet, in a store of two tiers. The last is an ELF file, by build ID
// (SSQP Key Conventions: PE-timestamp-filesize, PDB-Signature-Age, ELF-buildid).
//
// Names and identifiers come from dumps, which may be hostile. Only plain names are requested
// from a store, and the file must have the requested identifier.
package symbolstore
