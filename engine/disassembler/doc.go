// SPDX-License-Identifier: Apache-2.0

// Package disassembler asks a tool of LLVM that the user names, llvm-mc or llvm-objdump,
// for the text of instructions.
//
// The tool is not trusted, and is confined as plugins are. An architecture's plugin says
// how long each instruction is; the tool's text is taken only where it says the same. A
// tool that hangs, crashes, writes without end or has other lengths costs its text, and
// one sentence.
package disassembler
