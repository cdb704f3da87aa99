// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// This file reads the variables that a plugin describes, where debug information
// describes none.

// maxPluginBytes is how many bytes of such a variable are read: its size is not known.
const maxPluginBytes = 32

// pluginLocals returns the variables that the plugin describes; nil where it does not. lanes are
// the lanes to read them for, where these have states of their own.
func (f *frame) pluginLocals(ctx context.Context, lanes trace.LaneSet) [][]trace.FrameVariable {
	known := f.module.Code.PluginVariables(f.lookup)
	if len(known) == 0 || f.place != nil {
		return nil
	}
	list := make([]trace.FrameVariable, 0, len(known))
	for i := range known {
		if lanes == nil || !f.walker.hasOwnLanes() {
			list = append(list, trace.FrameVariable{Variable: f.pluginLocal(ctx, &known[i])})
			continue
		}
		first := len(list)
		for lane := range lanes.All() {
			own, err := f.ofLane(ctx, lane)
			var v trace.Variable
			if err == nil {
				v = own.pluginLocal(ctx, &known[i])
			} else {
				v.Name, v.Kind = known[i].Name, trace.KindLocal
				value.Fail(&v.Value, unknown(err))
			}
			list = addLaneValue(list, first, v, lane, lanes)
		}
	}
	return [][]trace.FrameVariable{list}
}

// pluginLocal reads a variable.
func (f *frame) pluginLocal(ctx context.Context, known *code.PluginVariable) (v trace.Variable) {
	c := frameContext{frame: f}
	ev := f.walker.evals.plugin.Derive()
	ev.LoadBias = 0
	ev.CFI = false // variables are no rows: the CFA may be a part of where they are
	v.Name, v.Kind = known.Name, trace.KindLocal
	l, err := ev.Location(ctx, known.Expr, c)
	if err == nil {
		v.Place = l
		err = words(ctx, &v.Value, &l, c)
	}
	value.Fail(&v.Value, unknown(err))
	return v
}

// words sets a value to the bytes at a location, as far as there are some, in words of 32 bits.
func words(ctx context.Context, v *trace.Value, l *locexpr.Location, c locexpr.Context) error {
	word := func(offset int64) (string, error) {
		var b [4]byte
		part, err := l.Offset(8 * offset)
		if err == nil {
			err = part.Read(ctx, c, b[:], 32)
		}
		return fmt.Sprintf("%08x", integer(b[:], c.ByteOrder())), err
	}
	text, err := word(0)
	if err != nil {
		return err
	}
	for offset := int64(4); offset < maxPluginBytes; offset += 4 {
		if more, failed := word(offset); failed == nil { // else the place has ended
			text += " " + more
		}
	}
	v.Text, v.HasText, v.Status = text, true, trace.ValueOK
	return nil
}
