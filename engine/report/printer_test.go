// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

type named string

type stringer struct{ text string }

func (s stringer) String() string { return s.text }

func TestPrinterEscapesArguments(t *testing.T) {
	const bad = "a\nb\x1b[31m"
	var b bytes.Buffer
	p := NewPrinter(&b)
	red := newPaint(true).warn(bad)
	for _, c := range []struct {
		arg  any
		want string
	}{
		{bad, `<a\nb\x1b[31m>`},
		{named(bad), `<a\nb\x1b[31m>`},
		{string([]byte(bad)), `<a\nb\x1b[31m>`},
		{errors.New(bad), `<a\nb\x1b[31m>`},
		{stringer{bad}, `<a\nb\x1b[31m>`},
		{[]string{bad, "c"}, `<[a\nb\x1b[31m c]>`},
		{struct{ s string }{bad}, `<{a\nb\x1b[31m}>`},
		{"\xff\u202e\u2028\u009b\x7f\t\r", `<\xff\u202e\u2028\u009b\x7f\t\r>`},
		{`C:\src é µ 日本`, `<C:\src é µ 日本>`},
		{red, "<\x1b[31m" + `a\nb\x1b[31m` + "\x1b[0m>"},
		{7, "<7>"},
	} {
		b.Reset()
		p.Printf("<%v>", c.arg)
		if err := p.Flush(); err != nil || b.String() != c.want {
			t.Errorf("%#v: %q, %v, expected %q", c.arg, b.String(), err, c.want)
		}
	}
	b.Reset()
	p.Printf("%-4s|%6.2s|%q|%5d|\n", "é\n", "\x1b\x1b\x1b", "\x1b\"", 12)
	if err := p.Flush(); err != nil || b.String() != `é\n  |    \x1b\x1b|"\x1b\""|   12|`+"\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	args := []any{bad}
	p.Printf("%s", args...)
	if args[0] != bad {
		t.Error("the caller's arguments were changed")
	}
}

func TestPrinterKeepsTheError(t *testing.T) {
	for _, p := range []*Printer{NewPrinter(&failing{}), NewLinePrinter(&failing{})} {
		p.Printf("%s", strings.Repeat("x", 1<<17))
		if p.check() == nil || p.Flush() == nil {
			t.Error("no error")
		}
	}
}
