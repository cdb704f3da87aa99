package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine"
)

// snapshotFlags are the flags of `unwindd snapshot`.
type snapshotFlags struct {
	*globals
	targetFlags
	files bool
}

func newSnapshot(g *globals) *cobra.Command {
	f := &snapshotFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "snapshot TARGET -o FILE",
		Short: "Write what the stacks of a core or snapshot need into a small file",
		Long: `Write a snapshot of a core or of a snapshot: threads with their registers, the
build IDs and places of the code that was loaded, and as much memory as the
stacks need. 'unwindd stack' prints the same stacks from it, where it finds the
files of the code. Those of the target are looked up as 'unwindd stack' does.

What is written has memory of the process in it. Only its owner may read it.`,
		Example: `  unwindd snapshot core -o crash.snapshot
  unwindd snapshot core --files -o crash.snapshot`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	f.add(flags)
	flags.BoolVar(&f.files, "files", false, "put in the files of the code, for who does not have them")
	return cmd
}

// snapshotSummary is what is said of a snapshot that was written.
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
		return usageError{errors.New("snapshot: expected -o FILE")}
	}
	plugins, err := f.plugins()
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Options{Plugins: plugins, Sysroot: f.sysroot, Exe: f.exe, DebugDirs: f.debugDirs})
	if err != nil {
		return err
	}
	defer e.Close()
	t, err := e.Open(path)
	if err != nil {
		return err
	}
	s, err := t.Snapshot(cmd.Context(), engine.SnapshotOptions{Files: f.files})
	if err != nil {
		return err
	}
	sum := snapshotSummary{
		Path: f.output, Threads: len(s.Threads), Frames: s.Frames, Modules: len(s.Modules),
		Problems: append(append([]string{}, t.Problems()...), s.Problems...),
	}
	for _, m := range s.Memory {
		sum.Memory += len(m.Data)
	}
	if sum.Bytes, err = writeAtomic(f.output, s.Write); err != nil {
		return err
	}
	if f.format == "json" {
		return json.NewEncoder(os.Stdout).Encode(sum)
	}
	for _, p := range sum.Problems {
		fmt.Fprintln(os.Stderr, "unwindd:", p)
	}
	_, err = fmt.Printf("%s: %d bytes: %d threads, %d frames, %d modules, %d bytes of memory\n",
		sum.Path, sum.Bytes, sum.Threads, sum.Frames, sum.Modules, sum.Memory)
	return err
}

// writeAtomic writes a file under another name in the same folder, and gives it
// its name when it is whole. What is not a regular file is written to as it is.
func writeAtomic(path string, write func(io.Writer) error) (size int64, err error) {
	if file, err := filepath.EvalSymlinks(path); err == nil {
		path = file
	}
	var f *os.File
	info, err := os.Stat(path)
	atomic := err != nil || info.Mode().IsRegular()
	if atomic {
		f, err = os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	} else {
		f, err = os.OpenFile(path, os.O_WRONLY, 0)
	}
	if err != nil {
		return 0, err
	}
	if atomic {
		// Once it has its name there is nothing left to remove.
		defer os.Remove(f.Name())
	}
	counted := &countingWriter{w: f}
	b := bufio.NewWriter(counted)
	if err = write(b); err == nil {
		err = b.Flush()
	}
	if err == nil && atomic {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	if atomic {
		err = os.Rename(f.Name(), path)
	}
	return counted.n, err
}

// countingWriter counts what is written.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
