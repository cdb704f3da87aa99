// SPDX-License-Identifier: Apache-2.0

// Package disassembler gets the text of instructions from a user-provided tool: LLVM's llvm-mc
// or llvm-objdump, or NVIDIA's nvdisasm, which knows no other code.
//
// The tool is not trusted, and is confined as plugins are. An architecture's plugin defines the
// length of each instruction; the tool's text is used only if its length is the same. If a tool
// hangs, crashes, writes without end or has other lengths, its text is missing, with one
// sentence as the reason.
package disassembler
