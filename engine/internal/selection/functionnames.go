// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// This file finds functions by the names that users give them.

// FunctionName has the names of a function: as it is printed, its linkage name, and its own name in
// the debug information.
type FunctionName struct{ Function, Linkage, Plain string }

// NameOf returns the names of a symbol.
func NameOf(s *trace.Symbol) FunctionName { return FunctionName{s.Function, s.LinkageName, s.Name} }

// nameMatches are tests for whether a name means a function, the most exact first.
var nameMatches = []func(function *FunctionName, name string) bool{
	func(f *FunctionName, name string) bool { return f.Function == name || f.Linkage == name },
	func(f *FunctionName, name string) bool {
		return f.Plain == name || withoutParameters(f.Function) == name
	},
	func(f *FunctionName, name string) bool {
		return bareName(f.Function) == name || withoutTemplate(f.Plain) == name
	},
}

// FindFunctions returns the functions that a name means.
func FindFunctions(all []FunctionName, name string) (found []FunctionName) {
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

// nearFunctions returns names like one that no function has: names with it as a part, else
// names with nearly its spelling. Of equally near ones the first come first.
func nearFunctions(all []FunctionName, name string) (near []string) {
	type candidate struct {
		name     string
		distance int
	}
	var list []candidate
	lower := strings.ToLower(name)
	for i := range all {
		f := all[i].Function
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

// editDistance returns how many bytes of a must be left out, put in or changed for b, or more
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
		diagonal := row[0] // of the row above, and the column before
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}

// withoutParameters returns a demangled name without the text after it: parameters, qualifiers
// and marks of copies.
func withoutParameters(name string) string {
	for {
		index := strings.LastIndex(name, " (.")
		if index <= 0 || !strings.HasSuffix(name, ")") {
			break
		}
		name = name[:index]
	}
	for _, qualifier := range []string{"&&", "&", " volatile", " const"} {
		name = strings.TrimRight(strings.TrimSuffix(name, qualifier), " ")
	}
	if start := openingOf(name, '(', ')'); start > 0 {
		return name[:start]
	}
	return name
}

// openingOf returns the index of the bracket whose closing one ends a name; -1: none does.
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

// withoutTemplate returns a name without the arguments of its template.
func withoutTemplate(name string) string {
	start := openingOf(name, '<', '>')
	if start <= 0 || strings.HasSuffix(name[:start], "operator") || strings.Contains(name[start:], "operator") {
		return name
	}
	return name[:start]
}

// bareName returns a demangled name without its parameters, the arguments of its template and
// its type: the name that a programmer uses.
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

// UnknownFunction returns the error for a name that no function has.
func UnknownFunction(path string, all []FunctionName, name string) error {
	near := nearFunctions(all, name)
	if len(near) == 0 {
		return fmt.Errorf("%s: no function %s was sampled or called", path, name)
	}
	return fmt.Errorf("%s: no function %s was sampled or called; near are: %s", path, name, strings.Join(near, ", "))
}
