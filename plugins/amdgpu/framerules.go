// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// FrameRules finds the rows of functions by reading their code, and that of the
// functions which they call: compilers of whole programs leave values across a
// call in registers that the convention would let it change, because they know
// that it does not, and let functions that are only called directly change
// registers that the convention would have them preserve.
//
// A function is followed from its first instruction over all its branches. Its
// rows cover every instruction at which it is certain where the return address
// and the frame are. The row has a rule for each register whose place is certain,
// in the lanes that were active on entry or in the others; all else is undefined.
func (a architecture) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	answer := &sdk.FrameRulesAnswer{Functions: make([]sdk.FrameRules, len(req.Functions))}
	o := a.objects.find(req.Object)
	if o == nil && req.Object != 0 {
		return nil, fmt.Errorf("object %#x: %w", req.Object, sdk.ErrObjectNotOpen)
	}
	for i := range req.Functions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		answer.Functions[i] = o.frameRules(ctx, e, req.Object, &req.Functions[i])
	}
	if err := ctx.Err(); err != nil {
		return nil, err // the code may have been incomplete
	}
	return answer, nil
}

// objects has the code objects that were opened.
type objects struct {
	mu       sync.Mutex
	byHandle map[uint64]*objectCode
	handles  []uint64 // the least recently used first
}

// unknownProcessor is the reason of an object of an unknown processor.
const unknownProcessor = "which processor the code is for is not known"

// maxObjects bounds the objects that are remembered, maxObjectCode the bytes of
// code of one. The least recently used object is forgotten first.
const (
	maxObjects    = 1 << 10
	maxObjectCode = 64 << 20
)

// objectCode is the code of an object, and the functions found in it. It is
// read when it is first needed.
type objectCode struct {
	processor *processor
	lanes     uint32 // 0: waves of both sizes, or not known
	sections  []sdk.SectionInfo
	starts    []uint64 // of functions with symbols, sorted
	steps     int      // the limit for a function

	mu       sync.Mutex
	isLoaded bool
	code     code
	layout   *layout // nil: not read yet
	read     map[machineKey]*functions
	failed   map[uint64]string // functions that could not be followed, by their first instruction
	known    map[readingKey]*functionRows
	rules    int         // in known
	frames   *frameCheck // nil: there is no call frame information
}

// readingKey identifies a function that was read, and the mode of reading.
type readingKey struct {
	entry      uint64
	lanes      uint32
	isJumpedTo bool // from outside the requested code
}

// functionRows are the rows of all code of a function, and the gaps between them.
type functionRows struct {
	rows   []cfi.Row
	gaps   []gap
	reason string // of code that is in neither

	contradictions []gap // where call frame information contradicts the code
}

// maxKnownRules bounds the rules of rows that an object remembers.
const maxKnownRules = 1 << 19

type machineKey struct {
	lanes     uint32
	isPerLane bool
}

// remember keeps the facts about an object that FrameRules needs.
func (o *objects) remember(handle uint64, req *sdk.OpenObjectRequest, answer *sdk.OpenObjectAnswer, functions []span, frames *frameCheck) {
	c := &objectCode{steps: maxSteps, frames: frames}
	if req.Machine == machine {
		c.processor = cmp.Or(processorNamed(answer.Processor), processorNamed(req.Processor))
	}
	for _, f := range functions {
		c.starts = append(c.starts, f.start)
	}
	for i := range answer.Functions {
		switch lanes := answer.Functions[i].Lanes; {
		case i == 0:
			c.lanes = lanes
		case c.lanes != lanes:
			c.lanes = 0
		}
	}
	for _, s := range req.Sections {
		if s.Flags&flagExec != 0 && s.Type != sectionNoBits && s.Size > 0 {
			c.sections = append(c.sections, s)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byHandle[handle] = c
	o.touch(handle)
	if len(o.handles) > maxObjects {
		delete(o.byHandle, o.handles[0])
		o.handles = o.handles[1:]
	}
}

func (o *objects) find(handle uint64) *objectCode {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.byHandle[handle]
	if c != nil {
		o.touch(handle)
	}
	return c
}

// touch makes an object the most recently used.
func (o *objects) touch(handle uint64) {
	if i := slices.Index(o.handles, handle); i >= 0 {
		o.handles = slices.Delete(o.handles, i, i+1)
	}
	o.handles = append(o.handles, handle)
}

// load reads the code of the object. In a relocatable object addresses count from the
// beginning of a section. If several sections overlap for this reason, no code is read.
func (o *objectCode) load(ctx context.Context, e sdk.Engine, handle uint64) {
	if o.isLoaded || o.processor == nil {
		return
	}
	o.isLoaded = true
	o.read, o.failed = map[machineKey]*functions{}, map[uint64]string{}
	left, seen := uint64(maxObjectCode), map[string]bool{}
	for _, s := range o.sections {
		if s.Size > left || seen[s.Name] || e == nil {
			continue
		}
		seen[s.Name] = true
		data, err := e.ReadSection(ctx, handle, s.Name)
		if ctx.Err() != nil {
			o.isLoaded, o.code = false, nil // the next call may have a later deadline
			return
		}
		if err != nil || uint64(len(data)) != s.Size || s.Address+s.Size < s.Address {
			continue
		}
		left -= s.Size
		o.code = append(o.code, codeSection{s.Address, data})
	}
	slices.SortStableFunc(o.code, func(a, b codeSection) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(o.code); i++ {
		if before := &o.code[i-1]; before.start+uint64(len(before.data)) > o.code[i].start {
			o.code = nil
			return
		}
	}
}

func (o *objectCode) frameRules(ctx context.Context, e sdk.Engine, handle uint64, r *sdk.CodeRange) sdk.FrameRules {
	size := uint64(len(r.Code))
	switch {
	case r.PC < r.Start || r.PC-r.Start >= size:
		return sdk.FrameRules{Reason: fmt.Sprintf("the code at %#x, %d bytes, does not hold the PC %#x", r.Start, size, r.PC)}
	case r.Start+size < r.Start:
		return sdk.FrameRules{Reason: fmt.Sprintf("the code at %#x, %d bytes, goes past the end of the address space", r.Start, size)}
	case o == nil:
		return sdk.FrameRules{Reason: unknownProcessor}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.load(ctx, e, handle)
	f := o.function(r)
	rules := sdk.FrameRules{Rows: f.rows, Gaps: fillGaps(f.rows, f.gaps, r.Start, r.Start+size, f.reason), Complete: true}
	for _, c := range f.contradictions {
		rules.Contradictions = append(rules.Contradictions, sdk.RowGap{Start: c.start, End: c.end, Reason: c.reason})
	}
	rules.Reason = rules.GapReason(r.PC)
	if !r.Bounded {
		rules.Gaps = nil // code that is not reached may be other functions
	}
	return rules
}

// fillGaps returns all parts of [start, end) that no row covers. Rows and gaps are sorted.
// reason is the reason of the parts that no gap covers either.
func fillGaps(rows []cfi.Row, gaps []gap, start, end uint64, reason string) (filled []sdk.RowGap) {
	add := func(start, end uint64, reason string) {
		if start >= end {
			return
		}
		if n := len(filled); n > 0 && filled[n-1].End == start && filled[n-1].Reason == reason {
			filled[n-1].End = end
			return
		}
		filled = append(filled, sdk.RowGap{Start: start, End: end, Reason: reason})
	}
	next := start
	hole := func(end uint64) {
		for ; len(gaps) > 0 && gaps[0].start < end; gaps = gaps[1:] {
			g := &gaps[0]
			add(next, g.start, reason)
			add(max(next, g.start), min(end, g.end), g.reason)
			if next = max(next, min(end, g.end)); g.end > end {
				break // the rest of it may lie beyond the row
			}
		}
		add(next, end, reason)
	}
	for i := range rows {
		hole(rows[i].Start)
		next = rows[i].End
	}
	hole(end)
	return filled
}

// function finds the rows of a function and the gaps between them, within the requested
// code.
func (o *objectCode) function(r *sdk.CodeRange) functionRows {
	none := func(reason string) functionRows { return functionRows{reason: reason} }
	if o.processor == nil {
		return none(unknownProcessor)
	}
	whole := o.code.hasCode(r.Start, r.Code)
	mode, err := o.mode(o.waveSize(r), o.processor.scratch == architectedScratch)
	if err != nil {
		return none(err.Error())
	}
	entry, reason := o.entry(r, whole, &mode)
	if reason != "" {
		return none(reason)
	}
	if !whole {
		found, err := o.readRows(r, entry, nil, mode)
		if err != nil {
			return none(err.Error())
		}
		return found.within(r)
	}
	if reason := o.failed[entry]; reason != "" {
		return none(reason)
	}
	key := readingKey{entry, mode.lanes, o.isJumpedTo(r, entry)}
	found := o.known[key]
	if found == nil {
		if found, err = o.readRows(r, entry, o.frames, mode); err != nil {
			o.failed[entry] = err.Error()
			return none(err.Error())
		}
		o.remember(key, found)
	}
	return found.within(r)
}

// remember keeps the rows of a function. It forgets all others where there are too many.
func (o *objectCode) remember(key readingKey, found *functionRows) {
	rules := 1
	for i := range found.rows {
		rules += len(found.rows[i].Rules)
	}
	if o.rules += rules; o.rules > maxKnownRules || o.known == nil {
		o.known, o.rules = map[readingKey]*functionRows{}, rules
	}
	o.known[key] = found
}

// within returns the rows and gaps within a range of code.
func (f *functionRows) within(r *sdk.CodeRange) functionRows {
	start, end := r.Start, r.Start+uint64(len(r.Code))
	part := functionRows{reason: f.reason}
	for _, row := range f.rows {
		if row.Start, row.End = max(row.Start, start), min(row.End, end); row.Start < row.End {
			part.rows = append(part.rows, row)
		}
	}
	crop := func(list []gap) (part []gap) {
		for _, g := range list {
			if g.start, g.end = max(g.start, start), min(g.end, end); g.start < g.end {
				part = append(part, g)
			}
		}
		return part
	}
	part.gaps, part.contradictions = crop(f.gaps), crop(f.contradictions)
	return part
}

// readRows reads a function, and compares call frame information with it. frames is nil
// where there is none, or the code is not the object's.
func (o *objectCode) readRows(r *sdk.CodeRange, entry uint64, frames *frameCheck, mode machineMode) (*functionRows, error) {
	whole := o.code.hasCode(r.Start, r.Code)
	f, err := o.follow(r, entry, whole, mode)
	if err == nil && f.step.isByLane != f.step.isByWave && f.step.isByLane != mode.isPerLane {
		// Compilers have an option that makes code for absolute flat scratch reach
		// private memory by lane.
		if mode, err = o.mode(mode.lanes, !mode.isPerLane); err == nil {
			f, err = o.follow(r, entry, whole, mode)
		}
	}
	if err == nil {
		err = f.overlap()
	}
	if err != nil {
		return nil, err
	}
	found, err := f.checkedRows(0, math.MaxUint64, frames)
	if err != nil {
		return nil, err
	}
	found.reason = "the code of the function does not lead here"
	if f.unknown != 0 {
		found.reason = fmt.Sprintf("the code does not lead here as far as it can be read: there is no instruction at %#x", f.unknown)
	}
	return &found, nil
}

// overlap returns an error where a branch leads into the middle of an instruction. The
// bytes that follow are then in two blocks with two states, and a row can describe only
// one.
func (f *flow) overlap() error {
	end := uint64(0)
	for b := range f.All() {
		if !b.IsReached {
			continue
		}
		if b.Address < end {
			return fmt.Errorf("a branch leads to %#x, into the middle of an instruction", b.Address)
		}
		end = b.End
	}
	return nil
}

// entry returns the first instruction of the function that code belongs to. Code that is
// only a part of a function, or has no known bounds, belongs to the function from which
// branches lead there.
func (o *objectCode) entry(r *sdk.CodeRange, whole bool, mode *machineMode) (entry uint64, reason string) {
	const unknown = "where the function begins is not known"
	if !whole {
		if !r.Bounded {
			return 0, unknown
		}
		return r.Start, ""
	}
	if o.layout == nil {
		o.layout = sweep(o.code, mode.target)
	}
	pc := r.PC
	if r.Bounded {
		source, part := o.layout.source(r.Start, r.Start+uint64(len(r.Code)))
		if !part {
			return r.Start, ""
		}
		pc = source
	}
	starts := slices.DeleteFunc(slices.Clone(o.starts), func(a uint64) bool { return r.Bounded && a == r.Start })
	steps := o.steps / 8
	if entry, ok := o.layout.owner(mode, o.code, starts, pc, &steps); ok {
		return entry, ""
	}
	if r.Bounded {
		return 0, "the code is part of a function whose beginning is not known"
	}
	return 0, unknown
}

// mode returns the mode in which waves of a size execute the object's code.
func (o *objectCode) mode(lanes uint32, perLane bool) (machineMode, error) {
	target, err := isa.NewTarget(o.processor.name, lanes)
	return machineMode{
		target: target, processor: o.processor, lanes: lanes, isPerLane: perLane, abi: convention(o.processor, perLane, lanes),
	}, err
}

// follow follows a function, and its callees where they can be read.
func (o *objectCode) follow(r *sdk.CodeRange, entry uint64, whole bool, mode machineMode) (*flow, error) {
	steps := o.steps
	if !whole {
		return newFunctions(mode, code{{r.Start, r.Code}}).alone(entry, &steps, mode.jumped(&mode.abi))
	}
	if o.layout != nil {
		for i := range mode.abi.active { // registers that are not preserved
			mode.abi.inactive[i] |= o.layout.spoils.inactive[i] & mode.abi.active[i]
		}
	}
	key := machineKey{mode.lanes, mode.isPerLane}
	fs := o.read[key]
	if fs == nil {
		fs = newFunctions(mode, o.code)
		o.read[key] = fs
	}
	entered := o.entered(fs, r, entry, &steps)
	var f *flow
	if fs.known[entry] == nil {
		var err error
		f, err = fs.read(entry, &steps)
		if errors.Is(err, codeflow.ErrSteps) || errors.Is(err, errCallees) {
			f, steps = nil, o.steps
		} else if err != nil {
			return nil, err
		}
	}
	if f == nil || entered != nil {
		return fs.alone(entry, &steps, entered)
	}
	return f, nil
}

// entered returns the registers that may have changed between the call and the entry
// of a function, because another function jumps to it, which is a call and a return in
// one. The result is nil where no function does.
func (o *objectCode) entered(fs *functions, r *sdk.CodeRange, entry uint64, steps *int) *registerSet {
	if o.layout == nil {
		return nil
	}
	var set registerSet
	if o.layout.hasWildJumps {
		set = fs.mode.abi
		for i := range set.active {
			set.active[i] &= o.layout.writes.active[i]
		}
	}
	chain := []uint64{entry} // the function, and the functions from which jumps lead to it
	for i := 0; i < len(chain); i++ {
		for _, j := range jumpsTo(o.layout.tails, chain[i]) {
			source, ok := o.layout.owner(&fs.mode, o.code, o.starts, j.source, steps)
			if ok && fs.known[source] == nil {
				_, err := fs.read(source, steps)
				ok = err == nil
			}
			changes := fs.tails[source][chain[i]]
			if !ok || changes == nil {
				return fs.mode.jumped(&unknownCallee)
			}
			set.add(changes)
			if !slices.Contains(chain, source) {
				chain = append(chain, source)
			}
		}
	}
	if o.isJumpedTo(r, entry) {
		return fs.mode.jumped(&unknownCallee)
	}
	if set == (registerSet{}) {
		return nil
	}
	return fs.mode.jumped(&set)
}

// isJumpedTo reports whether branches lead to the entry of a function from outside the
// requested code.
func (o *objectCode) isJumpedTo(r *sdk.CodeRange, entry uint64) bool {
	return o.layout != nil && slices.ContainsFunc(jumpsTo(o.layout.jumps, entry), func(j jump) bool {
		return j.source < r.Start || j.source-r.Start >= uint64(len(r.Code))
	})
}

// jumped returns the registers of a set that may have changed where one function
// jumps to another. The registers that the other one needs to return have not.
func (m *machineMode) jumped(set *registerSet) *registerSet {
	s := *set
	for i := range scalars {
		r := isa.Reg(i)
		if isKeptByAll(r) || r == returnLow || r == returnHigh || !m.isPerLane && r <= resource+3 {
			s.scalars[i/64] &^= 1 << (i % 64)
		}
	}
	return &s
}

// waveSize returns the lanes of the waves that execute a function: as many as its
// masks have or, where it has none, as the object's kernels have.
func (o *objectCode) waveSize(r *sdk.CodeRange) uint32 {
	lanes := o.processor.lanes[0]
	if len(o.processor.lanes) == 1 {
		return lanes
	}
	if o.lanes != 0 {
		lanes = o.lanes
	}
	target, err := isa.NewTarget(o.processor.name, lanes)
	if err != nil {
		return lanes
	}
	votes := map[uint32]int{}
	for offset := 0; offset < len(r.Code); {
		inst, err := target.Decode(r.Code[offset:], r.Start+uint64(offset)) //nolint:gosec // not negative
		if err != nil || inst.Size == 0 {
			break
		}
		if inst.Writes.HasExec() && maskOperations[inst.Op].effect.isIntoExec() {
			votes[uint32(inst.Dst.Width)*32]++
		}
		offset += int(inst.Size)
	}
	switch {
	case votes[wave32] > 0 && votes[wave64] == 0:
		return wave32
	case votes[wave64] > 0 && votes[wave32] == 0:
		return wave64
	}
	return lanes
}

// convention returns the registers that any function may change, by the calling
// convention ("Non-Kernel Functions"). Where private memory has a resource, the
// functions that need it reserve its registers.
func convention(p *processor, perLane bool, lanes uint32) (c registerSet) {
	for i := range scalars {
		r := isa.Reg(i)
		column := dwarfScalar(r)
		switch {
		case !perLane && r >= resource && r <= resource+3:
		case r == isa.ExecLo || r == isa.ExecHi || r == isa.FlatScratchLo || r == isa.FlatScratchHi:
		case column != noColumn && isPreserved(column, p):
		default:
			c.addScalar(r)
		}
	}
	for i := range vectors {
		if column := dwarfVector(place(i), lanes); column != noColumn && p.hasVector(place(i)) && !isPreserved(column, p) {
			c.addActive(i)
		}
	}
	return c
}
