// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/snapshot"
	"github.com/unwindd/unwindd/engine/value"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// evalFlags are the flags of `unwindd eval`.
type evalFlags struct {
	*globals
	targetFlags
	coreFlags
	arch      string
	expr      string
	snapshot  string
	thread    string
	frame     int
	registers []string
	memory    []string
	cfa       string
	lane      int64
	iteration int64
	object    string
	processor string
	wave      uint32
	kind      string
	read      uint64
	trace     bool
	unit      string
	stack     []string
	variable  string
	limits    value.Limits
}

func newEval(g *globals) *cobra.Command {
	f := &evalFlags{globals: g}
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
  unwindd eval --arch x86_64 --expr 'bregx rbp, -24; deref' --reg rbp=0x1018 --mem global:0x1000=2a00000000000000 --kind value
  unwindd eval --arch amdgpu --expr 'regx v3; LLVM_offset_uconst 20' --wave 32 --trace
  unwindd eval --snapshot crash.snapshot --frame 2 --var 'list->next[0].name'
  unwindd eval --arch x86_64 --unit ./server:0x2d --expr 'fbreg -24' --reg rip=0x1139 --reg rbp=0x7ffc0000`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	f.targetFlags.add(flags)
	f.coreFlags.add(flags)
	flags.StringVar(&f.arch, "arch", "", "the architecture `A`")
	flags.StringVar(&f.expr, "expr", "", "the expression, as `TEXT`")
	flags.StringVar(&f.snapshot, "snapshot", "", "take the state from the snapshot `F`")
	flags.StringVar(&f.thread, "thread", "", "evaluate in the snapshot's thread `ID`")
	flags.IntVar(&f.frame, "frame", 0, "evaluate in frame `N` of the thread")
	flags.StringArrayVar(&f.registers, "reg", nil, "a register's contents: `REGISTER=HEX`; may be repeated")
	flags.StringArrayVar(&f.memory, "mem", nil, "memory: `SPACE:ADDR=HEX`, the bytes in order; may be repeated")
	flags.StringVar(&f.cfa, "cfa", "", "the frame's CFA: `SPACE:ADDR`")
	flags.Int64Var(&f.lane, "lane", -1, "the current lane is `N`")
	flags.Int64Var(&f.iteration, "iteration", -1, "the current iteration is `N`")
	flags.StringVar(&f.object, "object", "", "the current object is at the location `EXPR`")
	flags.StringVar(&f.processor, "processor", "", "the processor `P`")
	flags.Uint32Var(&f.wave, "wave", 0, "lanes of the thread: 32 or 64 (by processor)")
	flags.StringVar(&f.kind, "kind", "", "the result is a `KIND`: value or location")
	flags.Uint64Var(&f.read, "read", 0, "also read `BITS` bits of the location")
	flags.StringVar(&f.unit, "unit", "", "the expression is of the unit at `FILE:OFFSET` of .debug_info")
	flags.StringArrayVar(&f.stack, "stack", nil, "a `VALUE` on the stack before the expression, the bottom first; may be repeated")
	flags.BoolVar(&f.trace, "trace", false, "say what is on the stack after each operation")
	flags.StringVar(&f.variable, "var", "", "print a variable of the frame, or a part of it, such as `a.b[3]`")
	addLimits(flags, &f.limits)
	return cmd
}

func (f *evalFlags) check(cmd *cobra.Command) error {
	if err := f.checkFormat("text", "json"); err != nil {
		return err
	}
	if f.variable != "" {
		if err := f.checkVariable(cmd); err != nil {
			return err
		}
	}
	switch {
	case f.variable != "":
	case f.arch == "":
		return usageError{errors.New("--arch is missing")}
	case !cmd.Flags().Changed("expr"):
		return usageError{errors.New("--expr is missing")}
	case f.kind != "" && f.kind != "value" && f.kind != "location":
		return usageError{fmt.Errorf("--kind %s: expected value or location", f.kind)}
	case f.snapshot == "" && (f.thread != "" || f.frame != 0):
		return usageError{errors.New("--thread and --frame need --snapshot")}
	case f.frame < 0:
		return usageError{fmt.Errorf("--frame %d: expected 0 or more", f.frame)}
	case f.snapshot != "" && (len(f.registers) > 0 || len(f.memory) > 0):
		return usageError{errors.New("--reg and --mem do not go with --snapshot")}
	case cmd.Flags().Changed("lane") && (f.lane < 0 || f.lane > math.MaxInt32):
		return usageError{fmt.Errorf("--lane %d: expected 0 to %d", f.lane, math.MaxInt32)}
	case cmd.Flags().Changed("iteration") && f.iteration < 0:
		return usageError{fmt.Errorf("--iteration %d: expected 0 or more", f.iteration)}
	case f.read > 1<<23:
		return usageError{fmt.Errorf("--read %d: expected at most %d bits", f.read, 1<<23)}
	}
	return nil
}

// newEngine makes an engine that finds files as the flags say. end closes it.
func (f *evalFlags) newEngine(o engine.Options) (e *engine.Engine, end func(), err error) {
	if err := f.targetFlags.check(); err != nil {
		return nil, nil, err
	}
	if o.Plugins, err = f.plugins(); err != nil {
		return nil, nil, err
	}
	remote, symbols, hangUp, err := f.remotes(f.log())
	if err != nil {
		return nil, nil, err
	}
	o.Sysroot, o.Exe, o.DebugDirs, o.DeviceCore, o.Remote, o.Symbols = f.sysroot, f.exe, f.debugDirs, f.gpuCore, remote, symbols
	if e, err = engine.New(o); err != nil {
		hangUp()
		return nil, nil, err
	}
	return e, func() { _ = e.Close(); hangUp() }, nil
}

func (f *evalFlags) run(cmd *cobra.Command) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	if f.variable != "" {
		return f.runVariable(cmd)
	}
	e, end, err := f.newEngine(engine.Options{NoSymbols: true})
	if err != nil {
		return err
	}
	defer end()
	a, err := e.Plugins().Find(f.arch)
	if err != nil {
		return err
	}
	d := a.Description()
	lanes, err := f.lanes(d)
	if err != nil {
		return usageError{err}
	}
	s := &evalState{flags: f, d: d, names: d.Names(lanes), order: locexpr.ByteOrder(d.ByteOrder)}
	if s.stack, err = s.parseStack(); err != nil {
		return usageError{err}
	}
	if f.unit != "" {
		if s.unit, err = parseUnit(f.unit); err != nil {
			return usageError{err}
		}
		f.reads(s.unit.path)
		if err := errors.Join(f.notOverInput(f.output), s.unit.open(s, e)); err != nil {
			return err
		}
		defer s.unit.module.Object.Close()
	}
	t, th, err := s.open(e, lanes)
	if err != nil {
		return err
	}
	result, err := s.evaluateText(cmd.Context(), t, th)
	if result == nil {
		return err
	}
	evalErr := err
	err = f.write(func(w *writer) error {
		if f.format == "json" {
			return result.WriteJSON(w) // which has the error
		}
		return errors.Join(evalErr, result.WriteText(w))
	})
	if f.format == "json" {
		err = errors.Join(evalErr, err)
	}
	return err
}

// fail returns the error for an expression that cannot be read. With --format
// json it writes the error as the result, too.
func (f *evalFlags) fail(err error) error {
	if f.format != "json" {
		return err
	}
	var e report.Evaluation
	e.SetError(err)
	e.Error.Kind = "ill-formed"
	return errors.Join(err, f.write(func(w *writer) error { return e.WriteJSON(w) }))
}

// lanes returns how many lanes the thread has by --wave and --processor; 0 where
// neither says it.
func (f *evalFlags) lanes(d *sdk.Description) (uint32, error) {
	if f.wave != 0 && f.wave != 32 && f.wave != 64 {
		return 0, fmt.Errorf("--wave %d: expected 32 or 64", f.wave)
	}
	p, known := d.Processor(f.processor)
	switch {
	case !known && f.processor != "":
		return 0, fmt.Errorf("--processor %s: %s has none of that name", f.processor, d.Name)
	case !known || len(p.Lanes) == 0:
		return f.wave, nil
	case f.wave == 0:
		return p.Lanes[0], nil
	case !slices.Contains(p.Lanes, f.wave):
		return 0, fmt.Errorf("--wave %d: %s has waves of %v lanes", f.wave, f.processor, p.Lanes)
	}
	return f.wave, nil
}

// evalState is what an evaluation is about.
type evalState struct {
	flags *evalFlags
	d     *sdk.Description
	names sdk.Names
	order locexpr.ByteOrder
	unit  *unitFlag       // nil: none
	stack []locexpr.Entry // before the expression
}

// parse reads an expression in the canonical dialect. Offsets in it are as large as those
// of the unit.
func (s *evalState) parse(text string, in *engine.InUnit) ([]byte, error) {
	options := textOptions(s.d, locexpr.Canonical, s.names)
	if in != nil {
		options.AddressSize, options.OffsetSize = in.Unit.AddressSize(), in.Unit.OffsetSize()
	}
	return locexpr.Parse(text, options)
}

// evaluateText evaluates the expression of the command line. There is no result where it
// was not evaluated.
func (s *evalState) evaluateText(ctx context.Context, t *engine.Target, th *target.Thread) (*report.Evaluation, error) {
	around, err := s.surroundings()
	if err != nil {
		return nil, err
	}
	if s.unit != nil {
		if err := s.unit.surround(t, &around); err != nil {
			return nil, err
		}
	}
	expr, err := s.parse(s.flags.expr, around.Unit)
	if err != nil {
		return nil, s.flags.fail(fmt.Errorf("--expr: %w", err))
	}
	return s.evaluate(ctx, t, th, around, expr)
}

// open gives the thread to evaluate in.
func (s *evalState) open(e *engine.Engine, lanes uint32) (*engine.Target, *target.Thread, error) {
	if s.flags.snapshot == "" {
		return s.synthetic(e, lanes)
	}
	t, err := e.Open(s.flags.snapshot)
	if err != nil {
		return nil, nil, err
	}
	th, err := s.flags.findThread(t)
	if err != nil {
		return nil, nil, err
	}
	if th.Lanes != 0 {
		s.names = s.d.Names(th.Lanes)
	}
	return t, th, nil
}

func (s *evalState) synthetic(e *engine.Engine, lanes uint32) (*engine.Target, *target.Thread, error) {
	state := &engine.Synthetic{Arch: s.d.Name, Processor: s.flags.processor, Lanes: lanes}
	if s.unit != nil {
		state.Loaded = []*target.Module{s.unit.module}
	}
	for _, text := range s.flags.registers {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, nil, usageError{fmt.Errorf("--reg %s: expected REGISTER=HEX", text)}
		}
		info, err := s.register(name)
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("--reg %s: %w", text, err)}
		}
		if !snapshot.IsVector(info) && !strings.HasPrefix(value, "0x") && !strings.HasPrefix(value, "0X") {
			value = "0x" + value
		}
		b, err := snapshot.ParseRegister(info, s.d.ByteOrder, value)
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("--reg %s: %w", text, err)}
		}
		state.Registers.Set(info.Number, b)
	}
	for _, text := range s.flags.memory {
		place, bytes, ok := strings.Cut(text, "=")
		if !ok {
			return nil, nil, usageError{fmt.Errorf("--mem %s: expected SPACE:ADDR=HEX", text)}
		}
		space, address, err := s.address(place)
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("--mem %s: %w", text, err)}
		}
		b, err := hex.DecodeString(bytes)
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("--mem %s: %w", text, err)}
		}
		state.Memory = append(state.Memory, engine.Piece{Space: space, Address: address, Bytes: b})
	}
	return e.Attach(state), state.Thread(), nil
}

// register is the register of a name or number.
func (s *evalState) register(name string) (sdk.RegisterInfo, error) {
	if info, ok := s.names.RegisterInfo(name); ok {
		return info, nil
	}
	n, err := strconv.ParseUint(name, 0, 32)
	if err != nil {
		return sdk.RegisterInfo{}, fmt.Errorf("%s has no register %s", s.d.Name, name)
	}
	info, ok := s.d.Register(uint32(n))
	if !ok {
		return sdk.RegisterInfo{}, fmt.Errorf("%s has no register %d", s.d.Name, n)
	}
	return info, nil
}

// address reads SPACE:ADDR.
func (s *evalState) address(text string) (locexpr.AddressSpace, uint64, error) {
	name, number, ok := strings.Cut(text, ":")
	if !ok {
		return 0, 0, fmt.Errorf("%q: expected SPACE:ADDR", text)
	}
	space, ok := s.names.Space(name)
	if !ok {
		n, err := strconv.ParseUint(name, 0, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%s has no address space %s", s.d.Name, name)
		}
		space = locexpr.AddressSpace(n)
		if _, ok := s.d.Space(space); !ok {
			return 0, 0, fmt.Errorf("%s has no address space %d", s.d.Name, n)
		}
	}
	address, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimPrefix(number, "0x"), "0X"), 16, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("address %q: expected hex", number)
	}
	return space, address, nil
}

// surroundings is what the flags say of the lane, the iteration and the CFA.
func (s *evalState) surroundings() (around engine.Surroundings, err error) {
	if s.flags.lane >= 0 {
		lane := uint32(s.flags.lane)
		around.Lane = &lane
	}
	if s.flags.iteration >= 0 {
		iteration := uint64(s.flags.iteration)
		around.Iteration = &iteration
	}
	if s.flags.cfa != "" {
		space, address, err := s.address(s.flags.cfa)
		if err != nil {
			return around, usageError{fmt.Errorf("--cfa: %w", err)}
		}
		l := locexpr.MemoryLocation(space, address)
		around.CFA = &l
	}
	return around, nil
}

// evaluate evaluates the expression, and the object before it.
func (s *evalState) evaluate(ctx context.Context, t *engine.Target, th *target.Thread, around engine.Surroundings, expr []byte) (*report.Evaluation, error) {
	out := &report.Evaluation{}
	if s.flags.trace {
		out.Trace = []report.TraceStep{}
	}
	var object []byte
	var err error
	if s.flags.object != "" {
		if object, err = s.parse(s.flags.object, around.Unit); err != nil {
			return out, usageError{fmt.Errorf("--object: %w", err)}
		}
	}
	names := report.EvalNames{
		Register: s.names.ShortRegisterName,
		Space:    s.names.SpaceName,
		Thread:   func(uint64) string { return th.ID },
	}
	var objectOf *locexpr.Evaluator
	if object != nil {
		around.Object = func(c locexpr.Context) (locexpr.Location, error) {
			l, err := objectOf.Location(object, c)
			if err != nil {
				return l, fmt.Errorf("--object: %w", err)
			}
			return l, nil
		}
	}
	err = t.Evaluate(ctx, th, s.flags.frame, around, nil, func(c locexpr.Context, ev *locexpr.Evaluator) error {
		objectOf = ev.Derive() // before there is a trace, which is not of the object
		if s.flags.trace {
			ev.Trace = func(step locexpr.Step) {
				out.Trace = append(out.Trace, report.TraceStep{Offset: step.Offset, Op: step.Op, Stack: step.Stack})
			}
			ev.Names = s.names
		}
		kind := map[string]locexpr.Kind{"": locexpr.AnyKind, "value": locexpr.ValueKind, "location": locexpr.LocationKind}[s.flags.kind]
		result, err := ev.Evaluate(expr, c, kind, s.stack...)
		if err != nil {
			return err
		}
		out.SetResult(result, s.order, names)
		return s.read(out, result, c)
	})
	if err != nil {
		out.SetError(err)
	}
	return out, err
}

// read reads bits of the result's location.
func (s *evalState) read(out *report.Evaluation, result locexpr.Entry, c locexpr.Context) error {
	if s.flags.read == 0 {
		return nil
	}
	if !result.IsLocation() {
		return errors.New("--read: the result is a value, expected a location")
	}
	b := make([]byte, (s.flags.read+7)/8)
	if err := result.Location().Read(c, b, s.flags.read); err != nil {
		return fmt.Errorf("reading %d bits: %w", s.flags.read, err)
	}
	out.Read = hex.EncodeToString(b)
	return nil
}
