// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/lock"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file puts what a thread waited for below its stack, as a frame in brackets: the lock and the
// thread that holds it, the system call, or the state.

// waits are the samples of threads that waited. What each waited for is known when the functions of
// its stack are.
type waits struct {
	index   map[waitKey]uint32
	keys    []waitKey
	samples []waitSample
}

// waitKey is the same wait in many samples.
type waitKey struct {
	stack, thread uint32
	raw           string
}

// waitSample is a sample, and the index of its wait.
type waitSample struct{ sample, key uint32 }

// waitIn returns what a sample says of a wait, which outlives the sample; nil: nothing.
func waitIn(s *perfdata.Sample) []byte {
	raw, _ := perfdata.SplitRaw(s.Raw)
	if len(raw) == 0 {
		return nil
	}
	if _, ok := perfdata.ReadWait(raw); !ok {
		return nil
	}
	return bytes.Clone(raw)
}

// add notes that the last sample is of a thread that waited.
func (w *waits) add(b *profileBuilder, raw []byte) {
	if w.index == nil {
		w.index = map[waitKey]uint32{}
	}
	sample := len(b.out.Samples) - 1
	key := waitKey{b.out.Samples[sample].Stack, b.out.Samples[sample].Thread, string(raw)}
	i, ok := w.index[key]
	if !ok {
		i = uint32(len(w.keys)) //nolint:gosec // at most one for each sample
		w.index[key] = i
		w.keys = append(w.keys, key)
	}
	w.samples = append(w.samples, waitSample{uint32(sample), i}) //nolint:gosec // as above
}

// name puts frames below the stacks of threads that waited.
func (w *waits) name(b *profileBuilder) {
	threads := map[int]map[uint32]*trace.Thread{}
	stacks := make([]uint32, len(w.keys))
	for i := range w.keys {
		key := &w.keys[i]
		frame := b.named(namedFrame{name: b.waitName(key, threads), module: -1, kernel: -1})
		b.out.Frames[frame].FoundBy = trace.ByContext // by the state of the thread
		stacks[i] = b.push(trace.ProfileStack{Caller: key.stack, Frame: frame})
	}
	for _, s := range w.samples {
		b.out.Samples[s.sample].Stack = stacks[s.key]
	}
}

// waitStates name the states of threads that are in no system call.
var waitStates = map[byte]string{'S': "[sleeping]", 'D': "[uninterruptible]", 'T': "[stopped]", 't': "[traced]", 'P': "[parked]", 'I': "[idle]"}

// waitName names a wait. threads are the threads of processes that were asked about.
func (b *profileBuilder) waitName(key *waitKey, threads map[int]map[uint32]*trace.Thread) string {
	w, _ := perfdata.ReadWait([]byte(key.raw))
	pid := b.out.Threads[key.thread].PID
	if w.HasFutex {
		if threads[pid] == nil {
			threads[pid] = b.threadsOf(pid)
		}
		r := lock.Reader{
			Memory: func(address uint64, buf []byte) int {
				if address < w.MemoryStart || address-w.MemoryStart >= uint64(len(w.Memory)) {
					return 0
				}
				return copy(buf, w.Memory[address-w.MemoryStart:])
			},
			Threads: threads[pid],
			Pointer: func(*trace.Thread) (uint64, bool) { return 0, false },
		}
		if wait := r.Of(w.Futex, b.lockFrames(key.stack), true); wait != nil {
			return "[waits for " + wait.Text(threads[pid][uint32(b.out.Threads[key.thread].TID)]) + "]" //nolint:gosec // an ID
		}
	}
	if w.HasCall {
		if name, ok := waitCalls[b.recording.arch][w.Call]; ok {
			return "[waits in " + name + "]"
		}
		return "[waits in system call " + strconv.FormatUint(w.Call, 10) + "]"
	}
	if name, ok := waitStates[w.State]; ok {
		return name
	}
	return "[waits]"
}

// threadsOf returns the threads of a process by their IDs.
func (b *profileBuilder) threadsOf(pid int) map[uint32]*trace.Thread {
	list := map[uint32]*trace.Thread{}
	for i := range b.out.Threads {
		if t := &b.out.Threads[i]; t.PID == pid && t.TID > 0 {
			list[uint32(t.TID)] = &trace.Thread{ID: strconv.Itoa(t.TID), Name: t.Comm} //nolint:gosec // an ID
		}
	}
	return list
}

// A lock is known by these frames of a stack.
const (
	innerLockFrames = 16
	outerLockFrames = 4
)

// lockFrames are the frames of a stack by which a lock is known.
func (b *profileBuilder) lockFrames(stack uint32) (list []lock.Frame) {
	frames := b.out.StackFrames(nil, stack)
	for i, index := range frames {
		if i >= innerLockFrames && i < len(frames)-outerLockFrames {
			continue
		}
		f := &b.out.Frames[index]
		frame := lock.Frame{}
		if f.Module >= 0 {
			frame.Module = b.out.Modules[f.Module].Path
		}
		for k := range f.Symbols {
			s := &f.Symbols[k]
			linkage := s.LinkageName
			if linkage == "" {
				linkage = s.Function
			}
			frame.Functions = append(frame.Functions, [2]string{linkage, s.Function})
		}
		list = append(list, frame)
	}
	return list
}
