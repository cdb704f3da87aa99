package engine

import "context"

// countLanes asks about a thread again where neither the target nor its registers
// say how many lanes it has, and the code that it executes does: a plugin can only
// guess then, as few as there may be. Code is of a kernel, all of whose functions
// have as many.
func (t *Target) countLanes(ctx context.Context, s *thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counted || s.Lanes != 0 || s.arch == nil || len(s.arch.desc.Processors) == 0 || s.binding == nil || s.binding.Problem != "" || s.noPC {
		return
	}
	s.counted = true
	segment := t.index.find(s.binding.PC)
	if segment == nil {
		return
	}
	m := segment.module
	lanes := m.lanesAt(ctx, segment.objectAddress(s.binding.PC))
	if lanes == 0 || lanes == s.binding.Lanes {
		return
	}
	// Its lanes are what is asked for; all else is the thread's.
	told := *s.Thread
	told.Lanes = lanes
	again := &thread{Thread: &told, arch: s.arch}
	t.bind(ctx, s.arch, again)
	if again.binding == nil || again.binding.Problem != "" {
		m.mu.Lock()
		m.problem("%s: code of %d lanes, which no thread of %s can have here", m.Object.Name(), lanes, s.arch.desc.Name)
		m.mu.Unlock()
		return
	}
	s.binding = again.binding
}

// lanesAt is how many lanes the function at an address has, as far as the plugin
// says; else 0.
func (m *module) lanesAt(ctx context.Context, address uint64) uint32 {
	m.resolver() // finds the debug file, before the object is opened
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.arch == nil || m.Object == nil || m.open(ctx) != nil {
		return 0 // a walk says why
	}
	if f := m.function(address); f != nil {
		return f.Lanes
	}
	return 0
}
