// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/inteltest"
	"github.com/unwindd/unwindd/engine/trace"
)

// TestInstructionsOfZebinsAreAnnotated: each sample of a kernel of Intel is at an instruction
// that begins where the sample is, with the object; without it there are the
// offsets that were sampled, with the text that the profiler has.
func TestInstructionsOfZebinsAreAnnotated(t *testing.T) {
	zebin := compileZebin(t, "tgllp", "testdata/visa/rec.cl")
	run := intelRun(t, zebin)
	path := filepath.Join(t.TempDir(), "stalls.csv")
	if err := os.WriteFile(path, run.Unitrace(0, inteltest.Xe2), 0o600); err != nil {
		t.Fatal(err)
	}
	kernel := run.Kernels[0].Name
	annotate := func(path string, objects ...string) (*trace.Profile, *trace.ProfileAnnotation) {
		p, err := gpuEngine(t, Options{}).Profile(t.Context(), "", trace.ProfileOptions{Jobs: 1, GPU: []string{path}, Objects: objects, Annotate: []string{kernel}})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Annotations) != 1 {
			t.Fatalf("%d annotations of %s", len(p.Annotations), kernel)
		}
		return p, &p.Annotations[0]
	}
	p, a := annotate(path, zebin)
	if a.IsRecorded || len(a.Code) < 10 || len(a.Places) == 0 || len(a.Lines) == 0 {
		t.Fatalf("recorded %v, %d instructions, %d places, %d lines; %q", a.IsRecorded, len(a.Code), len(a.Places), len(a.Lines), a.Problems)
	}
	for _, place := range a.Places {
		f := &p.Frames[place.Frame]
		if place.Code < 0 {
			t.Errorf("%#x is at no instruction", f.ModuleOffset)
			continue
		}
		in := &a.Code[place.Code]
		if f.ModuleOffset < in.Offset || f.ModuleOffset >= in.Offset+uint64(len(in.Bytes)) {
			t.Errorf("%#x is at the instruction of %#x", f.ModuleOffset, in.Offset)
		}
		if s := &f.Symbols[len(f.Symbols)-1]; s.Line > 0 && (place.Line < 0 || a.Lines[place.Line].Line != s.Line) {
			t.Errorf("%#x is at line %d, and not placed there", f.ModuleOffset, s.Line)
		}
	}
	_, a = annotate(path)
	if a.IsRecorded || len(a.Code) == 0 || a.Module >= 0 || len(a.Problems) == 0 {
		t.Fatalf("without the object: recorded %v, %d instructions, module %d; %q", a.IsRecorded, len(a.Code), a.Module, a.Problems)
	}
	for i := range a.Code {
		if in := &a.Code[i]; in.Text != "" || in.Offset != 0x90*uint64(i) {
			t.Errorf("instruction %d is %q at %#x", i, in.Text, in.Offset)
		}
	}
	if err := os.WriteFile(path+".txt", run.Iaprof(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, a = annotate(path + ".txt"); !a.IsRecorded || len(a.Code) == 0 || a.Code[0].Text != "mov" {
		t.Errorf("of iaprof: recorded %v, %v", a.IsRecorded, a.Code)
	}
}
