// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// Global is a variable of a target that was requested by name.
type Global struct {
	trace.GlobalVariable
	Thread *trace.Thread // in which it was read
}

// globals writes globals below the description of the target.
func (t *text) globals(list []Global) {
	if len(list) == 0 {
		return
	}
	t.printf("\n%s\n", t.header("globals"))
	for i := range list {
		t.global(list, &list[i])
	}
}

// global writes one of the globals in a list.
func (t *text) global(list []Global, g *Global) {
	t.printf("  %s = %s", g.Name, value.Line(&g.Value, g.Language))
	if m := t.modulesOf[g.Module.ID]; m != nil && hasOthers(list, g.Name) {
		t.printf(" %s", t.faint("in "+m.label()))
	}
	if t.isVerbose {
		t.printf(" %s", t.faint(about(&trace.FrameVariable{Variable: g.Variable})))
	}
	t.printf("\n")
}

// hasOthers reports whether several variables have a name.
func hasOthers(list []Global, name string) bool {
	n := 0
	for i := range list {
		if list[i].Name == name {
			n++
		}
	}
	return n > 1
}

// globalsJSON is the member of a Report; "" where none were requested.
func globalsJSON(list []Global, names spaceNames) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	var b bytes.Buffer
	j := &indented{output: newOutput(&b), depth: 1}
	j.member("globals")
	j.open("[")
	for i := range list {
		g := &list[i]
		j.begin(g.Name, string(g.Kind))
		j.numberMember("module", g.Module.ID)
		j.variable(&g.Variable, func(space locexpr.AddressSpace) string { return names(g.Thread, space) })
		j.close("}")
	}
	j.close("]")
	err := j.Flush()
	return ",\n" + strings.TrimPrefix(b.String(), "\n"), err
}
