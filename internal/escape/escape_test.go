// SPDX-License-Identifier: Apache-2.0

package escape

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestTextIsPrintable(t *testing.T) {
	for _, c := range []struct{ text, want, line string }{
		{"", "", ""},
		{"plain ~", "plain ~", "plain ~"},
		{"a\nb\x1b[31m", `a\nb\x1b[31m`, `a\nb\x1b[31m`},
		{"\ta", `\ta`, "\ta"},
		{"\xff\u202e\u2028\u009b\x7f\r", `\xff\u202e\u2028\u009b\x7f\r`, `\xff\u202e\u2028\u009b\x7f\r`},
		{`C:\src é µ 日本`, `C:\src é µ 日本`, `C:\src é µ 日本`},
	} {
		if got, line := Text(c.text), Line(c.text); got != c.want || line != c.line {
			t.Errorf("%q: %q and %q, want %q and %q", c.text, got, line, c.want, c.line)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"plain", "a\nb\x1b[31m", "\xff\u202e", "\t"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for kept, got := range map[string]string{"": Text(s), "\t": Line(s)} {
			bad := func(r rune) bool { return !unicode.IsPrint(r) && !strings.ContainsRune(kept, r) }
			if !utf8.ValidString(got) || strings.ContainsFunc(got, bad) {
				t.Errorf("%q becomes %q", s, got)
			}
		}
		if IsPlain(s) && Text(s) != s || IsPlain([]byte(s)) != IsPlain(s) {
			t.Errorf("%q is plain and becomes %q", s, Text(s))
		}
	})
}
