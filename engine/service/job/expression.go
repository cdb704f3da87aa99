// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/target/snapshot"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Expression is an expression to evaluate, with its architecture.
type Expression struct {
	job    *Evaluate
	unit   *Unit // that the expression refers to; nil: none
	engine *engine.Engine
	d      *sdk.Description
	names  sdk.Names
	lanes  uint32 // of the thread; 0: not known
	stack  []locexpr.Entry
}

// Expression finds the architecture of the expression in an engine.
func (e *Evaluate) Expression(view *engine.Engine) (*Expression, error) {
	a, err := view.Plugins().Find(e.Arch)
	if err != nil {
		return nil, err
	}
	x := &Expression{job: e, engine: view, d: a.Description()}
	if x.lanes, err = e.lanes(x.d); err != nil {
		return nil, err
	}
	x.names = x.d.Names(x.lanes)
	x.stack, err = e.stack(x.d)
	return x, err
}

// TextOptions returns the options for writing expressions of an architecture.
func TextOptions(d *sdk.Description, dialect *locexpr.Dialect, names sdk.Names) locexpr.TextOptions {
	return locexpr.TextOptions{
		Dialect: dialect, AddressSize: int(d.AddressBits+7) / 8, Order: locexpr.ByteOrder(d.ByteOrder), Names: names,
	}
}

// lanes returns how many lanes the thread has by --wave and --processor; 0 where neither is
// set.
func (e *Evaluate) lanes(d *sdk.Description) (uint32, error) {
	if e.Wave != 0 && e.Wave != 32 && e.Wave != 64 {
		return 0, wrong("--wave %d: expected 32 or 64", e.Wave)
	}
	p, known := d.Processor(e.Processor)
	switch {
	case !known && e.Processor != "":
		return 0, wrong("--processor %s: %s has none of that name", e.Processor, d.Name)
	case !known || len(p.Lanes) == 0:
		return e.Wave, nil
	case e.Wave == 0:
		return p.Lanes[0], nil
	case !slices.Contains(p.Lanes, e.Wave):
		return 0, wrong("--wave %d: %s has waves of %v lanes", e.Wave, e.Processor, p.Lanes)
	}
	return e.Wave, nil
}

// stack reads the stack before the expression, the bottom first.
func (e *Evaluate) stack(d *sdk.Description) (list []locexpr.Entry, err error) {
	for _, text := range e.Stack {
		v, err := strconv.ParseUint(text, 0, 64)
		if err != nil || v > ^uint64(0)>>(64-d.AddressBits) {
			return nil, wrong("--stack %s: expected a number of %d bits, decimal, or hex with 0x", text, d.AddressBits)
		}
		list = append(list, locexpr.ValueEntry(locexpr.GenericValue(v)))
	}
	return list, nil
}

// Evaluate evaluates the expression in a frame of a target; nil: in the state that the
// registers and the memory of the job describe. It fails where it could not begin; the
// error of an evaluation, or of a malformed expression, is in the result.
func (x *Expression) Evaluate(ctx context.Context, t *engine.Target) (*Evaluated, error) {
	th, err := x.threadOf(&t)
	if err != nil {
		return nil, err
	}
	around, err := x.surroundings()
	if err != nil {
		return nil, err
	}
	if x.unit != nil {
		if err := x.unit.surround(t, &around); err != nil {
			return nil, err
		}
	}
	expr, err := x.parse(*x.job.Expr, around.Unit)
	if err != nil {
		failed := &Evaluated{Err: fmt.Errorf("--expr: %w", err), expression: &report.Evaluation{}}
		failed.expression.SetError(failed.Err)
		failed.expression.Error.Kind = "ill-formed"
		return failed, nil
	}
	return x.evaluate(ctx, t, th, around, expr)
}

// threadOf returns the thread to evaluate in. It makes a target where there is none.
func (x *Expression) threadOf(t **engine.Target) (*trace.Thread, error) {
	if *t == nil {
		state, err := x.synthetic()
		if err != nil {
			return nil, err
		}
		*t = x.engine.Attach(state)
		return state.Thread(), nil
	}
	th, err := x.job.thread(*t)
	if err != nil {
		return nil, err
	}
	if th.Lanes != 0 {
		x.names = x.d.Names(th.Lanes)
	}
	return th, nil
}

// synthetic returns the state that the job describes.
func (x *Expression) synthetic() (*walk.Synthetic, error) {
	state := &walk.Synthetic{Arch: x.d.Name, Processor: x.job.Processor, Lanes: x.lanes}
	if x.unit != nil {
		state.Loaded = []*target.Module{x.unit.module}
	}
	for _, text := range x.job.Reg {
		number, contents, err := x.registerContents(text)
		if err != nil {
			return nil, wrong("--reg %s: %w", text, err)
		}
		state.Registers.Set(number, contents)
	}
	for _, text := range x.job.Mem {
		piece, err := x.piece(text)
		if err != nil {
			return nil, wrong("--mem %s: %w", text, err)
		}
		state.Memory = append(state.Memory, piece)
	}
	return state, nil
}

// registerContents reads REGISTER=HEX.
func (x *Expression) registerContents(text string) (number uint32, contents []byte, err error) {
	name, contentsText, ok := strings.Cut(text, "=")
	if !ok {
		return 0, nil, errors.New("expected REGISTER=HEX")
	}
	info, err := x.register(name)
	if err != nil {
		return 0, nil, err
	}
	if !snapshot.IsVector(info) && !strings.HasPrefix(contentsText, "0x") && !strings.HasPrefix(contentsText, "0X") {
		contentsText = "0x" + contentsText
	}
	contents, err = snapshot.ParseRegister(info, x.d.ByteOrder, contentsText)
	return info.Number, contents, err
}

// register finds a register by its name or number.
func (x *Expression) register(name string) (sdk.RegisterInfo, error) {
	if info, ok := x.names.RegisterInfo(name); ok {
		return info, nil
	}
	n, err := strconv.ParseUint(name, 0, 32)
	if err != nil {
		return sdk.RegisterInfo{}, fmt.Errorf("%s has no register %s", x.d.Name, name)
	}
	info, ok := x.d.Register(uint32(n))
	if !ok {
		return sdk.RegisterInfo{}, fmt.Errorf("%s has no register %d", x.d.Name, n)
	}
	return info, nil
}

// piece reads SPACE:ADDR=HEX.
func (x *Expression) piece(text string) (p walk.Piece, err error) {
	place, bytes, ok := strings.Cut(text, "=")
	if !ok {
		return p, errors.New("expected SPACE:ADDR=HEX")
	}
	if p.Space, p.Address, err = x.address(place); err != nil {
		return p, err
	}
	p.Bytes, err = hex.DecodeString(bytes)
	return p, err
}

// address reads SPACE:ADDR.
func (x *Expression) address(text string) (locexpr.AddressSpace, uint64, error) {
	name, number, ok := strings.Cut(text, ":")
	if !ok {
		return 0, 0, fmt.Errorf("%q: expected SPACE:ADDR", text)
	}
	space, ok := x.names.Space(name)
	if !ok {
		n, err := strconv.ParseUint(name, 0, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%s has no address space %s", x.d.Name, name)
		}
		space = locexpr.AddressSpace(n)
		if _, ok := x.d.Space(space); !ok {
			return 0, 0, fmt.Errorf("%s has no address space %d", x.d.Name, n)
		}
	}
	address, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimPrefix(number, "0x"), "0X"), 16, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("address %q: expected hex", number)
	}
	return space, address, nil
}

// surroundings returns the lane, the iteration and the CFA of the job.
func (x *Expression) surroundings() (around walk.Surroundings, err error) {
	around.Lane = x.job.Lane
	if x.job.Iteration != nil {
		iteration := uint64(*x.job.Iteration) //nolint:gosec // checked
		around.Iteration = &iteration
	}
	if x.job.Cfa != "" {
		space, address, err := x.address(x.job.Cfa)
		if err != nil {
			return around, wrong("--cfa: %w", err)
		}
		l := locexpr.MemoryLocation(space, address)
		around.CFA = &l
	}
	return around, nil
}

// parse reads an expression in the canonical dialect. Its offsets have the size of the unit's
// offsets.
func (x *Expression) parse(text string, unit *walk.InUnit) ([]byte, error) {
	options := TextOptions(x.d, locexpr.Canonical, x.names)
	if unit != nil {
		options.AddressSize, options.OffsetSize = unit.Unit.AddressSize(), unit.Unit.OffsetSize()
	}
	return locexpr.Parse(text, options)
}

// kinds are the values of Kind.
var kinds = map[string]locexpr.Kind{"": locexpr.AnyKind, "value": locexpr.ValueKind, "location": locexpr.LocationKind}

// evaluate evaluates the expression, and the object where it needs that.
func (x *Expression) evaluate(ctx context.Context, t *engine.Target, th *trace.Thread, around walk.Surroundings, expr []byte) (*Evaluated, error) {
	out := &report.Evaluation{}
	var objectOf *locexpr.Evaluator
	if x.job.Object != "" {
		object, err := x.parse(x.job.Object, around.Unit)
		if err != nil {
			return nil, wrong("--object: %w", err)
		}
		around.Object = func(ctx context.Context, c locexpr.Context) (locexpr.Location, error) {
			l, err := objectOf.Location(ctx, object, c)
			if err != nil {
				return l, fmt.Errorf("--object: %w", err)
			}
			return l, nil
		}
	}
	names := report.EvalNames{
		Register: x.names.ShortRegisterName,
		Space:    x.names.SpaceName,
		Thread:   func(uint64) string { return th.ID },
	}
	err := t.Process().Evaluate(ctx, th, int(x.job.Frame), around, nil, func(c locexpr.Context, ev *locexpr.Evaluator) error {
		objectOf = ev.Derive() // before the trace is set, which leaves out the object
		if x.job.Trace {
			ev.Names = x.names
			ev.Trace = func(step locexpr.Step) {
				out.Trace = append(out.Trace, report.TraceStep{Offset: step.Offset, Op: step.Op, Stack: step.Stack})
			}
		}
		result, err := ev.Evaluate(ctx, expr, c, kinds[x.job.Kind], x.stack...)
		if err != nil {
			return err
		}
		out.SetResult(result, locexpr.ByteOrder(x.d.ByteOrder), names)
		return x.read(ctx, out, result, c)
	})
	if err != nil {
		out.SetError(err)
	}
	return &Evaluated{Err: err, expression: out}, nil
}

// read reads bits of the result's location.
func (x *Expression) read(ctx context.Context, out *report.Evaluation, result locexpr.Entry, c locexpr.Context) error {
	bits := uint64(x.job.Read)
	if bits == 0 {
		return nil
	}
	if !result.IsLocation() {
		return errors.New("--read: the result is a value, expected a location")
	}
	b := make([]byte, (bits+7)/8)
	if err := result.Location().Read(ctx, c, b, bits); err != nil {
		return fmt.Errorf("reading %d bits: %w", bits, err)
	}
	out.Read = hex.EncodeToString(b)
	return nil
}
