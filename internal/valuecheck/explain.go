// SPDX-License-Identifier: Apache-2.0

package valuecheck

import (
	"regexp"
	"slices"
	"strings"
)

// The reasons of differences in which the peer is wrong or guesses.
const (
	// A register that calls may change has no rule in the callee's rows: its
	// value in the caller is not known, but gdb takes the callee's.
	clobbered = "only gdb reads registers that calls may change"
	// Then an array has as many elements as such a register's value, or, if
	// its length is nowhere, no end.
	lostLength = "only gdb has an array without its length"
	// Go's functions keep no register for their callers.
	goRegister = "delve reads registers that calls may change"
	// At a return address the variable has its place during the call.
	goList = "delve looks location lists up at return addresses"
	// A part of a variable that is nowhere has zeros.
	goPiece = "delve has zeros for parts that are nowhere"
	// The discriminant of an enum in pieces may itself be nowhere in memory.
	gdbVariants = "gdb has all variants of an enum that is in pieces"
	// Before it is constructed, and when it was destroyed, a container has any bytes.
	notValid = "only gdb has elements of what is no container"
	// See onlyTheirs.
	noPrinter = "only gdb has a form of the type"
	// In split DWARF gcc writes the offset of a thread-local variable as an address,
	// which gdb takes for an offset, or does not read (DW_OP_constx).
	threadLocal = "gcc writes no offset of a thread-local variable"
)

// volatile finds registers that calls may change (System V psABI, 3.2.1) in
// gdb's description of a variable's place.
var volatile = regexp.MustCompile(`\$(rax|rdx|rcx|rsi|rdi|r8|r9|r10|r11|xmm[0-9]+|ymm[0-9]+|st[0-9]?)\b`)

// lengths finds clang's names for the lengths of variable-length arrays.
var lengths = regexp.MustCompile(`^__vla_expr`)

// explain returns why a value differs, where that is known.
func (c *comparison) explain(o Outcome, v *Value) string {
	place := c.variable.Place
	switch {
	case o == Miss && c.inner && !strings.Contains(place, "entry_value") && volatile.MatchString(place):
		return clobbered
	case o == Miss && v != nil && strings.HasPrefix(v.Problem, "not a valid "):
		return notValid
	case o == Miss && c.variable.Code == "array" && c.isLengthLost:
		return lostLength
	case o == Miss && v != nil && strings.Contains(v.Problem, "its segment PT_TLS has"):
		return threadLocal
	}
	if o == Miss && c.isGo {
		return c.explainGo(v)
	}
	return ""
}

// lists and inRegister find the parts of a location in delve's text: the offset of
// its list and the PC, and a register.
var (
	lists      = regexp.MustCompile(`^\[0x[0-9a-f]+:0x[0-9a-f]+\]`)
	inRegister = regexp.MustCompile(`DW_OP_b?reg\d`)
)

func (c *comparison) explainGo(v *Value) string {
	switch place := c.variable.Place; {
	case strings.Contains(place, "DW_OP_piece") && strings.Contains(c.location, "undefined"):
		return goPiece
	case c.inner && inRegister.MatchString(place):
		return goRegister
	case c.inner && lists.MatchString(place) && v != nil && v.Location == "":
		return goList
	}
	return ""
}

// lostLengths reports whether the length of an array of a frame is in a register that
// calls may change, or nowhere.
func lostLengths(theirs []*Node, isInner bool) bool {
	return slices.ContainsFunc(theirs, func(n *Node) bool {
		return lengths.MatchString(n.Name) && (n.Optimized || isInner && volatile.MatchString(n.Place))
	})
}
