// SPDX-License-Identifier: Apache-2.0

// Package process makes a target of a living process.
//
// The threads of the process are stopped by ptrace (PTRACE_SEIZE and
// PTRACE_INTERRUPT, which send no signal), their registers and the bytes of their
// stacks are copied, and they are let go. Nothing is read of the process's memory
// afterwards: what it has then is not of the same moment. So the memory of such a
// target is what was copied, and what mapped files have that nobody can have changed
// in memory. Everything else, as what is on the heap, is unknown.
//
// What is copied is laid out as the kernel would write a core of it, and package
// elfcore reads that: both know a process by the same notes and mappings.
//
// A process that is killed while it copies leaves nobody stopped: the kernel lets the
// threads go that a dead thread had seized. The thread that copies ends with the
// copying for the same reason.
package process
