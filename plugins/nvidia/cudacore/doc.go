// SPDX-License-Identifier: Apache-2.0

// Package cudacore reads the core files of CUDA's driver: the state of NVIDIA GPUs in the
// sections .cudbg.* of an ELF file.
//
// The format is that of NVIDIA's public header cudacoredump.h, which says for each member of
// a row from which driver on it is there; cudadebugger.h has the numbers of exceptions and
// states. The type of a section tells its contents. Its sh_link is the section of its
// parent's table, its sh_info the row in it. Names of sections are not read.
//
// State stays in the file: an answer says at which offsets registers and memory are.
package cudacore
