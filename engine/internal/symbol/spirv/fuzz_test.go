// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"encoding/binary"
	"slices"
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
	for _, w := range [][]uint32{shader101(f), shader200(f), ofSet(shader200(f), "NonSemantic.Shader.DebugInfo.300")} {
		f.Add(module(w, binary.LittleEndian))
	}
	f.Add(assemble(f, functionText("", "%l = OpLabel\n%v = OpExtInst %void %dbg DebugValue %a %p0 %e_no\nOpBranch %l2\n%l2 = OpLabel\nOpReturn")))
	f.Fuzz(func(t *testing.T, data []byte) { readAll(t, data) })
}

// FuzzWords changes words of modules of testdata: four bytes of edits say which
// word, and what becomes of it.
func FuzzWords(f *testing.F) {
	var seeds [][]uint32
	for _, name := range setModules {
		seeds = append(seeds, words(assemble(f, source(f, name))))
	}
	seeds = append(seeds, shader101(f), shader200(f))
	f.Add(uint8(3), []byte{0, 150, 0, 50, 0, 200, 1, 30})
	f.Add(uint8(4), []byte{1, 90, 2, 50, 1, 200, 3, 30})
	f.Add(uint8(0), []byte{0, 100, 0, 50, 0, 200, 1, 30})
	f.Add(uint8(1), []byte{1, 100, 2, 50, 1, 200, 3, 30})
	f.Fuzz(func(t *testing.T, seed uint8, edits []byte) {
		w := slices.Clone(seeds[int(seed)%len(seeds)])
		for ; len(edits) >= 4 && len(w) > headerWords; edits = edits[4:] {
			at := headerWords + int(binary.BigEndian.Uint16(edits))%(len(w)-headerWords)
			switch v := uint32(edits[3]); edits[2] % 6 {
			case 0:
				w[at] = v
			case 1:
				w[at] ^= 1 << (v % 32)
			case 2:
				w[at] = w[headerWords+int(v)*7%(len(w)-headerWords)]
			case 3:
				w[at] = -v
			case 4:
				w = slices.Delete(w, at, min(len(w), at+int(v%8)))
			case 5:
				w = slices.Insert(w, at, v)
			}
		}
		readAll(t, module(w, binary.LittleEndian))
	})
}

// readAll asks a module for everything.
func readAll(t *testing.T, data []byte) {
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
	for c := range m.Calls() {
		if len(c.Frames) == 0 || m.findFunction(c.Callee) == nil {
			t.Errorf("call %+v", c)
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
}
