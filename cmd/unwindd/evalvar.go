// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/value"
)

// addLimits adds the flags that bound what is printed of variables.
func addLimits(flags *pflag.FlagSet, l *value.Limits) {
	flags.IntVar(&l.Depth, "depth", value.DefaultLimits.Depth, "print `N` levels of values within one another")
	flags.IntVar(&l.Elements, "elements", value.DefaultLimits.Elements, "print `N` elements of an array or a container, and characters of a string")
	flags.BoolVar(&l.Raw, "raw", false, "print containers as their implementation is")
}

// checkVariable refuses flags that do not go with --var.
func (f *evalFlags) checkVariable(cmd *cobra.Command) error {
	switch {
	case f.snapshot == "":
		return usageError{errors.New("--var needs --snapshot")}
	case cmd.Flags().Changed("expr"):
		return usageError{errors.New("--var does not go with --expr")}
	}
	return job.CheckLimits(f.limits)
}

// runVariable prints a variable of a frame, or a part of one.
func (f *evalFlags) runVariable(cmd *cobra.Command) error {
	path, err := value.ParsePath(f.variable)
	if err != nil {
		return usageError{fmt.Errorf("--var: %w", err)}
	}
	e, end, err := f.newEngine(engine.Options{})
	if err != nil {
		return err
	}
	defer end()
	t, err := e.Open(f.snapshot)
	if err != nil {
		return err
	}
	th, err := f.findThread(t)
	if err != nil {
		return err
	}
	var lane *uint32
	if f.lane >= 0 {
		n := uint32(f.lane) //nolint:gosec // checked
		lane = &n
	}
	v, err := t.Select(cmd.Context(), th, f.frame, lane, path, f.limits)
	if err != nil {
		return fmt.Errorf("--var %s: %w", f.variable, err)
	}
	if v.Status == value.Failed {
		err = fmt.Errorf("--var %s: %s", f.variable, v.Problem)
	}
	printed := report.OneVariable{Variable: v, Thread: th, Space: t.SpaceName}
	return f.write(func(w *writer) error {
		switch {
		case f.format == "json": // which has the error
			return errors.Join(err, printed.WriteJSON(w))
		case err != nil:
			return err
		}
		return printed.WriteText(w, report.TextOptions{Color: w.isTerminal, Verbose: f.verbose})
	})
}

// findThread is the thread that --thread names, or the first.
func (f *evalFlags) findThread(t *engine.Target) (*target.Thread, error) {
	for _, th := range t.Threads() {
		if f.thread == "" || th.ID == f.thread {
			return th, nil
		}
	}
	return nil, fmt.Errorf("%s: no thread %s among its %d", f.snapshot, f.thread, len(t.Threads()))
}
