// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"math"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// kinds are the kinds of frames; "" where it is unknown.
var kinds = [...]trace.ManagedKind{
	sdk.UnknownManaged: "", sdk.Interpreted: trace.ManagedInterpreted, sdk.Compiled: trace.ManagedCompiled,
	sdk.Builtin: trace.ManagedBuiltin, sdk.Entry: trace.ManagedEntry,
}

func kindOf(k sdk.ManagedKind) trace.ManagedKind {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return ""
}

// symbolOf returns the function of a managed frame with its position. Its name is written as it is: <main>.
func symbolOf(f *sdk.ManagedFrame) trace.Symbol {
	return trace.Symbol{
		Function: f.Function, IsDecoded: true, File: f.File,
		Line: int(min(f.Line, math.MaxInt32)), Column: int(min(f.Column, math.MaxInt32)),
	}
}

// maxDepth bounds how deep values are nested, whatever was requested: they are written by
// functions that call themselves.
const maxDepth = 64

// variablesOf returns the variables of a managed frame, within limits.
func variablesOf(list []sdk.ManagedVariable, limits *trace.ValueLimits) []trace.FrameVariable {
	out := make([]trace.FrameVariable, len(list))
	for i := range list {
		out[i].Kind = trace.KindLocal
		if list[i].IsParam {
			out[i].Kind = trace.KindParameter
		}
		out[i].Value = valueOf(&list[i], min(limits.Depth, maxDepth), limits.Elements)
	}
	return out
}

// valueOf returns a value with at most depth levels of children, and as many children of each
// as elements.
func valueOf(v *sdk.ManagedVariable, depth, elements int) trace.Value {
	out := trace.Value{Name: v.Name, Type: v.Type, Text: v.Text, HasText: v.Text != "", More: v.More, Status: trace.ValueOK}
	switch v.Status {
	case sdk.ValueRead:
	case sdk.ValueUnset:
		return trace.Value{Name: v.Name, Type: v.Type, Status: trace.ValueUnset}
	default:
		return trace.Value{Name: v.Name, Type: v.Type, Status: trace.ValueFailed, Problem: v.Text}
	}
	children := v.Children
	if depth <= 0 {
		out.IsDeep = len(children) > 0
		return out
	}
	if extra := len(children) - max(elements, 0); extra > 0 {
		children = children[:len(children)-extra]
		out.More = saturated(out.More, uint64(extra)) //nolint:gosec // above 0
	}
	for i := range children {
		out.Children = append(out.Children, valueOf(&children[i], depth-1, elements))
	}
	out.Shape = shapeOf(children)
	return out
}

func saturated(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// shapeOf returns how children are written: elements have no names.
func shapeOf(children []sdk.ManagedVariable) trace.ValueShape {
	if len(children) == 0 {
		return trace.ShapeScalar
	}
	for i := range children {
		if children[i].Name != "" {
			return trace.ShapeStructure
		}
	}
	return trace.ShapeArray
}
