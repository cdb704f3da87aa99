// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"

	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// OneVariable is a variable that was requested, or a part of one.
type OneVariable struct {
	trace.Variable
	Thread *trace.Thread
	// Space names an address space by the architecture of a thread.
	Space func(thread *trace.Thread, space locexpr.AddressSpace) string
}

// WriteText writes the value in one line.
func (o *OneVariable) WriteText(w io.Writer, options TextOptions) error {
	b := NewPrinter(w)
	t := &text{Printer: b, paint: newPaint(options.Color)}
	t.printf("%s = %s", o.Name, value.Line(&o.Value, o.Language))
	if options.Verbose {
		t.printf(" %s", t.faint(about(&trace.FrameVariable{Variable: o.Variable})))
	}
	t.printf("\n")
	return b.Flush()
}

// WriteJSON writes a Variable.
func (o *OneVariable) WriteJSON(w io.Writer) error {
	j := &indented{output: newOutput(w)}
	j.open("{")
	j.stringMember("name", o.Name)
	j.stringMember("kind", string(o.Kind))
	j.variable(&o.Variable, func(space locexpr.AddressSpace) string { return o.Space(o.Thread, space) })
	j.close("}")
	j.put("\n")
	return j.Flush()
}
