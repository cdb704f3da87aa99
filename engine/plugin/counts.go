// SPDX-License-Identifier: Apache-2.0

package plugin

// Counts are how often processes of a plugin were started, so far.
type Counts struct {
	Starts   uint64 `json:",omitempty"` // that succeeded
	Restarts uint64 `json:",omitempty"` // of Starts, those after a process had ended
	Failures uint64 `json:",omitempty"` // deaths, calls without an end, and starts that failed
}

// Since is what was added to earlier counts.
func (c Counts) Since(earlier Counts) Counts {
	return Counts{c.Starts - earlier.Starts, c.Restarts - earlier.Restarts, c.Failures - earlier.Failures}
}

// Counts are the counts of all plugins that are processes, by name. Those that were never
// started are not there. It starts nothing.
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

// ForgetProblems forgets what happened to the plugins so far, but for what is still so: it
// concerns none of the targets that are opened from now on.
func (m *Manager) ForgetProblems() {
	for _, p := range m.plugins {
		if s, ok := p.transport.(*supervisor); ok {
			s.events.forget()
		}
	}
}

// HasGivenUp says whether a plugin failed so often that it is not started again.
func (m *Manager) HasGivenUp() bool {
	for _, p := range m.plugins {
		if s, ok := p.transport.(*supervisor); ok && s.hasGivenUp() {
			return true
		}
	}
	return false
}

func (s *supervisor) hasGivenUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.givenUp != nil
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
