// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// This file reads the variables of frames.

// readLocals reads the variables of the frames of a stack that was walked. A function's
// arguments at the call are found in the frames further out, so all of them must be there.
func (w *walker) readLocals(ctx context.Context) {
	limits := w.process.shared.options.Locals
	if limits == nil {
		return
	}
	for i := range min(w.walked, len(w.stack.Frames)) {
		if ctx.Err() != nil {
			return
		}
		f := w.frames[i]
		if f.module == nil {
			continue
		}
		var list [][]trace.FrameVariable
		err := object.Guard(func() error { list = f.localsOf(ctx, *limits, f.activeLanes()); return nil })
		if err != nil {
			f.module.StateProblem("variables of the frame at %#x: %v", f.offset, err)
		}
		f.readWaiting(ctx, *limits)
		setLocals(&w.stack.Frames[i], list)
		if err := object.Guard(func() error { f.readTailLocals(ctx, *limits); return nil }); err != nil {
			f.module.StateProblem("variables of functions that called that at %#x by tail calls: %v", f.offset, err)
		}
	}
}

// setLocals sets the variables of a frame; nil: there are none.
func setLocals(f *trace.Frame, list [][]trace.FrameVariable) {
	if list == nil {
		return
	}
	if f.Details == nil {
		f.Details = &trace.FrameDetails{}
	}
	f.Details.Locals = list
}

// readTailLocals reads the variables of the functions that called a frame's function by tail
// calls: of most only the arguments are left.
func (f *frame) readTailLocals(ctx context.Context, limits trace.ValueLimits) {
	if f.called == nil {
		return
	}
	out := f.walker.stack.Frames[f.index].TailCallers()
	for i, tail := range f.called.tails {
		setLocals(&out[i], tail.localsOf(ctx, limits, nil))
	}
}

// localsOf returns the variables of a frame by the function that has them; nil where none is
// described. lanes are the lanes to read them for; nil: none.
func (f *frame) localsOf(ctx context.Context, limits trace.ValueLimits, lanes trace.LaneSet) [][]trace.FrameVariable {
	scope := f.module.Code.VariablesIn(f.lookup, f.function())
	if scope == nil {
		return f.pluginLocals(ctx, lanes)
	}
	if scope.Problem != "" {
		f.module.StateProblem("variables of the frame at %#x: %s", f.offset, scope.Problem)
	}
	if scope.HasPlaces {
		f.checkPlaces(ctx, scope.Function)
	}
	if len(scope.List) == 0 {
		return nil
	}
	levels := scope.Levels
	if f.walker.process.shared.options.NoInlines {
		levels = 1
	}
	list := make([][]trace.FrameVariable, levels)
	if lanes == nil {
		r := f.newReader(scope, limits, nil)
		for i := range scope.List {
			level := min(scope.List[i].Level, levels-1)
			if list[level] == nil {
				list[level] = make([]trace.FrameVariable, 0, scope.AlikeFrom(i, levels == 1))
			}
			list[level] = append(list[level], trace.FrameVariable{})
			r.read(ctx, &list[level][len(list[level])-1].Variable, &scope.List[i])
		}
		return list
	}
	f.laneLocals(ctx, list, scope, limits, lanes)
	return list
}

// activeLanes returns the lanes of a wave at the frame's PC; nil for a CPU thread, and where
// none is known to be there.
func (f *frame) activeLanes() trace.LaneSet {
	groups := f.walker.stack.Frames[f.index].Lanes()
	for i := range groups {
		if groups[i].State == trace.LaneActive {
			return groups[i].Lanes
		}
	}
	return nil
}

// localsReader reads the variables of a frame, for a wave as one lane has them.
type localsReader struct {
	u      *unitContext
	reader *value.Reader
	sets   []uint64 // memory for sets of lanes
}

func (f *frame) newReader(scope *code.Variables, limits trace.ValueLimits, lane *uint32) *localsReader {
	u := f.unitContext(scope.Function, lane)
	u.scope = scope
	values := f.walker.process.values
	if f.walker.input.isMapped {
		values = nil // an address of the default space may be another place for each thread
	}
	return &localsReader{u: u, reader: value.NewReader(localsFrame{u}, scope.Function.Unit().Language(), limits, values)}
}

// read reads a variable into v.
func (r *localsReader) read(ctx context.Context, v *trace.Variable, s *code.ScopedVariable) {
	l, err := r.locate(ctx, s)
	r.readAt(ctx, v, s, l, err)
}

// locate finds a variable.
func (r *localsReader) locate(ctx context.Context, s *code.ScopedVariable) (locexpr.Location, error) {
	if s.Problem != nil {
		return locexpr.Location{}, s.Problem
	}
	r.u.isSameThere = r.u.isAlikeAt(s.Location)
	return r.u.locateHere(ctx, s)
}

// readAt reads a variable at its place into v; err is why that is not known.
func (r *localsReader) readAt(ctx context.Context, v *trace.Variable, s *code.ScopedVariable, l locexpr.Location, err error) {
	r.reader.Variable(ctx, v, s.Unit(), s.Name, s.Type, l, unknown(err))
	v.Kind, v.Line, v.IsArtificial, v.IsShadowed = kindOf(s), s.Line, s.IsArtificial, s.IsShadowed
	if len(r.u.frame.walker.machine.Description.AddressSpaces) > 1 {
		v.MemorySpace = s.MemorySpace
	}
}

// checkPlaces reports a DW_AT_return_addr or DW_AT_static_link of a function that gives
// anything but one memory location description, which is ill-formed (A.3.3.5).
func (f *frame) checkPlaces(ctx context.Context, function dwarf.Entry) {
	for _, attr := range []dw.Attr{dw.AttrReturnAddr, dw.AttrStaticLink} {
		l, ok, err := function.Location(attr)
		if !ok && err == nil {
			continue
		}
		var place locexpr.Location
		if err == nil {
			place, err = f.unitContext(function, nil).place(ctx, &l)
		}
		if err == nil && (place.NumPlaces() != 1 || place.Place(0).Storage != locexpr.Memory) && !isNowhereInList(&l, place) {
			err = locexpr.IllFormedError(fmt.Errorf("%s, expected one memory location description", place))
		}
		if err != nil && locexpr.IsIllFormed(err) {
			f.module.StateProblem("%s of the %s: ill-formed: %v", attr, function, err)
		}
	}
}

// isNowhereInList reports whether a location list has nothing for the program location.
func isNowhereInList(l *dwarf.Location, place locexpr.Location) bool {
	return l.Lists != nil && place.IsUndefined()
}

// kindOf returns the kind of variable that an entry describes.
func kindOf(s *code.ScopedVariable) trace.VariableKind {
	switch {
	case s.IsParameter:
		return trace.KindParameter
	case s.Tag() == dw.TagConstant:
		return trace.KindConstant
	case s.IsStatic:
		return trace.KindStatic
	}
	return trace.KindLocal
}

// Select reads a variable, or a part of one, in a physical frame of a thread, 0 being the top
// one: in the innermost function there that has it, else a global of the target. lane is the
// current lane; nil: there is none.
func (p *Process) Select(ctx context.Context, th *trace.Thread, index int, lane *uint32, path value.Path, limits trace.ValueLimits) (v trace.Variable, err error) {
	_, frames := p.Activations(ctx, th)
	if index >= len(frames) {
		return v, fmt.Errorf("%w: %d, the stack has %d", ErrNoFrame, index, len(frames))
	}
	found := false
	guarded := object.Guard(func() error {
		v, found, err = selectIn(ctx, frames, index, lane, path, limits)
		return nil
	})
	if guarded != nil || err != nil || found {
		return v, errors.Join(guarded, err)
	}
	return p.selectGlobal(ctx, th, path, limits)
}

// selectIn reads a part of a variable in a frame, where the lane is in it.
func selectIn(ctx context.Context, frames []Activation, index int, lane *uint32, path value.Path, limits trace.ValueLimits) (v trace.Variable, found bool, err error) {
	f := frames[index].frame
	if lane != nil {
		if f, err = laneFrame(ctx, frames, index, *lane); err != nil {
			return v, false, err
		}
	}
	return f.selected(ctx, lane, path, limits)
}

// selected reads a part of a variable of the frame.
func (f *frame) selected(ctx context.Context, lane *uint32, path value.Path, limits trace.ValueLimits) (v trace.Variable, found bool, err error) {
	if f.module == nil {
		return v, false, nil
	}
	scope := f.module.Code.VariablesIn(f.lookup, f.function())
	if scope == nil {
		return v, false, nil
	}
	for i := range scope.List {
		if s := &scope.List[i]; s.Name == path.Name && !s.IsShadowed {
			v, err = f.newReader(scope, limits, lane).selected(ctx, s, path)
			return v, true, err
		}
	}
	return v, false, nil
}

// selected reads a part of a variable.
func (r *localsReader) selected(ctx context.Context, s *code.ScopedVariable, path value.Path) (v trace.Variable, err error) {
	v = trace.Variable{Kind: kindOf(s), Line: s.Line, Language: s.Unit().Language(), IsArtificial: s.IsArtificial}
	l, err := r.locate(ctx, s)
	if err != nil {
		return v, err
	}
	v.Value, v.Place, err = r.reader.Select(ctx, s.Unit(), path, s.Type, l)
	return v, err
}

// selectGlobal reads a part of a global of the target.
func (p *Process) selectGlobal(ctx context.Context, th *trace.Thread, path value.Path, limits trace.ValueLimits) (v trace.Variable, err error) {
	err = p.eachGlobal(ctx, th, path.Name, func(w *walker, m *code.Module, e dwarf.Entry) (isEnough bool, err error) {
		r := w.globalReader(m, e, limits)
		v, err = r.selected(ctx, code.NewScopedVariable(e), path)
		v.Kind = trace.KindGlobal
		return true, err
	})
	if err == nil && v.Kind == "" {
		err = fmt.Errorf("no variable %s in the frame, and no global of that name", path.Name)
	}
	return v, err
}

// localsFrame adapts a frame for package value.
type localsFrame struct{ u *unitContext }

// unknown turns an error for a value that the program does not keep any more into one for an
// undefined value.
func unknown(err error) error {
	if err != nil && (errors.Is(err, ErrNoCallValue) || errors.Is(err, code.ErrUndefined)) {
		return fmt.Errorf("%w: %w", locexpr.ErrUndefined, err)
	}
	return err
}

func (l localsFrame) Context(unit dwarf.Unit) locexpr.Context { return l.u.context(unit) }

// PointerSpace returns the space that pointers with an address class or the number of a space lead
// to. A class without a space is the default one: compilers of CUDA write more of them.
func (l localsFrame) PointerSpace(number locexpr.AddressSpace) locexpr.AddressSpace {
	classes := l.u.frame.walker.machine.Description.AddressClasses
	if classes == nil {
		return number
	}
	space, _ := spaceOfClass(classes, uint64(number))
	return space
}

// AddressBits returns the size of an address. Spaces that the architecture does not have are as
// large as the default one.
func (l localsFrame) AddressBits(space locexpr.AddressSpace) uint32 {
	d := l.u.frame.walker.machine.Description
	info, ok := d.Space(space)
	switch {
	case space == locexpr.DefaultSpace || !ok:
		return d.AddressBits
	case l.u.hasOwnSpaces:
		return 0
	}
	return info.Bits
}

// about calls f with an object as the current one.
func (l localsFrame) about(object locexpr.Location, f func() error) error {
	previous := l.u.around.Object
	l.u.around.Object = func(context.Context, locexpr.Context) (locexpr.Location, error) { return object, nil }
	defer func() { l.u.around.Object = previous }()
	return f()
}

// Evaluate evaluates an expression or a location list about an object.
func (l localsFrame) Evaluate(ctx context.Context, where *dwarf.Location, object locexpr.Location, initial ...locexpr.Entry) (place locexpr.Location, err error) {
	err = l.about(object, func() error {
		if where.Lists != nil {
			place, err = l.u.place(ctx, where)
			return err
		}
		return l.u.withUnit(where.Unit, func(ev *locexpr.Evaluator) error {
			place, err = ev.Location(ctx, where.Expr, l.u.context(where.Unit), initial...)
			return err
		})
	})
	return place, unknown(err)
}

// Number returns the integer that an expression gives: its value, or the content of the
// location that it gives.
func (l localsFrame) Number(ctx context.Context, where *dwarf.Location, object locexpr.Location) (n int64, err error) {
	err = l.about(object, func() error {
		exprs, err := where.At(l.u.frame.lookup)
		if err != nil {
			return err
		}
		if len(exprs) != 1 {
			return fmt.Errorf("%d expressions here: %w", len(exprs), locexpr.ErrUndefined)
		}
		v, err := l.u.value(ctx, where.Unit, exprs[0])
		n = int64(v.Uint64())
		return err
	})
	return n, unknown(err)
}

// VariableNumber returns the integer in a variable.
func (l localsFrame) VariableNumber(ctx context.Context, variable dwarf.Entry) (int64, error) {
	v, err := l.u.context(variable.Unit()).VariableValue(ctx, variable.Offset())
	if err != nil {
		return 0, unknown(err)
	}
	if t := v.Type(); value.IsSigned(t) && t.Bits < 64 {
		return int64(value.SignExtended(v.Uint64(), uint64(t.Bits))), nil
	}
	return int64(v.Uint64()), nil
}

// Symbol returns the function or the variable at an address.
func (l localsFrame) Symbol(address uint64) (name string, offset uint64) {
	p := l.u.frame.walker.process
	if s := p.Segment(address); s != nil {
		offset := s.ObjectAddress(address)
		if frames := s.Module.Names(offset, true); len(frames) > 0 {
			if f := &frames[len(frames)-1]; f.HasStart && f.Start <= offset {
				return f.Function, offset - f.Start
			}
		}
	}
	if m, offset := p.moduleAt(address); m != nil {
		return m.Code.DataSymbol(offset)
	}
	return "", 0
}

// Module returns the debug information of the module that has an address, and the address in
// it; nil where there is none.
func (l localsFrame) Module(address uint64) (*dwarf.Reader, uint64) {
	if m, offset := l.u.frame.walker.process.moduleAt(address); m != nil {
		return m.Code.DWARF(), offset
	}
	return nil, 0
}

// moduleAt returns the module that has an address, of code or of data, and the address in its
// code object; nil where none has it.
func (p *Process) moduleAt(address uint64) (*code.Module, uint64) {
	for _, m := range p.Loaded() {
		for i := range m.Placed {
			if s := &m.Placed[i]; address-s.Start < s.Size {
				return m, address - s.Start + s.Address
			}
		}
	}
	return nil, 0
}

// Globals reads the variables with a name, in all modules that have debug information.
// Thread-local storage is read for the thread.
func (p *Process) Globals(ctx context.Context, th *trace.Thread, name string, limits trace.ValueLimits) (list []trace.GlobalVariable, err error) {
	err = p.eachGlobal(ctx, th, name, func(w *walker, m *code.Module, e dwarf.Entry) (bool, error) {
		r := w.globalReader(m, e, limits)
		var v trace.Variable
		r.read(ctx, &v, code.NewScopedVariable(e))
		v.Name, v.Kind = e.QualifiedName(), trace.KindGlobal
		list = append(list, trace.GlobalVariable{Variable: v, Module: &m.Module.Module})
		return false, nil
	})
	return list, err
}

// eachGlobal calls one with the variables with a name, in all modules that have debug
// information, until one returns false or an error.
func (p *Process) eachGlobal(ctx context.Context, th *trace.Thread, name string, one func(*walker, *code.Module, dwarf.Entry) (bool, error)) error {
	state := p.stateOf(ctx, th)
	if state == nil || state.arch == nil {
		return errors.New("the thread is none of this target, or its architecture is not known")
	}
	p.rebind(ctx, state)
	w := newWalker(p, p.withoutPC(ctx, state))
	var failed []error
	isEnough := false
	for _, m := range p.Loaded() {
		if m.Arch != th.Arch || isEnough {
			continue
		}
		err := object.Guard(func() error {
			d := m.Code.DWARF()
			if d == nil {
				return nil
			}
			entries, err := d.Globals(name)
			for _, e := range entries {
				if isEnough {
					break
				}
				enough, e := one(w, m, e)
				isEnough, err = enough, errors.Join(err, e)
			}
			return err
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.Path, err))
		}
	}
	return errors.Join(failed...)
}

// globalReader reads variables of a module that are in no frame.
func (w *walker) globalReader(m *code.Module, e dwarf.Entry, limits trace.ValueLimits) *localsReader {
	f := &frame{walker: w, module: m, pc: loadBias(m.Module)}
	u := f.unitContext(dwarf.Entry{}, nil)
	u.around.Module = m.Module
	return &localsReader{u: u, reader: value.NewReader(localsFrame{u}, e.Unit().Language(), limits, nil)}
}
