// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestWordsOfResponseFiles(t *testing.T) {
	got := words(`-e "a b"  c\ d 'e "f' ` + "\n\t" + `g"h"i ""`)
	want := []string{"-e", "a b", "c d", `e "f`, "ghi", ""}
	if strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzWords(f *testing.F) {
	for _, text := range []string{`-e "a b" c\ d 'e "f'`, "\n\t\\", `"`, "@a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, w := range words(text) {
			if len(w) > len(text) {
				t.Errorf("%q has the word %q", text, w)
			}
		}
	})
}
