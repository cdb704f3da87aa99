// SPDX-License-Identifier: Apache-2.0

// Command bench runs unwindd and its peers in turn on the same inputs, compares their
// answers, and prints the cost of each, as tables of Markdown: time by the clock,
// processor time, the most memory, how these grow, and the ratio of ours to a peer's,
// with the smallest and the largest of the rounds.
//
// Peers that are not installed are installed where that is allowed: by root, or by a sudo
// that asks nothing. Missing peers are named. -short takes seconds, and installs nothing.
// -write puts the tables into docs/performance.md. Interrupted, it prints the tables of
// what it measured up to then.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

func main() {
	short := flag.Bool("short", false, "small inputs, one round, nothing is installed")
	write := flag.Bool("write", false, "put the tables into "+document)
	older := flag.String("before", "", "an older `EXECUTABLE` of unwindd, which is measured beside this one")
	only := flag.String("run", "", "only the sections whose names match `REGEXP`")
	flag.Parse()
	cost.Exit("bench", run(*short, *write, *only, *older))
}

// older is how the older unwindd is asked.
func (b *bench) older(ours entry) entry {
	e := entry{tool: before, stdin: ours.stdin, exit: ours.exit, measure: ours.measure}
	for _, arg := range ours.argv {
		e.argv = append(e.argv, strings.ReplaceAll(arg, b.unwindd, b.before))
	}
	return e
}

// allSections are in the order of the document.
func allSections() []*section {
	return []*section{
		{name: "start", title: "What a command costs before it does anything", make: start},
		{name: "threads", title: "Stacks of cores with many threads", unit: "threads", make: threads},
		{name: "depth", title: "Stacks of cores with many frames", unit: "frames", make: depth},
		{name: "living", title: "Stacks of living processes", unit: "threads", make: living},
		{name: "minidumps", title: "Stacks of minidumps", unit: "threads", make: minidumps},
		{name: "waves", title: "Stacks of waves", unit: "waves", make: waveSnapshots},
		{name: "symbols", title: "Functions and lines of addresses", make: symbols},
		{name: "pointers", title: "Profiles of recorded call chains", unit: "samples, by functions", make: framePointers},
		{name: "dwarf", title: "Profiles of recorded stacks", unit: "samples, by functions", make: dwarfStacks},
		{name: "locals", title: "Stacks with values", unit: "threads", make: locals},
		{name: "wavelocals", title: "Waves with values", unit: "waves", make: waveLocals},
		{name: "languages", title: "Stacks of Python", unit: "threads", make: languages},
		{name: "cold", title: "Recordings that are not in memory", unit: "samples", make: coldRecordings},
		{name: "gpu", title: "Samples of GPU profilers", unit: "samples", make: gpuSamples},
		{name: "output", title: "Forms of output", unit: "frames", make: forms},
		{name: "merge", title: "Stacks of many processes, compared", unit: "threads", make: merges},
		{name: "server", title: "A server and a fleet", unit: "stacks", make: servers},
		{name: "rows", title: "Rows of call frame information", unit: "rows", make: rows},
	}
}

// engineSection is the name of the benchmarks of packages.
const engineSection = "engine"

// bench is a run of the command.
type bench struct {
	dir, unwindd string
	before       string // an older unwindd; "": none
	short        bool
	referee      *referee
	missing      []string // peers that are not at hand
	versions     []string // of the peers that were made
	ends         []func()
}

// sizes has the sizes of inputs: all, or the smallest in the short run.
func (b *bench) sizes(list ...int) []int {
	if b.short {
		return list[:1]
	}
	return list
}

// atEnd has something done when a section has ended.
func (b *bench) atEnd(f func()) { b.ends = append(b.ends, f) }

// absent says that a peer is not at hand.
func (b *bench) absent(tool, why string) {
	line := fmt.Sprintf("%s: %s", tool, why)
	if slices.Contains(b.missing, line) {
		return
	}
	b.missing = append(b.missing, line)
	fmt.Fprintf(os.Stderr, "not at hand: %s: %s\n", tool, why)
}

func run(short, write bool, only, older string) error {
	if short && write {
		return errors.New("-short -write: the document has the figures of the whole form")
	}
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, short: short, before: older}
	b.referee = newReferee(dir, short)
	b.install()
	if b.unwindd, err = cost.Build(dir); err != nil {
		return err
	}
	began := time.Now()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	text, err := b.tables(ctx, pattern)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "took %s\n", time.Since(began).Round(time.Second))
	if write && ctx.Err() == nil {
		if err := intoDocument(text); err != nil {
			return err
		}
	} else if _, err := os.Stdout.Write(text); err != nil {
		return err
	}
	if len(b.referee.wrong) > 0 {
		return fmt.Errorf("answers differ:\n%s", strings.Join(b.referee.wrong, "\n"))
	}
	return nil
}

func newReferee(dir string, short bool) *referee {
	r := &referee{
		dir: dir, least: 3, most: 9, patience: 5 * time.Second, limit: 30 * time.Second, short: 20 * time.Millisecond, slow: 5 * time.Second, leftOut: map[string]string{},
		progress: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	}
	if short {
		r.least, r.most = 1, 1
		r.progress = func(string, ...any) {}
	}
	return r
}

// tables measures and writes all sections whose names match. Interrupted, it writes what it
// has.
func (b *bench) tables(ctx context.Context, only *regexp.Regexp) ([]byte, error) {
	sections := slices.DeleteFunc(allSections(), func(s *section) bool { return !only.MatchString(s.name) })
	for _, s := range sections {
		if err := b.measure(ctx, s); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	var body bytes.Buffer
	for _, s := range sections {
		s.write(&body)
	}
	if only.MatchString(engineSection) && ctx.Err() == nil {
		if err := b.measureEngine(ctx, &body); err != nil {
			return nil, err
		}
	}
	var text bytes.Buffer
	b.writeMachine(&text)
	writeGoals(&text, sections)
	writeDeficits(&text, deficits(sections))
	text.Write(body.Bytes())
	return text.Bytes(), nil
}

// measure judges the contests of a section, all but those behind an interruption.
func (b *bench) measure(ctx context.Context, s *section) error {
	if ctx.Err() != nil {
		return nil
	}
	defer func() {
		for _, f := range b.ends {
			f()
		}
		b.ends = nil
	}()
	contests, err := s.make(b)
	if errors.Is(err, exec.ErrNotFound) {
		b.absent("the section "+s.name, err.Error()) // without a compiler there is no input
		return nil
	}
	if err != nil {
		return err
	}
	for _, c := range contests {
		if b.before != "" {
			c.theirs = append([]entry{b.older(c.ours)}, c.theirs...)
		}
		o, err := b.referee.judge(s.name, c)
		if ctx.Err() != nil {
			return nil // the tool was interrupted, too
		}
		if err != nil {
			return err
		}
		s.outcomes = append(s.outcomes, o)
	}
	return nil
}
