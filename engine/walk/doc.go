// SPDX-License-Identifier: Apache-2.0

// Package walk walks one stack: from the registers of a thread to its outermost frame, over
// code objects whose rows package code finds.
//
// A Process is the threads, memory and code that stacks are walked in. A walk reads it through
// a Memory: the whole memory of a target, or the registers and stack bytes of one moment of a
// Sample. A frame has no registers: each is a location, found through the rows of the frames
// further in when it is needed.
//
// The package is large because these are one thing: a frame's registers, its lanes, the guesses
// that go on where there is no row, and the evaluation of expressions in it all look at the
// frames further in, during the walk.
package walk
