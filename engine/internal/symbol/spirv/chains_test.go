// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// chainsOf reads the chains that are written beside a source.
func chainsOf(t *testing.T, name string) map[string]bool {
	t.Helper()
	list := map[string]bool{}
	for _, line := range strings.Split(source(t, name+".chains"), "\n") {
		if line != "" && line[0] != '#' {
			list[line] = true
		}
	}
	return list
}

// placed is a position as the files of chains have it; "" where it has no line
// or no scope.
func placed(m *Module, p *symbol.Position) string {
	if p.Frames[0].Line == 0 || p.Scopes[0] == "" {
		return ""
	}
	var calls []string
	for i := range p.Frames {
		f := &p.Frames[i]
		if i == 0 {
			calls = append(calls, f.Name)
		} else {
			calls = append(calls, fmt.Sprintf("%s %d", f.Name, f.Line))
		}
	}
	id, _ := strconv.ParseUint(p.Scopes[0][1:], 10, 32)
	var blocks []string
	for r := m.find(uint32(id)); r != nil && r.Op != DebugFunction; r = m.target(r, "Parent") {
		if r.Op == DebugLexicalBlock {
			blocks = append(blocks, fmt.Sprintf("%d:%d", m.line(r, "Line"), m.line(r, "Column")))
		}
	}
	if len(blocks) == 0 {
		blocks = []string{"-"}
	}
	return fmt.Sprintf("%d: %s in %s", p.Frames[0].Line, strings.Join(calls, " < "), strings.Join(blocks, " "))
}

// Every instruction of every module is where the chains beside its source say,
// and without optimization every chain is found.
func TestChainsOfCalls(t *testing.T) {
	corpusSources := map[string]string{"k.cl": "kernel.cl", "k.clcpp": "kernel.clcpp", "s.comp": "shader.comp"}
	checked := 0
	for name, data := range modules(t) {
		base, isCorpus := strings.CutPrefix(name, "corpus/")
		of := ""
		for _, c := range []string{"calls.cl", "kernel.cl", "kernel.clcpp", "calls.comp", "shader.comp"} {
			if strings.HasPrefix(name, c+"-") || name == c {
				of = c
			}
		}
		if isCorpus {
			for prefix, c := range corpusSources {
				if strings.HasPrefix(base, prefix+".") {
					of = c
				}
			}
		}
		if of == "" || strings.Contains(name, "clang-22") || base == "k.cl.O0.nonsemantic.spv" {
			continue
		}
		m := parse(t, name, data)
		expected := chainsOf(t, of)
		found := map[string]bool{}
		for p := range m.Positions() {
			at := placed(m, &p)
			if at == "" {
				continue
			}
			checked++
			found[at] = true
			if !expected[at] {
				t.Errorf("%s: %s+%d: %s, which is not in %s.chains", name, p.Function, p.Instruction, at, of)
			}
			if file := filepath.Base(p.Frames[0].File); file != of && !isCorpus {
				t.Errorf("%s: %s+%d: file %q", name, p.Function, p.Instruction, p.Frames[0].File)
			}
		}
		optimized := strings.Contains(name, "O1")
		for at := range expected {
			if !found[at] && !optimized && !strings.Contains(at, "< kcpp") {
				t.Errorf("%s: no instruction is at %s", name, at)
			}
		}
	}
	if checked < 1500 {
		t.Errorf("%d positions, expected 1500 or more", checked)
	}
	t.Logf("%d positions", checked)
}
