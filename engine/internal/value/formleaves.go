// SPDX-License-Identifier: Apache-2.0

package value

import (
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
)

// This file finds the members of one name of all base classes.

// callLeaf binds leaf(x, name, n), the member with a name in the n-th base class of x.
func (b *binder) callLeaf(args []*expr) (*bound, error) {
	x, err := b.expr(args[0])
	if err != nil {
		return nil, err
	}
	list, err := leaves(x, args[1].text)
	if err != nil {
		return nil, err
	}
	if args[2].n >= uint64(len(list)) {
		return nil, notBound("%d members %s", len(list), args[1].text)
	}
	return list[args[2].n], nil
}

// leaves returns the members with one name of all base classes, by the number that is the first
// argument of the class's template.
func leaves(x *bound, name string) ([]*bound, error) {
	if x.class != classPlace || x.t == nil {
		return nil, notBound("what is no object has no base classes")
	}
	var list []leaf
	if err := collectLeaves(&list, x, name, 0); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, notBound("no members %s", name)
	}
	out := make([]*bound, len(list))
	for _, x := range list {
		if x.index >= uint64(len(out)) || out[x.index] != nil {
			return nil, notBound("the members %s have no order", name)
		}
		out[x.index] = x.b
	}
	return out, nil
}

type leaf struct {
	index uint64
	b     *bound
}

// maxLeaves bounds the members of one name of base classes.
const maxLeaves = 256

func collectLeaves(list *[]leaf, x *bound, name string, depth int) error {
	parts, err := partsOf(x.t)
	if err != nil {
		return err
	}
	if depth > maxLeaves || len(*list) > maxLeaves {
		return notBound("more than %d members %s", maxLeaves, name)
	}
	count := len(*list)
	index, hasIndex := templateNumber(parts, 0)
	var base *bound
	for i := range parts.Members {
		m := &parts.Members[i]
		if m.At != nil || m.Role == dwarf.VariantPart {
			continue
		}
		y, err := part(x, m, m.Bits)
		if err != nil {
			return err
		}
		switch {
		case m.Role == dwarf.BaseClass:
			base = y
			err = collectLeaves(list, y, name, depth+1)
		case m.Name == name && hasIndex:
			*list = append(*list, leaf{index, y})
		case m.Name == name:
			return notBound("the members %s have no order", name)
		}
		if err != nil {
			return err
		}
	}
	if len(*list) == count && hasIndex && base != nil && len(parts.Members) == 1 {
		*list = append(*list, leaf{index, base}) // the class is the base itself, because it is empty
	}
	return nil
}
