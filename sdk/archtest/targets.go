// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// Target is a recorded target with threads of the architecture.
type Target struct {
	Name string // in findings
	// Request has the notes that the architecture owns, or the header of a core of its sections.
	// Without either there is no call of OpenTarget.
	Request sdk.OpenTargetRequest
	// Threads are bound. The threads that OpenTarget answers are bound besides.
	Threads []sdk.ThreadState
	// Engine reads the target; nil: nothing of it can be read.
	Engine sdk.Engine
}

// reads returns what reads a target.
func (t *Target) reads() sdk.Engine {
	if t.Engine == nil {
		return emptyEngine{}
	}
	return t.Engine
}

// isOpened reports whether there is a call of OpenTarget about the target.
func (t *Target) isOpened() bool { return len(t.Request.Notes) > 0 || t.Request.File != nil }

// maxTargetThreads is how many threads of a target are bound in one call.
const maxTargetThreads = 1024

// openTargets reads the notes of the sample targets, and binds their threads.
func (v *verifier) openTargets() {
	for i := range v.targets {
		t := &v.targets[i]
		if t.isOpened() {
			v.openTarget(t)
		}
		if threads := t.Threads[:min(len(t.Threads), maxTargetThreads)]; len(threads) > 0 {
			v.bindTarget(t, t.reads(), "threads", threads)
		}
	}
}

// openTarget reads the notes of one target.
func (v *verifier) openTarget(t *Target) {
	answer, ok := v.openNotes(t.reads(), t.Name, &t.Request)
	v.unanswered(Error, "OpenTarget", t.Name)
	if !ok {
		return
	}
	again, ok := v.openNotes(t.reads(), t.Name+", again", &t.Request)
	if ok && !reflect.DeepEqual(answer, again) {
		v.find(Error, "Answer by what the notes and the memory say, in an order that they give.", "OpenTarget of %s: two calls gave different answers", t.Name)
	}
	for _, c := range targetChecks {
		c.each(v, t, answer, func(format string, args ...any) {
			v.find(c.severity, c.fix, "OpenTarget of %s: %s", t.Name, fmt.Sprintf(format, args...))
		})
	}
	if len(t.Threads) > 0 {
		return // those are the same, as the target has them
	}
	var threads []sdk.ThreadState
	for i := range answer.Threads[:min(len(answer.Threads), maxTargetThreads)] {
		if th := &answer.Threads[i]; th.Problem == "" {
			threads = append(threads, sdk.ThreadState{Thread: uint64(i), Registers: th.Registers, Processor: th.Processor, Lanes: th.Lanes, Spaces: th.Spaces})
		}
	}
	if len(threads) > 0 {
		v.bindTarget(t, openedEngine{t.reads(), v.desc, answer}, "threads of OpenTarget's answer", threads)
	}
}

// openedEngine reads a target whose threads are the ones in an answer to OpenTarget, by their
// indices.
type openedEngine struct {
	sdk.Engine
	description *sdk.Description
	answer      *sdk.OpenTargetAnswer
}

// ReadRegisters implements sdk.Engine. Registers that are in memory are read there.
func (e openedEngine) ReadRegisters(ctx context.Context, thread uint64, numbers []uint32) (sdk.Registers, error) {
	if thread >= uint64(len(e.answer.Threads)) {
		return sdk.Registers{}, errThread
	}
	th := &e.answer.Threads[thread]
	all := th.Registers.Clone()
	for i := range th.Saved {
		saved := &th.Saved[i]
		info, _ := e.description.Register(saved.First)
		size := uint64(info.Bits+7) / 8
		for j := range saved.Count {
			value := make([]byte, size)
			if n, _ := e.ReadMemory(ctx, sdk.MemoryRange{Space: saved.Into, Address: saved.Address + uint64(j)*size, Lane: -1}, value); n == len(value) {
				all.Set(saved.First+j, value)
			}
		}
	}
	if len(numbers) == 0 {
		return all, nil
	}
	var some sdk.Registers
	for _, n := range numbers {
		if value, ok := all.Get(n); ok {
			some.Set(n, value)
		}
	}
	return some, nil
}

func (v *verifier) openNotes(e sdk.Engine, what string, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, bool) {
	return ask(v.session, "OpenTarget", what, func(ctx context.Context) (*sdk.OpenTargetAnswer, error) {
		return v.arch.OpenTarget(ctx, v.offer(e), req)
	}, func(a *sdk.OpenTargetAnswer) error { return a.Validate(v.desc, req) })
}

// bindTarget binds threads of a target.
func (v *verifier) bindTarget(t *Target, e sdk.Engine, what string, threads []sdk.ThreadState) {
	what = fmt.Sprintf("%d %s of %s", len(threads), what, t.Name)
	answer, ok := v.bindThreadsOf(e, what, &sdk.BindThreadsRequest{Threads: threads})
	v.unanswered(Error, "BindThreads", what)
	if !ok {
		return
	}
	for i := range answer.Threads {
		if problem := answer.Threads[i].Problem; problem != "" {
			v.find(Warning, "Bind the thread, or let OpenTarget say in Problem why it cannot be walked.", "BindThreads of %s: Threads[%d] has a problem: %s", what, i, problem)
			return
		}
	}
}

// damageTargets reads the notes of the sample targets as if their files were damaged. An
// error is a good answer, and so is any valid one.
func (v *verifier) damageTargets() {
	for i := range v.targets {
		t := &v.targets[i]
		if !t.isOpened() {
			continue
		}
		for round := range 2 * len(damageKinds) {
			w := damageKinds[round%len(damageKinds)]
			r := rand.New(rand.NewPCG(uint64(i), uint64(round)))
			req := &sdk.OpenTargetRequest{Notes: slices.Clone(t.Request.Notes), File: t.Request.File}
			for j := range req.Notes {
				req.Notes[j].Data = w.change(r, req.Notes[j].Data)
			}
			e, what := t.reads(), "the notes"
			if req.File != nil {
				e, what = damagedFile{e, w.change, uint64(round)}, "the file" //nolint:gosec // a small number
			}
			v.openNotes(e, fmt.Sprintf("%s, %s damaged: %s", t.Name, what, w.name), req)
		}
		v.openNotes(emptyEngine{}, t.Name+", whose memory is not there", &t.Request)
		v.openNotes(garbageEngine{noise(1000)}, t.Name+", whose memory is noise", &t.Request)
	}
}

// damagedFile reads a target whose file is damaged: the same bytes each time.
type damagedFile struct {
	sdk.Engine
	change func(r *rand.Rand, data []byte) []byte
	seed   uint64
}

// ReadMemory implements sdk.Engine.
func (e damagedFile) ReadMemory(ctx context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	n, err := e.Engine.ReadMemory(ctx, m, buf)
	r := rand.New(rand.NewPCG(e.seed, m.Address))
	if m.Space == sdk.FileSpace && n > 0 && r.IntN(2) == 0 {
		copy(buf[:n], e.change(r, buf[:n]))
	}
	return n, err
}
