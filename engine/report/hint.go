// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/signature"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// Hint names something that the frames lack, and what would give it.
type Hint struct {
	Module  string `json:"module,omitempty"` // its path in the target; "" for code in no module
	BuildID string `json:"build_id,omitempty"`
	Needs   Need   `json:"needs"`
	Text    string `json:"text"` // a sentence: the lack, and the options that may help
}

// Need is the kind of a lack.
type Need string

// The kinds.
const (
	NeedFile  Need = "file"  // there is no file of the module's code
	NeedNames Need = "names" // functions of frames are not known
	NeedRows  Need = "rows"  // callers are guesses or not known, for lack of call frame information
	NeedLines Need = "lines" // the failing frame has a function and no line
	// NeedMoments is of a language runtime, in a profile: its frames are found while threads stand
	// still.
	NeedMoments Need = "moments"
)

// maxHints bounds the hints of a report.
const maxHints = 64

// lacks collects what the frames of stacks lack while these are walked.
type lacks struct {
	modules   map[*trace.Module]*lack
	generated map[uint64]bool // PCs in no module, without a name; at most maxGenerated
}

// maxGenerated bounds the addresses that are looked at for code made at run time.
const maxGenerated = 64

// lack has the lacks of the frames in a module.
type lack struct {
	module *trace.Module
	order  int // of its first such frame
	frames int // without a function
	isRows bool
	isLine bool
	// isFailing is true where the failing frame lacks it, isCrashed where a frame of a thread
	// that crashed does.
	isFailing, isCrashed bool
}

// recorded yields stacks, and records what their frames lack.
func (l *lacks) recorded(each iter.Seq[*trace.Stack]) iter.Seq[*trace.Stack] {
	return func(yield func(*trace.Stack) bool) {
		for s := range each {
			l.note(s)
			if !yield(s) {
				return
			}
		}
	}
}

// note records what the frames of a stack lack.
func (l *lacks) note(s *trace.Stack) {
	failing := failingFrame(s)
	l.frames(s, s.Frames, failing)
	l.frames(s, s.Outermost, -1)
	if n := len(s.Frames); s.Stopped.Reason == trace.StopNoRow && n > 0 && s.LeftOut == 0 && s.Frames[n-1].Module != nil {
		l.of(s, s.Frames[n-1].Module).isRows = true
	}
	for i := range s.Launchers {
		l.frames(s, s.Launchers[i].Frames, -1)
		l.frames(s, s.Launchers[i].Outermost, -1)
	}
}

// failingFrame is the index of the frame in which a thread failed; -1: it did not, or it is not
// among the frames. A signal handler's frames come before it, and abort's, where the thread ended
// itself.
func failingFrame(s *trace.Stack) int {
	if !s.Thread.Crashed {
		return -1
	}
	first := 0
	for i := range s.Frames {
		if s.Frames[i].SignalFrame {
			first = i + 1
			break
		}
	}
	const abort = 6 // SIGABRT of every machine
	for ; first < len(s.Frames); first++ {
		m := s.Frames[first].Module
		// No file would give lines of a library of macOS.
		isPassedOn := m != nil && (s.Thread.Signal == abort || m.IsMachO) && isSystemLibrary(m.Path)
		if !isPassedOn {
			return first
		}
	}
	return -1
}

// of returns the entry of a module, which a frame of a stack is in.
func (l *lacks) of(s *trace.Stack, m *trace.Module) *lack {
	if l.modules == nil {
		l.modules = map[*trace.Module]*lack{}
	}
	found := l.modules[m]
	if found == nil {
		found = &lack{module: m, order: len(l.modules)}
		l.modules[m] = found
	}
	found.isCrashed = found.isCrashed || s.Thread.Crashed
	return found
}

// frames records what frames lack, of which one may be the failing one.
func (l *lacks) frames(s *trace.Stack, frames []trace.Frame, failing int) {
	for i := range frames {
		f := &frames[i]
		own := ownSymbol(f)
		switch {
		case f.SignalFrame:
		case f.Module == nil:
			if own.Function == "" && len(l.generated) < maxGenerated {
				if l.generated == nil {
					l.generated = map[uint64]bool{}
				}
				l.generated[f.PC] = true
			}
			continue
		case own.Function == "":
			found := l.of(s, f.Module)
			found.frames++
			found.isFailing = found.isFailing || i == failing
		case i == failing && f.Symbols[0].Line == 0:
			found := l.of(s, f.Module)
			found.isLine, found.isFailing = true, true
		}
		if i+1 < len(frames) && frames[i+1].FoundBy.IsGuess() && f.Module != nil {
			l.of(s, f.Module).isRows = true
		}
	}
}

// rank orders lacks: first what the failing frame lacks, then stacks of threads that
// crashed, and system libraries last.
func (k *lack) rank() int {
	switch isSystem := isSystemLibrary(k.module.Path); {
	case k.isFailing && k.frames > 0:
		return 0
	case k.isCrashed && !isSystem && k.frames > 0:
		return 1
	case k.isFailing:
		return 2
	case !isSystem && k.frames > 0:
		return 3
	case !isSystem:
		return 4
	}
	return 5
}

// executable is the path of the process's executable; "" where it is not known.
func (t *Target) executable() string {
	if t.Process == nil {
		return ""
	}
	return t.Process.Executable
}

// hints writes the hints: one line, or all where that is verbose.
func (t *text) hints(isVerbose bool) {
	for i, line := range hintLines(t.about.Target.Hints, isVerbose) {
		if i == 0 {
			t.printf("\n")
		}
		t.printf("%s %s\n", t.warn("hint:"), line)
	}
}

// inOrder returns what modules lack, the most important first.
func (l *lacks) inOrder() []*lack {
	return slices.SortedFunc(maps.Values(l.modules), func(a, b *lack) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.order, b.order))
	})
}

// wanted returns the module with the facts about it.
func (k *lack) wanted(info trace.ModuleInfo, executable string) *wanted {
	return &wanted{
		Module: k.module, info: info, isExecutable: k.module.Path == executable,
		isFailing: k.isFailing, isPlace: k.isLine, isRows: k.isRows, frames: k.frames,
	}
}

// list returns the hints about a target, the most important one first. executable is the path of
// the process's executable.
func (l *lacks) list(t *engine.Target, executable string) (hints []Hint) {
	for _, k := range l.inOrder() {
		if len(hints) == maxHints {
			return hints
		}
		info := t.ModuleInfo(k.module)
		if info.DebugInfo == "" || info.IsMissing {
			info.DebugInfo = t.DebugInfo(k.module)
		}
		w := k.wanted(info, executable)
		w.isReported = t.Info().Kind == trace.AppleReport
		if h, ok := w.hint(); ok {
			hints = append(hints, h)
		}
	}
	if h, ok := l.generatedHint(t); ok {
		hints = append(hints, h)
	}
	return hints
}

// generatedHint is the hint about code that the program made at run time.
func (l *lacks) generatedHint(t *engine.Target) (h Hint, ok bool) {
	count := 0
	state := t.Process().State()
	for pc := range l.generated {
		if _, isCode := state.Mapped(pc); isCode {
			count++
		}
	}
	if count == 0 {
		return h, false
	}
	var names []string
	for _, m := range t.Modules() {
		names = append(names, m.Path)
	}
	where := "in a profile, and in the stacks of the living process"
	if t.Info().Kind == "process" {
		where = "here"
	}
	return Hint{Needs: NeedNames, Text: generatedText(runtimeOf(names), where)}, true
}

// isSystemLibrary reports whether a module is one of the libraries that programs are at work in
// when they wait, and that pass failures on.
func isSystemLibrary(path string) bool {
	if signature.IsWithMacOS(path) {
		return true
	}
	name := strings.ToLower(object.LastPart(path))
	return slices.ContainsFunc(systemLibraries, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// systemLibraries are the beginnings of their names.
var systemLibraries = []string{
	"libc.so", "libc-2", "libc.musl", "ld-musl", "ld-linux", "ld-2", "libpthread", "libm.so", "libdl", "libstdc++.so", "libc++", "libgcc_s",
	"linux-vdso", "ntdll.", "kernel32.", "kernelbase.", "ucrtbase", "vcruntime", "msvcp", "msvcr", "libsystem_", "dyld",
}
