package minidumps

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A document is the part of the output of `unwindd stack --format json` that is compared.
type document struct {
	Target struct {
		Kind     string
		Problems []string
	}
	Modules []struct {
		Path    string
		BuildID string `json:"build_id"`
	}
	Threads []thread
}

type thread struct {
	ID      string
	Crashed bool
	Frames  []frame
	Stopped struct{ Reason, Detail string }
}

type frame struct {
	PC             string
	CFA            string
	FoundBy        string `json:"found_by"`
	Module         *int
	Path           string `json:"-"` // of the module
	ModuleOffset   string `json:"module_offset"`
	Function       string
	LinkageName    string `json:"linkage_name"`
	FunctionOffset string `json:"function_offset"`
	File           string
	Line           uint64
	Column         uint64
	Inlined        bool
	SignalFrame    bool `json:"signal_frame"`
	RestsOnGuess   bool `json:"rests_on_guess"`
}

func (f *frame) String() string {
	module := ""
	if f.Path != "" {
		module = fmt.Sprintf(" %s+%s", filepath.Base(f.Path), f.ModuleOffset)
	}
	inlined := ""
	if f.Inlined {
		inlined = " inlined"
	}
	return fmt.Sprintf("%s%s %s+%s %s:%d:%d%s by %s, CFA %s", f.PC, module, f.Function, f.FunctionOffset, f.File, f.Line, f.Column, inlined, f.FoundBy, f.CFA)
}

// readStacks runs unwindd.
func readStacks(t testing.TB, path string, args ...string) *document {
	t.Helper()
	exe, err := unwindd()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"stack", path, "--format", "json"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	d := &document{}
	if err := json.Unmarshal(out, d); err != nil {
		t.Fatal(err)
	}
	for i := range d.Threads {
		for k := range d.Threads[i].Frames {
			if f := &d.Threads[i].Frames[k]; f.Module != nil {
				f.Path, f.Module = d.Modules[*f.Module].Path, nil
			}
		}
	}
	return d
}

// thread is the one with an ID.
func (d *document) thread(id string) *thread {
	i := slices.IndexFunc(d.Threads, func(t thread) bool { return t.ID == id })
	if i < 0 {
		return nil
	}
	return &d.Threads[i]
}

// firstDifference says where two stacks begin to differ; "" where they are the same.
func firstDifference(want, got *thread) string {
	for i := range max(len(want.Frames), len(got.Frames)) {
		switch {
		case i == len(got.Frames):
			return fmt.Sprintf("frame %d is missing: %s\n\t(it ends: %s: %s)", i, &want.Frames[i], got.Stopped.Reason, got.Stopped.Detail)
		case i == len(want.Frames):
			return fmt.Sprintf("frame %d is one too many: %s\n\t(the other ends: %s: %s)", i, &got.Frames[i], want.Stopped.Reason, want.Stopped.Detail)
		case want.Frames[i] != got.Frames[i]:
			return fmt.Sprintf("frame %d\n\tis  %s\n\twas %s", i, &got.Frames[i], &want.Frames[i])
		}
	}
	if want.Stopped.Reason != got.Stopped.Reason {
		return fmt.Sprintf("it ends %v, not %v", got.Stopped, want.Stopped)
	}
	return ""
}

// TestMinidumpsHaveTheStacksOfTheirCores holds the stacks of one crash in its core, whose
// memory is whole, against those in each minidump of it: threads, PCs, CFAs, how frames
// were found, names, lines, inlined calls, and why each stack ends.
func TestMinidumpsHaveTheStacksOfTheirCores(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range p.take(t).runs {
				want := readStacks(t, r.core)
				for _, path := range r.dumps {
					compareStacks(t, &p, want, path)
				}
			}
		})
	}
}

func compareStacks(t *testing.T, p *program, want *document, path string) {
	name := filepath.Base(path)
	got := readStacks(t, path)
	if len(got.Target.Problems) > 0 {
		t.Logf("%s: problems: %q", name, got.Target.Problems)
	}
	if len(got.Threads) != len(want.Threads) {
		t.Errorf("%s: %d threads, in the core %d", name, len(got.Threads), len(want.Threads))
	}
	for i := range want.Threads {
		w := &want.Threads[i]
		g := got.thread(w.ID)
		if g == nil {
			t.Errorf("%s: thread %s is missing", name, w.ID)
			continue
		}
		if d := firstDifference(w, g); d != "" {
			t.Errorf("%s: thread %s of %d frames: %s", name, w.ID, len(w.Frames), d)
		}
		if w.Crashed != g.Crashed {
			t.Errorf("%s: thread %s: crashed is %t, in the core %t", name, w.ID, g.Crashed, w.Crashed)
		}
	}
}
