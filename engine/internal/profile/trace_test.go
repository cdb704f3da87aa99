// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/recorded"
)

// TestTraceIsTheWayOfWalk holds Trace, which takes a short way for most frames, against
// Walk, which takes none: the frames of every sample, and why each stack ends. Half of
// the samples have a part of their stack only, and others a word of it that is wrong.
func TestTraceIsTheWayOfWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("records programs")
	}
	for _, program := range recorded.Programs {
		f, r := openProgram(t, program.Name, recorded.Samples())
		s, whole := r.sampler(), r.process.Walker()
		frames, failed := 0, 0
		for i, in := range allSamples(t, f) {
			space := s.spaceOf(in.Space)
			if in.Registers.ABI != perfdata.Registers64 || space == nil {
				continue
			}
			s.code.set(space, in.Time)
			s.sample.Registers = *s.registers.read(r.set, &in.Registers)
			s.sample.StackStart, _ = s.sample.Registers.Uint64(s.desc.SP, s.desc.ByteOrder)
			s.sample.Stack = damaged(in.Stack, i)
			var steps []walk.Step
			var stopped trace.Stopped
			err := object.Guard(func() error {
				steps, stopped = s.walker.Trace(context.Background(), &s.sample, uint32(in.PID), nil)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			stack := whole.Walk(context.Background(), &s.sample)
			frames += len(steps)
			if !isSameWay(steps, stopped, stack) {
				if failed++; failed < 5 {
					t.Errorf("%s, sample %d: %d frames and %q, Walk has %d and %q", program.Name, i, len(steps), stopped.Reason, len(stack.Frames), stack.Stopped.Reason)
				}
			}
		}
		if failed > 0 || frames < 10*recorded.Samples() {
			t.Errorf("%s: %d samples differ; %d frames", program.Name, failed, frames)
		}
	}
}

// damaged is a stack of which a part is missing or wrong, according to a number.
func damaged(stack []byte, number int) []byte {
	if len(stack) == 0 || number%2 == 0 {
		return stack
	}
	at := number * 7919 % len(stack)
	if number%4 == 1 {
		return stack[:at]
	}
	other := append([]byte(nil), stack...)
	for i := at &^ 7; i < min(at&^7+8, len(other)); i++ {
		other[i] = byte(number)
	}
	return other
}

func isSameWay(steps []walk.Step, stopped trace.Stopped, stack *trace.Stack) bool {
	if len(steps) != len(stack.Frames) || stopped.Reason != stack.Stopped.Reason {
		return false
	}
	for i := range steps {
		s, f := &steps[i], &stack.Frames[i]
		if s.PC != f.PC || s.Exact != f.Exact || s.Found.FoundBy() != f.FoundBy || (s.Kind == walk.ModuleCode) != (f.Module != nil) {
			return false
		}
		if f.Module != nil && (int(s.Owner) != f.Module.ID || s.Offset != f.ModuleOffset) {
			return false
		}
	}
	return true
}
