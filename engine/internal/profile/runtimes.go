// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// This file has the stacks in which language runtimes have frames. They are found while the threads of
// the process stand still, and are in the recording.

// StopNumber returns the number of a reason in recordings.
func StopNumber(r trace.StopReason) uint8 {
	return uint8(max(slices.Index(stopReasons, r), 0)) //nolint:gosec // a few
}

// runtimesIn returns the stack with frames of language runtimes in a sample, which outlives the sample;
// nil: there is none.
func runtimesIn(s *perfdata.Sample) []byte {
	_, stack := perfdata.SplitRaw(s.Raw)
	return bytes.Clone(stack)
}

// stopCut ends a stack that a sample has no room for.
var stopCut = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the sample has no room for further frames"}

// runtimeFrames adds the frames of a recorded stack in which language runtimes have some: native
// frames that these stand for are left out. ok is false where there is none.
func (s *sampler) runtimeFrames(ctx context.Context, recorded *perfdata.Sample, space *codeSpace, out *walkedBatch) (stopped trace.Stopped, ok bool) {
	_, raw := perfdata.SplitRaw(recorded.Raw)
	if raw == nil || !perfdata.ReadRuntimeStack(&s.runtimes, raw) || int(s.runtimes.Stop) >= len(stopReasons) {
		return stopped, false
	}
	for i := range s.runtimes.Entries {
		e := &s.runtimes.Entries[i]
		switch found := code.FoundIndex(e.Found); {
		case e.IsManaged:
			number := uint64(e.Frame)
			out.frames = append(out.frames, walk.Step{PC: number, Offset: number, Kind: walk.ManagedCode, Found: code.IndexOf(trace.ByRuntime), Exact: true})
		case !e.IsBehind && found.IsKnown():
			s.placeFrameAt(ctx, recorded, space, e.PC, found.FoundBy(), e.IsExact, out)
		}
	}
	if s.runtimes.IsCut {
		return stopCut, true
	}
	return trace.Stopped{Reason: stopReasons[s.runtimes.Stop]}, true
}

// managedFrame describes a frame of a language runtime by its number. One of a damaged recording has no name.
func (b *profileBuilder) managedFrame(number uint32, out *trace.ProfileFrame) {
	out.PC, out.ModuleOffset, out.PID = 0, 0, -1
	f, ok := b.runtimes.Frame(number)
	out.Managed = &trace.Managed{Runtime: f.Runtime, Kind: trace.ManagedKind(f.Kind)}
	if ok && !b.recording.maker.Shared.Options().NoSymbols {
		out.Symbols = []trace.Symbol{{Function: f.Function, File: f.File, Line: int(f.Line), Column: int(f.Column)}}
	}
}

// missingRuntimes returns the names of the language runtimes that modules with frames have, where the
// recording has none of their frames.
func (b *profileBuilder) missingRuntimes(used map[*code.Module]bool) []string {
	k := b.recording.maker
	if b.recording.file == nil || k.RuntimeNames == nil || k.Shared.Options().NoSymbols || b.runtimes.Len() > 0 {
		return nil
	}
	var modules []*code.Module
	for m, is := range used {
		if is {
			modules = append(modules, m)
		}
	}
	slices.SortFunc(modules, func(x, y *code.Module) int { return cmp.Compare(x.ID, y.ID) })
	return k.RuntimeNames(modules)
}
