// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/inteltest"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// intelRun is a made run of the kernels of a zebin, sampled all over their code.
func intelRun(t *testing.T, zebin string) *inteltest.Run {
	t.Helper()
	o, err := object.Open(zebin)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	r := &inteltest.Run{Intervals: []inteltest.Interval{{End: 1_000_000_000}, {End: 1_010_000_000}}}
	for _, s := range o.Sections() {
		name, isKernel := strings.CutPrefix(s.Name, ".text.")
		if !isKernel {
			continue
		}
		index := len(r.Kernels)
		k := inteltest.Kernel{
			Name: name, GPU: 0x80000000 + uint64(index)<<20, Launch: &inteltest.Launch{PID: 7, TID: 8, Comm: "host", Names: []string{"launch", "main"}},
		}
		end := uint64(0) // behind it the section has no code
		for _, f := range functionsIn(t, o, s) {
			end = max(end, f.Address+f.Size)
			if f.Name != name {
				k.Functions = append(k.Functions, inteltest.Function{Symbol: f.Name, Start: f.Address})
			}
		}
		r.Kernels = append(r.Kernels, k)
		for at := uint64(0); at < end; at += 0x90 {
			for n := range r.Intervals {
				counts := [10]uint64{1, uint64(n), 0, 3, 0, at / 0x90, 0, 0, 0, 0}
				r.Intervals[n].Stalls = append(r.Intervals[n].Stalls, inteltest.Stall{Kernel: index, Offset: at, Instruction: "mov", Counts: counts})
			}
		}
	}
	return r
}

// functionsIn are the functions in a section of a zebin, by address.
func functionsIn(t *testing.T, o *object.Object, s *object.Section) []object.Symbol {
	t.Helper()
	list, err := o.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	list = slices.DeleteFunc(list, func(y object.Symbol) bool {
		return y.Type != elf.STT_FUNC || y.Name == "_entry" || int(y.Section) != s.Index
	})
	slices.SortFunc(list, func(a, b object.Symbol) int { return cmp.Compare(a.Address, b.Address) })
	return list
}

// intelSums are the weights of a profile by place, and by place and state.
func intelSums(t *testing.T, p *trace.Profile) (places, states map[string]uint64) {
	t.Helper()
	places, states = map[string]uint64{}, map[string]uint64{}
	for i := range p.Samples {
		s := &p.Samples[i]
		f := &p.Frames[p.Stacks[s.Stack].Frame]
		text := fmt.Sprintf("%#x", f.ModuleOffset)
		for _, y := range f.Symbols {
			text += fmt.Sprintf(" %s:%d", y.Function, y.Line)
		}
		if f.Module < 0 || !f.Device {
			t.Errorf("%s is in no module", text)
		}
		places[text] += s.Weight
		states[text+" "+p.States[s.State].Name] += s.Weight
	}
	return places, states
}

// One run in three forms is one profile, except for data that a form lacks.
func TestFormsOfIntelAreOneProfile(t *testing.T) {
	zebin := compileZebin(t, "tgllp", "testdata/visa/rec.cl")
	run := intelRun(t, zebin)
	dir := t.TempDir()
	profileOf := func(name string, data []byte, objects ...string) *trace.Profile {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := gpuEngine(t, Options{}).Profile(t.Context(), "", trace.ProfileOptions{Jobs: 1, GPU: []string{path}, Objects: objects})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	iaprof := profileOf("profile.txt", run.Iaprof(), zebin)
	unitrace := profileOf("stalls.csv", run.Unitrace(0, inteltest.Xe2), zebin)
	lines := profileOf("gpu.jsonl", run.JSONLines([]inteltest.Module{{Path: zebin, Arch: "visa"}}))
	want, wantStates := intelSums(t, iaprof)
	places, states := intelSums(t, unitrace)
	if d := gocmp.Diff(want, places) + gocmp.Diff(wantStates, states); d != "" {
		t.Errorf("unitrace (-iaprof +unitrace):\n%s", d)
	}
	if places, _ := intelSums(t, lines); gocmp.Diff(want, places) != "" {
		t.Errorf("lines of JSON (-iaprof +lines):\n%s", gocmp.Diff(want, places))
	}
	for _, function := range []string{"reck", "even", "odd", "fact"} {
		if !hasLineOf(want, function) {
			t.Errorf("no line of %s in %v", function, want)
		}
	}
	if n := len(iaprof.Problems) + len(unitrace.Problems) + len(lines.Problems); n > 0 {
		t.Errorf("problems %q, %q, %q", iaprof.Problems, unitrace.Problems, lines.Problems)
	}
	for i := range iaprof.Samples {
		s := &iaprof.Samples[i]
		text := sampleText(iaprof, s)
		if isKernel := strings.HasPrefix(text, "reck:"); s.Time == 0 || isKernel != strings.Contains(text, "; launch:0 launch; main:0 launch; ") {
			t.Errorf("%s", text)
		}
	}
	// What it may be of several objects it is in none.
	both := profileOf("both.csv", run.Unitrace(0, inteltest.Xe2), zebin, compileZebin(t, "pvc", "testdata/visa/rec.cl"))
	if !strings.Contains(strings.Join(both.Problems, "\n"), "kernel reck: it may be ") || both.Frames[0].Module >= 0 {
		t.Errorf("problems %q, frame %+v", both.Problems, both.Frames[0])
	}
}

// hasLineOf reports whether a place is a line of a function.
func hasLineOf(places map[string]uint64, function string) bool {
	for text := range places {
		if strings.Contains(text, " "+function+":") && !strings.Contains(text, " "+function+":0") {
			return true
		}
	}
	return false
}

// Kernels of a zebin, each in a section of its own, are told apart.
func TestKernelsOfIntelInSeveralSections(t *testing.T) {
	for _, processor := range []string{"skl", "tgllp", "pvc"} {
		zebin := compileZebin(t, processor, "../plugins/visa/testdata/two.cl")
		run := intelRun(t, zebin)
		o, err := object.Open(zebin)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		path := filepath.Join(t.TempDir(), "stalls.csv")
		if err := os.WriteFile(path, run.Unitrace(-1, inteltest.PVC), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := gpuEngine(t, Options{}).Profile(t.Context(), "", trace.ProfileOptions{Jobs: 1, GPU: []string{path}, Objects: []string{zebin}})
		if err != nil || len(p.Problems) > 0 {
			t.Fatal(err, p.Problems)
		}
		seen := map[string]bool{}
		for i := range p.Frames {
			f := &p.Frames[i]
			kernel := p.Kernels[f.Dispatched].Name
			want := ""
			for _, y := range functionsIn(t, o, o.Section(".text."+kernel)) {
				if y.Address <= f.ModuleOffset {
					want = y.Name
				}
			}
			if len(f.Symbols) == 0 || f.Symbols[len(f.Symbols)-1].Function != want {
				t.Errorf("%s: %s+%#x: %+v, expected %s", processor, kernel, f.ModuleOffset, f.Symbols, want)
			}
			seen[kernel+" "+want] = true
		}
		if len(seen) != 4 {
			t.Errorf("%s: %v, expected alpha, beta, and rec in both", processor, seen)
		}
	}
}
