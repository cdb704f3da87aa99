// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/source"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/sdk"
)

// stackFlags are the flags of `unwindd stack`.
type stackFlags struct {
	*globals
	targetFlags
	coreFlags
	inputFlags
	thread    string
	registers bool
	goroutine bool
	lanes     bool
	lane      int
	crashed   bool
	top       int
	maxFrames int
	noInlines bool
	noFold    bool
	signature bool
	isSeveral bool // there are several targets
	locals    bool
	variables []string
	source    int
	code      int
	program   string // a disassembler
	limitFlags
}

// stackFormats are the forms of stacks.
var stackFormats = []string{"text", "json", "html", "breakpad"}

func newStack(g *globals) *cobra.Command {
	f := &stackFlags{globals: g}
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
  unwindd stack core --locals --source 5 --format html -o report.html
  unwindd stack crash.dmp --format breakpad`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&g.format, "format", "text", "print as `FORMAT`: text, json, html, which is a page in one file, or breakpad, which is minidump-stackwalk's JSON")
	f.targetFlags.add(flags)
	f.coreFlags.add(flags)
	f.inputFlags.add(flags)
	flags.StringVar(&f.thread, "thread", "", "only the thread `ID`")
	flags.BoolVar(&f.crashed, "crashed", false, "only the threads that crashed")
	flags.IntVar(&f.top, "top", 0, "print only the `N` innermost frames of a stack")
	flags.BoolVar(&f.registers, "registers", false, "print the registers of every frame")
	flags.BoolVar(&f.goroutine, "goroutines", false, "print the goroutines of Go programs too")
	flags.BoolVar(&f.lanes, "lanes", false, "print what the lanes of waves do in every frame")
	flags.IntVar(&f.lane, "lane", -1, "print the stack of lane `N` of every wave that has it")
	flags.BoolVar(&f.locals, "locals", false, "print the variables of every frame")
	flags.StringArrayVar(&f.variables, "globals", nil, "print the variable `NAME` of the target")
	f.addLimits(flags)
	flags.IntVar(&f.source, "source", 0, "print `N` lines of source around the line of every frame")
	flags.IntVar(&f.code, "code", 0, "print `N` instructions around the PC of every frame")
	flags.StringVar(&f.program, "disassembler", "", "with --code, take the text of accelerators' instructions from the llvm-mc or llvm-objdump at `PATH`")
	flags.IntVar(&f.maxFrames, "max-frames", engine.DefaultMaxFrames, "keep at most the `N` innermost frames of a stack, and the 64 outermost ones; 0: all")
	flags.BoolVar(&f.noInlines, "no-inlines", false, "leave out inlined calls")
	flags.BoolVar(&f.noFold, "no-fold", false, "print equal stacks one by one, and every frame of a recursion")
	flags.BoolVar(&f.signature, "signature", false, "print the signature of the crash: by what crashes are grouped")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(stackFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// checkFlags refuses flags that have no meaning, before anything is walked.
func (f *stackFlags) checkFlags(cmd *cobra.Command) error {
	if err := f.checkFormat(stackFormats...); err != nil {
		return err
	}
	for _, name := range []string{"registers", "lanes", "locals", "globals", "source", "code"} {
		if f.format == "breakpad" && cmd.Flags().Changed(name) {
			return usageError{fmt.Errorf("--%s: --format breakpad has no place for it", name)}
		}
	}
	switch {
	case f.maxFrames < 0:
		return usageError{fmt.Errorf("--max-frames %d: expected 0 or more", f.maxFrames)}
	case f.maxFrames == 0 || f.maxFrames > engine.AllFrames:
		f.maxFrames = engine.AllFrames
	}
	if f.top < 0 || f.top == 0 && cmd.Flags().Changed("top") {
		return usageError{fmt.Errorf("--top %d: expected 1 or more", f.top)}
	}
	if f.crashed && f.thread != "" {
		return usageError{fmt.Errorf("--crashed and --thread %s: expected one of them", f.thread)}
	}
	if cmd.Flags().Changed("lane") && (f.lane < 0 || f.lane >= sdk.MaxLanes) {
		return usageError{fmt.Errorf("--lane %d: expected 0 to %d", f.lane, sdk.MaxLanes-1)}
	}
	if f.source < 0 || f.source > source.MaxLines || f.source == 0 && cmd.Flags().Changed("source") {
		return usageError{fmt.Errorf("--source %d: expected 1 to %d", f.source, source.MaxLines)}
	}
	if f.code < 0 || f.code > walk.MaxCode || f.code == 0 && cmd.Flags().Changed("code") {
		return usageError{fmt.Errorf("--code %d: expected 1 to %d", f.code, walk.MaxCode)}
	}
	if f.program != "" && f.code == 0 {
		return usageError{fmt.Errorf("--disassembler %s: expected --code N too", f.program)}
	}
	if err := f.checkSignature(cmd); err != nil {
		return err
	}
	if err := f.checkLimits(); err != nil {
		return err
	}
	return f.check()
}

func (f *stackFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.checkFlags(cmd); err != nil {
		return err
	}
	targets, err := f.targets(args)
	if err != nil {
		return err
	}
	if isOne := len(targets) == 1 && targets[0].folder == ""; f.format == "html" && !isOne {
		return usageError{errors.New("--format html: expected one target, of which the page is")}
	}
	plugins, err := f.plugins()
	if err != nil {
		return err
	}
	if f.program == "" && f.code > 0 {
		s, err := f.settings()
		if err != nil {
			return err
		}
		f.program = s.Disassembler
	}
	remote, symbols, end, err := f.remotes(f.log())
	if err != nil {
		return err
	}
	defer end()
	e, err := engine.New(f.options(plugins, remote, symbols))
	if err != nil {
		return err
	}
	defer e.Close()
	if len(targets) > 1 || targets[0].folder != "" {
		f.isSeveral = true
		return f.printAll(cmd, e, targets)
	}
	t, err := f.prepare(cmd, e, targets[0].path)
	if err != nil {
		return err
	}
	defer t.close()
	if err := f.write(func(w *writer) error { return t.write(cmd.Context(), w) }); err != nil {
		return err
	}
	return t.walked.err()
}

// options are those of the engine.
func (f *stackFlags) options(plugins plugin.Options, remote, symbols object.Remote) engine.Options {
	options := engine.Options{
		Plugins: plugins, Sysroot: f.sysroot, Exe: f.exe, DebugDirs: f.debugDirs, DeviceCore: f.gpuCore, Remote: remote, Symbols: symbols,
		MaxUnpacked: uint64(f.maxUnpacked),
		MaxFrames:   f.maxFrames, NoInlines: f.noInlines, Registers: f.registers,
		Lanes: f.lanes || f.lane >= 0 || f.format == "json" || f.format == "html", SourceLines: f.source,
		Disassembler: f.program,
	}
	if f.locals {
		options.Locals = &f.Limits
	}
	return options
}

// A preparedTarget is a target of which what the flags select can be written.
type preparedTarget struct {
	*stackFlags
	target *engine.Target
	stacks *report.Stacks
	signed *report.Signature // in the place of stacks
	walked *walked
	ends   []func() // in reverse
}

// prepare opens a target and finds out what is to be printed of it.
func (f *stackFlags) prepare(cmd *cobra.Command, e *engine.Engine, path string) (*preparedTarget, error) {
	t, err := openTarget(e, path)
	if err != nil {
		return nil, err
	}
	f.sayStops(t)
	p := &preparedTarget{stackFlags: f, ends: []func(){func() { _ = t.Close() }}}
	if err := p.fill(cmd.Context(), t); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// fill selects what is to be printed.
func (p *preparedTarget) fill(ctx context.Context, t *engine.Target) error {
	f := p.stackFlags
	if f.goroutine {
		with := t.WithGoroutines(ctx)
		p.ends = append(p.ends, func() { _ = with.Close() })
		t = with
	}
	if f.signature {
		return p.sign(ctx, t)
	}
	threads, err := f.selected(t)
	if err != nil {
		return err
	}
	p.target, p.walked = t, &walked{target: t}
	stacks := p.walked.over(t.StacksOf(ctx, threads))
	known := t.Fact(ctx)
	signed := newSigned(t, known)
	if f.signs() {
		stacks = signed.over(stacks)
	}
	if f.lane >= 0 {
		next, stop := iter.Pull(ofLane(stacks, uint32(f.lane))) //nolint:gosec // checked
		p.ends = append(p.ends, stop)
		first, ok := next()
		if !ok {
			return fmt.Errorf("%s: no thread has a frame of a lane %d", t.Info().Path, f.lane)
		}
		stacks = pulled(first, next)
	}
	if f.top > 0 {
		stacks = topOf(stacks, f.top)
	}
	p.stacks = report.NewStacks(t, stacks)
	if p.stacks.Globals, err = f.readGlobals(ctx, t); err != nil {
		return err
	}
	p.stacks.Fact, p.stacks.Signature = known, signed.of
	if f.code > 0 {
		p.stacks.ShowCode(ctx, t.CodeReader(f.code))
	}
	return nil
}

// write writes the stacks.
func (p *preparedTarget) write(ctx context.Context, w *writer) error {
	if p.signature {
		if err := p.writeSignature(w); err != nil {
			return err
		}
	} else if err := p.report(ctx, w, p.stacks, p.target); err != nil {
		return err
	}
	return p.notOverFiles(p.target)
}

// close closes the target.
func (p *preparedTarget) close() {
	for _, end := range slices.Backward(p.ends) {
		end()
	}
}

// readGlobals reads the variables that were asked for by name, those of threads as the
// first thread has them that crashed. One that nothing has is a mistake of the user's.
func (f *stackFlags) readGlobals(ctx context.Context, t *engine.Target) (list []report.Global, err error) {
	threads := t.Threads()
	if len(f.variables) == 0 || len(threads) == 0 {
		return nil, nil
	}
	thread := threads[0]
	for _, th := range threads {
		if th.Crashed || th.ID == f.thread {
			thread = th
			break
		}
	}
	for _, name := range f.variables {
		found, err := t.Globals(ctx, thread, name, f.Limits)
		if len(found) == 0 {
			return nil, errors.Join(fmt.Errorf("%s: no variable %s in the debug information of its modules", t.Info().Path, name), err)
		}
		for _, g := range found {
			list = append(list, report.Global{GlobalVariable: g, Thread: thread})
		}
	}
	return list, nil
}

// ofLane are the stacks of one lane, without those of threads that do not have it.
func ofLane(stacks iter.Seq[*engine.Stack], lane uint32) iter.Seq[*engine.Stack] {
	return func(yield func(*engine.Stack) bool) {
		for s := range stacks {
			if one, ok := s.Lane(lane); ok && !yield(one) {
				return
			}
		}
	}
}

// topOf are stacks with their n innermost frames.
func topOf(stacks iter.Seq[*engine.Stack], n int) iter.Seq[*engine.Stack] {
	return func(yield func(*engine.Stack) bool) {
		for s := range stacks {
			if !yield(s.Top(n)) {
				return
			}
		}
	}
}

// pulled are stacks of which the first one was asked for before.
func pulled(first *engine.Stack, next func() (*engine.Stack, bool)) iter.Seq[*engine.Stack] {
	return func(yield func(*engine.Stack) bool) {
		for s, ok := first, true; ok && yield(s); {
			s, ok = next()
		}
	}
}

// report writes the stacks while they are walked.
func (f *stackFlags) report(ctx context.Context, w *writer, stacks *report.Stacks, t *engine.Target) error {
	switch f.format {
	case "json":
		return stacks.WriteJSON(w)
	case "breakpad":
		return stacks.WriteBreakpad(ctx, w, t)
	}
	o := report.TextOptions{Color: w.isTerminal, NoFold: f.noFold, OneLane: f.lane >= 0, Verbose: f.verbose}
	if f.format == "html" {
		return stacks.WritePage(w, o)
	}
	return stacks.WriteText(w, o)
}

// notOverFiles refuses an output that would take the place of a file that walking
// turned out to need.
func (f *stackFlags) notOverFiles(t *engine.Target) error {
	for _, m := range t.Modules() {
		f.reads(m.File, t.ModuleInfo(m).DebugFile)
	}
	if f.output == "" {
		return nil
	}
	return f.notOverInput(f.output)
}

// walked notes what the exit status depends on, of stacks that go by.
type walked struct {
	target   *engine.Target
	first    *engine.Stack // as far as it is needed
	isWalked bool          // one of them was
}

// over passes stacks on.
func (k *walked) over(stacks iter.Seq[*engine.Stack]) iter.Seq[*engine.Stack] {
	return func(yield func(*engine.Stack) bool) {
		for s := range stacks {
			if k.first == nil {
				k.first = &engine.Stack{Thread: s.Thread, Stopped: s.Stopped}
			}
			k.isWalked = k.isWalked || s.IsWalked()
			if !yield(s) {
				return
			}
		}
	}
}

// err says that nothing could be walked.
func (k *walked) err() error {
	if k.isWalked {
		return nil
	}
	return k.target.NotWalked(k.first)
}

// selected are the threads to print. Where each is printed by itself, as text, those
// that crashed are the first.
func (f *stackFlags) selected(t *engine.Target) ([]*target.Thread, error) {
	if f.crashed {
		list := slices.DeleteFunc(slices.Clone(t.Threads()), func(th *target.Thread) bool { return !th.Crashed })
		if len(list) == 0 {
			return nil, fmt.Errorf("%s: none of its %d threads crashed", t.Info().Path, len(t.Threads()))
		}
		return list, nil
	}
	if f.thread == "" && f.noFold && (f.format == "text" || f.format == "html") {
		list := slices.Clone(t.Threads())
		slices.SortStableFunc(list, func(a, b *target.Thread) int { return cmp.Compare(isLast(a), isLast(b)) })
		return list, nil
	}
	if f.thread == "" {
		return t.Threads(), nil
	}
	for _, th := range t.Threads() {
		if th.ID == f.thread {
			return []*target.Thread{th}, nil
		}
	}
	return nil, fmt.Errorf("%s: no thread %s among its %d", t.Info().Path, f.thread, len(t.Threads()))
}

// isLast is 0 of a thread that crashed, and 1 of others.
func isLast(th *target.Thread) int {
	if th.Crashed {
		return 0
	}
	return 1
}
