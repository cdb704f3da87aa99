// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// class is a kind of differences.
type class struct {
	name string
	// isKnown says that the reason is known: docs/differences.md has it, or the name says all.
	isKnown bool
}

// known is a class of differences whose reason is known.
func known(name string) class { return class{name, true} }

// unknown is one of others.
func unknown(name string) class { return class{name, false} }

// tally counts equal records, and different ones by classes.
type tally struct {
	title   string
	equal   int
	counts  map[class]int
	samples map[class][]string
	details int // how many samples of a class are kept
}

// add counts one; the zero class says that it is equal.
func (t *tally) add(c class, sample func() string) {
	if c == (class{}) {
		t.equal++
		return
	}
	if t.counts == nil {
		t.counts, t.samples = map[class]int{}, map[class][]string{}
	}
	t.counts[c]++
	if len(t.samples[c]) < t.details {
		t.samples[c] = append(t.samples[c], sample())
	}
}

// unexplained is how many are of classes that are not known.
func (t *tally) unexplained() (n int) {
	for c, count := range t.counts {
		if !c.isKnown {
			n += count
		}
	}
	return n
}

// print writes the counts, the most frequent class first.
func (t *tally) print(w io.Writer) {
	different := 0
	for _, count := range t.counts {
		different += count
	}
	fmt.Fprintf(w, "%s: %d equal, %d not\n", t.title, t.equal, different)
	for _, c := range slices.SortedFunc(maps.Keys(t.counts), func(a, b class) int { return t.counts[b] - t.counts[a] }) {
		mark := "  "
		if !c.isKnown {
			mark = "? "
		}
		fmt.Fprintf(w, "%s%8d %s\n", mark, t.counts[c], c.name)
		for _, s := range t.samples[c] {
			fmt.Fprintf(w, "    %s\n", s)
		}
	}
}
