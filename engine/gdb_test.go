// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/subject"
)

// walkedPCs are the PCs of the frames that a walk finds without debug information: those
// of physicalPCs but functions that were left by tail calls.
func walkedPCs(th *report.Thread) []string {
	pcs := []string{}
	for _, f := range th.Frames {
		if !f.Inlined && f.FoundBy != string(trace.ByCallSite) {
			pcs = append(pcs, f.PC)
		}
	}
	return pcs
}

// withoutCTails are those of physicalPCs but qsort, which is left by a tail call. gdb
// looks for what C++ calls by the name qsort(void*, unsigned long, ...), which C's
// functions do not have: docs/differences.md, "Functions left by tail calls".
func withoutCTails(th *report.Thread) []string {
	pcs := []string{}
	for _, f := range th.Frames {
		if !f.Inlined && (f.FoundBy != string(trace.ByCallSite) || !strings.HasSuffix(f.Function, "qsort")) {
			pcs = append(pcs, f.PC)
		}
	}
	return pcs
}

func TestStackEqualsGDB(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		subject, mode string
		threads       string // as the subject takes it; "" when it takes none
		live          bool   // by gcore, else the kernel's core
	}{
		{"mtcore", "abort", "8", false},
		{"mtcore", "sigh", "8", false},
		{"mtcore", "segv", "8", false},
		{"mtcore", "segv", "200", false},
		{"mtcore", "cxx", "8", false},
		{"mtcore", "rip0", "8", false},
		{"mtcore", "wait", "8", true},
		{"frames", "crash", "", false},
		{"frames", "wait", "", true},
		{"rustsubject", "panic", "", false},
		{"rustsubject", "wait", "", true},
		{"gosubject", "panic", "", false},
		{"gosubject", "wait", "", true},
	} {
		t.Run(strings.Join([]string{c.subject, c.mode, c.threads}, "-"), func(t *testing.T) {
			t.Parallel()
			if c.mode != "segv" || c.threads != "8" {
				long(t)
			}
			if c.mode == "cxx" || c.mode == "wait" && c.subject != "gosubject" {
				proof.Only(t)
			}
			exe := subject.Build(t, c.subject)
			args := strings.Fields(c.mode + " " + c.threads)
			var core string
			if c.live {
				core = subject.LiveCore(t, exe, args...)
			} else {
				core = subject.Core(t, exe, args...)
			}
			want := subject.GDBPCs(t, exe, core)
			got := enginetest.Report(t, core)
			if len(got.Threads) != len(want) {
				t.Errorf("%d threads, gdb has %d", len(got.Threads), len(want))
			}
			frames := 0
			for i := range got.Threads {
				th := &got.Threads[i]
				pcs := physicalPCs(th)
				frames += len(pcs)
				gdb := want[th.ID]
				if c.subject == "frames" {
					pcs = withoutCTails(th)
				}
				if c.subject == "gosubject" {
					gdb, pcs = goStack(th, gdb, pcs)
				}
				if diff := cmp.Diff(gdb, pcs); diff != "" {
					t.Errorf("thread %s (-gdb +unwindd), stopped %s: %s\n%s", th.ID, th.Stopped.Reason, th.Stopped.Detail, diff)
				}
				for _, f := range th.Frames {
					if f.FoundBy == "scan" && c.mode != "rip0" || f.FoundBy == "frame-pointer" {
						t.Errorf("thread %s frame %d is a guess, by %s", th.ID, f.Index, f.FoundBy)
					}
				}
			}
			for _, m := range got.Modules {
				if m.Path == exe && (m.BuildID == "" || m.Problem != "") {
					t.Errorf("%s: build ID %q, problem %q", m.Path, m.BuildID, m.Problem)
				}
			}
			t.Logf("%d threads, %d frames", len(got.Threads), frames)
		})
	}
}

// goStack cuts what is compared of a Go stack. Go's call frame information does
// not say that the first function of a stack has no caller, so gdb takes the next
// words of the stack for frames: docs/differences.md, "Go stacks".
func goStack(th *report.Thread, gdb, pcs []string) (fromGDB, own []string) {
	first := map[string]bool{
		"runtime.goexit": true, "runtime.mstart": true, "runtime.mcall": true, "runtime.morestack": true,
		"runtime.systemstack": true, "runtime.asmcgocall": true, "runtime.rt0_go": true, "runtime.clone": true,
	}
	for i, name := range functions(th) {
		if first[name] && len(gdb) > i && len(pcs) > i {
			return gdb[:i+1], pcs[:i+1]
		}
	}
	return gdb, pcs
}

// TestFramesWithoutCFI removes all call frame information from a program, so
// that its frames come from FrameRules, and compares with gdb, which keeps it.
func TestFramesWithoutCFI(t *testing.T) {
	t.Parallel()
	oracle.Tools(t, "objcopy")
	exe := subject.Build(t, "nocfi")
	bare := filepath.Join(t.TempDir(), "nocfi")
	oracle.Run(t, "objcopy", "--remove-section=.debug_*", "--remove-section=.eh_frame",
		"--remove-section=.eh_frame_hdr", exe, bare)
	core := subject.Core(t, exe, "crash")
	want := subject.GDBPCs(t, exe, core)
	got := enginetest.Report(t, core, madeOf(bare))
	rules := 0
	for i := range got.Threads {
		th := &got.Threads[i]
		if diff := cmp.Diff(want[th.ID], physicalPCs(th)); diff != "" {
			t.Errorf("thread %s (-gdb +unwindd), stopped %s: %s\n%s", th.ID, th.Stopped.Reason, th.Stopped.Detail, diff)
		}
		for _, f := range th.Frames {
			if f.FoundBy == "rules" {
				rules++
			}
		}
	}
	if rules < 10 {
		t.Errorf("%d frames found by rules, expected 10 or more: %s", rules, fmt.Sprint(got.Threads))
	}
}
