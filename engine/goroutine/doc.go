// SPDX-License-Identifier: Apache-2.0

// Package goroutine finds the goroutines of a Go process and makes threads of them.
//
// The runtime keeps its goroutines, of type runtime.g, in a list that is named by
// runtime.allgptr and runtime.allglen. Where that and the members of a goroutine are
// is read from the program's DWARF, and so are the numbers of states and the texts of
// what a goroutine waits for: all of it changes from one version of Go to the next. Of a
// program without DWARF it is known by the version, and verified by every goroutine.
package goroutine
