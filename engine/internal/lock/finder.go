// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Finder finds what the threads of a target wait for. It may be used concurrently.
type Finder struct {
	process *walk.Process
	reader  Reader

	mu      sync.Mutex
	globals map[uint64]string // names by address
	walks   int               // how many stacks were walked again for a name
}

// maxNameWalks bounds the stacks that are walked again to find a variable that leads to a lock.
const maxNameWalks = 256

// NewFinder makes a Finder for a target.
func NewFinder(p *walk.Process) *Finder {
	f := &Finder{process: p, globals: map[uint64]string{}}
	f.reader = Reader{Memory: f.read, Pointer: f.pointer, Threads: map[uint32]*trace.Thread{}}
	for _, th := range p.ThreadList().Where(isOfSystem) {
		id, err := strconv.ParseUint(th.ID, 10, 32)
		if th.OwnID != 0 {
			id, err = uint64(th.OwnID), nil //nolint:gosec // positive
		}
		if err == nil && id != 0 {
			f.reader.Threads[uint32(id)] = th //nolint:gosec // at most 2^22
		}
	}
	return f
}

// isOfSystem reports whether a thread is one of the operating system.
func isOfSystem(th *trace.Thread) bool { return th.Wave == nil && th.Goroutine == nil }

// read reads memory of the process.
func (f *Finder) read(address uint64, buf []byte) (n int) {
	_ = object.Guard(func() error {
		n, _ = f.process.State().ReadMemory(locexpr.DefaultSpace, address, buf)
		return nil
	})
	return n
}

// pointer returns the thread pointer of a thread.
func (f *Finder) pointer(th *trace.Thread) (uint64, bool) {
	m := f.process.Machine(th)
	if m == nil || m.Description.ThreadLocal == nil {
		return 0, false
	}
	return th.Registers.Uint64(m.Description.ThreadLocal.Pointer, m.Description.ByteOrder)
}

// Of returns what the thread of a walked stack waits for; nil where that is not known.
func (f *Finder) Of(ctx context.Context, s *trace.Stack) *trace.Wait {
	if s.Thread.Goroutine != nil {
		return f.goroutine(ctx, s)
	}
	call, isCertain, ok := f.call(s.Thread)
	if !ok {
		return nil
	}
	w := f.reader.Of(call, framesOf(s), isCertain)
	if w != nil && w.HasAddress {
		w.Name = f.name(ctx, s, w)
	}
	return w
}

// maxOuter is how many of the outermost frames tell the library of a stack.
const maxOuter = 4

// framesOf returns the innermost and the outermost frames of a stack.
func framesOf(s *trace.Stack) []Frame {
	var list []Frame
	for i := range s.Frames {
		if i >= maxInner && i < len(s.Frames)-maxOuter {
			continue
		}
		f := &s.Frames[i]
		list = append(list, frameOf(f))
		for _, tail := range f.TailCallers() {
			list = append(list, frameOf(&tail))
		}
	}
	return list
}

func frameOf(f *trace.Frame) Frame {
	frame := Frame{IsSignal: f.SignalFrame}
	if f.Module != nil {
		frame.Module = f.Module.Path
	}
	for i := range f.Symbols {
		s := &f.Symbols[i]
		linkage := s.LinkageName
		if linkage == "" {
			linkage = s.Function
		}
		frame.Functions = append(frame.Functions, [2]string{linkage, s.Function})
	}
	return frame
}

// maxCode is how many bytes before the PC are searched for the number of the system call.
const maxCode = 48

// instructions make a system call, by architecture.
var instructions = map[string]struct {
	call   []byte // enters the kernel
	isAtPC bool   // the PC may be at call, which is executed again
	futex  uint32 // the number of the system call
	// sets returns the number that the instruction at the beginning of code gives a call.
	sets func(code []byte) (number uint32, ok bool)
}{
	"x86_64": {call: []byte{0x0f, 0x05}, futex: 202, sets: func(code []byte) (uint32, bool) { // mov $NUMBER, %eax
		if len(code) < 5 || code[0] != 0xb8 {
			return 0, false
		}
		number := binary.LittleEndian.Uint32(code[1:])
		return number, number < maxNumber
	}},
	"aarch64": {call: []byte{0x01, 0, 0, 0xd4}, isAtPC: true, futex: 98, sets: func(code []byte) (uint32, bool) { // mov x8, #NUMBER
		if len(code) < 4 {
			return 0, false
		}
		word := binary.LittleEndian.Uint32(code)
		return word >> 5 & 0xffff, word&0x7fe0001f == 0x52800008
	}},
}

// maxNumber bounds the numbers of system calls.
const maxNumber = 1 << 12

// isFutex reports whether code that ends with a system call gives it the number of futex.
func isFutex(arch string, code []byte) bool {
	known := instructions[arch]
	for i := len(code) - len(known.call) - 1; i >= 0; i-- {
		if bytes.HasPrefix(code[i:], known.call) {
			return false // another one
		}
		if number, ok := known.sets(code[i : len(code)-len(known.call)]); ok {
			return number == known.futex
		}
	}
	return false
}

// call returns the call of futex(2) in which a thread may wait, by its registers and the code
// before its PC. isCertain means that the code shows the number of the system call.
func (f *Finder) call(th *trace.Thread) (call target.FutexCall, isCertain, ok bool) {
	if th.Wave != nil || th.Goroutine != nil || th.IsRunning {
		return call, false, false
	}
	m := f.process.Machine(th)
	if m == nil {
		return call, false, false
	}
	register := func(number uint32) (uint64, bool) {
		return th.Registers.Uint64(number, m.Description.ByteOrder)
	}
	call, ok = target.FutexArguments(m.Description.Name, register)
	pc, hasPC := register(m.Description.PC)
	if !ok || !hasPC || m.Description.ByteOrder != sdk.LittleEndian {
		return call, false, false
	}
	known := instructions[m.Description.Name]
	size := len(known.call)
	var b [maxCode + 4]byte
	if f.read(pc-maxCode, b[:maxCode]) < maxCode {
		return call, false, true // a snapshot without files
	}
	code := b[:maxCode]
	if known.isAtPC && f.read(pc, b[maxCode:maxCode+size]) == size && bytes.Equal(b[maxCode:maxCode+size], known.call) {
		code = b[:maxCode+size]
	}
	if !bytes.HasSuffix(code, known.call) {
		return call, false, false
	}
	return call, isFutex(m.Description.Name, code), true
}

// globalName returns the variable of a module at an address.
func (f *Finder) globalName(address uint64) string {
	f.mu.Lock()
	name, isKnown := f.globals[address]
	f.mu.Unlock()
	if isKnown {
		return name
	}
	name = f.process.GlobalAt(address)
	f.mu.Lock()
	f.globals[address] = name
	f.mu.Unlock()
	return name
}

// name returns the variable at the address of a lock, or one that leads to it.
func (f *Finder) name(ctx context.Context, s *trace.Stack, w *trace.Wait) string {
	name := f.globalName(w.Address)
	if name != "" || w.Kind == trace.WaitFutex {
		return name
	}
	if !f.mayWalk() {
		return ""
	}
	stack, frames := f.process.Activations(ctx, s.Thread)
	return localName(ctx, stack, frames, w.Address)
}

// mayWalk counts the stacks that are walked again, and reports whether one more may be.
func (f *Finder) mayWalk() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.walks++
	return f.walks <= maxNameWalks
}

// maxNamed is how many frames are searched for a variable that leads to a lock.
const maxNamed = 16

// localName returns a variable of the innermost function of the program that leads to an address.
func localName(ctx context.Context, stack *trace.Stack, frames []walk.Activation, address uint64) string {
	for i := range frames[:min(len(frames), maxNamed, len(stack.Frames))] {
		frame := &stack.Frames[i]
		isOwn := func(level int) bool {
			return level < len(frame.Symbols) && !isLibrary(frame.Symbols[level].Function)
		}
		if name := frames[i].NameOf(ctx, address, isOwn); name != "" {
			return name
		}
	}
	return ""
}

// libraryFunctions begin the names of functions that are not the program's.
var libraryFunctions = []string{"_", "std::", "core::", "alloc::", "<std::", "<core::", "<alloc::", "pthread_", "futex_", "lll_", "sem_", "boost::", "parking_lot", "lock_api::", "runtime.", "sync.", "internal/sync."}

func isLibrary(name string) bool {
	return slices.ContainsFunc(libraryFunctions, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// Touch reads the memory that shows what a thread waits for.
func (f *Finder) Touch(th *trace.Thread) {
	if call, _, ok := f.call(th); ok {
		var b [target.LockBefore + target.LockBehind]byte
		f.read(call.Address-target.LockBefore, b[:])
		f.read(call.Address, b[:target.LockBehind]) // before it there may be no memory
	}
}
