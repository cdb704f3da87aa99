package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A comparison counts the records of two symbol files of one file.
type comparison struct{ functions, lines, inlines, publics, cfi tally }

// compare holds the records of dump_syms against ours.
func (c *comparison) compare(file string, ours, theirs *records) {
	for at, want := range theirs.functions {
		c.function(file, ours, theirs, ours.functions[at], want)
	}
	for at, name := range theirs.publics {
		class, got := "", ours.publics[at]
		f := ours.functions[at]
		switch {
		case got != "" && plain(got) != plain(name):
			class = "another of the names"
		case got == "" && f != nil && plain(f.name) == plain(name):
			class = "a FUNC record, with lines or because code of no symbol follows"
		case got == "" && f != nil:
			class = "a FUNC record of another name"
		case got == "" && covered(ours, at):
			class = "inside of a FUNC record"
		case got == "":
			class = "only dump_syms has it"
		}
		c.publics.add(class, func() string { return fmt.Sprintf("%s %#x: %s / %s", file, at, got, name) })
	}
	c.stack(file, ours, theirs)
}

func covered(r *records, at uint64) bool {
	for _, f := range r.functions {
		if f.start <= at && at < f.end {
			return true
		}
	}
	return false
}

// plain is a name without what demanglers spell differently.
func plain(name string) string {
	return strings.NewReplacer(" ", "", "unsignedlong", "ul").Replace(name)
}

func (c *comparison) function(file string, ours, theirs *records, got, want *function) {
	text := func() string {
		if got == nil {
			return fmt.Sprintf("%s %#x-%#x %s", file, want.start, want.end, want.name)
		}
		return fmt.Sprintf("%s %#x: %#x %s\n      dump_syms %#x %s", file, want.start, got.end, got.name, want.end, want.name)
	}
	switch {
	case got == nil:
		c.functions.add("only dump_syms has it", text)
		return
	case got.end != want.end:
		c.functions.add("another end", text)
	case plain(got.name) != plain(want.name):
		c.functions.add(nameClass(got.name, want.name), text)
	default:
		c.functions.add("", nil)
	}
	for i := range want.lines {
		w := &want.lines[i]
		g := got.at(w.start)
		class := ""
		switch {
		case g == nil:
			class = "no line"
		case g.number != w.number && w.number == 0 || g.number == 0:
			class = "one says line 0"
		case g.number != w.number || g.file != w.file && strings.HasSuffix(g.file, w.file[strings.LastIndexByte(w.file, '/')+1:]):
			if g.number == w.number {
				class = "the file's folder"
			} else {
				class = "another line"
			}
		case g.file != w.file:
			class = "another file"
		}
		c.lines.add(class, func() string { return fmt.Sprintf("%s %#x: %+v\n      dump_syms %+v", file, w.start, g, *w) })
		c.chains(file, got, want, w.start)
	}
}

func nameClass(got, want string) string {
	switch {
	case strings.HasPrefix(want, "<name omitted>"):
		return "dump_syms has no name"
	case strings.Contains(got, " [clone ") || strings.Contains(got, ".cold") || strings.Contains(got, ".part.") || strings.Contains(got, "(."):
		return "a piece that the compiler cut or cloned: the symbol says so"
	case strings.HasPrefix(plain(got), plain(want)+"("):
		return "dump_syms leaves out the parameters"
	}
	if strings.Contains(got, "'lambda") && strings.Contains(want, "{lambda(") {
		return "lambdas are called as LLVM's tools call them"
	}
	return "another name"
}

func (c *comparison) chains(file string, got, want *function, at uint64) {
	a, b := got.chain(at), want.chain(at)
	class := ""
	switch {
	case len(a) > len(b):
		class = "dump_syms has fewer calls: it reads no lists of ranges (DW_AT_ranges) of inlined calls"
	case len(a) < len(b):
		class = "we have fewer calls"
	default:
		for i := range a {
			switch {
			case plain(a[i].name) != plain(b[i].name):
				class = nameClass(a[i].name, b[i].name) + " (inlined)"
			case a[i].line != b[i].line:
				class = "another line of the call"
			}
		}
	}
	c.inlines.add(class, func() string {
		text := func(list []*inline) (s string) {
			for _, c := range list {
				s += fmt.Sprintf(" %s:%d", c.name, c.line)
			}
			return s
		}
		return fmt.Sprintf("%s %#x:%s\n      dump_syms%s", file, at, text(a), text(b))
	})
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
		class := ""
		switch {
		case maps.Equal(a, b):
		case a == nil && isRepeated(b):
			class = "dump_syms leaves an expression out, and the rule before it stands"
		case a == nil:
			class = "only dump_syms has rules"
		case b == nil:
			class = "only we have rules"
		case a[".ra"] == "0":
			class = "an outermost frame: dump_syms leaves out that the return address is undefined"
		default:
			class = "other rules"
		}
		c.cfi.add(class, func() string { return fmt.Sprintf("%s %#x: %v\n      dump_syms %v", file, at, a, b) })
	}
}

func isRepeated(r rules) bool { return len(r) > 0 }

// rulesAt are the rules at an address, given those before it.
func (r *records) rulesAt(at uint64, before rules) rules {
	if now, ok := r.cfi[at]; ok {
		return now
	}
	if r.cfiEnds[at] {
		return nil
	}
	return before
}
