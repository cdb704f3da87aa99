// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service"
	"github.com/unwindd/unwindd/engine/service/fleet"
)

// waitFor waits for the results of jobs, and writes them.
func (f *submitFlags) waitFor(ctx context.Context, q *fleet.Queue, list []submission) error {
	paths := map[string][]string{} // by ID: equal files have the same
	var ids []string
	for _, s := range list {
		if paths[s.ID] == nil {
			ids = append(ids, s.ID)
		}
		paths[s.ID] = append(paths[s.ID], s.path)
	}
	results := map[string]*fleet.Result{}
	err := q.Wait(ctx, ids, func(r *fleet.Result) error {
		results[r.ID] = r
		return nil
	})
	if err != nil {
		return err
	}
	if f.group {
		return f.write(func(w *writer) error { return writeGroups(ctx, w, q, ids, results, paths) })
	}
	if len(ids) == 1 {
		return f.writeResult(ctx, q, results[ids[0]], paths[ids[0]][0])
	}
	return f.writeResults(ctx, q, ids, results, paths)
}

// failedJobError is the error of a job without a report.
type failedJobError struct{ result *fleet.Result }

func (e *failedJobError) Error() string {
	text := string(e.result.State)
	if e.result.Problem != nil {
		text += ": " + e.result.Problem.Detail
	}
	return text
}

// outcomeOf returns the error of a job's result.
func outcomeOf(r *fleet.Result, path string) error {
	switch {
	case r.State != fleet.Done:
		return fmt.Errorf("%s: %w", path, &failedJobError{r})
	case r.Unwalked != "":
		return service.NotWalked(r.Unwalked)
	}
	return nil
}

// writeResult writes the report of a job.
func (g *globals) writeResult(ctx context.Context, q *fleet.Queue, r *fleet.Result, path string) error {
	if r.State != fleet.Done {
		return outcomeOf(r, path)
	}
	err := g.write(func(w *writer) error {
		if strings.HasPrefix(r.Type, "text/plain") {
			return relayed(w, func(out io.Writer) error { return q.Report(ctx, r, out) }, w.isColored)
		}
		return q.Report(ctx, r, w)
	})
	if err != nil {
		return err
	}
	return outcomeOf(r, path)
}

// relayed writes a foreign text, without sequences that a terminal would execute.
func relayed(w io.Writer, write func(io.Writer) error, isColored bool) error {
	reader, pipe := io.Pipe()
	go func() { _ = pipe.CloseWithError(write(pipe)) }()
	err := report.Relay(w, reader, isColored)
	_ = reader.CloseWithError(err) // the writing goroutine waits for a reader
	return err
}

// writeResults writes the reports of several jobs into the folder of -o, and lists them.
func (f *submitFlags) writeResults(ctx context.Context, q *fleet.Queue, ids []string, results map[string]*fleet.Result, paths map[string][]string) error {
	var failures []error
	p := report.NewLinePrinter(stdout)
	for _, id := range ids {
		r := results[id]
		for _, path := range paths[id] {
			out := filepath.Join(f.output, filepath.Base(path)+"."+id[:8]+"."+f.format)
			if r.State == fleet.Done {
				one := *f.globals
				one.output = out
				failures = append(failures, one.writeResult(ctx, q, r, path))
			} else {
				out = ""
				failures = append(failures, outcomeOf(r, path))
			}
			p.Printf("%s\n", strings.TrimRight(fmt.Sprintf("%s  %-8s  %s  %s", id, r.State, path, out), " "))
		}
	}
	return errors.Join(p.Flush(), errors.Join(failures...))
}

// crashGroup is a group of crashes with one signature.
type crashGroup struct {
	Signature string   `json:"signature"`
	Count     int      `json:"count"`
	Frames    []string `json:"frames"`
	Targets   []string `json:"targets"`
}

// writeGroups counts crashes by their signatures, the most frequent one first.
func writeGroups(ctx context.Context, w *writer, q *fleet.Queue, ids []string, results map[string]*fleet.Result, paths map[string][]string) error {
	groups := map[string]*crashGroup{}
	var failures []error
	for _, id := range ids {
		r := results[id]
		if err := outcomeOf(r, paths[id][0]); err != nil {
			failures = append(failures, err)
			continue
		}
		var b bytes.Buffer
		if err := q.Report(ctx, r, &b); err != nil {
			return err
		}
		s := report.Signature{}
		if err := json.Unmarshal(b.Bytes(), &s); err != nil {
			return fmt.Errorf("%s: its signature: %w", paths[id][0], err)
		}
		g := groups[s.Signature]
		if g == nil {
			g = &crashGroup{Signature: s.Signature, Frames: s.Frames}
			groups[s.Signature] = g
		}
		g.Count += len(paths[id])
		g.Targets = append(g.Targets, paths[id]...)
	}
	var list []*crashGroup
	for _, g := range groups {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *crashGroup) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Signature, b.Signature)) })
	p := report.NewLinePrinter(w)
	for _, g := range list {
		p.Printf("%5d  %s %s\n       %s\n", g.Count, g.Signature, strings.Join(g.Frames, " | "), g.Targets[0])
	}
	return errors.Join(p.Flush(), errors.Join(failures...))
}

// resultsFlags are the flags of `unwindd results`.
type resultsFlags struct {
	*globals
	queueFlags
	state  string
	wait   bool
	cancel bool
}

func newResults(g *globals) *cobra.Command {
	f := &resultsFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "results [ID...]",
		Short: "Print what came of the jobs of a fleet",
		Long: `Print the report of a job, or list what came of several, or of all whose results
are kept.`,
		Example: `  unwindd results
  unwindd results --state parked
  unwindd results 0f9a66d1c5b7e34a8d2b3c4d5e6f7081
  unwindd results --cancel 0f9a66d1c5b7e34a8d2b3c4d5e6f7081`,
		Args: usageArgs(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&g.format, "format", "text", "list as `FORMAT`: text or json")
	f.queueFlags.add(flags)
	flags.StringVar(&f.state, "state", "", "list only those in `STATE`: done, failed, parked, canceled or expired")
	flags.BoolVar(&f.wait, "wait", false, "wait for results that are not there")
	flags.BoolVar(&f.cancel, "cancel", false, "cancel the jobs: nobody needs their results")
	return cmd
}

func (f *resultsFlags) run(ctx context.Context, ids []string) error {
	if err := f.checkFormat("text", "json"); err != nil {
		return err
	}
	switch {
	case f.state != "" && !slices.Contains(fleet.States, fleet.State(f.state)):
		return usageError{fmt.Errorf("--state %s: expected one of %v", f.state, fleet.States)}
	case len(ids) == 0 && (f.cancel || f.wait):
		return usageError{errors.New("--cancel and --wait: expected IDs of jobs")}
	case f.cancel && f.wait:
		return usageError{errors.New("--cancel and --wait: expected one of them")}
	}
	for _, id := range ids {
		if !fleet.IsID(id) {
			return usageError{fmt.Errorf("%q is no job's ID: expected 32 digits of hexadecimal", id)}
		}
	}
	q, err := f.connect(ctx, f.log())
	if err != nil {
		return err
	}
	defer q.Close()
	switch {
	case f.cancel:
		return cancelJobs(ctx, q, ids)
	case len(ids) == 1 && f.state == "":
		return f.printOne(ctx, q, ids[0])
	}
	return f.list(ctx, q, ids)
}

// cancelJobs cancels jobs. A job that has a result keeps it, which is an error.
func cancelJobs(ctx context.Context, q *fleet.Queue, ids []string) error {
	var failures []error
	for _, id := range ids {
		ok, err := q.Cancel(ctx, id)
		if err == nil && !ok {
			err = errors.New("it has a result already")
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", id, err))
		}
	}
	return errors.Join(failures...)
}

// printOne prints the report of a job.
func (f *resultsFlags) printOne(ctx context.Context, q *fleet.Queue, id string) error {
	var r *fleet.Result
	var err error
	if f.wait {
		err = q.Wait(ctx, []string{id}, func(found *fleet.Result) error { r = found; return nil })
	} else {
		r, err = q.Result(ctx, id)
	}
	if err != nil {
		return err
	}
	return f.writeResult(ctx, q, r, cmp.Or(r.Name, id))
}

// list lists the results of jobs, or all results.
func (f *resultsFlags) list(ctx context.Context, q *fleet.Queue, ids []string) error {
	return f.write(func(w *writer) error {
		p := report.NewLinePrinter(w)
		rows := []*fleet.Result{}
		found := func(r *fleet.Result) error {
			if f.state != "" && string(r.State) != f.state {
				return nil
			}
			r.Data = nil // a list has no reports
			if f.format == "json" {
				rows = append(rows, r)
				return nil
			}
			detail := ""
			if r.Problem != nil {
				detail = r.Problem.Detail
			}
			row := fmt.Sprintf("%s  %-8s  %s  %-8s  %-20s  %s", r.ID, r.State, r.Ended.Format("2006-01-02 15:04:05"), r.Kind, r.Name, detail)
			p.Printf("%s\n", strings.TrimRight(row, " "))
			return nil
		}
		var err error
		switch {
		case len(ids) == 0:
			err = q.Results(ctx, found)
		case f.wait:
			err = q.Wait(ctx, ids, found)
		default:
			for _, id := range ids {
				r, one := q.Result(ctx, id)
				if one == nil {
					one = found(r)
				}
				err = errors.Join(err, one)
			}
		}
		if f.format == "json" {
			return errors.Join(err, report.WriteJSON(w, rows))
		}
		return errors.Join(err, p.Flush())
	})
}
