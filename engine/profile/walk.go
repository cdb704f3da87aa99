// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target/perfdata"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/sdk"
)

// walkedSample is a sample and the frames of its stack.
type walkedSample struct {
	event    int
	pid, tid int
	comm     string
	time     uint64
	weight   uint64
	first    int // of its frames, in those of the batch, innermost first
	kernel   int // how many of them are of the kernel, or of a guest
	frames   int
	stopped  walk.Stopped
	space    *codeSpace
	problem  string
}

// walkedBatch is what became of a perfdata.Batch.
type walkedBatch struct {
	sequence int
	samples  []walkedSample
	frames   []walk.Step
	kernel   *perfdata.Space
	made     *perfdata.Space // functions that the kernel made
}

// begin makes it that of a batch, without samples.
func (w *walkedBatch) begin(b *perfdata.Batch) {
	w.sequence, w.kernel, w.made = b.Sequence, b.Kernel, b.KernelSymbols
	w.samples, w.frames = w.samples[:0], w.frames[:0]
}

// newWalkedSample is a sample whose first frame is at an index.
func newWalkedSample(in *perfdata.Sample, space *codeSpace, first int) walkedSample {
	return walkedSample{
		event: in.Event, pid: in.PID, tid: in.TID, comm: in.Comm, time: in.Time, weight: in.Period,
		first: first, space: space, problem: in.Problem,
	}
}

// sampler walks the samples of a recording. It belongs to one goroutine.
type sampler struct {
	recording *recording
	desc      *sdk.Description // of the recording's architecture; nil where there is none
	walker    *walk.Walker
	sample    walk.Sample
	code      sampleCode
	registers registerReader
	// The space of the sample before.
	version uint64
	space   *codeSpace
}

func (r *recording) sampler() *sampler {
	s := &sampler{recording: r, walker: r.process.Walker(), sample: walk.Sample{Arch: r.arch}}
	if m, err := r.maker.Shared.Library().Machine(r.arch); err == nil {
		s.desc = m.Description
	}
	s.code.made.recording = r
	s.sample.Code = &s.code
	return s
}

// walk walks the samples of a batch.
func (s *sampler) walk(ctx context.Context, b *perfdata.Batch, out *walkedBatch) {
	out.begin(b)
	for i := range b.Samples {
		s.walkSample(ctx, &b.Samples[i], out)
	}
}

func (s *sampler) walkSample(ctx context.Context, in *perfdata.Sample, out *walkedBatch) {
	w := newWalkedSample(in, s.spaceOf(in.Space), len(out.frames))
	s.code.at(w.space, in.Time)
	err := object.Guard(func() error {
		s.guestFrames(in, out)
		s.kernelFrames(in, out)
		w.kernel = len(out.frames) - w.first
		w.stopped = s.userFrames(ctx, in, w.space, out)
		return nil
	})
	if err != nil {
		w.stopped = walk.Stopped{Reason: walk.StopNoMemory, Detail: err.Error()}
	}
	w.frames = len(out.frames) - w.first
	out.samples = append(out.samples, w)
}

// spaceOf is the code of a version of a process; that of the sample before is
// remembered.
func (s *sampler) spaceOf(v *perfdata.Space) *codeSpace {
	if v == nil {
		return nil
	}
	if s.version != v.Code {
		s.version, s.space = v.Code, s.recording.space(v)
	}
	return s.space
}

// kernelFrames are those that the kernel recorded of itself.
func (s *sampler) kernelFrames(in *perfdata.Sample, out *walkedBatch) {
	found := code.ByContext
	for context, pc := range in.Chain.All() {
		if context != perfdata.ContextKernel && context != perfdata.ContextHypervisor {
			continue
		}
		s.kernelFrame(pc, found, out)
		found = code.ByCallChain
	}
	if found == code.ByContext && (in.Mode == perfdata.ModeKernel || in.Mode == perfdata.ModeHypervisor) && in.IP != 0 {
		s.kernelFrame(in.IP, found, out)
	}
}

func (s *sampler) kernelFrame(pc uint64, found code.FoundBy, out *walkedBatch) {
	f := walk.Step{PC: pc, Offset: pc, Kind: walk.KernelCode, Found: found.Index(), Exact: found == code.ByContext}
	if !f.Exact {
		f.Back = 1
	}
	out.frames = append(out.frames, f)
}

// Why the stack of a sample ends that is not walked.
var (
	stopNoUser    = walk.Stopped{Reason: walk.StopOutermost, Detail: "a thread of the kernel has no other frames"}
	stopNoStack   = walk.Stopped{Reason: walk.StopEndOfStack, Detail: "the recording has neither registers nor a call chain of the thread"}
	stopChain     = walk.Stopped{Reason: walk.StopEndOfStack, Detail: "the recorded call chain ends here"}
	stopCalls     = walk.Stopped{Reason: walk.StopEndOfStack, Detail: "the calls that the CPU recorded end here"}
	stopDeferred  = walk.Stopped{Reason: walk.StopEndOfStack, Detail: "the thread's call chain should be in a record of its own (CALLCHAIN_DEFERRED), which the recording does not have"}
	stopGuest     = walk.Stopped{Reason: walk.StopEndOfStack, Detail: "the stack of a guest is not recorded"}
	stopNoProcess = walk.Stopped{Reason: walk.StopNoModule, Detail: "nothing is known of the process"}
	// The kernel copies them one after the other: the stack pointer may be the
	// interrupted code's when the PC is not yet.
	stopRestoring = walk.Stopped{Reason: walk.StopNoRow, Detail: "the kernel may have been giving back the registers that a signal saved"}
	stop32        = walk.Stopped{Reason: walk.StopPluginFailed, Detail: "the registers are those of a 32-bit process"}
	stopNoArch    = walk.Stopped{Reason: walk.StopPluginFailed, Detail: "there is no architecture whose registers these are"}
)

// userFrames are those of the thread: walked where its registers and its stack were
// recorded, else what the kernel or the CPU recorded of them.
func (s *sampler) userFrames(ctx context.Context, in *perfdata.Sample, space *codeSpace, out *walkedBatch) walk.Stopped {
	set := s.recording.set
	switch {
	case in.Registers.ABI == perfdata.RegistersNone:
		return s.chainFrames(ctx, in, space, out)
	case len(in.Stack) == 0 && in.Chain.Has(perfdata.ContextUser):
		// Registers are recorded beside chains, too: the link register by perf for
		// AArch64, others where they were asked for.
		return s.chainFrames(ctx, in, space, out)
	case in.Registers.ABI == perfdata.Registers32:
		s.topFrame(ctx, in, space, out)
		return stop32
	case set == nil:
		s.topFrame(ctx, in, space, out)
		return stopNoArch
	case space == nil:
		s.topFrame(ctx, in, space, out)
		return stopNoProcess
	}
	s.sample.Registers = *s.registers.read(set, &in.Registers)
	// The bytes of the stack begin at its pointer.
	s.sample.StackStart, _ = s.sample.Registers.Uint64(s.desc.SP, s.desc.ByteOrder)
	s.sample.Stack = in.Stack
	first := len(out.frames)
	var stopped walk.Stopped
	out.frames, stopped = s.walker.Trace(ctx, &s.sample, uint32(in.PID), out.frames)
	if len(out.frames) > first+1 && in.Mode == perfdata.ModeKernel && s.walker.IsSignalFrame(0) {
		out.frames, stopped = out.frames[:first+1], stopRestoring
	}
	return stopped
}

// chainFrames are the thread's frames as the kernel found them. Where the CPU
// recorded the calls that the thread was in, they stand for all but the innermost,
// as for perf script: the kernel follows frame pointers, which programs that are
// recorded so need not have.
func (s *sampler) chainFrames(ctx context.Context, in *perfdata.Sample, space *codeSpace, out *walkedBatch) walk.Stopped {
	found := code.ByContext
	for context, pc := range in.Chain.All() {
		if context != perfdata.ContextUser {
			continue
		}
		s.placeFrame(ctx, in, space, pc, found, out)
		found = code.ByCallChain
		if in.Calls.Len() > 0 {
			return s.callFrames(ctx, in, space, out)
		}
	}
	switch {
	case found == code.ByCallChain:
		return stopChain
	case in.Problem != "": // the record is cut, and its registers are missing
		return stopNoStack
	case in.Mode.IsGuest():
		return stopGuest
	}
	isUser := in.Mode == perfdata.ModeUser || in.Mode == perfdata.ModeUnknown
	s.topFrame(ctx, in, space, out)
	switch {
	case in.Chain.Has(perfdata.ContextUserDeferred):
		return stopDeferred
	case !isUser && s.recording.hasUserStacks(in.Event):
		return stopNoUser
	}
	return stopNoStack
}

// callFrames are the callers of a thread's innermost frame as the CPU recorded
// their calls. Each is at its call, not where that returns to.
func (s *sampler) callFrames(ctx context.Context, in *perfdata.Sample, space *codeSpace, out *walkedBatch) walk.Stopped {
	for i := range in.Calls.Len() {
		s.placeFrameAt(ctx, in, space, in.Calls.From(i), code.ByCallChain, true, out)
	}
	return stopCalls
}

// hasUserStacks says whether the samples of an event have the stack of the thread,
// where it has one.
func (r *recording) hasUserStacks(event int) bool {
	if event < 0 {
		return false
	}
	a := &r.file.Attrs()[event]
	return a.SampleType&perfdata.SampleRegsUser != 0 || a.SampleType&perfdata.SampleCallchain != 0 && a.Flags&perfdata.FlagNoUserChains == 0
}

// guestFrames are those of a virtual machine that the CPU was in. Their addresses are
// not the host's.
func (s *sampler) guestFrames(in *perfdata.Sample, out *walkedBatch) {
	found := code.ByContext
	for context, pc := range in.Chain.All() {
		if context.IsGuest() {
			s.guestFrame(pc, context, found, out)
			found = code.ByCallChain
		}
	}
	if found == code.ByContext && in.Mode.IsGuest() && in.IP != 0 {
		context := perfdata.ContextGuestUser
		if in.Mode == perfdata.ModeGuestKernel {
			context = perfdata.ContextGuestKernel
		}
		s.guestFrame(in.IP, context, found, out)
	}
}

func (s *sampler) guestFrame(pc uint64, context perfdata.Context, found code.FoundBy, out *walkedBatch) {
	f := walk.Step{PC: pc, Offset: pc, Kind: walk.GuestCode, Owner: uint32(context), Found: found.Index(), Exact: found == code.ByContext}
	if !f.Exact {
		f.Back = 1
	}
	out.frames = append(out.frames, f)
}

// topFrame is the frame that the thread was in, where that is all that is known.
func (s *sampler) topFrame(ctx context.Context, in *perfdata.Sample, space *codeSpace, out *walkedBatch) {
	if in.IP != 0 && (in.Mode == perfdata.ModeUser || in.Mode == perfdata.ModeUnknown) {
		s.placeFrame(ctx, in, space, in.IP, code.ByContext, out)
	}
}

// placeFrame finds the module of a frame that was not walked. The innermost is where
// the thread was, and the others are return addresses.
func (s *sampler) placeFrame(ctx context.Context, in *perfdata.Sample, space *codeSpace, pc uint64, found code.FoundBy, out *walkedBatch) {
	s.placeFrameAt(ctx, in, space, pc, found, found == code.ByContext, out)
}

func (s *sampler) placeFrameAt(ctx context.Context, in *perfdata.Sample, space *codeSpace, pc uint64, found code.FoundBy, isExact bool, out *walkedBatch) {
	f := walk.Step{PC: pc, Offset: pc, Kind: walk.ProcessCode, Owner: uint32(in.PID), Found: found.Index(), Exact: isExact}
	if !f.Exact {
		f.Back = 1
	}
	if space != nil {
		at := s.code.Segment(f.Named())
		if !isExact {
			if next := code.Continuation(ctx, s.code.Segment, pc); next != nil {
				at, f.Back = next, 0
			}
		}
		if at != nil {
			f.Kind, f.Owner, f.Offset = walk.ModuleCode, uint32(at.Module.ID), at.ObjectAddress(pc)
		}
	}
	out.frames = append(out.frames, f)
}

// walkAll walks samples of the recording by a number of goroutines, beside the
// one that reads. keep leaves those in a batch that are walked, and gets the batches in
// their order; nil: all are. take gets the batches in their order, one at a time; what it
// gets is valid during the call.
func (r *recording) walkAll(ctx context.Context, jobs int, keep func(*perfdata.Batch), take func(*walkedBatch)) error {
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	return r.readAll(func(reader *perfdata.Reader) error { return r.walkBatches(ctx, reader, jobs, keep, take) })
}

// readAll reads the recording, and says what is wrong with it.
func (r *recording) readAll(read func(*perfdata.Reader) error) error {
	reader := r.file.Reader()
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

// A batchWalk walks the batches of a recording by several goroutines. Batches are
// taken in their order, so those that are ready early wait: as many as order has
// room for.
type batchWalk struct {
	recording *recording
	keep      func(*perfdata.Batch) // leaves the samples that are walked; nil: all are
	work      chan batchToWalk
	order     chan chan *walkedBatch
	free      chan *walkedBatch // to be written over
	bound     chan struct{}     // closed when the plugin has answered
	failed    error             // why reading ended early; set when order is closed
}

// batchToWalk is a batch, and where it is expected when it is walked.
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

// sampler makes a sampler when the plugin has answered. While it starts, what its
// first batch needs is opened.
func (w *batchWalk) sampler(b *perfdata.Batch) *sampler {
	// A file that is cut is met again by the walk, which says so.
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
		if at := space.code.Find(b.Samples[i].IP); at != nil && !met[at.Module] {
			met[at.Module] = true
			at.Module.Code.OpenSymbols()
		}
	}
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
