// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

// A guess is marked in the text, the page and the summary; in forms that tools draw, where
// it was asked for.
func TestGuessesOfProfilesAreMarked(t *testing.T) {
	written := func(t *testing.T, name string, p *Profile) string {
		t.Helper()
		var b bytes.Buffer
		write := formats(p)[name]
		if name == "page" {
			write = p.WritePage
		}
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if name != "pprof" {
			return b.String()
		}
		z, err := gzip.NewReader(&b)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	p := workday().view(t)
	for name, want := range map[string]string{
		"text":    "main /src/work.cc:38 in work (a guess in 16.7%)",
		"page":    "main (a guess in 16.7%)",
		"summary": "guesses: 1 of 14 stacks (7.1%) have a frame that is a guess",
		"json":    `"found_by":"scan"`,
		"otlp":    "unwindd.frame.guess",
	} {
		if got := written(t, name, p); !strings.Contains(got, want) {
			t.Errorf("%s has no %q:\n%.3000s", name, want, got)
		}
	}
	for _, name := range []string{"pprof", "folded", "speedscope", "firefox"} {
		if got := written(t, name, p); strings.Contains(got, "guess") {
			t.Errorf("%s has a mark that nobody asked for", name)
		}
		got := written(t, name, p.MarkGuesses())
		if !strings.Contains(got, "main_[guess]") || strings.Contains(got, "_start_[guess]") {
			t.Errorf("%s does not mark the guess alone", name)
		}
	}
}
