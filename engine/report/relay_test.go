// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

func TestRelayedTextIsNotTrusted(t *testing.T) {
	for _, c := range []struct {
		text, plain, coloured string
	}{
		{"frame\n\tint x; // ü\n", "frame\n\tint x; // ü\n", "frame\n\tint x; // ü\n"},
		{"\x1b[1mhead\x1b[0;22m\n", `\x1b[1mhead\x1b[0;22m` + "\n", "\x1b[1mhead\x1b[0;22m\n"},
		{"\x1b]0;title\a\x1b[2J\x1b[31m\n", `\x1b]0;title\a\x1b[2J\x1b[31m` + "\n", `\x1b]0;title\a\x1b[2J` + "\x1b[31m\n"},
		{"a\rb\u202ec\xff\n", `a\rb\u202ec\xff` + "\n", `a\rb\u202ec\xff` + "\n"},
	} {
		for _, color := range []bool{false, true} {
			want := c.plain
			if color {
				want = c.coloured
			}
			var out strings.Builder
			if err := Relay(&out, strings.NewReader(c.text), color); err != nil || out.String() != want {
				t.Errorf("%q, colours %v: %q, %v, expected %q", c.text, color, out.String(), err, want)
			}
		}
	}
	if err := Relay(&strings.Builder{}, strings.NewReader(strings.Repeat("x", maxRelayed+1)), false); err == nil {
		t.Error("a line without end is taken")
	}
}
