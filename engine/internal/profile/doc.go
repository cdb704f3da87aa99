// SPDX-License-Identifier: Apache-2.0

// Package profile makes profiles of recordings: it walks the stacks of all samples of a
// perf.data file, joins samples of accelerators to them, and puts equal stacks together.
//
// One walk.Process has the modules of all processes of a recording, at the addresses of their
// objects, so that an object's rows and names are found once, however many processes mapped it
// and wherever. The mappings of a process at a time are a codeSpace beside it.
//
// The package is large because samples of accelerators, JIT code, and parts that other machines
// walked all end in the same stacks, which are put together while they are walked.
package profile
