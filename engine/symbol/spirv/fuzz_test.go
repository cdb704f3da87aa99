package spirv

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/locexpr"
)

// FuzzRead reads modules and asks for everything: nothing may panic, and what is
// said must be consistent.
func FuzzRead(f *testing.F) {
	for _, name := range setModules {
		data := assemble(f, source(f, name))
		f.Add(data)
		f.Add(module(words(data), binary.BigEndian))
	}
	f.Add(assemble(f, functionText("", "%l = OpLabel\n%v = OpExtInst %void %dbg DebugValue %a %p0 %e_no\nOpBranch %l2\n%l2 = OpLabel\nOpReturn")))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read("fuzz", data)
		if err != nil {
			return
		}
		for r := range m.Records() {
			if r.Kind == "" || r.Offset >= uint64(len(m.words)) {
				t.Errorf("record %+v", r)
			}
		}
		n := 0
		for p := range m.Positions() {
			if len(p.Frames) == 0 || len(p.Frames) != len(p.Scopes) || len(p.Frames) > maxChain+1 {
				t.Fatalf("position %+v", p)
			}
			if n++; n%16 == 0 {
				found, err := m.Find(p.Function+"+0", false)
				if err != nil || found.Function != p.Function {
					t.Errorf("%q: %v, %v", p.Function, found.Function, err)
				}
			}
		}
		for _, v := range m.Variables() {
			for _, r := range v.Ranges {
				if r.Start > r.End || r.Problem == "" && strings.Contains(locexpr.FormatText(r.Expression, locexpr.TextOptions{Dialect: locexpr.Canonical}), "<") {
					t.Errorf("variable %+v", v)
				}
			}
		}
		for i := range m.records {
			_ = m.TypeName(m.records[i].ID)
		}
		_, _, _ = m.Macros(), m.Sources(), m.Problems()
	})
}
