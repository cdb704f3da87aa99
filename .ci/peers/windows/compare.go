// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// count is how many answers are equal, and the kinds of the others.
type count struct {
	equal int
	other map[string]int
	shown map[string]int
	most  int // differences that are shown of each kind
}

func newCount(most int) *count {
	return &count{other: map[string]int{}, shown: map[string]int{}, most: most}
}

// differ counts a difference of a kind.
func (c *count) differ(kind, format string, args ...any) {
	c.other[kind]++
	if c.shown[kind] < c.most {
		c.shown[kind]++
		fmt.Printf("  %s: %s\n", kind, fmt.Sprintf(format, args...))
	}
}

// print prints the counts of a comparison, and returns how many differences have no known reason:
// those whose kinds begin with "?".
func (c *count) print(name string) (unexplained int) {
	fmt.Printf("%s: %d equal", name, c.equal)
	for _, kind := range slices.Sorted(maps.Keys(c.other)) {
		fmt.Printf(", %d %s", c.other[kind], kind)
		if strings.HasPrefix(kind, "?") {
			unexplained += c.other[kind]
		}
	}
	fmt.Println()
	return unexplained
}

// comparePrograms holds the functions, lines and inlined calls of all programs against
// llvm-symbolizer's, by their images and by their PDB files alone.
func (r *rig) comparePrograms() error {
	most := uint64(200_000)
	if r.isQuick {
		most = 4000
	}
	for i := range r.programs {
		p := &r.programs[i]
		base, code, err := codeOf(p.image)
		if err != nil {
			return err
		}
		addresses := addressesOf(code, most)
		if err := r.compareAnswers(p.name, p.image, p.image, addresses, 0); err != nil {
			return err
		}
		// Addresses of a PDB file alone count from 0.
		if err := r.compareAnswers(p.name+" by its PDB file", p.image, p.pdb, addresses, base); err != nil {
			return err
		}
	}
	return nil
}

// compareAnswers compares what llvm-symbolizer says of an image with what unwindd says of a file, whose
// addresses are less by base.
func (r *rig) compareAnswers(name, image, file string, addresses []uint64, base uint64) error {
	theirs, err := ask(addresses, "llvm-symbolizer-22", "--obj="+image)
	if err != nil {
		return err
	}
	own := make([]uint64, len(addresses))
	for i, a := range addresses {
		own[i] = a - base
	}
	ours, err := ask(own, r.unwindd, "symbolize", "--obj="+file)
	if err != nil {
		return err
	}
	c := newCount(r.details)
	j := judge{image: image, name: name}
	for i, a := range addresses {
		if ours[i] == theirs[i] {
			c.equal++
			continue
		}
		kind, own, other, err := j.kind(a, ours[i], theirs[i])
		if err != nil {
			return err
		}
		c.differ(kind, "%#x: %.300q, llvm-symbolizer %.300q", a, own, other)
	}
	if n := c.print(name); n > 0 {
		r.fail("%s: %d of %d addresses", name, n, len(addresses))
	}
	return nil
}

// judge finds the kinds of differences of a program.
type judge struct {
	image, name string
	records     *evidence // nil: they were not needed yet
}

// kind names the kind of a difference at an address, and returns where the answers differ first.
func (j *judge) kind(address uint64, ours, theirs string) (kind, own, other string, err error) {
	kind, own, other = kindOf(ours, theirs)
	switch {
	case !strings.HasPrefix(kind, "?"):
		return kind, own, other, nil
	case kind == "? another line" && strings.Contains(j.name, "opticf"):
		return "lines of another of the functions that were folded into one", own, other, nil
	case kind == "? another name" && strings.HasPrefix(j.name, "library"):
		return "another reading of a name of the Itanium ABI", own, other, nil
	case kind == "? another name" && (strings.HasPrefix(own, "[thunk]") || strings.HasPrefix(own, "@ILT+")):
		return "a thunk by its own name", own, other, nil
	case kind == "? another name" && hashOfRust.MatchString(other):
		return "a name of Rust that LLVM does not read", own, other, nil
	}
	if j.records == nil {
		if j.records, err = evidenceOf(j.image); err != nil {
			return kind, own, other, err
		}
	}
	if known := j.records.kind(address, kind, ours, own); known != "" {
		kind = known
	}
	return kind, own, other, nil
}

// hashOfRust is the end of a name of Rust's older mangling, which has the form of a C++ name.
var hashOfRust = regexp.MustCompile(`::h[0-9a-f]{16}$`)

// kind names the kind of a difference that the records explain; "": they do not.
func (e *evidence) kind(address uint64, kind, ours, own string) string {
	switch kind {
	case "? no answer":
		if e.hasAnswer(address, ours) {
			return "no answer of llvm-symbolizer, here as llvm-pdbutil has the records"
		}
	case "? a symbol":
		if e.isNameless(address) {
			return "behind the end of the symbol before"
		}
	case "? another name":
		if own == "??" && e.isNameless(address) {
			return "code with a line, behind the end of the symbol before"
		}
		if e.isNamed(address, own) {
			return "as llvm-pdbutil has the name"
		}
	case "? another line", "? another chain", "? another file of inlined code", "? another name of an inlined call":
		if known := e.explain(address, ours); known != "" {
			return known
		}
	}
	if kind == "? another line" && hasLine(e.lines, address, ours[strings.LastIndex(ours, "\n")+1:]) {
		return "as llvm-pdbutil has the lines"
	}
	return ""
}

// nothing is the answer for an address of which nothing is known.
const nothing = "??\n??:0:0"

// kindOf names a difference of two answers, and returns where they differ first.
func kindOf(ours, theirs string) (kind, own, other string) {
	a, b := strings.Split(ours, "\n"), strings.Split(theirs, "\n")
	isBare := len(b) == 2 && b[1] == "??:0:0" // a symbol, which need not have the address
	switch {
	case ours == nothing && isBare:
		return "? a symbol", ours, theirs
	case theirs == died:
		return "? no answer", ours, theirs
	case theirs == nothing:
		return "? only unwindd names", ours, theirs
	case ours == nothing:
		return "? missing", ours, theirs
	case len(a) != len(b):
		return "? another chain", ours, theirs
	}
	for i := range a {
		switch {
		case a[i] == b[i]:
		case i%2 == 0 && strings.HasPrefix(b[i], "_$LT$"):
			return "a name of Rust that LLVM does not read", a[i], b[i]
		case i%2 == 0 && i+2 < len(a):
			return "? another name of an inlined call", a[i], b[i]
		case i%2 == 0:
			return "? another name", a[i], b[i]
		case strings.Contains(b[i], ":15732480:"): // 0xf00f00: debuggers do not step into it
			return "code without a line, of which LLVM prints the mark", a[i], b[i]
		case i+2 < len(a) && isOtherFile(a[i], b[i]):
			return "? another file of inlined code", a[i], b[i]
		default:
			return "? another line", fmt.Sprintf("%s in frame %d of %d: %s", a[i-1], i/2, len(a)/2, a[i]), b[i]
		}
	}
	return "? other", ours, theirs
}
