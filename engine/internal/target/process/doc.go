// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package process makes a target of a live process.
//
// The threads of the process are stopped by ptrace (PTRACE_SEIZE and
// PTRACE_INTERRUPT, which send no signal), their registers and the bytes of their
// stacks are copied, and they are released. The process's memory is not read
// afterwards, when it is not of the same moment. So the memory of such a target
// is the copy, and the read-only parts of mapped files. All else, as the heap,
// is unknown.
//
// The copy is laid out as the kernel would write a core, and package elfcore reads
// it: both describe a process by the same notes and mappings.
//
// A process that is killed while it copies leaves no thread stopped: the kernel
// releases the threads that a dead thread had seized. For the same reason the
// thread that copies ends afterwards.
package process
