// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// sampleMemory is the Memory of a sample.
type sampleMemory struct {
	sample *Sample
	code   SampleCode
}

// ReadMemory reads the stack's bytes, and read-only memory of the modules. The errors of a
// recording's samples, of which there are millions, have no text of their own.
func (m *sampleMemory) ReadMemory(space locexpr.AddressSpace, _ *trace.Thread, address uint64, buf []byte) (n int, err error) {
	s := m.sample
	switch offset := address - s.StackStart; {
	case space != locexpr.DefaultSpace:
		return 0, fmt.Errorf("address space %d: %w", space, target.ErrNoMemory)
	case offset < uint64(len(s.Stack)):
		if n = copy(buf, s.Stack[offset:]); n == len(buf) {
			return n, nil
		}
		err = target.ErrEndOfStack
	default:
		n, err = m.readCode(address, buf)
	}
	if err != nil && s.Code == nil {
		err = fmt.Errorf("0x%x: %w", address+uint64(n), err)
	}
	return n, err
}

// readCode reads the code of modules.
func (m *sampleMemory) readCode(address uint64, buf []byte) (int, error) {
	isAbove := m.sample.isAboveStack(address)
	if m.sample.Code != nil && isAbove {
		return 0, target.ErrEndOfStack
	}
	segment := m.code.Segment(address)
	if segment == nil || segment.Module.Code.IsUnmapped() {
		if isAbove {
			return 0, target.ErrEndOfStack
		}
		return 0, target.ErrNoMemory
	}
	return segment.Module.ReadCode(segment.ObjectAddress(address), buf)
}

func (m *sampleMemory) Mapped(address uint64) (mapped, executable bool) {
	if m.code.IsCode(address) {
		return true, true
	}
	return address-m.sample.StackStart < uint64(len(m.sample.Stack)), false
}

func (m *sampleMemory) Segment(address uint64) *code.Segment { return m.code.Segment(address) }

// IsCode reports whether there is code at an address.
func (p *Process) IsCode(address uint64) bool { return p.Segment(address) != nil }

// Walker walks the stacks of the samples of one process, one after the other, in memory that it
// keeps: once the rows of their code are known, a walk without symbols allocates nothing but
// the text of an error that ends it. It is not for concurrent use; a Process may have several.
type Walker struct {
	walker walker
	sample trace.Thread
	thread thread
	stack  trace.Stack
	plain  *machine // samples of it are bound alike, except for the PC
}

// Walker makes a Walker for samples of the process. A Sample without threads' state, which has
// an Arch and the modules, is enough as a target.
func (p *Process) Walker() *Walker {
	k := &Walker{walker: walker{process: p}}
	k.thread.Thread = &k.sample
	return k
}

// Walk walks the stack of a sample, which has the modules of the target. The
// Stack and what it refers to are valid until the next call.
func (k *Walker) Walk(ctx context.Context, s *Sample) *trace.Stack {
	k.walker.sampling = false
	return k.walk(ctx, s)
}

func (k *Walker) walk(ctx context.Context, s *Sample) *trace.Stack {
	p := k.walker.process
	k.walker.walked = 0 // also where the sample is not walked here
	p.Bind()
	k.stack = trace.Stack{Thread: &k.sample, Frames: k.stack.Frames[:0]}
	k.sample = trace.Thread{ID: s.ThreadID, Arch: s.Arch, Registers: s.Registers}
	m := p.machines[s.Arch]
	if m == nil {
		k.stack.Stopped = trace.Stopped{Reason: trace.StopPluginFailed, Detail: fmt.Sprintf("the target has no thread of architecture %q", s.Arch)}
		return &k.stack
	}
	if !k.bind(ctx, m, s) {
		// It has its own lanes or address spaces: it is a target by itself.
		alone := *s
		alone.threads = nil
		if alone.Loaded == nil {
			alone.Loaded = p.Modules()
		}
		own := p.shared.NewProcess(&alone, p.finder)
		defer own.Close()
		return own.Walk(ctx, alone.Thread())
	}
	k.walker.startSample(s, &k.thread, &k.stack)
	k.walker.guarded(ctx)
	return &k.stack
}

// bind binds the sample's thread. A thread of one lane, whose PC is the content of the PC
// register and which has neither widths nor maps of its own, is bound like the one before it:
// no call is made for each sample. It returns false for threads of another kind.
func (k *Walker) bind(ctx context.Context, m *machine, s *Sample) bool {
	pc, ok := s.Registers.Uint64(m.Description.PC, m.Description.ByteOrder)
	if ok && k.plain == m && pc <= m.addresses {
		k.thread.binding.PC = pc
		return true
	}
	if k.thread.arch == m && errors.Is(k.thread.failure, context.DeadlineExceeded) {
		return true // a plugin that hung would only cost its deadline once more
	}
	k.plain, k.thread.arch, k.thread.binding, k.thread.failure = nil, m, nil, nil
	k.walker.process.bind(ctx, m, &k.thread)
	b := k.thread.binding
	if b == nil || b.Problem != "" {
		return true // the walk ends for that reason
	}
	if b.Lanes > 1 || b.ActiveUnknown || len(b.Widths) > 0 || len(b.Maps) > 0 || !ok || b.PC != pc {
		return false
	}
	own := *b
	k.plain, k.thread.binding = m, &own
	return true
}

// Step is a frame of a traced sample, with only the parts that distinguish it. It has no
// pointers: a recording has millions.
type Step struct {
	PC uint64
	// Offset is PC as an address of the module's code object; for code in no module it is PC.
	Offset uint64
	// Owner is the ID of the module; for other code it is Trace's argument.
	Owner uint32
	Kind  CodeKind
	Found code.FoundIndex
	Exact bool  // as in Frame
	Back  uint8 // the distance from Offset back to the address that names the frame
}

// Named returns the address that the frame is named by.
func (s *Step) Named() uint64 { return s.Offset - uint64(s.Back) }

// CodeKind is the kind of the Owner of a Step.
type CodeKind uint8

// The kinds of code.
const (
	ModuleCode  CodeKind = iota // a module's
	ProcessCode                 // of a process, in no module
	KernelCode                  // the kernel's, whose frames are recorded, not walked
	GuestCode                   // a virtual machine's; Owner is a perfdata.Context
	ManagedCode                 // of a language runtime; PC is the number of the function and line in the recording
)

// Trace walks the stack of a sample, of which only the PCs are needed: it appends the frames,
// innermost first, and returns why the stack ends, without the addresses of this sample. owner
// is the Owner of code in no module.
func (k *Walker) Trace(ctx context.Context, s *Sample, owner uint32, steps []Step) ([]Step, trace.Stopped) {
	k.walker.sampling = true
	stack := k.walk(ctx, s)
	for _, f := range k.walker.frames[:k.walker.walked] {
		step := Step{PC: f.pc, Offset: f.offset, Found: code.IndexOf(f.found), Exact: f.exact}
		if f.module == nil {
			step.Offset, step.Kind, step.Owner = f.pc, ProcessCode, owner
		} else {
			step.Owner, step.Back = uint32(f.module.ID), uint8(f.offset-f.named())
		}
		steps = append(steps, step)
	}
	return steps, stack.Stopped
}

// IsSignalFrame reports whether a frame of the sample that was traced last is a signal
// trampoline, 0 being the top one.
func (k *Walker) IsSignalFrame(i int) bool {
	f := k.walker.frames[i]
	return f.source != nil && f.source.IsSignalFrame()
}

// IsEvaluated reports whether the CFA of a frame of the sample that was traced last was
// evaluated, and not computed by a compiled row.
func (k *Walker) IsEvaluated(i int) bool {
	f := k.walker.frames[i]
	return f.hasCFA && !f.compiled
}
