// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// Target is an open target, for calls of one architecture about it.
type Target struct {
	// Requests are the requests of OpenTarget that the engine made when it opened the target:
	// one for each owner of notes that the architecture claims.
	Requests []*sdk.OpenTargetRequest
	// Threads are the threads of the architecture, as BindThreads is told of them, and IDs
	// their names in reports.
	Threads []sdk.ThreadState
	IDs     []string
	// Engine reads the target; nil if the architecture needs none.
	Engine sdk.Engine

	target *engine.Target
	engine *engine.Engine
}

// OpenTarget opens a target with an architecture and its description. others describe the
// architectures that the target may have besides: they read nothing.
func OpenTarget(ctx context.Context, arch sdk.Architecture, d *sdk.Description, others []*sdk.Description, path string) (*Target, error) {
	r := &recorder{Architecture: arch, description: d}
	inProcess := []sdk.Architecture{r}
	for _, other := range others {
		if !isRival(other, d) {
			inProcess = append(inProcess, described{description: other})
		}
	}
	e, err := engine.New(engine.Options{MaxFrames: 1, Plugins: plugin.Options{InProcess: inProcess}})
	if err != nil {
		return nil, err
	}
	t := &Target{engine: e}
	if t.target, err = e.Open(path); err != nil {
		_ = e.Close()
		return nil, err
	}
	for _, th := range t.target.Threads() {
		if th.Arch != d.Name || th.Unread != "" || th.Problem != "" {
			continue
		}
		if len(t.Threads) == 0 {
			t.target.Walk(ctx, th) // it is bound, and the recorder has what reads threads
		}
		t.Threads = append(t.Threads, sdk.ThreadState{Thread: th.Handle, Registers: th.Registers, Processor: th.Processor, Lanes: th.Lanes, Spaces: th.Spaces})
		t.IDs = append(t.IDs, th.ID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.Requests, t.Engine = r.requests, r.engine
	return t, nil
}

// Close closes the target.
func (t *Target) Close() {
	_ = t.target.Close()
	_ = t.engine.Close()
}

// NoteReader returns the name of the architecture, of those described, that a target asks about
// its notes; or else that of its first thread.
func NoteReader(descriptions []*sdk.Description, path string) (string, error) {
	var all []*recorder
	var inProcess []sdk.Architecture
	for _, d := range descriptions {
		r := &recorder{Architecture: described{description: d}, description: d}
		all, inProcess = append(all, r), append(inProcess, r)
	}
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: inProcess}})
	if err != nil {
		return "", err
	}
	defer e.Close()
	t, err := e.Open(path)
	if err != nil {
		return "", err
	}
	defer t.Close()
	if i := slices.IndexFunc(all, func(r *recorder) bool { return len(r.requests) > 0 }); i >= 0 {
		return all[i].description.Name, nil
	}
	if threads := t.Threads(); len(threads) > 0 && threads[0].Arch != "" {
		return threads[0].Arch, nil
	}
	return "", fmt.Errorf("%s: no architecture reads its notes or has threads in it", path)
}

// described is an architecture of which there is only the description.
type described struct {
	sdk.Base
	description *sdk.Description
}

// Describe implements sdk.Architecture.
func (d described) Describe(context.Context) (*sdk.Description, error) { return d.description, nil }

// recorder keeps the requests of OpenTarget that an engine makes of an architecture, and what
// reads its target.
type recorder struct {
	sdk.Architecture
	description *sdk.Description

	mu       sync.Mutex
	requests []*sdk.OpenTargetRequest
	engine   sdk.Engine // of the last call
}

// Describe implements sdk.Architecture.
func (r *recorder) Describe(context.Context) (*sdk.Description, error) { return r.description, nil }

// OpenTarget implements sdk.Architecture.
func (r *recorder) OpenTarget(ctx context.Context, e sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	r.mu.Lock()
	r.requests, r.engine = append(r.requests, req), e
	r.mu.Unlock()
	return r.Architecture.OpenTarget(ctx, e, req)
}

// BindThreads implements sdk.Architecture.
func (r *recorder) BindThreads(ctx context.Context, e sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	r.mu.Lock()
	r.engine = e
	r.mu.Unlock()
	return r.Architecture.BindThreads(ctx, e, req)
}

// openTargets opens the recorded states for the checks of the kit. What cannot be opened is found
// by the check of states.
func (v *verifier) openTargets() (list []archtest.Target) {
	others := make([]*sdk.Description, len(v.Bundled))
	for i, b := range v.Bundled {
		others[i] = b.Description()
	}
	for _, path := range v.States {
		t, err := OpenTarget(v.ctx, v.examinee, v.desc, others, path)
		if err != nil {
			continue
		}
		v.targets = append(v.targets, t)
		list = append(list, archtest.Target{Name: path, Threads: t.Threads, Engine: t.Engine})
		for i, r := range t.Requests {
			if i == 0 {
				list[len(list)-1].Request = *r
			} else {
				list = append(list, archtest.Target{Name: path, Request: *r, Engine: t.Engine})
			}
		}
	}
	return list
}
