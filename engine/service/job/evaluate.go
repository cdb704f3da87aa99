// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/trace"
)

// EvaluateFormats are the formats in which evaluations are written.
var EvaluateFormats = []string{"text", "json"}

// maxRead bounds the bits of a location that are read.
const maxRead = 1 << 23

// Evaluate asks for the result of an expression in a frame of a target, or in the state that
// Reg and Mem describe; or for a variable of a frame. NewEvaluate gives the defaults.
type Evaluate struct {
	*pb.EvaluateOptions `json:"options"`
}

// NewEvaluate returns an Evaluate with the defaults: in the top frame, as text.
func NewEvaluate() Evaluate {
	return Evaluate{EvaluateOptions: &pb.EvaluateOptions{Format: "text"}}
}

// EvaluateRanges are the ranges of the options of an Evaluate.
var EvaluateRanges = Ranges{"frame": {Most: unbounded}, "lane": {Most: math.MaxInt32}, "iteration": {Most: unbounded}}

// Check refuses options that have no meaning, in the words of flags. hasTarget: there is a
// target, which --snapshot names.
func (e *Evaluate) Check(hasTarget bool) error {
	if err := checkFormat(e.Format, EvaluateFormats); err != nil {
		return err
	}
	check := e.checkExpression
	if e.Var != "" {
		check = e.checkVariable
	}
	if err := cmp.Or(check(hasTarget), EvaluateRanges.check(e)); err != nil {
		return err
	}
	if e.Read > maxRead {
		return wrong("--read %d: expected at most %d bits", e.Read, maxRead)
	}
	return nil
}

// checkExpression refuses options that do not go with an expression.
func (e *Evaluate) checkExpression(hasTarget bool) error {
	switch {
	case e.Arch == "":
		return wrong("--arch is missing: expected one that `unwindd plugin list` has, as --arch x86_64")
	case e.Expr == nil:
		return wrong("--expr is missing: expected operations, as --expr 'DW_OP_breg7 8; DW_OP_deref'")
	case e.Kind != "" && e.Kind != "value" && e.Kind != "location":
		return wrong("--kind %s: expected value or location", e.Kind)
	case !hasTarget && (e.Thread != "" || e.Frame != 0):
		return wrong("--thread and --frame need --snapshot")
	case hasTarget && (len(e.Reg) > 0 || len(e.Mem) > 0):
		return wrong("--reg and --mem do not go with --snapshot")
	}
	return nil
}

// checkVariable refuses options that do not go with a variable.
func (e *Evaluate) checkVariable(hasTarget bool) error {
	switch {
	case !hasTarget:
		return wrong("--var needs --snapshot")
	case e.Expr != nil:
		return wrong("--var does not go with --expr")
	}
	if err := LimitRanges.check(e); err != nil {
		return err
	}
	if _, err := value.ParsePath(e.Var); err != nil {
		return wrong("--var: %w", err)
	}
	return nil
}

// Engine returns the options of an engine with changes that the evaluation needs.
func (e *Evaluate) Engine(o engine.Options) engine.Options {
	o.NoSymbols = e.Var == ""
	return o
}

// Evaluated is the result of an expression, or a variable.
type Evaluated struct {
	// Err is why it failed; nil: it did not. The JSON has it, too.
	Err error

	expression *report.Evaluation
	variable   *report.OneVariable // if not nil, there is no expression
}

// WriteJSON writes the result or the error.
func (e *Evaluated) WriteJSON(w io.Writer) error {
	if e.variable != nil {
		return e.variable.WriteJSON(w)
	}
	return e.expression.WriteJSON(w)
}

// WriteText writes the result as text, or the trace of an expression that failed.
func (e *Evaluated) WriteText(w io.Writer, o report.TextOptions) error {
	switch {
	case e.variable == nil:
		return e.expression.WriteText(w)
	case e.Err == nil:
		return e.variable.WriteText(w, o)
	}
	return nil
}

// Variable reads the variable. The error is about a variable that does not exist; a variable that
// cannot be read is an error of the result.
func (e *Evaluate) Variable(ctx context.Context, t *engine.Target) (*Evaluated, error) {
	path, err := value.ParsePath(e.Var)
	if err != nil {
		return nil, wrong("--var: %w", err)
	}
	th, err := e.thread(t)
	if err != nil {
		return nil, err
	}
	v, err := t.Process().Select(ctx, th, int(e.Frame), e.Lane, path, trace.ValueLimits{Depth: int(e.Depth), Elements: int(e.Elements), Raw: e.Raw})
	if err != nil {
		return nil, fmt.Errorf("--var %s: %w", e.Var, err)
	}
	if v.Status == trace.ValueFailed {
		err = fmt.Errorf("--var %s: %s", e.Var, v.Problem)
	}
	return &Evaluated{Err: err, variable: &report.OneVariable{Variable: v, Thread: th, Space: t.SpaceName}}, nil
}

// thread returns the requested thread, or the first one.
func (e *Evaluate) thread(t *engine.Target) (*trace.Thread, error) {
	for _, th := range t.Threads() {
		if e.Thread == "" || th.ID == e.Thread {
			return th, nil
		}
	}
	return nil, noThread(t, e.Thread)
}

// hasContent reports whether there is something to read.
func hasContent(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	return !info.Mode().IsRegular() || info.Size() > 0, nil
}

func (e *Evaluate) run(ctx context.Context, r *Request) (o Outcome, err error) {
	hasTarget, err := hasContent(r.Input)
	if err != nil {
		return o, err
	}
	view, err := r.Tools.Engine.With(e.Engine(r.Tools.Options))
	if err != nil {
		return o, err
	}
	defer view.Close()
	var t *engine.Target
	if hasTarget {
		if t, err = view.OpenFile(r.Input, r.Name); err != nil {
			return o, err
		}
	}
	found, err := e.find(ctx, view, t)
	if err == nil {
		err = ctx.Err()
	}
	switch {
	case err != nil:
		return o, err
	case e.Format == "json":
		return o, found.WriteJSON(r.Report)
	case found.Err != nil:
		return o, found.Err
	}
	return o, found.WriteText(r.Report, report.TextOptions{})
}

// find evaluates the expression or reads the variable; t is nil where there is no target.
func (e *Evaluate) find(ctx context.Context, view *engine.Engine, t *engine.Target) (*Evaluated, error) {
	if e.Var != "" {
		return e.Variable(ctx, t)
	}
	expression, err := e.Expression(view)
	if errors.Is(err, plugin.ErrNoArchitecture) {
		err = wrong("--arch: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return expression.Evaluate(ctx, t)
}
