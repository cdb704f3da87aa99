// SPDX-License-Identifier: Apache-2.0

// Package corefile writes core files of AMD GPUs from a plain description, as the ROCm
// runtime and ROCgdb's gcore write them: the state of each wave is its input, a file its
// output. Nothing here reads such a file, and no code comes from this project's reader:
// both are written from the same public sources, independently, so that each can be
// compared with the other.
//
// The sources: ROCdbgapi's src/architecture.cpp (control stack, records, trap
// temporaries), src/queue.cpp (header of the save area, packets, scratch),
// src/process.cpp (r_debug), src/os_driver.cpp (the note as gcore writes it); ROCr's
// amd_core_dump.cpp (the note and the file of a split core), trap_handler.s and
// trap_handler_gfx12.s (the state of a stopped wave), amd_hsa_queue.h and hsa.h
// (amd_queue_t, packets); the kernel's kfd_ioctl.h. The source of each field and number
// is noted at it. No core of real hardware was available.
//
// A Core describes everything; Build lays it out, checks that each value fits
// and returns an Image, whose Files are written with WriteTo or WriteFile. One
// save area looks like this, from low to high addresses:
//
//	header      40 bytes: where the others are
//	...
//	control     2 words of the command processor, then for each wave a word
//	stack       (first, last, shader engine, scratch), before it the words of
//	            its state where that changed (registers, LDS, width)
//	record N    of the last wave: VGPRs, accumulation VGPRs or shared VGPRs,
//	...         SGPRs, hardware registers, trap temporaries, and above those
//	record 1    of a group's first wave its LDS
//
// so the records are found from the top down as the control stack is read
// upwards.
package corefile
