// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/trace"
)

// maxCalls bounds the functions of a stack that are looked at.
const maxCalls = 1 << 12

// noCode stands for a PC that is in no code object.
const noCode = "??"

// call is a function that was called: the one of a physical frame, or one that was inlined into
// it or left by a tail call.
type call struct {
	name
	isNamed  bool // else it is the module's name
	isSystem bool // it has no name, and its module is the C library or a similar one
	isGuess  bool
	isOffset bool  // it is an offset in its module
	kind     *kind // nil: it is not machinery
	// isManaged and isRuntimes tell functions of a language from functions by which its runtime
	// executes them.
	isManaged, isRuntimes bool
	isStartup             bool // it starts the program or a thread, by its module, too

	frame, level int // the frame's index, and that of its symbol; level is -1 where there is none
}

// Crash is a stack with how it ended, as far as that is known.
type Crash struct {
	Stack *trace.Stack
	// IsOverflow is true where the stack overflowed, which only the signal shows: then it is
	// chance which function of a recursion was the last one.
	IsOverflow bool
	// First is the index of the frame that failed first, where a handler of that failure is
	// further in; else 0.
	First int
	// IsApple is true for a report or a core of macOS or iOS.
	IsApple bool
	// Raised is the type of the exception of a language because of which the process ended itself;
	// "": there was none.
	Raised string
}

// Of returns the signature of a stack by the rules of a version: of its own frames, and not of
// a launcher's.
func Of(version int, c *Crash) trace.Signature {
	isFirst := version == trace.FirstSignatureVersion
	calls := callsOf(c, isFirst)
	if len(calls) == 0 {
		return newSignature(version, ofWave(c.Stack.Thread))
	}
	if c.IsApple {
		calls = withoutRosetta(calls)
	}
	if !isFirst {
		shortenLambdas(calls)
	}
	table := &newStartups
	if isFirst {
		table = &startups
	}
	reduced, isOverflow := failures(withoutStartup(calls, table)), c.IsOverflow
	if len(reduced) > 0 && reduced[0].kind == overflowed {
		isOverflow, reduced = true, reduced[1:]
	}
	if !isFirst {
		reduced = ofProgram(reduced, c.Raised)
	}
	if isOverflow {
		calls = recursion(reduced)
	} else {
		calls = chosen(reduced)
	}
	names := make([]string, len(calls))
	for i := range calls {
		names[i] = calls[i].shown
	}
	s := newSignature(version, names)
	for i := range calls {
		s.RestsOnGuess = s.RestsOnGuess || calls[i].isGuess
		s.HasOffsets = s.HasOffsets || calls[i].isOffset
	}
	return s
}

// ofProgram returns calls of a stack with functions of a language without the functions by which a
// runtime executes them. Where the innermost call is one of these, it comes last. The type of an exception
// because of which the process ended itself stands for the machinery of that.
func ofProgram(calls []call, raised string) []call {
	var out []call
	if raised = managedName(raised); raised != "" {
		if len(calls) > 0 && calls[0].kind != nil {
			calls = calls[1:]
		}
		out = append(out, call{name: name{shown: "[" + raised + "]"}, isNamed: true})
	}
	if !slices.ContainsFunc(calls, func(c call) bool { return c.isManaged }) {
		return append(out, calls...)
	}
	inner := slices.IndexFunc(calls, func(c call) bool { return c.kind == nil && !c.isSystem })
	if inner >= 0 && !calls[inner].isRuntimes {
		inner = -1
	}
	for i := range calls {
		if !calls[i].isRuntimes {
			out = append(out, calls[i])
		}
	}
	if inner >= 0 {
		out = append(out, calls[inner])
	}
	return out
}

// shortenLambdas removes from a lambda's name the function that it is written in, where that
// called it: not all compilers include it.
func shortenLambdas(calls []call) {
	last := map[string]int{} // the outermost call of each function
	for i := range calls {
		last[calls[i].shown] = i
	}
	for i := range calls {
		c := &calls[i]
		if outer, isLambda := strings.CutSuffix(c.shown, "::"+funcname.Lambda); isLambda && c.isNamed && last[outer] > i {
			c.name = name{funcname.Lambda, funcname.Lambda}
		}
	}
}

// ofWave returns the name of a wave's kernel, where there are no frames of the wave.
func ofWave(th *trace.Thread) []string {
	if th == nil || th.Wave == nil || th.Wave.Kernel == "" {
		return []string{}
	}
	return []string{nameOf(strings.TrimSuffix(th.Wave.Kernel, ".kd"), "", false).shown}
}

// reader makes the calls of frames.
type reader struct {
	isFirst bool                   // by the rules of the first version
	isApple bool                   // by the tables of macOS and iOS, too
	named   map[*trace.Module]bool // modules of which a function has a name
	calls   []call

	index     int  // of the frame that is read
	hasPython bool // the functions by which Python ends itself are machinery
	// runtimes are the modules with the runtimes whose frames the stack has.
	runtimes map[*trace.Module]bool
}

// callsOf returns the calls of a stack's innermost frames, innermost first, without signal
// trampolines.
func callsOf(c *Crash, isFirst bool) []call {
	frames := c.Stack.Frames
	if !isFirst {
		frames = frames[min(c.First, len(frames)):]
	}
	r := newReader(c.Stack)
	r.isFirst, r.isApple = isFirst, c.IsApple
	for i := range frames {
		if m := frames[i].Module; m != nil && slices.ContainsFunc(frames[i].Symbols, func(s trace.Symbol) bool { return s.Function != "" }) {
			r.named[m] = true
		}
	}
	for i := range frames {
		if len(r.calls) >= maxCalls {
			break
		}
		r.frame(&frames[i])
	}
	return r.calls
}

// newReader makes the reader of a stack's frames.
func newReader(s *trace.Stack) *reader {
	r := &reader{named: map[*trace.Module]bool{}, runtimes: map[*trace.Module]bool{}}
	for i := range s.Runtimes {
		if m := s.Runtimes[i].Module; m != nil {
			r.runtimes[m] = true
		}
	}
	return r
}

func (r *reader) frame(f *trace.Frame) {
	if f.SignalFrame || f.BehindManaged {
		return
	}
	isGuess := f.FoundBy.IsGuess() || f.RestsOnGuess
	count := len(r.calls)
	about := f.Managed()
	isEntry := about != nil && about.Kind == trace.ManagedEntry
	isRuntimes := isEntry || about == nil && f.Module != nil && (r.runtimes[f.Module] || len(r.runtimes) > 0 && isBridge(f.Module))
	for i := range f.Symbols {
		s := &f.Symbols[i]
		n := r.nameOf(s, about != nil)
		if n.shown == "" {
			continue
		}
		kind, _ := kinds.find(n.plain)
		if r.hasPython && kind == nil && isFatalPython(n.plain, f.Module) {
			kind = thrown
		}
		r.calls = append(r.calls, call{
			name: n, isNamed: true, isGuess: isGuess || s.ScopeBySource, kind: kind, isManaged: about != nil && !isEntry, isRuntimes: isRuntimes && kind == nil,
			frame: r.index, level: i,
		})
		if last := &r.calls[len(r.calls)-1]; r.isApple {
			last.apple(f.Module)
		}
	}
	if len(r.calls) == count && f.IsNative() {
		n := noCode
		if f.Module != nil {
			n = moduleName(f.Module.Path)
		}
		c := call{name: name{n, n}, isSystem: isSystem(n), isGuess: isGuess, isRuntimes: isRuntimes, frame: r.index, level: -1}
		if f.Module != nil && !r.isFirst && !c.isSystem && !r.named[f.Module] {
			c.shown, c.isOffset = fmt.Sprintf("%s@%#x", n, f.ModuleOffset), true
		}
		r.calls = append(r.calls, c)
	}
	tails := f.TailCallers()
	for i := range tails {
		count := len(r.calls)
		r.frame(&tails[i])
		for k := range r.calls[count:] {
			r.calls[count+k].level = -1 // its symbol is another frame's
		}
	}
}

// nameOf returns the name of a function. Rules and tables for names of C, C++, Rust and Go are not
// for the languages of managed frames.
func (r *reader) nameOf(s *trace.Symbol, isManaged bool) name {
	if isManaged {
		return name{shown: managedName(s.Function)}
	}
	file := s.File
	if strings.HasPrefix(s.LinkageName, "_D") || s.IsDecoded && !strings.Contains(s.Function, "::") {
		file = dFile // Ada's names have dots alike
	}
	return nameOf(s.Function, file, r.isFirst)
}

// managedName returns the name of a function of a language runtime as signatures have it.
func managedName(function string) string {
	return strings.Map(funcname.Printable, strings.TrimSpace(function[:min(len(function), maxName)]))
}

// withoutStartup returns calls without the callers of the program's outermost function. It
// returns all of them where nothing would be left.
func withoutStartup(calls []call, table *nameTable[bool]) []call {
	end := slices.IndexFunc(calls, func(c call) bool {
		is, _ := table.find(c.plain)
		return (is || c.isStartup) && c.isNamed
	})
	if end <= 0 {
		return calls
	}
	return calls[:end]
}

// failures returns calls with one in the place of each row of machinery.
func failures(calls []call) []call {
	var out []call
	for i := 0; i < len(calls); {
		n, kind, isGuess := row(calls[i:], i == 0)
		if n == 0 {
			out = append(out, calls[i])
			i++
			continue
		}
		out = append(out, call{name: name{kind.is, kind.is}, isNamed: true, isGuess: isGuess, kind: kind})
		i += n
	}
	return out
}

// row returns how many calls from the first one on are machinery, and of which kind; 0: the
// first one is none. The allocator's calls count only at the innermost end of a stack.
func row(calls []call, isInnermost bool) (n int, strongest *kind, isGuess bool) {
	end := 0
	for i := range calls {
		c := &calls[i]
		switch k := c.kind; {
		case k == allocated && !isInnermost:
			return end, strongest, isGuess
		case k != nil:
			if strongest == nil || k.strength > strongest.strength {
				strongest = k
			}
			end = i + 1
		case c.isSystem || strongest != nil && isPlumbing(c.plain):
			continue // it belongs to the row if that goes on
		case strongest != nil && strongest.strength >= thrown.strength && isLibraryOf(strongest, c.plain):
			end = i + 1
		default:
			return end, strongest, isGuess
		}
		isGuess = isGuess || c.isGuess
	}
	return end, strongest, isGuess
}

// isLibraryOf reports whether a function belongs to the library of a kind of panic.
func isLibraryOf(k *kind, n string) bool {
	switch k {
	case panicked:
		return isRustLibrary(n) || strings.HasPrefix(n, "runtime.")
	case thrown, overflowed:
		return strings.HasPrefix(n, "runtime.")
	}
	return false
}

// chosen returns the innermost calls that show where a program failed: each function once, at
// its first place, so that a recursion counts as one round of it.
func chosen(calls []call) []call {
	for _, isLeft := range []func(c *call) bool{
		func(c *call) bool { return !c.isSystem && !isPlumbing(c.plain) },
		func(*call) bool { return true }, // where there is nothing else
	} {
		var list []call
		for i := range calls {
			c := &calls[i]
			isKnown := slices.ContainsFunc(list, func(known call) bool { return known.shown == c.shown })
			if len(list) == MaxFrames {
				break
			}
			if c.shown == noCode && len(list) > 0 {
				continue // it is chance where an overwritten return address leads
			}
			if isLeft(c) && !isKnown {
				list = append(list, *c)
			}
		}
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// minRecursion is how often a function is called at least in a recursion that fills a stack.
const minRecursion = 16

// recursion returns the calls of a stack that overflowed: the functions that call each other,
// in the order of the alphabet, or the innermost calls where none do. A function counts if it
// is called at least half as often as the most called one.
func recursion(calls []call) []call {
	list := []call{{name: name{overflowed.is, overflowed.is}, isNamed: true, kind: overflowed}}
	times, most := map[string]int{}, 0
	for i := range calls {
		if c := &calls[i]; !c.isSystem && !isPlumbing(c.plain) {
			times[c.shown]++
			most = max(most, times[c.shown])
		}
	}
	if most < minRecursion {
		found := chosen(calls)
		return append(list, found[:min(len(found), MaxFrames-1)]...)
	}
	var found []call
	for i := range calls {
		c := calls[i]
		if n := times[c.shown]; n >= minRecursion && 2*n >= most {
			found = append(found, c)
			times[c.shown] = 0
		}
	}
	slices.SortFunc(found, func(a, b call) int { return strings.Compare(a.shown, b.shown) })
	return append(list, found[:min(len(found), MaxFrames-1)]...)
}
