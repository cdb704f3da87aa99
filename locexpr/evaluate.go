// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/internal/leb128"
)

// Limits bound the cost of an expression. A member that is 0 has its default.
type Limits struct {
	Steps   int // operations executed, including nested evaluations; 65,536
	Depth   int // entries on the stack; 1,024
	Parts   int // parts of composites made, and their places; 4,096, and 16 times as many including nested evaluations
	Nesting int // evaluations nested in each other, and composites within composites; 32
}

var defaultLimits = Limits{Steps: 1 << 16, Depth: 1024, Parts: 4096, Nesting: 32}

// partsInAll is how many times Limits.Parts all nested evaluations together may make: a
// register of a caller may need a rule of every frame between.
const partsInAll = 16

// maxNesting bounds the nesting of composites where there are no Limits.
const maxNesting = 256

// Evaluator evaluates expressions. It keeps its memory, so it is reusable, and its fields may
// change between evaluations. A Context may use the Evaluator that calls it. It is not safe
// for concurrent use.
//
// A copy of an Evaluator is another one with the same settings, and with memory of its own.
// Derive makes one whose evaluations count as nested in the evaluations of the first.
type Evaluator struct {
	Dialect     *Dialect // nil: DWARF5
	AddressBits uint32   // size of the generic type, 8 to 64; 0 is 64
	Order       ByteOrder
	Limits      Limits // of each evaluation, with all within it
	CFI         bool   // the restrictions of A.6.4.2 apply
	OffsetSize  int    // bytes of an offset in .debug_info: 4 or 8 by the DWARF format; 0 is 4
	LoadBias    uint64 // added to the addresses of DW_OP_addr and DW_OP_addrx (A.2.5.4.4.3)

	// Trace, where set, is called after every operation. Names has the names of
	// registers and address spaces for the text of a Step; nil: numbers.
	Trace func(Step)
	Names Names

	self *Evaluator // e itself; another one: e is a copy of it, and the fields below are not its own
	root *Evaluator // has the states and counts of the evaluations: e itself, or the one that e derives from

	evaluations []*evaluation // one for each level of nesting
	nesting     int
	steps       int // left of Limits.Steps
	parts       int // left of the parts of all nested evaluations
	visits      int // parts and places that reads have visited
	traced      int // bytes of text that went into steps
}

// own makes a copied Evaluator independent of the original.
func (e *Evaluator) own() {
	e.self, e.root = e, e
	e.evaluations, e.nesting = nil, 0
}

// Derive returns an Evaluator with the settings of e, to be changed independently of e. It is
// for evaluations by a Context that e calls: these share the limits of the outermost one.
// Only the goroutine that uses e may use it.
func (e *Evaluator) Derive() *Evaluator {
	if e.self != e {
		e.own()
	}
	d := *e
	d.self, d.evaluations = &d, nil
	return &d
}

// The cost of operations beyond their own step, so that work inside an operation is bounded
// too.
const (
	entryValueSteps      = 64 // of another frame, which must be found
	implicitBytesPerStep = 16 // bytes copied
	scannedOpsPerStep    = 16 // operations decoded to find where operations start
	placesPerStep        = 16 // of a location that an operation works on
	listEntriesPerStep   = 64 // entries read to find the matching ones
)

// charge takes n steps off the remaining ones.
func (ev *evaluation) charge(n int) error {
	if ev.e.steps -= n; ev.e.steps < 0 {
		return errSteps
	}
	return nil
}

var errSteps = fmt.Errorf("%w: too many operations", ErrLimit)

// Evaluate evaluates expr on a stack of the initial entries, the last one on
// top, and returns the top entry as the kind of result that is wanted
// (A.2.5.4). An error is an *Error.
func (e *Evaluator) Evaluate(ctx context.Context, expr []byte, c Context, want Kind, initial ...Entry) (Entry, error) {
	defer e.leave()
	ev, err := e.run(ctx, expr, c, initial)
	if err != nil {
		return Entry{}, err
	}
	if want == AnyKind {
		if top := ev.top(); top != nil && (top.kind == genericEntry || top.kind == valueEntry) {
			want = ValueKind
		}
	}
	if want == ValueKind {
		v, err := ev.resultValue()
		result := ValueEntry(v)
		result.isUninit = ev.isUninit
		return result, err
	}
	result := Entry{kind: locationEntry, isUninit: ev.isUninit}
	err = ev.resultLocation(&result.location)
	return result, err
}

// Value evaluates expr as a value. An error is an *Error, as it is of Evaluate; an implicit
// pointer is an error here, which Evaluate returns as a value.
func (e *Evaluator) Value(ctx context.Context, expr []byte, c Context, initial ...Entry) (Value, error) {
	defer e.leave()
	ev, err := e.run(ctx, expr, c, initial)
	if err != nil {
		return Value{}, err
	}
	v, err := ev.resultValue()
	if err == nil && v.implicitPointer() != nil {
		return Value{}, ev.atEnd(ErrImplicitPointer)
	}
	return v, err
}

// Location evaluates expr as a location description (A.2.5.4). An error is an *Error,
// as it is of Evaluate.
func (e *Evaluator) Location(ctx context.Context, expr []byte, c Context, initial ...Entry) (l Location, err error) {
	defer e.leave()
	ev, err := e.run(ctx, expr, c, initial)
	if err == nil {
		err = ev.resultLocation(&l)
	}
	return l, err
}

// EntryValue evaluates the block of DW_OP_entry_value in the context of the
// calling frame (A.2.5.4.3.4): a value is itself, and a register that the last
// operation names is read. Of a register that is wider than the generic type it
// gives an unsigned integer of that size. An error is an *Error, as it is of Evaluate.
func (e *Evaluator) EntryValue(ctx context.Context, expr []byte, caller Context) (Value, error) {
	defer e.leave()
	ev, err := e.run(ctx, expr, caller, nil)
	if err != nil {
		return Value{}, err
	}
	top := ev.top()
	if top == nil || !top.IsLocation() {
		return ev.resultValue()
	}
	if op := ev.inst.Op; top.kind != locationEntry || op == nil || !op.isRegister() {
		return Value{}, ev.atEnd(illFormedf("the result is a location, and the last operation is no DW_OP_reg*"))
	}
	reg := ev.inst.Op.number
	if ev.inst.Op.Operands[0] == RegisterNum {
		reg = ev.inst.Operands[0]
	}
	size, ok := caller.RegisterBits(reg)
	if !ok {
		size = ev.bits
	}
	l := top.location
	if err := ev.pushBits(&l, uint64(size)); err != nil {
		return Value{}, ev.atEnd(err)
	}
	return ev.resultValue()
}

// run executes expr. It is to be followed by leave, once its result has been
// taken, even when it fails or the context panics.
func (e *Evaluator) run(ctx context.Context, expr []byte, c Context, initial []Entry) (*evaluation, error) {
	ev, err := e.begin(ctx, expr, c, initial)
	if err != nil {
		return ev, err
	}
	return ev, ev.execute()
}

// begin makes an evaluation ready for its first operation, as run does.
func (e *Evaluator) begin(ctx context.Context, expr []byte, c Context, initial []Entry) (*evaluation, error) {
	if e.self != e {
		e.own()
	}
	r := e.root
	r.nesting++
	if r.nesting == 1 {
		r.steps, r.parts = e.Limits.steps(), partsInAll*e.Limits.parts()
		r.visits, r.traced = 0, 0
	} else if n := e.Limits.nesting(); r.nesting > n {
		return nil, &Error{Kind: Evaluation, Err: fmt.Errorf("%w: more than %d evaluations within each other", ErrLimit, n)}
	}
	if r.nesting > len(r.evaluations) {
		r.evaluations = append(r.evaluations, &evaluation{e: r, stack: make([]Entry, 16)})
	}
	ev := r.evaluations[r.nesting-1]
	ev.settings, ev.ctx, ev.context = e, ctx, c
	ev.bits = e.AddressBits
	if ev.bits == 0 {
		ev.bits = 64
	}
	ev.mask = lowMask(ev.bits)
	ev.parts, ev.calls, ev.n, ev.bias = 0, 0, 0, e.LoadBias
	ev.isUninit, ev.isCFI, ev.isObjectless, ev.hasStarts = false, e.CFI, false, false
	ev.stack = ev.stack[:min(cap(ev.stack), e.Limits.depth())]
	ev.inst.Op = nil
	ev.dec.Expr, ev.dec.Dialect, ev.dec.Order, ev.dec.pos = expr, e.Dialect, e.Order, 0
	if e.Dialect == nil {
		ev.dec.Dialect = DWARF5
	}
	ev.dec.AddressSize, ev.dec.OffsetSize = int(ev.bits+7)/8, e.OffsetSize
	if ev.bits < 8 || ev.bits > 64 {
		return ev, &Error{Kind: Evaluation, Err: fmt.Errorf("generic type of %d bits, 8 to 64 expected", ev.bits)}
	}
	if len(initial) > 0 {
		if err := ev.pushAll(initial); err != nil {
			return ev, &Error{Kind: kindOf(err), Err: err}
		}
	}
	return ev, nil
}

// pushAll pushes entries of the caller.
func (ev *evaluation) pushAll(initial []Entry) error {
	for i := range initial {
		s, err := ev.push()
		if err != nil {
			return err
		}
		*s = initial[i]
		if s.kind == genericEntry {
			s.value.word &= ev.mask
			s.value.bits = ev.bits
		}
	}
	return nil
}

func (e *Evaluator) leave() {
	r := e.root
	r.nesting--
	if r.nesting < len(r.evaluations) {
		ev := r.evaluations[r.nesting]
		ev.ctx, ev.context, ev.dec.Expr, ev.inst.Block = nil, nil, nil, nil
	}
}

// The limits with their defaults, each looked up where it is needed: an
// evaluation of a few operations meets one of them only.
func (l *Limits) steps() int   { return orDefault(l.Steps, defaultLimits.Steps) }
func (l *Limits) depth() int   { return orDefault(l.Depth, defaultLimits.Depth) }
func (l *Limits) parts() int   { return orDefault(l.Parts, defaultLimits.Parts) }
func (l *Limits) nesting() int { return orDefault(l.Nesting, defaultLimits.Nesting) }

func orDefault(limit, otherwise int) int {
	if limit <= 0 {
		return otherwise
	}
	return limit
}

// evaluation is the state of one evaluation of an expression.
type evaluation struct {
	e            *Evaluator // has the remaining limits
	settings     *Evaluator // whose settings are in force: e, or one that derives from it
	ctx          context.Context
	context      Context
	dec          Decoder
	inst         Instruction // the operation being executed
	stack        []Entry     // entries n and up are free
	n            int
	bits         uint32 // of the generic type
	mask         uint64 // its values
	parts        int    // made so far
	calls        int    // DW_OP_call* under way
	isUninit     bool
	isCFI        bool
	isObjectless bool // no object is specified, whatever the context has
	bias         uint64
	scratch      [8]byte
	starts       []uint64 // one bit for each offset at which an operation starts, where known
	hasStarts    bool     // starts belongs to this expression
}

// execute executes the operations, from the first to the end.
func (ev *evaluation) execute() error {
	if err := ev.operations(); err != nil {
		return err
	}
	// A.2.5.4.4.6: at the end an incomplete composite becomes complete.
	if top := ev.top(); top.isIncomplete() {
		top.location.place.detail.isIncomplete = false
	}
	return nil
}

// operations executes the operations of an expression, or of one that it calls.
func (ev *evaluation) operations() error {
	expr, operations := ev.dec.Expr, &ev.dec.Dialect.tables().operations
	traced := ev.settings.Trace != nil
	// The position is kept in a variable, so that the next operation is looked
	// up while this one is still executing.
	for pos := 0; pos < len(expr); {
		op := &operations[expr[pos]]
		if op.quick != notQuick && !traced {
			var err error
			if pos, err = ev.quickly(pos); err != nil {
				ev.inst.Op, ev.inst.Offset = &operations[expr[pos]], pos
				return ev.fail(kindOf(err), err)
			}
			if pos >= len(expr) {
				break
			}
			op = &operations[expr[pos]]
		}
		offset := pos
		// Nearly every operation is an opcode alone, or with one byte of
		// LEB128.
		switch {
		case op.shape == opcodeOnly:
			ev.inst.Op, ev.inst.Offset = op, pos
			pos++
		case op.shape == slebOnly && pos+1 < len(expr) && expr[pos+1] < leb128.More:
			ev.inst.Op, ev.inst.Offset = op, pos
			ev.inst.Operands[0] = uint64(leb128.Byte(expr[pos+1]))
			pos += 2
		case op.shape == ulebOnly && pos+1 < len(expr) && expr[pos+1] < leb128.More:
			ev.inst.Op, ev.inst.Offset = op, pos
			ev.inst.Operands[0] = uint64(expr[pos+1])
			pos += 2
		default:
			ev.dec.pos = pos
			if err := ev.dec.next(&ev.inst); err != nil {
				return ev.fail(IllFormed, err)
			}
			op, pos = ev.inst.Op, ev.dec.pos
		}
		if ev.e.steps--; ev.e.steps < 0 {
			return ev.fail(Evaluation, errSteps)
		}
		if ev.isCFI && op.isBarredFromCFI {
			return ev.fail(IllFormed, ErrNotInCFI)
		}
		if err := op.eval(ev); err != nil {
			return ev.fail(kindOf(err), err)
		}
		if traced {
			ev.trace(offset, pos)
		}
		if op.Operands[0] == Branch {
			pos = ev.dec.pos
		}
	}
	return nil
}

// fail makes the error of the current operation.
func (ev *evaluation) fail(kind ErrorKind, err error) error {
	e := &Error{Kind: kind, Offset: ev.inst.Offset, Err: err}
	if ev.inst.Op != nil {
		e.Op = ev.inst.Op.Name
	}
	return e
}

// atEnd makes an error about the result.
func (ev *evaluation) atEnd(err error) error {
	return &Error{Kind: kindOf(err), Offset: len(ev.dec.Expr), Err: err}
}

// resultValue returns the top entry as a value (A.2.5.4).
func (ev *evaluation) resultValue() (Value, error) {
	top := ev.top()
	if top == nil {
		return Value{}, ev.atEnd(illFormedf("the stack is empty, a value is wanted"))
	}
	switch top.kind {
	case genericEntry, addressEntry:
		return Value{word: top.value.word, bits: ev.bits}, nil
	case valueEntry:
		return top.value, nil
	}
	address, err := ev.addressOf(&top.location)
	if err != nil {
		return Value{}, ev.atEnd(err)
	}
	return Value{word: address, bits: ev.bits}, nil
}

// resultLocation sets l, which is the undefined location, to the top entry as a
// location description (A.2.5.4).
func (ev *evaluation) resultLocation(l *Location) (err error) {
	top := ev.top()
	if top == nil {
		return nil
	}
	if top.kind <= addressEntry {
		l.place.Storage = Memory
		l.place.Address = top.value.word
		l.place.Scope = ev.context.Scope()
		return nil
	}
	if top.kind == locationEntry {
		*l = top.location // complete: execute sees to it
		return nil
	}
	if *l, err = ev.locationOf(top); err != nil {
		return ev.atEnd(err)
	}
	return nil
}
