// SPDX-License-Identifier: Apache-2.0

// Package value reads the values of variables, by their types and at the locations that locexpr
// finds, as a tree that reports print.
//
// A Reader reads in a Frame, in which the expressions of debugging information are evaluated.
// Everything from a file or a target is bounded: how deep values are nested, how many elements
// are read, and how many values there are in all.
//
// Objects of libraries' types are shown by forms: rows of the files in tables, in a language of
// paths through an object's members. A form applies only to an object whose invariants hold.
//
// The package is large because that language is part of it: forms read values, and their
// results are read like all others.
package value
