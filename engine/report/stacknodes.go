// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
)

// stackNodes finds the nodes of stacks in a tree of calls. Samples share most of their callers, so
// each stack keeps the node that it had last, and the node that it begins below.
type stackNodes struct {
	stacks  []trace.ProfileStack
	known   []stackNode // by stack
	missing []uint32
}

// stackNode is the node of a stack that begins below another node.
type stackNode struct{ root, node uint32 }

func newStackNodes(p *trace.Profile) stackNodes {
	return stackNodes{stacks: p.Stacks, known: make([]stackNode, len(p.Stacks))}
}

// find returns the node of a stack below a root; under returns the node of a frame below another
// node.
func (s *stackNodes) find(root, stack uint32, under func(node, frame uint32) uint32) uint32 {
	s.missing = s.missing[:0]
	node := root
	for n := stack; n != 0; n = s.stacks[n].Caller {
		if k := s.known[n]; k.root == root {
			node = k.node
			break
		}
		s.missing = append(s.missing, n)
	}
	for _, n := range slices.Backward(s.missing) {
		node = under(node, s.stacks[n].Frame)
		s.known[n] = stackNode{root, node}
	}
	return node
}
