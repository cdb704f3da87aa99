// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"errors"
	"fmt"
)

// ErrNotImplemented is the answer of a call that an architecture does not
// have. It keeps its identity across the process boundary: errors.Is finds it
// in the errors of a Client.
var ErrNotImplemented = errors.New("the architecture does not implement this call")

// ErrObjectNotOpen is the answer of FrameRules about a code object that the plugin
// does not know, or no longer. It keeps its identity across the process boundary,
// as ErrNotImplemented does.
var ErrObjectNotOpen = errors.New("the code object is not open in the plugin")

// Base answers every call except Describe with "nothing special". A plugin embeds
// it, writes Describe, and overrides the calls in which its machine differs.
type Base struct{}

// OpenTarget answers that the notes have no threads and no code objects.
func (Base) OpenTarget(context.Context, Engine, *OpenTargetRequest) (*OpenTargetAnswer, error) {
	return &OpenTargetAnswer{}, nil
}

// OpenObject answers that nothing is special about the code object.
func (Base) OpenObject(context.Context, Engine, *OpenObjectRequest) (*OpenObjectAnswer, error) {
	return &OpenObjectAnswer{}, nil
}

// FrameRules answers that no function has rows.
func (Base) FrameRules(_ context.Context, _ Engine, req *FrameRulesRequest) (*FrameRulesAnswer, error) {
	a := &FrameRulesAnswer{Functions: make([]FrameRules, len(req.Functions))}
	for i := range a.Functions {
		a.Functions[i].Reason = "the architecture does not read code"
	}
	return a, nil
}

// BindThreads answers ErrNotImplemented: the answer needs only the description, which
// Base does not have. The callers (Serve, and the engine for architectures in its own
// process) use the function BindThreads, which then answers from the description.
func (Base) BindThreads(context.Context, Engine, *BindThreadsRequest) (*BindThreadsAnswer, error) {
	return nil, ErrNotImplemented
}

// Translate answers ErrNotImplemented: without opaque ranges it is not called.
func (Base) Translate(context.Context, Engine, *TranslateRequest) (*TranslateAnswer, error) {
	return nil, ErrNotImplemented
}

// ClassifyReturn answers that nothing is known of any address.
func (Base) ClassifyReturn(_ context.Context, req *ClassifyReturnRequest) (*ClassifyReturnAnswer, error) {
	return &ClassifyReturnAnswer{
		Classes: make([]ReturnClass, len(req.PCs)),
		Targets: make([]uint64, len(req.PCs)),
	}, nil
}

// Disassemble answers ErrNotImplemented: code is then shown as bytes.
func (Base) Disassemble(context.Context, *DisassembleRequest) (*DisassembleAnswer, error) {
	return nil, ErrNotImplemented
}

// BindThreads calls a.BindThreads. Where that answers ErrNotImplemented, the
// answer is DefaultBindThreads with the description of a.
func BindThreads(ctx context.Context, a Architecture, e Engine, req *BindThreadsRequest) (*BindThreadsAnswer, error) {
	answer, err := a.BindThreads(ctx, e, req)
	if !errors.Is(err, ErrNotImplemented) {
		return answer, err
	}
	d, err := a.Describe(ctx)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, errors.New("the architecture has no description")
	}
	return DefaultBindThreads(d, req), nil
}

// WithBase returns a with Base's answers in place of ErrNotImplemented: to its callers an
// architecture is the same whether it embeds Base, or is written in a language that has
// none and leaves calls out. Threads are then bound by the description d, or where d is nil by
// what a.Describe returns.
func WithBase(a Architecture, d *Description) Architecture {
	return &withBase{Architecture: a, description: d}
}

// orBase returns the answer of a call, or base's where the plugin does not serve the call.
func orBase[E, Q, A any](ctx context.Context, e E, req *Q, call, base func(context.Context, E, *Q) (*A, error)) (*A, error) {
	a, err := call(ctx, e, req)
	if errors.Is(err, ErrNotImplemented) {
		return base(ctx, e, req)
	}
	return a, err
}

// withBase does not have Translate and Disassemble: what Base answers to them is an error too.
type withBase struct {
	Architecture
	description *Description // nil: not known yet
}

func (w *withBase) OpenTarget(ctx context.Context, e Engine, req *OpenTargetRequest) (*OpenTargetAnswer, error) {
	return orBase(ctx, e, req, w.Architecture.OpenTarget, Base{}.OpenTarget)
}

func (w *withBase) OpenObject(ctx context.Context, e Engine, req *OpenObjectRequest) (*OpenObjectAnswer, error) {
	return orBase(ctx, e, req, w.Architecture.OpenObject, Base{}.OpenObject)
}

func (w *withBase) FrameRules(ctx context.Context, e Engine, req *FrameRulesRequest) (*FrameRulesAnswer, error) {
	return orBase(ctx, e, req, w.Architecture.FrameRules, Base{}.FrameRules)
}

func (w *withBase) BindThreads(ctx context.Context, e Engine, req *BindThreadsRequest) (*BindThreadsAnswer, error) {
	if w.description == nil {
		return BindThreads(ctx, w.Architecture, e, req)
	}
	a, err := w.Architecture.BindThreads(ctx, e, req)
	if errors.Is(err, ErrNotImplemented) {
		return DefaultBindThreads(w.description, req), nil
	}
	return a, err
}

func (w *withBase) ClassifyReturn(ctx context.Context, req *ClassifyReturnRequest) (*ClassifyReturnAnswer, error) {
	a, err := w.Architecture.ClassifyReturn(ctx, req)
	if errors.Is(err, ErrNotImplemented) {
		return Base{}.ClassifyReturn(ctx, req)
	}
	return a, err
}

// DefaultBindThreads binds threads as a CPU does: the PC is in the description's PC
// register, there is one lane and no map. A thread without the PC in its registers has
// a problem.
func DefaultBindThreads(d *Description, req *BindThreadsRequest) *BindThreadsAnswer {
	a := &BindThreadsAnswer{Threads: make([]ThreadBinding, len(req.Threads))}
	for i := range req.Threads {
		b := &a.Threads[i]
		b.Lanes = 1
		if d.PC == NoRegister {
			b.Problem = fmt.Sprintf("architecture %s has no PC register", d.Name)
			continue
		}
		pc, ok := req.Threads[i].Registers.Uint64(d.PC, d.ByteOrder)
		if !ok {
			b.Problem = fmt.Sprintf("the PC, register %s, is not among the thread's registers", d.registerName(d.PC))
			continue
		}
		b.PC = pc
	}
	return a
}
