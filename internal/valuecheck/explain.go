package valuecheck

import (
	"regexp"
	"strings"
)

// The reasons of differences in which the peer is wrong or guesses.
const (
	// A register that calls may change has no rule in the callee's rows: its
	// value in the caller is not known, but gdb takes the callee's.
	clobbered = "only gdb reads registers that calls may change"
)

// volatile finds registers that calls may change (System V psABI, 3.2.1) in what
// gdb says of a variable's place.
var volatile = regexp.MustCompile(`\$(rax|rdx|rcx|rsi|rdi|r8|r9|r10|r11|xmm[0-9]+|ymm[0-9]+|st[0-9]?)\b`)

// explain says why a value differs, where that is known.
func (c *comparison) explain(o Outcome, n *Node, v *Value) string {
	if place := c.variable.Place; o == Miss && c.inner && !strings.Contains(place, "entry_value") && volatile.MatchString(place) {
		return clobbered
	}
	return ""
}
