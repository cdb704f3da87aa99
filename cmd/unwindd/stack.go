// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/engine/trace"
)

// stackFlags are the flags of `unwindd stack`.
type stackFlags struct {
	*globals
	targetFlags
	coreFlags
	inputFlags
	job     job.Stack
	program string // a disassembler
	most    int    // bytes of a section of Markdown; 0: as many as an issue takes

	failOnCrash bool
	crashed     int // targets in which a thread crashed
}

func newStack(g *globals) *cobra.Command {
	f := &stackFlags{globals: g, job: job.NewStack()}
	cmd := &cobra.Command{
		Use:   "stack TARGET... [EXECUTABLE]",
		Short: "Print the stacks of cores, minidumps, snapshots and living processes",
		Long: `Print the stack of every thread of a core, a minidump or a snapshot, innermost
frame first.

The files that were loaded are looked up under --sysroot, and in the target's own
folder; a file is used only when its build ID is the one in the target. Symbol files
of Breakpad do in their place, where --symbols says which stores have them.

The ID of a living process is a target, too: its threads are stopped while their
registers and stacks are copied, and -v says how long. What is on its heap is not
known.

A target may be packed by gzip, xz, zstd or lz4, or be in a report of apport. A folder
stands for the targets in it, - for standard input. An executable beside targets is
theirs, as --exe says it too.

The stack of a wave continues in the thread that launched it, where the target
says that it waits, or has its stack at the launch. --lanes says what the lanes
of a wave do in each frame.`,
		Example: `  unwindd stack core
  unwindd stack core ./server --thread 4711
  unwindd stack core.zst /var/lib/systemd/coredump
  zcat core.gz | unwindd stack -
  unwindd stack 4711
  unwindd stack crash.dmp --symbols https://symbols.example.org
  unwindd stack --thread w0 --lane 5 crash.snapshot
  unwindd stack core --crashed --top 10
  unwindd stack --signature /var/crash
  unwindd stack core --code 5
  unwindd stack core --goroutines --thread 'goroutine 17'
  unwindd stack core --format json -o stacks.json
  unwindd stack cores/ --fail-on-crash
  unwindd stack core --locals --source 5 --format html -o report.html
  unwindd stack core --format markdown | gh issue create -t 'A crash' -F -
  unwindd stack crash.dmp --format breakpad`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&g.format, "format", "text", "print as `FORMAT`: text, json, html, which is a page in one file, markdown, which is the text of an issue, or breakpad, which is minidump-stackwalk's JSON")
	f.targetFlags.add(flags)
	f.coreFlags.add(flags)
	f.inputFlags.add(flags)
	addStackFlags(flags, &f.job)
	addOtherName(flags, "max-stack", "max-frames")
	flags.StringVar(&f.program, "disassembler", "", "with --code, take the text of accelerators' instructions from the llvm-mc, llvm-objdump or nvdisasm at `PATH`")
	flags.BoolVar(&f.failOnCrash, "fail-on-crash", false, "end with the exit status 4 where a thread of a target crashed; a folder without targets, or no file at all, is no error then")
	cmd.ValidArgsFunction = completeTargets(math.MaxInt)
	_ = cmd.RegisterFlagCompletionFunc("thread", completeThreads)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(job.StackFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// addStackFlags adds the flags that select the stacks of a target.
func addStackFlags(flags *pflag.FlagSet, j *job.Stack) {
	flags.StringVar(&j.Thread, "thread", "", "only the thread `ID`")
	flags.BoolVar(&j.Crashed, "crashed", false, "only the threads that crashed")
	addNumber(flags, &j.Top, job.StackRanges, "top", 0, "print only the `N` innermost frames of a stack")
	flags.BoolVar(&j.Registers, "registers", false, "print the registers of every frame")
	addSwitch(flags, &j.Goroutines, "goroutines", "print goroutines, and the tasks and virtual threads of other runtimes: without it, the goroutines of Go programs that crashed")
	flags.BoolVar(&j.Lanes, "lanes", false, "print what the lanes of waves do in every frame")
	addNumber(flags, &j.Lane, job.StackRanges, "lane", 0, "print the stack of lane `N` of every wave that has it")
	flags.BoolVar(&j.Locals, "locals", false, "print the variables of every frame")
	flags.StringArrayVar(&j.Globals, "globals", nil, "print the variable `NAME` of the target")
	addLimits(flags, &j.Depth, &j.Elements, &j.Raw)
	addNumber(flags, &j.Source, job.StackRanges, "source", -1, "print `N` lines of source around the line of every frame; 0: none. Without it, the line at which the program failed")
	addNumber(flags, &j.Code, job.StackRanges, "code", 0, "print `N` instructions around the PC of every frame")
	addNumber(flags, &j.MaxFrames, job.StackRanges, "max-frames", engine.DefaultMaxFrames, "keep at most the `N` innermost frames of a stack, and the 64 outermost ones; 0: all")
	flags.BoolVar(&j.NoInlines, "no-inlines", false, "leave out inlined calls")
	flags.BoolVar(&j.NoFold, "no-fold", false, "print equal stacks one by one, and every frame of a recursion")
	flags.BoolVar(&j.FullNames, "full-names", false, "print the names of functions whole: with results, parameters and template arguments")
	flags.BoolVar(&j.Signature, "signature", false, "print the signature of the crash: by what crashes are grouped")
	addNumber(flags, &j.SignatureVersion, job.StackRanges, "signature-version", trace.SignatureVersion, "make signatures by the rules of version `N`")
}

// checkFlags refuses flags that have no meaning, before anything is walked.
func (f *stackFlags) checkFlags(flags *pflag.FlagSet) error {
	f.job.Format = f.format
	if err := f.job.Check(); err != nil {
		return usageError{err}
	}
	if flags.Changed("disassembler") && f.program != "" && f.job.Code == 0 {
		return usageError{fmt.Errorf("--disassembler %s: expected --code N too", f.program)}
	}
	if err := cmp.Or(checkFile("gpu-core", f.gpuCore), checkFile("disassembler", f.program)); err != nil {
		return err
	}
	return f.check()
}

func (f *stackFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.checkFlags(cmd.Flags()); err != nil {
		return err
	}
	if len(args) == 1 && args[0] == "help" && !isThere(args[0]) {
		return usageError{errors.New("stack: expected TARGET, found the word help")}
	}
	targets, err := f.targets(args)
	if err != nil || len(targets) == 0 {
		return err
	}
	if isOne := len(targets) == 1 && targets[0].folder == ""; f.format == "html" && !isOne {
		return usageError{errors.New("--format html: expected one target, of which the page is")}
	}
	if len(targets) > 1 || targets[0].folder != "" {
		f.job.WithPath = true
	}
	server, err := f.connectServer(cmd)
	if err := cmp.Or(err, refuseDisassembler(server, f.program)); err != nil {
		return err
	}
	prepare := f.prepare
	if server != nil {
		defer server.Close()
		f.inProcess = true // nothing is walked here
		prepare = func(ctx context.Context, e *engine.Engine, path string) (prepared, error) {
			return f.ask(ctx, server, e, path)
		}
	} else if f.job.Code > 0 {
		if f.program, err = f.disassembler(f.program); err != nil {
			return err
		}
	}
	e, end, err := f.newEngine(f.globals, f.job.Engine(engine.Options{
		Plugins: elsewhere(cmd.Context(), server), DeviceCore: f.gpuCore, MaxUnpacked: uint64(f.maxUnpacked), Disassembler: f.program,
	}))
	if err != nil {
		return err
	}
	defer end()
	err = f.print(cmd.Context(), e, targets, prepare)
	if f.failOnCrash && f.crashed > 0 {
		err = errors.Join(err, fmt.Errorf("--fail-on-crash: %w in %d of %d targets", errCrashed, f.crashed, len(targets)))
	}
	return err
}

// errCrashed is the error of --fail-on-crash.
var errCrashed = errors.New("a thread crashed")

// print prints the targets.
func (f *stackFlags) print(ctx context.Context, e *engine.Engine, targets []targetName, prepare preparer) error {
	if f.job.WithPath {
		return f.printAll(ctx, e, targets, prepare)
	}
	t, err := prepare(ctx, e, targets[0].path)
	if err != nil {
		return err
	}
	defer t.close()
	if err := f.write(func(w *writer) error { return t.write(ctx, w) }); err != nil {
		return err
	}
	return t.unwalked()
}

// prepared is a target that is known to have the stacks that the flags select.
type prepared interface {
	// write writes the stacks.
	write(ctx context.Context, w *writer) error
	// unwalked returns an error, after write, where nothing could be walked.
	unwalked() error
	close()
}

// preparer prepares the target of a name.
type preparer func(ctx context.Context, e *engine.Engine, path string) (prepared, error)

// preparedTarget is a prepared target that this process walks.
type preparedTarget struct {
	*stackFlags
	target *engine.Target
	stacks *job.Stacks
}

// openCounted opens a target, and counts it where a thread of it crashed.
func (f *stackFlags) openCounted(e *engine.Engine, path string) (*engine.Target, error) {
	t, err := openTarget(e, path)
	if err != nil {
		return nil, err
	}
	if t.Crashed() != nil {
		f.crashed++
	}
	f.printStops(t)
	return t, nil
}

// prepare opens a target and selects its stacks.
func (f *stackFlags) prepare(ctx context.Context, e *engine.Engine, path string) (prepared, error) {
	t, err := f.openCounted(e, path)
	if err != nil {
		return nil, err
	}
	stacks, err := f.job.Of(ctx, t)
	if err != nil {
		_ = t.Close()
		return nil, err
	}
	return &preparedTarget{f, t, stacks}, nil
}

// write writes the stacks.
func (p *preparedTarget) write(ctx context.Context, w *writer) error {
	if err := p.stacks.WriteReport(ctx, w, job.WriteOptions{Color: w.isColored, Verbose: p.verbose, Most: p.most}); err != nil {
		return err
	}
	return p.notOverFiles(p.stacks.Target())
}

func (p *preparedTarget) unwalked() error { return p.stacks.Err() }

// close closes the target.
func (p *preparedTarget) close() {
	p.stacks.Close()
	_ = p.target.Close()
}

// notOverFiles refuses an output that would replace a file that walking has read.
func (f *stackFlags) notOverFiles(t *engine.Target) error {
	for _, m := range t.Modules() {
		f.reads(m.File, t.ModuleInfo(m).DebugFile)
	}
	if f.output == "" {
		return nil
	}
	return f.notOverInput(f.output)
}
