// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine"
)

// collectFlags are the flags of `unwindd collect`.
type collectFlags struct {
	*globals
	targetFlags
	momentFlags
	pids     []string
	gpuCores []string
	labels   []string
}

func newCollect(g *globals) *cobra.Command {
	f := &collectFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "collect --pids NAME|ALL|PID,PID -o DIR",
		Short: "Write small snapshots of many living processes at one moment",
		Long: `Write snapshots of living processes of this machine into a folder, as 'unwindd
snapshot' writes one, but of all of them at one moment: all are stopped, one right
after the other, before any is copied, and each goes on as soon as its copy is there. How
far apart the first and the last were stopped is said, and each snapshot has its time.
'unwindd compare' says which of them differs.

The files are DIR/HOST.NAME.PID.snapshot, and with --repeat
DIR/HOST.NAME.PID.MOMENT.snapshot, so that nodes may share a folder. They have memory
of the processes in them: only their owner may read them. A summary is printed, with
the reasons why processes were left out; -v lists each snapshot and each process.

NAME is the kernel's name of a process, that of the file which it executes, or the one
that it was called by.`,
		Example: `  unwindd collect --pids python3 -o stacks
  unwindd collect --pids 4711,4712 -o stacks
  unwindd collect --pids ALL -o stacks --format json
  unwindd collect --pids trainer -o stacks --repeat 3 --interval 5s
  unwindd collect --pids trainer -o stacks --gpu-core 4711=trainer.gpucore`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.pids, "pids", nil, "collect the processes `PROCESSES`: a name, ALL, or IDs with commas between them; may be repeated")
	f.targetFlags.add(flags)
	f.momentFlags.add(flags)
	flags.StringArrayVar(&f.gpuCores, "gpu-core", nil, "the state of the graphics processors of a process is in a file: `PID=FILE`, or FILE alone where there is one process; may be repeated")
	addLabels(flags, &f.labels)
	_ = cmd.RegisterFlagCompletionFunc("pids", completeProcesses)
	return cmd
}

// addLabels adds the flag --label.
func addLabels(flags *pflag.FlagSet, labels *[]string) {
	flags.StringArrayVar(labels, "label", nil, "make a label of each target: `NAME=REGEX`, whose first group is the value, matched with its path, its command line and its environment; may be repeated")
}

// labelRules parses the values of --label.
func labelRules(texts []string) (list []engine.LabelRule, err error) {
	for _, text := range texts {
		rule, err := engine.ParseLabelRule(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--label %s: %w", text, err)}
		}
		list = append(list, rule)
	}
	return list, nil
}

// momentFlags are the flags of the moments at which living processes are looked at.
type momentFlags struct {
	repeat   int
	interval time.Duration
}

const (
	defaultInterval = time.Second
	// maxMoments bounds the moments: each is a file for every process, or its stacks.
	maxMoments = 10_000
)

func (f *momentFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.repeat, "repeat", 1, "look at living processes at `N` moments, to see which of their threads move")
	flags.DurationVar(&f.interval, "interval", defaultInterval, "with --repeat, a moment is `DURATION` after the one before")
}

func (f *momentFlags) check() error {
	switch {
	case f.repeat < 1 || f.repeat > maxMoments:
		return usageError{fmt.Errorf("--repeat %d: expected 1 to %d", f.repeat, maxMoments)}
	case f.interval < 0:
		return usageError{fmt.Errorf("--interval %v: expected 0 or more", f.interval)}
	}
	return nil
}

// each calls f with the number of every moment, from 0 on, when it has come.
func (f *momentFlags) each(ctx context.Context, look func(moment int)) error {
	begun := time.Now()
	for moment := range f.repeat {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Until(begun.Add(time.Duration(moment) * f.interval))):
		}
		look(moment)
	}
	return nil
}

func (f *collectFlags) run(ctx context.Context) error {
	if err := f.checkFlags(); err != nil {
		return err
	}
	rules, err := labelRules(f.labels)
	if err != nil {
		return err
	}
	chosen, none, err := chooseProcesses(f.pids) // before plugins are started, which are processes of this one
	if err != nil {
		return err
	}
	cores, err := gpuCoresOf(f.gpuCores, chosen)
	if err != nil {
		return err
	}
	e, end, err := f.newEngine(f.globals, engine.Options{ForSnapshot: true, Goroutines: true})
	if err != nil {
		return err
	}
	defer end()
	if err := os.MkdirAll(f.output, 0o700); err != nil {
		return fmt.Errorf("-o %s: %w", f.output, err)
	}
	c := &collecting{
		engine: e, chosen: chosen, cores: cores, rules: rules,
		write: func(s *snapshotOf) (string, int64, error) { return f.writeOne(s) },
	}
	done := c.run(ctx, &f.momentFlags)
	done.Host, done.Left = hostName(), append(none, done.Left...)
	if err := f.print(done); err != nil {
		return err
	}
	return done.failure(ctx)
}

// checkFlags refuses flags that have no meaning, before any process is stopped.
func (f *collectFlags) checkFlags() error {
	switch {
	case len(f.pids) == 0:
		return usageError{errors.New("expected --pids PROCESSES: a name, ALL, or IDs with commas between them")}
	case f.output == "" || f.output == stdoutName:
		return usageError{errors.New("expected -o DIR, the folder that the snapshots are written to")}
	}
	return cmp.Or(f.checkFormat("text", "json"), f.targetFlags.check(), f.momentFlags.check())
}

// writeOne writes a snapshot into the folder.
func (f *collectFlags) writeOne(s *snapshotOf) (path string, size int64, err error) {
	path = filepath.Join(f.output, s.fileName(f.repeat))
	size, _, err = writePrivate(path, s.taken.Write)
	return path, size, err
}

// fileName names the file of a snapshot, one of a number of moments.
func (s *snapshotOf) fileName(moments int) string {
	name := fileNamePart(hostName()) + "." + fileNamePart(s.name) + "." + strconv.Itoa(s.pid)
	if moments > 1 {
		name += "." + strconv.Itoa(s.moment+1)
	}
	return name + ".snapshot"
}

// hostName is the name of this machine.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// fileNamePart makes text a part of a file's name: what may mean something to a shell or a file system is
// replaced.
func fileNamePart(text string) string {
	const most = 64
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._+-", r) {
			return r
		}
		return '_'
	}, text[:min(len(text), most)])
	return cmp.Or(strings.TrimLeft(text, "."), "_")
}

// writePrivate writes a file that only its owner may read, beside its place, and gives it its name when it is
// whole.
func writePrivate(path string, write func(io.Writer) error) (size int64, toStdout bool, err error) {
	o, err := createOutput(path, true)
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = o.abandon() }() // for a panic
	toStdout = o.File == os.Stdout
	counted := &countingWriter{w: o}
	if toStdout {
		counted.w = stdout
	}
	b := bufio.NewWriter(counted)
	if err = write(b); err == nil {
		err = b.Flush()
	}
	return counted.n, toStdout, o.finish(err)
}

// chosenProcess is a living process that was chosen.
type chosenProcess struct {
	pid  int
	name string
}

// allProcesses stands for all processes.
const allProcesses = "ALL"

// chooseProcesses returns the processes of names, IDs with commas between them, and ALL, each once, in
// the order of their IDs. none are those that are not there.
func chooseProcesses(words []string) (list []chosenProcess, none []leftProcess, err error) {
	names := map[int]string{}
	for _, word := range words {
		for part := range strings.SplitSeq(word, ",") {
			part = strings.TrimSpace(part)
			pid, notNumber := strconv.Atoi(part)
			var pids []int
			switch {
			case part == "":
				return nil, nil, usageError{fmt.Errorf("--pids %s: expected a name, ALL, or IDs with commas between them", word)}
			case part == allProcesses:
				pids = livingProcesses()
			case notNumber != nil:
				if pids = processesNamed(part); len(pids) == 0 {
					none = append(none, leftProcess{Name: part, Reason: "no process has that name"})
				}
			case pid <= 0:
				return nil, nil, usageError{fmt.Errorf("--pids %s: %d is no process's ID", word, pid)}
			default:
				if pids, err = leadersOf([]int{pid}); err != nil {
					none = append(none, leftProcess{PID: pid, Reason: "there is no such process"})
				}
			}
			for _, pid := range pids {
				names[pid] = processName(pid)
			}
		}
	}
	for pid, name := range names {
		list = append(list, chosenProcess{pid, name})
	}
	slices.SortFunc(list, func(a, b chosenProcess) int { return a.pid - b.pid })
	return list, none, nil
}

// gpuCoresOf returns the files of --gpu-core by process.
func gpuCoresOf(texts []string, chosen []chosenProcess) (files map[int]string, err error) {
	files = map[int]string{}
	for _, text := range texts {
		first, path, hasPID := strings.Cut(text, "=")
		pid, notNumber := strconv.Atoi(first)
		switch {
		case hasPID && notNumber == nil:
		case len(chosen) != 1:
			return nil, usageError{fmt.Errorf("--gpu-core %s: of which of %d processes is it? expected PID=FILE", text, len(chosen))}
		default:
			pid, path = chosen[0].pid, text
		}
		if !slices.ContainsFunc(chosen, func(p chosenProcess) bool { return p.pid == pid }) {
			return nil, usageError{fmt.Errorf("--gpu-core %s: process %d is not among those that are collected", text, pid)}
		}
		if err := checkFile("gpu-core", path); err != nil {
			return nil, err
		}
		files[pid] = path
	}
	return files, nil
}

// collecting takes snapshots of processes, all at one moment.
type collecting struct {
	engine *engine.Engine
	chosen []chosenProcess
	cores  map[int]string
	rules  []engine.LabelRule
	// write keeps a snapshot, and returns where and its size. It is called by one goroutine at a time.
	write func(s *snapshotOf) (path string, size int64, err error)

	mu   sync.Mutex
	done collection
}

// snapshotOf is a snapshot of a chosen process, at a moment that is counted from 0 on.
type snapshotOf struct {
	chosenProcess
	moment int
	taken  *engine.Snapshot
}

// run takes the snapshots of all moments.
func (c *collecting) run(ctx context.Context, moments *momentFlags) *collection {
	c.done = collection{Version: 1, Snapshots: []collectedSnapshot{}, Moments: []collectedMoment{}, Left: []leftProcess{}}
	pids := make([]int, len(c.chosen))
	names := map[int]string{}
	for i, p := range c.chosen {
		pids[i], names[p.pid] = p.pid, p.name
	}
	progress := newWorkProgress("snapshots")
	defer progress.end()
	seen := 0
	err := moments.each(ctx, func(moment int) {
		c.engine.OpenProcesses(ctx, pids, engine.OpenProcessesOptions{DeviceCores: c.cores, Each: func(pid int, t *engine.Target, err error) {
			p := &snapshotOf{chosenProcess: chosenProcess{pid, names[pid]}, moment: moment}
			c.keep(ctx, p, t, err)
			c.mu.Lock()
			defer c.mu.Unlock()
			seen++
			progress.show(uint64(seen), uint64(len(pids)*moments.repeat)) //nolint:gosec // counts
		}})
	})
	c.done.end(err)
	return &c.done
}

// keep keeps the snapshot of a process, or why there is none.
func (c *collecting) keep(ctx context.Context, p *snapshotOf, t *engine.Target, err error) {
	var one collectedSnapshot
	if err != nil {
		err = errors.New(whyLeft(p.pid, err))
	} else {
		defer t.Close()
		err = engine.Guard(func() (err error) {
			one, err = c.take(ctx, p, t)
			return err
		})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		one.Path, one.Bytes, err = c.write(p)
	}
	if err != nil {
		c.done.Left = append(c.done.Left, leftProcess{p.pid, p.name, p.moment + 1, plain(err)})
		return
	}
	c.done.Snapshots = append(c.done.Snapshots, one)
}

// take takes the snapshot of an open process.
func (c *collecting) take(ctx context.Context, p *snapshotOf, t *engine.Target) (one collectedSnapshot, err error) {
	if p.taken, err = t.Snapshot(ctx, engine.SnapshotOptions{}); err != nil {
		return one, err
	}
	if p.taken.Unwalked != nil {
		return one, p.taken.Unwalked
	}
	if len(c.rules) > 0 {
		p.taken.Labels = t.Labels(c.rules)
	}
	one = collectedSnapshot{
		PID: p.pid, Name: p.name, Moment: p.moment + 1, Threads: len(p.taken.Contents().Threads), Frames: p.taken.Frames,
		Problems: append(append([]string{}, t.Problems()...), p.taken.Problems...),
	}
	if facts := t.Info().Facts; facts != nil {
		one.Time = facts.Process.Kept.UTC()
	}
	all, _, _ := stopsOf(t)
	one.Stopped = all.Seconds()
	return one, nil
}

// whyLeft is the reason why there is no snapshot of a process, in words of a list that names the process.
func whyLeft(pid int, err error) string {
	if !isThere(fmt.Sprintf("/proc/%d", pid)) {
		return "it ended meanwhile"
	}
	text := plain(err)
	if rest, ok := strings.CutPrefix(text, fmt.Sprintf("process %d", pid)); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			text = after
		}
	}
	return text
}
