// SPDX-License-Identifier: Apache-2.0

package escape

import (
	"encoding/json"
	"errors"
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

func TestJSONIsPrintable(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"plain <b>&", `"plain <b>&"`},
		{"a\nb\x1b\u202ec\u2066\u007f\u009b", `"a\nb\u001b\u202ec\u2066\u007f\u009b"`},
		{"日本 \U000e0041.", `"日本 \udb40\udc41."`},
	} {
		got, err := AppendJSON([]byte("x"), c.text, "")
		if err != nil || string(got) != "x"+c.want+"\n" {
			t.Errorf("%q: %s, want x%s: %v", c.text, got, c.want, err)
		}
		var back string
		if err := json.Unmarshal(got[1:], &back); err != nil || back != c.text {
			t.Errorf("%s is read as %q: %v", got, back, err)
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
		b, err := AppendJSON(nil, s, "")
		var back string
		if err := errors.Join(err, json.Unmarshal(b, &back)); err != nil || back != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Errorf("%q is read as %q: %v", s, back, err)
		}
		if i := strings.IndexFunc(string(b), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q becomes %q", s, b)
		}
		if IsPlain(s) && Text(s) != s || IsPlain([]byte(s)) != IsPlain(s) {
			t.Errorf("%q is plain and becomes %q", s, Text(s))
		}
	})
}

func TestPlainTextHasPrintableASCIIAlone(t *testing.T) {
	for c := range 256 {
		for at := range 17 {
			text := []byte("plain text of 17.")
			text[at] = byte(c)
			if want := c >= ' ' && c <= '~'; IsPlain(text) != want || IsPlain(string(text)) != want {
				t.Errorf("IsPlain(%q) is %v, expected %v", text, !want, want)
			}
		}
	}
}
