// SPDX-License-Identifier: Apache-2.0

package value

import (
	"github.com/unwindd/unwindd/engine/trace"
)

// maxValues bounds the values of one variable, with all its parts.
const maxValues = 1 << 14

// The largest of each limit.
const (
	MaxDepth    = 64
	MaxElements = 1 << 20
	// MaxNesting bounds the nested values, base classes included.
	MaxNesting = 2 * MaxDepth
)

// setStatus sets the status of a value that consists of its children.
func setStatus(v *trace.Value) {
	known, unknown := 0, 0
	for i := range v.Children {
		switch v.Children[i].Status {
		case trace.ValueOK:
			known++
		case trace.ValuePartial:
			known++
			unknown++
		default:
			unknown++
		}
	}
	switch {
	case unknown == 0:
		v.Status = trace.ValueOK
	case known > 0:
		v.Status = trace.ValuePartial
	default:
		v.Status, v.Problem = v.Children[0].Status, v.Children[0].Problem
		for i := range v.Children {
			if v.Children[i].Status != v.Status {
				v.Status, v.Problem = trace.ValuePartial, ""
			}
		}
	}
}
