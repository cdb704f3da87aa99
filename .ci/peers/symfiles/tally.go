package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// A tally counts what is equal, and what is not by kinds.
type tally struct {
	equal   int
	classes map[string]int
	samples map[string][]string
	details int // how many samples of a kind are kept
}

// add counts one; class is "" where it is equal.
func (t *tally) add(class string, sample func() string) {
	if class == "" {
		t.equal++
		return
	}
	if t.classes == nil {
		t.classes, t.samples = map[string]int{}, map[string][]string{}
	}
	t.classes[class]++
	if len(t.samples[class]) < t.details {
		t.samples[class] = append(t.samples[class], sample())
	}
}

// merge adds what another one counted.
func (t *tally) merge(o *tally) {
	t.equal += o.equal
	for class, n := range o.classes {
		t.add(class, func() string { return "" })
		t.classes[class] += n - 1
		t.samples[class] = slices.DeleteFunc(t.samples[class], func(s string) bool { return s == "" })
		for _, s := range o.samples[class] {
			if len(t.samples[class]) < t.details {
				t.samples[class] = append(t.samples[class], s)
			}
		}
	}
}

// different is how many are not equal.
func (t *tally) different() (n int) {
	for _, count := range t.classes {
		n += count
	}
	return n
}

// print writes the counts, the most frequent kind first.
func (t *tally) print(w io.Writer, title string) {
	fmt.Fprintf(w, "%s: %d equal, %d not\n", title, t.equal, t.different())
	for _, class := range slices.SortedFunc(maps.Keys(t.classes), func(a, b string) int { return t.classes[b] - t.classes[a] }) {
		fmt.Fprintf(w, "  %8d %s\n", t.classes[class], class)
		for _, s := range t.samples[class] {
			fmt.Fprintf(w, "    %s\n", s)
		}
	}
}
