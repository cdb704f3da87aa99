// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/locexpr"
)

// Thousands of waves wait at a few places of a kernel, with the same masks in the registers that
// its lane attributes read: they are evaluated once for all of these.

// laneAnswers are the results of the lane attributes at a place of code.
type laneAnswers struct {
	told   bool         // DW_AT_LLVM_active_lane has mask
	mask   []laneAnswer // shared: it is not changed
	places []lanePlace  // likewise
	inputs []laneInput  // on which they depend, apart from the place
}

// laneInput is a register that an evaluation has read.
type laneInput struct {
	register    uint64
	bits        uint32
	isRegister  bool // the architecture has it
	content     []byte
	isAvailable bool // the target has content
}

// laneInput returns a register of the top frame.
func (f *frame) laneInput(reg uint64) laneInput {
	in := laneInput{register: reg}
	in.bits, in.isRegister = frameContext{frame: f}.RegisterBits(reg)
	in.content, in.isAvailable = f.walker.topRegister(reg)
	return in
}

// have reports whether the frame has the contents that answers depend on.
func (a *laneAnswers) have(f *frame) bool {
	for i := range a.inputs {
		known := &a.inputs[i]
		in := f.laneInput(known.register)
		if in.bits != known.bits || in.isRegister != known.isRegister || in.isAvailable != known.isAvailable || !bytes.Equal(in.content, known.content) {
			return false
		}
	}
	return true
}

// size returns about how much memory answers take.
func (a *laneAnswers) size() int {
	n := 200 + len(a.mask) + 16*len(a.places)
	for i := range a.inputs {
		n += 64 + len(a.inputs[i].content)
	}
	return n
}

const (
	// maxLaneAnswers is how many answers are kept for a place, and how often it is tried.
	maxLaneAnswers = 16
	// maxLaneAnswerBytes bounds the memory of the answers of a process.
	maxLaneAnswerBytes = 16 << 20
)

// lanesPlace is a place of code that the threads of a machine have in common.
type lanesPlace struct {
	module     *code.Module
	machine    *machine
	pc, lookup uint64
	lanes      uint32
}

// knownLanes are the answers at a place that are known.
type knownLanes struct {
	plan  placesPlan    // nil: there is none
	list  []laneAnswers // only appended to
	tries int
}

// laneMemory remembers answers of a process.
type laneMemory struct {
	mu    sync.RWMutex
	known map[lanesPlace]*knownLanes
	bytes int
}

// plan returns the plan of a frame's place, which is made once; nil: there is none.
func (m *laneMemory) plan(key lanesPlace, f *frame, d *code.LaneAttributes) placesPlan {
	m.mu.RLock()
	known, isFull := m.known[key], m.bytes >= maxLaneAnswerBytes
	m.mu.RUnlock()
	if known != nil {
		return known.plan
	}
	if isFull {
		return nil
	}
	plan := f.planPlaces(d, key.lanes)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[lanesPlace]*knownLanes{}
	}
	if m.known[key] == nil {
		m.known[key] = &knownLanes{plan: plan}
		m.bytes += 500 + 500*len(plan)
	}
	return plan
}

// find returns the answers for a frame; nil where they are not known. isFull is true where no more
// will be added for its place.
func (m *laneMemory) find(key lanesPlace, f *frame) (a *laneAnswers, isFull bool) {
	m.mu.RLock()
	var list []laneAnswers
	if known := m.known[key]; known != nil {
		list, isFull = known.list, known.tries >= maxLaneAnswers
	}
	isFull = isFull || m.bytes >= maxLaneAnswerBytes
	m.mu.RUnlock()
	for i := range list {
		if list[i].have(f) {
			return &list[i], isFull
		}
	}
	return nil, isFull
}

// add remembers answers; nil: there are none that may be kept.
func (m *laneMemory) add(key lanesPlace, a *laneAnswers) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.known[key]
	if known == nil {
		if m.known == nil {
			m.known = map[lanesPlace]*knownLanes{}
		}
		known = &knownLanes{}
		m.known[key] = known
		m.bytes += 200
	}
	known.tries++
	if a != nil && len(known.list) < maxLaneAnswers {
		known.list = append(known.list, *a)
		m.bytes += a.size()
	}
}

// laneAnswers returns the results of the lane attributes at a frame's place.
func (f *frame) laneAnswers(ctx context.Context, d *code.LaneAttributes, lanes uint32) *laneAnswers {
	if d.Active == nil && len(d.Scopes) == 0 || f.callee != nil || f.base != nil || f.place != nil || len(f.callSite) > 0 {
		return laneEvaluation{frame: f}.answers(ctx, d, lanes)
	}
	memory := &f.walker.process.lanes
	key := lanesPlace{f.module, f.walker.machine, f.pc, f.lookup, lanes}
	if plan := memory.plan(key, f, d); plan != nil {
		if a := plan.answers(f, lanes); a != nil {
			return a
		}
	}
	known, isFull := memory.find(key, f)
	if known != nil {
		return known
	}
	if isFull {
		return laneEvaluation{frame: f}.answers(ctx, d, lanes)
	}
	e := laneEvaluation{f, &laneInputs{}}
	a := e.answers(ctx, d, lanes)
	if e.inputs.isUnknown {
		memory.add(key, nil)
		return laneEvaluation{frame: f}.answers(ctx, d, lanes)
	}
	a.inputs = e.inputs.list
	memory.add(key, a)
	return a
}

// laneInputs records the registers that evaluations read.
type laneInputs struct {
	list []laneInput
	// isUnknown is true where the result depends on something else, or is an error.
	isUnknown bool
}

// note records a register of the top frame.
func (n *laneInputs) note(f *frame, reg uint64) {
	for i := range n.list {
		if n.list[i].register == reg {
			return
		}
	}
	in := f.laneInput(reg)
	in.content = bytes.Clone(in.content)
	n.list = append(n.list, in)
}

// other is the error for a part of the context that is not recorded.
func (n *laneInputs) other(name string) error {
	n.isUnknown = true
	return errNoElement(name)
}

// recordedContext is the context of a unit's expressions in a top frame, of which only registers
// are read: they are recorded. It implements all interfaces of inUnit.
type recordedContext struct {
	c      *inUnit
	inputs *laneInputs
}

var _ interface {
	locexpr.Context
	locexpr.AddressContext
	locexpr.CallContext
	locexpr.CFAContext
	locexpr.EntryContext
	locexpr.EntryRegisterContext
	locexpr.EntryValueContext
	locexpr.FloatContext
	locexpr.FrameBaseContext
	locexpr.IterationContext
	locexpr.LaneContext
	locexpr.LocationContext
	locexpr.ObjectContext
	locexpr.ParameterContext
	locexpr.RegisterContext
	locexpr.SpaceContext
	locexpr.TLSContext
	locexpr.TypeContext
	locexpr.VariableContext
} = recordedContext{}

// Register returns where a register of the top frame is.
func (r recordedContext) Register(ctx context.Context, reg uint64) (locexpr.Location, error) {
	if _, isOne, _ := r.c.intermediate(ctx, reg); isOne {
		return locexpr.Location{}, r.inputs.other("register of an intermediate language")
	}
	r.inputs.note(r.c.u.frame, reg)
	return r.c.Register(ctx, reg)
}

// RegisterValue returns the value in a register of the top frame.
func (r recordedContext) RegisterValue(ctx context.Context, reg uint64) (uint64, error) {
	if _, isOne, _ := r.c.intermediate(ctx, reg); isOne {
		return 0, r.inputs.other("register of an intermediate language")
	}
	r.inputs.note(r.c.u.frame, reg)
	return r.c.RegisterValue(ctx, reg)
}

// ReadRegister reads bits of a register.
func (r recordedContext) ReadRegister(ctx context.Context, reg uint64, scope locexpr.Scope, dst []byte, bitOffset, bits uint64) error {
	r.inputs.note(r.c.u.frame, reg)
	return r.c.ReadRegister(ctx, reg, scope, dst, bitOffset, bits)
}

// RegisterBits returns the size of a register.
func (r recordedContext) RegisterBits(reg uint64) (uint32, bool) {
	r.inputs.note(r.c.u.frame, reg)
	return r.c.RegisterBits(reg)
}

// CallEntry returns the effect of DW_OP_call* on an entry.
func (r recordedContext) CallEntry(ctx context.Context, ref locexpr.EntryRef) (locexpr.Callee, error) {
	callee, err := r.c.CallEntry(ctx, ref)
	if callee.Context != nil {
		within, ok := callee.Context.(*inUnit)
		if !ok {
			return locexpr.Callee{}, r.inputs.other(fmt.Sprintf("context %T", callee.Context))
		}
		callee.Context = recordedContext{within, r.inputs}
	}
	return callee, err
}

// Parts that are the same for all threads of a machine at one place.

func (r recordedContext) Addrx(index uint64) (uint64, error) { return r.c.Addrx(index) }
func (r recordedContext) BaseType(offset uint64) (*locexpr.BaseType, error) {
	return r.c.BaseType(offset)
}
func (r recordedContext) ByteOrder() locexpr.ByteOrder { return r.c.ByteOrder() }
func (r recordedContext) FloatFormat(t *locexpr.BaseType) locexpr.FloatFormat {
	return r.c.FloatFormat(t)
}
func (r recordedContext) Lane() (lane, lanes uint64, err error)           { return r.c.Lane() }
func (r recordedContext) LargestSpaceBits() uint32                        { return r.c.LargestSpaceBits() }
func (r recordedContext) NarrowIn(reg uint64) locexpr.Narrow              { return r.c.NarrowIn(reg) }
func (r recordedContext) ProgramLocation() (uint64, error)                { return r.c.ProgramLocation() }
func (r recordedContext) Scope() locexpr.Scope                            { return r.c.Scope() }
func (r recordedContext) SpaceBits(s locexpr.AddressSpace) (uint32, bool) { return r.c.SpaceBits(s) }

// Parts that depend on more than registers.

func (r recordedContext) CFA() (locexpr.Location, error) {
	return locexpr.Location{}, r.inputs.other("CFA")
}

func (r recordedContext) CallFrameEntryRegister(context.Context, uint64) (locexpr.Location, error) {
	return locexpr.Location{}, r.inputs.other("register on entry")
}

func (r recordedContext) EntryLocation(context.Context, uint64) (locexpr.Location, error) {
	return locexpr.Location{}, r.inputs.other("entry")
}

func (r recordedContext) EntryValue(context.Context, []byte) (locexpr.Value, error) {
	return locexpr.Value{}, r.inputs.other("value on entry")
}

func (r recordedContext) FrameBase(context.Context) (locexpr.Location, error) {
	return locexpr.Location{}, r.inputs.other("frame base")
}

func (r recordedContext) Iteration(context.Context) (iteration, iterations uint64, err error) {
	return 0, 0, r.inputs.other("iteration")
}

func (r recordedContext) Object(context.Context) (locexpr.Location, error) {
	return locexpr.Location{}, r.inputs.other("object")
}

func (r recordedContext) ParameterValue(context.Context, uint64) (locexpr.Value, error) {
	return locexpr.Value{}, r.inputs.other("parameter")
}

func (r recordedContext) ReadMemory(context.Context, locexpr.AddressSpace, locexpr.Scope, uint64, []byte) error {
	return r.inputs.other("memory")
}

func (r recordedContext) TLS(context.Context, uint64) (locexpr.Location, error) {
	return locexpr.Location{}, r.inputs.other("thread-local storage")
}

func (r recordedContext) VariableValue(context.Context, uint64) (locexpr.Value, error) {
	return locexpr.Value{}, r.inputs.other("variable")
}
