// SPDX-License-Identifier: Apache-2.0

// Package walk walks one stack: from the registers of a thread to its outermost
// frame, over code objects of which package code knows the rows.
//
// A Process is the threads, memory and code that stacks are walked in. What a walk
// sees of it is a Memory: of a target all that it has, of a Sample the registers
// and stack bytes of one moment. A frame holds no registers: each is a location,
// found through the rows of the frames further in when someone asks.
//
// The package is large because these are one thing: a frame's registers, its lanes,
// the guesses that go on where there is no row, and the evaluation of expressions in
// it all look at the frames further in, while the walk is under way.
package walk
