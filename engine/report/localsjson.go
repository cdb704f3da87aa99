// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// locals writes the variables of a function of a frame as a list of Variable. space names the
// address spaces of the architecture.
func (j *stackJSON) locals(f *trace.Frame, level int, space func(locexpr.AddressSpace) string) {
	if !j.hasLocals {
		return
	}
	j.member("locals")
	j.open("[")
	if list := f.Locals(); level < len(list) {
		j.variables(list[level], space)
	}
	j.close("]")
}

// variables writes variables as a list of Variable.
func (j *stackJSON) variables(list []trace.FrameVariable, space func(locexpr.AddressSpace) string) {
	for i := range list {
		v := &list[i]
		j.begin(v.Name, string(v.Kind))
		j.variable(&v.Variable, space)
		if v.Lanes != nil {
			j.textMember("lanes", v.Lanes.String())
		}
		j.close("}")
	}
}

// begin begins a Variable in a list.
func (j *indented) begin(name, kind string) {
	j.next()
	j.open("{")
	j.stringMember("name", name)
	j.textMember("kind", kind)
}

// variable writes the members of a Variable behind its name and kind.
func (j *indented) variable(v *trace.Variable, space func(locexpr.AddressSpace) string) {
	if v.Line > 0 {
		j.numberMember("line", v.Line)
	}
	j.trueMember("artificial", v.IsArtificial)
	j.trueMember("shadowed", v.IsShadowed)
	j.textMember("memory_space", v.MemorySpace)
	j.value(&v.Value, space)
	j.textMember("location", v.Location())
}

// value writes the members of a Value behind its name.
func (j *indented) value(v *trace.Value, space func(locexpr.AddressSpace) string) {
	j.textMember("type", v.Type)
	if v.HasText {
		j.stringMember("value", v.Text)
	}
	j.stringMember("status", string(v.Status))
	j.textMember("problem", v.Problem)
	if v.HasAddress {
		j.hexMember("address", v.Address)
		if v.Space != locexpr.DefaultSpace {
			j.textMember("address_space", space(v.Space))
		}
	}
	if len(v.Children) > 0 {
		j.member("children")
		j.open("[")
		for i := range v.Children {
			c := &v.Children[i]
			j.begin(c.Name, string(c.Role))
			j.value(c, space)
			j.close("}")
		}
		j.close("]")
	}
	if v.More > 0 {
		j.uintMember("more", v.More)
	}
	j.trueMember("deep", v.IsDeep)
}
