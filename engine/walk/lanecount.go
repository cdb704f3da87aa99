// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
)

// countLanes binds a thread again where neither the target nor its registers have its number of
// lanes, but the code that it executes has it: a plugin can only assume the smallest number
// then. All functions of a kernel have the same number.
func (p *Process) countLanes(ctx context.Context, s *thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counted || s.Lanes != 0 || s.arch == nil || len(s.arch.Description.Processors) == 0 || s.binding == nil || s.binding.Problem != "" || s.noPC {
		return
	}
	s.counted = true
	segment := p.Segment(s.binding.PC)
	if segment == nil {
		return
	}
	m := segment.Module
	f := m.Code.FunctionAt(ctx, segment.ObjectAddress(s.binding.PC))
	if f == nil || f.Lanes == 0 || f.Lanes == s.binding.Lanes {
		return
	}
	lanes := f.Lanes
	// The plugin is asked only about its lanes.
	told := *s.Thread
	told.Lanes = lanes
	again := &thread{Thread: &told, arch: s.arch}
	p.bind(ctx, s.arch, again)
	if again.binding == nil || again.binding.Problem != "" {
		m.StateProblem("%s: code of %d lanes, which no thread of %s can have here", m.Object.Name(), lanes, s.arch.Description.Name)
		return
	}
	s.binding = again.binding
}
