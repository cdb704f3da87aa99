// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"

	"github.com/unwindd/unwindd/engine/trace"
)

// class is mismatches at one instruction.
type class struct {
	kind                decisionKind
	module, function    string
	offset              uint64 // in the function
	isExact             bool   // it was about to be executed; else it had called
	isSample            bool   // it was walked as profiles are
	foundBy, stopReason string
}

// mismatch has the facts of a class.
type mismatch struct {
	count   int
	text    string // of the instruction
	example string
	known   *knownPlace
}

// classify says where a mismatch is.
func (s *stepping) classify(v decision, stack *trace.Stack, isSample bool) (c class, pc uint64) {
	c = class{kind: v.kind, isSample: isSample, function: "?"}
	if v.frame >= len(stack.Frames) {
		return c, 0
	}
	f := &stack.Frames[v.frame]
	c.isExact = f.Exact
	lookup := f.PC
	if !f.Exact {
		lookup--
	}
	segment := s.point.loaded.Process().Segment(lookup)
	if segment != nil {
		c.module = filepath.Base(segment.Module.Path)
	}
	if names := s.point.loaded.AppendSymbols(context.Background(), nil, []uint64{lookup})[0]; len(names) > 0 && segment != nil {
		last := names[len(names)-1]
		c.function, c.offset = last.Function, segment.ObjectAddress(lookup)-last.Start
	} else if v.frame == 0 && s.isInJump() {
		c.function = "? of longjmp"
	}
	if v.frame+1 < len(stack.Frames) {
		c.foundBy = string(stack.Frames[v.frame+1].FoundBy)
	} else {
		c.stopReason = string(stack.Stopped.Reason)
	}
	return c, f.PC
}

// isInJump reports whether longjmp is at work: it calls a function that has no name in every libc.
func (s *stepping) isInJump() bool {
	current := s.shadow.current
	n := len(current.places)
	if current.isCut || n == 0 {
		return current.isCut
	}
	names := s.point.loaded.AppendSymbols(context.Background(), nil, []uint64{current.places[n-1].back - 1})[0]
	return len(names) > 0 && strings.HasSuffix(names[len(names)-1].Function, "longjmp")
}

// note takes a mismatch.
func (s *stepping) note(v decision, stack *trace.Stack, isSample bool) {
	c, pc := s.classify(v, stack, isSample)
	m := s.classes[c]
	if m == nil {
		m = &mismatch{known: findKnown(&c), text: s.text(pc), example: s.example(v, stack)}
		s.classes[c] = m
	}
	m.count++
	t := s.tally
	switch {
	case m.known != nil && !isSample:
		t.known++
		return
	case m.known != nil:
		return
	}
	kinds := map[decisionKind]*int{wrong: &t.samplesWrong, wrongGuess: &t.samplesGuess, missing: &t.samplesMissing}
	if !isSample {
		kinds = map[decisionKind]*int{wrong: &t.wrong, wrongGuess: &t.wrongGuess, wrongCFA: &t.wrongCFA, wrongRegister: &t.wrongRegister, missing: &t.missing}
	}
	*kinds[v.kind]++
}

// text is an instruction's.
func (s *stepping) text(pc uint64) string {
	var code [15]byte
	n := s.process.read(pc, code[:])
	if s.tracee == nil {
		i, err := arm64asm.Decode(code[:n])
		if err != nil {
			return fmt.Sprintf("% x", code[:min(n, 4)])
		}
		return arm64asm.GNUSyntax(i)
	}
	i, err := x86asm.Decode(code[:n], 64)
	if err != nil {
		return fmt.Sprintf("% x", code[:min(n, 8)])
	}
	return x86asm.GNUSyntax(i, pc, nil)
}

// example shows a stack beside the truth.
func (s *stepping) example(v decision, stack *trace.Stack) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\t%s, step %d: frame %d: %s; stopped: %s %s\n", s.program.name, s.tally.steps, v.frame, v.detail, stack.Stopped.Reason, stack.Stopped.Detail)
	for i := max(v.frame-2, 0); i < min(v.frame+4, len(stack.Frames)); i++ {
		f := &stack.Frames[i]
		names := s.point.loaded.AppendSymbols(context.Background(), nil, []uint64{f.PC - 1})[0]
		name := "?"
		if len(names) > 0 {
			name = names[len(names)-1].Function
		}
		fmt.Fprintf(&b, "\t\tframe %d %#x %s by %s, CFA %#x\n", i, f.PC, name, f.FoundBy, f.CFA)
	}
	n := len(s.shadow.current.places)
	for i := n - 1; i >= max(n-1-v.frame-4, 0); i-- {
		p := &s.shadow.current.places[i]
		now, _ := s.process.word(p.slot)
		fmt.Fprintf(&b, "\t\ttruth %d %#x at %#x (now %#x), kind %d\n", n-1-i, p.back, p.slot, now, p.kind)
	}
	return b.String()
}

// report prints the table and the classes.
func (w *work) report() error {
	out := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(out, "program\tsteps\twalks\tdistinct\tframes\tregisters\twrong\twrong CFA\twrong register\twrong guess\tmissing\tguessed\texplained\tsamples: wrong\twrong guess\tmissing\tcut\ttime")
	var sum tally
	for _, t := range w.tallies {
		t.print(out)
		sum.add(t)
	}
	sum.print(out)
	out.Flush()
	classes := slices.SortedFunc(maps.Keys(w.classes), func(a, b class) int {
		return cmp.Or(int(a.kind)-int(b.kind), strings.Compare(a.module, b.module), strings.Compare(a.function, b.function), cmp.Compare(a.offset, b.offset))
	})
	failed := w.printUnexplained(classes)
	w.printExplained(classes)
	w.peers.report()
	if failed > 0 {
		return fmt.Errorf("%d stacks are wrong or end early, and nothing explains it", failed)
	}
	return nil
}

// printUnexplained prints the classes that nothing explains, and says of how many stacks they are.
func (w *work) printUnexplained(classes []class) (failed int) {
	shown := 0
	for _, c := range classes {
		m := w.classes[c]
		if m.known != nil {
			continue
		}
		failed += m.count
		fmt.Printf("%6d %s: %s!%s+%#x (%s)%s%s: not explained\n", m.count, c.kindOf(), c.module, c.function, c.offset, m.text, blank(c.foundBy), blank(c.stopReason))
		if shown++; *verbose || shown < 20 {
			fmt.Print(m.example)
		}
	}
	return failed
}

// kindOf is the kind of the class in the output.
func (c *class) kindOf() string {
	if c.isSample {
		return c.kind.String() + " (sample)"
	}
	return c.kind.String()
}

// printExplained prints the functions where stacks are known to be wrong, and why.
func (w *work) printExplained(classes []class) {
	type place struct{ kind, module, function, reason string }
	type sum struct{ count, instructions int }
	sums := map[place]sum{}
	for _, c := range classes {
		if m := w.classes[c]; m.known != nil {
			p := place{c.kindOf(), c.module, c.function, m.known.reason}
			sums[p] = sum{sums[p].count + m.count, sums[p].instructions + 1}
		}
	}
	list := slices.SortedFunc(maps.Keys(sums), func(a, b place) int {
		return cmp.Or(strings.Compare(a.module, b.module), strings.Compare(a.function, b.function), strings.Compare(a.kind, b.kind))
	})
	for _, p := range list {
		fmt.Printf("%6d %s at %d instructions of %s!%s: %s\n", sums[p].count, p.kind, sums[p].instructions, p.module, p.function, p.reason)
	}
}

func blank(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

func (t *tally) print(out *tabwriter.Writer) {
	fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1fs\n", t.name, t.steps, t.walked, t.distinct, t.frames, t.registers,
		t.wrong, t.wrongCFA, t.wrongRegister, t.wrongGuess, t.missing, t.guesses, t.known, t.samplesWrong, t.samplesGuess, t.samplesMissing, t.cut, t.took.Round(time.Millisecond).Seconds())
}

func (t *tally) add(o *tally) {
	t.steps, t.walked, t.distinct, t.frames = t.steps+o.steps, t.walked+o.walked, t.distinct+o.distinct, t.frames+o.frames
	t.wrong, t.wrongCFA, t.wrongRegister = t.wrong+o.wrong, t.wrongCFA+o.wrongCFA, t.wrongRegister+o.wrongRegister
	t.wrongGuess, t.missing, t.registers = t.wrongGuess+o.wrongGuess, t.missing+o.missing, t.registers+o.registers
	t.guesses, t.known, t.took = t.guesses+o.guesses, t.known+o.known, t.took+o.took
	t.samplesWrong, t.samplesGuess = t.samplesWrong+o.samplesWrong, t.samplesGuess+o.samplesGuess
	t.samplesMissing, t.cut = t.samplesMissing+o.samplesMissing, t.cut+o.cut
}
