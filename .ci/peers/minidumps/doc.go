// SPDX-License-Identifier: Apache-2.0

// Package minidumps compares the stacks of minidumps with the stacks of cores of the same
// crashes, with the output of Breakpad's and LLDB's own readers, and with published ones;
// and the cost of reading a large one with Breakpad's reader. It has tests and benchmarks
// only.
package minidumps
