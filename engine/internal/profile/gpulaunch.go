// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
)

// The reasons why the stack of a wave ends.
var (
	stopLaunch        = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the recorded stack of the launch ends here"}
	stopNoLaunch      = trace.Stopped{Reason: trace.StopNoRow, Detail: "a wave: its PC is all that is known of it, and not who launched it"}
	stopNoLaunchStack = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the stack of the launch was not kept"}
	stopNoCallStack   = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "no stack of the thread was sampled as it launched"}
)

// maxLaunchPCs bounds the return addresses whose places are remembered.
const maxLaunchPCs = 1 << 20

// nearFrame is the frame between a wave and a stack that may not be the one that launched it.
var nearFrame = namedFrame{name: "[launched near]", module: -1, kernel: -1}

// launched is the thread and the stack that launched waves.
type launched struct {
	isKnown  bool
	thread   uint32 // index of Profile.Threads
	stack    uint32
	stop     uint16
	evidence trace.LaunchEvidence
}

// launchPC is a return address of a launch whose time is not known.
type launchPC struct {
	pid int
	pc  uint64
}

// launchedBy returns the stack of a launch of the file, or of a launch recorded in a sample,
// which has no index. pid is the process where there is no launch.
func (j *gpuJoin) launchedBy(ctx context.Context, l *gpusamples.Launch, index, pid int) launched {
	if index < 0 {
		return j.newLaunched(ctx, l, pid)
	}
	known := &j.launches[index]
	if !known.isKnown {
		*known = j.newLaunched(ctx, &j.file.Launches[index], pid)
	}
	return *known
}

func (j *gpuJoin) newLaunched(ctx context.Context, l *gpusamples.Launch, pid int) launched {
	out := launched{isKnown: true}
	if l == nil {
		out.thread = j.b.thread(&walkedSample{pid: pid, tid: -1, comm: j.names[pid]})
		out.stop = j.b.stop(stopNoLaunch)
		return out
	}
	thread := walkedSample{pid: l.PID, tid: l.TID, comm: l.Comm}
	if thread.comm == "" {
		thread.comm = j.comm(l)
	}
	out.thread = j.b.thread(&thread)
	most := j.b.recording.maker.Shared.Options().MaxFrames - 1
	switch {
	case !l.HasStack():
		return j.joined(l, out)
	case max(len(l.Frames), len(l.Names)) > most:
		out.stop = j.b.stop(trace.Stopped{Reason: trace.StopFrameLimit, Detail: fmt.Sprintf("%d frames", most+1)})
	default:
		out.stop = j.b.stop(stopLaunch)
	}
	out.evidence = trace.EvidenceRecorded
	if len(l.Frames) > 0 {
		out.stack = j.pushLaunch(ctx, l, most)
	} else {
		out.stack = j.pushNames(l.Names[:min(len(l.Names), most)])
	}
	return out
}

// joined returns the launch of a thread whose stack the profiler did not keep, with the stack
// of a sample of the CPU.
func (j *gpuJoin) joined(l *gpusamples.Launch, out launched) launched {
	if j.calls == nil || !l.HasTime {
		out.stop = j.b.stop(stopNoLaunchStack)
		return out
	}
	sample, evidence := j.calls.find(l)
	if evidence == trace.EvidenceUnknown {
		out.stop = j.b.stop(stopNoCallStack)
		return out
	}
	s := &j.b.out.Samples[sample]
	out.evidence, out.stack, out.stop, out.thread = evidence, s.Stack, s.Stop, s.Thread
	if evidence == trace.EvidenceNear {
		out.stack = j.b.push(trace.ProfileStack{Caller: out.stack, Frame: j.b.named(nearFrame)})
	}
	return out
}

// comm returns the name of a launching thread in the recording, or else its program's name.
func (j *gpuJoin) comm(l *gpusamples.Launch) string {
	name := ""
	switch {
	case j.history == nil:
	case j.timed && l.HasTime:
		name = j.history.Comm(l.PID, l.TID, j.time(l.Time))
	default:
		name = j.history.Comm(l.PID, l.TID, ^uint64(0))
	}
	if name == "" {
		name = j.names[l.PID]
	}
	return name
}

// pushLaunch adds the stack of a launch, with its innermost frames only.
func (j *gpuJoin) pushLaunch(ctx context.Context, l *gpusamples.Launch, most int) (stack uint32) {
	frames := l.Frames[:min(len(l.Frames), most)]
	for i := len(frames) - 1; i >= 0; i-- {
		space := j.space(l, frames[i])
		j.sampler.code.set(space, j.time(l.Time))
		if !j.timed || !l.HasTime {
			j.sampler.code.generated.dumps = nil
		}
		j.batch.frames = j.batch.frames[:0]
		j.sampler.placeFrame(ctx, &perfdata.Sample{PID: l.PID}, space, frames[i], trace.ByLaunch, &j.batch)
		frame := j.b.frame(&j.batch.frames[0], &walkedSample{space: space}, &j.batch)
		stack = j.b.push(trace.ProfileStack{Caller: stack, Frame: frame})
	}
	return stack
}

// pushNames adds the stack of a launch from the names of its frames, innermost first.
func (j *gpuJoin) pushNames(names []string) (stack uint32) {
	for _, name := range slices.Backward(names) {
		frame := j.b.named(namedFrame{name: name, namer: j.file.Form, module: -1, kernel: -1})
		stack = j.b.push(trace.ProfileStack{Caller: stack, Frame: frame})
	}
	return stack
}

// space returns the code of the launching process with a return address. Where the time is not
// known, there is an answer only if the process never had other code there.
func (j *gpuJoin) space(l *gpusamples.Launch, pc uint64) *codeSpace {
	if j.history == nil {
		return nil
	}
	r := j.b.recording
	if j.timed && l.HasTime {
		return r.space(j.history.Space(l.PID, j.time(l.Time)))
	}
	key := launchPC{l.PID, pc}
	if space, ok := j.pcs[key]; ok {
		return space
	}
	spaces, ok := j.spaces[l.PID]
	if !ok {
		for _, v := range j.history.Spaces(l.PID) {
			spaces = append(spaces, r.space(v))
		}
		j.spaces[l.PID] = spaces
	}
	space := onlySpace(spaces, pc-1)
	if len(j.pcs) < maxLaunchPCs {
		j.pcs[key] = space
	}
	return space
}

// onlySpace returns a space in which an address is code; nil where there is none, and where the
// address is other code in another one.
func onlySpace(spaces []*codeSpace, address uint64) (found *codeSpace) {
	var first *code.Segment
	for _, s := range spaces {
		switch segment := s.code.Find(address); {
		case segment == nil && s.anonymousAt(address) == nil:
		case segment == nil, first != nil && (segment.Module != first.Module || segment.ObjectAddress(address) != first.ObjectAddress(address)):
			return nil
		default:
			found, first = s, segment
		}
	}
	return found
}
