// SPDX-License-Identifier: Apache-2.0

package minidumps

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/proof"
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
	Path           string `json:"-"` // the module's
	Object         string `json:"-"` // the module's build ID, as paths go through links; its path where it has none
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
	if f.Object != "" {
		module = fmt.Sprintf(" %.8s+%s", f.Object, f.ModuleOffset)
	}
	inlined := ""
	if f.Inlined {
		inlined = " inlined"
	}
	return fmt.Sprintf("%s%s %s+%s %s:%d:%d%s by %s, CFA %s", f.PC, module, f.Function, f.FunctionOffset, f.File, f.Line, f.Column, inlined, f.FoundBy, f.CFA)
}

// nothingWalked is the exit status where no architecture was there.
const nothingWalked = 3

// readStacks runs unwindd.
func readStacks(t testing.TB, path string, args ...string) *document {
	t.Helper()
	exe, err := unwindd()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"stack", path, "--format", "json"}, args...)...)
	// A cache of perf, which tests of profiles leave, has files that are to be missing.
	cmd.Env = append(os.Environ(), "PERF_BUILDID_DIR="+t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != nothingWalked {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	d := &document{}
	if err := json.Unmarshal(out, d); err != nil {
		t.Fatal(err)
	}
	for i := range d.Threads {
		for k := range d.Threads[i].Frames {
			if f := &d.Threads[i].Frames[k]; f.Module != nil {
				m := d.Modules[*f.Module]
				f.Path, f.Object, f.Module = m.Path, cmp.Or(m.BuildID, m.Path), nil
			}
		}
	}
	return d
}

// withoutPaths forgets the paths of modules, which may be links.
func (d *document) withoutPaths() *document {
	for _, t := range d.Threads {
		for i := range t.Frames {
			t.Frames[i].Path = ""
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

// A difference is where a stack of a minidump begins to differ from the core's.
type difference struct {
	class string // of those that are explained; "" for others
	text  string
}

// Differences that are the dump's:
const (
	// A dump keeps some of the stack, 32 KiB with Breakpad's writers: nothing of it where the stack
	// pointer is below the stack, and not the one that a signal handler with a stack of its own
	// interrupted. The stacks are equal up to there.
	stackNotKept = "the dump does not have the stack of the next frame"
	// Whether a called function went on to another one by a tail call is only known where the
	// word of the global offset table is there that the call went through.
	tableNotKept = "a function that was left by a tail call: the dump does not have the table by which it was called"
	// Code that was made at run time is neither in the dump nor in a file: frames above it are guesses.
	codeNotKept = "the dump does not have the code below"
	// A process goes on between LLDB's dumps and its core: the kernel sets a thread that waits back
	// to the instruction of its system call, to restart it.
	callRestarted = "the system call is restarted between dump and core"
)

// restartedCall is how many bytes the PC is set back by: those of `syscall`.
const restartedCall = 2

// atRestartedCall gives frames the PC, and its line, that the core has, where the two differ as they do for a
// system call that is restarted, and says whether they do.
func (want *thread) atRestartedCall(got []frame) ([]frame, bool) {
	if want.Crashed || len(want.Frames) == 0 || len(got) == 0 {
		return got, false
	}
	w, g := &want.Frames[0], &got[0]
	from, to := g.PC, w.PC
	if a, b := number(from), number(to); a-b != restartedCall && b-a != restartedCall || w.Function != g.Function {
		return got, false
	}
	got = slices.Clone(got)
	for i := range got {
		if i >= len(want.Frames) || got[i].PC != from || want.Frames[i].PC != to {
			continue
		}
		// In a file of assembly the instruction after the call has a line of its own.
		of := &want.Frames[i]
		got[i].PC, got[i].ModuleOffset, got[i].FunctionOffset, got[i].Line, got[i].Column = to, of.ModuleOffset, of.FunctionOffset, of.Line, of.Column
	}
	return got, true
}

// number is a hexadecimal number with 0x; 0 where it is none.
func number(text string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	return n
}

// compare holds the stack of a thread against the core's.
func (want *thread) compare(got *thread, p *program) (found []difference) {
	add := func(class, text string, args ...any) {
		found = append(found, difference{class, fmt.Sprintf(text, args...)})
	}
	frames, isRestarted := want.atRestartedCall(got.Frames)
	if isRestarted {
		add(callRestarted, "%s, in the core %s", got.Frames[0].PC, want.Frames[0].PC)
	}
	i, n := 0, 0 // how many frames of each are equal
	for _, g := range frames {
		for ; i < len(want.Frames) && want.Frames[i] != g && want.Frames[i].FoundBy == "call-site"; i++ {
			add(tableNotKept, "frame %d is missing: %s", i, &want.Frames[i])
		}
		if i == len(want.Frames) {
			break
		}
		if w := want.Frames[i]; w != g {
			w.FoundBy, w.RestsOnGuess = g.FoundBy, g.RestsOnGuess
			if w != g || !p.isMade {
				break
			}
			add(codeNotKept, "frame %d by %s", i, g.FoundBy)
		}
		i, n = i+1, n+1
	}
	switch {
	case i < len(want.Frames) && n < len(got.Frames):
		add("", "frame %d\n\tis  %s\n\twas %s", i, &got.Frames[n], &want.Frames[i])
	case n < len(got.Frames):
		add("", "frame %d is one too many: %s\n\t(the core's ends: %v)", i, &got.Frames[n], want.Stopped)
	case i < len(want.Frames) && p.isDeep && (got.Stopped.Reason == "no-memory" || got.Stopped.Reason == "end-of-stack"):
		add(stackNotKept, "frame %d is missing, it ends: %v", i, got.Stopped)
	case i < len(want.Frames):
		add("", "frame %d is missing: %s\n\t(it ends: %v)", i, &want.Frames[i], got.Stopped)
	case want.Stopped.Reason != got.Stopped.Reason:
		add("", "it ends %v, not %v", got.Stopped, want.Stopped)
	}
	return found
}

// TestMinidumpsHaveTheStacksOfTheirCores holds the stacks of one crash in its core, whose
// memory is whole, against those in each minidump of it: threads, PCs, CFAs, how frames
// were found, names, lines, inlined calls, and why each stack ends. Without the files of
// the modules, by what dump_syms wrote of them, the stacks are those of minidump_stackwalk.
// With them LLDB's reader of minidumps has the same frames.
func TestMinidumpsHaveTheStacksOfTheirCores(t *testing.T) {
	symbols := store{folder: t.TempDir()}
	var peer, lldb tally
	t.Run("programs", func(t *testing.T) {
		for i, p := range programs {
			t.Run(p.name, func(t *testing.T) {
				if i%3 != 0 {
					proof.Only(t)
				}
				t.Parallel()
				c := p.take(t)
				for _, r := range c.runs {
					want := readStacks(t, r.core).withoutPaths()
					for _, path := range r.dumps {
						compareStacks(t, &p, want, path)
					}
					lldb.compareWithLLDB(t, c.program, r.dumps[0], readStacks(t, r.dumps[0]))
				}
				symbols.addAll(t, c.program)
				symbols.compare(t, &peer, p.name, c.runs[0].dumps[0])
			})
		}
	})
	t.Logf("%d frames are as minidump_stackwalk's; %v", peer.frames, peer.classes)
	t.Logf("%d frames are as LLDB's; %v", lldb.frames, lldb.classes)
}

func compareStacks(t *testing.T, p *program, want *document, path string) {
	name := filepath.Base(path)
	got := readStacks(t, path).withoutPaths()
	if got.Target.Kind != "minidump" || len(got.Target.Problems) > 0 {
		t.Errorf("%s: kind %q, problems %q", name, got.Target.Kind, got.Target.Problems)
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
		for _, d := range w.compare(g, p) {
			if d.class == "" || name == "lldb-full.dmp" && d.class != callRestarted {
				t.Errorf("%s: thread %s of %d frames: %s", name, w.ID, len(w.Frames), d.text)
			} else {
				t.Logf("%s: thread %s: %s: %s", name, w.ID, d.class, d.text)
			}
		}
		if w.Crashed != g.Crashed {
			t.Errorf("%s: thread %s: crashed is %t, in the core %t", name, w.ID, g.Crashed, w.Crashed)
		}
	}
}
