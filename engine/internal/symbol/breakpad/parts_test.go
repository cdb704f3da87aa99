// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestPartsAreTheWhole reads files in parts and as a whole: all that is known of them is
// the same, where records belong to others far above them, too.
func TestPartsAreTheWhole(t *testing.T) {
	var texts []string
	paths, _ := filepath.Glob("testdata/*.sym")
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(b))
	}
	for seed := range uint64(8) {
		rules := ""
		for i := range 50 {
			rules += fmt.Sprintf("STACK CFI INIT %x 40 .cfa: $rsp 8 + .ra: .cfa -8 + ^\nSTACK CFI %x .cfa: $rsp 16 +\n", i*0x40, i*0x40+4)
		}
		one, two := randomText(seed), randomText(seed+100)
		texts = append(texts, one+rules+two, one+strings.ReplaceAll(rules, "STACK CFI INIT", "FUNC 10 10 0 f\nSTACK CFI INIT"),
			// What belongs to rules and functions stands behind others.
			strings.ReplaceAll(one+rules, "\nSTACK CFI 4", "\nFUNC 90000 10 0 g\nSTACK CFI 4"), rules+two+"STACK CFI 0 .cfa: 1\n", one+"PUBLIC x\n12 12 12 12\n"+two)
	}
	apart := 0
	for i, text := range texts {
		whole := wholeOf(t, text, 1)
		for _, count := range []int{2, 3, 7, 40} {
			got := wholeOf(t, text, count)
			if !reflect.DeepEqual(got, whole) {
				t.Errorf("text %d in %d parts: %+v, as a whole %+v", i, count, got.counts, whole.counts)
			}
			if f := (&File{path: "x", data: []byte(text)}); len(f.partStarts(count)) > 1 {
				apart++
			}
		}
	}
	if apart < 50 {
		t.Errorf("%d readings are in parts, expected 50", apart)
	}
}

// wholeOf reads a text in about so many parts.
func wholeOf(t *testing.T, text string, count int) *File {
	t.Helper()
	f := &File{path: "x", data: []byte(text)}
	if _, err := f.readParts(count); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFunctionsThatAreTooLong has one whose lines go on for 17 MB: those in the first 16
// are read.
func TestFunctionsThatAreTooLong(t *testing.T) {
	var s strings.Builder
	s.WriteString("MODULE Linux x86_64 0 x\nFILE 0 a.c\nFUNC 0 10000000 0 f\n")
	start := s.Len() - len("FUNC 0 10000000 0 f\n")
	last := 0
	for i := 0; s.Len() < 17<<20; i++ {
		fmt.Fprintf(&s, "%x 1 %d 0\n", i, i)
		if s.Len() <= start+maxLength {
			last = i
		}
	}
	f := read(t, s.String())
	if got := textAt(t, f, uint64(last)); got != fmt.Sprintf("f@a.c:%d", last) {
		t.Errorf("the last line that is read is %s, expected %d", got, last)
	}
	if got := textAt(t, f, uint64(last+1)); got != "f@:0" {
		t.Errorf("behind the last line that is read: %s", got)
	}
	if first, more := f.Problems(); len(first) != 1 || more != 0 {
		t.Errorf("%v and %d more, expected one problem", first, more)
	}
}

// FuzzParts reads any bytes in three parts and as a whole.
func FuzzParts(f *testing.F) {
	f.Add([]byte(randomText(3)[:4000]))
	f.Add([]byte("FUNC 0 10 0 f\n0 1 1 1\nSTACK CFI INIT 0 1 .cfa: 1\nFUNC 20 10 0 g\nSTACK CFI 0 .cfa: 2\n0 1 1 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, parts := wholeOf(t, string(data), 1), wholeOf(t, string(data), 3)
		if !reflect.DeepEqual(whole, parts) {
			t.Errorf("%+v in parts, %+v as a whole", parts.counts, whole.counts)
		}
		m, err := moduleOf(data)
		if err == nil && (m.ID == "" || m.Name == "") {
			t.Errorf("%+v", m)
		}
	})
}
