// SPDX-License-Identifier: Apache-2.0

package valuecheck

import "strings"

// function compares a value of a Go function: delve has its name, or nothing for nil.
func (c *comparison) function(path string, n *Node, v *Value) {
	if isNil := n.Text == ""; isNil && (v.Value == "nil" || v.Value == "0x0") || !isNil && strings.Contains(v.Value, n.Text) {
		c.count(Equal, path, n, v)
	} else {
		c.count(Wrong, path, n, v)
	}
}

// dynamic compares the value in an interface of Go.
func (c *comparison) dynamic(path string, n *Node, v *Value) {
	isNil := len(n.Children) == 0 || n.Children[0].Code == "struct" && n.Children[0].Type == "void" || n.Children[0].Code == "interface" && len(n.Children[0].Children) == 0
	switch {
	case isNil && len(v.Children) == 0 && strings.Contains(v.Value, "nil"):
		c.count(Equal, path, n, v)
	case !isNil && len(v.Children) == 1:
		c.node(path+".data", n.Children[0], v.Children[0])
	case !isNil && len(v.Children) == 0 && v.Deep:
		c.count(Cut, path, n, v)
	default:
		c.count(Wrong, path, n, v)
	}
}

// channel compares a channel of Go by its length and capacity.
func (c *comparison) channel(path string, n *Node, v *Value) {
	field := map[string]string{}
	for _, child := range n.Children {
		field[child.Name] = child.Text
	}
	want := field["qcount"] + "/" + field["dataqsiz"]
	if len(n.Children) == 0 {
		want = "nil"
	}
	if strings.HasSuffix(v.Value, want) {
		c.count(Equal, path, n, v)
	} else {
		c.count(Wrong, path, &Node{Type: n.Type, Text: want}, v)
	}
}
