// Package value reads what variables hold: by their types, from where locexpr says
// that they are, as a tree that reports print.
//
// A Reader reads in a Frame, which is what the expressions of debugging information
// are evaluated in. Whatever a file or a target says is bounded: how deep values lie in
// one another, how many elements are read, and how many values there are in all.
package value
