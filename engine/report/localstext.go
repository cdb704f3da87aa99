package report

import (
	"strings"

	"github.com/unwindd/unwindd/engine"
)

// localsIndent stands before the variables of a frame.
const localsIndent = "        "

// locals writes the variables of a function of a frame, one in a line.
func (t *text) locals(f *engine.Frame, level int) {
	list := f.Locals()
	if level >= len(list) {
		return
	}
	for i := range list[level] {
		v := &list[level][i]
		name := v.Name
		if name == "" {
			name = "<unnamed " + string(v.Kind) + ">"
		}
		t.printf(localsIndent+"%s", name)
		if v.Lanes != nil {
			t.printf(" %s", t.faint("lanes "+v.Lanes.String()))
		}
		t.printf(" = %s", v.Value.Line(v.Language))
		if v.IsShadowed {
			t.printf(" %s", t.faint("(shadowed)"))
		}
		if t.isVerbose {
			t.printf(" %s", t.faint(about(v)))
		}
		t.printf("\n")
	}
}

// about is what the verbose text says of a variable beside its value.
func about(v *engine.Variable) string {
	parts := []string{string(v.Kind)}
	if v.Type != "" {
		parts = append(parts, v.Type)
	}
	if at := v.Location(); at != "" {
		parts = append(parts, "at "+at)
	}
	if v.Problem != "" && v.Status != "error" {
		parts = append(parts, v.Problem)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
