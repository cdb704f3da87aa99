// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// methodWord is the place of the method in an interpreter's frame, in bytes from the frame
// pointer.
const methodWord = -24

// frameRecord is how far the CFA of a frame with a frame record is above it.
const frameRecord = 16

// signalReturns are the functions to which a signal's handler returns: the frame outside them was
// interrupted, and had called nothing.
var signalReturns = map[string]bool{"__restore_rt": true, "__kernel_rt_sigreturn": true}

// ManagedFrames finds the methods of interpreted frames, and of compiled ones that will go on in
// the interpreter.
func (p *plugin) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	m, isOpen := p.known.Get(req.Runtime)
	if !isOpen {
		return nil, sdk.ErrObjectNotOpen
	}
	r := m.newReader(ctx, e)
	r.prefetchFrames(req.Threads)
	threads, problem := r.readThreads()
	answer := &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(req.Threads))}
	for i := range req.Threads {
		w := &stackWalk{reader: r, ctx: ctx, engine: e, native: &req.Threads[i], stack: &answer.Stacks[i]}
		if t := m.threadOf(req.Threads[i].Thread, threads); t != nil {
			r.describe(t, threads, w.stack)
			w.notifier = r.notifierOf(t, threads)
		}
		if problem != nil {
			w.stack.Problem = problem.Error()
		}
		w.walk()
		if r.Err() != nil {
			return nil, r.Err()
		}
	}
	return answer, nil
}

// prefetchFrames reads ahead the stacks, and then the methods that they lead to.
func (r *reader) prefetchFrames(threads []sdk.NativeStack) {
	var frames []uint64
	for i := range threads {
		for k := range threads[i].Frames {
			if f := &threads[i].Frames[k]; f.HasCFA && r.queue.has(f.PC) {
				frames = append(frames, f.CFA-frameRecord)
			}
		}
	}
	var words []uint64
	for _, fp := range frames {
		words = append(words, fp+8*uint64(r.version.bcp)) //nolint:gosec // below
	}
	r.Prefetch(words, 64)
	follow := func(list []uint64, offset uint64) (next []uint64) {
		for _, a := range list {
			if n, err := r.Pointer(a + offset); err == nil && n != 0 && n%8 == 0 {
				next = append(next, n)
			}
		}
		r.Prefetch(next, 64)
		return next
	}
	list := follow(frames, ^uint64(-methodWord-1))
	list = follow(list, r.layout.constMethod.offset)
	list = follow(list, r.constants.offset)
	follow(list, r.poolHolder.offset)
}

// stackWalk finds the frames of one stack.
type stackWalk struct {
	*reader
	ctx    context.Context
	engine sdk.RuntimeEngine
	native *sdk.NativeStack
	stack  *sdk.ManagedStack
	// notifier is the object by which the thread waits to be notified: it does not hold the lock
	// of that meanwhile; 0: none.
	notifier uint64
}

// walk goes over the native frames.
func (w *stackWalk) walk() {
	for i := range w.native.Frames {
		f := &w.native.Frames[i]
		frames, err := w.framesFor(i, f)
		if err != nil {
			w.stack.Problem = fmt.Sprintf("frame %d: %v; frames of Java from there on are missing", i, err)
			return
		}
		if len(frames) > 0 {
			w.stack.Runs = append(w.stack.Runs, sdk.ManagedRun{First: uint32(i), Count: 1, Frames: frames}) //nolint:gosec // an index
		}
	}
}

// framesFor are the methods that a native frame executes, where the code alone does not tell.
func (w *stackWalk) framesFor(i int, f *sdk.NativeFrame) ([]sdk.ManagedFrame, error) {
	lookup := f.PC - 1
	if w.isExact(i) {
		lookup = f.PC
	}
	switch {
	case !f.HasCFA:
		return nil, nil
	case w.queue.has(lookup):
		c := w.queue.find(lookup)
		if c == nil || !c.hasFrame(lookup) {
			return nil, nil
		}
		return w.interpreted(i, f.CFA-frameRecord)
	case i > 0 && w.heapOf(lookup) != nil:
		return w.compiled(i, f)
	}
	return nil, nil
}

// isExact reports whether a frame has called nothing.
func (w *stackWalk) isExact(i int) bool {
	return i == 0 || signalReturns[w.native.Frames[i-1].Function]
}

// hasFrame reports whether the frame of a method is there at an address.
func (c *codelet) hasFrame(pc uint64) bool {
	for _, part := range c.frame {
		if part.has(pc) {
			return true
		}
	}
	return false
}

// interpreted reads the frame of an interpreted method.
func (w *stackWalk) interpreted(i int, fp uint64) ([]sdk.ManagedFrame, error) {
	if fp%8 != 0 {
		return nil, fmt.Errorf("its frame record is at %#x", fp)
	}
	address, err := w.Pointer(fp + ^uint64(-methodWord-1))
	if err != nil {
		return nil, err
	}
	m, err := w.methodAt(address)
	if err != nil {
		return nil, err
	}
	if w.stack != nil && len(w.native.Frames) > 0 && !w.isExact(i) {
		w.addLocks(fp)
	}
	if m.isNative {
		return []sdk.ManagedFrame{w.frameOf(m, 0, sdk.Builtin)}, nil
	}
	bci, isKnown, err := w.position(i, fp, m)
	if err != nil {
		return nil, err
	}
	frame := w.frameOf(m, bci, sdk.Interpreted)
	if !isKnown {
		frame.Line = 0
	}
	return []sdk.ManagedFrame{frame}, nil
}

// position finds the position in the bytecode of a method. While the interpreter executes its own
// code it has that in a register, and in the frame an older one.
func (w *stackWalk) position(i int, fp uint64, m *method) (bci int64, isKnown bool, err error) {
	bcp, err := w.Pointer(fp + 8*uint64(w.version.bcp)) //nolint:gosec // below
	if err != nil {
		return 0, false, err
	}
	if w.isExact(i) {
		if i > 0 {
			return 0, false, nil
		}
		registers, failed := w.engine.ReadRegisters(w.ctx, w.native.Thread, []uint32{regR13})
		if failed != nil {
			return 0, false, nil //nolint:nilerr // the target lacks it
		}
		now, has := registers.Uint64(regR13, w.request.ByteOrder)
		return int64(now - m.code), has && now-m.code < m.codeSize, nil //nolint:gosec // checked
	}
	if bcp < m.codeSize && w.version.last == 8 { // during a collection of Java 8
		return int64(bcp), true, nil //nolint:gosec // 16 bits
	}
	if bcp-m.code >= m.codeSize {
		return 0, false, fmt.Errorf("its position in %s is %#x, expected %#x to %#x", m.name, bcp, m.code, m.code+m.codeSize)
	}
	return int64(bcp - m.code), true, nil //nolint:gosec // checked
}

// compiled reports missing methods of a compiled frame, and returns its methods where it is turned into
// frames of the interpreter: else CodeRules has them.
func (w *stackWalk) compiled(i int, f *sdk.NativeFrame) ([]sdk.ManagedFrame, error) {
	frames, err := w.deoptimized(f)
	if err == nil && len(frames) == 0 && !w.isExact(i) {
		if b, failed := w.blobAt(w.MemoryReader, f.PC-1); failed == nil && b.isNmethod && b.code.has(f.PC-1) {
			_, err = w.framesAt(b, f.PC-1)
		}
	}
	if err != nil && w.stack.Problem == "" {
		w.stack.Problem = fmt.Sprintf("frame %d: methods of compiled code are missing: %v", i, err)
	}
	return frames, nil
}

// deoptimized are the methods of a compiled frame that returns to where it is turned into frames of
// the interpreter: it keeps the address at which it was.
func (w *stackWalk) deoptimized(f *sdk.NativeFrame) ([]sdk.ManagedFrame, error) {
	b, err := w.blobAt(w.MemoryReader, f.PC-1)
	if err != nil || !b.isNmethod || b.isNativeCall || !w.originalPC.isKnown {
		return nil, nil //nolint:nilerr // CodeRules has said why
	}
	handler, err := w.deoptimizeHandler(b)
	if err != nil || handler != f.PC {
		return nil, err
	}
	offset, err := get(w.MemoryReader, b.address, w.originalPC)
	if err != nil {
		return nil, err
	}
	if offset >= b.frameSize {
		return nil, fmt.Errorf("the address that it returns to is kept at %#x of a frame of %#x bytes", offset, b.frameSize)
	}
	pc, err := w.Pointer(f.CFA - b.frameSize + offset)
	if err != nil {
		return nil, err
	}
	if !b.code.has(pc - 1) {
		return nil, fmt.Errorf("the address that it returned to is %#x, expected %#x to %#x", pc, b.code.start, b.code.end)
	}
	return w.framesAt(b, pc-1)
}

// deoptimizeHandler is where a compiled frame returns to that is turned into frames of the interpreter.
func (w *stackWalk) deoptimizeHandler(b *blob) (uint64, error) {
	if w.deoptimize.isKnown {
		return get(w.MemoryReader, b.address, w.deoptimize)
	}
	offset, err := get(w.MemoryReader, b.address, w.deoptimizeOffset)
	if w.immutableData.isKnown { // from Java 23 on it is counted from the code
		return b.code.start + offset, err
	}
	return b.address + offset, err
}

// threadOf returns the thread of Java that a thread executes; nil: it executes none.
func (m *machine) threadOf(handle uint64, threads []*javaThread) *javaThread {
	for i := range m.request.Threads {
		if own := &m.request.Threads[i]; own.Thread == handle {
			for _, t := range threads {
				if t.lwp == own.ID {
					return t
				}
			}
		}
	}
	return nil
}
