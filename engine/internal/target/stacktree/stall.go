// SPDX-License-Identifier: Apache-2.0

package stacktree

import (
	"math"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// stallPrefixes begin CUPTI's names of reasons for which warps waited.
var stallPrefixes = []string{"smsp__pcsamp_warps_issue_stalled_", "smsp__pcsamp_warps_issue_", "stall_"}

// notIssued ends the names of reasons of samples in which the scheduler issued no instruction at all.
const notIssued = "_not_issued"

// WarpState returns a state by CUPTI's name of a reason. A warp that was selected issued an
// instruction; every other reason is one for which it waited.
func WarpState(name string) trace.WaveState {
	short := strings.ToLower(name)
	for _, prefix := range stallPrefixes {
		short = strings.TrimPrefix(short, prefix)
	}
	return trace.WaveState{Name: short, Stalled: strings.TrimSuffix(short, notIssued) != "selected"}
}

// WarpState returns the index of the state of a reason among the states of the file, as
// trace.ProfileSample has it; 0 where there are too many.
func (b *Builder) WarpState(name string) uint8 {
	index, ok := b.states[name]
	if !ok {
		if len(b.states) >= math.MaxUint8 {
			return 0
		}
		b.States = append(b.States, WarpState(name))
		index = uint8(len(b.States)) //nolint:gosec // checked
		b.states[name] = index
	}
	return index
}
