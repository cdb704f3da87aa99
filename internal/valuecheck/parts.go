// SPDX-License-Identifier: Apache-2.0

package valuecheck

import (
	"fmt"
	"strings"
)

// node compares a value.
func (c *comparison) node(path string, n *Node, v *Value) {
	switch {
	case c.contentsOnly && (v != nil && v.Status == "optimized-out" || !n.Pretty && strings.HasPrefix(n.Type, "std::") && n.Code == "struct" && !strings.HasPrefix(n.Type, "std::array")):
		c.count(Neither, path, n, v) // it is of this program alone
	case v == nil || v.Status == "optimized-out" || v.Status == "error" || v.Status == "partial" && len(v.Children) == 0:
		c.each(path, n, func(path string, leaf *Node) {
			if leaf.Optimized || leaf.Error != "" || leaf.Text == "()" {
				c.count(Neither, path, leaf, v)
			} else {
				c.count(Miss, path, leaf, v)
			}
		})
	case n.Optimized || n.Error != "":
		c.count(OnlyWe, path, n, v)
	case n.Cut && len(n.Children) == 0:
		c.count(Cut, path, n, v)
	case n.Code == "escaped":
		if len(v.Children) == 1 {
			c.node(path, n.Children[0], v.Children[0])
		} else {
			c.node(path, n.Children[0], nil)
		}
	case n.Pretty:
		c.pretty(path, n, v)
	case n.Code == "func":
		c.function(path, n, v)
	case n.Synthetic:
		c.synthetic(path, n, v)
	case strings.HasSuffix(n.Code, "ref"):
		c.reference(path, n, v)
	case n.Code == "interface":
		c.dynamic(path, n, v)
	case n.Code == "chan":
		c.channel(path, n, v)
	case n.Code == "struct" || n.Code == "union":
		c.members(path, n, v)
	case n.Code == "array":
		c.elements(path, n, v)
	case n.Code == "text" && v.Value == "" && len(v.Children) > 0:
		c.characters(path, n, v)
	default:
		c.leaf(path, n, v)
	}
	if v != nil && n == c.variable && !c.contentsOnly && n.Address != "" && v.Address != "" && n.Address != v.Address && !strings.HasSuffix(n.Code, "ref") {
		c.count(Wrong, path+" address", &Node{Type: n.Type, Text: n.Address}, &Value{Value: v.Address})
	}
	if v != nil && n.Type != "" && v.Type != n.Type && !strings.HasSuffix(path, "&") {
		c.Types[fmt.Sprintf("%q, theirs %q", v.Type, n.Type)]++
	}
}

func (c *comparison) leaf(path string, n *Node, v *Value) {
	if v.Value == "" && v.More > 0 {
		c.count(Cut, path, n, v)
		return
	}
	if c.contentsOnly && n.Code == "ptr" {
		if isNull := strings.Trim(n.Bytes, "0") == ""; isNull == (v.Value == "0x0") {
			c.count(Equal, path, n, v)
		} else {
			c.count(Wrong, path, n, v)
		}
		return
	}
	if !judgeLeaf(n, v.Value) {
		c.count(Wrong, path, n, v)
		return
	}
	c.count(Equal, path, n, v)
	if v.Value != n.Text {
		c.Texts[n.Code]++
	}
}

// members compares the members of a class, and its bases.
func (c *comparison) members(path string, n *Node, v *Value) {
	if len(n.Children) == 1 && n.Children[0].Name == "_M_elems" && n.Children[0].Code == "array" && isElement(v) {
		c.elements(path, n.Children[0], v) // std::array, which gdb does not pretty-print
		return
	}
	if len(n.Children) == 1 && !hasPart(v, n.Children[0].Name) && n.Children[0].Kind != "base" {
		c.node(join(path, n.Children[0].Name), n.Children[0], v) // we print the wrapped value
		return
	}
	if len(n.Children) > 0 && isPretty(n, v) {
		c.count(OnlyWe, path, n, v)
		return
	}
	ours, bases := map[string][]*Value{}, []*Value{}
	for _, child := range v.Children {
		if child.Kind == "base" {
			bases = append(bases, child)
		} else {
			ours[child.Name] = append(ours[child.Name], child)
		}
	}
	for _, child := range n.Children {
		var mine *Value
		if child.Kind == "base" {
			if len(bases) > 0 {
				mine, bases = bases[0], bases[1:]
			}
		} else if same := ours[child.Name]; len(same) > 0 {
			mine, ours[child.Name] = same[0], same[1:]
		}
		switch {
		case mine == nil && child.isDiscriminant():
			continue
		case mine == nil && len(n.Children) > 2 && n.Children[0].isDiscriminant() && v.variant() != "":
			c.explained(gdbVariants, join(path, child.Name), child, v)
			continue
		case mine == nil && (v.More > 0 || v.Value == "..."):
			c.each(join(path, child.Name), child, func(path string, leaf *Node) { c.count(Cut, path, leaf, v) })
			continue
		}
		c.node(join(path, child.Name), child, mine)
	}
	for _, rest := range ours {
		for _, child := range rest {
			c.count(Extra, join(path, child.Name), &Node{Type: child.Type}, child)
		}
	}
}

// isElement reports whether the parts of a value are elements.
func isElement(v *Value) bool { return len(v.Children) > 0 && v.Children[0].Name == "[0]" }

// elements compares the elements of an array.
func (c *comparison) elements(path string, n *Node, v *Value) {
	if n.Elements == 0 && len(v.Children) == 0 && v.More == 0 {
		c.count(Equal, path, n, v)
		return
	}
	if v.Value != "" && len(v.Children) == 0 { // a text, which the peer cuts
		c.count(OnlyWe, path, n, v)
		return
	}
	ours := map[string]*Value{}
	for _, child := range v.Children {
		ours[child.Name] = child
	}
	if n.Elements != len(v.Children)+v.More {
		c.count(Wrong, path, &Node{Type: n.Type, Text: fmt.Sprintf("%d elements", n.Elements)}, &Value{Value: fmt.Sprintf("%d elements", len(v.Children)+v.More)})
	}
	for _, child := range n.Children {
		mine := ours[child.Name]
		if mine == nil && v.More > 0 {
			c.each(path+child.Name, child, func(path string, leaf *Node) { c.count(Cut, path, leaf, v) })
			continue
		}
		c.node(path+child.Name, child, mine)
	}
}

// characters compares the elements of an array that the peer prints as a text.
func (c *comparison) characters(path string, n *Node, v *Value) {
	width := max(n.Width, 1) * 2
	if n.Elements != len(v.Children)+v.More {
		c.count(Wrong, path, n, &Value{Value: fmt.Sprintf("%d elements", len(v.Children)+v.More)})
	}
	for i, child := range v.Children {
		if (i+1)*width > len(n.Bytes) {
			return
		}
		c.node(path+child.Name, &Node{Code: "int", Signed: strings.HasPrefix(child.Value, "-"), Bytes: n.Bytes[i*width : (i+1)*width], Type: child.Type}, child)
	}
}

// synthetic compares the target of a pointer that was optimized away.
func (c *comparison) synthetic(path string, n *Node, v *Value) {
	if len(n.Children) == 0 || n.Children[0].Optimized || n.Children[0].Error != "" {
		c.count(Equal, path, n, v)
		return
	}
	target := n.Children[0]
	if len(v.Children) == 1 && (target.Code != "struct" || v.Children[0].Name == "*" || v.Children[0].Name == "") {
		c.node(path+"*", target, v.Children[0])
		return
	}
	c.node(path+"*", target, v)
}

// reference compares the target of a reference, or its address where we print
// only that.
func (c *comparison) reference(path string, n *Node, v *Value) {
	if word, ok := strings.CutPrefix(v.Value, "@"); ok && len(v.Children) == 0 {
		if n.Bytes != "" && !judgeLeaf(&Node{Code: "ptr", Bytes: n.Bytes}, strings.TrimSuffix(word, ":")) {
			c.count(Wrong, path, &Node{Type: n.Type, Text: "address " + n.Bytes}, v)
			return
		}
		c.count(Equal, path, n, v)
		return
	}
	if len(n.Children) == 0 {
		c.count(Cut, path, n, v)
		return
	}
	if n.Bytes != "" && v.Address != "" && !c.contentsOnly && !judgeLeaf(&Node{Code: "ptr", Bytes: n.Bytes}, v.Address) {
		c.count(Wrong, path, &Node{Type: n.Type, Text: "address " + n.Bytes}, &Value{Value: v.Address})
		return
	}
	target := n.Children[0]
	if len(v.Children) == 1 && v.Children[0].Kind == "pointee" {
		v = v.Children[0]
	}
	c.node(path+"&", target, v)
}
