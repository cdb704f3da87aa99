// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/internal/escape"
)

// snapshotFlags are the flags of `unwindd snapshot`.
type snapshotFlags struct {
	*globals
	targetFlags
	coreFlags
	inputFlags
	job     job.Snapshot
	anyFile bool
}

func newSnapshot(g *globals) *cobra.Command {
	f := &snapshotFlags{globals: g, job: job.NewSnapshot("")}
	cmd := &cobra.Command{
		Use:   "snapshot TARGET -o FILE",
		Short: "Write what the stacks of a target need into a small file",
		Long: `Write a snapshot of a core, a minidump, a living process or a snapshot: threads with their registers, the
build IDs and places of the code that was loaded, and as much memory as the
stacks need. 'unwindd stack' prints the same stacks from it, where it finds the
files of the code. Those of the target are looked up as 'unwindd stack' does.

What is written has memory of the process in it. Only its owner may read it. A
core names the files that its process had mapped, and may name any file of this
machine: what is of a file whose build ID the core's own memory does not state is
left out, and said, unless --any-file asks for it.`,
		Example: `  unwindd snapshot core -o crash.snapshot
  unwindd snapshot 4711 -o now.snapshot
  unwindd snapshot core --files -o crash.snapshot`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	cmd.ValidArgsFunction = completeTargets(1)
	flags := cmd.Flags()
	f.targetFlags.add(flags)
	f.coreFlags.add(flags)
	f.inputFlags.add(flags)
	flags.BoolVar(&f.job.Files, "files", false, "put in the files of the code whose build IDs the target states, for who does not have them")
	flags.BoolVar(&f.anyFile, "any-file", false, "put in also what is of files whose build IDs the target does not state")
	return cmd
}

// snapshotSummary describes a snapshot that was written.
type snapshotSummary struct {
	Path     string   `json:"path"`
	Bytes    int64    `json:"bytes"`
	Threads  int      `json:"threads"`
	Frames   int      `json:"frames"`
	Modules  int      `json:"modules"`
	Memory   int      `json:"memory"` // bytes of memory
	Problems []string `json:"problems"`
}

func (f *snapshotFlags) run(cmd *cobra.Command, path string) error {
	if err := f.checkFormat("text", "json"); err != nil {
		return err
	}
	if f.output == "" {
		return usageError{fmt.Errorf("expected -o FILE, which the snapshot is written to, as in: unwindd snapshot %s -o crash.snapshot", path)}
	}
	if err := cmp.Or(f.check(), checkFile("gpu-core", f.gpuCore)); err != nil {
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
	e, end, err := f.newEngine(f.globals, engine.Options{
		Plugins: elsewhere(cmd.Context(), server), DeviceCore: f.gpuCore, MaxUnpacked: uint64(f.maxUnpacked), ForSnapshot: true,
	})
	if err != nil {
		return err
	}
	defer end()
	t, err := openTarget(e, path)
	if err != nil {
		return err
	}
	f.printStops(t)
	for _, m := range t.Modules() {
		f.reads(m.File, t.ModuleInfo(m).DebugFile)
	}
	if server != nil {
		return f.finish(f.takeElsewhere(cmd.Context(), server, t))
	}
	taken, err := f.take(cmd.Context(), t)
	if err != nil {
		return err
	}
	return f.finish(taken)
}

// takenSnapshot is a snapshot that can be written, after which its summary is known.
type takenSnapshot struct {
	snapshotSummary
	write func(io.Writer) error
}

func (f *snapshotFlags) options() engine.SnapshotOptions {
	return engine.SnapshotOptions{Files: f.job.Files, AnyFile: f.anyFile}
}

// take takes a snapshot.
func (f *snapshotFlags) take(ctx context.Context, t *engine.Target) (*takenSnapshot, error) {
	var s *engine.Snapshot
	err := engine.Guard(func() (err error) {
		s, err = t.Snapshot(ctx, f.options())
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case s.Unwalked != nil:
		return nil, s.Unwalked
	}
	taken := &takenSnapshot{snapshotSummary{
		Threads: len(s.Contents().Threads), Frames: s.Frames, Modules: len(s.Contents().Modules),
		Problems: append(append([]string{}, t.Problems()...), s.Problems...),
	}, s.Write}
	for _, m := range s.Contents().Memory {
		taken.Memory += len(m.Data)
	}
	return taken, nil
}

// takeElsewhere has a server take a snapshot, which comes while it is written.
func (f *snapshotFlags) takeElsewhere(ctx context.Context, c *service.Client, t *engine.Target) *takenSnapshot {
	taken := &takenSnapshot{}
	taken.write = func(w io.Writer) error {
		end, err := c.Snapshot(ctx, t, f.options(), w)
		if err != nil {
			return ofServer(err)
		}
		f.saySent(c, t.Info().Path)
		taken.snapshotSummary = snapshotSummary{
			Threads: int(end.GetStacks()), Frames: int(end.GetFrames()), Modules: int(end.GetModules()), Memory: int(end.GetMemory()), //nolint:gosec // of the server
			Problems: append([]string{}, end.GetProblems()...),
		}
		return nil
	}
	return taken
}

// finish writes a snapshot, and prints a summary of it.
func (f *snapshotFlags) finish(taken *takenSnapshot) error {
	size, toStdout, err := f.writeSnapshot(taken.write)
	if err != nil {
		return err
	}
	sum := &taken.snapshotSummary
	sum.Path, sum.Bytes = f.output, size
	about := stdout
	if toStdout {
		about = stderr
	}
	if f.format == "json" {
		b, err := escape.AppendJSON(nil, sum, "")
		if err != nil {
			return err
		}
		_, err = about.Write(b)
		return err
	}
	for _, p := range sum.Problems {
		messages.Printf("unwindd: %s\n", p)
	}
	p := report.NewLinePrinter(about)
	p.Printf("%s: %d bytes: %d threads, %d frames, %d modules, %d bytes of memory\n",
		sum.Path, sum.Bytes, sum.Threads, sum.Frames, sum.Modules, sum.Memory)
	return p.Flush()
}

// writeSnapshot writes the file and returns its size.
func (f *snapshotFlags) writeSnapshot(write func(io.Writer) error) (size int64, toStdout bool, err error) {
	if err := f.notOverInput(f.output); err != nil {
		return 0, false, err
	}
	return writePrivate(f.output, write)
}

// countingWriter counts the bytes that are written.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
