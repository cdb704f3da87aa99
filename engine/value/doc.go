// SPDX-License-Identifier: Apache-2.0

// Package value reads what variables hold: by their types, from where locexpr says
// that they are, as a tree that reports print.
//
// A Reader reads in a Frame, which is what the expressions of debugging information
// are evaluated in. Whatever a file or a target says is bounded: how deep values lie in
// one another, how many elements are read, and how many values there are in all.
//
// What the types of libraries stand for is read by forms: rows of the files in tables,
// in a language of paths through an object's members. A form is one only for an object
// whose invariants hold.
//
// The package is large because that language is part of it: forms read values, and
// values of forms are read as all others are.
package value
