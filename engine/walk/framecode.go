// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/disassembler"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// MaxCode is the most instructions of a frame that can be requested.
const MaxCode = 1000

// MaxPrepared is how many instructions of frames are best requested together: each takes about
// 200 bytes. A CodeReader keeps about twice as many for the next stacks.
const MaxPrepared = 1 << 17

// targetCode is the code of a frame, and the target for which LLVM disassembles it.
type targetCode struct {
	trace.FrameCode
	llvm sdk.LLVMTarget
}

// CodeReader finds the code of frames, of many stacks at once: a user's disassembler is a
// process, and runs once for all of them. It may be used concurrently.
type CodeReader struct {
	process *Process
	count   int
	program *disassembler.Program // nil: architectures give the texts

	mu    sync.Mutex
	known map[codePlace]*targetCode
	lines int // of known
}

// codePlace is the place of a frame, and the machine of its code.
type codePlace struct {
	arch, processor string
	pc              uint64
	isReturn        bool
}

// NewCodeReader makes a CodeReader that reads count instructions of a frame, at most MaxCode,
// with the texts of a program; nil: of architectures.
func (p *Process) NewCodeReader(count int, program *disassembler.Program) *CodeReader {
	return &CodeReader{process: p, count: min(max(count, 1), MaxCode), program: program, known: map[codePlace]*targetCode{}}
}

// Count returns how many instructions of a frame it reads.
func (r *CodeReader) Count() int { return r.count }

// Prepare finds the code of all frames of stacks that is not known yet.
func (r *CodeReader) Prepare(ctx context.Context, stacks []*trace.Stack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lines+len(r.known) > MaxPrepared {
		clear(r.known)
		r.lines = 0
	}
	var found []*targetCode
	for _, s := range stacks {
		found = r.frames(ctx, found, s.Thread, s.Lanes, s.Frames)
		for i := range s.Launchers {
			l := &s.Launchers[i]
			found = r.frames(ctx, found, l.Thread, 0, l.Frames)
		}
	}
	r.askProgram(ctx, found)
}

// Of returns the code of a frame of a thread, which is nil where a launcher is not in the
// target. It prepares the stack if that was not done.
func (r *CodeReader) Of(ctx context.Context, th *trace.Thread, f *trace.Frame) *trace.FrameCode {
	if !f.IsNative() {
		return &trace.FrameCode{Problem: "the frame is of the language runtime " + f.Managed().Runtime + ", and has no code of the machine"}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.known[placeOf(th, f)]
	if c == nil {
		r.askProgram(ctx, r.frames(ctx, nil, th, 0, []trace.Frame{*f}))
		c = r.known[placeOf(th, f)]
	}
	return &c.FrameCode
}

func placeOf(th *trace.Thread, f *trace.Frame) codePlace {
	k := codePlace{pc: f.PC, isReturn: !f.Exact}
	if th != nil {
		k.arch, k.processor = th.Arch, th.Processor
	} else if f.Module != nil {
		k.arch, k.processor = f.Module.Arch, f.Module.Processor
	}
	return k
}

// frames reads the code of frames, and appends code that was not known to found.
func (r *CodeReader) frames(ctx context.Context, found []*targetCode, th *trace.Thread, lanes uint32, frames []trace.Frame) []*targetCode {
	for i := range frames {
		f := &frames[i]
		if !f.IsNative() {
			continue // the code of the native frame is not its own
		}
		if place := placeOf(th, f); r.known[place] == nil {
			c := r.process.codeAround(ctx, place, lanes, r.count)
			r.known[place] = c
			r.lines += len(c.Lines)
			found = append(found, c)
		}
		found = r.frames(ctx, found, th, lanes, f.TailCallers())
	}
	return found
}

// codeAround reads the code of one place: count instructions, half of them before the
// instruction at the place, except where the function begins or ends nearby.
func (p *Process) codeAround(ctx context.Context, place codePlace, lanes uint32, count int) *targetCode {
	arch, err := p.shared.machine(place.arch)
	if err != nil {
		return &targetCode{FrameCode: trace.FrameCode{Problem: err.Error()}}
	}
	inside := place.pc
	if place.isReturn {
		inside -= uint64(arch.Description.CallDistance)
	}
	d := &disassembly{
		Process: p, arch: arch, processor: place.processor, lanes: lanes,
		segment: p.Segment(inside), address: place.pc, isReturn: place.isReturn,
	}
	var lines []trace.Instruction
	err = object.Guard(func() (err error) {
		lines, err = d.lines(ctx, count-1, count-1)
		return err
	})
	switch {
	case errors.Is(err, sdk.ErrNotImplemented):
		return &targetCode{FrameCode: trace.FrameCode{Problem: fmt.Sprintf("architecture %s shows no code", place.arch)}}
	case err != nil:
		return &targetCode{FrameCode: trace.FrameCode{Problem: err.Error()}}
	}
	c := &targetCode{trace.FrameCode{Lines: middle(lines, count)}, d.llvm}
	if d.note != "" {
		c.Problem = "nothing before the PC: " + d.note
	}
	return c
}

// middle returns count of the lines, with the wanted one in their middle.
func middle(lines []trace.Instruction, count int) []trace.Instruction {
	index := 0
	for i := range lines {
		if lines[i].IsAt {
			index = i
		}
	}
	first := max(0, index-(count-1)/2)
	last := min(len(lines), first+count)
	return lines[max(0, last-count):last]
}

// askProgram replaces the texts of architectures by the user's program's, in one batch for each
// of LLVM's targets.
func (r *CodeReader) askProgram(ctx context.Context, found []*targetCode) {
	if r.program == nil {
		return
	}
	var order []sdk.LLVMTarget
	batches := map[sdk.LLVMTarget][]*targetCode{}
	for _, c := range found {
		if c.llvm.Triple == "" || len(c.Lines) == 0 {
			continue
		}
		if batches[c.llvm] == nil {
			order = append(order, c.llvm)
		}
		batches[c.llvm] = append(batches[c.llvm], c)
	}
	for _, llvm := range order {
		var list []disassembler.Stretch
		var lines [][]trace.Instruction
		for _, c := range batches[llvm] {
			for rest := c.Lines; len(rest) > 0; {
				s := stretchOf(rest)
				list, lines = append(list, s), append(lines, rest[:len(s.Sizes)])
				rest = rest[len(s.Sizes):]
			}
		}
		for i, texts := range r.program.Texts(ctx, llvm, list) {
			for k, text := range texts {
				if text != "" {
					lines[i][k].Text = text
				}
			}
		}
	}
}

// stretchOf returns the first instructions that are consecutive.
func stretchOf(lines []trace.Instruction) disassembler.Stretch {
	s := disassembler.Stretch{Address: lines[0].Address}
	for i := range lines {
		if lines[i].Address != s.Address+uint64(len(s.Bytes)) {
			break
		}
		s.Bytes = append(s.Bytes, lines[i].Bytes...)
		s.Sizes = append(s.Sizes, uint32(len(lines[i].Bytes))) //nolint:gosec // at most sdk.MaxInstructionBytes
	}
	return s
}
