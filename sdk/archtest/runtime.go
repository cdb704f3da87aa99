// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/unwindd/unwindd/sdk"
)

// RuntimeOptions are the data of a language runtime that the kit cannot know. The zero value
// will do.
type RuntimeOptions struct {
	// Modules are modules of recorded targets that have the runtime.
	Modules []RuntimeModule
	// Deadline is how long a call may take by the clock; 0 is five seconds.
	Deadline time.Duration
}

// RuntimeModule is a module with the runtime, in a target.
type RuntimeModule struct {
	Name    string // in findings
	Request sdk.OpenRuntimeRequest
	// Engine reads the target; nil: nothing of it can be read.
	Engine sdk.RuntimeEngine
	// Stacks are native stacks of the target's threads.
	Stacks []sdk.NativeStack
}

// runtimeVerifier is one run of the kit with a runtime.
type runtimeVerifier struct {
	*session
	runtime sdk.Runtime
	modules []RuntimeModule
	desc    *sdk.RuntimeDescription // nil until it is known to be valid
}

var runtimeChecks = []struct {
	name string
	run  func(*runtimeVerifier)
}{
	{"description", (*runtimeVerifier).description},
	{"description-constant", (*runtimeVerifier).constant},
	{"modules", (*runtimeVerifier).openModules},
	{"batches", (*runtimeVerifier).batches},
	{"garbage", (*runtimeVerifier).garbage},
	{"size", (*runtimeVerifier).size},
	{"concurrency", (*runtimeVerifier).concurrency},
	{"deadlines", (*runtimeVerifier).deadlines},
}

// RuntimeChecks returns the names of the checks of a runtime, in the order in which they are
// made.
func RuntimeChecks() []string {
	names := make([]string, len(runtimeChecks))
	for i, c := range runtimeChecks {
		names[i] = c.name
	}
	return names
}

// VerifyRuntime makes all checks of a runtime, as Verify does of an architecture.
func VerifyRuntime(ctx context.Context, runtime sdk.Runtime, opts RuntimeOptions) []Finding {
	v := &runtimeVerifier{session: newSession(ctx, cmp.Or(opts.Deadline, 5*time.Second)), runtime: sdk.WithRuntimeBase(runtime), modules: opts.Modules}
	for _, c := range runtimeChecks {
		v.check = c.name
		c.run(v)
		if v.desc == nil || ctx.Err() != nil {
			break
		}
	}
	return v.findings
}

// TestRuntime verifies a runtime as part of a test, as Test does an architecture.
func TestRuntime(t T, runtime sdk.Runtime, opts ...RuntimeOptions) {
	t.Helper()
	var o RuntimeOptions
	if len(opts) > 0 {
		o = opts[0]
	}
	log(t, VerifyRuntime(t.Context(), runtime, o))
}

// description requests the description and stores it when it is valid.
func (v *runtimeVerifier) description() {
	d, ok := ask(v.session, "Describe", "the runtime", v.runtime.Describe, (*sdk.RuntimeDescription).Validate)
	v.unanswered(Error, "Describe", "the runtime")
	if !ok {
		return
	}
	v.desc = d
	for _, w := range []struct {
		when        bool
		detail, fix string
	}{
		{d.Version == "", "Version is empty", "Set Version to the plugin's own version: reports name it."},
		{len(d.Types) > 0 && slices.ContainsFunc(d.Types, func(t sdk.RuntimeType) bool { return len(t.Members) == 0 }),
			"Types has a type without Members: only its size is found", "List the paths of the members that are read."},
	} {
		if w.when {
			v.find(Warning, w.fix, "RuntimeDescription.%s", w.detail)
		}
	}
}

// constant requests the description again: the engine requests it once for good.
func (v *runtimeVerifier) constant() {
	again, ok := ask(v.session, "Describe", "the runtime, again", v.runtime.Describe, (*sdk.RuntimeDescription).Validate)
	if !ok {
		return
	}
	if field := RuntimeDifference(v.desc, again); field != "" {
		v.find(Error, "What differs from one module to the next belongs in OpenRuntime.", "Describe: two calls gave different descriptions, first in %s", field)
	}
}

func (v *runtimeVerifier) open(e sdk.RuntimeEngine, what string, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, bool) {
	return ask(v.session, "OpenRuntime", what, func(ctx context.Context) (*sdk.OpenRuntimeAnswer, error) {
		return v.runtime.OpenRuntime(ctx, e, req)
	}, func(a *sdk.OpenRuntimeAnswer) error { return a.Validate(v.desc, req) })
}

func (v *runtimeVerifier) codeRules(e sdk.RuntimeEngine, what string, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, bool) {
	return ask(v.session, "CodeRules", what, func(ctx context.Context) (*sdk.CodeRulesAnswer, error) {
		return v.runtime.CodeRules(ctx, e, req)
	}, func(a *sdk.CodeRulesAnswer) error { return a.Validate(v.desc, req) })
}

func (v *runtimeVerifier) managedFrames(e sdk.RuntimeEngine, what string, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, bool) {
	return ask(v.session, "ManagedFrames", what, func(ctx context.Context) (*sdk.ManagedFramesAnswer, error) {
		return v.runtime.ManagedFrames(ctx, e, req)
	}, func(a *sdk.ManagedFramesAnswer) error { return a.Validate(v.desc, req) })
}

func (v *runtimeVerifier) managedThreads(e sdk.RuntimeEngine, what string, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, bool) {
	return ask(v.session, "ManagedThreads", what, func(ctx context.Context) (*sdk.ManagedThreadsAnswer, error) {
		return v.runtime.ManagedThreads(ctx, e, req)
	}, func(a *sdk.ManagedThreadsAnswer) error { return a.Validate(v.desc, req) })
}

// openModules opens the sample modules, and makes the calls that their answers ask for.
func (v *runtimeVerifier) openModules() {
	for i := range v.modules {
		m := &v.modules[i]
		e := m.reads()
		a, ok := v.open(e, m.Name, &m.Request)
		v.unanswered(Error, "OpenRuntime", m.Name)
		if !ok {
			continue
		}
		if again, ok := v.open(e, m.Name+", again", &m.Request); ok && !reflect.DeepEqual(a, again) {
			v.find(Error, constantFix, "OpenRuntime of %s: two calls gave different answers", m.Name)
		}
		v.codeOf(m, a)
		v.framesOf(m, a)
		if a.HasThreads {
			req := &sdk.ManagedThreadsRequest{Runtime: m.Request.Runtime, Frames: true}
			v.managedThreads(e, m.Name, req)
			v.unanswered(Error, "ManagedThreads", m.Name)
		}
	}
}

const constantFix = "Answer by what the request and the target say, in an order that they give: nothing of the time or of calls before."

// maxCode is how many ranges of code of a module are asked about.
const maxCode = 256

// codeOf asks for the rules of the code that a module's runtime made.
func (v *runtimeVerifier) codeOf(m *RuntimeModule, a *sdk.OpenRuntimeAnswer) {
	req := &sdk.CodeRulesRequest{Runtime: m.Request.Runtime}
	for _, c := range a.Code[:min(len(a.Code), maxCode)] {
		req.PCs = append(req.PCs, c.Start, c.Start+(c.End-c.Start)/2, c.End-1)
	}
	if len(req.PCs) == 0 {
		return
	}
	what := fmt.Sprintf("%d PCs of %s", len(req.PCs), m.Name)
	rules, ok := v.codeRules(m.reads(), what, req)
	v.unanswered(Error, "CodeRules", what)
	if !ok {
		return
	}
	for i := range rules.Code {
		if r := &rules.Code[i]; r.End == 0 && r.Reason == "" {
			v.find(Warning, "Say in Reason why nothing is known there: it is printed where the stack ends.", "CodeRules of %s: Code[%d] has neither a function at %#x nor a reason", what, i, req.PCs[i])
			return
		}
	}
}

// framesOf asks for the frames of the language in a module's stacks.
func (v *runtimeVerifier) framesOf(m *RuntimeModule, a *sdk.OpenRuntimeAnswer) {
	req := &sdk.ManagedFramesRequest{Runtime: m.Request.Runtime, Variables: true, Depth: 2, Elements: 8}
	for _, s := range m.Stacks {
		if len(a.Threads) == 0 || slices.Contains(a.Threads, s.Thread) {
			req.Threads = append(req.Threads, s)
		}
	}
	if !a.HasFrames || len(req.Threads) == 0 {
		return
	}
	what := fmt.Sprintf("%d threads of %s", len(req.Threads), m.Name)
	all, ok := v.managedFrames(m.reads(), what, req)
	v.unanswered(Error, "ManagedFrames", what)
	if !ok {
		return
	}
	v.locks(what, a.Locks, all.Stacks)
	alone := *req
	alone.Threads = req.Threads[len(req.Threads)-1:]
	one, ok := v.managedFrames(m.reads(), "one thread of "+m.Name, &alone)
	if ok && !reflect.DeepEqual(all.Stacks[len(all.Stacks)-1:], one.Stacks) {
		v.find(Error, batchFix, "ManagedFrames of %s: a thread has other frames in a batch than alone", m.Name)
	}
}

// locks checks that a lock has one name, and that an address stands for one lock.
func (v *runtimeVerifier) locks(what string, locks []sdk.RuntimeLock, stacks []sdk.ManagedStack) {
	names := map[uint64]string{}
	for i := range locks {
		names[locks[i].Address] = locks[i].Name
	}
	for i := range stacks {
		for _, l := range stacks[i].Locks {
			name, isKnown := names[l.Address]
			switch names[l.Address] = l.Name; {
			case isKnown && name != l.Name:
				v.find(Error, "Give every lock its own address, and one name: threads that have the same address wait for each other.",
					"ManagedFrames of %s: the lock at %#x is %q, and elsewhere %q", what, l.Address, l.Name, name)
				return
			case l.Name == "":
				v.find(Warning, "Name the lock in the language's words: reports say who holds it.", "ManagedFrames of %s: the lock at %#x has no name", what, l.Address)
				return
			}
		}
	}
}

// reads returns what reads a module's target.
func (m *RuntimeModule) reads() sdk.RuntimeEngine {
	if m.Engine == nil {
		return runtimeEngine{emptyEngine{}}
	}
	return m.Engine
}

// runtimeEngine is an engine of the kit that knows no functions.
type runtimeEngine struct{ sdk.Engine }

// FindFunctions implements sdk.RuntimeEngine.
func (runtimeEngine) FindFunctions(_ context.Context, addresses []uint64) ([]sdk.FunctionPlace, error) {
	return make([]sdk.FunctionPlace, len(addresses)), nil
}

// slowRuntime is an engine that answers nothing until the context of a read ends.
type slowRuntime struct{ slowEngine }

// FindFunctions implements sdk.RuntimeEngine.
func (slowRuntime) FindFunctions(ctx context.Context, _ []uint64) ([]sdk.FunctionPlace, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// sampleRequest describes a module that has all that the description asks for, at addresses
// of which nothing can be read.
func (v *runtimeVerifier) sampleRequest() *sdk.OpenRuntimeRequest {
	req := &sdk.OpenRuntimeRequest{
		Runtime: 1, Object: 1, Path: "module", Machine: 62, AddressBits: 64, PC: 16, SP: 7, FP: 6, ReturnAddress: 16, HasDebugInfo: true,
		Segments: []sdk.RuntimeSegment{{Address: 0x1000, Size: 0x10000, Start: 0x401000}},
		Sections: []sdk.SectionInfo{{}, {Name: ".text", Type: 1, Flags: 6, Address: 0x1000, Size: 0x10000}},
		Symbols:  make([]sdk.SymbolPlace, len(v.desc.Symbols)), Types: make([]sdk.TypeLayout, len(v.desc.Types)),
		Threads: []sdk.RuntimeThread{{Thread: 0, ID: "1"}, {Thread: 1, ID: "2"}},
	}
	for i := range req.Symbols {
		req.Symbols[i] = sdk.SymbolPlace{IsKnown: true, Address: 0x401000 + 64*uint64(i), Size: 64}
	}
	for i := range req.Types {
		t := &req.Types[i]
		t.Size = 8 * uint64(len(v.desc.Types[i].Members))
		for j := range v.desc.Types[i].Members {
			t.Members = append(t.Members, sdk.MemberPlace{Offset: 8 * uint64(j), Size: 8})
		}
	}
	return req
}

// openedSample opens the sample module. It reports whether the other calls can be made.
func (v *runtimeVerifier) openedSample() bool {
	_, ok := v.open(runtimeEngine{emptyEngine{}}, "a module of which nothing can be read", v.sampleRequest())
	return ok
}

// stacks returns n native stacks of some frames.
func stacks(n int) []sdk.NativeStack {
	list := make([]sdk.NativeStack, n)
	for i := range list {
		list[i].Thread = uint64(i % 2) //nolint:gosec // small
		for j := range uint64(1 + i%7) {
			list[i].Frames = append(list[i].Frames, sdk.NativeFrame{PC: 0x401000 + 16*j, CFA: 0x7000 + 64*j, HasCFA: true, InModule: j%2 == 0, Function: "f"})
		}
	}
	return list
}

// addresses returns n addresses.
func addresses(n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = 0x401000 + 16*uint64(i) //nolint:gosec // small
	}
	return list
}

// batches makes the same request in batches of several sizes.
func (v *runtimeVerifier) batches() {
	const size = 257
	e := runtimeEngine{emptyEngine{}}
	if !v.openedSample() {
		return
	}
	pcs, threads := addresses(size), stacks(size)
	all, okAll := v.codeRules(e, "257 PCs", &sdk.CodeRulesRequest{Runtime: 1, PCs: pcs})
	one, okOne := v.codeRules(e, "one PC", &sdk.CodeRulesRequest{Runtime: 1, PCs: pcs[size-1:]})
	if okAll && okOne && !reflect.DeepEqual(all.Code[size-1:], one.Code) {
		v.find(Error, batchFix, "CodeRules: a PC has another answer in a batch than alone")
	}
	v.codeRules(e, "no PCs", &sdk.CodeRulesRequest{Runtime: 1})
	frames, okAll := v.managedFrames(e, "257 threads", &sdk.ManagedFramesRequest{Runtime: 1, Threads: threads})
	alone, okOne := v.managedFrames(e, "one thread", &sdk.ManagedFramesRequest{Runtime: 1, Threads: threads[size-1:]})
	if okAll && okOne && !reflect.DeepEqual(frames.Stacks[size-1:], alone.Stacks) {
		v.find(Error, batchFix, "ManagedFrames: a thread has other frames in a batch than alone")
	}
	v.managedFrames(e, "no threads", &sdk.ManagedFramesRequest{Runtime: 1})
}

// garbage makes requests without sense. An error is a good answer.
func (v *runtimeVerifier) garbage() {
	for _, e := range []struct {
		name   string
		engine sdk.RuntimeEngine
	}{
		{"nothing of which can be read", runtimeEngine{emptyEngine{}}},
		{"whose memory is noise", runtimeEngine{garbageEngine{noise(1000)}}},
		{"whose memory is ones", runtimeEngine{garbageEngine{slices.Repeat([]byte{0xff}, 64)}}},
	} {
		bare := v.sampleRequest()
		bare.Symbols, bare.Types = make([]sdk.SymbolPlace, len(bare.Symbols)), make([]sdk.TypeLayout, len(bare.Types))
		v.open(e.engine, "a module without symbols and types, "+e.name, bare)
		huge := v.sampleRequest()
		for i := range huge.Symbols {
			huge.Symbols[i] = sdk.SymbolPlace{IsKnown: true, Address: math.MaxUint64 - uint64(i), Size: math.MaxUint64}
		}
		v.open(e.engine, "a module whose symbols are at the end of the address space, "+e.name, huge)
		if _, ok := v.open(e.engine, "a module "+e.name, v.sampleRequest()); ok {
			v.codeRules(e.engine, "addresses in no code, "+e.name, &sdk.CodeRulesRequest{Runtime: 1, PCs: []uint64{0, math.MaxUint64}})
			v.managedFrames(e.engine, "stacks "+e.name, &sdk.ManagedFramesRequest{Runtime: 1, Variables: true, Depth: 8, Elements: 100, Threads: stacks(9)})
			v.managedThreads(e.engine, "a module "+e.name, &sdk.ManagedThreadsRequest{Runtime: 1, Frames: true})
		}
	}
	v.unknown()
}

// unknown makes calls about a runtime that was never opened.
func (v *runtimeVerifier) unknown() {
	const handle = 77
	e := runtimeEngine{emptyEngine{}}
	v.codeRules(e, "a runtime that was never opened", &sdk.CodeRulesRequest{Runtime: handle, PCs: addresses(1)})
	v.openFirst("CodeRules")
	v.managedFrames(e, "a runtime that was never opened", &sdk.ManagedFramesRequest{Runtime: handle, Threads: stacks(1)})
	v.openFirst("ManagedFrames")
	v.managedThreads(e, "a runtime that was never opened", &sdk.ManagedThreadsRequest{Runtime: handle})
	v.openFirst("ManagedThreads")
}

// openFirst checks the error of a call about a runtime that was never opened.
func (v *runtimeVerifier) openFirst(name string) {
	if v.refusal != nil && !errors.Is(v.refusal, sdk.ErrObjectNotOpen) {
		v.find(Error, "Answer ErrObjectNotOpen where the answer takes what OpenRuntime was told, and the runtime is not known: the engine opens it again and asks once more.",
			"%s of a runtime that was never opened: %v", name, v.refusal)
	}
}

// size makes large requests.
func (v *runtimeVerifier) size() {
	if !v.openedSample() {
		return
	}
	e := runtimeEngine{emptyEngine{}}
	v.codeRules(e, fmt.Sprintf("%d PCs", manyAddresses), &sdk.CodeRulesRequest{Runtime: 1, PCs: addresses(manyAddresses)})
	v.managedFrames(e, fmt.Sprintf("%d threads", manyFunctions), &sdk.ManagedFramesRequest{Runtime: 1, Threads: stacks(manyFunctions)})
}

// concurrency makes the same requests from several goroutines at once.
func (v *runtimeVerifier) concurrency() {
	if !v.openedSample() {
		return
	}
	e := runtimeEngine{emptyEngine{}}
	calls := func(ctx context.Context) ([3]any, error) {
		rules, err1 := v.runtime.CodeRules(ctx, e, &sdk.CodeRulesRequest{Runtime: 1, PCs: addresses(64)})
		frames, err2 := v.runtime.ManagedFrames(ctx, e, &sdk.ManagedFramesRequest{Runtime: 1, Threads: stacks(64)})
		threads, err3 := v.runtime.ManagedThreads(ctx, e, &sdk.ManagedThreadsRequest{Runtime: 1})
		return [3]any{rules, frames, threads}, errors.Join(err1, err2, err3)
	}
	v.atOnce("CodeRules, ManagedFrames and ManagedThreads", calls)
}

// deadlines makes every call while the engine is slow to answer, with a context that ends
// meanwhile.
func (v *runtimeVerifier) deadlines() {
	e := slowRuntime{}
	for _, c := range []timedCall{
		{"Describe", func(ctx context.Context) error { _, err := v.runtime.Describe(ctx); return err }},
		{"OpenRuntime", func(ctx context.Context) error {
			_, err := v.runtime.OpenRuntime(ctx, e, v.sampleRequest())
			return err
		}},
		{"CodeRules", func(ctx context.Context) error {
			_, err := v.runtime.CodeRules(ctx, e, &sdk.CodeRulesRequest{Runtime: 1, PCs: addresses(64)})
			return err
		}},
		{"ManagedFrames", func(ctx context.Context) error {
			_, err := v.runtime.ManagedFrames(ctx, e, &sdk.ManagedFramesRequest{Runtime: 1, Threads: stacks(8)})
			return err
		}},
		{"ManagedThreads", func(ctx context.Context) error {
			_, err := v.runtime.ManagedThreads(ctx, e, &sdk.ManagedThreadsRequest{Runtime: 1})
			return err
		}},
	} {
		if !v.timed(c) {
			return
		}
	}
}

// atOnce makes the same calls from several goroutines at once, and compares their answers.
func (v *session) atOnce(name string, calls func(context.Context) ([3]any, error)) {
	ctx, cancel := context.WithTimeout(v.ctx, v.deadline)
	defer cancel()
	const sides = 8
	var answers [sides][3]any
	var errs [sides]error
	var group sync.WaitGroup
	for i := range sides {
		group.Go(func() { answers[i], errs[i] = guarded(ctx, v.deadline+grace, calls) })
	}
	group.Wait()
	const fix = "The methods are called from many goroutines: share nothing that is written, or lock it."
	for i := range sides {
		if errs[i] != nil && v.wrong(name, "several callers at once", errs[i]) {
			return
		}
		if (errs[i] == nil) != (errs[0] == nil) || errs[i] == nil && !reflect.DeepEqual(answers[i], answers[0]) {
			v.find(Error, fix, "the same calls, made at once, gave different answers")
			return
		}
	}
}
