// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/job"
)

// evalFlags are the flags of `unwindd eval`.
type evalFlags struct {
	*globals
	targetFlags
	coreFlags
	job      job.Evaluate
	snapshot string
	unit     string
}

func newEval(g *globals) *cobra.Command {
	f := &evalFlags{globals: g, job: job.NewEvaluate()}
	cmd := &cobra.Command{
		Use:   "eval --arch ARCH --expr TEXT | --var NAME",
		Short: "Evaluate a DWARF expression, or a variable",
		Long: `Evaluate a DWARF expression, in a frame of a snapshot or in a state that the
command line gives: one process, one thread, its top frame. Only what is read
needs to be given.

The expression is text: operations separated by ";", each with its operands.
Registers and address spaces are names or numbers.

With --var it is a variable of the frame, by its name in the source, or a part of
it.`,
		Example: `  unwindd eval --arch x86_64 --expr 'DW_OP_breg7 8' --reg rsp=0x7ffc0000
  unwindd eval --snapshot crash.snapshot --frame 2 --var 'list->next[0].name'
  unwindd eval --arch amdgpu --expr 'regx v3; LLVM_offset_uconst 20' --wave 32
  unwindd eval --arch x86_64 --expr 'bregx rbp, -24; deref' --kind value \
      --reg rbp=0x1018 --mem global:0x1000=2a00000000000000 --trace
  unwindd eval --arch x86_64 --unit ./server:0x2d --expr 'fbreg -24' \
      --reg rip=0x1139 --reg rbp=0x7ffc0000`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	f.targetFlags.add(flags)
	f.coreFlags.add(flags)
	flags.StringVar(&f.snapshot, "snapshot", "", "take the state from the snapshot `F`")
	flags.StringVar(&f.unit, "unit", "", "the expression is of the unit at `FILE:OFFSET` of .debug_info")
	addEvalFlags(flags, &f.job)
	return cmd
}

// addEvalFlags adds the flags that are options of an evaluation.
func addEvalFlags(flags *pflag.FlagSet, j *job.Evaluate) {
	flags.StringVar(&j.Arch, "arch", "", "the architecture `A`")
	flags.Func("expr", "the expression, as `TEXT`", func(text string) error { j.Expr = &text; return nil })
	flags.StringVar(&j.Thread, "thread", "", "evaluate in the snapshot's thread `ID`")
	addNumber(flags, &j.Frame, job.EvaluateRanges, "frame", 0, "evaluate in frame `N` of the thread")
	flags.StringArrayVar(&j.Reg, "reg", nil, "a register's contents: `REGISTER=HEX`; may be repeated")
	flags.StringArrayVar(&j.Mem, "mem", nil, "memory: `SPACE:ADDR=HEX`, the bytes in order; may be repeated")
	flags.StringVar(&j.Cfa, "cfa", "", "the frame's CFA: `SPACE:ADDR`")
	addNumber(flags, &j.Lane, job.EvaluateRanges, "lane", 0, "the current lane is `N`")
	addNumber(flags, &j.Iteration, job.EvaluateRanges, "iteration", 0, "the current iteration is `N`")
	flags.StringVar(&j.Object, "object", "", "the current object is at the location `EXPR`")
	flags.StringVar(&j.Processor, "processor", "", "the processor `P`")
	flags.Uint32Var(&j.Wave, "wave", 0, "lanes of the thread: 32 or 64 (by processor)")
	flags.StringVar(&j.Kind, "kind", "", "the result is a `KIND`: value or location")
	flags.Uint32Var(&j.Read, "read", 0, "also read `BITS` bits of the location")
	flags.StringArrayVar(&j.Stack, "stack", nil, "a `VALUE` on the stack before the expression, the bottom first; may be repeated")
	flags.BoolVar(&j.Trace, "trace", false, "say what is on the stack after each operation")
	flags.StringVar(&j.Var, "var", "", "print a variable of the frame, or a part of it, such as `a.b[3]`")
	addLimits(flags, &j.Depth, &j.Elements, &j.Raw)
}

// usage makes a job's error of usage a usageError.
func usage(err error) error {
	if errors.Is(err, job.ErrUsage) {
		return usageError{err}
	}
	return err
}

func (f *evalFlags) run(cmd *cobra.Command) error {
	f.job.Format = f.format
	if f.job.Arch == "" && f.snapshot == "" && f.job.Expr == nil && f.job.Var == "" {
		return usageError{fmt.Errorf("expected --arch ARCH and --expr TEXT, or --snapshot FILE and --var NAME, as in: %s", firstExample(cmd))}
	}
	if err := usage(f.job.Check(f.snapshot != "")); err != nil {
		return err
	}
	if err := cmp.Or(f.targetFlags.check(), checkFile("gpu-core", f.gpuCore)); err != nil {
		return err
	}
	e, end, err := f.newEngine(f.globals, f.job.Engine(engine.Options{DeviceCore: f.gpuCore}))
	if err != nil {
		return err
	}
	defer end()
	find := f.evaluate
	if f.job.Var != "" {
		find = f.readVariable
	}
	found, err := find(cmd.Context(), e)
	if errors.Is(err, plugin.ErrNoArchitecture) {
		return fmt.Errorf("%w; `unwindd plugin list` names those that there are", err)
	}
	if err != nil {
		return usage(err)
	}
	if f.format == "json" { // the JSON has the error, too
		return errors.Join(found.Err, f.write(func(w *writer) error { return found.WriteJSON(w) }))
	}
	return f.write(func(w *writer) error {
		return errors.Join(found.Err, found.WriteText(w, report.TextOptions{Color: w.isColored, Verbose: f.verbose}))
	})
}

// readVariable reads a variable of a frame, or a part of one.
func (f *evalFlags) readVariable(ctx context.Context, e *engine.Engine) (*job.Evaluated, error) {
	t, err := e.Open(f.snapshot)
	if err != nil {
		return nil, err
	}
	return f.job.Variable(ctx, t)
}

// evaluate evaluates the expression.
func (f *evalFlags) evaluate(ctx context.Context, e *engine.Engine) (*job.Evaluated, error) {
	x, err := f.job.Expression(e)
	if err != nil {
		return nil, err
	}
	if f.unit != "" {
		unit, err := job.ParseUnit(f.unit)
		if err != nil {
			return nil, err
		}
		f.reads(unit.Path)
		if err := f.notOverInput(f.output); err != nil {
			return nil, err
		}
		if err := x.InUnit(unit, bundledFormats); err != nil {
			return nil, err
		}
		defer unit.Close()
	}
	var t *engine.Target
	if f.snapshot != "" {
		if t, err = e.Open(f.snapshot); err != nil {
			return nil, err
		}
	}
	return x.Evaluate(ctx, t)
}
