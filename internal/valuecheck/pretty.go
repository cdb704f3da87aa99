// SPDX-License-Identifier: Apache-2.0

package valuecheck

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// onlyTheirs finds the types that only gdb pretty-prints: places in containers, shown
// as the element there, and sets of bits.
var onlyTheirs = regexp.MustCompile(`iterator$|_iterator|^std::bitset`)

// hasPart reports whether a value has a part of a name, or may have it: omitted parts
// are not known.
func hasPart(v *Value, name string) bool {
	for _, child := range v.Children {
		if child.Name == name {
			return true
		}
	}
	return v.Deep || v.More > 0 || len(v.Children) == 0 && v.Value == ""
}

// isPretty reports whether a value of ours is pretty-printed, where the peer's is
// as implemented: they have no part of the same name.
func isPretty(n *Node, v *Value) bool {
	if len(v.Children) == 0 {
		return v.Value != ""
	}
	names := map[string]bool{}
	for _, child := range n.Children {
		names[child.Name] = true
	}
	for _, child := range v.Children {
		if names[child.Name] || child.Kind == "base" || child.Kind == "variant" {
			return false
		}
	}
	return v.Value != "" || v.Children[0].Name == "value" || isElement(v)
}

// pretty compares a value as a pretty printer shows it: its summary and its parts.
func (c *comparison) pretty(path string, n *Node, v *Value) {
	if onlyTheirs.MatchString(n.Type) && v.Value == "" {
		c.explained(noPrinter, path, n, v)
		return
	}
	if n.Text != "" || v.Value != "" {
		c.summary(path, n, v)
	}
	switch {
	case n.Hint == "string":
	case n.Hint == "map":
		c.entries(path, n, v)
	default:
		c.parts(path, n, v)
	}
}

// parts compares the parts of two pretty-printed values, in their order.
func (c *comparison) parts(path string, n *Node, v *Value) {
	theirs, ours := n.Children, v.Children
	if isWhole(n) { // of Rust: the wrapped value, with counts that our summary has
		if theirs = c.counts(path, n, v); len(ours) == 0 && len(theirs) > 0 {
			ours = []*Value{v}
		}
	}
	if c.contentsOnly && strings.Contains(n.Type, "unordered_") {
		theirs, ours = sorted(theirs, (*Node).shown), sorted(ours, (*Value).shown)
	}
	for i, child := range theirs {
		if child.Code == "python" { // a bit of a std::vector<bool>
			child.Text = strings.ToLower(child.Text)
		}
		switch {
		case i < len(ours):
			c.node(join(path, child.Name), child, within(n, child, ours[i]))
		case v.More > 0:
			c.each(join(path, child.Name), child, func(path string, leaf *Node) { c.count(Cut, path, leaf, v) })
		default:
			c.node(join(path, child.Name), child, nil)
		}
	}
	for i := len(theirs); i < len(ours) && !n.Cut; i++ {
		c.count(Extra, join(path, ours[i].Name), &Node{Type: ours[i].Type}, ours[i])
	}
}

// isWhole reports whether a pretty-printed value of Rust has the wrapped value as
// its part.
func isWhole(n *Node) bool { return len(n.Children) > 0 && n.Children[0].Name == "value" }

// counts compares the counts that gdb has as parts, which stand in our summary, and
// returns the other parts.
func (c *comparison) counts(path string, n *Node, v *Value) (rest []*Node) {
	for _, child := range n.Children {
		switch {
		case len(v.Children) == 0 && literal(v.Value) == v.Value && v.Value != "":
			c.count(OnlyWe, join(path, child.Name), child, v) // gdb has the first byte of a text
		case child.Name == "value":
			rest = append(rest, child)
		case strings.Contains(v.Value, child.Name+"="+child.Text):
			c.count(Equal, join(path, child.Name), child, v)
		default:
			c.count(Wrong, join(path, child.Name), child, v)
		}
	}
	return rest
}

// within returns the content of our std::variant in a std::optional, where gdb
// shows no variant.
func within(n, child *Node, v *Value) *Value {
	if strings.HasPrefix(n.Text, "std::optional") && strings.HasPrefix(v.Value, "std::variant") && !strings.HasPrefix(child.Text, "std::variant") && len(v.Children) == 1 {
		return v.Children[0]
	}
	return v
}

// sorted sorts parts of a container whose order is its implementation's.
func sorted[T any](list []T, text func(T) string) []T {
	return slices.SortedFunc(slices.Values(list), func(a, b T) int { return strings.Compare(text(a), text(b)) })
}

// summary compares the line that stands for a value. A text's line is its
// value; of a container's words only the numbers are compared.
func (c *comparison) summary(path string, n *Node, v *Value) {
	if n.Hint == "string" || literal(n.Text) == n.Text && n.Text != "" {
		if sameText(strings.TrimLeft(n.Text, "uUL"), strings.TrimLeft(v.Value, "uUL")) {
			c.count(Equal, path, n, v)
		} else {
			c.count(Wrong, path, n, v)
		}
		return
	}
	if n.Text == v.Value {
		return
	}
	theirs, ours := bare(n.Text), bare(v.Value)
	if c.contentsOnly {
		theirs, _, _ = strings.Cut(theirs, ", capacity")
		ours, _, _ = strings.Cut(ours, ", capacity")
	}
	if theirs != ours && digits.ReplaceAllString(theirs, "N") == digits.ReplaceAllString(ours, "N") {
		c.count(Wrong, path+" summary", n, v)
		return
	}
	c.Summaries[fmt.Sprintf("%q, theirs %q", digits.ReplaceAllString(ours, "N"), digits.ReplaceAllString(theirs, "N"))]++
}

var digits = regexp.MustCompile(`\d+`)

// bare returns a line without the arguments of templates and versions of
// namespaces.
func bare(text string) string {
	var out strings.Builder
	depth := 0
	for _, r := range strings.ReplaceAll(text, "std::__cxx11::", "std::") {
		switch {
		case r == '<':
			depth++
		case r == '>' && depth > 0:
			depth--
		case depth == 0:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// entries compares the keys and values of a map, in the order of the memory.
func (c *comparison) entries(path string, n *Node, v *Value) {
	theirs, ours := slices.Collect(slices.Chunk(n.Children, 2)), v.Children
	if c.contentsOnly && strings.Contains(n.Type, "unordered_") {
		if n.Cut {
			c.count(Cut, path, n, v)
			return // other elements come first
		}
		theirs = sorted(theirs, func(e []*Node) string { return e[0].shown() + e[1].shown() })
		ours = sorted(ours, func(e *Value) string { return e.Children[0].shown() + e.Children[1].shown() })
	}
	for i, e := range theirs {
		key, value := e[0], e[1]
		element := fmt.Sprintf("%s[%d]", path, i)
		if i >= len(ours) {
			if v.More == 0 {
				c.node(element+".key", key, nil)
				c.node(element+".value", value, nil)
			}
			continue
		}
		entry := ours[i]
		if entry.Kind != "entry" || len(entry.Children) != 2 {
			c.count(Wrong, element, &Node{Type: n.Type, Text: "an entry"}, entry)
			continue
		}
		c.node(element+".key", key, entry.Children[0])
		c.node(element+".value", value, entry.Children[1])
	}
	for i := len(n.Children) / 2; i < len(v.Children) && !n.Cut; i++ {
		c.count(Extra, join(path, v.Children[i].Name), &Node{Type: v.Children[i].Type}, v.Children[i])
	}
}
