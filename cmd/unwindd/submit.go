// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/job"
)

// submitFlags are the flags of `unwindd submit`.
type submitFlags struct {
	*globals
	queueFlags
	fileFlags
	inputFlags
	momentFlags
	stack   job.Stack
	profile job.Profile
	names   bool // of a recording: functions and lines are looked for

	as       string
	collect  []string // processes
	labels   []string
	priority string
	deadline time.Duration
	again    bool
	wait     bool
	group    bool
	noFiles  bool
	parts    int
}

func newSubmit(g *globals) *cobra.Command {
	f := &submitFlags{globals: g, stack: job.NewStack(), profile: job.NewProfile(), names: true}
	cmd := &cobra.Command{
		Use:   "submit TARGET... [EXECUTABLE] | --collect NAME|ALL|PID,PID",
		Short: "Have the workers of a fleet walk cores and recordings",
		Long: `Put cores, minidumps, snapshots and recordings of perf into the queue of a fleet,
whose workers walk them. Targets are named as with 'unwindd stack': they may be
packed, a folder stands for the targets in it, - for standard input, and an executable
beside targets is theirs. Of a living process it is a snapshot that is sent, taken
now. Each target is a job, and has an ID: that of what is asked, and of
what it is asked of. What was asked before is not asked again. A large recording is
done in parts, by several workers, and has one report.

With --as compare the reports are parts of a comparison, which 'unwindd compare' reads:
the workers walk, and no core is read a second time. With --collect the targets are
snapshots of living processes, all taken at one moment as 'unwindd collect' takes them.

Files of code that a target had loaded, and that are on this machine, are sent where
the queue does not have them. With --wait the report is printed as 'unwindd stack' and
'unwindd profile' print it; 'unwindd results' gives it later.`,
		Example: `  unwindd submit core
  unwindd submit core --wait --locals
  unwindd submit perf.data --wait --format pprof -o cpu.pb.gz
  unwindd submit /var/crash --wait --group
  unwindd submit core.zst ./server --priority high
  unwindd submit --collect python3 --as compare`,
		Args: usageArgs(func(cmd *cobra.Command, args []string) error {
			if len(f.collect) > 0 {
				return nil
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		}),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&g.format, "format", "text", "the report is written as `FORMAT`: one of `unwindd stack`, or of a recording one of `unwindd profile`")
	f.fileFlags.add(flags)
	f.inputFlags.add(flags)
	flags.BoolVar(&f.names, "symbols", true, "with --symbols=false look for no functions and lines of a recording: there are addresses only")
	flags.Lookup("symbols").DefValue = "" // true
	f.queueFlags.add(flags)
	addStackFlags(flags, &f.stack)
	addProfileFlags(flags, &f.profile)
	flags.Lookup("max-stack").Hidden = true // max-frames is for recordings, too
	flags.StringVar(&f.as, "as", "", "ask for a `KIND` of report: stack, profile, snapshot or compare; the default is told by the file")
	flags.StringArrayVar(&f.collect, "collect", nil, "collect the processes `PROCESSES` at one moment: a name, ALL, or IDs with commas between them; may be repeated")
	f.momentFlags.add(flags)
	addLabels(flags, &f.labels)
	flags.StringVar(&f.priority, "priority", "normal", "before or after others: `PRIORITY` high, normal or low")
	flags.DurationVar(&f.deadline, "deadline", 0, "nobody needs the report after `DURATION`")
	flags.BoolVar(&f.again, "again", false, "do it again where there is a result")
	flags.IntVar(&f.parts, "parts", 0, "have a recording done in `N` parts, by as many workers, and joined; 0: as many as its size is worth")
	flags.BoolVar(&f.wait, "wait", false, "wait for the reports, and print them")
	flags.BoolVar(&f.group, "group", false, "with --wait, count crashes by their signatures, and print no reports")
	flags.BoolVar(&f.noFiles, "no-files", false, "send no files of code")
	cmd.ValidArgsFunction = completeTargets(math.MaxInt)
	_ = cmd.RegisterFlagCompletionFunc("thread", completeThreads)
	return cmd
}

// submission is a target that was submitted.
type submission struct {
	path string
	*fleet.Submitted
}

func (f *submitFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.checkFlags(cmd); err != nil {
		return err
	}
	var targets []targetName
	if len(args) > 0 {
		var err error
		if targets, err = f.findTargets(args, &f.exe, false); err != nil {
			return err
		}
	}
	q, err := f.connect(cmd.Context(), f.log())
	if err != nil {
		return err
	}
	defer q.Close()
	e, end, err := f.opener()
	if err != nil {
		return err
	}
	defer end()
	list, failures := f.submitAll(cmd.Context(), q, e, targets)
	if !f.wait {
		err = f.write(func(w *writer) error { return writeSubmitted(w, list) })
	} else {
		err = f.waitFor(cmd.Context(), q, list)
	}
	return errors.Join(append(failures, err)...)
}

// submitAll submits targets, and the snapshots that are collected.
func (f *submitFlags) submitAll(ctx context.Context, q *fleet.Queue, e *engine.Engine, targets []targetName) (list []submission, failures []error) {
	for _, target := range targets {
		s, err := f.submit(ctx, q, e, target.path)
		if err != nil {
			failures = append(failures, ofTarget(target.path, err))
			if errors.Is(err, fleet.ErrFull) {
				return list, failures // the next one would not fit either
			}
			continue
		}
		list = append(list, submission{target.path, s})
	}
	if len(f.collect) == 0 {
		return list, failures
	}
	collected, err := f.submitCollected(ctx, q, e)
	if err != nil {
		failures = append(failures, err)
	}
	return append(list, collected...), failures
}

// submitCollected collects the processes of --collect, and submits their snapshots.
func (f *submitFlags) submitCollected(ctx context.Context, q *fleet.Queue, e *engine.Engine) (list []submission, err error) {
	chosen, none, err := chooseProcesses(f.collect)
	if err != nil {
		return nil, err
	}
	rules, err := labelRules(f.labels)
	if err != nil {
		return nil, err
	}
	c := &collecting{engine: e, chosen: chosen, rules: rules, write: func(s *snapshotOf) (path string, size int64, err error) {
		input, err := temporaryInput(s.fileName(f.repeat), func(file *os.File) error { return s.taken.Write(file) })
		if err != nil {
			return "", 0, err
		}
		defer input.Close()
		sent, err := f.submitInput(ctx, q, e, input)
		if err == nil {
			list = append(list, submission{input.name, sent})
		}
		return input.name, 0, err
	}}
	done := c.run(ctx, &f.momentFlags)
	done.Left = append(none, done.Left...)
	for _, text := range done.momentTexts(f.repeat, f.verbose) {
		messages.Printf("unwindd: %s\n", text)
	}
	done.complain(f.verbose)
	return list, done.failure(ctx)
}

// writeSubmitted writes the IDs of jobs.
func writeSubmitted(w io.Writer, list []submission) error {
	p := report.NewLinePrinter(w)
	for _, s := range list {
		state := "queued"
		switch {
		case s.HasResult:
			state = "done before"
		case s.Known:
			state = "queued before"
		}
		p.Printf("%s  %-13s  %s\n", s.ID, state, s.path)
	}
	return p.Flush()
}

// checkFlags refuses flags that have no meaning, alone or together.
func (f *submitFlags) checkFlags(cmd *cobra.Command) error {
	if most := f.stack.MaxFrames; most != nil && !cmd.Flags().Changed("max-stack") {
		f.profile.MaxStack = *most
	}
	if f.stack.Thread != "" {
		f.profile.Thread = []string{f.stack.Thread}
	}
	f.profile.NoSymbols, f.profile.FullNames = !f.names, f.stack.FullNames
	f.stack.Format, f.profile.Format = f.format, f.format
	if f.group {
		f.stack.Signature, f.stack.Format = true, "json"
	}
	switch {
	case f.group && !f.wait:
		return usageError{errors.New("--group: expected --wait too")}
	case f.group && f.as != "" && f.as != "stack":
		return usageError{fmt.Errorf("--group counts crashes: expected no --as %s", f.as)}
	case f.as != "" && !slices.Contains(jobKinds, f.as):
		return usageError{fmt.Errorf("--as %s: expected stack, profile, snapshot or compare", f.as)}
	case len(f.labels) > 0 && f.as != "compare" && len(f.collect) == 0:
		return usageError{fmt.Errorf("--label %s: expected --as compare, or --collect", f.labels[0])}
	case len(f.collect) == 0 && (cmd.Flags().Changed("repeat") || cmd.Flags().Changed("interval")):
		return usageError{errors.New("--repeat and --interval: expected --collect, whose moments they are")}
	case !slices.Contains(fleet.Priorities, f.priority):
		return usageError{fmt.Errorf("--priority %s: expected high, normal or low", f.priority)}
	case f.parts < 0 || f.parts > fleet.MaxParts:
		return usageError{fmt.Errorf("--parts %d: expected 0 to %d", f.parts, fleet.MaxParts)}
	case f.deadline < 0:
		return usageError{fmt.Errorf("--deadline %v: expected more than 0", f.deadline)}
	case !slices.Contains(job.StackFormats, f.format) && !slices.Contains(job.ProfileFormats, f.format):
		return usageError{fmt.Errorf("--format %s: expected %s", f.format, strings.Join(slices.Concat(job.StackFormats, job.ProfileFormats), ", "))}
	}
	if _, err := labelRules(f.labels); err != nil {
		return err
	}
	return cmp.Or(f.queueFlags.check(), f.momentFlags.check(), f.fileFlags.check())
}

// jobKinds are the kinds of jobs.
var jobKinds = []string{"stack", "profile", "snapshot", "compare"}

// opener makes an engine that opens targets here.
func (f *submitFlags) opener() (e *engine.Engine, end func(), err error) {
	f.inProcess = true // only the snapshots of living processes are walked here
	plugins, err := f.plugins()
	if err != nil {
		return nil, nil, err
	}
	o := engine.Options{Plugins: plugins, Sysroot: f.sysroot, Exe: f.exe, DebugDirs: f.debugDirs, BuildIDDirs: f.caches(), Drives: f.drives(), MaxUnpacked: uint64(f.maxUnpacked), ForSnapshot: len(f.collect) > 0}
	if o.Modules, err = f.modulesByName(); err != nil {
		return nil, nil, err
	}
	if e, err = engine.New(o); err != nil {
		return nil, nil, f.ofSetting(err)
	}
	return e, func() { _ = e.Close() }, nil
}

// submit submits one target.
func (f *submitFlags) submit(ctx context.Context, q *fleet.Queue, e *engine.Engine, name string) (*fleet.Submitted, error) {
	input, err := f.input(ctx, e, name)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	return f.submitInput(ctx, q, e, input)
}

// submitInput submits an input, after the files of code that it needs.
func (f *submitFlags) submitInput(ctx context.Context, q *fleet.Queue, e *engine.Engine, input *jobInput) (*fleet.Submitted, error) {
	t, err := f.task(input)
	if err != nil {
		return nil, err
	}
	how := fleet.How{Priority: f.priority, Again: f.again}
	if f.deadline > 0 {
		how.Deadline = time.Now().UTC().Add(f.deadline)
	}
	send := q.SendFiles
	if t.Kind == "profile" {
		send = q.SendRecordedFiles
		info, err := input.Stat()
		if err != nil {
			return nil, err
		}
		how.Parts = f.partsOf(info.Size(), isPlainRecording(input))
	}
	if !f.noFiles {
		if err := send(ctx, e, input.path); err != nil {
			return nil, err
		}
	}
	return q.Submit(ctx, t, input, how)
}

// task returns the task for an input.
func (f *submitFlags) task(input *jobInput) (fleet.Task, error) {
	kind := cmp.Or(f.as, kindOf(input.path))
	f.stack.Name, f.profile.Name = input.name, input.name
	var options proto.Message
	var err error
	switch kind {
	case "stack":
		options, err = f.stack, f.stack.Check()
	case "profile":
		options, err = f.profile, f.profile.Check()
	case "compare":
		options = job.NewCompare(input.name, f.labels, f.stack.Crashed)
	default:
		options = job.NewSnapshot(input.name)
	}
	if err != nil {
		return fleet.Task{}, usageError{err}
	}
	return fleet.NewTask(kind, options)
}

// kindOf returns the default kind of a job for a file.
func kindOf(path string) string {
	if commandFor(path) == "profile" {
		return "profile"
	}
	return "stack"
}
