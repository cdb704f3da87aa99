// SPDX-License-Identifier: Apache-2.0

// Package compared makes of a target the form in which it is compared with others: roles of threads, frames without
// addresses, and facts without them. A target that was walked and the JSON of its report make the same.
package compared

import (
	"hash/maphash"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/internal/comparison"
	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/trace"
)

// Process is a target at one moment, as a walk or a report has it.
type Process struct {
	Path   string
	Labels map[string]string
	PID    int64
	// Host is the name of its machine, or of its container.
	Host                string
	Executable, Command string
	Started, Taken      time.Time
	// Signal names the signal that ended it; "": none did, or it is not known. Crash is why the target was
	// written, and First the name of the crash that a handler caught before.
	Signal, First string
	Crash         Crash
	// Fact is the line about what happened to it.
	Fact string
	// Deadlocks are IDs of threads that wait for each other.
	Deadlocks [][]string
	Problems  []string
	Modules   []trace.ModuleBuild
	Threads   []*Thread
	// Unread is why none of its stacks was walked; "": one was.
	Unread string
}

// Crash is why a target was written, as far as it says that.
type Crash struct {
	Name, Assertion string
	IsRequest       bool
}

// Thread is a thread of a target with its stack.
type Thread struct {
	ID, Name, Arch string
	Crashed        bool
	// IsWave is true for a wave, of Kernel.
	IsWave bool
	Kernel string
	// Stop is why it stopped, in the words of its machine.
	Stop string
	// Word names the kind of a thread that a language runtime schedules: "goroutine"; "" for others.
	// Entry is the function that it was started for.
	Word, Entry string
	// Executes is true for a thread that executes such a thread.
	Executes bool
	// Named are its names in language runtimes, and Raised the type of an exception that it has not handled.
	Named  []string
	Raised string
	// Frames are its stack, innermost first.
	Frames []trace.ComparedFrame
	// Ends is why the stack ends before its outermost frame; "": it does not.
	Ends string
}

// Bounds on the parts of a target that are kept.
const (
	maxName     = 1 << 12 // bytes of a name
	maxProblems = 16
	maxProblem  = 1 << 10 // bytes of one
)

// leftOut stands for the frames of a stack that were only counted.
var leftOut = trace.ComparedFrame{Function: "[frames that were left out]"}

// Reader makes targets. It keeps what it found out of names, and is for one goroutine at a time.
type Reader struct {
	names map[nameKey]*name
	// stacks are the stacks of the target that is walked, by hashes: many of its threads have the same.
	stacks map[uint64][]trace.ComparedFrame
	seed   maphash.Seed
	frames []trace.ComparedFrame // of the last thread, to be written over
}

// nameKey is a function's name, and what else tells how it is read.
type nameKey struct {
	function, file string
	isDecoded      bool
}

// name has the facts about a function's name.
type name struct {
	short       string // for people; "" where it is the same
	isMachinery bool
	isOfPool    bool
}

// maxNames bounds the names that a Reader keeps.
const maxNames = 1 << 16

// nameOf returns the facts about the name of a function.
func (r *Reader) nameOf(s *trace.Symbol) *name {
	key := nameKey{s.Function, s.File, s.IsDecoded}
	if n := r.names[key]; n != nil {
		return n
	}
	if r.names == nil || len(r.names) >= maxNames {
		r.names = map[nameKey]*name{}
	}
	n := &name{isMachinery: isMachinery(s.Function, s.File), isOfPool: isOfPool(s.Function, s.File)}
	if short := funcname.Of(s); short != s.Function {
		n.short = clip(short)
	}
	r.names[key] = n
	return n
}

// clip returns a text without its end where it is very long.
func clip(s string) string {
	if len(s) <= maxName {
		return s
	}
	return strings.ToValidUTF8(s[:maxName], "") + "..."
}

// Target returns a process as it is compared. It takes over its lists.
func (r *Reader) Target(p *Process) *comparison.Target {
	r.stacks, r.frames = nil, nil
	if p.Unread != "" {
		return p.base()
	}
	p.leaveOutSchedulers()
	roles := r.roles(p)
	t := p.base()
	t.Facts, t.Threads = p.facts(roles), make([]comparison.Thread, len(p.Threads))
	outermostFirst(p.Threads)
	for i, th := range p.Threads {
		t.Threads[i] = comparison.Thread{ID: th.ID, Role: roles[i], Crashed: th.Crashed, Frames: th.Frames, Ends: th.Ends}
	}
	return t
}

// base is a target of the process without its threads and facts.
func (p *Process) base() *comparison.Target {
	t := &comparison.Target{Path: p.Path, Labels: p.Labels, Host: p.Host, PID: p.PID, Started: p.Started, Taken: p.Taken, Modules: p.Modules, Problems: bounded(p.Problems)}
	if p.Unread != "" {
		t.Unread = p.Path + ": " + p.Unread
	}
	return t
}

// outermostFirst reverses the stacks of threads, each once: threads may share one.
func outermostFirst(threads []*Thread) {
	reversed := map[*trace.ComparedFrame]bool{}
	for _, th := range threads {
		if len(th.Frames) > 0 && !reversed[&th.Frames[0]] {
			reversed[&th.Frames[0]] = true
			slices.Reverse(th.Frames)
		}
	}
}

// bounded returns the first problems, and says that there are more.
func bounded(list []string) []string {
	list = slices.Clone(list)
	for i := range list {
		if len(list[i]) > maxProblem {
			list[i] = strings.ToValidUTF8(list[i][:maxProblem], "") + "..."
		}
	}
	if len(list) > maxProblems {
		list = append(list[:maxProblems], "there are more problems: `unwindd stack` of the target lists them")
	}
	return list
}

// ModuleName returns the name of a module's file without its folders; "" for a module without a file, whose
// code was made at run time.
func ModuleName(file string) string {
	if scheme, rest, isURI := strings.Cut(file, "://"); isURI { // of a device's runtime
		file, _, _ = strings.Cut(rest, "#")
		if scheme == "memory" { // it is named by its address
			return ""
		}
	}
	for _, nameless := range namelessFiles {
		if strings.HasPrefix(file, nameless) {
			return ""
		}
	}
	file = strings.TrimSuffix(file, " (deleted)")
	if file == "" {
		return ""
	}
	return clip(path.Base(strings.ReplaceAll(file, `\`, "/")))
}

// namelessFiles begin the paths of memory that is in no file: its contents depend on the run.
var namelessFiles = []string{"[anon", "[heap", "[stack", "//anon", "/memfd:", "/dev/zero", "/SYSV", "anon_inode:"}
