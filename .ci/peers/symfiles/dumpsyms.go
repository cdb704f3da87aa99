// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// comparison counts the records of two symbol files of the same files.
type comparison struct{ functions, lines, inlines, publics, cfi tally }

func (c *comparison) tallies() []*tally {
	c.functions.title, c.lines.title, c.inlines.title, c.publics.title, c.cfi.title = "FUNC", "lines", "INLINE", "PUBLIC", "STACK CFI"
	return []*tally{&c.functions, &c.lines, &c.inlines, &c.publics, &c.cfi}
}

// compare holds the records of dump_syms against ours.
func (c *comparison) compare(file string, ours, theirs *records) {
	for at, want := range theirs.functions {
		c.function(file, ours.functions[at], want)
	}
	covered := ours.covered()
	for at, name := range theirs.publics {
		var kind class
		got, f := ours.publics[at], ours.functions[at]
		switch {
		case got != "" && plain(got) != plain(name):
			kind = known("another of the symbols at the address, or it is demangled")
		case got == "" && f != nil:
			kind = known("a FUNC record: it has lines, or code of no symbol is behind it")
		case got == "" && covered(at):
			kind = known("inside of a FUNC record")
		case got == "":
			kind = unknown("only dump_syms has it")
		}
		c.publics.add(kind, func() string { return fmt.Sprintf("%s %#x: %s / %s", file, at, got, name) })
	}
	c.stack(file, ours, theirs)
}

// covered reports whether an address is in a function.
func (r *records) covered() func(address uint64) bool {
	starts := slices.Sorted(maps.Keys(r.functions))
	return func(address uint64) bool {
		i, found := slices.BinarySearch(starts, address)
		return found || i > 0 && address < r.functions[starts[i-1]].end
	}
}

// plain is a name without what demanglers spell differently.
func plain(name string) string {
	return strings.NewReplacer(" ", "", "(anonymousclass)", "", "(anonymousstruct)", "").Replace(name)
}

// identifier is the last component of a name, without arguments.
func identifier(name string) string {
	name = strings.ReplaceAll(plain(name), "operator()", "")
	if i := strings.IndexAny(name, "<("); i > 0 {
		name = name[:i]
	}
	if i := strings.LastIndexAny(name, ":.&*}"); i >= 0 {
		name = name[i+1:]
	}
	return name
}

// nameClass says how the names of a function differ.
func nameClass(got, want string) class {
	switch {
	case plain(got) == plain(want):
		return class{}
	case strings.Contains(want, "<name omitted>"):
		return known("dump_syms has no name")
	case strings.Contains(got, "(.") || strings.Contains(got, ".cold") || strings.Contains(got, ".part.") || strings.Contains(got, ".isra.") || strings.Contains(got, ".constprop."):
		return known("a piece or a clone that the compiler made: the symbol says so")
	case strings.HasPrefix(got, "__GI_") || strings.HasPrefix(got, "_") && strings.HasSuffix(got, want):
		return known("DW_AT_linkage_name or the symbol of a function of C")
	case strings.Contains(want, "lambda") || strings.Contains(want, "{unnamed") || strings.Contains(got, "'unnamed"):
		return known("what has no name is called as LLVM's tools call it")
	case strings.Contains(got, identifier(want)):
		return known("dump_syms has DW_AT_name, without namespaces or arguments")
	}
	return unknown("another name")
}

// describePair returns a line of a function as both files have it; got is nil where ours lacks it.
func describePair(file string, got, want *function) string {
	if got == nil {
		return fmt.Sprintf("%s %#x-%#x %s", file, want.start, want.end, want.name)
	}
	return fmt.Sprintf("%s %#x: %#x %v %s\n      dump_syms %#x %v %s", file, want.start, got.end, got.multiple, got.name, want.end, want.multiple, want.name)
}

func (c *comparison) function(file string, got, want *function) {
	text := func() string { return describePair(file, got, want) }
	switch {
	case got == nil:
		c.functions.add(unknown("only dump_syms has it"), text)
		return
	case got.end != want.end:
		c.functions.add(unknown("another end"), text)
	default:
		kind := nameClass(got.name, want.name)
		if kind == (class{}) && got.multiple != want.multiple {
			kind = known("m: dump_syms compares the symbol with DW_AT_name, we symbols with one another")
		}
		c.functions.add(kind, text)
	}
	for i := range want.lines {
		w := &want.lines[i]
		g := got.at(w.start)
		var kind class
		if g == nil || g.number != w.number || g.file != w.file {
			kind = unknown("another line")
		}
		c.lines.add(kind, func() string { return fmt.Sprintf("%s %#x: %+v\n      dump_syms %+v", file, w.start, g, *w) })
		c.chains(file, got, want, w.start)
	}
}

// chains compares the calls that were inlined at an address.
func (c *comparison) chains(file string, got, want *function, address uint64) {
	a, b := got.chain(address), want.chain(address)
	var kind class
	switch {
	case len(a) > len(b):
		kind = known("dump_syms has fewer calls: it reads no lists of ranges of inlined calls")
	case len(a) < len(b):
		kind = unknown("we have fewer calls")
	default:
		for i := range a {
			if a[i].line != b[i].line {
				kind = unknown("another line of the call")
			} else if k := nameClass(a[i].name, b[i].name); k != (class{}) {
				kind = k
			}
		}
	}
	c.inlines.add(kind, func() string {
		return fmt.Sprintf("%s %#x:%s\n      dump_syms%s", file, address, callsText(a), callsText(b))
	})
}

func callsText(list []*inline) (s string) {
	for _, c := range list {
		s += fmt.Sprintf(" %s:%d", c.name, c.line)
	}
	return s
}

// stack compares what holds at each address at which something changes in either.
func (c *comparison) stack(file string, ours, theirs *records) {
	starts := map[uint64]bool{}
	for _, r := range []*records{ours, theirs} {
		for at := range r.cfi {
			starts[at] = true
		}
		for at := range r.cfiEnds {
			starts[at] = true
		}
	}
	var a, b rules
	for _, at := range slices.Sorted(maps.Keys(starts)) {
		a, b = ours.rulesAt(at, a), theirs.rulesAt(at, b)
		var kind class
		switch {
		case maps.Equal(a, b):
		case a == nil && b[".cfa"] != "":
			kind = known("an expression: dump_syms lets the rule before it stand")
		case b[".cfa"] == "" && len(b) > 0:
			kind = known("an expression: dump_syms has no CFA")
		case b[".ra"] == "" && a[".ra"] != "":
			kind = known("a return address that is in its register again: dump_syms writes .ra: .ra")
		case a[".ra"] == "0":
			kind = known("a return address that is undefined, which dump_syms leaves out")
		default:
			kind = unknown("other rules")
		}
		c.cfi.add(kind, func() string { return fmt.Sprintf("%s %#x: %v\n      dump_syms %v", file, at, a, b) })
	}
}

// rulesAt are the rules at an address, given those before it.
func (r *records) rulesAt(address uint64, before rules) rules {
	if now, ok := r.cfi[address]; ok {
		return now
	}
	if r.cfiEnds[address] {
		return nil
	}
	return before
}
