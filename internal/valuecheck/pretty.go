package valuecheck

import (
	"fmt"
	"strings"
)

// pretty compares a value as a pretty printer shows it: its summary and its parts.
func (c *comparison) pretty(path string, n *Node, v *Value) {
	if n.Text != "" || v.Value != "" {
		c.summary(path, n, v)
	}
	if n.Hint == "string" {
		return
	}
	if n.Hint == "map" {
		c.entries(path, n, v)
		return
	}
	for i, child := range n.Children {
		if i >= len(v.Children) {
			if v.More > 0 {
				c.each(join(path, child.Name), child, func(path string, leaf *Node) { c.count(Cut, path, leaf, v) })
			} else {
				c.node(join(path, child.Name), child, nil)
			}
			continue
		}
		c.node(join(path, child.Name), child, v.Children[i])
	}
	for i := len(n.Children); i < len(v.Children) && !n.Cut; i++ {
		c.count(Extra, join(path, v.Children[i].Name), &Node{Type: v.Children[i].Type}, v.Children[i])
	}
}

// summary compares the line that stands for a value. That of a text is its
// value; that of a container is but words, whose numbers are compared.
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
	c.Summaries[fmt.Sprintf("%q, theirs %q", generic(v.Value), generic(n.Text))]++
}

// generic takes the arguments of templates, addresses and numbers out of a line.
func generic(text string) string {
	var out strings.Builder
	depth := 0
	for _, r := range text {
		switch {
		case r == '<':
			depth++
		case r == '>' && depth > 0:
			depth--
		case depth == 0 && r >= '0' && r <= '9':
			if s := out.String(); !strings.HasSuffix(s, "N") {
				out.WriteByte('N')
			}
		case depth == 0:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// entries compares the keys and values of a map, in the order of the memory.
func (c *comparison) entries(path string, n *Node, v *Value) {
	for i := 0; i+1 < len(n.Children); i += 2 {
		key, value := n.Children[i], n.Children[i+1]
		at := fmt.Sprintf("%s[%s]", path, key.shown())
		if i/2 >= len(v.Children) {
			if v.More == 0 {
				c.node(at, value, nil)
			}
			continue
		}
		entry := v.Children[i/2]
		if len(key.Children) == 0 {
			c.leaf(at+" key", key, &Value{Value: strings.TrimSuffix(strings.TrimPrefix(entry.Name, "["), "]"), Type: key.Type})
		}
		c.node(at, value, entry)
	}
	for i := len(n.Children) / 2; i < len(v.Children) && !n.Cut; i++ {
		c.count(Extra, join(path, v.Children[i].Name), &Node{Type: v.Children[i].Type}, v.Children[i])
	}
}
