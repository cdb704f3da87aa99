// SPDX-License-Identifier: Apache-2.0

package plugin

// Counts has the numbers of starts and failures of a plugin's processes so far.
type Counts struct {
	Starts   uint64 `json:",omitempty"` // that succeeded
	Restarts uint64 `json:",omitempty"` // the part of Starts after a process had ended
	Failures uint64 `json:",omitempty"` // deaths, calls without an end, and starts that failed
}

// Since returns the increase since earlier counts.
func (c Counts) Since(earlier Counts) Counts {
	return Counts{c.Starts - earlier.Starts, c.Restarts - earlier.Restarts, c.Failures - earlier.Failures}
}

// Counts returns the counts of all plugins that are processes, by name, except plugins
// that were never started. It starts nothing.
func (m *Manager) Counts() map[string]Counts {
	all := map[string]Counts{}
	for _, p := range m.plugins {
		if s, ok := p.transport.(*supervisor); ok {
			if c := s.counts(); c != (Counts{}) {
				all[p.name] = c
			}
		}
	}
	return all
}

// ForgetProblems forgets the past events of the plugins, except lasting ones: they do not
// concern the targets that are opened from now on.
func (m *Manager) ForgetProblems() {
	for _, p := range m.plugins {
		if s, ok := p.transport.(*supervisor); ok {
			s.events.forget()
		}
	}
}

// IsAnyDisabled reports whether a plugin failed so often that it is not started again.
func (m *Manager) IsAnyDisabled() bool {
	for _, p := range m.plugins {
		if s, ok := p.transport.(*supervisor); ok && s.isDisabled() {
			return true
		}
	}
	return false
}

func (s *supervisor) isDisabled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disabled != nil
}

func (s *supervisor) counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Counts{Starts: s.generation, Failures: s.failures}
	if s.generation > 0 {
		c.Restarts = s.generation - 1
	}
	return c
}
