// SPDX-License-Identifier: Apache-2.0

// Package goroutine finds the goroutines of a Go process and makes threads of them.
//
// The runtime keeps its goroutines, of type runtime.g, in a list that is named by
// runtime.allgptr and runtime.allglen. The places of the list and of the members of a goroutine
// are read from the program's DWARF, and so are the numbers of states and the texts of wait
// reasons: all of it changes from one version of Go to the next. For a program without DWARF it
// is known by the version, and verified by every goroutine.
package goroutine
