// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// recorder passes calls on to the plugin, and keeps what it was given and what it read.
type recorder struct {
	sdk.Runtime
	ids map[uint64]string // of threads, by handle
	got map[string]*stack
	// waiting are the threads and fibers that no native thread executes.
	waiting []*stack
	kept    kept
	failed  error
}

// kept is what the plugin's own tests need of a process.
type kept struct {
	Open     *sdk.OpenRuntimeRequest
	Sections map[string][]byte
	Memory   []piece // by address
	Frames   []*sdk.ManagedFramesRequest
	Threads  *sdk.ManagedThreadsRequest
}

// piece is memory of the process.
type piece struct {
	Address uint64
	Bytes   []byte
}

// OpenRuntime passes the call on.
func (r *recorder) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	r.kept = kept{Open: req, Sections: map[string][]byte{}}
	r.ids = map[uint64]string{}
	for _, t := range req.Threads {
		r.ids[t.Thread] = t.ID
	}
	a, err := r.Runtime.OpenRuntime(ctx, &reads{e, r}, req)
	if err == nil && len(a.Problems) > 0 {
		r.failed = fmt.Errorf("OpenRuntime: %s", strings.Join(a.Problems, "; "))
	}
	return a, err
}

// ManagedFrames passes the call on.
func (r *recorder) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	r.kept.Frames = append(r.kept.Frames, req)
	a, err := r.Runtime.ManagedFrames(ctx, &reads{e, r}, req)
	if err != nil {
		r.failed = err
		return a, err
	}
	for i := range a.Stacks {
		s := &stack{problem: a.Stacks[i].Problem}
		if e := a.Stacks[i].Exception; e != nil {
			s.raised = &raised{kind: e.Type, text: e.Text}
			for k := range e.Frames {
				s.raised.frames = append(s.raised.frames, frame{e.Frames[k].Function, e.Frames[k].File, int(e.Frames[k].Line)})
			}
		}
		for _, run := range a.Stacks[i].Runs {
			for k := range run.Frames {
				f := &run.Frames[k]
				s.frames = append(s.frames, frame{f.Function, f.File, int(f.Line)})
				if strings.TrimPrefix(f.Function, "Object#") == "holder" {
					s.locals = map[string]string{}
					for _, v := range f.Variables {
						s.locals[v.Name] = v.Text
					}
				}
			}
		}
		r.got[r.ids[req.Threads[i].Thread]] = s
	}
	if r.waiting, err = r.parked(ctx, e); err != nil {
		r.failed = err
	}
	r.merge()
	return a, nil
}

// parked asks for the threads that no native thread executes.
func (r *recorder) parked(ctx context.Context, e sdk.RuntimeEngine) (list []*stack, err error) {
	r.kept.Threads = &sdk.ManagedThreadsRequest{Runtime: r.kept.Open.Runtime, Frames: true}
	a, err := r.Runtime.ManagedThreads(ctx, &reads{e, r}, r.kept.Threads)
	if err != nil {
		return nil, err
	}
	for i := range a.Threads {
		m := &a.Threads[i]
		s := &stack{problem: m.Problem, reason: m.Reason}
		for k := range m.Frames {
			s.frames = append(s.frames, frame{m.Frames[k].Function, m.Frames[k].File, int(m.Frames[k].Line)})
		}
		if !m.IsMounted {
			list = append(list, s)
		}
	}
	if len(a.Problems) > 0 {
		return list, fmt.Errorf("ManagedThreads: %s", strings.Join(a.Problems, "; "))
	}
	return list, nil
}

// reads passes the requests of the plugin on to the engine, and keeps the answers.
type reads struct {
	sdk.RuntimeEngine
	to *recorder
}

// ReadMemory passes the request on.
func (e *reads) ReadMemory(ctx context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	n, err := e.RuntimeEngine.ReadMemory(ctx, m, buf)
	e.to.keep(m.Address, buf[:n])
	return n, err
}

// ReadSection passes the request on.
func (e *reads) ReadSection(ctx context.Context, object uint64, name string) ([]byte, error) {
	b, err := e.RuntimeEngine.ReadSection(ctx, object, name)
	if err == nil {
		e.to.kept.Sections[name] = b
	}
	return b, err
}

// keep keeps memory.
func (r *recorder) keep(address uint64, b []byte) {
	if len(b) > 0 {
		r.kept.Memory = append(r.kept.Memory, piece{address, slices.Clone(b)})
	}
}

// merge sorts what was kept, without repetitions.
func (r *recorder) merge() {
	byAddress := map[uint64][]byte{}
	for _, p := range r.kept.Memory {
		if len(p.Bytes) > len(byAddress[p.Address]) {
			byAddress[p.Address] = p.Bytes
		}
	}
	r.kept.Memory = nil
	for _, a := range slices.Sorted(maps.Keys(byAddress)) {
		r.kept.Memory = append(r.kept.Memory, piece{a, byAddress[a]})
	}
}
