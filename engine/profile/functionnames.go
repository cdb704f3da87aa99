// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/symbol"
)

// This file finds functions by the names that users give them.

// A functionName is what a function is called.
type functionName struct{ function, linkage, plain string }

func nameOf(s *symbol.Frame) functionName { return functionName{s.Function, s.LinkageName, s.Name} }

// nameMatches are ways to mean a function by a name, the most exact first.
var nameMatches = []func(of *functionName, name string) bool{
	func(of *functionName, name string) bool { return of.function == name || of.linkage == name },
	func(of *functionName, name string) bool {
		return of.plain == name || withoutParameters(of.function) == name
	},
	func(of *functionName, name string) bool {
		return bareName(of.function) == name || withoutTemplate(of.plain) == name
	},
}

// findFunctions are those of the functions that a name means.
func findFunctions(all []functionName, name string) (found []functionName) {
	if name == "" {
		return nil
	}
	for _, isMatch := range nameMatches {
		for i := range all {
			if isMatch(&all[i], name) {
				found = append(found, all[i])
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// maxNear is how many names are offered for one that no function has.
const maxNear = 5

// nearFunctions are names like one that no function has: those that it is a part of, else
// those that are spelt nearly so. Of equally near ones the first come first.
func nearFunctions(all []functionName, name string) (near []string) {
	type candidate struct {
		name     string
		distance int
	}
	var list []candidate
	lower := strings.ToLower(name)
	for i := range all {
		f := all[i].function
		if f == "" || slices.ContainsFunc(list, func(c candidate) bool { return c.name == f }) {
			continue
		}
		if strings.Contains(strings.ToLower(f), lower) {
			list = append(list, candidate{f, 0})
			continue
		}
		most := max(2, len(name)/3)
		if d := editDistance(lower, strings.ToLower(bareName(f)), most); d <= most {
			list = append(list, candidate{f, d})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	for _, c := range list[:min(len(list), maxNear)] {
		near = append(near, c.name)
	}
	return near
}

// editDistance is how many bytes of a must be left out, put in or changed for b, or more
// than most.
func editDistance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // of the row above, and the column before
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			change := before
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, above+1, row[j]+1)
			before = above
		}
	}
	return row[len(b)]
}

// withoutParameters is a demangled name without what follows the name: parameters,
// qualifiers and marks of copies.
func withoutParameters(name string) string {
	for {
		at := strings.LastIndex(name, " (.")
		if at <= 0 || !strings.HasSuffix(name, ")") {
			break
		}
		name = name[:at]
	}
	for _, qualifier := range []string{"&&", "&", " volatile", " const"} {
		name = strings.TrimRight(strings.TrimSuffix(name, qualifier), " ")
	}
	if start := openingOf(name, '(', ')'); start > 0 {
		return name[:start]
	}
	return name
}

// openingOf is where the bracket is opened that ends a name; -1: none ends it.
func openingOf(name string, open, end byte) int {
	if name == "" || name[len(name)-1] != end {
		return -1
	}
	depth := 0
	for i := len(name) - 1; i >= 0; i-- {
		switch name[i] {
		case end:
			depth++
		case open:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// withoutTemplate is a name without the arguments of its template.
func withoutTemplate(name string) string {
	start := openingOf(name, '<', '>')
	if start <= 0 || strings.HasSuffix(name[:start], "operator") || strings.Contains(name[start:], "operator") {
		return name
	}
	return name[:start]
}

// bareName is a demangled name without its parameters, the arguments of its template and
// its type: what a programmer calls it.
func bareName(name string) string {
	name = withoutTemplate(withoutParameters(name))
	if strings.Contains(name, "operator") {
		return name
	}
	depth := 0
	for i := len(name) - 1; i >= 0; i-- {
		switch name[i] {
		case '>', ')', '}', ']':
			depth++
		case '<', '(', '{', '[':
			depth--
		case ' ':
			if depth == 0 {
				return name[i+1:]
			}
		}
	}
	return name
}

// unknownFunction says that no function has a name.
func unknownFunction(path string, all []functionName, name string) error {
	near := nearFunctions(all, name)
	if len(near) == 0 {
		return fmt.Errorf("%s: no function %s was sampled or called", path, name)
	}
	return fmt.Errorf("%s: no function %s was sampled or called; near are: %s", path, name, strings.Join(near, ", "))
}
