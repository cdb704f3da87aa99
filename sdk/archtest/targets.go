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
	// Request has the notes that the architecture owns. Without notes there is no call of
	// OpenTarget.
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

// maxTargetThreads is how many threads of a target are bound in one call.
const maxTargetThreads = 1024

// openTargets reads the notes of the sample targets, and binds their threads.
func (v *verifier) openTargets() {
	for i := range v.targets {
		t := &v.targets[i]
		if len(t.Request.Notes) > 0 {
			v.openTarget(t)
		}
		if threads := t.Threads[:min(len(t.Threads), maxTargetThreads)]; len(threads) > 0 {
			v.bindTarget(t, "threads", threads)
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
	threads := make([]sdk.ThreadState, min(len(answer.Threads), maxTargetThreads))
	for i := range threads {
		threads[i] = v.stateOf(t, uint64(i), &answer.Threads[i])
	}
	threads = slices.DeleteFunc(threads, func(s sdk.ThreadState) bool { return answer.Threads[s.Thread].Problem != "" })
	if len(threads) > 0 && len(t.Threads) == 0 {
		v.bindTarget(t, "threads of OpenTarget's answer", threads)
	}
}

func (v *verifier) openNotes(e sdk.Engine, what string, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, bool) {
	return ask(v.session, "OpenTarget", what, func(ctx context.Context) (*sdk.OpenTargetAnswer, error) {
		return v.arch.OpenTarget(ctx, v.offer(e), req)
	}, func(a *sdk.OpenTargetAnswer) error { return a.Validate(v.desc, req) })
}

// stateOf returns the top frame of a thread that OpenTarget answered, with the registers
// that are in memory.
func (v *verifier) stateOf(t *Target, handle uint64, th *sdk.TargetThread) sdk.ThreadState {
	s := sdk.ThreadState{Thread: handle, Registers: th.Registers.Clone(), Processor: th.Processor, Lanes: th.Lanes, Spaces: th.Spaces}
	for i := range th.Saved {
		saved := &th.Saved[i]
		info, _ := v.desc.Register(saved.First)
		size := uint64(info.Bits+7) / 8
		for j := range saved.Count {
			value := make([]byte, size)
			if n, _ := t.reads().ReadMemory(v.ctx, sdk.MemoryRange{Address: saved.Address + uint64(j)*size, Lane: -1}, value); n == len(value) {
				s.Registers.Set(saved.First+j, value)
			}
		}
	}
	return s
}

// bindTarget binds threads of a target.
func (v *verifier) bindTarget(t *Target, what string, threads []sdk.ThreadState) {
	what = fmt.Sprintf("%d %s of %s", len(threads), what, t.Name)
	answer, ok := v.bindThreadsOf(t.reads(), what, &sdk.BindThreadsRequest{Threads: threads})
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
		if len(t.Request.Notes) == 0 {
			continue
		}
		for round := range 2 * len(damageKinds) {
			w := damageKinds[round%len(damageKinds)]
			r := rand.New(rand.NewPCG(uint64(i), uint64(round)))
			req := &sdk.OpenTargetRequest{Notes: slices.Clone(t.Request.Notes)}
			for j := range req.Notes {
				req.Notes[j].Data = w.change(r, req.Notes[j].Data)
			}
			v.openNotes(t.reads(), fmt.Sprintf("%s, the notes damaged: %s", t.Name, w.name), req)
		}
		v.openNotes(emptyEngine{}, t.Name+", whose memory is not there", &t.Request)
		v.openNotes(garbageEngine{noise(1000)}, t.Name+", whose memory is noise", &t.Request)
	}
}
