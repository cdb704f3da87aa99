// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/sdk"
)

// walkedSample is a sample and the frames of its stack.
type walkedSample struct {
	event    int
	pid, tid int
	cpu      int // -1: not known
	comm     string
	time     uint64
	weight   uint64
	source   perfdata.DataSource // 0: no memory is known that it accessed
	latency  uint64
	first    int // index of its frames in the batch, innermost first
	kernel   int // how many of them are the kernel's, or a guest's
	frames   int
	stopped  trace.Stopped
	space    *codeSpace
	problem  string
	wait     []byte // what the thread waited for, as perfdata.ReadWait reads it; nil: it is not known
	runtimes []byte // its stack with the frames of language runtimes, as perfdata.ReadRuntimeStack reads it; nil: it has none
}

// walkedBatch is the result of walking a perfdata.Batch.
type walkedBatch struct {
	sequence  int
	samples   []walkedSample
	frames    []walk.Step
	kernel    *perfdata.Space
	generated *perfdata.Space // functions that the kernel generated
	sched     []schedEvent    // in their order; none where the recording's are not read
}

// begin prepares it for a batch, without samples.
func (w *walkedBatch) begin(b *perfdata.Batch) {
	w.sequence, w.kernel, w.generated = b.Sequence, b.Kernel, b.KernelSymbols
	w.samples, w.frames, w.sched = w.samples[:0], w.frames[:0], w.sched[:0]
}

// newWalkedSample returns a sample whose first frame is at an index.
func newWalkedSample(recorded *perfdata.Sample, space *codeSpace, first int) walkedSample {
	return walkedSample{
		event: recorded.Event, pid: recorded.PID, tid: recorded.TID, cpu: recorded.CPU, comm: recorded.Comm, time: recorded.Time, weight: recorded.Period,
		first: first, space: space, problem: recorded.Problem, wait: waitIn(recorded), runtimes: runtimesIn(recorded),
		source: recorded.DataSource, latency: recorded.Latency,
	}
}

// sampler walks the samples of a recording. It belongs to one goroutine.
type sampler struct {
	recording *recording
	desc      *sdk.Description // of the recording's architecture; nil where there is none
	atCalls   bool             // see recording.callersAreAtCalls
	walker    *walk.Walker
	sample    walk.Sample
	code      sampleCode
	registers registerReader
	narrow    narrowSampler // of 32-bit processes
	runtimes  perfdata.RuntimeStack
	// version is the space of the sample before.
	version uint64
	space   *codeSpace
}

func (r *recording) sampler() *sampler {
	s := &sampler{recording: r, atCalls: r.callersAreAtCalls(), walker: r.process.Walker(), sample: walk.Sample{Sample: trace.Sample{Arch: r.arch}}}
	if m, err := r.maker.Shared.Library().Machine(r.arch); err == nil {
		s.desc = m.Description
	}
	if r.narrow != nil {
		if m, err := r.maker.Shared.Library().Machine(r.narrow.name); err == nil {
			s.narrow.desc = m.Description
		}
	}
	s.code.generated.recording = r
	s.sample.Code = &s.code
	return s
}

// narrowSampler reads the registers of 32-bit processes.
type narrowSampler struct {
	desc      *sdk.Description // nil where there is no architecture
	registers registerReader
}

// walk walks the samples of a batch.
func (s *sampler) walk(ctx context.Context, b *perfdata.Batch, out *walkedBatch) {
	out.begin(b)
	for i := range b.Samples {
		s.walkSample(ctx, &b.Samples[i], out)
	}
	out.readBatch(s.recording.sched, b)
}

func (s *sampler) walkSample(ctx context.Context, recorded *perfdata.Sample, out *walkedBatch) {
	w := newWalkedSample(recorded, s.spaceOf(recorded.Space), len(out.frames))
	s.code.set(w.space, recorded.Time)
	err := object.Guard(func() error {
		s.guestFrames(recorded, out)
		s.kernelFrames(recorded, out)
		w.kernel = len(out.frames) - w.first
		w.stopped = s.userFrames(ctx, recorded, w.space, out)
		return nil
	})
	if err != nil {
		w.stopped = trace.Stopped{Reason: trace.StopNoMemory, Detail: err.Error()}
	}
	w.frames = len(out.frames) - w.first
	out.samples = append(out.samples, w)
}

// spaceOf returns the code of a version of a process; the previous sample's is remembered.
func (s *sampler) spaceOf(v *perfdata.Space) *codeSpace {
	if v == nil {
		return nil
	}
	if s.version != v.Code {
		s.version, s.space = v.Code, s.recording.space(v)
	}
	return s.space
}

// kernelFrames adds the kernel's own frames, as it recorded them.
func (s *sampler) kernelFrames(recorded *perfdata.Sample, out *walkedBatch) {
	found := trace.ByContext
	for context, pc := range recorded.Chain.All() {
		if context != perfdata.ContextKernel && context != perfdata.ContextHypervisor {
			continue
		}
		s.kernelFrame(pc, found, out)
		found = trace.ByCallChain
	}
	if found == trace.ByContext && (recorded.Mode == perfdata.ModeKernel || recorded.Mode == perfdata.ModeHypervisor) && recorded.IP != 0 {
		s.kernelFrame(recorded.IP, found, out)
	}
}

func (s *sampler) kernelFrame(pc uint64, found trace.FoundBy, out *walkedBatch) {
	f := walk.Step{PC: pc, Offset: pc, Kind: walk.KernelCode, Found: code.IndexOf(found), Exact: found == trace.ByContext || s.atCalls}
	if !f.Exact {
		f.Back = 1
	}
	out.frames = append(out.frames, f)
}

// The reasons why the stack of a sample ends that is not walked.
var (
	stopNoUser    = trace.Stopped{Reason: trace.StopOutermost, Detail: "a thread of the kernel has no other frames"}
	stopNoStack   = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the recording has neither registers nor a call chain of the thread"}
	stopChain     = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the recorded call chain ends here"}
	stopCalls     = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the calls that the CPU recorded end here"}
	stopDeferred  = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the thread's call chain should be in a record of its own (CALLCHAIN_DEFERRED), which the recording does not have"}
	stopGuest     = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the stack of a guest is not recorded"}
	stopNoProcess = trace.Stopped{Reason: trace.StopNoModule, Detail: "nothing is known of the process"}
	// The kernel copies them one after the other: the stack pointer may be the
	// interrupted code's when the PC is not yet.
	stopRestoring = trace.Stopped{Reason: trace.StopNoRow, Detail: "the kernel may have been giving back the registers that a signal saved"}
	stop32        = trace.Stopped{Reason: trace.StopPluginFailed, Detail: "the registers are those of a 32-bit process, which no architecture here reads"}
	stopNoArch    = trace.Stopped{Reason: trace.StopPluginFailed, Detail: "there is no architecture whose registers these are"}
)

// userFrames adds the frames of the thread: walked where its registers and its stack were
// recorded, else as the kernel or the CPU recorded them.
func (s *sampler) userFrames(ctx context.Context, recorded *perfdata.Sample, space *codeSpace, out *walkedBatch) trace.Stopped {
	set, desc, registers, arch := s.recording.set, s.desc, &s.registers, s.recording.arch
	if stopped, ok := s.runtimeFrames(ctx, recorded, space, out); ok {
		return stopped
	}
	switch {
	case recorded.Registers.ABI == perfdata.RegistersNone:
		return s.chainFrames(ctx, recorded, space, out)
	case len(recorded.Stack) == 0 && recorded.Chain.Has(perfdata.ContextUser):
		// Registers are recorded beside chains, too: the link register by perf for AArch64,
		// others where they were requested.
		return s.chainFrames(ctx, recorded, space, out)
	case recorded.Registers.ABI == perfdata.Registers32 && recording32(s.desc):
	case recorded.Registers.ABI == perfdata.Registers32 && s.narrow.desc == nil:
		s.topFrame(ctx, recorded, space, out)
		return stop32
	case recorded.Registers.ABI == perfdata.Registers32:
		narrow := s.recording.narrow
		set, desc, registers, arch = narrow.set, s.narrow.desc, &s.narrow.registers, narrow.name
	}
	switch {
	case set == nil:
		s.topFrame(ctx, recorded, space, out)
		return stopNoArch
	case space == nil:
		s.topFrame(ctx, recorded, space, out)
		return stopNoProcess
	}
	s.sample.Arch, s.sample.Registers = arch, *registers.read(set, &recorded.Registers)
	// The bytes of the stack begin at its pointer.
	s.sample.StackStart, _ = s.sample.Registers.Uint64(desc.SP, desc.ByteOrder)
	s.sample.Stack = recorded.Stack
	first := len(out.frames)
	var stopped trace.Stopped
	out.frames, stopped = s.walker.Trace(ctx, &s.sample, uint32(recorded.PID), out.frames)
	if len(out.frames) > first+1 && recorded.Mode == perfdata.ModeKernel && s.walker.IsSignalFrame(0) {
		out.frames, stopped = out.frames[:first+1], stopRestoring
	}
	return stopped
}

// recording32 reports whether the recording's own architecture has 32 bits.
func recording32(d *sdk.Description) bool { return d != nil && d.AddressBits == 32 }

// chainFrames adds the thread's frames as the kernel found them. Where the CPU recorded the
// calls that the thread was in, they replace all except the innermost, as in perf script: the
// kernel follows frame pointers, which programs that are recorded so need not have.
func (s *sampler) chainFrames(ctx context.Context, recorded *perfdata.Sample, space *codeSpace, out *walkedBatch) trace.Stopped {
	found := trace.ByContext
	for context, pc := range recorded.Chain.All() {
		if context != perfdata.ContextUser {
			continue
		}
		s.placeFrame(ctx, recorded, space, pc, found, out)
		found = trace.ByCallChain
		if recorded.Calls.Len() > 0 {
			return s.callFrames(ctx, recorded, space, out)
		}
	}
	switch {
	case found == trace.ByCallChain:
		return stopChain
	case recorded.Problem != "": // the record is cut, and its registers are missing
		return stopNoStack
	case recorded.Mode.IsGuest():
		return stopGuest
	}
	isUser := recorded.Mode == perfdata.ModeUser || recorded.Mode == perfdata.ModeUnknown
	s.topFrame(ctx, recorded, space, out)
	switch {
	case recorded.Chain.Has(perfdata.ContextUserDeferred):
		return stopDeferred
	case !isUser && s.recording.hasUserStacks(recorded.Event):
		return stopNoUser
	}
	return stopNoStack
}

// callFrames adds the callers of a thread's innermost frame as the CPU recorded their calls.
// Each is at its call, not at its return address.
func (s *sampler) callFrames(ctx context.Context, recorded *perfdata.Sample, space *codeSpace, out *walkedBatch) trace.Stopped {
	for i := range recorded.Calls.Len() {
		s.placeFrameAt(ctx, recorded, space, recorded.Calls.From(i), trace.ByCallChain, true, out)
	}
	return stopCalls
}

// hasUserStacks reports whether the samples of an event have the stack of the thread, where it
// has one.
func (r *recording) hasUserStacks(event int) bool {
	if event < 0 {
		return false
	}
	a := &r.file.Attrs()[event]
	return a.SampleType&perfdata.SampleRegsUser != 0 || a.SampleType&perfdata.SampleCallchain != 0 && a.Flags&perfdata.FlagNoUserChains == 0
}

// guestFrames adds the frames of a virtual machine that the CPU was in. Their addresses are not
// the host's.
func (s *sampler) guestFrames(recorded *perfdata.Sample, out *walkedBatch) {
	found := trace.ByContext
	for context, pc := range recorded.Chain.All() {
		if context.IsGuest() {
			s.guestFrame(pc, context, found, out)
			found = trace.ByCallChain
		}
	}
	if found == trace.ByContext && recorded.Mode.IsGuest() && recorded.IP != 0 {
		context := perfdata.ContextGuestUser
		if recorded.Mode == perfdata.ModeGuestKernel {
			context = perfdata.ContextGuestKernel
		}
		s.guestFrame(recorded.IP, context, found, out)
	}
}

func (s *sampler) guestFrame(pc uint64, context perfdata.Context, found trace.FoundBy, out *walkedBatch) {
	f := walk.Step{PC: pc, Offset: pc, Kind: walk.GuestCode, Owner: uint32(context), Found: code.IndexOf(found), Exact: found == trace.ByContext}
	if !f.Exact {
		f.Back = 1
	}
	out.frames = append(out.frames, f)
}

// topFrame adds the thread's innermost frame, where only that is known.
func (s *sampler) topFrame(ctx context.Context, recorded *perfdata.Sample, space *codeSpace, out *walkedBatch) {
	if recorded.IP != 0 && (recorded.Mode == perfdata.ModeUser || recorded.Mode == perfdata.ModeUnknown) {
		s.placeFrame(ctx, recorded, space, recorded.IP, trace.ByContext, out)
	}
}

// placeFrame finds the module of a frame that was not walked. The innermost frame has the
// thread's PC, and the others return addresses.
func (s *sampler) placeFrame(ctx context.Context, recorded *perfdata.Sample, space *codeSpace, pc uint64, found trace.FoundBy, out *walkedBatch) {
	s.placeFrameAt(ctx, recorded, space, pc, found, found == trace.ByContext || s.atCalls && found == trace.ByCallChain, out)
}

func (s *sampler) placeFrameAt(ctx context.Context, recorded *perfdata.Sample, space *codeSpace, pc uint64, found trace.FoundBy, isExact bool, out *walkedBatch) {
	f := walk.Step{PC: pc, Offset: pc, Kind: walk.ProcessCode, Owner: uint32(recorded.PID), Found: code.IndexOf(found), Exact: isExact}
	if !f.Exact {
		f.Back = 1
	}
	if space != nil {
		segment := s.code.Segment(f.Named())
		if !isExact {
			if next := code.Continuation(ctx, s.code.Segment, pc); next != nil {
				segment, f.Back = next, 0
			}
		}
		if segment != nil {
			f.Kind, f.Owner, f.Offset = walk.ModuleCode, uint32(segment.Module.ID), segment.ObjectAddress(pc)
		}
	}
	out.frames = append(out.frames, f)
}

// walkAll walks samples of the recording by a number of goroutines, beside the one that reads.
// keep leaves only samples to walk in a batch, and gets the batches in their order; nil: all
// are walked. take gets the batches in their order, one at a time; its argument is valid during
// the call.
func (r *recording) walkAll(ctx context.Context, jobs int, keep func(*perfdata.Batch), take func(*walkedBatch)) error {
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	return r.readAll(func(reader *perfdata.Reader) error { return r.walkBatches(ctx, reader, jobs, keep, take) })
}

// readAll reads the recording, and adds its problems.
func (r *recording) readAll(read func(*perfdata.Reader) error) error {
	reader := r.file.Reader()
	if r.sched != nil {
		reader.KeepSwitches()
	}
	err := read(reader)
	for _, p := range reader.Problems() {
		r.problem("%s", p)
	}
	if errors.Is(err, object.ErrFileShrank) {
		r.problem("%v: what follows is lost", err)
		return nil
	}
	return err
}

// batchWalk walks the batches of a recording by several goroutines. Batches are taken in their
// order, so batches that are ready early wait: as many as fit into order.
type batchWalk struct {
	recording *recording
	keep      func(*perfdata.Batch) // leaves only samples to walk; nil: all
	work      chan batchToWalk
	order     chan chan *walkedBatch
	free      chan *walkedBatch // to be reused
	bound     chan struct{}     // closed when the plugin has answered
	failed    error             // why reading ended early; set when order is closed
}

// batchToWalk is a batch, and the channel for its result.
type batchToWalk struct {
	batch  *perfdata.Batch
	walked chan *walkedBatch
}

func (r *recording) walkBatches(ctx context.Context, reader *perfdata.Reader, jobs int, keep func(*perfdata.Batch), take func(*walkedBatch)) error {
	w := &batchWalk{
		recording: r, keep: keep, work: make(chan batchToWalk), order: make(chan chan *walkedBatch, 2*jobs),
		free: make(chan *walkedBatch, 4*jobs), bound: make(chan struct{}),
	}
	go func() {
		defer close(w.bound)
		r.bind()
	}()
	if jobs == 1 {
		return w.walkInTurn(ctx, reader, take)
	}
	go w.read(ctx, reader)
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() { w.walk(ctx) })
	}
	for walked := range w.order {
		out := <-walked
		take(out)
		select {
		case w.free <- out:
		default:
		}
	}
	workers.Wait()
	<-w.bound
	return w.failed
}

// next reads the next batch that has samples to walk.
func (w *batchWalk) next(ctx context.Context, reader *perfdata.Reader) (*perfdata.Batch, error) {
	for {
		b, err := reader.Next()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || w.keep == nil {
			return b, err
		}
		if w.keep(b); len(b.Samples) > 0 {
			return b, nil
		}
		b.Release()
	}
}

// walkInTurn reads, walks and takes one batch after the other, which are in the
// processor's cache when they are taken.
func (w *batchWalk) walkInTurn(ctx context.Context, reader *perfdata.Reader, take func(*walkedBatch)) error {
	var s *sampler
	out := &walkedBatch{}
	for {
		b, err := w.next(ctx, reader)
		if err != nil {
			<-w.bound
			return notEOF(err)
		}
		if s == nil {
			s = w.sampler(b)
		}
		s.walk(ctx, b, out)
		b.Release()
		take(out)
	}
}

// sampler makes a sampler when the plugin has answered. While it starts, the files for its
// first batch are opened.
func (w *batchWalk) sampler(b *perfdata.Batch) *sampler {
	// The walk meets a truncated file again, and reports it.
	_ = object.Guard(func() error { w.recording.prepare(b); return nil })
	<-w.bound
	return w.recording.sampler()
}

// read hands out the batches.
func (w *batchWalk) read(ctx context.Context, reader *perfdata.Reader) {
	defer close(w.order)
	defer close(w.work)
	for {
		b, err := w.next(ctx, reader)
		if err != nil {
			w.failed = notEOF(err)
			return
		}
		next := batchToWalk{b, make(chan *walkedBatch, 1)}
		w.order <- next.walked
		w.work <- next
	}
}

// walk walks batches until there are no more. It is one of several goroutines.
func (w *batchWalk) walk(ctx context.Context) {
	var s *sampler
	for next := range w.work {
		var out *walkedBatch
		select {
		case out = <-w.free:
		default:
			out = &walkedBatch{}
		}
		if s == nil {
			s = w.sampler(next.batch)
		}
		s.walk(ctx, next.batch, out)
		next.batch.Release()
		next.walked <- out
	}
}

// prepare opens the modules in which samples are, while the plugin starts.
func (r *recording) prepare(b *perfdata.Batch) {
	met := map[*code.Module]bool{}
	for i := range b.Samples {
		space := r.space(b.Samples[i].Space)
		if space == nil {
			continue
		}
		if segment := space.code.Find(b.Samples[i].IP); segment != nil && !met[segment.Module] {
			met[segment.Module] = true
			segment.Module.Code.OpenSymbols()
		}
	}
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
