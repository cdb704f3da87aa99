// SPDX-License-Identifier: Apache-2.0

package service

// now are the limits in force.
func (s *Server) now() *Limits { return s.limits.Load() }

// SetLimits replaces limits while the server serves. Those that workers were started with
// stay as they were: Workers, Memory and Unpack; and Handed.
func (s *Server) SetLimits(l Limits) {
	old := s.now()
	l.Workers, l.Memory, l.Unpack, l.Handed = old.Workers, old.Memory, old.Unpack, old.Handed
	s.limits.Store(&l)
	s.queue.resize(l.Waiting, l.PerUser)
	if s.handover != nil {
		s.handover.places.resize(l.Waiting, l.PerUser)
	}
	s.budget.most.Store(l.Spool)
	s.store.Resize(l.Objects)
	s.pool.SetBounds(l.Time, l.Answer)
}

// resize changes how many requests may wait. Those that wait already stay.
func (q *queue) resize(maxWaiting, maxPerCaller int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.maxWaiting, q.maxPerCall = maxWaiting, maxPerCaller
}
