// SPDX-License-Identifier: Apache-2.0

// Package debuginfod fetches files from debuginfod servers by build ID: executables, files of
// debug information and sources. It shares the cache of elfutils' clients
// (debuginfod_find_debuginfo(3), debuginfod-client-config(7)).
//
// A Client requests files from its servers alone, one after the other, and implements
// object.Remote.
//
// Every answer is treated as hostile. Its headers, its redirections, its size and its time are
// bounded. A code object must have the requested build ID, and be complete, before it gets a
// name in the cache; a source file must be as long as the server said. Truncated or wrong files
// are never kept.
package debuginfod
