// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// request is a meaningful call that may take long.
type request struct {
	call string
	make func(context.Context) error
}

// nothing is a target without anything to read. If isSlow, reads block until the call ends.
type nothing struct {
	isSlow bool
	reads  chan struct{} // receives a value on a read, if there is space; may be nil
}

var errNothing = errors.New("there is nothing to read")

func (n nothing) wait(ctx context.Context) error {
	select {
	case n.reads <- struct{}{}:
	default:
	}
	if n.isSlow {
		<-ctx.Done()
		return ctx.Err()
	}
	return errNothing
}

// ReadMemory implements sdk.Engine.
func (n nothing) ReadMemory(ctx context.Context, _ sdk.MemoryRange, _ []byte) (int, error) {
	return 0, n.wait(ctx)
}

// ReadRegisters implements sdk.Engine.
func (n nothing) ReadRegisters(ctx context.Context, _ uint64, _ []uint32) (sdk.Registers, error) {
	return sdk.Registers{}, n.wait(ctx)
}

// ReadSection implements sdk.Engine.
func (n nothing) ReadSection(ctx context.Context, _ uint64, _ string) ([]byte, error) {
	return nil, n.wait(ctx)
}

// engine returns the engine for a call: n, or nil if the plugin wants none.
func (v *verifier) engine(n nothing) sdk.Engine {
	if v.desc.NoEngine {
		return nil
	}
	return n
}

// architectureRequests returns a request for each call of an architecture.
func (v *verifier) architectureRequests(n nothing) []request {
	e := v.engine(n)
	object := &sdk.OpenObjectRequest{Object: 1, Path: "object", Sections: []sdk.SectionInfo{{}, {Name: ".text", Type: 1, Flags: 6, Size: 4096}}}
	notes := &sdk.OpenTargetRequest{}
	for _, r := range v.desc.Recognises {
		if r.ELFMachine != 0 {
			object.Machine = r.ELFMachine
		}
		if r.NoteOwner != "" {
			notes.Notes = append(notes.Notes, sdk.Note{Owner: r.NoteOwner, Type: 1, Data: make([]byte, 4096)})
		}
	}
	code := sampleCode(v.objects)
	if len(code) == 0 {
		code = make([]byte, 64<<10)
	}
	functions := &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{{PC: 0x1000, Start: 0x1000, Code: code, Bounded: true, Name: "f", Exact: true}}}
	threads := &sdk.BindThreadsRequest{Threads: make([]sdk.ThreadState, 64)}
	returns := &sdk.ClassifyReturnRequest{PCs: make([]uint64, 1000), Offsets: make([]uint32, 1001)}
	instructions := &sdk.DisassembleRequest{Address: 0x1000, Code: code}
	x := v.examinee
	return []request{
		{"Describe", func(ctx context.Context) error { _, err := x.Describe(ctx); return err }},
		{"OpenTarget", func(ctx context.Context) error { _, err := x.OpenTarget(ctx, e, notes); return err }},
		{"OpenObject", func(ctx context.Context) error { _, err := x.OpenObject(ctx, e, object); return err }},
		{"FrameRules", func(ctx context.Context) error { _, err := x.FrameRules(ctx, e, functions); return err }},
		{"BindThreads", func(ctx context.Context) error { _, err := x.BindThreads(ctx, e, threads); return err }},
		{"Translate", func(ctx context.Context) error {
			_, err := x.Translate(ctx, e, &sdk.TranslateRequest{Address: 0x1000, Lane: -1})
			return err
		}},
		{"ClassifyReturn", func(ctx context.Context) error { _, err := x.ClassifyReturn(ctx, returns); return err }},
		{"Disassemble", func(ctx context.Context) error { _, err := x.Disassemble(ctx, instructions); return err }},
	}
}

// A call that reads nothing from the engine is cancelled when the process has worked on it for a
// while, or when nothing has happened for long. On a busy machine a call arrives late, so the
// time since it was made is no measure.
const (
	cancelAfterWork = 30 * time.Millisecond // of processor time
	cancelAfter     = 500 * time.Millisecond
)

// cancellation cancels calls, and checks whether the process goes on computing.
func (v *verifier) cancellation() {
	reads := make(chan struct{}, 1)
	for _, r := range v.kind.requests(v, nothing{isSlow: true, reads: reads}) {
		p := v.idle()
		if p == nil {
			return
		}
		select { // a read of the previous call
		case <-reads:
		default:
		}
		cancelled(v.ctx, p, reads, r.make)
		if isIdle(v.ctx, p, v.Grace) {
			continue
		}
		v.find(archtest.Error, "End the call when its context does (in other languages: when gRPC says that it was cancelled), and pass it on to every read from the engine: what nobody waits for takes the processor from the calls that follow.",
			fmt.Sprintf("%s: the process still computes %v after the call was cancelled", r.call, v.Grace))
		v.examinee.rest()
	}
}

// idle returns a process that computes nothing: the running one, or another if that still
// computes for an earlier call. It is nil if there is none.
func (v *verifier) idle() *plugin.Probe {
	p, err := v.examinee.running(v.ctx)
	if err == nil && !isIdle(v.ctx, p, v.Grace) {
		v.examinee.rest()
		p, err = v.examinee.running(v.ctx)
	}
	if err != nil {
		return nil
	}
	return p
}

// unasked checks that the process computes nothing once its calls are answered.
func (v *verifier) unasked() {
	v.examinee.rest()
	v.makeAll()
	p, err := v.examinee.running(v.ctx)
	if err != nil || isIdle(v.ctx, p, v.Grace) {
		return
	}
	v.find(archtest.Error, "End with the call what was begun for it: what goes on takes the processor from the calls that follow, and counts as their time.",
		fmt.Sprintf("the process computes although no call is under way: %v after the last one it has not stopped", v.Grace))
	v.examinee.rest()
}

// cancelled makes a call and cancels it when it has read from the engine, or has kept the
// process busy, or takes long.
func cancelled(ctx context.Context, p *plugin.Probe, reads <-chan struct{}, call func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, cancelAfter)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = call(ctx)
	}()
	before, _ := p.ProcessorTime()
	tick := time.NewTicker(cancelAfterWork / 6)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-reads:
			cancel()
			<-ended
			return
		case <-tick.C:
			if now, err := p.ProcessorTime(); err == nil && now-before >= cancelAfterWork {
				cancel()
				<-ended
				return
			}
		}
	}
}

// isIdle waits until a process does not use the processor. It returns true if the system does
// not tell the use, or ctx ended.
func isIdle(ctx context.Context, p *plugin.Probe, most time.Duration) bool {
	const window = 50 * time.Millisecond
	deadline := time.Now().Add(most)
	before, err := p.ProcessorTime()
	for err == nil && ctx.Err() == nil {
		began := time.Now()
		time.Sleep(window)
		after, failed := p.ProcessorTime()
		// On a busy machine a computing process gets little time, and none for a while.
		if failed != nil || after-before < time.Since(began)/20 && !p.IsRunnable() {
			return true
		}
		if before = after; time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// Bounds of the growth of a process while it answers the same calls again.
const (
	memoryRounds = 6
	maxGrowth    = 64 << 20 // bytes from half of the rounds to the end
)

// memory checks that a process does not grow while it answers the same calls repeatedly.
func (v *verifier) memory() {
	v.examinee.rest() // the memory of other checks does not count
	var half uint64
	for round := range memoryRounds {
		if round == memoryRounds/2 {
			half = v.memoryUsed()
		}
		v.makeAll()
	}
	if used := v.memoryUsed(); half > 0 && used > half+maxGrowth {
		v.find(archtest.Error, "Keep nothing of a call but what later ones need, and of an object that is opened again nothing twice: a process that has 4 GiB is ended.",
			fmt.Sprintf("the process has %d MiB after the same calls were made %d times, and had %d MiB after %d", used>>20, memoryRounds, half>>20, memoryRounds/2))
	}
}

// makeAll makes every call once, and opens every sample. Other checks judge the answers.
func (v *verifier) makeAll() {
	for _, r := range v.kind.requests(v, nothing{}) {
		_ = r.make(v.ctx)
	}
	for i := range v.objects {
		o := &v.objects[i]
		_, _ = v.examinee.OpenObject(v.ctx, v.engineOf(o), &o.Request)
	}
}

// memoryUsed returns the memory of the process; 0 if the system does not tell.
func (v *verifier) memoryUsed() uint64 {
	p, err := v.examinee.running(v.ctx)
	if err != nil {
		return 0
	}
	return p.Memory()
}

// restart describes the plugin by a new process: the engine restarts a plugin that has died, and
// continues.
func (v *verifier) restart() {
	v.examinee.rest()
	field, err := v.kind.describe(v)
	const constant = "Describe what is constant: nothing of the time, the process or the machine that it runs on. The engine refuses a process that is not what it was."
	switch {
	case v.ctx.Err() != nil:
	case err != nil:
		v.find(archtest.Error, "A process is started again after each failure. Keep nothing that a second one trips over.", fmt.Sprintf("Describe in a second process: %v", err))
	case field != "":
		v.find(archtest.Error, constant, "Describe: a second process is described in another way, first in "+field)
	}
}

// restartArchitecture makes calls of a new process besides that presume an earlier one.
func (v *verifier) restartArchitecture() {
	v.restart()
	if v.ctx.Err() != nil {
		return
	}
	v.unknownObject()
	for i := range v.objects {
		v.reopened(&v.objects[i])
	}
	v.newer()
}

// newer names what the plugin says that this version of the engine does not know.
func (v *verifier) newer() {
	p, err := v.examinee.running(v.ctx)
	if err != nil {
		return
	}
	_ = p.Call(v.ctx, func(_ context.Context, arch sdk.Architecture) error { // it makes no call
		if known, ok := arch.(interface{ Ignored() []string }); ok && len(known.Ignored()) > 0 {
			v.find(archtest.Warning, "Verify it with an unwindd that knows as much, too. Where the plugin has to tell engines apart, EngineFeature is their number.",
				fmt.Sprintf("the plugin knows features of the protocol up to %d, this unwindd up to %d, and ignores: %s", v.desc.Feature, sdk.Feature, strings.Join(known.Ignored(), ", ")))
		}
		return nil
	})
}

const notOpenFix = "Answer ErrObjectNotOpen where the answer takes what OpenObject was told, and the object is not known: the engine opens it again and asks once more. In other languages: the status FAILED_PRECONDITION with an ArchitectureError."

// unknownObject makes a call about an object that was never opened.
func (v *verifier) unknownObject() {
	req := &sdk.FrameRulesRequest{Object: 77, Functions: []sdk.CodeRange{{PC: 0x1000, Start: 0x1000, Code: make([]byte, 64), Bounded: true, Name: "f"}}}
	_, err := v.examinee.FrameRules(v.ctx, v.engine(nothing{}), req)
	if err != nil && v.ctx.Err() == nil && !errors.Is(err, sdk.ErrObjectNotOpen) && !errors.Is(err, sdk.ErrNotImplemented) {
		v.find(archtest.Error, notOpenFix, fmt.Sprintf("FrameRules of an object that the process was not told of: %v", err))
	}
}

// reopened makes the same call about a sample of one process, and then of another.
func (v *verifier) reopened(o *archtest.Object) {
	if len(o.Functions) == 0 {
		return
	}
	functions := o.Functions[:min(len(o.Functions), 64)]
	req := &sdk.FrameRulesRequest{Object: o.Request.Object, Functions: functions}
	ask := func() (*sdk.FrameRulesAnswer, error) { return v.examinee.FrameRules(v.ctx, v.engineOf(o), req) }
	open := func() error {
		_, err := v.examinee.OpenObject(v.ctx, v.engineOf(o), &o.Request)
		return err
	}
	if open() != nil {
		return // other checks report it
	}
	first, err := ask()
	if err != nil {
		return
	}
	v.examinee.rest()
	second, err := ask()
	if errors.Is(err, sdk.ErrObjectNotOpen) && open() == nil {
		second, err = ask()
	}
	switch {
	case v.ctx.Err() != nil:
	case err != nil:
		v.find(archtest.Error, notOpenFix, fmt.Sprintf("FrameRules of %s in a second process: %v", o.Name, err))
	case !reflect.DeepEqual(first, second):
		v.find(archtest.Error, "Answer by what the request and the object say. What is remembered of an object and is not known is ErrObjectNotOpen.",
			fmt.Sprintf("FrameRules of %s: a second process answers other rows than the first", o.Name))
	}
}

// processes checks that the process has started no others.
func (v *verifier) processes() {
	p, err := v.examinee.running(v.ctx)
	if err != nil {
		return
	}
	v.makeAll()
	if family := p.Family(); len(family) > 0 {
		v.find(archtest.Error, "A plugin is one process. Where the system confines it fully it cannot start others; do the work in the plugin itself.",
			fmt.Sprintf("it has started %d more processes, one of them is process %d", len(family), family[0]))
	}
}

// end ends the connection as if the engine were killed, and checks that the process ends.
func (v *verifier) end() {
	p, err := v.examinee.running(v.ctx)
	if err != nil {
		return
	}
	if _, err := v.kind.describe(v); err != nil {
		return
	}
	family := p.Family()
	p.Disconnect()
	timer := time.NewTimer(v.Grace)
	defer timer.Stop()
	select {
	case <-p.Exited():
	case <-v.ctx.Done():
		return
	case <-timer.C:
		v.find(archtest.Error, "End the process when its last connection has ended, whatever it is doing: sdk.Serve does. An engine that is killed can tell nobody to end.",
			fmt.Sprintf("the process still runs %v after the engine has gone", v.Grace))
	}
	v.examinee.rest()
	for _, pid := range family {
		if slices.Contains(p.Family(), pid) {
			v.find(archtest.Error, "Start no processes, or end them with the plugin.", fmt.Sprintf("process %d, which the plugin started, outlives it", pid))
			return
		}
	}
}
