// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"cmp"
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// readStacks finds the frames of Ruby in native stacks. left is why threads may be missing; nil: none
// is.
func (r *reader) readStacks(threads []*thread, left error, req *sdk.ManagedFramesRequest, out []sdk.ManagedStack) {
	frames, found := make([][]*frame, len(req.Threads)), make([]*thread, len(req.Threads))
	for i := range req.Threads {
		found[i] = r.find(threads, &req.Threads[i])
	}
	r.prefetchFrames(found)
	for i, t := range found {
		if t == nil {
			continue
		}
		r.describe(&out[i], t)
		var err error
		if frames[i], err = r.readFrames(t.ec); err != nil {
			out[i].Problem = "frames of Ruby are missing: " + err.Error()
		}
		var wrong error
		if out[i].Exception, wrong = r.exception(t.ec, frames[i]); wrong != nil && err == nil {
			out[i].Problem = "the exception is not whole: " + wrong.Error()
		}
		if req.Variables {
			for _, f := range frames[i] {
				if f.sequence != nil && !f.isHidden {
					f.shown.Variables = r.variables(f, limits{depth: uint64(req.Depth), elements: uint64(req.Elements)})
				}
			}
		}
	}
	if err := r.findStarts(req.Threads); err != nil {
		return
	}
	p := r.newPlacer(threads, req.Threads, frames)
	for i := range req.Threads {
		s, native := &out[i], &req.Threads[i]
		if len(frames[i]) == 0 {
			if s.Problem == "" && len(p.groups(native.Frames)) > 0 {
				s.Problem = "it executes Ruby, and no thread of Ruby has its stack"
				if left != nil {
					s.Problem += ": " + left.Error()
				}
			}
			continue
		}
		p.atRegisters(native, frames[i])
		var problem string
		s.Runs, problem = p.place(native, frames[i], s.Problem == "")
		if s.Problem == "" {
			s.Problem = problem
		}
	}
	if left != nil && len(p.loops) == 0 {
		for i := range out {
			out[i].Problem = cmp.Or(out[i].Problem, left.Error())
		}
	}
}

// describe fills in the name, the state and the locks of a thread.
func (r *reader) describe(s *sdk.ManagedStack, t *thread) {
	s.Name, s.State = t.name, t.state
	switch {
	case t.hasLock:
		s.Locks = []sdk.ManagedLock{{Address: t.lock, Name: lockName}}
	case t.waits:
		s.Locks, s.State = []sdk.ManagedLock{{Address: t.lock, Name: lockName, IsWaited: true}}, "waits for the GVL"
	}
}

// lockName is the name of the lock that the thread has which executes Ruby.
const lockName = "the GVL"

// placer puts frames of Ruby into native stacks.
type placer struct {
	*reader
	loops   map[uint64]bool // starts of functions that have the code of instructions
	wrapper uint64          // the start of the function that calls those; 0: unknown
}

// newPlacer finds the interpreter's loop: instructions are addresses of code in it.
func (r *reader) newPlacer(all []*thread, threads []sdk.NativeStack, frames [][]*frame) *placer {
	p := &placer{reader: r, loops: map[uint64]bool{}}
	isKnown := map[*sequence]bool{}
	add := func(list []*frame) {
		for _, f := range list {
			if f.sequence == nil || isKnown[f.sequence] {
				continue
			}
			isKnown[f.sequence] = true
			if code, err := r.Pointer(f.sequence.code); err == nil {
				if start := r.code.start(code); start != 0 {
					p.loops[start] = true
				}
			}
		}
	}
	for _, list := range frames {
		add(list)
	}
	for i := 0; i < len(all) && len(p.loops) == 0; i++ {
		list, _ := r.readFrames(all[i].ec) // any frame will do
		add(list)
	}
	isFirst := true
	for i := range threads {
		list := threads[i].Frames
		for k := 0; k+1 < len(list); k++ {
			if !p.isLoop(&list[k]) {
				continue
			}
			outer := r.starts[list[k+1].PC]
			if isFirst {
				p.wrapper, isFirst = outer, false
			} else if p.wrapper != outer {
				p.wrapper = 0
			}
		}
	}
	return p
}

// isLoop reports whether a native frame is of the interpreter's loop.
func (p *placer) isLoop(f *sdk.NativeFrame) bool {
	if f.Function == "vm_exec_core" {
		return true
	}
	start := p.starts[f.PC]
	return start != 0 && p.loops[start]
}

// Numbers of registers that the interpreter's loop has its PC and its control frame in.
const registerPC, registerFrame = 14, 15

// atRegisters gives the innermost frame the line of the PC that the interpreter's loop has in a
// register, where the loop itself was interrupted: it writes the PC before calls alone.
func (p *placer) atRegisters(native *sdk.NativeStack, frames []*frame) {
	f := frames[0]
	if f.sequence == nil || f.isHidden || len(native.Frames) == 0 || !p.isLoop(&native.Frames[0]) {
		return
	}
	registers, err := p.engine.ReadRegisters(p.ctx, native.Thread, []uint32{registerPC, registerFrame})
	if err != nil {
		return
	}
	pc, hasPC := registers.Uint64(registerPC, p.request.ByteOrder)
	at, hasFrame := registers.Uint64(registerFrame, p.request.ByteOrder)
	if !hasPC || !hasFrame || at != f.address {
		return
	}
	line, err := p.line(f.sequence, pc)
	if err != nil {
		return
	}
	f.shown.Line = line
}

// group is native frames that are one execution of the interpreter.
type group struct{ first, end int }

// groups returns the executions of the interpreter in a native stack, innermost first.
func (p *placer) groups(frames []sdk.NativeFrame) (list []group) {
	for i := 0; i < len(frames); i++ {
		if !p.isLoop(&frames[i]) {
			continue
		}
		g := group{i, i + 1}
		if i+1 < len(frames) && !p.isLoop(&frames[i+1]) && p.wrapper != 0 && p.starts[frames[i+1].PC] == p.wrapper {
			g.end++
		}
		list = append(list, g)
		i = g.end - 1
	}
	return list
}

// segments returns the frames of each execution of the interpreter, innermost first. Behind the
// last one are those that belong to none.
func segments(frames []*frame) (list [][]*frame) {
	start := 0
	for i, f := range frames {
		if f.sequence != nil && f.flags&frameFinish != 0 {
			list = append(list, frames[start:i+1])
			start = i + 1
		}
	}
	return append(list, frames[start:])
}

// place returns the runs of frames in a native stack. isWhole says that the frames are all.
func (p *placer) place(native *sdk.NativeStack, frames []*frame, isWhole bool) (runs []sdk.ManagedRun, problem string) {
	groups, parts := p.groups(native.Frames), segments(frames)
	executions := len(parts) - 1
	switch {
	case len(groups) < executions && !native.IsCut:
		problem = fmt.Sprintf("%d of %d executions of the interpreter are not among the native frames: their frames stand behind the others", executions-len(groups), executions)
	case len(groups) > executions && isWhole:
		problem = fmt.Sprintf("the native frames have %d executions of the interpreter, the control frames %d: their order in each other is not known", len(groups), executions)
	}
	next := 0
	add := func(first, count int, list []*frame) {
		run := sdk.ManagedRun{First: uint32(first), Count: uint32(count)} //nolint:gosec // indices
		for _, f := range list {
			if !f.isHidden {
				run.Frames = append(run.Frames, f.shown)
			}
		}
		if len(run.Frames) > 0 {
			runs = append(runs, run)
		}
		next = first + count
	}
	for i, part := range parts {
		if i < executions && i < len(groups) {
			g := groups[i]
			part = p.placeC(part, native.Frames[:g.first], next, add, true)
			add(g.first, g.end-g.first, part)
			continue
		}
		end := len(native.Frames)
		part = p.placeC(part, native.Frames[:end], next, add, false)
		add(end, 0, part)
	}
	return runs, problem
}

// placeC puts the innermost frames of C beside their functions, from a native frame on, and
// returns the frames that are left. isLast says that the frame outside those is the interpreter's,
// which has called the outermost.
func (p *placer) placeC(part []*frame, native []sdk.NativeFrame, next int, add func(first, count int, list []*frame), isLast bool) []*frame {
	start := 0
	for i, f := range part {
		if f.sequence != nil {
			break
		}
		if f.function == 0 || f.isHidden {
			continue
		}
		at := next
		for at < len(native) && p.starts[native[at].PC] != f.function {
			at++
		}
		if at == len(native) {
			continue
		}
		next = at + 1
		count := 0
		if isLast && i+1 < len(part) && part[i+1].sequence != nil {
			count = len(native) - next // how the interpreter calls a function
		}
		add(next, count, part[start:i+1])
		next += count
		start = i + 1
	}
	return part[start:]
}
