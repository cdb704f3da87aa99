// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/recorded"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// framePointers are the return addresses that the chain of saved frame pointers
// leads to, as far as the stack of a sample was recorded.
func framePointers(s *perfdata.Sample) (returns []uint64) {
	d := x86_64.Description()
	var registers sdk.Registers
	for i := range d.RegisterSets {
		d.RegisterSets[i].DecodeSample(s.Registers.Mask, s.Registers.Values, &registers)
	}
	fp, _ := registers.Uint64(d.FP, d.ByteOrder)
	sp, _ := registers.Uint64(d.SP, d.ByteOrder)
	return savedReturns(fp, sp, s.Stack)
}

// savedReturns are the return addresses above the frame pointers that are saved in
// a stack, which begins at start.
func savedReturns(fp, start uint64, stack []byte) (returns []uint64) {
	for fp >= start && fp-start+16 <= uint64(len(stack)) {
		at := stack[fp-start:]
		next, pc := binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:])
		if pc == 0 {
			break
		}
		returns = append(returns, pc)
		if next <= fp {
			break
		}
		fp = next
	}
	return returns
}

// TestGoStacksFollowFramePointers holds the stacks of a Go program, which perf
// cannot walk, against another chain: Go's functions save the frame pointer, and
// the return address is above it. A function that has not saved it yet, or has no
// frame, hides its caller from the chain, and nothing else does.
func TestGoStacksFollowFramePointers(t *testing.T) {
	if testing.Short() {
		t.Skip("records programs")
	}
	for _, program := range []string{"gowork", "gowork without DWARF"} {
		t.Run(program, func(t *testing.T) { followFramePointers(t, program) })
	}
}

func followFramePointers(t *testing.T, program string) {
	t.Helper()
	path := recorded.Recording(t, program, recorded.Samples())
	p := profiled(t, path)
	raw := rawSampleOf(t, path)
	causes, keys := map[string]int{}, sampleKeys{}
	bad := 0
	check := newCodeChecker(t, p)
	for i := range p.Samples {
		s := &p.Samples[i]
		chain := framePointers(raw[keys.next(p.Threads[s.Thread].TID, s.Time)])
		cause := check.chainClass(s, chain)
		causes[cause]++
		if strings.HasPrefix(cause, "unexplained") {
			if bad++; bad <= 5 {
				t.Errorf("%s\n%sthe chain is %#x", cause, check.stack(s), chain)
			}
		}
	}
	for cause, n := range causes {
		t.Logf("%8d %s", n, cause)
	}
	if bad > 0 {
		t.Errorf("%d of %d samples differ without a cause", bad, len(p.Samples))
	}
	if same := causes["same"]; same*2 < len(p.Samples) {
		t.Errorf("%d of %d chains are the same: too few to say anything", same, len(p.Samples))
	}
}

// chainClass says how the user's frames of a sample differ from a chain of return
// addresses. It begins at the outermost ones: functions that call themselves have
// the same address many times.
func (c *codeChecker) chainClass(s *trace.ProfileSample, chain []uint64) string {
	p := c.profile
	var frames []*trace.ProfileFrame
	for _, i := range p.StackFrames(nil, s.Stack) {
		if f := &p.Frames[i]; !f.Kernel {
			if len(frames) > 0 && f.Exact {
				return "a signal interrupted it"
			}
			frames = append(frames, f)
		}
	}
	if n := len(frames); n > 0 && strings.HasPrefix(p.Stops[s.Stop].Detail, "a stack begins in") {
		// The bytes that were recorded may reach to the stack that was left.
		for last := len(chain); last > 0; last-- {
			if chain[last-1] == frames[n-1].PC {
				chain = chain[:last]
				break
			}
		}
	}
	class := "same"
	for i := len(frames) - 1; i > 0; i-- {
		switch n := len(chain); {
		case n > 0 && chain[n-1] == frames[i].PC:
			chain = chain[:n-1]
		case i == 1:
			class = "the caller of a function that has not saved the frame pointer is not in the chain"
		case i == 2 && c.asksForStack(frames[0]):
			class = "the caller of a function that asks for more stack before it saves the frame pointer is not in the chain"
		case !c.savesFramePointer(frames[i-1]):
			class = "the caller of a function that never saves the frame pointer is not in the chain"
		default:
			return fmt.Sprintf("unexplained: %#x is not in the chain", frames[i].PC)
		}
	}
	if len(chain) > 0 {
		return fmt.Sprintf("unexplained: the chain has %#x", chain)
	}
	return class
}

// savesFramePointer reports whether the function of a frame pushes rbp.
func (c *codeChecker) savesFramePointer(f *trace.ProfileFrame) bool {
	if f.Module < 0 {
		return false
	}
	in := c.file(c.profile.Modules[f.Module].Path)
	start, end := in.extent(f.ModuleOffset - 1)
	return slices.ContainsFunc(in.listing(c.tb, start, end), func(line string) bool {
		return strings.Join(strings.Fields(line), " ") == "push %rbp"
	})
}

// asksForStack reports whether a frame is of the function that Go's functions begin
// with where their stack may be too small.
func (c *codeChecker) asksForStack(f *trace.ProfileFrame) bool {
	return f.Module >= 0 && slices.ContainsFunc(c.file(c.profile.Modules[f.Module].Path).holding(f.ModuleOffset), func(f codeFunction) bool {
		return strings.HasPrefix(f.name, "runtime.morestack")
	})
}
