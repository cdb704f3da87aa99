// SPDX-License-Identifier: Apache-2.0

// Package trace is the data that an engine yields: targets, stacks and their frames, values of
// variables, facts about a crash, and profiles. It is plain data, which a program may keep,
// compare and write; package engine makes it. Addresses are in the memory of the target, offsets
// are ELF virtual addresses of a module, and numbers of registers are DWARF's.
package trace
