// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service"
	"github.com/unwindd/unwindd/engine/trace"
)

// compareFormats are the formats in which comparisons are written. A part is for comparisons that are merged.
var compareFormats = []string{"text", "json", "html", "dot", "folded", "pprof", "markdown", partFormat}

// partFormat is the format of a part of a comparison.
const partFormat = "part"

// binaryFormats are no text for a terminal.
var binaryFormats = []string{"pprof", partFormat}

// compareFlags are the flags of `unwindd compare`.
type compareFlags struct {
	*globals
	targetFlags
	inputFlags
	queueFlags
	momentFlags
	from    string
	labels  []string
	threads bool
	crashed bool
	jobs    int
	top     int

	signature    bool
	failIfDiffer bool
}

func newCompare(g *globals) *cobra.Command {
	f := &compareFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "compare TARGET... | --from FILE | --queue URL [ID...]",
		Short: "Compare the stacks of many processes: which one differs, and where",
		Long: `Compare the stacks of many targets: those whose stacks are alike are a class, and the
smallest classes come first, each with the frame at which it parts from the rest.
All stacks together are one tree. Threads are compared by their roles: names, or the
functions that they were started for.

Targets are named as with 'unwindd stack': cores, minidumps, snapshots, as 'unwindd
collect' writes them, and the IDs of living processes, which are stopped at one moment. A folder stands for all
targets in it and in its folders, an archive (tar, which may be packed, or ZIP) for its
members. Reports of 'unwindd stack --format json', parts that were
written with --format part, dumps of flight recorders of NCCL and RCCL, and traces of Kineto are targets,
too. A target that cannot be read is in a class of its own, with the reason. The
threads of one target are compared with each other.

Targets have labels, by which classes are named: rank, host, pod and others, as the
launchers of jobs set them, and those of --label. With --repeat, or with several
snapshots of one process, threads that move are told from those that stand still.

IDs of jobs of a fleet stand for their reports, which 'unwindd submit --as compare' or
--format json asked for; without an ID, --queue stands for all that are kept.`,
		Example: `  unwindd compare stacks/
  unwindd compare $(pidof server) --repeat 3
  unwindd compare cores.tar.zst --label rank='rank([0-9]+)'
  unwindd compare --from targets.txt --format html -o hang.html
  unwindd compare stacks/ --signature
  unwindd compare /var/crash --crashed
  unwindd compare node1.part node2.part --fail-if-differ
  unwindd compare 4711 --threads`,
		Args: usageArgs(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&g.format, "format", "text", "write as `FORMAT`: "+strings.Join(compareFormats, ", ")+", which later comparisons read as a target")
	f.targetFlags.add(flags)
	f.inputFlags.add(flags)
	f.queueFlags.add(flags)
	f.momentFlags.add(flags)
	flags.StringVar(&f.from, "from", "", "the targets are in `FILE` too, one in a line, which may have labels behind it, NAME=VALUE, each behind a tab; - is standard input")
	addLabels(flags, &f.labels)
	flags.BoolVar(&f.threads, "threads", false, "compare threads with each other, not targets")
	flags.BoolVar(&f.crashed, "crashed", false, "compare only the threads that crashed: a target of which none did is in a class of its own")
	flags.IntVarP(&f.jobs, "jobs", "j", 0, "walk `N` targets at a time; 0 is one for every CPU")
	flags.IntVar(&f.top, "top", report.DefaultClasses, "describe at most `N` classes in text and Markdown, the smallest ones; 0: all")
	flags.BoolVar(&f.signature, "signature", false, "print the signature of each class: equal ones part from the rest by equal stacks, in all comparisons")
	flags.BoolVar(&f.failIfDiffer, "fail-if-differ", false, "end with the exit status 4 where not all targets that could be read are in one class")
	cmd.ValidArgsFunction = completeTargets(math.MaxInt)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(compareFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// errDiffer is the error of --fail-if-differ.
var errDiffer = errors.New("the targets differ")

func (f *compareFlags) run(cmd *cobra.Command, args []string) error {
	rules, err := labelRules(f.labels)
	if err := cmp.Or(f.checkFlags(args), err); err != nil {
		return err
	}
	in, err := f.inputs(args)
	if err != nil {
		return err
	}
	server, err := f.connectServer(cmd)
	if err != nil {
		return err
	}
	if server != nil {
		defer server.Close()
		f.inProcess = true // nothing is walked here
	}
	e, end, err := f.newEngine(f.globals, engine.Options{Plugins: elsewhere(cmd.Context(), server), MaxUnpacked: uint64(f.maxUnpacked), Goroutines: true})
	if err != nil {
		return err
	}
	defer end()
	isOfThreads := f.threads || f.format != partFormat && in.isOne()
	options := engine.CompareOptions{Labels: rules, Own: in.labels, ByThread: isOfThreads, CrashedOnly: f.crashed, Jobs: f.jobs}
	ctx := cmd.Context()
	if server != nil {
		ctx = f.compareElsewhere(ctx, server, &options)
	}
	c := &comparing{comparedInputs: in, flags: f, comparer: e.NewComparer(options), engine: e}
	if err := c.addAll(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	if server != nil {
		f.saySent(server, "all targets")
	}
	return f.print(c)
}

// compareElsewhere has a server walk the targets, whose part each comes from there. The context that it returns
// ends where the server cannot be asked.
func (f *compareFlags) compareElsewhere(ctx context.Context, c *service.Client, o *engine.CompareOptions) context.Context {
	ctx, end := context.WithCancelCause(ctx)
	o.Elsewhere = func(ctx context.Context, t *engine.Target, path string, labels map[string]string) ([]byte, error) {
		part, err := c.Part(ctx, t, path, labels, f.crashed)
		var e *service.Error
		if errors.As(err, &e) && e.IsOfServer() {
			end(err)
		}
		return part, err
	}
	return ctx
}

// checkFlags refuses flags that have no meaning, before anything is read.
func (f *compareFlags) checkFlags(args []string) error {
	wrong := func(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
	switch {
	case f.signature && f.format != "text" && f.format != "json":
		return wrong("--signature and --format %s: expected text or json", f.format)
	case f.jobs < 0:
		return wrong("--jobs %d: expected 0 or more", f.jobs)
	case f.top < 0:
		return wrong("--top %d: expected 0 or more", f.top)
	case len(args) == 0 && f.from == "" && f.url == "":
		return wrong("expected TARGET..., --from FILE, or --queue URL")
	case slices.Contains(binaryFormats, f.format) && f.output == "" && term.IsTerminal(int(os.Stdout.Fd())):
		return wrong("--format %s is no text: expected -o FILE, or standard output not to be a terminal", f.format)
	}
	return cmp.Or(f.checkFormat(compareFormats...), f.targetFlags.check(), f.momentFlags.check(), f.queueFlags.check())
}

// comparing is the reading of all targets of a comparison.
type comparing struct {
	*comparedInputs
	flags    *compareFlags
	comparer *engine.Comparer
	engine   *engine.Engine
	progress *workProgress

	mu         sync.Mutex
	done       int
	passedOver int // files
}

// addAll adds all targets.
func (c *comparing) addAll(ctx context.Context) error {
	c.progress = newWorkProgress("targets")
	defer c.progress.end()
	if err := c.comparer.AddPaths(ctx, c.paths, c.count); err != nil {
		return err
	}
	for _, name := range c.files {
		if err := c.addFile(ctx, name); err != nil {
			return err
		}
		c.count()
	}
	if len(c.processes) > 0 {
		if err := c.addProcesses(ctx); err != nil {
			return err
		}
	}
	if len(c.ids) > 0 || c.isOfQueue {
		return c.addReports(ctx)
	}
	return nil
}

// count counts a target, and shows how many are done.
func (c *comparing) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	c.progress.show(uint64(c.done), uint64(max(c.done, c.total(c.flags.repeat)))) //nolint:gosec // counts
}

// addFile adds an archive, or standard input.
func (c *comparing) addFile(ctx context.Context, name string) error {
	file := os.Stdin
	if name != stdinName {
		var err error
		if file, err = os.Open(name); err != nil {
			c.comparer.AddUnread(name, err)
			return nil
		}
		defer file.Close()
	}
	return c.comparer.AddFile(ctx, file, name, c.passOver)
}

// passOver counts a file that is no target.
func (c *comparing) passOver(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passedOver++
	c.flags.sayLeftOut(err)
}

// sayLeftOut says that a file is left out: with --verbose, or where that is unexpected.
func (g *globals) sayLeftOut(err error) {
	switch {
	case g.verbose:
		messages.Printf("unwindd: %v: left out\n", err)
	case errors.Is(err, os.ErrPermission):
		complain(err)
	}
}

// addProcesses adds living processes, all at each moment. One that was read at an earlier moment and has ended
// is compared by that.
func (c *comparing) addProcesses(ctx context.Context) error {
	seen := map[int]bool{}
	return c.flags.momentFlags.each(ctx, func(moment int) {
		c.engine.OpenProcesses(ctx, c.processes, engine.OpenProcessesOptions{Each: func(pid int, t *engine.Target, err error) {
			defer c.count()
			if err == nil {
				defer t.Close()
				c.comparer.Add(ctx, t)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			switch {
			case err == nil:
				seen[pid] = true
			case seen[pid]:
				messages.Printf("unwindd: process %d: moment %d: %s\n", pid, moment+1, whyLeft(pid, err))
			default:
				seen[pid] = true
				c.comparer.AddUnread(processPath(pid), errors.New(whyLeft(pid, err)))
			}
		}})
	})
}

// processPath is the path by which a comparison has a living process.
func processPath(pid int) string { return fmt.Sprintf("/proc/%d", pid) }

// print prints the comparison.
func (f *compareFlags) print(c *comparing) error {
	if n := c.passedOver + c.leftOut; n > 0 && !f.verbose {
		messages.Printf("unwindd: %d files are no targets, and were left out: -v lists them\n", n)
	}
	if f.format == partFormat {
		return f.write(func(w *writer) error { return c.comparer.WritePart(w) })
	}
	compared := c.comparer.Comparison()
	if err := readAny(compared); err != nil {
		return err
	}
	r := report.NewComparison(compared)
	r.Top = f.top
	if err := f.write(func(w *writer) error { return f.writeAs(w, r) }); err != nil {
		return err
	}
	if classes := readClasses(compared); f.failIfDiffer && classes > 1 {
		return fmt.Errorf("--fail-if-differ: %w: they are of %d classes", errDiffer, classes)
	}
	return nil
}

// writeAs writes a comparison in the format of the flags.
func (f *compareFlags) writeAs(w *writer, r *report.Comparison) error {
	text := report.TextOptions{Color: w.isColored, Verbose: f.verbose}
	switch {
	case f.signature && f.format == "json":
		return r.WriteSignaturesJSON(w)
	case f.signature:
		return r.WriteSignatures(w)
	}
	switch f.format {
	case "json":
		return r.WriteJSON(w)
	case "html":
		return r.WriteHTML(w)
	case "dot":
		return r.WriteDOT(w)
	case "folded":
		return r.WriteFolded(w)
	case "pprof":
		return r.WritePprof(w)
	case "markdown":
		return r.WriteMarkdown(w, text, 0)
	}
	return r.WriteText(w, text)
}

// readClasses is how many classes of targets that could be read a comparison has.
func readClasses(c *trace.Comparison) (count int) {
	for i := range c.Classes {
		if c.Classes[i].Unread == "" {
			count++
		}
	}
	return count
}

// readAny returns an error where no target could be read.
func readAny(c *trace.Comparison) error {
	switch {
	case readClasses(c) > 0:
		return nil
	case len(c.Targets) == 0:
		return errors.New("there is no target to compare")
	}
	var all []error
	for i := range c.Classes {
		class := &c.Classes[i]
		first := c.Targets[class.Targets[0]].Path
		if n := len(class.Targets); n > 1 {
			first = fmt.Sprintf("%s, and %d more", first, n-1)
		}
		all = append(all, fmt.Errorf("%s: %s", first, class.Unread))
	}
	return errors.Join(append(all, errors.New("no target could be read"))...)
}
