// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
)

// countLanes asks about a thread again where neither the target nor its registers
// say how many lanes it has, and the code that it executes does: a plugin can only
// guess then, as few as there may be. Code is of a kernel, all of whose functions
// have as many.
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
	// The plugin is asked about its lanes alone.
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
