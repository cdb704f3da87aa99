// SPDX-License-Identifier: Apache-2.0

package cxxname

import (
	"math"
	"strconv"
	"strings"
)

const (
	// maxText bounds what is written: names that refer back to themselves grow
	// with a power.
	maxText = 1 << 16
	// maxSteps bounds the parts that are visited, of which many may write nothing.
	maxSteps = 1 << 18
)

// An output is the text of a name that is being written. Once it would be too
// long, failed is set, and nothing more is written.
type output struct {
	text   []byte
	failed bool
	steps  int
	depth  int
}

func (o *output) fail() { o.failed = true }

func (o *output) byte(c byte) { o.text = append(o.text, c) }

func (o *output) string(s string) {
	if o.failed {
		return
	}
	if o.text = append(o.text, s...); len(o.text) >= maxText {
		o.fail()
	}
}

func (o *output) last() byte {
	if len(o.text) == 0 {
		return 0
	}
	return o.text[len(o.text)-1]
}

// enter says whether a part is to be written; leave follows where it is. A part
// that contains itself is not written: references to arguments that follow can
// make such parts.
func (o *output) enter(n *node) bool {
	if n == nil || o.failed {
		return false
	}
	if o.steps++; o.steps > maxSteps || o.depth >= 2*maxDepth || n.printing > 3 {
		o.fail()
		return false
	}
	o.depth++
	n.printing++
	return true
}

func (o *output) leave(n *node) {
	o.depth--
	n.printing--
}

func decimal(n int) string { return strconv.Itoa(n) }

// floatText is a floating point literal (ABI 5.1.6.4) as C's %a writes it: the
// bytes are those of the number, from the highest on.
func floatText(c byte, digits string) string {
	switch c {
	case 'f':
		bits, _ := strconv.ParseUint(digits, 16, 32)
		return hexFloat(float64(math.Float32frombits(uint32(bits)))) + "f"
	case 'd':
		bits, _ := strconv.ParseUint(digits, 16, 64)
		return hexFloat(math.Float64frombits(bits))
	}
	return extendedText(digits) + "L"
}

// hexFloat is a number in C's %a: exponents of two have as few digits as they need.
func hexFloat(v float64) string {
	switch {
	case math.IsNaN(v) && math.Signbit(v):
		return "-nan"
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+"))
	}
	text := strconv.FormatFloat(v, 'x', -1, 64)
	at := strings.IndexByte(text, 'p')
	if exponent := text[at+2:]; len(exponent) == 2 && exponent[0] == '0' {
		return text[:at+2] + exponent[1:]
	}
	return text
}

// extendedText is a number of the x87's 80 bits in C's %La, whose first digit has
// the four highest bits.
func extendedText(digits string) string {
	head, _ := strconv.ParseUint(digits[:4], 16, 16)
	mantissa, _ := strconv.ParseUint(digits[4:], 16, 64)
	sign := ""
	if head&0x8000 != 0 {
		sign = "-"
	}
	exponent := int(head & 0x7fff)
	switch {
	case mantissa == 0 && exponent == 0:
		return sign + "0x0p+0"
	case exponent == 0x7fff && mantissa<<1 == 0:
		return sign + "inf"
	case exponent == 0x7fff:
		return sign + "nan"
	}
	text := strings.TrimRight(strconv.FormatUint(mantissa, 16), "0")
	if len(text) > 1 {
		text = text[:1] + "." + text[1:]
	}
	e := exponent - 16383 - 3
	if e >= 0 {
		return sign + "0x" + text + "p+" + decimal(e)
	}
	return sign + "0x" + text + "p" + decimal(e)
}
