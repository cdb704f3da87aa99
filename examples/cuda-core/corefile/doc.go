// SPDX-License-Identifier: Apache-2.0

// Package corefile writes core files of NVIDIA GPUs from a plain description, as the driver
// writes them: the state of each lane is its input, a file its output. Nothing here reads
// such a file, and no code comes from this project's reader: both are written from NVIDIA's
// public headers, independently, so that each can be compared with the other.
//
// The headers: cudacoredump.h (the sections, their rows, and which driver appended which
// member) and cudadebugger.h (the numbers of exceptions and states). No core of a real
// driver was at hand.
//
// A Core describes everything; Build lays it out and returns an Image, which is written with
// WriteTo. A core has sections and no segments. All rows of a table have one parent: a
// section's sh_link is the section of the parent's table, its sh_info the parent's row.
package corefile
