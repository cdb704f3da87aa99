// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/job"
)

// diffFormats are the formats in which differences are written.
var diffFormats = []string{"text", "html", "pprof", "folded"}

// diffFlags are the flags of `unwindd diff`. Most of them are flags of `unwindd profile`, too.
type diffFlags struct {
	profileFlags
	perSecond bool
}

func newDiff(g *globals) *cobra.Command {
	f := &diffFlags{profileFlags: profileFlags{globals: g, job: job.NewProfile(), names: true, roots: map[int]string{}}}
	cmd := &cobra.Command{
		Use:   "diff BASE NEW",
		Short: "Compare two profiles",
		Long: `Compare two recordings: in which functions is more of the time spent in NEW than in
BASE, and in which less. Both are inputs of 'unwindd profile'. Shares of the whole are
compared, so that the recordings may be of different length, rate and event;
--per-second compares amounts in a second.

Functions are the same where they have the same name. Changes that so few samples show
by chance are marked.`,
		Example: `  unwindd diff base.data new.data
  unwindd diff base.data new.data --format html -o diff.html
  unwindd diff base.data new.data --format folded | flamegraph.pl > diff.svg
  unwindd diff base.data new.data --thread worker --focus parse`,
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1]) },
	}
	f.addFlags(cmd.Flags())
	cmd.ValidArgsFunction = completeTargets(2)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(diffFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *diffFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "format", "text", "write as `FORMAT`: "+strings.Join(diffFormats, ", "))
	flags.BoolVar(&f.perSecond, "per-second", false, "compare amounts in a second of each recording, not shares of the whole")
	f.targetFlags.add(flags)
	f.inputFlags.add(flags)
	f.symbolFlags.names = &f.names
	flags.IntVarP(&f.jobs, "jobs", "j", 0, "walk with `N` goroutines; 0 is one for every CPU")
	addNumber(flags, &f.job.MaxStack, job.ProfileRanges, "max-stack", engine.DefaultMaxFrames, "walk at most `N` frames of a stack")
	flags.BoolVar(&f.job.FullNames, "full-names", false, "print the names of functions whole in text: with results, parameters and template arguments")
	flags.StringArrayVar(&f.job.Event, "event", nil, "only the samples of `EVENT`, by its whole name or as cycles for cpu_core/cycles:Pu/; may be repeated")
	addSelectionFlags(flags, &f.job)
	flags.StringVar(&f.kallsyms, "kallsyms", "", "name the kernel's code by `FILE`, a copy of /proc/kallsyms")
	flags.Var(rootsValue(f.roots), "root", "look up the files of a process, and of those that it forks, under a directory: `PID=DIR`; may be repeated")
}

func (f *diffFlags) run(cmd *cobra.Command, base, changed string) error {
	if err := f.checkFlags(); err != nil {
		return err
	}
	if err := cmp.Or(f.targetFlags.check(), checkFile("kallsyms", f.kallsyms)); err != nil {
		return err
	}
	e, end, err := f.newEngine(f.globals, f.job.Engine(engine.Options{MaxUnpacked: uint64(f.maxUnpacked)}))
	if err != nil {
		return err
	}
	defer end()
	var profiles [2]*report.Profile
	for i, path := range []string{base, changed} {
		if profiles[i], err = f.profile(cmd.Context(), e, &recording{path: path}); err != nil {
			return err
		}
	}
	d, err := report.NewDiff(profiles[0], profiles[1], report.DiffOptions{PerSecond: f.perSecond, NoSymbols: !f.names})
	if err != nil {
		return err
	}
	if err := d.WriteSummary(stderr, report.SummaryOptions{Color: f.colors(os.Stderr), Verbose: f.verbose}); err != nil {
		return err
	}
	if f.format != "text" {
		if err := d.WriteHeading(stderr); err != nil {
			return err
		}
	}
	return f.write(func(w *writer) error {
		switch f.format {
		case "html":
			return d.WritePage(w)
		case "pprof":
			return d.WritePprof(w)
		case "folded":
			return d.WriteFolded(w)
		}
		return d.WriteText(w, report.TextOptions{Color: w.isColored, Verbose: f.verbose, FullNames: f.job.FullNames})
	})
}

// checkFlags refuses flags that have no meaning, before anything is walked.
func (f *diffFlags) checkFlags() error {
	wrong := func(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
	switch {
	case !slices.Contains(diffFormats, f.format):
		return wrong("--format %s: expected %s or %s", f.format, strings.Join(diffFormats[:len(diffFormats)-1], ", "), diffFormats[len(diffFormats)-1])
	case f.jobs < 0:
		return wrong("--jobs %d: expected 0 or more", f.jobs)
	case f.format == "pprof" && f.output == "" && term.IsTerminal(int(os.Stdout.Fd())):
		return wrong("--format %s is no text: expected -o FILE, or standard output not to be a terminal", f.format)
	}
	f.job.NoSymbols = !f.names
	if err := f.job.Check(); err != nil {
		return usageError{err}
	}
	return nil
}
