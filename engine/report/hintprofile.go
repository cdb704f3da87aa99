// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"strings"
)

// hints are about the frames of the profile's samples, the most frequent lack first. Without
// symbols nothing is missing.
func (r *Profile) hints() (hints []Hint) {
	if r.NoSymbols {
		return nil
	}
	c := r.countLacks()
	list := make([]int, 0, len(c.modules))
	for m := range c.modules {
		list = append(list, int(m))
	}
	slices.SortFunc(list, func(a, b int) int {
		x, y := c.modules[int32(a)], c.modules[int32(b)] //nolint:gosec // an index of modules
		return cmp.Or(cmp.Compare(y.unnamed+y.guessed, x.unnamed+x.guessed), cmp.Compare(a, b))
	})
	seen := map[string]bool{} // a module is there for each process that had it somewhere else
	for _, i := range list {
		m, n := &r.p.Modules[i], c.modules[int32(i)] //nolint:gosec // likewise
		key := m.Path + "\x00" + string(m.BuildID)
		if m.Kernel || m.IsJIT || seen[key] || len(hints) == maxHints {
			continue
		}
		w := wanted{Module: m.Module, info: m.ModuleInfo, isFailing: true, isRows: n.guessed > 0, isReported: m.IsMachO, frames: int(min(n.unnamed, 1))} //nolint:gosec // 0 or 1
		if h, ok := w.hint(); ok {
			seen[key] = true
			hints = append(hints, h)
		}
	}
	hints = append(hints, c.otherHints(r)...)
	for _, name := range r.p.Runtimes {
		hints = append(hints, Hint{Needs: NeedMoments, Text: "frames of " + name + " are in memory that the recording does not have: unwindd profile --recorder live records them"})
	}
	return hints
}

// profileLacks counts the samples with frames that lack something.
type profileLacks struct {
	modules map[int32]moduleLacks
	// unnamed and named count the kernel's code, isPlaced is true where the recording
	// has the kernel's address.
	unnamed, named uint64
	isPlaced       bool
	generated      uint64 // in no module
}

// lowest is the least address of code: below it are addresses that a program jumped to by mistake.
const lowest = 1 << 16

// moduleLacks counts frames of a module without a function, and those whose callers are guesses.
type moduleLacks struct{ unnamed, guessed uint64 }

// countLacks counts what frames of samples lack.
func (r *Profile) countLacks() profileLacks {
	c := profileLacks{modules: map[int32]moduleLacks{}}
	perStack := make([]uint64, len(r.p.Stacks))
	for i := range r.p.Samples {
		if s := &r.p.Samples[i]; r.isRequested(s) {
			perStack[s.Stack] += s.Count()
		}
	}
	for i := len(perStack) - 1; i > 0; i-- { // a caller comes before those that it called
		n, s := perStack[i], &r.p.Stacks[i]
		perStack[s.Caller] += n
		if n == 0 {
			continue
		}
		f := &r.p.Frames[s.Frame]
		isNamed := len(f.Symbols) > 0 && f.Symbols[len(f.Symbols)-1].Function != ""
		isGuess := s.Caller != 0 && r.p.Frames[r.p.Stacks[s.Caller].Frame].FoundBy.IsGuess()
		switch {
		case f.Device:
		case f.Kernel && isNamed:
			c.named += n
		case f.Kernel:
			isGuest := f.Module >= 0 && strings.HasPrefix(r.p.Modules[f.Module].Path, "[guest")
			if !isGuest {
				c.unnamed += n
			}
			c.isPlaced = c.isPlaced || f.Module >= 0
		case f.Module >= 0 && (isGuess || !isNamed):
			m := c.modules[f.Module]
			if isGuess {
				m.guessed += n
			}
			if !isNamed {
				m.unnamed += n
			}
			c.modules[f.Module] = m
		case f.Module < 0 && !isNamed && !f.FoundBy.IsGuess() && f.PC >= lowest:
			c.generated += n // a guess may be no code at all
		}
	}
	return c
}

// otherHints are about code that is in no file: the kernel's, and what programs made while they
// ran. They come last.
func (c *profileLacks) otherHints(r *Profile) (hints []Hint) {
	switch {
	case c.unnamed == 0 || c.named > 0:
	case r.kernelProblem() != "":
		hints = append(hints, Hint{Module: kernelModule, Needs: NeedNames, Text: kernelModule + " lacks names here: " + r.kernelProblem()})
	case c.isPlaced:
		hints = append(hints, Hint{Module: kernelModule, Needs: NeedNames, Text: kernelModule +
			" lacks names here: give a copy of the /proc/kallsyms of that boot, made by root, with --kallsyms FILE"})
	default:
		hints = append(hints, Hint{Module: kernelModule, Needs: NeedNames, Text: kernelModule +
			" lacks names here, and the recording does not say where the kernel was, since it hid its addresses from perf (kernel.kptr_restrict): record as root, and give a copy of /proc/kallsyms, made by root, with --kallsyms FILE"})
	}
	if c.generated == 0 {
		return hints
	}
	var names []string
	for i := range r.p.Modules {
		names = append(names, r.p.Modules[i].Path)
	}
	for i := range r.p.Threads {
		names = append(names, r.p.Threads[i].Comm)
	}
	return append(hints, Hint{Needs: NeedNames, Text: generatedText(runtimeOf(names), "in a new recording")})
}

// kernelProblem returns why the kernel's code has no names, with what would give them; "" where
// that is not known.
func (r *Profile) kernelProblem() string {
	for i := range r.p.Modules {
		if m := &r.p.Modules[i]; m.Kernel && m.Problem != "" {
			return oneLine(m.Problem)
		}
	}
	return ""
}

// kernelModule is perf's name of the kernel.
const kernelModule = "[kernel.kallsyms]"
