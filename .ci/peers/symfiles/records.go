// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// This file reads symbol files on its own: what it is held against is not used to read it.

// function is a FUNC record with what follows it.
type function struct {
	start, end uint64
	name       string
	multiple   bool
	lines      []line
	inlines    []inline
}

type line struct {
	start, end uint64
	number     int
	file       string
}

type inline struct {
	depth, line int
	file, name  string
	ranges      [][2]uint64
}

// rules are the rules of a STACK CFI record, by the name of the register.
type rules map[string]string

// records are the lines of a symbol file, parsed.
type records struct {
	module, codeID string
	functions      map[uint64]*function
	publics        map[uint64]string
	cfi            map[uint64]rules // by where they begin to hold
	cfiEnds        map[uint64]bool  // where nothing holds any more
}

// read reads a symbol file.
func read(from io.Reader) (*records, error) {
	r := &records{functions: map[uint64]*function{}, publics: map[uint64]string{}, cfi: map[uint64]rules{}, cfiEnds: map[uint64]bool{}}
	files, origins := map[string]string{}, map[string]string{"": ""}
	var f *function
	var now rules
	s := bufio.NewScanner(from)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		kind, rest, _ := strings.Cut(s.Text(), " ")
		switch kind {
		case "MODULE":
			r.module = rest
		case "INFO":
			r.codeID = rest
		case "FILE":
			n, name, _ := strings.Cut(rest, " ")
			files[n] = name
		case "INLINE_ORIGIN":
			n, name, _ := strings.Cut(rest, " ")
			origins[n] = name
		case "FUNC":
			rest, isMultiple := strings.CutPrefix(rest, "m ")
			w := strings.SplitN(rest, " ", 4)
			f = &function{start: hex(w[0]), name: w[3], multiple: isMultiple}
			f.end = f.start + hex(w[1])
			r.functions[f.start] = f
		case "INLINE":
			w := strings.Fields(rest)
			c := inline{depth: decimal(w[0]), line: decimal(w[1]), file: files[w[2]], name: origins[w[3]]}
			for i := 4; i+1 < len(w); i += 2 {
				c.ranges = append(c.ranges, [2]uint64{hex(w[i]), hex(w[i]) + hex(w[i+1])})
			}
			f.inlines = append(f.inlines, c)
		case "PUBLIC":
			rest, _ := strings.CutPrefix(rest, "m ")
			w := strings.SplitN(rest, " ", 3)
			r.publics[hex(w[0])] = w[2]
		case "STACK":
			now = r.stack(strings.Fields(rest), now)
		default:
			w := strings.Fields(s.Text())
			at := hex(w[0])
			f.lines = append(f.lines, line{at, at + hex(w[1]), decimal(w[2]), files[w[3]]})
		}
	}
	return r, s.Err()
}

// stack reads a STACK CFI record; now are the rules before it.
func (r *records) stack(w []string, now rules) rules {
	next := 2
	if w[1] == "INIT" {
		now, next = rules{}, 4
		r.cfiEnds[hex(w[2])+hex(w[3])] = true
	} else {
		now = maps.Clone(now)
	}
	at := hex(w[next-1])
	if w[1] == "INIT" {
		at = hex(w[2])
	}
	name, text := "", []string(nil)
	put := func() {
		if name == "" {
			return
		}
		delete(now, name)
		if rule := strings.Join(text, " "); rule != name { // else it is unchanged
			now[name] = rule
		}
	}
	for _, word := range w[next:] {
		if before, ok := strings.CutSuffix(word, ":"); ok {
			put()
			name, text = before, nil
			continue
		}
		text = append(text, word)
	}
	put()
	r.cfi[at] = now
	return now
}

func hex(s string) uint64 {
	n, _ := strconv.ParseUint(s, 16, 64)
	return n
}

func decimal(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// at is the line of an address; nil: there is none.
func (f *function) at(address uint64) *line {
	i, found := slices.BinarySearchFunc(f.lines, address, func(l line, a uint64) int {
		switch {
		case a < l.start:
			return 1
		case a >= l.end:
			return -1
		}
		return 0
	})
	if !found {
		return nil
	}
	return &f.lines[i]
}

// chain is the calls that were inlined around an address, outermost first.
func (f *function) chain(address uint64) (list []*inline) {
	for i := range f.inlines {
		c := &f.inlines[i]
		if c.depth == len(list) && slices.ContainsFunc(c.ranges, func(r [2]uint64) bool { return r[0] <= address && address < r[1] }) {
			list = append(list, c)
		}
	}
	return list
}
