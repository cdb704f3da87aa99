// SPDX-License-Identifier: Apache-2.0

// Package debuginfod asks debuginfod servers for files by build ID: executables, files
// of debug information and sources. What it gets it keeps in the cache of elfutils'
// clients, so that those and this one use what either has got
// (debuginfod_find_debuginfo(3), debuginfod-client-config(7)).
//
// A Client asks servers that it was told of and no others, one after the other, and
// implements object.Remote.
//
// Every answer is taken as hostile. Its headers, its redirections, its size and its time
// are bounded. A code object has to have the build ID that was asked for, and to be
// whole, before it gets a name in the cache; a source file has to be as long as the
// server said. What is cut short or wrong is never kept.
package debuginfod
