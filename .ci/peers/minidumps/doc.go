// SPDX-License-Identifier: Apache-2.0

// Package minidumps holds the stacks of minidumps against those of cores of the same
// crashes, against what Breakpad's and LLDB's own readers say of them, and against
// published ones; and what reading a large one takes beside Breakpad's reader. It has
// tests and benchmarks only.
package minidumps
