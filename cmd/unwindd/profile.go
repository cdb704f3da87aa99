// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/engine/trace"
)

// profileFlags are the flags of `unwindd profile`.
type profileFlags struct {
	*globals
	targetFlags
	inputFlags
	job      job.Profile
	names    bool // functions and lines are looked for
	jobs     int
	kallsyms string
	roots    map[int]string
	maps     map[int]string // of JIT code
	gpu      []string
	traces   []string // further files of other profilers
	objects  []string
	window   time.Duration
	program  string // a disassembler
	http     string
	otlp     string
	unnamed  string // a profile that gets names
	recordFlags
	// isDefault: no recording was named.
	isDefault bool
	sections  []*service.ReportSection // of what a server made: the events
}

func newProfile(g *globals) *cobra.Command {
	f := &profileFlags{globals: g, job: job.NewProfile(), names: true, roots: map[int]string{}, maps: map[int]string{}}
	cmd := &cobra.Command{
		Use:   "profile [RECORDING...|PID] | profile --pid PID|NAME | profile -- PROGRAM [ARG...]",
		Short: "Make a profile of what perf recorded, of a program or of living processes",
		Long: `Walk the stacks of all samples of a recording, ./perf.data by default, and write the profile: as text,
for pprof, for OpenTelemetry (otlp), as folded stacks for flame graphs, for
speedscope, for Firefox Profiler, as a page with flame graphs (html), or as JSON with
every sample.

Behind -- stands a program that is recorded until it ends, and --pid records living
processes, for --duration or until Ctrl-C: by perf where that may record, with the best
event and the stacks of this machine, else by stopping the threads again and again, as
short as copying their stacks takes. The first Ctrl-C ends the recording, and what was
recorded until then is shown; the second one ends the command. The profile is written
when the program has ended, which has the terminal until then.

The ID of a process alone is looked at --repeat times, one moment --every so often, by
stopping its threads. Threads that wait have samples with --idle only.

Samples of accelerators join the profile with --gpu, on the stacks of the threads
that launched what was sampled: files of rocprofv3 (its JSON), of unitrace and
iaprof, and lines of JSON as docs/gpu-samples.md describes them. With them there
need be no recording.

Files of other profilers are read, too, several at once: traces of PyTorch and
other Chrome traces, exports of Nsight Systems, the text of perf script, folded
stacks, and pprof's form.

With --symbolize, a profile of pprof or OpenTelemetry gets functions, lines and inlined
calls for the frames that have none, by the build IDs of its mappings, and is written as
it was otherwise.

What was found, and why stacks end, is said on standard error. --http shows the
profile in a browser, by pprof's own pages, and --otlp sends it to a collector.`,
		Example: `  unwindd profile perf.data
  unwindd profile -- ./program --its-flag
  unwindd profile --pid server --duration 10s --format html -o server.html
  unwindd profile perf.data --http localhost:8080
  unwindd profile perf.data --format pprof -o cpu.pb.gz
  unwindd profile perf.data --format folded | flamegraph.pl > cpu.svg
  unwindd profile 4711 --repeat 500 --every 20ms --format folded
  unwindd profile perf.data --gpu 1234_results.json
  unwindd profile --symbolize cpu.pb.gz -o named.pb.gz
  unwindd profile rank0.pt.trace.json.gz rank1.pt.trace.json.gz`,
		Args: usageArgs(func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() == 0 && len(args) > 0 {
				return nil // a program
			}
			return f.takeRecordings(args)
		}),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.addFlags(cmd.Flags())
	cmd.ValidArgsFunction = completeRecorded
	_ = cmd.RegisterFlagCompletionFunc("pid", completeProcesses)
	_ = cmd.RegisterFlagCompletionFunc("recorder", cobra.FixedCompletions(recorders, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(job.ProfileFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *profileFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "format", "text", "write as `FORMAT`: "+strings.Join(job.ProfileFormats, ", "))
	f.targetFlags.add(flags)
	f.inputFlags.add(flags)
	f.symbolFlags.names = &f.names
	flags.Lookup("symbols").Usage += "; with --symbols=false no functions and lines are looked for, and there are addresses only"
	flags.IntVarP(&f.jobs, "jobs", "j", 0, "walk with `N` goroutines; 0 is one for every CPU")
	addProfileFlags(flags, &f.job)
	flags.StringVar(&f.kallsyms, "kallsyms", "", "name the kernel's code by `FILE`, a copy of /proc/kallsyms")
	flags.Var(rootsValue(f.roots), "root", "look up the files of a process, and of those that it forks, under a directory: `PID=DIR`; may be repeated")
	flags.Var(mapsValue(f.maps), "perf-map", "name the code that a process made while it ran by the map in a file, as /tmp/perf-PID.map: `PID=FILE`; may be repeated")
	flags.StringArrayVar(&f.gpu, "gpu", nil, "join the samples of accelerators in `FILE`, of rocprofv3, unitrace, iaprof, or lines of JSON; may be repeated")
	addOtherName(flags, "gpu-samples", "gpu")
	addOtherName(flags, "max-frames", "max-stack")
	flags.StringArrayVar(&f.objects, "objects", nil, "look for code of accelerators in `FILE`, too, a code object or what has some inside, or the number of a process; may be repeated")
	flags.DurationVar(&f.window, "join-window", job.DefaultJoinWindow, "where no probe sampled a launch, take the thread's nearest sample within `DURATION`, marked as near; 0: none")
	flags.StringVar(&f.program, "disassembler", "", "with --annotate, take the text of accelerators' instructions from the llvm-mc, llvm-objdump or nvdisasm at `PATH`")
	flags.StringVar(&f.otlp, "otlp", "", "send the profile to the OpenTelemetry collector at `URL`, as grpc://HOST:4317 or http://HOST:4318")
	flags.StringVar(&f.unnamed, "symbolize", "", "write the profile of pprof or OpenTelemetry in `FILE` again, with names for the frames that have none")
	flags.StringVar(&f.http, "http", "", "serve pprof's pages at `ADDRESS`, as localhost:8080, until interrupted")
	f.recordFlags.add(flags)
}

// addProfileFlags adds the flags that select the content of a profile.
func addProfileFlags(flags *pflag.FlagSet, j *job.Profile) {
	addNumber(flags, &j.MaxStack, job.ProfileRanges, "max-stack", engine.DefaultMaxFrames, "walk at most `N` frames of a stack")
	flags.BoolVar(&j.MarkGuesses, "mark-guesses", false, "mark the functions of guessed frames in pprof, folded, speedscope and firefox, as text and html do")
	if flags.Lookup("full-names") == nil { // `unwindd submit` has the flag for stacks, too
		flags.BoolVar(&j.FullNames, "full-names", false, "print the names of functions whole in text: with results, parameters and template arguments")
	}
	flags.StringArrayVar(&j.Event, "event", nil, "only the samples of `EVENT`, by its whole name or as cycles for cpu_core/cycles:Pu/; may be repeated")
	addSelectionFlags(flags, j)
	flags.BoolVar(&j.BottomUp, "bottom-up", false, "trees of text and folded stacks lead from the innermost functions to their callers")
	flags.StringArrayVar(&j.Annotate, "annotate", nil, "write only the lines and instructions of `FUNCTION` with their samples, as text or JSON; may be repeated")
}

func (f *profileFlags) run(cmd *cobra.Command, args []string) error {
	f.note(cmd.Flags())
	if f.unnamed != "" {
		return f.symbolizeProfile(cmd, args)
	}
	if err := cmp.Or(f.checkFlags(cmd), f.recordFlags.check()); err != nil {
		return err
	}
	subject, err := f.subjectOf(cmd, args)
	if err != nil {
		return err
	}
	if err := cmp.Or(f.targetFlags.check(), checkFile("disassembler", f.program), checkFile("kallsyms", f.kallsyms)); err != nil {
		return err
	}
	server, err := f.connectServer(cmd)
	if err := cmp.Or(err, f.checkElsewhere(server)); err != nil {
		return err
	}
	if server != nil {
		defer server.Close()
		f.inProcess = true // nothing is walked here
	}
	var listener net.Listener
	if f.http != "" {
		if listener, err = listen(cmd.Context(), f.http); err != nil {
			return err
		}
		defer listener.Close()
	}
	collector, err := f.collector()
	if err != nil {
		return err
	}
	if collector != nil {
		defer collector.Close()
	}
	if len(f.job.Annotate) > 0 && server == nil {
		if f.program, err = f.disassembler(f.program); err != nil {
			return err
		}
	}
	e, end, err := f.newEngine(f.globals, f.job.Engine(engine.Options{Disassembler: f.program, MaxUnpacked: uint64(f.maxUnpacked)}))
	if err != nil {
		return err
	}
	defer end()
	source := recording{}
	if subject.isNone() {
		source.path = f.recordingOf(args)
	} else if source, err = f.record(cmd.Context(), e, &subject); err != nil {
		return err
	}
	defer source.remove()
	if server != nil {
		return f.profileElsewhere(cmd.Context(), server, e, &source)
	}
	r, err := f.profile(cmd.Context(), e, &source)
	if err != nil {
		return err
	}
	if err := r.WriteSummary(stderr, report.SummaryOptions{Color: f.colors(os.Stderr), Verbose: f.verbose}); err != nil {
		return err
	}
	switch {
	case collector != nil:
		return exportTo(cmd.Context(), collector, r)
	case listener != nil:
		return f.serve(cmd.Context(), r, listener)
	}
	return f.writeProfile(r)
}

// profile makes the profile. On a terminal it shows the progress.
func (f *profileFlags) profile(ctx context.Context, e *engine.Engine, source *recording) (*report.Profile, error) {
	input, err := openInput(source.path)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	shown := newWorkProgress("samples")
	defer shown.end() // before an error is printed
	p, err := e.Profile(ctx, source.path, trace.ProfileOptions{
		Input: input, Traces: f.traces,
		Jobs: f.jobs, Kallsyms: f.kallsyms, Roots: f.roots, PerfMaps: f.maps, GPU: f.gpu, Objects: f.objects, JoinWindow: f.window,
		Annotate: f.job.Annotate, Progress: shown.callback(), JoinDevice: f.joinsDevice(),
	})
	if err != nil {
		return nil, f.noRecording(err)
	}
	if source.wasEnded && len(p.Samples) == 0 {
		return nil, statusError{fmt.Errorf("%s: %w", source.subject, errNothingRecorded), exitSignal + int(syscall.SIGINT)}
	}
	source.describe(p)
	r, err := report.NewSelectedProfile(p, f.job.Selection(), f.job.Event...)
	if err != nil {
		return nil, err
	}
	r.Jobs, r.NoSymbols = f.jobs, !f.names
	if f.job.MarkGuesses && f.http != "" {
		r = r.MarkGuesses()
	}
	return r, nil
}

// joinsDevice reports whether the output has no times of single samples: samples of accelerators that
// differ in nothing else can be joined then.
func (f *profileFlags) joinsDevice() bool {
	isCounted, selection := f.format == "text" || f.format == "folded" || f.format == "pprof", f.job.Selection()
	return isCounted && f.http == "" && f.otlp == "" && len(f.job.Annotate) == 0 && selection.IsZero()
}

// serve serves the pages of a profile until it is interrupted.
func (f *profileFlags) serve(ctx context.Context, r *report.Profile, listener net.Listener) error {
	ready := report.NewLinePrinter(stdout)
	ready.Printf("listening http://%s\n", listener.Addr())
	if err := ready.Flush(); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(f.http)
	return r.Serve(ctx, listener, report.ServeOptions{
		Host: host, Sysroot: f.sysroot,
		Problem: func(problem string) { messages.Printf("unwindd: pprof: %s\n", problem) },
	})
}

// checkFlags refuses flags that have no meaning, before anything is walked.
func (f *profileFlags) checkFlags(cmd *cobra.Command) error {
	wrong := func(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
	switch {
	case f.jobs < 0:
		return wrong("--jobs %d: expected 0 or more", f.jobs)
	case f.window < 0:
		return wrong("--join-window %v: expected 0 or more", f.window)
	case cmd.Flags().Changed("disassembler") && f.program != "" && len(f.job.Annotate) == 0:
		return wrong("--disassembler %s: expected --annotate FUNCTION too", f.program)
	case len(f.job.Annotate) > 0 && (f.http != "" || !f.names):
		return wrong("--annotate names functions, and writes them: expected neither --http nor --symbols=false with it")
	case f.http != "" && (f.output != "" || cmd.Flags().Changed("format")):
		return wrong("--http serves the profile and writes none: expected neither --format nor -o with it")
	case f.job.BottomUp && (f.http != "" || f.otlp != ""):
		return wrong("--bottom-up turns the stacks of text and folded stacks: expected neither --http nor --otlp with it")
	case f.otlp != "" && (f.http != "" || f.output != "" || len(f.job.Annotate) > 0 || cmd.Flags().Changed("format")):
		return wrong("--otlp sends the profile and writes none: expected none of --format, -o, --http and --annotate with it")
	case (f.format == "pprof" || f.format == "otlp") && f.output == "" && term.IsTerminal(int(os.Stdout.Fd())):
		return wrong("--format %s is no text: expected -o FILE, or standard output not to be a terminal", f.format)
	}
	f.job.Format, f.job.NoSymbols = f.format, !f.names
	if err := f.job.Check(); err != nil {
		return usageError{err}
	}
	return nil
}

// listen listens at an address. Without a host, only this machine reaches it.
func listen(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usageError{fmt.Errorf("--http %s: expected HOST:PORT: %w", address, err)}
	}
	if host == "" {
		host = "localhost"
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
}

func (f *profileFlags) writeProfile(r *report.Profile) error {
	events := r.Events()
	if f.format == "folded" && f.output != "" && len(events) > 1 && !isStream(f.output) {
		return f.writeFolded(r, events)
	}
	return f.write(func(w *writer) error {
		return f.job.WriteReport(r, w, report.TextOptions{Color: w.isColored, Verbose: f.verbose})
	})
}

// writeFolded writes a file for each of several events.
func (f *profileFlags) writeFolded(r *report.Profile, events []string) error {
	return f.writeEvents(events, func(w *writer, event string) error { return r.WriteFolded(w, event) })
}

// writeEvents writes a file for each of several events: all of them, or none.
func (f *profileFlags) writeEvents(events []string, write func(w *writer, event string) error) (err error) {
	files := make([]*writer, len(events))
	defer func() {
		for _, w := range files {
			if w != nil {
				_ = w.file.abandon()
			}
		}
	}()
	for i, name := range f.foldedNames(events) {
		if files[i], err = f.open(name); err != nil {
			return err
		}
		if err := write(files[i], events[i]); err != nil {
			return err
		}
	}
	for i, w := range files {
		if err := w.file.finish(nil); err != nil {
			return err
		}
		messages.Printf("unwindd: %s: %s\n", events[i], w.file.path)
	}
	return nil
}

// foldedNames returns the names of the files of events.
func (f *profileFlags) foldedNames(events []string) []string {
	names := make([]string, len(events))
	for i, event := range events {
		// Names of events have such characters (sched:sched_switch, cpu/cycles/u), which
		// names of files cannot have everywhere.
		names[i] = f.output + "." + strings.Map(func(c rune) rune {
			if c == '/' || c == '\\' || c == ':' {
				return '-'
			}
			return c
		}, event)
		for slices.Contains(names[:i], names[i]) {
			names[i] += "-"
		}
	}
	return names
}
